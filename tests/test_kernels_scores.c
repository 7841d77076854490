/* SPDX-License-Identifier: Apache-2.0 */
/* What kernels do to scores beside the softmax, and our own product, against plain float64. */
#include "support/draw.h"
#include "support/expect.h"
#include "support/kernel_sets.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 67, TAIL = 3 };

/* n numbers of which the last TAIL are sentinels that must stay. */
static void guard(float *x, int64_t n)
{
    for (int i = 0; i < TAIL; i++) {
        x[n + i] = 77.0f;
    }
}

static void assert_guarded(const float *x, int64_t n)
{
    for (int i = 0; i < TAIL; i++) {
        assert_true(x[n + i] == 77.0f);
    }
}

static void test_softcap(const struct mha__kernels *set, const struct mha__kernels *ref)
{
    (void)ref;
    static const float caps[] = {0.01f, 1.0f, 30.0f, 1e4f};
    static const float sizes[] = {1e-6f, 0.3f, 1.0f, 20.0f, 1e6f};
    draw d = {11};
    for (int64_t n = 1; n <= MOST; n++) {
        const float cap = caps[n % 4];
        const float size = cap * sizes[n % 5];
        float s[MOST + TAIL];
        float before[MOST];
        draw_fill(&d, s, n, -size, size);
        memcpy(before, s, (size_t)n * sizeof *s);
        guard(s, n);
        set->softcap_row(s, n, cap);
        for (int64_t i = 0; i < n; i++) {
            const double expected = cap * tanh((double)before[i] / cap);
            // division, tanh within 4 ulp, product: relative, so that small scores keep their digits
            assert_true(fabs(s[i] - expected) <= 8 * 0x1p-24 * fabs(expected) + FLT_MIN);
        }
        assert_guarded(s, n);
    }
    float edges[] = {INFINITY, -INFINITY, FLT_MAX, -FLT_MAX, 0.0f, NAN};
    set->softcap_row(edges, 6, 50.0f);
    assert_true(edges[0] == 50.0f && edges[1] == -50.0f && edges[2] == 50.0f && edges[3] == -50.0f);
    assert_true(edges[4] == 0.0f && isnan(edges[5]));
}

static void softcap_is_tanh_and_saturates(void **state)
{
    (void)state;
    for_each_kernel_set(test_softcap);
}

static void test_sums(const struct mha__kernels *set, const struct mha__kernels *ref)
{
    draw d = {12};
    for (int64_t n = 1; n <= MOST; n++) {
        float a[MOST + TAIL];
        float b[MOST];
        float bias[MOST];
        draw_fill(&d, b, n, -3, 3);
        draw_fill(&d, bias, n, -1e9f, 3);
        memcpy(a, b, (size_t)n * sizeof *a);
        guard(a, n);
        set->add_row(a, bias, n);
        ref->add_row(b, bias, n);
        assert_memory_equal(a, b, (size_t)n * sizeof *a);
        const float slope = draw_float(&d, -1, 1);
        const float stand = (float)draw_int(&d, -100, 100);
        memcpy(b, a, (size_t)n * sizeof *a);
        set->alibi_row(a, n, slope, stand);
        for (int64_t i = 0; i < n; i++) {
            const double expected = b[i] - (double)slope * fabs((double)stand - (double)i);
            assert_true(fabs(a[i] - expected) <=
                        2 * 0x1p-24 * (fabs(b[i]) + fabs((double)slope) * 200));
        }
        assert_guarded(a, n);
    }
}

static void biases_and_alibi_are_added(void **state)
{
    (void)state;
    for_each_kernel_set(test_sums);
}

static void test_hide(const struct mha__kernels *set, const struct mha__kernels *ref)
{
    (void)ref;
    draw d = {13};
    for (int64_t n = 1; n <= 200; n++) {
        float bias[200];
        uint64_t bits[5];
        for (int64_t i = 0; i < n; i++) {
            bias[i] = draw_chance(&d, 0.3) ? -INFINITY : draw_chance(&d, 0.1) ? NAN : -FLT_MAX;
        }
        memset(bits, 0xff, sizeof bits);
        bits[0] &= ~UINT64_C(2);
        set->hide_infinite(bits, bias, n);
        for (int64_t i = 0; i < 5 * 64; i++) {
            const int hidden = (i < n && bias[i] == -INFINITY) || i == 1;
            assert_int_equal(bits[i / 64] >> (i % 64) & 1, !hidden);
        }
    }
}

static void minus_infinity_hides_and_nothing_else(void **state)
{
    (void)state;
    for_each_kernel_set(test_hide);
}

/* What a product is added to: nothing, what stands there, one row for all. */
enum start { ZEROS, ITSELF, A_ROW, STARTS };

static void one_product(
    const struct mha__kernels *set, draw *d, int64_t m, int64_t n, int64_t k, enum start start)
{
    const int64_t panel = set->panel;
    const int64_t panels = (n + panel - 1) / panel;
    const int64_t lda = k + 3;
    const int64_t ldc = panels * panel + 5;
    const int64_t stride = k * panel + 7;
    float *a = malloc((size_t)(m * lda) * sizeof *a);
    float *b = malloc((size_t)(panels * stride) * sizeof *b);
    float *c = malloc((size_t)(m * ldc) * sizeof *c);
    float *row = malloc((size_t)ldc * sizeof *row);
    assert_true(a && b && c && row);
    draw_fill(d, a, m * lda, -1, 1);
    draw_fill(d, b, panels * stride, -1, 1);
    for (int64_t i = 0; i < m * ldc; i++) {
        c[i] = 2.0f;
    }
    draw_fill(d, row, ldc, -2, 2);
    set->panel_product(m, n, k, a, lda, b, stride,
                       start == ZEROS    ? NULL
                       : start == ITSELF ? c
                                         : row,
                       start == ITSELF ? ldc : 0, c, ldc);
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
            double sum = start == ZEROS ? 0.0 : start == ITSELF ? 2.0 : (double)row[j];
            for (int64_t p = 0; p < k; p++) {
                sum +=
                    (double)a[i * lda + p] * (double)b[j / panel * stride + p * panel + j % panel];
            }
            assert_true(fabs(c[i * ldc + j] - sum) <=
                        (double)(k + 2) * 0x1p-24 * (2.0 + (double)k));
        }
        for (int64_t j = panels * panel; j < ldc; j++) {
            assert_true(c[i * ldc + j] == 2.0f);
        }
    }
    free(a);
    free(b);
    free(c);
    free(row);
}

static void test_product(const struct mha__kernels *set, const struct mha__kernels *ref)
{
    (void)ref;
    draw d = {15};
    for (int64_t m = 1; m <= 27; m++) {
        for (int64_t n = 1; n <= 67; n += 11) {
            one_product(set, &d, m, n, 1 + draw_int(&d, 0, 40), (enum start)((m + n) % STARTS));
        }
    }
    one_product(set, &d, 96, 192, 64, ZEROS);
    one_product(set, &d, 96, 64, 192, ITSELF);
    one_product(set, &d, 96, 64, 192, A_ROW);
}

static void panel_product_is_the_product_and_stays_in_its_panels(void **state)
{
    (void)state;
    for_each_kernel_set(test_product);
}

/* The bits of a row do not depend on which rows stand beside it. */
static void test_rows(const struct mha__kernels *set, const struct mha__kernels *ref)
{
    (void)ref;
    enum { M = 29, K = 33 };
    draw d = {16};
    float a[M * K];
    float b[64 * K];
    float all[M * 64];
    float one[64];
    draw_fill(&d, a, M * K, -1, 1);
    draw_fill(&d, b, 64 * K, -1, 1);
    set->panel_product(M, 64, K, a, K, b, K * set->panel, NULL, 0, all, 64);
    for (int i = 0; i < M; i++) {
        set->panel_product(1, 64, K, a + i * K, K, b, K * set->panel, NULL, 0, one, 64);
        assert_memory_equal(one, all + i * 64, sizeof one);
    }
}

static void panel_product_rows_are_independent_bit_for_bit(void **state)
{
    (void)state;
    for_each_kernel_set(test_rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(softcap_is_tanh_and_saturates),
        cmocka_unit_test(biases_and_alibi_are_added),
        cmocka_unit_test(minus_infinity_hides_and_nothing_else),
        cmocka_unit_test(panel_product_is_the_product_and_stays_in_its_panels),
        cmocka_unit_test(panel_product_rows_are_independent_bit_for_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
