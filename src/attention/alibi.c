/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/alibi.h"

#include <math.h>

float mha__alibi_default_slope(int64_t H, int64_t h)
{
    int64_t n = 1;
    while (n <= H / 2) {
        n *= 2;
    }
    const int64_t eighths = h < n ? 8 * (h + 1) : 4 * (2 * (h - n) + 1);
    return (float)exp2(-(double)eighths / (double)n);
}
