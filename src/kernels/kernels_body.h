/* SPDX-License-Identifier: Apache-2.0
 *
 * The body of every vector kernel set, for any width. The including file defines, for its instructions:
 *
 *   MHA__KERNELS_NAME       avx2, say
 *   W                       numbers a vector, at most 16
 *   vec, mask               a vector of W floats; W truth values
 *   v_set1, v_load, v_store, v_add, v_sub, v_mul, v_div, v_abs
 *   v_fma(a, b, c)          a b + c, rounded once; v_fms(a, b, c) is a b - c
 *   v_max(a, b)             the larger; b where one is NaN
 *   v_shift_23              the bits, 23 places to the left
 *   v_largest, v_sum        of the W numbers; the sum in an order fixed by W
 *   v_sign_of(a, b)         |a| with the sign of b, for a >= 0
 *   v_mask(bits)            lane i is bit i; v_select(m, a, b) is m ? a : b
 *   v_less                  truth values; false where one is NaN
 *   v_bits_equal(a, b)      bit i: lane i is equal
 *   PANEL_ROWS, PANEL_VECTORS   the block of panel_product that fits the registers
 *   v_store_sums, FEW_ROWS  see kernels_few.h
 *   T_ROWS, T_VECTORS       see kernels_transposed.h
 *   W_T, transpose_block    transposes W_T x W_T numbers, see transpose below
 *
 * No include guard: it is included once by each kernels_<set>.c.
 */
#include "platform/prefetch.h"

#include <math.h>
#include <string.h>

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

#define LOG2_E      0x1.715476p+0f  /* log2 e, rounded */
#define LOG2_E_REST 0x1.4ae0c0p-26f /* log2 e - LOG2_E */
#define EXP_IS_ZERO -88.0f          /* from here on exp is below 2^-126.5: n = -127 */
#define ROUNDER     0x1.8000fep+23f /* 1.5 * 2^23 + 127 */

/* 2^f for |f| <= 1/2, the polynomial of degree 6 that is closest in the relative error; its first number is 1. */
#define EXP2_1 0x1.62e430p-1f
#define EXP2_2 0x1.ebfbdap-3f
#define EXP2_3 0x1.c6aed4p-5f
#define EXP2_4 0x1.3b2dbcp-7f
#define EXP2_5 0x1.5f456ap-10f
#define EXP2_6 0x1.41d334p-13f

/*
 * exp(x) for x <= 0: x log2 e = n + f, |f| <= 1/2, exp(x) = 2^n p(f), p the polynomial above in Estrin's
 * order: a shorter chain than Horner's.
 *
 * Where 1 is the unit in the last place, adding ROUNDER rounds to a whole number and leaves n + 127 in the
 * low bits: shifted into the exponent they are 2^n, and 0 for n = -127. n comes off before the product is
 * rounded, so f is exact but for its last bit: 1.4 ulp at most in all. x >= EXP_IS_ZERO, or NaN, which stays.
 * A compiler that may reassociate would fold the ROUNDERs away: never with -ffast-math.
 */
static inline vec v_exp_clamped(vec x)
{
    const vec shifted = v_fma(x, v_set1(LOG2_E), v_set1(ROUNDER));
    const vec n = v_sub(shifted, v_set1(ROUNDER));
    const vec f = v_fma(x, v_set1(LOG2_E_REST), v_fms(x, v_set1(LOG2_E), n));
    const vec f2 = v_mul(f, f);
    const vec low = v_fma(v_set1(EXP2_1), f, v_set1(1.0f));
    const vec middle = v_fma(v_set1(EXP2_3), f, v_set1(EXP2_2));
    const vec high = v_fma(v_set1(EXP2_5), f, v_set1(EXP2_4));
    vec p = v_fma(v_set1(EXP2_6), f2, high);
    p = v_fma(p, f2, middle);
    p = v_fma(p, f2, low);
    return v_mul(p, v_shift_23(shifted));
}

/* What v_exp_clamped takes: at EXP_IS_ZERO exp is 0 already. NaN stays: v_max returns its second argument then. */
static inline vec v_clamp(vec x)
{
    return v_max(v_set1(EXP_IS_ZERO), x);
}

static inline vec v_exp(vec x)
{
    return v_exp_clamped(v_clamp(x));
}

/* The visible bits of columns j .. j+W-1, those from `columns` on hidden. j is a multiple of W. */
static inline uint32_t bits_at(const uint64_t *visible, int64_t j, int64_t columns)
{
    const uint32_t all = (uint32_t)((UINT64_C(1) << W) - 1);
    uint32_t bits = visible ? (uint32_t)(visible[j / 64] >> (j % 64)) & all : all;
    return columns - j < W ? bits & (((uint32_t)1 << (columns - j)) - 1) : bits;
}

/* From column j, a multiple of 64, on: up to where all are visible, in whole words of bits if there are bits. */
static inline int64_t all_visible_until(const uint64_t *visible, int64_t j, int64_t columns)
{
    if (!visible) {
        return columns;
    }
    while (j + 64 <= columns && visible[j / 64] == ~UINT64_C(0)) {
        j += 64;
    }
    return j;
}

/* The word at column j, or all that is left without bits, is looked at vector by vector: up to here. */
static inline int64_t vectors_until(const uint64_t *visible, int64_t j, int64_t columns)
{
    return visible && j + 64 < columns ? j + 64 : columns;
}

static inline float row_maximum(const float *s, int64_t columns, const uint64_t *visible)
{
    const uint32_t all = (uint32_t)((UINT64_C(1) << W) - 1);
    const vec least = v_set1(-INFINITY);
    vec m0 = least;
    vec m1 = least;
    vec m2 = least;
    vec m3 = least;
    for (int64_t j = 0; j < columns;) {
        const int64_t full = all_visible_until(visible, j, columns);
        for (; j + 4 * W <= full; j += 4 * W) {
            m0 = v_max(v_load(s + j), m0);
            m1 = v_max(v_load(s + j + W), m1);
            m2 = v_max(v_load(s + j + 2 * W), m2);
            m3 = v_max(v_load(s + j + 3 * W), m3);
        }
        for (const int64_t end = vectors_until(visible, j, columns); j < end; j += W) {
            uint32_t bits = bits_at(visible, j, columns);
            if (bits == all) {
                m0 = v_max(v_load(s + j), m0);
            } else if (bits) {
                m0 = v_max(v_select(v_mask(bits), v_load(s + j), least), m0);
            }
        }
    }
    return v_largest(v_max(v_max(m0, m1), v_max(m2, m3)));
}

/*
 * s_j <- p_j = exp(s_j - base) where visible, else 0; sum[0] is their sum, and sum[1] that of p_j ln p_j
 * if it is wanted. `wants` is a constant wherever this is inlined. ln p is clamped where exp is, so that p = 0
 * adds 0 even at -infinity.
 */
static inline __attribute__((always_inline)) void row_exponentials(
    float *s, int64_t columns, const uint64_t *visible, float base, bool wants, float sum[2])
{
    const uint32_t all = (uint32_t)((UINT64_C(1) << W) - 1);
    const vec b = v_set1(base);
    const vec zero = v_set1(0.0f);
    vec l0 = zero;
    vec l1 = zero;
    vec e0 = zero;
    vec e1 = zero;
    for (int64_t j = 0; j < columns;) {
        const int64_t full = all_visible_until(visible, j, columns);
        for (; j + 2 * W <= full; j += 2 * W) {
            const vec x0 = v_clamp(v_sub(v_load(s + j), b));
            const vec x1 = v_clamp(v_sub(v_load(s + j + W), b));
            const vec p0 = v_exp_clamped(x0);
            const vec p1 = v_exp_clamped(x1);
            v_store(s + j, p0);
            v_store(s + j + W, p1);
            l0 = v_add(l0, p0);
            l1 = v_add(l1, p1);
            if (wants) {
                e0 = v_fma(p0, x0, e0);
                e1 = v_fma(p1, x1, e1);
            }
        }
        for (const int64_t end = vectors_until(visible, j, columns); j < end; j += W) {
            uint32_t bits = bits_at(visible, j, columns);
            vec p = zero;
            vec x = zero;
            if (bits) {
                x = v_clamp(v_sub(v_load(s + j), b));
                if (bits != all) {
                    x = v_select(v_mask(bits), x, v_set1(EXP_IS_ZERO));
                }
                p = v_exp_clamped(x);
            }
            v_store(s + j, p);
            if (j / W % 2 == 0) {
                l0 = v_add(l0, p);
                e0 = wants ? v_fma(p, x, e0) : e0;
            } else {
                l1 = v_add(l1, p);
                e1 = wants ? v_fma(p, x, e1) : e1;
            }
        }
    }
    sum[0] = v_sum(v_add(l0, l1));
    sum[1] = wants ? v_sum(v_add(e0, e1)) : 0.0f;
}

static bool softmax_tile(float *scores,
                         int64_t ld,
                         int64_t rows,
                         int64_t columns,
                         const uint64_t *visible,
                         int64_t words,
                         float *row_max,
                         float *row_sum,
                         float *shrink,
                         float *p_ln_p)
{
    enum { ROWS = 16 }; /* the rows' own numbers are updated together, so their exp is one vector */
    bool any = false;
    for (int64_t r0 = 0; r0 < rows; r0 += ROWS) {
        const int64_t count = rows - r0 < ROWS ? rows - r0 : ROWS;
        float move[ROWS] = {0}; // old maximum - new
        float factor[ROWS];
        float sum[ROWS][2];
        for (int64_t r = r0; r < r0 + count; r++) {
            float *s = scores + r * ld;
            const uint64_t *bits = visible ? visible + r * words : NULL;
            const float old = row_max[r];
            const float tile = row_maximum(s, columns, bits);
            const float m = tile > old ? tile : old;
            /* -infinity - -infinity would be NaN: a row without a finite score subtracts 0. */
            const float base = m == -INFINITY ? 0.0f : m;
            if (p_ln_p) {
                row_exponentials(s, columns, bits, base, true, sum[r - r0]);
            } else {
                row_exponentials(s, columns, bits, base, false, sum[r - r0]);
            }
            move[r - r0] = old == -INFINITY ? 0.0f : old - base;
            row_max[r] = m;
        }
        for (int i = 0; i < ROWS; i += W) {
            v_store(factor + i, v_exp(v_load(move + i)));
        }
        for (int64_t r = r0; r < r0 + count; r++) {
            const float f = factor[r - r0];
            if (p_ln_p) {
                const float moved = p_ln_p[r] + move[r - r0] * row_sum[r];
                p_ln_p[r] = (f == 0.0f ? 0.0f : f * moved) + sum[r - r0][1];
            }
            shrink[r] = f;
            row_sum[r] = row_sum[r] * f + sum[r - r0][0];
            any |= f != 1.0f;
        }
    }
    return any;
}

/*
 * tanh: for |x| < 0.625 the odd polynomial x + x^3 q(x^2) (Cephes, S. Moshier), so that small scores keep
 * their relative error; beyond it (1 - e) / (1 + e) with e = exp(-2 |x|), which neither overflows nor
 * cancels. NaN stays.
 */
static inline vec v_tanh(vec x)
{
    const vec one = v_set1(1.0f);
    const vec size = v_abs(x);
    const vec e = v_exp(v_mul(v_set1(-2.0f), size));
    const vec far = v_sign_of(v_div(v_sub(one, e), v_add(one, e)), x);
    const vec y = v_mul(x, x);
    vec q = v_set1(-5.70498872745e-3f);
    q = v_fma(q, y, v_set1(2.06390887954e-2f));
    q = v_fma(q, y, v_set1(-5.37397155531e-2f));
    q = v_fma(q, y, v_set1(1.33314422036e-1f));
    q = v_fma(q, y, v_set1(-3.33332819422e-1f));
    const vec near = v_fma(v_mul(q, y), x, x);
    return v_select(v_less(size, v_set1(0.625f)), near, far);
}

static void softcap_row(float *s, int64_t n, float cap)
{
    const vec c = v_set1(cap);
    int64_t i = 0;
    for (; i + W <= n; i += W) {
        v_store(s + i, v_mul(c, v_tanh(v_div(v_load(s + i), c))));
    }
    if (i < n) {
        float lanes[W] = {0};
        for (int64_t j = i; j < n; j++) {
            lanes[j - i] = s[j];
        }
        v_store(lanes, v_mul(c, v_tanh(v_div(v_load(lanes), c))));
        for (int64_t j = i; j < n; j++) {
            s[j] = lanes[j - i];
        }
    }
}

static void add_row(float *s, const float *bias, int64_t n)
{
    int64_t i = 0;
    for (; i + W <= n; i += W) {
        v_store(s + i, v_add(v_load(s + i), v_load(bias + i)));
    }
    for (; i < n; i++) {
        s[i] += bias[i];
    }
}

static void alibi_row(float *s, int64_t n, float slope, float stand)
{
    float lanes[W];
    for (int i = 0; i < W; i++) {
        lanes[i] = (float)i;
    }
    const vec lane = v_load(lanes);
    const vec minus_slope = v_set1(-slope);
    int64_t i = 0;
    for (; i + W <= n; i += W) {
        const vec distance = v_abs(v_sub(v_set1(stand), v_add(v_set1((float)i), lane)));
        v_store(s + i, v_fma(minus_slope, distance, v_load(s + i)));
    }
    for (; i < n; i++) {
        s[i] = fmaf(-slope, fabsf(stand - (float)i), s[i]);
    }
}

static void hide_infinite(uint64_t *bits, const float *bias, int64_t n)
{
    const vec least = v_set1(-INFINITY);
    int64_t i = 0;
    for (; i + W <= n; i += W) {
        bits[i / 64] &= ~((uint64_t)v_bits_equal(v_load(bias + i), least) << (i % 64));
    }
    for (; i < n; i++) {
        if (bias[i] == -INFINITY) {
            bits[i / 64] &= ~(UINT64_C(1) << (i % 64));
        }
    }
}

/*
 * rows x PANEL numbers of C: `rows` is a constant wherever this is inlined, so all sums stay in registers,
 * rows * PANEL_VECTORS of them. A comes by broadcast, B a panel row at a time.
 */
static inline __attribute__((always_inline)) void panel_block(int rows,
                                                              int64_t k,
                                                              const float *a,
                                                              int64_t lda,
                                                              const float *b,
                                                              const float *start,
                                                              int64_t ld_start,
                                                              float *c,
                                                              int64_t ldc)
{
    vec sum[PANEL_ROWS][PANEL_VECTORS];
    UNROLL
    for (int r = 0; r < rows; r++) {
        UNROLL
        for (int v = 0; v < PANEL_VECTORS; v++) {
            sum[r][v] = v_set1(0.0f);
        }
    }
    /* One pointer for three rows, not for each: there are not as many registers for addresses. */
    const float *three[(PANEL_ROWS + 2) / 3];
    UNROLL
    for (int r = 0; r < rows; r += 3) {
        three[r / 3] = a + r * lda;
    }
    for (int64_t p = 0; p < k; p++) {
        vec row[PANEL_VECTORS];
        UNROLL
        for (int v = 0; v < PANEL_VECTORS; v++) {
            row[v] = v_load(b + p * PANEL_VECTORS * W + v * W);
        }
        UNROLL
        for (int r = 0; r < rows; r++) {
            const vec x = v_set1(three[r / 3][r % 3 * lda + p]);
            UNROLL
            for (int v = 0; v < PANEL_VECTORS; v++) {
                sum[r][v] = v_fma(x, row[v], sum[r][v]);
            }
        }
    }
    UNROLL
    for (int r = 0; r < rows; r++) {
        UNROLL
        for (int v = 0; v < PANEL_VECTORS; v++) {
            float *to = c + r * ldc + v * W;
            v_store(to, start ? v_add(v_load(start + r * ld_start + v * W), sum[r][v]) : sum[r][v]);
        }
    }
}

/* Row i of what a product is added to, if that is anything. */
static inline const float *start_row(const float *start, int64_t i, int64_t ld)
{
    return start ? start + i * ld : NULL;
}

static void panel_product(int64_t m,
                          int64_t n,
                          int64_t k,
                          const float *a,
                          int64_t lda,
                          const float *b,
                          int64_t stride,
                          const float *start,
                          int64_t ld_start,
                          float *c,
                          int64_t ldc)
{
    enum { PANEL = PANEL_VECTORS * W };
    for (int64_t j = 0; j < n; j += PANEL, b += stride) {
        const float *from = start ? start + j : NULL;
        int64_t i = 0;
        for (; i + PANEL_ROWS <= m; i += PANEL_ROWS) {
            panel_block(PANEL_ROWS, k, a + i * lda, lda, b, start_row(from, i, ld_start), ld_start,
                        c + i * ldc + j, ldc);
        }
        for (; i + 4 <= m && PANEL_ROWS > 4; i += 4) {
            panel_block(4, k, a + i * lda, lda, b, start_row(from, i, ld_start), ld_start,
                        c + i * ldc + j, ldc);
        }
        for (; i + 2 <= m; i += 2) {
            panel_block(2, k, a + i * lda, lda, b, start_row(from, i, ld_start), ld_start,
                        c + i * ldc + j, ldc);
        }
        for (; i < m; i++) {
            panel_block(1, k, a + i * lda, lda, b, start_row(from, i, ld_start), ld_start,
                        c + i * ldc + j, ldc);
        }
    }
}

static void scale_rows(float *x, int64_t ld, int64_t rows, int64_t columns, const float *factor)
{
    for (int64_t r = 0; r < rows; r++) {
        float *row = x + r * ld;
        const vec f = v_set1(factor[r]);
        int64_t c = 0;
        for (; c + W <= columns; c += W) {
            v_store(row + c, v_mul(v_load(row + c), f));
        }
        for (; c < columns; c++) {
            row[c] *= factor[r];
        }
    }
}

static void scaled_copy(float *to, const float *from, int64_t n, float factor)
{
    const vec f = v_set1(factor);
    int64_t i = 0;
    for (; i + W <= n; i += W) {
        v_store(to + i, v_mul(f, v_load(from + i)));
    }
    for (; i < n; i++) {
        to[i] = factor * from[i];
    }
}

static void biased_copy(float *to, const float *from, const float *bias, int64_t n)
{
    int64_t i = 0;
    for (; i + W <= n; i += W) {
        vec x = v_load(from + i);
        v_store(to + i, bias ? v_add(x, v_load(bias + i)) : x);
    }
    for (; i < n; i++) {
        to[i] = bias ? from[i] + bias[i] : from[i];
    }
}

static void scaled_rows(float *to,
                        int64_t ld_to,
                        const float *from,
                        int64_t ld_from,
                        int64_t rows,
                        int64_t columns,
                        const float *factor)
{
    for (int64_t r = 0; r < rows; r++) {
        const float *row = from + r * ld_from;
        if (r + MHA__ROWS_AHEAD < rows) {
            mha__prefetch(row + MHA__ROWS_AHEAD * ld_from, columns);
        }
        scaled_copy(to + r * ld_to, row, columns, factor[r]);
    }
}

/* x is finite where 0 x is 0: 0 if all numbers of a row are, else NaN. */
static inline float zero_if_finite(const float *row, int64_t n)
{
    const vec zero = v_set1(0.0f);
    vec sum0 = zero;
    vec sum1 = zero;
    float rest = 0.0f;
    int64_t c = 0;
    for (; c + 2 * W <= n; c += 2 * W) {
        sum0 = v_fma(v_load(row + c), zero, sum0);
        sum1 = v_fma(v_load(row + c + W), zero, sum1);
    }
    for (; c < n; c++) {
        rest += row[c] * 0.0f;
    }
    return v_sum(v_add(sum0, sum1)) + rest;
}

/* `count` rows side by side in panels of T_ROWS; a constant wherever this is inlined, but for the last rows. */
static inline __attribute__((always_inline)) void
narrow_rows(float *to, int64_t stride, const float *from, int64_t ld, int count, int64_t columns)
{
    int64_t c = 0;
    for (; c + T_ROWS <= columns; c += T_ROWS, to += stride) {
        UNROLL
        for (int i = 0; i < count; i++) {
            memcpy(to + i * T_ROWS, from + i * ld + c, T_ROWS * sizeof *to);
        }
    }
    for (int i = 0; c < columns && i < count; i++) {
        memcpy(to + i * T_ROWS, from + i * ld + c, (size_t)(columns - c) * sizeof *to);
    }
}

/* panel_copy in panels of T_ROWS, so many rows at a time that they fill a line of the cache or more. */
static bool
narrow_copy(float *to, int64_t stride, const float *from, int64_t ld, int64_t rows, int64_t columns)
{
    enum { AT_ONCE = 4 };
    float rest = 0.0f;
    for (int64_t r = 0; r < rows; r++) {
        if (r + MHA__ROWS_AHEAD < rows) {
            mha__prefetch(from + (r + MHA__ROWS_AHEAD) * ld, columns);
        }
        rest += zero_if_finite(from + r * ld, columns);
        if (r % AT_ONCE == AT_ONCE - 1) {
            const int64_t first = r - (AT_ONCE - 1);
            narrow_rows(to + first * T_ROWS, stride, from + first * ld, ld, AT_ONCE, columns);
        }
    }
    const int64_t done = rows / AT_ONCE * AT_ONCE;
    narrow_rows(to + done * T_ROWS, stride, from + done * ld, ld, (int)(rows - done), columns);
    return rest == 0.0f;
}

static bool panel_copy(float *to,
                       int64_t panel,
                       int64_t stride,
                       const float *from,
                       int64_t ld,
                       int64_t rows,
                       int64_t columns)
{
    if (panel == T_ROWS) {
        return narrow_copy(to, stride, from, ld, rows, columns);
    }
    const vec zero = v_set1(0.0f); // see zero_if_finite
    vec sum0 = zero;
    vec sum1 = zero;
    float rest = 0.0f;
    for (int64_t r = 0; r < rows; r++) {
        const float *row = from + r * ld;
        if (r + MHA__ROWS_AHEAD < rows) {
            mha__prefetch(row + MHA__ROWS_AHEAD * ld, columns);
        }
        for (int64_t c0 = 0; c0 < columns; c0 += panel) {
            const int64_t end = columns - c0 < panel ? columns : c0 + panel;
            float *at = to + c0 / panel * stride + r * panel - c0;
            int64_t c = c0;
            for (; c + 2 * W <= end; c += 2 * W) {
                const vec x0 = v_load(row + c);
                const vec x1 = v_load(row + c + W);
                v_store(at + c, x0);
                v_store(at + c + W, x1);
                sum0 = v_fma(x0, zero, sum0);
                sum1 = v_fma(x1, zero, sum1);
            }
            for (; c < end; c++) {
                at[c] = row[c];
                rest += row[c] * 0.0f;
            }
        }
    }
    return v_sum(v_add(sum0, sum1)) + rest == 0.0f;
}

static void transpose(
    float *to, int64_t ld_to, const float *from, int64_t ld_from, int64_t rows, int64_t columns)
{
    int64_t r = 0;
    for (; r + W_T <= rows; r += W_T) {
        int64_t c = 0;
        for (; c + W_T <= columns; c += W_T) {
            transpose_block(to + c * ld_to + r, ld_to, from + r * ld_from + c, ld_from);
        }
        for (; c < columns; c++) {
            for (int64_t i = r; i < r + W_T; i++) {
                to[c * ld_to + i] = from[i * ld_from + c];
            }
        }
    }
    for (; r < rows; r++) {
        for (int64_t c = 0; c < columns; c++) {
            to[c * ld_to + r] = from[r * ld_from + c];
        }
    }
}

static void transpose_panels(
    float *to, int64_t stride, const float *from, int64_t ld, int64_t rows, int64_t columns)
{
    int64_t r = 0;
    for (; r + W_T <= rows; r += W_T) {
        const float *block = from + r * ld;
        for (int64_t i = r + W_T; i < rows && i < r + 2 * W_T; i++) {
            mha__prefetch(from + i * ld, columns);
        }
        float *panel = to + r / T_ROWS * stride;
        int64_t c = 0;
        for (; c + W_T <= columns; c += W_T) {
            float turned[W_T * W_T];
            transpose_block(turned, W_T, block + c, ld);
            for (int p = 0; p < W_T / T_ROWS; p++) {
                for (int i = 0; i < W_T; i++) {
                    memcpy(panel + p * stride + (c + i) * T_ROWS, turned + i * W_T + p * T_ROWS,
                           T_ROWS * sizeof *to);
                }
            }
        }
        for (; c < columns; c++) {
            for (int i = 0; i < W_T; i++) {
                panel[i / T_ROWS * stride + c * T_ROWS + i % T_ROWS] = block[i * ld + c];
            }
        }
    }
    for (; r < rows; r++) {
        for (int64_t c = 0; c < columns; c++) {
            to[r / T_ROWS * stride + c * T_ROWS + r % T_ROWS] = from[r * ld + c];
        }
    }
}

#include "kernels/kernels_few.h"
#include "kernels/kernels_transposed.h"

static void column_product(int64_t m,
                           int64_t k,
                           const float *a,
                           int64_t lda,
                           const float *b,
                           int64_t ldb,
                           float beta,
                           float *c,
                           int64_t ldc)
{
    for (int64_t i = 0; i < m; i++) {
        const float *row = a + i * lda;
        float part[8] = {0};
        int64_t p = 0;
        for (; p + 8 <= k; p += 8) {
            for (int t = 0; t < 8; t++) {
                part[t] += row[p + t] * b[(p + t) * ldb];
            }
        }
        for (; p < k; p++) {
            part[0] += row[p] * b[p * ldb];
        }
        float sum = ((part[0] + part[4]) + (part[2] + part[6])) +
                    ((part[1] + part[5]) + (part[3] + part[7]));
        c[i * ldc] = beta == 0.0f ? sum : sum + beta * c[i * ldc];
    }
}

#define MHA__TABLE_(set) mha__kernels_##set
#define MHA__TABLE(set)  MHA__TABLE_(set)
#define MHA__TEXT_(set)  #set
#define MHA__TEXT(set)   MHA__TEXT_(set)

const struct mha__kernels MHA__TABLE(MHA__KERNELS_NAME) = {
    .name = MHA__TEXT(MHA__KERNELS_NAME),
    .panel = PANEL_VECTORS * W,
    .panel_product = panel_product,
    .query_panel = T_VECTORS * W,
    .query_step = W,
    .row_panel = T_ROWS,
    .transposed_scores = transposed_scores,
    .transposed_hide = transposed_hide,
    .transposed_softmax = transposed_softmax,
    .transposed_values = transposed_values,
    .softmax_tile = softmax_tile,
    .softcap_row = softcap_row,
    .add_row = add_row,
    .alibi_row = alibi_row,
    .hide_infinite = hide_infinite,
    .scale_rows = scale_rows,
    .scaled_copy = scaled_copy,
    .biased_copy = biased_copy,
    .scaled_rows = scaled_rows,
    .panel_copy = panel_copy,
    .transpose = transpose,
    .transpose_panels = transpose_panels,
    .few_dots = few_dots,
    .few_product = few_product,
    .column_product = column_product,
};
