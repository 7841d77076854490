/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kernels.h"
#include "kernels/simd_avx2.h"

/* AVX-512 F, DQ, BW, VL: 16 numbers a vector. */
#define MHA__KERNELS_NAME avx512
#define W                 16
#define W_T               8
#define PANEL_ROWS        12
#define PANEL_VECTORS     2
#define FEW_ROWS          4
#define T_ROWS            8
#define T_VECTORS         3
#define transpose_block   transpose_8x8

typedef __m512 vec;
typedef __mmask16 mask;

#ifndef v_keep /* the emulated vectors of the tests fit no register */
#define v_keep(x) __asm__("" : "+v"(x))
#endif
#define v_set1  _mm512_set1_ps
#define v_load  _mm512_loadu_ps
#define v_store _mm512_storeu_ps
#define v_add   _mm512_add_ps
#define v_sub   _mm512_sub_ps
#define v_mul   _mm512_mul_ps
#define v_fma   _mm512_fmadd_ps
#define v_fms   _mm512_fmsub_ps
#define v_max   _mm512_max_ps

#define v_largest _mm512_reduce_max_ps
#define v_sum     _mm512_reduce_add_ps

static inline vec v_shift_23(vec x)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(x), 23));
}

static inline mask v_mask(uint32_t bits)
{
    return (mask)bits;
}

static inline vec v_select(mask m, vec a, vec b)
{
    return _mm512_mask_blend_ps(m, b, a);
}

#define v_div _mm512_div_ps
#define v_abs _mm512_abs_ps

static inline vec v_sign_of(vec a, vec b)
{
    const __m512i sign = _mm512_and_epi32(_mm512_castps_si512(b), _mm512_set1_epi32(INT32_MIN));
    return _mm512_castsi512_ps(_mm512_or_epi32(_mm512_castps_si512(a), sign));
}

static inline mask v_less(vec a, vec b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ);
}

static inline mask v_equal(vec a, vec b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ);
}

static inline uint32_t v_bits_equal(vec a, vec b)
{
    return v_equal(a, b);
}

/* Quarters of 128 bits hold four sums each after three rounds; then the quarters are added. */
static inline void v_store_sums(float *to, vec a, vec b, vec c, vec d)
{
    const vec ab = _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
    const vec cd = _mm512_add_ps(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
    const vec sums = _mm512_add_ps(_mm512_shuffle_ps(ab, cd, _MM_SHUFFLE(1, 0, 1, 0)),
                                   _mm512_shuffle_ps(ab, cd, _MM_SHUFFLE(3, 2, 3, 2)));
    const __m256 half =
        _mm256_add_ps(_mm512_castps512_ps256(sums), _mm512_extractf32x8_ps(sums, 1));
    _mm_storeu_ps(to, _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1)));
}

#include "kernels/kernels_body.h"
