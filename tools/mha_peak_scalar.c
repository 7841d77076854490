/* SPDX-License-Identifier: Apache-2.0 */
#include "mha_peak.h"
#include "mha_peak_chains.h"

#define START(c) float x##c = seeds[c];
/* x = x a + b stays near its start for a billion steps: no overflow, no denormal. */
#define STEP(c) x##c = x##c * a + b;
#define ADD(c)  total = total + x##c;

float mha__peak_loop_scalar(int64_t steps, const volatile float *seeds)
{
    const float a = 0.999999F;
    const float b = 1e-6F;
    MHA__PEAK_12(START)
    for (int64_t step = 0; step < steps; step++) {
        MHA__PEAK_12(STEP)
    }
    float total = 0.0F;
    MHA__PEAK_12(ADD)
    return total;
}
