/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kernels.h"
#include "kernels/simd_avx2.h"

/* AVX-512 F, DQ, BW, VL: 16 numbers a vector. */
#define MHA__KERNELS_NAME avx512
#define W                 16
#define W_T               8
#define PANEL_ROWS        12
#define PANEL_VECTORS     2
#define transpose_block   transpose_8x8

typedef __m512 vec;
typedef __mmask16 mask;

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

#include "kernels/kernels_body.h"
