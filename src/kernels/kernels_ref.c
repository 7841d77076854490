/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kernels.h"

#include <math.h>

/* The plain set: one number at a time, exp from libm. */

static bool is_visible(const uint64_t *visible, int64_t j)
{
    return !visible || (visible[j / 64] >> (j % 64) & 1);
}

/* Sums are made of parts of 32: the rounding of one long chain of additions may lean to one side. */
static bool ends_part(int64_t j, int64_t count)
{
    return j % 32 == 31 || j + 1 == count;
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
    bool any = false;
    for (int64_t r = 0; r < rows; r++) {
        float *s = scores + r * ld;
        const uint64_t *bits = visible ? visible + r * words : NULL;
        float old = row_max[r];
        float m = old;
        for (int64_t j = 0; j < columns; j++) {
            if (is_visible(bits, j) && s[j] > m) {
                m = s[j];
            }
        }
        /* -infinity - -infinity would be NaN: a row without a finite score subtracts 0. */
        float base = m == -INFINITY ? 0.0f : m;
        float sum = 0.0f;
        float part = 0.0f;
        float entropy = 0.0f;
        for (int64_t j = 0; j < columns; j++) {
            const float ln_p = s[j] - base;
            s[j] = is_visible(bits, j) ? expf(ln_p) : 0.0f;
            entropy += s[j] != 0.0f ? s[j] * ln_p : 0.0f;
            part += s[j];
            if (ends_part(j, columns)) {
                sum += part;
                part = 0.0f;
            }
        }
        const float move = old == -INFINITY ? 0.0f : old - base;
        shrink[r] = expf(move);
        if (p_ln_p) {
            const float moved = p_ln_p[r] + move * row_sum[r];
            p_ln_p[r] = (shrink[r] == 0.0f ? 0.0f : shrink[r] * moved) + entropy;
        }
        row_max[r] = m;
        row_sum[r] = row_sum[r] * shrink[r] + sum;
        any |= shrink[r] != 1.0f;
    }
    return any;
}

static void softcap_row(float *s, int64_t n, float cap)
{
    for (int64_t i = 0; i < n; i++) {
        s[i] = cap * tanhf(s[i] / cap);
    }
}

static void add_row(float *s, const float *bias, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        s[i] += bias[i];
    }
}

static void alibi_row(float *s, int64_t n, float slope, float stand)
{
    for (int64_t i = 0; i < n; i++) {
        s[i] -= slope * fabsf(stand - (float)i);
    }
}

static void hide_infinite(uint64_t *bits, const float *bias, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        if (bias[i] == -INFINITY) {
            bits[i / 64] &= ~(UINT64_C(1) << (i % 64));
        }
    }
}

enum { PANEL = 16 };

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
    for (int64_t j = 0; j < n; j += PANEL) {
        const float *panel = b + j / PANEL * stride;
        for (int64_t i = 0; i < m; i++) {
            float sum[PANEL] = {0};
            for (int64_t p = 0; p < k; p++) {
                for (int64_t l = 0; l < PANEL; l++) {
                    sum[l] += a[i * lda + p] * panel[p * PANEL + l];
                }
            }
            float *to = c + i * ldc + j;
            for (int64_t l = 0; l < PANEL; l++) {
                to[l] = start ? start[i * ld_start + j + l] + sum[l] : sum[l];
            }
        }
    }
}

enum { QUERY_PANEL = 16, QUERY_STEP = 8, ROW_PANEL = 4 };

static void transposed_scores(
    int64_t keys, int64_t n, int64_t depth, const float *k, const float *q, float *s, float *most)
{
    for (int64_t j = 0; j < keys; j++) {
        const float *key = k + j / ROW_PANEL * ROW_PANEL * depth + j % ROW_PANEL;
        for (int64_t i = 0; i < n; i++) {
            float sum = 0.0f;
            for (int64_t d = 0; d < depth; d++) {
                sum += key[d * ROW_PANEL] * q[d * n + i];
            }
            s[j * n + i] = sum;
            most[i] = sum > most[i] ? sum : most[i];
        }
    }
}

static void transposed_hide(int64_t keys, int64_t n, const uint64_t *visible, float *s, float *most)
{
    for (int64_t j = 0; j < keys; j++) {
        for (int64_t i = 0; i < n; i++) {
            if (visible && (visible[j] >> i & 1) == 0) {
                s[j * n + i] = -INFINITY;
            }
            most[i] = s[j * n + i] > most[i] ? s[j * n + i] : most[i];
        }
    }
}

static void transposed_softmax(int64_t keys,
                               int64_t n,
                               float *s,
                               const float *most,
                               float *row_max,
                               float *row_sum,
                               float *shrink)
{
    for (int64_t i = 0; i < n; i++) {
        const float old = row_max[i];
        const float m = most[i] > old ? most[i] : old;
        const float base = m == -INFINITY ? 0.0f : m;
        float sum = 0.0f;
        float part = 0.0f;
        for (int64_t j = 0; j < keys; j++) {
            s[j * n + i] = expf(s[j * n + i] - base);
            part += s[j * n + i];
            if (ends_part(j, keys)) {
                sum += part;
                part = 0.0f;
            }
        }
        shrink[i] = expf(old == -INFINITY ? 0.0f : old - base);
        row_max[i] = m;
        row_sum[i] = row_sum[i] * shrink[i] + sum;
    }
}

static void transposed_values(int64_t keys,
                              int64_t n,
                              int64_t features,
                              const float *v,
                              int64_t stride,
                              const float *p,
                              const float *shrink,
                              float *o)
{
    for (int64_t d = 0; d < features; d++) {
        const float *value = v + d / ROW_PANEL * stride + d % ROW_PANEL;
        for (int64_t i = 0; i < n; i++) {
            float sum = 0.0f;
            for (int64_t j = 0; j < keys; j++) {
                sum += p[j * n + i] * value[j * ROW_PANEL];
            }
            o[d * n + i] = shrink ? o[d * n + i] * shrink[i] + sum : sum;
        }
    }
}

static void scale_rows(float *x, int64_t ld, int64_t rows, int64_t columns, const float *factor)
{
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < columns; c++) {
            x[r * ld + c] *= factor[r];
        }
    }
}

static void scaled_copy(float *to, const float *from, int64_t n, float factor)
{
    for (int64_t i = 0; i < n; i++) {
        to[i] = factor * from[i];
    }
}

static void biased_copy(float *to, const float *from, const float *bias, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
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
        scaled_copy(to + r * ld_to, from + r * ld_from, columns, factor[r]);
    }
}

static bool panel_copy(float *to,
                       int64_t panel,
                       int64_t stride,
                       const float *from,
                       int64_t ld,
                       int64_t rows,
                       int64_t columns)
{
    bool finite = true;
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < columns; c++) {
            const float x = from[r * ld + c];
            to[c / panel * stride + r * panel + c % panel] = x;
            finite = finite && isfinite(x);
        }
    }
    return finite;
}

static void transpose(
    float *to, int64_t ld_to, const float *from, int64_t ld_from, int64_t rows, int64_t columns)
{
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < columns; c++) {
            to[c * ld_to + r] = from[r * ld_from + c];
        }
    }
}

static void transpose_panels(
    float *to, int64_t stride, const float *from, int64_t ld, int64_t rows, int64_t columns)
{
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < columns; c++) {
            to[r / ROW_PANEL * stride + c * ROW_PANEL + r % ROW_PANEL] = from[r * ld + c];
        }
    }
}

static void few_dots(int64_t rows,
                     int64_t keys,
                     int64_t depth,
                     const float *q,
                     int64_t ldq,
                     const float *k,
                     int64_t ldk,
                     float *s,
                     int64_t lds)
{
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < keys; c++) {
            float sum = 0.0f;
            for (int64_t d = 0; d < depth; d++) {
                sum += q[r * ldq + d] * k[c * ldk + d];
            }
            s[r * lds + c] = sum;
        }
    }
}

static void few_product(int64_t m,
                        int64_t n,
                        int64_t k,
                        const float *a,
                        int64_t lda,
                        const float *b,
                        int64_t ldb,
                        bool add,
                        float *c,
                        int64_t ldc)
{
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
            float sum = 0.0f;
            for (int64_t p = 0; p < k; p++) {
                sum += a[i * lda + p] * b[p * ldb + j];
            }
            c[i * ldc + j] = add ? c[i * ldc + j] + sum : sum;
        }
    }
}

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
        float sum = 0.0f;
        for (int64_t p = 0; p < k; p++) {
            sum += a[i * lda + p] * b[p * ldb];
        }
        c[i * ldc] = beta == 0.0f ? sum : sum + beta * c[i * ldc];
    }
}

const struct mha__kernels mha__kernels_ref = {
    .name = "ref",
    .panel = PANEL,
    .panel_product = panel_product,
    .query_panel = QUERY_PANEL,
    .query_step = QUERY_STEP,
    .row_panel = ROW_PANEL,
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
