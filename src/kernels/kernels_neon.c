/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kernels.h"

#include <arm_neon.h>

/* AArch64 Advanced SIMD: 4 numbers a vector. */
#define MHA__KERNELS_NAME neon
#define W                 4
#define W_T               4
#define PANEL_ROWS        8
#define PANEL_VECTORS     2
#define FEW_ROWS          4
#define T_ROWS            4
#define T_VECTORS         4
#define transpose_block   transpose_4x4

typedef float32x4_t vec;
typedef uint32x4_t mask;

#define v_keep(x) __asm__("" : "+w"(x))
#define v_set1    vdupq_n_f32
#define v_load    vld1q_f32
#define v_store   vst1q_f32
#define v_add     vaddq_f32
#define v_sub     vsubq_f32
#define v_mul     vmulq_f32
#define v_largest vmaxvq_f32
#define v_sum     vaddvq_f32

static inline vec v_fma(vec a, vec b, vec c)
{
    return vfmaq_f32(c, a, b);
}

static inline vec v_fms(vec a, vec b, vec c)
{
    return vfmaq_f32(vnegq_f32(c), a, b);
}

/* FMAX would return NaN for either side; this returns b, as the body wants it. */
static inline vec v_max(vec a, vec b)
{
    return vbslq_f32(vcgtq_f32(a, b), a, b);
}

static inline vec v_shift_23(vec x)
{
    return vreinterpretq_f32_s32(vshlq_n_s32(vreinterpretq_s32_f32(x), 23));
}

static inline mask v_mask(uint32_t bits)
{
    static const uint32_t lanes[4] = {1, 2, 4, 8};
    return vtstq_u32(vdupq_n_u32(bits), vld1q_u32(lanes));
}

static inline vec v_select(mask m, vec a, vec b)
{
    return vbslq_f32(m, a, b);
}

#define v_div  vdivq_f32
#define v_abs  vabsq_f32
#define v_less vcltq_f32

static inline vec v_sign_of(vec a, vec b)
{
    return vbslq_f32(vdupq_n_u32(0x80000000u), b, a);
}

static inline uint32_t v_bits_equal(vec a, vec b)
{
    static const uint32_t lanes[4] = {1, 2, 4, 8};
    return vaddvq_u32(vandq_u32(vceqq_f32(a, b), vld1q_u32(lanes)));
}

static inline void transpose_4x4(float *to, int64_t ld_to, const float *from, int64_t ld_from)
{
    float32x4x2_t low = vtrnq_f32(vld1q_f32(from), vld1q_f32(from + ld_from));
    float32x4x2_t high = vtrnq_f32(vld1q_f32(from + 2 * ld_from), vld1q_f32(from + 3 * ld_from));
    vst1q_f32(to, vcombine_f32(vget_low_f32(low.val[0]), vget_low_f32(high.val[0])));
    vst1q_f32(to + ld_to, vcombine_f32(vget_low_f32(low.val[1]), vget_low_f32(high.val[1])));
    vst1q_f32(to + 2 * ld_to, vcombine_f32(vget_high_f32(low.val[0]), vget_high_f32(high.val[0])));
    vst1q_f32(to + 3 * ld_to, vcombine_f32(vget_high_f32(low.val[1]), vget_high_f32(high.val[1])));
}

static inline void v_store_sums(float *to, vec a, vec b, vec c, vec d)
{
    vst1q_f32(to, vpaddq_f32(vpaddq_f32(a, b), vpaddq_f32(c, d)));
}

#include "kernels/kernels_body.h"
