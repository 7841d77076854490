/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA__KERNELS_H
#define MHA__KERNELS_H

/*
 * What is computed outside the BLAS, as a table of functions. kernels_ref.c fills all of it in
 * plain C and is the definition of correct; the other sets do the same in vectors (kernels_body.h,
 * one body for all widths). Matrices are row-major; ld is the distance of two rows in elements. All
 * run in the environment of platform/fpenv.h: nearest, denormals are zero.
 */
#include "platform/cpu.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mha__kernels {
    const char *name;
    int64_t panel; /* columns of a panel of panel_product */

    /*
     * Online softmax of one tile (Milakov and Gimelshein 2018), a row at a time:
     *
     *   m' = max(m, max_j s_j)   shrink = exp(m - m'), 1 where m is -infinity: nothing to shrink
     *   p_j = exp(s_j - m')      l' = shrink l + sum_j p_j
     *
     * over the visible j. scores [rows, columns] becomes p, exactly 0 where hidden; row_max is m,
     * row_sum is l; before the first tile they are -infinity and 0. A row that has seen no finite
     * score keeps m = -infinity, p = 0. NaN or +infinity at a visible j makes the row's l NaN, and
     * no other row's. bit j % 64 of visible[row * words + j / 64] says visible; NULL: all are. ld
     * is a multiple of 16 and at least columns: whole vectors are loaded and stored. Returns
     * whether some shrink is not 1. Error: exp within 1.4 ulp; a p below 2^-126 becomes 0.
     *
     * p_ln_p is NULL, or for each row x = sum_j p_j ln p_j = sum_j p_j (s_j - m), 0 before the first tile:
     *
     *   x' = shrink (x + (m - m') l) + sum_j p_j (s_j - m')
     *
     * where p_j = 0 adds nothing, as m = -infinity does, and a shrink of 0 selects 0. It changes no bit of the rest.
     */
    bool (*softmax_tile)(float *scores,
                         int64_t ld,
                         int64_t rows,
                         int64_t columns,
                         const uint64_t *visible,
                         int64_t words,
                         float *row_max,
                         float *row_sum,
                         float *shrink,
                         float *p_ln_p);

    /* s = cap tanh(s / cap), n numbers, cap > 0. Error: tanh within 4 ulp. */
    void (*softcap_row)(float *s, int64_t n, float cap);

    /* s += bias, n numbers */
    void (*add_row)(float *s, const float *bias, int64_t n);

    /* s[c] -= slope |stand - c|, n numbers */
    void (*alibi_row)(float *s, int64_t n, float slope, float stand);

    /* Clears bit c % 64 of bits[c / 64] where bias[c] is -infinity. */
    void (*hide_infinite)(uint64_t *bits, const float *bias, int64_t n);

    /*
     * C = A B + start: A [m, k] with lda, C [m, n] with ldc, B in panels of `panel` columns, [k, panel] each,
     * `stride` numbers apart; start [m, n] with its ld: C itself, one row for all (ld 0), or NULL for zeros.
     * C is computed and stored in whole panels: C and start have room for them, and what stands beyond
     * column n is worthless. Each number is one sum over k in its order, then added to start, so the bits of
     * a row do not depend on the others.
     */
    void (*panel_product)(int64_t m,
                          int64_t n,
                          int64_t k,
                          const float *a,
                          int64_t lda,
                          const float *b,
                          int64_t stride,
                          const float *start,
                          int64_t ld_start,
                          float *c,
                          int64_t ldc);

    /*
     * The transposed form of attention: n queries side by side, the softmax goes down the columns. n is a
     * multiple of query_step, at most query_panel; what belongs to no query is computed with the rest. Keys
     * come in panels [depth][row_panel] of row_panel keys, values in panels [keys][row_panel] of row_panel
     * features; s and p are [keys, n] with room for whole panels of keys. The bits of a query do not depend on the others.
     *
     *   scores   s = K Q^T, q [depth, n]; most = max(most, max_j s_j), without NaN
     *   hide     s_j = -infinity where bit i of visible[j] is 0 for query i; NULL: nowhere; most = max(most, max_j s_j)
     *   softmax  what softmax_tile does, of keys whose maximum is in most: m, l, shrink and s are as there;
     *            -infinity becomes exactly 0. Error: exp within 1.4 ulp + 1.3e-8 |s - m'|
     *   values   O = O diag(shrink) + V^T P, o [features, n]; shrink NULL: O = V^T P. The panels of V are
     *            `stride` numbers apart, features a multiple of row_panel.
     */
    int64_t query_panel, query_step, row_panel;
    void (*transposed_scores)(int64_t keys,
                              int64_t n,
                              int64_t depth,
                              const float *k,
                              const float *q,
                              float *s,
                              float *most);
    void (*transposed_hide)(
        int64_t keys, int64_t n, const uint64_t *visible, float *s, float *most);
    void (*transposed_softmax)(int64_t keys,
                               int64_t n,
                               float *s,
                               const float *most,
                               float *row_max,
                               float *row_sum,
                               float *shrink);
    void (*transposed_values)(int64_t keys,
                              int64_t n,
                              int64_t features,
                              const float *v,
                              int64_t stride,
                              const float *p,
                              const float *shrink,
                              float *o);

    /* x[r, :] *= factor[r] */
    void (*scale_rows)(float *x, int64_t ld, int64_t rows, int64_t columns, const float *factor);

    /* to = factor * from, n numbers */
    void (*scaled_copy)(float *to, const float *from, int64_t n, float factor);

    /* to = from + bias, n numbers; bias may be NULL */
    void (*biased_copy)(float *to, const float *from, const float *bias, int64_t n);

    /* to[r, :] = factor[r] * from[r, :] */
    void (*scaled_rows)(float *to,
                        int64_t ld_to,
                        const float *from,
                        int64_t ld_from,
                        int64_t rows,
                        int64_t columns,
                        const float *factor);

    /*
     * Copies a matrix into panels of `panel` columns: column c of row r goes to
     * to[c / panel * stride + r * panel + c % panel]. True if all numbers are finite.
     */
    bool (*panel_copy)(float *to,
                       int64_t panel,
                       int64_t stride,
                       const float *from,
                       int64_t ld,
                       int64_t rows,
                       int64_t columns);

    /* to[c * ld_to + r] = from[r * ld_from + c], for rows x columns of from */
    void (*transpose)(float *to,
                      int64_t ld_to,
                      const float *from,
                      int64_t ld_from,
                      int64_t rows,
                      int64_t columns);

    /* The same in panels of row_panel rows of from, `stride` numbers apart:
     * to[r / row_panel * stride + c * row_panel + r % row_panel] = from[r * ld + c] */
    void (*transpose_panels)(
        float *to, int64_t stride, const float *from, int64_t ld, int64_t rows, int64_t columns);

    /*
     * S = Q K^T: q [rows, depth] with ldq, k [keys, depth] with ldk, s [rows, keys] with lds. K lies as it is
     * given and is read once, whatever the rows; past its end it is asked for, not read. Any order of sums.
     */
    void (*few_dots)(int64_t rows,
                     int64_t keys,
                     int64_t depth,
                     const float *q,
                     int64_t ldq,
                     const float *k,
                     int64_t ldk,
                     float *s,
                     int64_t lds);

    /*
     * C = A B, or C += A B: a [m, k], b [k, n], c [m, n], plain matrices with their ld, for few rows m: B is
     * read once as long as parts of it stay in the cache. C is not read unless `add`. The bits of a row depend
     * on the sizes alone.
     */
    void (*few_product)(int64_t m,
                        int64_t n,
                        int64_t k,
                        const float *a,
                        int64_t lda,
                        const float *b,
                        int64_t ldb,
                        bool add,
                        float *c,
                        int64_t ldc);

    /* c[i] = sum_p a[i, p] b[p] + beta c[i]: a product with n = 1; b has stride ldb, c stride ldc */
    void (*column_product)(int64_t m,
                           int64_t k,
                           const float *a,
                           int64_t lda,
                           const float *b,
                           int64_t ldb,
                           float beta,
                           float *c,
                           int64_t ldc);
};

#define MHA__KERNEL_SET(name, need) extern const struct mha__kernels mha__kernels_##name;
#include "kernels/kernels.def"
#undef MHA__KERNEL_SET

/* The set in use: the last one that this CPU can run, or the one MHA_KERNELS names if it can run
 * it. */
const struct mha__kernels *mha__kernels_chosen(void);

/* Set number i that this CPU can run, slowest first; NULL past the last. For tests and benchmarks. */
const struct mha__kernels *mha__kernels_available(int i);

#endif
