/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA__SIMD_AVX2_H
#define MHA__SIMD_AVX2_H

/* An 8x8 transpose in 256-bit registers; the AVX-512 set uses it too. */
#include <immintrin.h>
#include <stdint.h>

static inline void transpose_8x8(float *to, int64_t ld_to, const float *from, int64_t ld_from)
{
    __m256 r[8];
    __m256 t[8];
    for (int i = 0; i < 8; i++) {
        r[i] = _mm256_loadu_ps(from + i * ld_from);
    }
    for (int i = 0; i < 8; i += 2) {
        t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
    }
    for (int i = 0; i < 8; i += 4) {
        r[i] = _mm256_shuffle_ps(t[i], t[i + 2], _MM_SHUFFLE(1, 0, 1, 0));
        r[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], _MM_SHUFFLE(3, 2, 3, 2));
        r[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], _MM_SHUFFLE(1, 0, 1, 0));
        r[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], _MM_SHUFFLE(3, 2, 3, 2));
    }
    for (int i = 0; i < 4; i++) {
        _mm256_storeu_ps(to + i * ld_to, _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
        _mm256_storeu_ps(to + (i + 4) * ld_to, _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
    }
}

#endif
