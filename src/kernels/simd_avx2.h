/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA__SIMD_AVX2_H
#define MHA__SIMD_AVX2_H

/* An 8x8 transpose in 256-bit registers; the AVX-512 set uses it too. */
#include <immintrin.h>
#include <stdint.h>

/* Rows r and r + 4 meet in one register when they are loaded, so no instruction crosses its halves later. */
static inline void transpose_8x8(float *to, int64_t ld_to, const float *from, int64_t ld_from)
{
    for (int half = 0; half < 8; half += 4) {
        __m256 r[4];
        for (int i = 0; i < 4; i++) {
            const float *low = from + i * ld_from + half;
            r[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(low)),
                                        _mm_loadu_ps(low + 4 * ld_from), 1);
        }
        const __m256 t0 = _mm256_unpacklo_ps(r[0], r[1]);
        const __m256 t1 = _mm256_unpackhi_ps(r[0], r[1]);
        const __m256 t2 = _mm256_unpacklo_ps(r[2], r[3]);
        const __m256 t3 = _mm256_unpackhi_ps(r[2], r[3]);
        float *columns = to + half * ld_to;
        _mm256_storeu_ps(columns, _mm256_shuffle_ps(t0, t2, _MM_SHUFFLE(1, 0, 1, 0)));
        _mm256_storeu_ps(columns + ld_to, _mm256_shuffle_ps(t0, t2, _MM_SHUFFLE(3, 2, 3, 2)));
        _mm256_storeu_ps(columns + 2 * ld_to, _mm256_shuffle_ps(t1, t3, _MM_SHUFFLE(1, 0, 1, 0)));
        _mm256_storeu_ps(columns + 3 * ld_to, _mm256_shuffle_ps(t1, t3, _MM_SHUFFLE(3, 2, 3, 2)));
    }
}

#endif
