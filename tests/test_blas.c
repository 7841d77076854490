/* SPDX-License-Identifier: Apache-2.0 */
/* The door to the BLAS: products of every shape, whole or cut to the limit, against float64. */
#include "support/draw.h"
#include "support/expect.h"

#include <kernels/kernels.h>
#include <kernels/product.h>
#include <math.h>
#include <platform/blas.h>
#include <platform/blas_check.h>
#include <platform/fpenv.h>
#include <stdlib.h>
#include <string.h>

static const int64_t SIZES[] = {1, 2, 3, 5, 16, 31, 63, 64, 65, 66, 127, 128, 129, 130, 193, 300};
enum { SIZE_COUNT = sizeof SIZES / sizeof *SIZES, GAP = 3 };

static float *random_matrix(draw *d, int64_t rows, int64_t ld)
{
    float *x = malloc((size_t)(rows * ld) * sizeof *x);
    assert_non_null(x);
    draw_fill(d, x, rows * ld, -1, 1);
    return x;
}

/* One product with gaps in all rows; C between them stays. */
static void
check_product(const struct mha__blas_state *blas, int64_t m, int64_t n, int64_t k, int beta)
{
    draw d = {(uint64_t)(m * 1000003 + n * 1009 + k)};
    const int64_t lda = k + GAP, ldb = n + GAP, ldc = n + GAP;
    float *a = random_matrix(&d, m, lda), *b = random_matrix(&d, k, ldb);
    float *c = random_matrix(&d, m, ldc), *old = malloc((size_t)(m * ldc) * sizeof *old);
    assert_non_null(old);
    for (int64_t i = 0; !beta && i < m * ldc; ++i) {
        c[i] = i % ldc < n ? NAN : 77.0f; /* beta = 0 does not read C */
    }
    memcpy(old, c, (size_t)(m * ldc) * sizeof *old);
    mha__product_nn(mha__kernels_chosen(), blas, 4, m, n, k, a, lda, b, ldb, (float)beta, c, ldc);
    for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) {
            double sum = beta ? (double)old[i * ldc + j] : 0, size = fabs(sum);
            for (int64_t p = 0; p < k; ++p) {
                double term = (double)a[i * lda + p] * (double)b[p * ldb + j];
                sum += term;
                size += fabs(term);
            }
            /* (k + 2) eps sum |a b|: any order of summation */
            assert_close(c[i * ldc + j], sum, (double)(k + 2) * 0x1p-24 * size);
        }
        assert_same_bits(c + i * ldc + n, old + i * ldc + n, GAP);
    }
    free(a);
    free(b);
    free(c);
    free(old);
}

/* 262144 as for a BLAS that threads beyond it, small ones to cut in many places, none. */
static void products_of_every_shape_are_right_under_every_limit(void **state)
{
    (void)state;
    struct mha__fpenv saved;
    struct mha__blas_state blas;
    mha__blas_ask(&blas);
    static const int64_t limits[] = {INT64_MAX, 262144, 65536, 8192};
    assert_true(mha__blas_enter());
    mha__fpenv_enter(&saved);
    for (int l = 0; l < 4; ++l) {
        if (limits[l] > blas.limit) {
            continue; /* this BLAS would thread it */
        }
        blas.limit = limits[l];
        for (int x = 0; x < SIZE_COUNT; ++x) {
            for (int y = 0; y < SIZE_COUNT; ++y) {
                for (int z = 0; z < SIZE_COUNT; z += 1 + (x + y) % 3) {
                    if (SIZES[x] * SIZES[y] * SIZES[z] < (MHA_TESTS_REDUCED ? 100000 : 1000000)) {
                        check_product(&blas, SIZES[x], SIZES[y], SIZES[z], (x + y + z) % 2);
                    }
                }
            }
        }
    }
    mha__fpenv_leave(&saved);
    mha__blas_leave();
}

static void state_of_the_blas_is_consistent(void **state)
{
    (void)state;
    struct mha__blas_state blas;
    mha__blas_ask(&blas);
    assert_int_equal(blas.limit == INT64_MAX, !blas.confined);
    assert_true(blas.limit >= 65536);
    assert_true(blas.small_max <= blas.limit);
    assert_true(blas.family == MHA__BLAS_PACKED || blas.family == MHA__BLAS_SMALL);
    assert_in_range(mha__blas_max_threads(), 1, 4096);
    assert_in_range(mha__blas_own_threads(), 0, 4096);
    if (mha__blas_own_threads() > 1 && !blas.serialised) {
        assert_true(blas.confined);
    }
}

static void check_of_the_blas_passes_and_may_be_repeated(void **state)
{
    (void)state;
    SUCCEEDS(mha__blas_check(0, err));
    SUCCEEDS(mha__blas_check(1, err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_of_every_shape_are_right_under_every_limit),
        cmocka_unit_test(state_of_the_blas_is_consistent),
        cmocka_unit_test(check_of_the_blas_passes_and_may_be_repeated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
