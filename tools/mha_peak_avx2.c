/* SPDX-License-Identifier: Apache-2.0 */
#include "mha_peak.h"
#include "mha_peak_chains.h"

#include <immintrin.h>

#define START(c) __m256 x##c = _mm256_set1_ps(seeds[c]);
/* x = x a + b stays near its start for a billion steps: no overflow, no denormal. */
#define STEP(c) x##c = _mm256_fmadd_ps(x##c, a, b);
#define ADD(c)  total = _mm256_add_ps(total, x##c);

float mha__peak_loop_avx2(int64_t steps, const volatile float *seeds)
{
    const __m256 a = _mm256_set1_ps(0.999999F);
    const __m256 b = _mm256_set1_ps(1e-6F);
    MHA__PEAK_12(START)
    for (int64_t step = 0; step < steps; step++) {
        MHA__PEAK_12(STEP)
    }
    __m256 total = _mm256_set1_ps(0.0F);
    MHA__PEAK_12(ADD)
    float lanes[8];
    _mm256_storeu_ps(lanes, total);
    float sum = 0.0F;
    for (int lane = 0; lane < 8; lane++) {
        sum += lanes[lane];
    }
    return sum;
}
