/* SPDX-License-Identifier: Apache-2.0 */
/* The default slopes of ALiBi (K07), and what mha_mask_set_alibi keeps. */
#include "support/brutal.h"

#include <api/objects.h>
#include <attention/alibi.h>
#include <math.h>

/* slope(h) = 2^-exponent[h], rounded to float32 once */
static void expect_slopes(int64_t H, const double *exponent)
{
    for (int64_t h = 0; h < H; ++h) {
        const float expected = (float)pow(2.0, -exponent[h]);
        if (mha__alibi_default_slope(H, h) != expected) {
            print_error("H = %lld, head %lld: %.9g, not %.9g\n", (long long)H, (long long)h,
                        (double)mha__alibi_default_slope(H, h), (double)expected);
            fail();
        }
    }
}

static void slopes_k07_are_not_one_series_when_heads_are_no_power_of_two(void **state)
{
    (void)state;
    expect_slopes(8, (const double[]){1, 2, 3, 4, 5, 6, 7, 8});
    expect_slopes(6, (const double[]){2, 4, 6, 8, 1, 3});
    expect_slopes(12, (const double[]){1, 2, 3, 4, 5, 6, 7, 8, .5, 1.5, 2.5, 3.5});
    expect_slopes(3, (const double[]){4, 8, 2});
}

static void slopes_of_1_2_and_16_heads(void **state)
{
    (void)state;
    expect_slopes(1, (const double[]){8});
    expect_slopes(2, (const double[]){4, 8});
    expect_slopes(16,
                  (const double[]){.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 5.5, 6, 6.5, 7, 7.5, 8});
}

static void slopes_of_any_head_count_are_distinct_and_between_0_and_1(void **state)
{
    (void)state;
    for (int64_t H = 1; H <= 70; ++H) {
        for (int64_t h = 0; h < H; ++h) {
            const float slope = mha__alibi_default_slope(H, h);
            assert_true(slope > 0 && slope < 1);
            for (int64_t other = 0; other < h; ++other) {
                assert_true(slope != mha__alibi_default_slope(H, other));
            }
        }
    }
}

static mha_mask *fresh(void)
{
    mha_mask *mask = NULL;
    assert_int_equal(mha_mask_create(&mask, NULL), MHA_OK);
    return mask;
}

static void slopes_given_are_copied_default_ones_take_no_room_and_0_heads_is_off(void **state)
{
    (void)state;
    mha_mask *mask = fresh();
    const int64_t empty = mha_mask_bytes(mask);
    assert_false(mask->rules.alibi);
    SUCCEEDS(mha_mask_set_alibi(mask, 8, NULL, err));
    assert_true(mask->rules.alibi);
    assert_int_equal(mask->rules.alibi_heads, 0);
    assert_int_equal(mha_mask_bytes(mask), empty);
    float slopes[3] = {0.5f, 0.0f, -1.0f};
    SUCCEEDS(mha_mask_set_alibi(mask, 3, slopes, err));
    slopes[0] = 99.0f;
    assert_true(mask->rules.slopes[0] == 0.5f && mask->rules.slopes[2] == -1.0f);
    assert_int_equal(mask->rules.alibi_heads, 3);
    assert_int_equal(mha_mask_bytes(mask), empty + 3 * 4);
    SUCCEEDS(mha_mask_set_alibi(mask, 0, NULL, err));
    assert_false(mask->rules.alibi);
    assert_int_equal(mha_mask_bytes(mask), empty);
    mha_mask_destroy(mask);
}

static void slopes_that_are_no_numbers_are_refused(void **state)
{
    (void)state;
    mha_mask *mask = fresh();
    const float good[2] = {1, 2};
    SUCCEEDS(mha_mask_set_alibi(mask, 2, good, err));
    REFUSED(MHA_ERROR_SHAPE, mha_mask_set_alibi(mask, -1, good, err), "-1");
    REFUSED(MHA_ERROR_VALUE, mha_mask_set_alibi(mask, 2, (float[]){1, NAN}, err), "head 1", "nan");
    REFUSED(MHA_ERROR_VALUE, mha_mask_set_alibi(mask, 2, (float[]){INFINITY, 1}, err), "head 0",
            "inf");
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_mask_set_alibi(NULL, 2, good, err), "NULL");
    assert_true(mask->rules.alibi && mask->rules.slopes[1] == 2.0f);
    BRUTAL(mha_mask_set_alibi(mask, 2, (float[]){3, 4}, NULL),
           assert_true(mask->rules.slopes[1] == 2.0f));
    assert_int_equal(brutal_failures, 1);
    assert_true(mask->rules.slopes[1] == 4.0f);
    mha_mask_destroy(mask);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slopes_k07_are_not_one_series_when_heads_are_no_power_of_two),
        cmocka_unit_test(slopes_of_1_2_and_16_heads),
        cmocka_unit_test(slopes_of_any_head_count_are_distinct_and_between_0_and_1),
        cmocka_unit_test(slopes_given_are_copied_default_ones_take_no_room_and_0_heads_is_off),
        cmocka_unit_test(slopes_that_are_no_numbers_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
