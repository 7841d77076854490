/* SPDX-License-Identifier: Apache-2.0 */
/* Products of few rows, of every kernel set, against float64: all tails, any strides, nothing read beyond. */
#include "support/draw.h"
#include "support/expect.h"
#include "support/guard_page.h"
#include "support/kernel_sets.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* rows * ld numbers of which the last row ends at an unreadable page. */
static float *matrix(guarded *g, draw *d, int64_t rows, int64_t columns, int64_t ld)
{
    const int64_t count = (rows - 1) * ld + columns;
    float *x = guarded_create(g, (size_t)count * sizeof *x, 1);
    assert_non_null(x);
    draw_fill(d, x, count, -1, 1);
    return x;
}

/* (k + 2) eps sum |a b|: any order of summation. */
static void assert_sum(float got, double sum, double size, int64_t k)
{
    assert_close(got, sum, (double)(k + 2) * 0x1p-24 * size);
}

static void
one_tile_of_dots(const struct mha__kernels *set, draw *d, int64_t rows, int64_t keys, int64_t depth)
{
    const int64_t ldq = depth + 1;
    const int64_t ldk = depth + 2 * (keys % 3);
    const int64_t lds = keys + 3;
    guarded memory[3];
    const float *q = matrix(&memory[0], d, rows, depth, ldq);
    const float *k = matrix(&memory[1], d, keys, depth, ldk);
    float *s = matrix(&memory[2], d, rows, keys, lds);
    for (int64_t i = 0; i < (rows - 1) * lds + keys; i++) {
        s[i] = i % lds < keys ? NAN : 77.0f; // it is not read
    }
    set->few_dots(rows, keys, depth, q, ldq, k, ldk, s, lds);
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < keys; c++) {
            double sum = 0;
            double size = 0;
            for (int64_t i = 0; i < depth; i++) {
                const double term = (double)q[r * ldq + i] * (double)k[c * ldk + i];
                sum += term;
                size += fabs(term);
            }
            assert_sum(s[r * lds + c], sum, size, depth);
        }
        for (int64_t gap = keys; r + 1 < rows && gap < lds; gap++) {
            assert_true(s[r * lds + gap] == 77.0f);
        }
    }
    for (int i = 0; i < 3; i++) {
        guarded_destroy(&memory[i]);
    }
}

static void test_dots(const struct mha__kernels *set, const struct mha__kernels *ref)
{
    (void)ref;
    draw d = {21};
    for (int64_t rows = 1; rows <= 9; rows++) {
        for (int64_t keys = 1; keys <= 21; keys++) {
            one_tile_of_dots(set, &d, rows, keys, 1 + draw_int(&d, 0, 70));
        }
        for (int64_t depth = 1; depth <= 67; depth++) {
            one_tile_of_dots(set, &d, rows, 12, depth);
        }
    }
    one_tile_of_dots(set, &d, 32, 256, 128);
}

static void dots_of_few_rows_are_right_and_write_only_theirs(void **state)
{
    (void)state;
    for_each_kernel_set(test_dots);
}

static void
one_product(const struct mha__kernels *set, draw *d, int64_t m, int64_t n, int64_t k, bool add)
{
    const int64_t lda = k + 1;
    const int64_t ldb = n + 2 * (k % 3);
    const int64_t ldc = n + 3;
    guarded memory[3];
    const float *a = matrix(&memory[0], d, m, k, lda);
    const float *b = matrix(&memory[1], d, k, n, ldb);
    float *c = matrix(&memory[2], d, m, n, ldc);
    const int64_t count = (m - 1) * ldc + n;
    float *old = malloc((size_t)count * sizeof *old);
    assert_non_null(old);
    for (int64_t i = 0; i < count; i++) {
        c[i] = i % ldc >= n ? 77.0f : add ? c[i] : NAN; // it is not read unless it is added to
    }
    memcpy(old, c, (size_t)count * sizeof *old);
    set->few_product(m, n, k, a, lda, b, ldb, add, c, ldc);
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
            double sum = add ? (double)old[i * ldc + j] : 0;
            double size = fabs(sum);
            for (int64_t p = 0; p < k; p++) {
                const double term = (double)a[i * lda + p] * (double)b[p * ldb + j];
                sum += term;
                size += fabs(term);
            }
            assert_sum(c[i * ldc + j], sum, size, k);
        }
        for (int64_t gap = n; i + 1 < m && gap < ldc; gap++) {
            assert_true(c[i * ldc + gap] == 77.0f);
        }
    }
    free(old);
    for (int i = 0; i < 3; i++) {
        guarded_destroy(&memory[i]);
    }
}

static void test_product(const struct mha__kernels *set, const struct mha__kernels *ref)
{
    (void)ref;
    draw d = {22};
    for (int64_t m = 1; m <= 14; m++) {
        for (int64_t n = 1; n <= 67; n++) {
            one_product(set, &d, m, n, 1 + draw_int(&d, 0, 40), (m + n) % 2 == 0);
        }
    }
    for (int64_t m = 1; m <= 9; m += 4) {
        // parts of the depth, and columns beyond a block of every width
        one_product(set, &d, m, 64, 257, true);
        one_product(set, &d, m, 256, 130, false);
        one_product(set, &d, m, 5000, 33, false);
    }
    for (int64_t m = 1; m <= 12; m++) {
        // rows of B without a gap, several parts of them
        one_product(set, &d, m, 64, 258, true);
        one_product(set, &d, m, 256, 99, false);
    }
}

static void product_of_few_rows_is_right_and_writes_only_its_own(void **state)
{
    (void)state;
    for_each_kernel_set(test_product);
}

/* 0 times NaN or infinity is NaN: the direct attention finds values that are not finite by it. */
static void test_nonfinite(const struct mha__kernels *set, const struct mha__kernels *ref)
{
    (void)ref;
    enum { K = 70, N = 67 };
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    float a[8 * K] = {0};
    float c[8 * N];
    float *b = calloc(K * N, sizeof *b);
    assert_non_null(b);
    for (int64_t m = 1; m <= 8; m++) {
        for (int64_t at = 0; at < K * N; at += 13) {
            b[at] = bad[at % 3];
            memset(c, 0, sizeof c);
            set->few_product(m, N, K, a, K, b, N, true, c, N);
            for (int64_t i = 0; i < m * N; i++) {
                assert_int_equal(isnan(c[i]) != 0, i % N == at % N);
            }
            b[at] = 0.0f;
        }
    }
    free(b);
}

static void product_of_zero_and_what_is_not_finite_is_nan_in_its_column(void **state)
{
    (void)state;
    for_each_kernel_set(test_nonfinite);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dots_of_few_rows_are_right_and_write_only_theirs),
        cmocka_unit_test(product_of_few_rows_is_right_and_writes_only_its_own),
        cmocka_unit_test(product_of_zero_and_what_is_not_finite_is_nan_in_its_column),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
