/* SPDX-License-Identifier: Apache-2.0 */
#include "mha_peak.h"
#include "mha_peak_chains.h"

#include <arm_neon.h>

#define START(c) float32x4_t x##c = vdupq_n_f32(seeds[c]);
/* x = x + a b: fmla adds onto its own operand, so no copy stands in the loop. */
#define STEP(c) x##c = vfmaq_f32(x##c, a, b);
#define ADD(c)  total = vaddq_f32(total, x##c);

float mha__peak_loop_neon(int64_t steps, const volatile float *seeds)
{
    const float32x4_t a = vdupq_n_f32(0.999999F);
    const float32x4_t b = vdupq_n_f32(1e-6F);
    MHA__PEAK_16(START)
    for (int64_t step = 0; step < steps; step++) {
        MHA__PEAK_16(STEP)
    }
    float32x4_t total = vdupq_n_f32(0.0F);
    MHA__PEAK_16(ADD)
    float lanes[4];
    vst1q_f32(lanes, total);
    float sum = 0.0F;
    for (int lane = 0; lane < 4; lane++) {
        sum += lanes[lane];
    }
    return sum;
}
