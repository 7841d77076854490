/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "support/draw.h"
#include "support/expect.h"
#include "support/host_state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 7, DV = 300, PARTS = 5 }; /* Dv: more than the library sums at a time */

typedef struct parts {
    float out[PARTS][ROWS * DV], lse[PARTS][ROWS];
    const float *outs[PARTS], *lses[PARTS];
    float merged[ROWS * DV], merged_lse[ROWS];
} parts;

/* Random parts; lse over 200 units, so some weigh nothing. */
static parts *parts_of(uint64_t seed)
{
    parts *x = malloc(sizeof *x);
    assert_non_null(x);
    draw d = {seed};
    for (int p = 0; p < PARTS; ++p) {
        draw_fill(&d, x->out[p], ROWS * DV, -1, 1);
        draw_fill(&d, x->lse[p], ROWS, -100, 100);
        x->lse[p][0] = 80.0f + (float)p / 4; /* one row where all count */
        x->outs[p] = x->out[p];
        x->lses[p] = x->lse[p];
    }
    memset(x->merged, 0xFF, sizeof x->merged);
    memset(x->merged_lse, 0xFF, sizeof x->merged_lse);
    return x;
}

/*
 * M, w and the sums in float64. The library: w relative error (|lse - M| + 3) eps, and PARTS + 3
 * roundings more of numbers <= 1; lse: those of M + ln sum.
 */
static void expect_merged(const parts *x, int count, const float *merged, const float *merged_lse)
{
    for (int row = 0; row < ROWS; ++row) {
        double M = -INFINITY, sum = 0;
        for (int p = 0; p < count; ++p) {
            M = fmax(M, (double)x->lse[p][row]);
        }
        for (int p = 0; p < count; ++p) {
            sum += exp((double)x->lse[p][row] - M);
        }
        assert_close(merged_lse[row], M + log(sum), 0x1p-23 * (fabs(M) + 2));
        for (int d = 0; d < DV; ++d) {
            double o = 0;
            for (int p = 0; p < count; ++p) {
                o += exp((double)x->lse[p][row] - M) * (double)x->out[p][row * DV + d];
            }
            assert_close(merged[row * DV + d], o / sum, 0x1p-24 * (PARTS + 12));
        }
    }
}

static void merge_is_the_weighted_mean_of_the_parts(void **state)
{
    (void)state;
    for (int count = 1; count <= PARTS; ++count) {
        parts *x = parts_of((uint64_t)count);
        SUCCEEDS(mha_merge(count, ROWS, DV, x->outs, x->lses, x->merged, x->merged_lse, err));
        expect_merged(x, count, x->merged, x->merged_lse);
        free(x);
    }
}

static void merge_into_one_of_the_parts_gives_the_same_bits(void **state)
{
    (void)state;
    for (int place = 0; place < PARTS; ++place) {
        parts *x = parts_of(50), *y = parts_of(50);
        SUCCEEDS(mha_merge(PARTS, ROWS, DV, x->outs, x->lses, x->merged, x->merged_lse, err));
        SUCCEEDS(mha_merge(PARTS, ROWS, DV, y->outs, y->lses, y->out[place], y->lse[place], err));
        assert_same_bits(y->out[place], x->merged, ROWS * DV);
        assert_same_bits(y->lse[place], x->merged_lse, ROWS);
        /* the other parts are only read */
        assert_same_bits(y->out[(place + 1) % PARTS], x->out[(place + 1) % PARTS], ROWS * DV);
        free(x);
        free(y);
    }
}

/* An empty part holds NaN: it weighs 0 by selection. All empty: 0 and -infinity. */
static void merge_ignores_empty_parts_and_all_empty_is_0(void **state)
{
    (void)state;
    parts *x = parts_of(60);
    for (int i = 0; i < DV; ++i) {
        x->out[1][i] = NAN;
        x->out[2][i] = INFINITY;
    }
    x->lse[1][0] = x->lse[2][0] = -INFINITY;
    for (int p = 0; p < PARTS; ++p) {
        x->lse[p][3] = -INFINITY;
        x->out[p][3 * DV] = NAN;
    }
    SUCCEEDS(mha_merge(PARTS, ROWS, DV, x->outs, x->lses, x->merged, x->merged_lse, err));
    const float *outs[3] = {x->out[0], x->out[3], x->out[4]};
    const float *lses[3] = {x->lse[0], x->lse[3], x->lse[4]};
    float three[DV], three_lse[1];
    SUCCEEDS(mha_merge(3, 1, DV, outs, lses, three, three_lse, err));
    assert_same_bits(x->merged, three, DV);
    assert_same_bits(x->merged_lse, three_lse, 1);
    assert_true(all_are(x->merged + 3 * DV, DV, 0.0f));
    assert_true(x->merged_lse[3] == -INFINITY);
    free(x);
}

static void merge_nan_stays_in_its_row(void **state)
{
    (void)state;
    parts *x = parts_of(70), *y = parts_of(70);
    x->lse[2][4] = NAN;
    SUCCEEDS(mha_merge(PARTS, ROWS, DV, x->outs, x->lses, x->merged, x->merged_lse, err));
    SUCCEEDS(mha_merge(PARTS, ROWS, DV, y->outs, y->lses, y->merged, y->merged_lse, err));
    assert_true(isnan(x->merged_lse[4]));
    for (int row = 0; row < ROWS; ++row) {
        if (row == 4) {
            assert_true(isnan(x->merged[row * DV]));
        } else {
            assert_same_bits(x->merged + row * DV, y->merged + row * DV, DV);
        }
    }
    free(x);
    free(y);
}

static void merge_of_large_sums_does_not_overflow(void **state)
{
    (void)state;
    const float a[1] = {1}, b[1] = {3}, high[1] = {3e38f}, low[1] = {-3e38f};
    float o, lse;
    SUCCEEDS(
        mha_merge(2, 1, 1, (const float *[]){a, b}, (const float *[]){high, high}, &o, &lse, err));
    assert_true(o == 2.0f && lse == 3e38f);
    SUCCEEDS(
        mha_merge(2, 1, 1, (const float *[]){a, b}, (const float *[]){low, high}, &o, &lse, err));
    assert_true(o == 3.0f && lse == 3e38f);
}

/* The host rounds upward and wants its flags as they are: neither is seen in the other. */
static void merge_and_the_host_do_not_see_each_other(void **state)
{
    (void)state;
    parts *x = parts_of(75), *y = parts_of(75);
    SUCCEEDS(mha_merge(PARTS, ROWS, DV, x->outs, x->lses, x->merged, x->merged_lse, err));
    host_state before, after;
    host_default_floating_point();
    const int set = host_round_upward();
    host_state_read(&before);
    const int32_t status =
        mha_merge(PARTS, ROWS, DV, y->outs, y->lses, y->merged, y->merged_lse, NULL);
    host_state_read(&after);
    host_default_floating_point();
    assert_true(set);
    assert_int_equal(status, MHA_OK);
    assert_null(host_state_difference(&before, &after));
    assert_same_bits(y->merged, x->merged, ROWS * DV);
    assert_same_bits(y->merged_lse, x->merged_lse, ROWS);
    free(x);
    free(y);
}

static void merge_without_lse_or_rows(void **state)
{
    (void)state;
    parts *x = parts_of(80), *y = parts_of(80);
    SUCCEEDS(mha_merge(PARTS, ROWS, DV, x->outs, x->lses, x->merged, x->merged_lse, err));
    SUCCEEDS(mha_merge(PARTS, ROWS, DV, y->outs, y->lses, y->merged, NULL, err));
    assert_same_bits(y->merged, x->merged, ROWS * DV);
    float untouched = -7.0f;
    SUCCEEDS(mha_merge(PARTS, 0, DV, x->outs, x->lses, &untouched, &untouched, err));
    assert_true(untouched == -7.0f);
    free(x);
    free(y);
}

static void merge_refuses_bad_arguments_and_writes_nothing(void **state)
{
    (void)state;
    parts *x = parts_of(90);
    for (int i = 0; i < ROWS * DV; ++i) {
        x->merged[i] = -7.0f;
    }
    const int32_t null = MHA_ERROR_NULL_ARGUMENT;
    float *m = x->merged, *l = x->merged_lse;
    REFUSED(null, mha_merge(2, ROWS, DV, NULL, x->lses, m, l, err), "out");
    REFUSED(null, mha_merge(2, ROWS, DV, x->outs, NULL, m, l, err), "lse");
    REFUSED(null, mha_merge(2, ROWS, DV, x->outs, x->lses, NULL, l, err), "merged_out");
    const float *holes[2] = {x->out[0], NULL};
    REFUSED(null, mha_merge(2, ROWS, DV, holes, x->lses, m, l, err), "out[1]");
    REFUSED(null, mha_merge(2, ROWS, DV, x->outs, holes, m, l, err), "lse[1]");
    REFUSED(MHA_ERROR_SHAPE, mha_merge(0, ROWS, DV, x->outs, x->lses, m, l, err), "0 parts");
    REFUSED(MHA_ERROR_SHAPE, mha_merge(2, -1, DV, x->outs, x->lses, m, l, err), "-1 rows");
    REFUSED(MHA_ERROR_SHAPE, mha_merge(2, ROWS, 0, x->outs, x->lses, m, l, err), "Dv = 0");
    REFUSED(MHA_ERROR_TOO_LARGE, mha_merge(2, INT64_MAX / 8, 4, x->outs, x->lses, m, l, err), "4");
    const int32_t overlap = MHA_ERROR_OVERLAP;
    REFUSED(overlap, mha_merge(2, ROWS - 1, DV, x->outs, x->lses, x->out[1] + 1, l, err), "part 1");
    REFUSED(overlap, mha_merge(2, ROWS, DV, x->outs, x->lses, m, x->out[0] + 5, err), "part 0");
    REFUSED(overlap, mha_merge(2, ROWS - 1, DV, x->outs, x->lses, m, x->lse[1] + 1, err), "part 1");
    REFUSED(overlap, mha_merge(2, ROWS, DV, x->outs, x->lses, m, m, err), "merged");
    assert_true(all_are(x->merged, ROWS * DV, -7.0f));
    free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merge_is_the_weighted_mean_of_the_parts),
        cmocka_unit_test(merge_into_one_of_the_parts_gives_the_same_bits),
        cmocka_unit_test(merge_ignores_empty_parts_and_all_empty_is_0),
        cmocka_unit_test(merge_nan_stays_in_its_row),
        cmocka_unit_test(merge_of_large_sums_does_not_overflow),
        cmocka_unit_test(merge_and_the_host_do_not_see_each_other),
        cmocka_unit_test(merge_without_lse_or_rows),
        cmocka_unit_test(merge_refuses_bad_arguments_and_writes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
