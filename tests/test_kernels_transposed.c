/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of the transposed form, every set at every number of vectors, against sums in float64. */
#include "support/draw.h"
#include "support/expect.h"
#include "support/kernel_sets.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { KEYS = 70, DEPTH = 37, QUERIES = 64, ROOM = (KEYS + 16) * QUERIES };

static void test_table(const struct mha__kernels *set, const struct mha__kernels *ref)
{
    (void)ref;
    assert_true(set->query_step >= 1 && set->query_panel % set->query_step == 0);
    assert_true(set->query_panel > set->query_step); // a panel can give one of its vectors
    assert_true(set->query_panel <= QUERIES);        // a bit each in a word of a mask
    assert_true(set->row_panel >= 1 && 32 % set->row_panel == 0);
}

static void panels_divide_what_they_must(void **state)
{
    (void)state;
    for_each_kernel_set(test_table);
}

/* ---- packing ---- */

static void test_transpose_panels(const struct mha__kernels *set, const struct mha__kernels *ref)
{
    (void)ref;
    const int64_t panel = set->row_panel;
    draw d = {31};
    for (int64_t rows = 1; rows <= 35; rows++) {
        for (int64_t columns = 1; columns <= 35; columns += 2) {
            const int64_t ld = columns + 2;
            const int64_t stride = columns * panel + 3;
            const int64_t size = (rows + panel - 1) / panel * stride;
            float from[35 * 37];
            float *to = malloc((size_t)size * sizeof *to);
            assert_non_null(to);
            draw_fill(&d, from, rows * ld, -1, 1);
            for (int64_t i = 0; i < size; i++) {
                to[i] = 77.0f;
            }
            set->transpose_panels(to, stride, from, ld, rows, columns);
            for (int64_t i = 0; i < size; i++) {
                const int64_t r = i / stride * panel + i % stride % panel;
                const int64_t c = i % stride / panel;
                assert_true(to[i] == (r < rows && c < columns ? from[r * ld + c] : 77.0f));
            }
            free(to);
        }
    }
}

static void panels_of_the_transpose_hold_each_number_and_nothing_else(void **state)
{
    (void)state;
    for_each_kernel_set(test_transpose_panels);
}

/* ---- products ---- */

/* k [keys, depth] in panels of the set. */
static float *in_panels(const struct mha__kernels *set, const float *k, int64_t keys, int64_t depth)
{
    const int64_t panel = set->row_panel;
    const int64_t size = (keys + panel - 1) / panel * panel * depth;
    float *to = malloc((size_t)size * sizeof *to);
    assert_non_null(to);
    for (int64_t i = 0; i < size; i++) {
        to[i] = NAN; // keys beyond the last one are worthless
    }
    set->transpose_panels(to, panel * depth, k, depth, keys, depth);
    return to;
}

static void
one_scores(const struct mha__kernels *set, draw *d, int64_t keys, int64_t n, int64_t depth)
{
    float k[KEYS * DEPTH];
    float q[DEPTH * QUERIES];
    float s[ROOM];
    float most[QUERIES];
    draw_fill(d, k, keys * depth, -1, 1);
    draw_fill(d, q, depth * n, -1, 1);
    k[0] = draw_chance(d, 0.2) ? NAN : k[0]; // a score that no maximum takes
    for (int64_t i = 0; i < n; i++) {
        most[i] = i % 3 == 0 ? -INFINITY : i % 3 == 1 ? -0.1f : 1e6f;
    }
    const int64_t whole = (keys + set->row_panel - 1) / set->row_panel * set->row_panel;
    s[whole * n] = 77.0f;
    float *panels = in_panels(set, k, keys, depth);
    set->transposed_scores(keys, n, depth, panels, q, s, most);
    assert_true(s[whole * n] == 77.0f);
    for (int64_t i = 0; i < n; i++) {
        float expected = i % 3 == 0 ? -INFINITY : i % 3 == 1 ? -0.1f : 1e6f;
        for (int64_t j = 0; j < keys; j++) {
            double sum = 0;
            for (int64_t p = 0; p < depth; p++) {
                sum += (double)k[j * depth + p] * (double)q[p * n + i];
            }
            const float got = s[j * n + i];
            assert_true(isnan(sum) ? isnan(got)
                                   : fabs(got - sum) <= (double)(depth * (depth + 2)) * 0x1p-24);
            expected = got > expected ? got : expected;
        }
        assert_true(most[i] == expected);
    }
    free(panels);
}

static void test_scores(const struct mha__kernels *set, const struct mha__kernels *ref)
{
    (void)ref;
    draw d = {32};
    for (int64_t n = set->query_step; n <= set->query_panel; n += set->query_step) {
        for (int64_t keys = 1; keys <= KEYS; keys++) {
            one_scores(set, &d, keys, n, draw_int(&d, 1, DEPTH));
        }
    }
}

static void scores_are_products_and_their_maximum_leaves_nan_out(void **state)
{
    (void)state;
    for_each_kernel_set(test_scores);
}

static void test_values(const struct mha__kernels *set, const struct mha__kernels *ref)
{
    (void)ref;
    enum { FEATURES = 32 };
    const int64_t panel = set->row_panel;
    draw d = {33};
    for (int64_t n = set->query_step; n <= set->query_panel; n += set->query_step) {
        for (int64_t keys = 0; keys <= KEYS; keys += keys < 9 ? 1 : 20) {
            const int64_t stride = keys * panel + 5;
            float v[FEATURES * (KEYS + 5)];
            float p[KEYS * QUERIES];
            float o[FEATURES * QUERIES];
            float before[FEATURES * QUERIES];
            float shrink[QUERIES];
            draw_fill(&d, v, FEATURES / panel * stride, -1, 1);
            draw_fill(&d, p, keys * n, 0, 1);
            draw_fill(&d, shrink, n, 0, 1);
            draw_fill(&d, before, FEATURES * n, -1, 1);
            const bool adds = keys % 2 == 1;
            for (int64_t i = 0; i < FEATURES * n; i++) {
                before[i] = adds ? before[i] : NAN; // not read then
                o[i] = before[i];
            }
            set->transposed_values(keys, n, FEATURES, v, stride, p, adds ? shrink : NULL, o);
            for (int64_t at = 0; at < FEATURES * n; at++) {
                const int64_t f = at / n;
                const int64_t i = at % n;
                double sum = adds ? (double)shrink[i] * (double)before[at] : 0.0;
                for (int64_t j = 0; j < keys; j++) {
                    sum += (double)v[f / panel * stride + j * panel + f % panel] *
                           (double)p[j * n + i];
                }
                assert_true(fabs(o[at] - sum) <= (double)((keys + 2) * (keys + 1)) * 0x1p-24);
            }
        }
    }
}

static void values_are_added_to_what_shrinks(void **state)
{
    (void)state;
    for_each_kernel_set(test_values);
}

/* ---- masks and the softmax ---- */

static void test_hide(const struct mha__kernels *set, const struct mha__kernels *ref)
{
    draw d = {34};
    for (int64_t n = set->query_step; n <= set->query_panel; n += set->query_step) {
        for (int64_t keys = 1; keys <= 20; keys++) {
            float s[20 * QUERIES];
            float same[20 * QUERIES];
            float most[QUERIES];
            float most_same[QUERIES];
            uint64_t visible[20];
            draw_fill(&d, s, keys * n, -3, 3);
            s[draw_int(&d, 0, keys * n - 1)] = NAN;
            draw_fill(&d, most, n, -9, 0);
            memcpy(same, s, sizeof s);
            memcpy(most_same, most, sizeof most);
            for (int64_t j = 0; j < keys; j++) {
                visible[j] = j % 4 == 0 ? ~UINT64_C(0) : j % 4 == 1 ? 0 : draw_bits(&d);
            }
            set->transposed_hide(keys, n, keys == 7 ? NULL : visible, s, most);
            ref->transposed_hide(keys, n, keys == 7 ? NULL : visible, same, most_same);
            for (int64_t at = 0; at < keys * n; at++) {
                const int hidden = keys != 7 && (visible[at / n] >> (at % n) & 1) == 0;
                assert_true(!hidden || s[at] == -INFINITY);
            }
            assert_memory_equal(s, same, (size_t)(keys * n) * sizeof *s);
            assert_memory_equal(most, most_same, (size_t)n * sizeof *most);
        }
    }
}

static void hidden_scores_are_minus_infinity_and_in_no_maximum(void **state)
{
    (void)state;
    for_each_kernel_set(test_hide);
}

/* One query through tiles of keys: what the running numbers must be. */
static void expect_softmax(const float *s,
                           const float *p,
                           int64_t keys,
                           int64_t n,
                           float old_max,
                           float old_sum,
                           float max,
                           float sum,
                           float shrink)
{
    double m = (double)old_max;
    for (int64_t j = 0; j < keys; j++) {
        m = s[j * n] > m ? (double)s[j * n] : m;
    }
    assert_true((double)max == m);
    const double base = m == -INFINITY ? 0.0 : m;
    const double f = old_max == -INFINITY ? 1.0 : exp((double)(old_max - (float)base));
    double l = f * (double)old_sum;
    for (int64_t j = 0; j < keys; j++) {
        const double x = (double)(s[j * n] - (float)base);
        const double e = exp(x);
        const double error = (2.0 + 0.12 * fabs(x)) * 0x1p-23;
        assert_true(s[j * n] == -INFINITY ? p[j * n] == 0.0f
                                          : fabs(p[j * n] - e) <= error * e + 0x1p-126);
        l += e;
    }
    assert_true(fabs(shrink - f) <= 2.0 * 0x1p-23 * f + 0x1p-126);
    assert_true(fabs(sum - l) <= (double)(keys + 4) * 0x1p-23 * l + 0x1p-120);
}

static void test_softmax(const struct mha__kernels *set, const struct mha__kernels *ref)
{
    (void)ref;
    draw d = {35};
    for (int64_t n = set->query_step; n <= set->query_panel; n += set->query_step) {
        float max[QUERIES];
        float sum[QUERIES] = {0};
        for (int64_t i = 0; i < n; i++) {
            max[i] = -INFINITY;
        }
        for (int64_t keys = 1; keys <= KEYS; keys++) {
            float s[KEYS * QUERIES];
            float p[KEYS * QUERIES];
            float most[QUERIES];
            float shrink[QUERIES];
            float old_max[QUERIES];
            float old_sum[QUERIES];
            draw_fill(&d, s, keys * n, -100, (float)keys);
            for (int64_t i = 0; i < n; i++) {
                most[i] = -INFINITY;
                for (int64_t j = 0; j < keys; j++) {
                    const int none = i % 5 == 0 && keys < 40; // nothing to see yet
                    s[j * n + i] = none || draw_chance(&d, 0.2) ? -INFINITY : s[j * n + i];
                    most[i] = s[j * n + i] > most[i] ? s[j * n + i] : most[i];
                }
            }
            memcpy(p, s, sizeof p);
            memcpy(old_max, max, sizeof max);
            memcpy(old_sum, sum, sizeof sum);
            set->transposed_softmax(keys, n, p, most, max, sum, shrink);
            for (int64_t i = 0; i < n; i++) {
                expect_softmax(s + i, p + i, keys, n, old_max[i], old_sum[i], max[i], sum[i],
                               shrink[i]);
            }
        }
    }
}

static void softmax_down_the_columns_equals_float64_tile_after_tile(void **state)
{
    (void)state;
    for_each_kernel_set(test_softmax);
}

static void test_bad(const struct mha__kernels *set, const struct mha__kernels *ref)
{
    (void)ref;
    enum { N = 3 };
    for (int64_t n = set->query_step; n <= set->query_panel; n += set->query_step) {
        float s[N * QUERIES];
        float most[QUERIES];
        float max[QUERIES];
        float sum[QUERIES] = {0};
        float shrink[QUERIES];
        for (int64_t i = 0; i < n; i++) {
            const float bad = i % 4 == 1 ? NAN : i % 4 == 2 ? INFINITY : 0.5f;
            s[i] = 1.0f;
            s[n + i] = bad;
            s[2 * n + i] = -FLT_MAX;
            most[i] = bad > 1.0f ? bad : 1.0f;
            max[i] = -INFINITY;
        }
        set->transposed_softmax(N, n, s, most, max, sum, shrink);
        for (int64_t i = 0; i < n; i++) {
            const int is_bad = i % 4 == 1 || i % 4 == 2;
            assert_true(is_bad ? isnan(sum[i]) : fabsf(sum[i] - 1.60653066f) < 1e-6f);
            assert_true(is_bad || s[2 * n + i] == 0.0f);
            assert_true(max[i] == (i % 4 == 2 ? INFINITY : 1.0f));
        }
    }
}

static void nan_and_infinity_stay_in_their_query(void **state)
{
    (void)state;
    for_each_kernel_set(test_bad);
}

/* All of a tile for n queries, then for each of them beside others: the same bits. */
static void test_alone(const struct mha__kernels *set, const struct mha__kernels *ref)
{
    (void)ref;
    const int64_t n = set->query_panel;
    const int64_t step = set->query_step;
    draw d = {36};
    float k[KEYS * DEPTH];
    float q[DEPTH * QUERIES];
    float s[ROOM];
    float most[QUERIES];
    float max[QUERIES];
    float sum[QUERIES] = {0};
    float shrink[QUERIES];
    draw_fill(&d, k, KEYS * DEPTH, -1, 1);
    draw_fill(&d, q, DEPTH * n, -1, 1);
    float *panels = in_panels(set, k, KEYS, DEPTH);
    for (int64_t i = 0; i < n; i++) {
        most[i] = max[i] = -INFINITY;
    }
    set->transposed_scores(KEYS, n, DEPTH, panels, q, s, most);
    set->transposed_softmax(KEYS, n, s, most, max, sum, shrink);
    for (int64_t i = 0; i < n; i++) {
        float one[DEPTH * QUERIES];
        float s_one[ROOM];
        float most_one[QUERIES];
        float max_one[QUERIES];
        float sum_one[QUERIES] = {0};
        draw_fill(&d, one, DEPTH * step, -9, 9);
        const int64_t at = (i + 1) % step; // another place in the vector
        for (int64_t p = 0; p < DEPTH; p++) {
            one[p * step + at] = q[p * n + i];
        }
        for (int64_t r = 0; r < step; r++) {
            most_one[r] = max_one[r] = -INFINITY;
        }
        set->transposed_scores(KEYS, step, DEPTH, panels, one, s_one, most_one);
        set->transposed_softmax(KEYS, step, s_one, most_one, max_one, sum_one, shrink);
        for (int64_t j = 0; j < KEYS; j++) {
            assert_memory_equal(&s_one[j * step + at], &s[j * n + i], sizeof *s);
        }
        assert_memory_equal(&sum_one[at], &sum[i], sizeof *sum);
        assert_memory_equal(&max_one[at], &max[i], sizeof *max);
    }
    free(panels);
}

static void bits_of_a_query_do_not_depend_on_the_others(void **state)
{
    (void)state;
    for_each_kernel_set(test_alone);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(panels_divide_what_they_must),
        cmocka_unit_test(panels_of_the_transpose_hold_each_number_and_nothing_else),
        cmocka_unit_test(scores_are_products_and_their_maximum_leaves_nan_out),
        cmocka_unit_test(values_are_added_to_what_shrinks),
        cmocka_unit_test(hidden_scores_are_minus_infinity_and_in_no_maximum),
        cmocka_unit_test(softmax_down_the_columns_equals_float64_tile_after_tile),
        cmocka_unit_test(nan_and_infinity_stay_in_their_query),
        cmocka_unit_test(bits_of_a_query_do_not_depend_on_the_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
