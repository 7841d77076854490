/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/dropout.h"

void mha__dropout_row(
    const struct mha__problem *p, int64_t b, int64_t h, int64_t i, int64_t j0, int64_t n, float *x)
{
    if (p->keep || j0 % 4 != 0) {
        for (int64_t c = 0; c < n; c++) {
            x[c] = mha__dropout_keeps(p, b, h, i, j0 + c) ? x[c] : 0.0f;
        }
        return;
    }
    for (int64_t c = 0; c < n; c += 4) {
        const struct mha__philox counter = {
            {(uint32_t)((j0 + c) / 4), (uint32_t)i, (uint32_t)h, (uint32_t)b}};
        const struct mha__philox words = mha__philox_at(p->seed, counter);
        for (int64_t w = 0; w < 4 && c + w < n; w++) {
            x[c + w] = (double)words.word[w] * 0x1p-32 >= p->dropout ? x[c + w] : 0.0f;
        }
    }
}
