/* SPDX-License-Identifier: Apache-2.0 */
/* Few queries over keys and values in place: the same answers as over packed ones, chunk by chunk. */
#include "support/expect.h"
#include "support/oracle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Long enough for several chunks of keys, of which the last is short. */
enum { LONG = 1900, CHUNK = 512 };

/* [B, S, G, size] with every key-value head by itself, as caches of keys lie. */
static void head_major(tensor *t, int64_t B, int64_t S, int64_t G, int64_t size)
{
    const int64_t shape[] = {B, S, G, size};
    const int64_t strides[] = {G * S * size, size, S * size, 1};
    tensor_create(t, 4, shape, strides);
}

static void
begin(trial *p, int64_t T, int64_t S, int64_t H, int64_t G, int64_t D, int64_t Dv, int by_heads)
{
    trial_begin(p, 2, T, S, H, G, D, Dv);
    if (by_heads) {
        head_major(&p->key, 2, S, G, D);
        head_major(&p->value, 2, S, G, Dv);
    }
}

static void fill(trial *p, int weights, uint64_t seed)
{
    trial_tensors(p, weights, 1);
    trial_ask(p, MHA_TENSOR_ENTROPY);
    trial_ask(p, MHA_TENSOR_MAXIMUM);
    draw d = {seed};
    trial_fill(p, &d, 1.0f);
}

static void expect_oracle(trial *p, oracle *r)
{
    SUCCEEDS(trial_forward(p, 0, err));
    oracle_run(p, r);
    assert_true(oracle_compare(p, r) <= 1);
}

/* The weights ask for the packed path: both answers are within the bound, so they differ by twice of it. */
static void few_queries_equal_the_packed_path_within_the_bound(void **state)
{
    (void)state;
    static const int64_t shapes[][6] = {
        // T, S, H, G, D, Dv
        {1, LONG, 4, 4, 64, 64}, {1, LONG, 8, 1, 64, 64}, {3, LONG, 8, 2, 33, 20},
        {5, 700, 6, 3, 80, 100}, {7, 300, 12, 2, 16, 16}, {40, 200, 2, 2, 24, 130},
        {1, 1, 2, 2, 3, 5},      {2, 63, 1, 1, 1, 1},
    };
    for (size_t n = 0; n < sizeof shapes / sizeof *shapes; n++) {
        for (int by_heads = 0; by_heads < 2; by_heads++) {
            const int64_t *s = shapes[n];
            trial direct;
            trial packed;
            oracle r;
            begin(&direct, s[0], s[1], s[2], s[3], s[4], s[5], by_heads);
            begin(&packed, s[0], s[1], s[2], s[3], s[4], s[5], by_heads);
            fill(&direct, 0, n + 1);
            fill(&packed, 1, n + 1);
            assert_true(trial_is_direct(&direct));
            SUCCEEDS(trial_forward(&packed, 0, err));
            expect_oracle(&direct, &r);
            for (int64_t i = 0; i < tensor_elements(&direct.output); i++) {
                assert_close(*tensor_element(&direct.output, i), *tensor_element(&packed.output, i),
                             2 * r.output_bound[i]);
            }
            for (int64_t i = 0; i < tensor_elements(&direct.lse); i++) {
                assert_close(*tensor_element(&direct.lse, i), *tensor_element(&packed.lse, i),
                             2 * r.lse_bound[i]);
            }
            oracle_end(&r);
            trial_end(&direct);
            trial_end(&packed);
        }
    }
}

/* Projected keys and values end as rows, not as tiles. */
static void a_layer_of_few_tokens_projects_keys_and_values_into_rows(void **state)
{
    (void)state;
    for (int32_t sides = 1; sides < 16; sides++) {
        trial p;
        oracle r;
        trial_begin(&p, 2, 3, 600, 4, 2, 16, 24);
        for (int32_t side = 0; side < 4; side++) {
            if (sides >> side & 1) {
                trial_project(&p, side, 40, 1);
            }
        }
        fill(&p, 0, (uint64_t)sides);
        assert_true(trial_is_direct(&p));
        expect_oracle(&p, &r);
        oracle_end(&r);
        trial_end(&p);
    }
}

/* Heads of one group see different keys: whole chunks, parts of tiles, nothing. */
static void heads_of_a_group_may_see_different_keys(void **state)
{
    (void)state;
    trial p;
    oracle r;
    trial_begin(&p, 2, 2, LONG, 6, 2, 32, 32);
    p.alignment = MHA_ALIGNMENT_BOTTOM_RIGHT;
    p.head_windows_are_set = 1;
    for (int h = 0; h < 6; h++) {
        p.head_left[h] = h % 3 == 0 || h == 4 ? -1 : h == 1 ? 5 : 700;
        p.head_right[h] = h == 5 ? 0 : -1;
    }
    p.key_batch = 2;
    p.key_lengths[0] = 3; // bottom-right: the rows of the windows stand near the end
    p.key_lengths[1] = LONG - 77;
    boolean_mask *mask = trial_add_mask(&p, MASK_FULL, 1, 6, 1, LONG);
    draw d = {3};
    draw_booleans(&d, mask->bytes, 6 * LONG, 0.5);
    memset(mask->bytes + 2 * LONG, 0, LONG);             // head 2 sees nothing
    memset(mask->bytes + 3 * LONG + 100, 0, LONG - 100); // head 3 a part of the first tile
    fill(&p, 0, 4);
    assert_true(trial_is_direct(&p));
    expect_oracle(&p, &r);
    for (int64_t c = 0; c < 32; c++) {
        assert_true(*tensor_feature(&p.output, 0, 0, 2 * 32 + c) == 0.0f);
    }
    oracle_end(&r);
    trial_end(&p);
}

/* A value that is not finite reaches the rows that may see it; where it is hidden no bit changes. */
static void values_that_are_not_finite_reach_who_may_see_them_and_no_other(void **state)
{
    (void)state;
    static const int64_t at[] = {0, 5, CHUNK - 1, CHUNK, 2 * CHUNK + 3, LONG - 1};
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    for (int by_heads = 0; by_heads < 2; by_heads++) {
        for (int n = 0; n < 6; n++) {
            trial clean;
            trial dirty;
            trial *const both[] = {&clean, &dirty};
            for (int t = 0; t < 2; t++) {
                begin(both[t], 2, LONG, 4, 2, 16, 20, by_heads);
                boolean_mask *mask = trial_add_mask(both[t], MASK_FULL, 1, 4, 2, LONG);
                memset(mask->bytes, 1, 4 * 2 * LONG);
                mask->bytes[(1 * 2 + 0) * LONG + at[n]] = 0; // head 1, query 0
                mask->bytes[(2 * 2 + 0) * LONG + at[n]] = 0; // group 1: nobody
                mask->bytes[(2 * 2 + 1) * LONG + at[n]] = 0;
                mask->bytes[(3 * 2 + 0) * LONG + at[n]] = 0;
                mask->bytes[(3 * 2 + 1) * LONG + at[n]] = 0;
                fill(both[t], 0, 5);
            }
            assert_true(trial_is_direct(&dirty));
            for (int64_t g = 0; g < 2; g++) {
                *tensor_feature(&dirty.value, 0, at[n], g * 20 + 7) = bad[n % 3];
            }
            SUCCEEDS(trial_forward(&clean, 2, err));
            SUCCEEDS(trial_forward(&dirty, 2, err));
            for (int64_t i = 0; i < tensor_elements(&clean.output); i++) {
                const float got = *tensor_element(&dirty.output, i);
                const int64_t c = i % 80;
                const int64_t query = i / 80 % 2;
                const int sees = i < 2 * 80 && (c == 7 || (c == 27 && query == 1));
                if (!sees) {
                    assert_same_bits(&got, tensor_element(&clean.output, i), 1);
                } else if (n % 3 == 0) {
                    assert_true(isnan(got));
                } else {
                    assert_true(got == bad[n % 3]); // p is above 0 there
                }
            }
            trial_end(&clean);
            trial_end(&dirty);
        }
    }
}

/* A weight that underflowed to 0 does not hide: 0 times infinity is not computed, as with packed values. */
static void an_infinite_value_of_vanishing_weight_is_seen_as_in_the_packed_path(void **state)
{
    (void)state;
    for (int weights = 0; weights < 2; weights++) {
        trial p;
        trial_begin(&p, 1, 1, 1200, 1, 1, 1, 2);
        fill(&p, weights, 6);
        tensor_flood(&p.key, 0.0f);
        *tensor_feature(&p.query, 0, 0, 0) = 1.0f;
        *tensor_feature(&p.key, 0, 10, 0) = 1000.0f;
        *tensor_feature(&p.value, 0, 700, 1) = INFINITY;
        assert_true(trial_is_direct(&p));
        SUCCEEDS(trial_forward(&p, 1, err));
        assert_true(p.output.data[1] == INFINITY);
        assert_same_bits(p.output.data, tensor_feature(&p.value, 0, 10, 0), 1);
        trial_end(&p);
    }
}

/* NaN and infinite scores stay in their row, whichever chunk they come from. */
static void a_bad_score_spoils_its_row_alone(void **state)
{
    (void)state;
    static const float bad[] = {NAN, INFINITY};
    for (int n = 0; n < 2; n++) {
        trial clean;
        trial dirty;
        trial *const both[] = {&clean, &dirty};
        for (int t = 0; t < 2; t++) {
            trial_begin(both[t], 1, 2, LONG, 2, 1, 8, 8);
            const int64_t shape[] = {1, 2, 2, LONG};
            tensor *bias = trial_add_bias(both[t], shape, NULL);
            fill(both[t], 0, 7);
            if (t == 1) {
                *tensor_at(bias, 0, 1, 0, CHUNK + 9) = bad[n]; // head 1, query 0
            }
        }
        assert_true(trial_is_direct(&dirty));
        SUCCEEDS(trial_forward(&clean, 1, err));
        SUCCEEDS(trial_forward(&dirty, 1, err));
        for (int64_t i = 0; i < tensor_elements(&clean.output); i++) {
            const float got = *tensor_element(&dirty.output, i);
            if (i >= 8 && i < 16) {
                assert_true(isnan(got));
            } else {
                assert_same_bits(&got, tensor_element(&clean.output, i), 1);
            }
        }
        trial_end(&clean);
        trial_end(&dirty);
    }
}

/* A chunk in which all scores are small weighs little, a later one with the maximum all. */
static void chunks_are_merged_by_their_maxima(void **state)
{
    (void)state;
    for (int64_t peak = 3; peak < LONG; peak += 311) {
        trial p;
        oracle r;
        trial_begin(&p, 1, 1, LONG, 2, 1, 4, 6);
        const int64_t shape[] = {1, 1, 1, LONG};
        tensor *bias = trial_add_bias(&p, shape, NULL);
        fill(&p, 0, 8);
        for (int64_t j = 0; j < LONG; j++) {
            *tensor_at(bias, 0, 0, 0, j) = -(float)llabs(j - peak);
        }
        assert_true(trial_is_direct(&p));
        expect_oracle(&p, &r);
        oracle_end(&r);
        trial_end(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_queries_equal_the_packed_path_within_the_bound),
        cmocka_unit_test(a_layer_of_few_tokens_projects_keys_and_values_into_rows),
        cmocka_unit_test(heads_of_a_group_may_see_different_keys),
        cmocka_unit_test(values_that_are_not_finite_reach_who_may_see_them_and_no_other),
        cmocka_unit_test(an_infinite_value_of_vanishing_weight_is_seen_as_in_the_packed_path),
        cmocka_unit_test(a_bad_score_spoils_its_row_alone),
        cmocka_unit_test(chunks_are_merged_by_their_maxima),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
