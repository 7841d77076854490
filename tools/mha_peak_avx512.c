/* SPDX-License-Identifier: Apache-2.0 */
#include "mha_peak.h"
#include "mha_peak_chains.h"

#include <immintrin.h>

#define START(c) __m512 x##c = _mm512_set1_ps(seeds[c]);
/* x = x a + b stays near its start for a billion steps: no overflow, no denormal. */
#define STEP(c) x##c = _mm512_fmadd_ps(x##c, a, b);
#define ADD(c)  total = _mm512_add_ps(total, x##c);

float mha__peak_loop_avx512(int64_t steps, const volatile float *seeds)
{
    const __m512 a = _mm512_set1_ps(0.999999F);
    const __m512 b = _mm512_set1_ps(1e-6F);
    MHA__PEAK_16(START)
    for (int64_t step = 0; step < steps; step++) {
        MHA__PEAK_16(STEP)
    }
    __m512 total = _mm512_set1_ps(0.0F);
    MHA__PEAK_16(ADD)
    float lanes[16];
    _mm512_storeu_ps(lanes, total);
    float sum = 0.0F;
    for (int lane = 0; lane < 16; lane++) {
        sum += lanes[lane];
    }
    return sum;
}
