/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kernels.h"
#include "kernels/simd_avx2.h"

/* AVX2 and FMA: 8 numbers a vector. */
#define MHA__KERNELS_NAME avx2
#define W                 8
#define W_T               8
#define PANEL_ROWS        6
#define PANEL_VECTORS     2
#define FEW_ROWS          3
#define T_ROWS            4
#define T_VECTORS         3
#define transpose_block   transpose_8x8

typedef __m256 vec;
typedef __m256 mask;

#define v_keep(x) __asm__("" : "+x"(x))
#define v_set1    _mm256_set1_ps
#define v_load    _mm256_loadu_ps
#define v_store   _mm256_storeu_ps
#define v_add     _mm256_add_ps
#define v_sub     _mm256_sub_ps
#define v_mul     _mm256_mul_ps
#define v_fma     _mm256_fmadd_ps
#define v_fms     _mm256_fmsub_ps
#define v_max     _mm256_max_ps

static inline vec v_shift_23(vec x)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(x), 23));
}

static inline float v_largest(vec x)
{
    __m128 m = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    m = _mm_max_ps(m, _mm_movehl_ps(m, m));
    return _mm_cvtss_f32(_mm_max_ss(m, _mm_movehdup_ps(m)));
}

static inline float v_sum(vec x)
{
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

static inline mask v_mask(uint32_t bits)
{
    const __m256i lane = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    __m256i hit = _mm256_and_si256(_mm256_set1_epi32((int)bits), lane);
    return _mm256_castsi256_ps(_mm256_cmpeq_epi32(hit, lane));
}

static inline vec v_select(mask m, vec a, vec b)
{
    return _mm256_blendv_ps(b, a, m);
}

#define v_div _mm256_div_ps

static inline vec v_abs(vec x)
{
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x);
}

static inline vec v_sign_of(vec a, vec b)
{
    return _mm256_or_ps(a, _mm256_and_ps(_mm256_set1_ps(-0.0f), b));
}

static inline mask v_less(vec a, vec b)
{
    return _mm256_cmp_ps(a, b, _CMP_LT_OQ);
}

static inline uint32_t v_bits_equal(vec a, vec b)
{
    return (uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_EQ_OQ));
}

/* Halves of 128 bits hold four sums each after three rounds: faster than horizontal additions. */
static inline void v_store_sums(float *to, vec a, vec b, vec c, vec d)
{
    const vec ab = _mm256_add_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
    const vec cd = _mm256_add_ps(_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d));
    const vec sums = _mm256_add_ps(_mm256_shuffle_ps(ab, cd, _MM_SHUFFLE(1, 0, 1, 0)),
                                   _mm256_shuffle_ps(ab, cd, _MM_SHUFFLE(3, 2, 3, 2)));
    _mm_storeu_ps(to, _mm_add_ps(_mm256_castps256_ps128(sums), _mm256_extractf128_ps(sums, 1)));
}

#include "kernels/kernels_body.h"
