/* SPDX-License-Identifier: Apache-2.0 */
/* Every kernel set that this CPU can run: the same as the plain one, at every length and offset. */
#include "support/draw.h"
#include "support/expect.h"
#include "support/kernel_sets.h"

#include <float.h>
#include <kernels/kernels.h>
#include <kernels/product.h>
#include <math.h>
#include <platform/fpenv.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 67, PAD = 16, ROWS = 5 };

/*
 * Numbers on a 64-byte boundary plus `offset` numbers, and sentinels around what a kernel may
 * write.
 */
static float *aligned(int64_t count, int64_t offset)
{
    static float room[8][ROWS * 1024];
    static int next;
    float *block = room[next++ % 8];
    assert_true(count + offset + 64 < ROWS * 1024);
    uintptr_t address = (uintptr_t)block;
    return block + (64 - address % 64) % 64 / sizeof(float) + offset;
}

/* Every set fills the whole table. */
static void table_of_every_set_is_complete(void **state)
{
    (void)state;
    for (int i = 0; kernel_set(i); ++i) {
        const struct mha__kernels *k = kernel_set(i);
        assert_non_null(k->name);
        assert_true(k->softmax_tile && k->scale_rows && k->scaled_copy && k->biased_copy &&
                    k->scaled_rows && k->panel_copy && k->transpose && k->column_product &&
                    k->few_dots && k->few_product);
        assert_true(k->softcap_row && k->add_row && k->alibi_row && k->hide_infinite &&
                    k->panel_product && k->panel >= 1 && 64 % k->panel == 0);
        assert_true(k->transpose_panels && k->transposed_scores && k->transposed_hide &&
                    k->transposed_softmax && k->transposed_values);
    }
    assert_non_null(mha__kernels_chosen());
}

/* ---- copies ---- */

static void test_copies(const struct mha__kernels *set, const struct mha__kernels *ref)
{
    draw d = {1};
    for (int64_t n = 1; n <= MOST; ++n) {
        for (int64_t offset = 0; offset < 4; ++offset) {
            float *from = aligned(n, offset), *bias = aligned(n, (offset + 1) % 4);
            float *a = aligned(n + 1, (offset + 2) % 4), *b = aligned(n + 1, 0);
            draw_fill(&d, from, n, -3, 3);
            draw_fill(&d, bias, n, -3, 3);
            a[n] = b[n] = 77.0f;
            set->scaled_copy(a, from, n, 0.37f);
            ref->scaled_copy(b, from, n, 0.37f);
            assert_same_bits(a, b, n + 1);
            set->biased_copy(a, from, bias, n);
            ref->biased_copy(b, from, bias, n);
            assert_same_bits(a, b, n + 1);
            set->biased_copy(a, from, NULL, n);
            assert_same_bits(a, from, n);
        }
    }
}

static void test_scaled_rows(const struct mha__kernels *set, const struct mha__kernels *ref)
{
    draw d = {2};
    for (int64_t rows = 1; rows <= 20; rows += 3) {
        for (int64_t n = 1; n <= MOST; n += 3) {
            const int64_t ld = n + 3;
            float *from = aligned(rows * ld, 1), *factor = aligned(rows, 2);
            float *a = aligned(rows * ld, 3), *b = aligned(rows * ld, 0);
            draw_fill(&d, from, rows * ld, -3, 3);
            draw_fill(&d, factor, rows, -2, 2);
            draw_fill(&d, a, rows * ld, 5, 6);
            memcpy(b, a, (size_t)(rows * ld) * sizeof *a);
            set->scaled_rows(a, ld, from, ld, rows, n, factor);
            ref->scaled_rows(b, ld, from, ld, rows, n, factor);
            assert_same_bits(a, b, rows * ld); // gaps of the rows too
        }
    }
}

/* Panels of any width, whole or not; one number that is not finite, anywhere, is found. */
static void test_panel_copy(const struct mha__kernels *set, const struct mha__kernels *ref)
{
    static const float bad[3] = {NAN, INFINITY, -INFINITY};
    static const int64_t widths[] = {1, 4, 5, 8, 16, 32, 40, 64};
    enum { ROWS = 11 };
    draw d = {3};
    for (size_t w = 0; w < sizeof widths / sizeof *widths; ++w) {
        for (int64_t n = 1; n <= MOST; n += 2) {
            const int64_t panel = widths[w], ld = n + 2, stride = panel * (ROWS + 1);
            const int64_t size = (n + panel - 1) / panel * stride;
            float *from = aligned(ROWS * ld, n % 4);
            float *a = aligned(size, 1), *b = aligned(size, 0);
            draw_fill(&d, from, ROWS * ld, -3, 3);
            draw_fill(&d, a, size, 5, 6);
            memcpy(b, a, (size_t)size * sizeof *a);
            from[n] = NAN; // between the rows: nobody's
            from[n / 2] = FLT_MAX;
            assert_true(set->panel_copy(a, panel, stride, from, ld, ROWS, n));
            assert_true(ref->panel_copy(b, panel, stride, from, ld, ROWS, n));
            assert_same_bits(a, b, size);
            for (int64_t at = 0; at < ROWS * n; ++at) {
                float *cell = &from[at / n * ld + at % n];
                const float kept = *cell;
                *cell = bad[at % 3];
                assert_false(set->panel_copy(a, panel, stride, from, ld, ROWS, n));
                *cell = kept;
            }
        }
    }
}

static void copies_are_those_of_the_plain_set(void **state)
{
    (void)state;
    for_each_kernel_set(test_copies);
    for_each_kernel_set(test_scaled_rows);
    for_each_kernel_set(test_panel_copy);
}

static void test_scale_rows(const struct mha__kernels *set, const struct mha__kernels *ref)
{
    draw d = {2};
    for (int64_t n = 1; n <= MOST; ++n) {
        const int64_t ld = n + 3;
        float *a = aligned(ROWS * ld, 1), *b = aligned(ROWS * ld, 0), factor[ROWS];
        draw_fill(&d, a, ROWS * ld, -3, 3);
        memcpy(b, a, (size_t)(ROWS * ld) * sizeof *b);
        draw_fill(&d, factor, ROWS, 0, 1);
        factor[1] = 0.0f;
        factor[2] = 1.0f;
        set->scale_rows(a, ld, ROWS, n, factor);
        ref->scale_rows(b, ld, ROWS, n, factor);
        assert_same_bits(a, b, ROWS * ld);
    }
}

static void scaled_rows_are_those_of_the_plain_set_and_gaps_stay(void **state)
{
    (void)state;
    for_each_kernel_set(test_scale_rows);
}

static void test_transpose(const struct mha__kernels *set, const struct mha__kernels *ref)
{
    draw d = {3};
    (void)ref;
    for (int64_t rows = 1; rows <= 35; ++rows) {
        for (int64_t columns = 1; columns <= 35; ++columns) {
            const int64_t ld_from = columns + 2, ld_to = rows + 5;
            float *from = aligned(rows * ld_from, 1), *to = aligned(columns * ld_to, 2);
            draw_fill(&d, from, rows * ld_from, -1, 1);
            for (int64_t i = 0; i < columns * ld_to; ++i) {
                to[i] = 77.0f;
            }
            set->transpose(to, ld_to, from, ld_from, rows, columns);
            for (int64_t c = 0; c < columns; ++c) {
                for (int64_t r = 0; r < rows; ++r) {
                    assert_true(to[c * ld_to + r] == from[r * ld_from + c]);
                }
                for (int64_t gap = rows; gap < ld_to; ++gap) {
                    assert_true(to[c * ld_to + gap] == 77.0f);
                }
            }
        }
    }
}

static void transpose_of_every_size_moves_each_number_and_nothing_else(void **state)
{
    (void)state;
    for_each_kernel_set(test_transpose);
}

/* ---- products ---- */

static void test_column_products(const struct mha__kernels *set, const struct mha__kernels *ref)
{
    draw d = {4};
    (void)ref;
    for (int64_t n = 1; n <= MOST; ++n) {
        for (int64_t k = 1; k <= MOST; k += k < 9 ? 1 : 7) {
            const int64_t lda = k + 1;
            /* n rows of k numbers times a column with stride 2, into a column with stride 3 */
            float *m = aligned(n * lda, 3), *v = aligned(2 * k, 1), *to = aligned(3 * n, 1);
            draw_fill(&d, m, n * lda, -1, 1);
            draw_fill(&d, v, 2 * k, -1, 1);
            draw_fill(&d, to, 3 * n, -1, 1);
            float before[3 * MOST];
            memcpy(before, to, sizeof(float) * (size_t)(3 * n));
            set->column_product(n, k, m, lda, v, 2, 1.0f, to, 3);
            for (int64_t i = 0; i < n; ++i) {
                double sum = (double)before[3 * i], size = fabs(sum);
                for (int64_t p = 0; p < k; ++p) {
                    sum += (double)m[i * lda + p] * (double)v[2 * p];
                    size += fabs((double)m[i * lda + p] * (double)v[2 * p]);
                }
                assert_close(to[3 * i], sum, (double)(k + 2) * 0x1p-24 * size);
                assert_same_bits(to + 3 * i + 1, before + 3 * i + 1, 2);
            }
        }
    }
}

static void products_with_one_column_are_right_and_write_only_theirs(void **state)
{
    (void)state;
    for_each_kernel_set(test_column_products);
}

/* ---- exp, seen through a tile of one row whose maximum is 0 ---- */

/* |got - exp(x)| in units of the last place of exp(x); what would be subnormal is 0. */
static double ulps(float got, double x)
{
    double exact = exp(x);
    if (exact < (double)FLT_MIN) {
        return got == 0 || exact > (double)FLT_MIN * (1 - 0x1p-20) ? 0 : INFINITY;
    }
    int exponent = 0;
    frexp(exact, &exponent);
    return fabs((double)got - exact) / ldexp(1.0, exponent - 24);
}

static void test_exp(const struct mha__kernels *set, const struct mha__kernels *ref)
{
    enum { COLUMNS = 64, STEPS = MHA_TESTS_REDUCED ? 2000 : 100000 };
    float *tile = aligned(COLUMNS, 0);
    double worst = 0;
    (void)ref;
    for (int64_t step = 0; step < STEPS; ++step) {
        float x[COLUMNS], max = -INFINITY, sum = 0, shrink = 0;
        x[0] = 0.0f;
        for (int64_t j = 1; j < COLUMNS; ++j) { /* -104 .. 0, densely, and near 0 geometrically */
            double share = ((double)step * COLUMNS + (double)j) / ((double)STEPS * COLUMNS);
            x[j] = j % 4 ? (float)(-104 * share) : (float)-ldexp(share + 0.5, -(int)(step % 40));
        }
        memcpy(tile, x, sizeof x);
        set->softmax_tile(tile, COLUMNS, 1, COLUMNS, NULL, 1, &max, &sum, &shrink, NULL);
        assert_true(max == 0.0f);
        for (int64_t j = 0; j < COLUMNS; ++j) {
            double error = ulps(tile[j], (double)x[j]);
            if (error > 2) {
                print_error("exp(%.9g) is %.9g: %.2f ulp\n", (double)x[j], (double)tile[j], error);
            }
            assert_true(error <= 2);
            worst = fmax(worst, error);
        }
    }
    print_message("  exp within %.2f ulp\n", worst);
    assert_true(worst > 0.3); /* correctly rounded would be 0.5: the comparison sees something */
}

static void exp_over_its_whole_range_is_within_2_ulp_of_float64(void **state)
{
    (void)state;
    for_each_kernel_set(test_exp);
}

/* ---- the softmax of a tile ---- */

typedef struct rows {
    float max[ROWS], sum[ROWS], shrink[ROWS], p_ln_p[ROWS];
} rows;

/* Scores of all kinds: usual, equal, near 90, huge, -infinity; and rows that saw a tile before. */
static void draw_tile(draw *d, float *s, int64_t ld, int64_t n, rows *r)
{
    static const float size[ROWS] = {1, 0, 95, 3e38f, 20};
    for (int64_t i = 0; i < ROWS; ++i) {
        draw_fill(d, s + i * ld, n, -size[i], size[i]);
        r->max[i] = i % 2 ? draw_float(d, -30, 30) : -INFINITY;
        r->sum[i] = i % 2 ? draw_float(d, 1, 50) : 0;
        r->p_ln_p[i] = i % 2 ? draw_float(d, -40, 0) : 0;
    }
    s[4 * ld + n / 2] = -INFINITY;
}

/* In float64, cell by cell. exp(-large) below FLT_MIN counts as 0 or as itself. */
static void check_tile(const float *s,
                       const float *p,
                       int64_t ld,
                       int64_t n,
                       const uint64_t *visible,
                       int64_t words,
                       const rows *before,
                       const rows *after)
{
    for (int64_t i = 0; i < ROWS; ++i) {
        double max = (double)before->max[i], sum = 0, p_ln_p = 0, size = 0;
        for (int64_t j = 0; j < n; ++j) {
            if (!visible || (visible[i * words + j / 64] >> (j % 64) & 1)) {
                max = fmax(max, (double)s[i * ld + j]);
            }
        }
        assert_true((double)after->max[i] == max);
        for (int64_t j = 0; j < n; ++j) {
            int seen = !visible || (visible[i * words + j / 64] >> (j % 64) & 1);
            double x = (double)s[i * ld + j];
            double exact = seen && x != -HUGE_VAL ? exp(x - max) : 0;
            /* the difference is rounded to float32 before exp: up to 104 * 2^-24 */
            assert_close(p[i * ld + j], exact, exact * 110 * 0x1p-24 + (double)FLT_MIN);
            if (exact == 0 && !seen) {
                assert_true(p[i * ld + j] == 0.0f);
            }
            sum += exact;
            p_ln_p += exact > 0 ? exact * (x - max) : 0;
            size += exact > 0 ? exact * (1 - (x - max)) * (1 - (x - max)) : 0;
        }
        double shrink = isinf(before->max[i]) ? 1 : exp((double)before->max[i] - max);
        assert_close(after->shrink[i], shrink, shrink * 110 * 0x1p-24 + (double)FLT_MIN);
        sum += isinf(before->max[i]) ? 0 : shrink * (double)before->sum[i];
        assert_close(after->sum[i], sum, sum * 200 * 0x1p-24 + (double)FLT_MIN);
        if (!isinf(before->max[i]) && shrink > 0) {
            const double move = (double)before->max[i] - max;
            p_ln_p += shrink * ((double)before->p_ln_p[i] + move * (double)before->sum[i]);
            size += shrink * (1 - move) * ((1 - move) * (double)before->sum[i] + 40);
        }
        /* ln p is one rounded difference and moves p by that much; then a sum of 2 n numbers */
        assert_close(after->p_ln_p[i], p_ln_p, size * 200 * 0x1p-24 + 100 * (double)FLT_MIN);
    }
}

static void test_softmax_tile(const struct mha__kernels *set, const struct mha__kernels *ref)
{
    draw d = {5};
    (void)ref;
    for (int64_t n = 1; n <= 2 * MOST; ++n) {
        const int64_t ld = (n + PAD - 1) / PAD * PAD, words = (n + 63) / 64 + n % 2;
        for (int kind = 0; kind < 4; ++kind) { /* all visible; most; few; none */
            float *s = aligned(ROWS * ld, 0), *p = aligned(ROWS * ld, 0);
            uint64_t visible[ROWS * 4] = {0};
            rows before, after;
            draw_tile(&d, s, ld, n, &before);
            for (int64_t i = 0; i < ROWS; ++i) {
                for (int64_t j = 0; j < n; ++j) {
                    uint64_t bit = (uint64_t)draw_chance(&d, kind == 1   ? 0.8
                                                             : kind == 2 ? 0.05
                                                                         : 0);
                    visible[i * words + j / 64] |= bit << (j % 64);
                    if (kind && !bit && j % 3 == 0) {
                        s[i * ld + j] = j % 2 ? NAN : INFINITY; /* hidden */
                    }
                }
                for (int64_t j = n; j < ld; ++j) {
                    s[i * ld + j] = NAN; /* behind the last column */
                }
            }
            float *plain = aligned(ROWS * ld, 0);
            rows same = before;
            memcpy(plain, s, sizeof(float) * (size_t)(ROWS * ld));
            set->softmax_tile(plain, ld, ROWS, n, kind ? visible : NULL, words, same.max, same.sum,
                              same.shrink, NULL);
            memcpy(p, s, sizeof(float) * (size_t)(ROWS * ld));
            after = before;
            bool any = set->softmax_tile(p, ld, ROWS, n, kind ? visible : NULL, words, after.max,
                                         after.sum, after.shrink, after.p_ln_p);
            for (int64_t i = 0; i < ROWS; ++i) { /* p ln p changes no bit of the rest */
                assert_same_bits(p + i * ld, plain + i * ld, n);
            }
            assert_same_bits(after.max, same.max, ROWS);
            assert_same_bits(after.sum, same.sum, ROWS);
            assert_same_bits(after.shrink, same.shrink, ROWS);
            check_tile(s, p, ld, n, kind ? visible : NULL, words, &before, &after);
            bool shrunk = false;
            for (int64_t i = 0; i < ROWS; ++i) {
                shrunk |= after.shrink[i] != 1.0f;
            }
            assert_int_equal(any, shrunk);
        }
    }
}

static void softmax_of_a_tile_equals_float64_at_every_width_and_mask(void **state)
{
    (void)state;
    for_each_kernel_set(test_softmax_tile);
}

static void test_softmax_of_bad_rows(const struct mha__kernels *set, const struct mha__kernels *ref)
{
    (void)ref;
    static const float bad[2] = {NAN, INFINITY};
    for (int64_t n = 1; n <= MOST; ++n) {
        for (int64_t at = 0; at < n; ++at) {
            const int64_t ld = (n + PAD - 1) / PAD * PAD;
            float *s = aligned(2 * ld, 0), max[2] = {-INFINITY, -INFINITY}, sum[2] = {0}, shrink[2];
            float p_ln_p[2] = {0};
            for (int64_t j = 0; j < 2 * ld; ++j) {
                s[j] = (float)(j % 7) - 3;
            }
            s[at] = bad[at % 2];
            set->softmax_tile(s, ld, 2, n, NULL, 1, max, sum, shrink, p_ln_p);
            assert_true(isnan(sum[0]));
            assert_true(isfinite(sum[1]) && sum[1] >= 1);
            assert_true(isfinite(p_ln_p[1]) && p_ln_p[1] <= 0);
        }
        /* nothing but -infinity: no maximum, zeros */
        const int64_t ld = (n + PAD - 1) / PAD * PAD;
        float *s = aligned(ld, 0), max = -INFINITY, sum = 0, shrink = 0, p_ln_p = 0;
        for (int64_t j = 0; j < ld; ++j) {
            s[j] = -INFINITY;
        }
        set->softmax_tile(s, ld, 1, n, NULL, 1, &max, &sum, &shrink, &p_ln_p);
        assert_true(max == -INFINITY && sum == 0 && p_ln_p == 0);
        assert_true(all_are(s, n, 0.0f));
    }
}

static void softmax_of_nan_or_infinity_is_nan_in_its_row_and_of_minus_infinity_zero(void **state)
{
    (void)state;
    for_each_kernel_set(test_softmax_of_bad_rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_of_every_set_is_complete),
        cmocka_unit_test(copies_are_those_of_the_plain_set),
        cmocka_unit_test(scaled_rows_are_those_of_the_plain_set_and_gaps_stay),
        cmocka_unit_test(transpose_of_every_size_moves_each_number_and_nothing_else),
        cmocka_unit_test(products_with_one_column_are_right_and_write_only_theirs),
        cmocka_unit_test(exp_over_its_whole_range_is_within_2_ulp_of_float64),
        cmocka_unit_test(softmax_of_a_tile_equals_float64_at_every_width_and_mask),
        cmocka_unit_test(softmax_of_nan_or_infinity_is_nan_in_its_row_and_of_minus_infinity_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
