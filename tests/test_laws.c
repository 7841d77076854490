/* SPDX-License-Identifier: Apache-2.0 */
/* What is true of every attention, without an oracle. */
#include "support/expect.h"
#include "support/oracle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Shapes on both sides of the tiles. */
static const int64_t SHAPES[][2] = {{1, 1}, {3, 5}, {64, 64}, {65, 130}, {130, 257}, {33, 300}};
enum { SHAPE_COUNT = sizeof SHAPES / sizeof *SHAPES };

static void plain(trial *p, int64_t T, int64_t S, int64_t Dv, uint64_t seed)
{
    trial_begin(p, 2, T, S, 4, 2, 24, Dv);
    trial_tensors(p, 1, 1);
    draw d = {seed};
    trial_fill(p, &d, 2.0f);
}

static void weights_of_a_row_sum_to_1(void **state)
{
    (void)state;
    for (int s = 0; s < SHAPE_COUNT; ++s) {
        trial p;
        plain(&p, SHAPES[s][0], SHAPES[s][1], 24, 1);
        SUCCEEDS(trial_forward(&p, 0, err));
        for (int64_t row = 0; row < p.B * p.H * p.T; ++row) {
            double sum = 0;
            for (int64_t j = 0; j < p.S; ++j) {
                float w = p.weights.data[row * p.S + j];
                assert_true(w >= 0 && w <= 1);
                sum += (double)w;
            }
            assert_close(sum, 1, 1e-6 * sqrt((double)p.S));
        }
        trial_end(&p);
    }
}

/* The result is weights times values, and the weights are exp(score - lse). */
static void output_is_what_the_weights_say(void **state)
{
    (void)state;
    trial p;
    plain(&p, 65, 130, 24, 2);
    SUCCEEDS(trial_forward(&p, 0, err));
    for (int64_t b = 0; b < p.B; ++b) {
        for (int64_t h = 0; h < p.H; ++h) {
            for (int64_t i = 0; i < p.T; ++i) {
                for (int64_t d = 0; d < p.Dv; ++d) {
                    double sum = 0;
                    for (int64_t j = 0; j < p.S; ++j) {
                        sum += (double)*tensor_at(&p.weights, b, h, i, j) *
                               (double)*tensor_feature(&p.value, b, j, h / 2 * p.Dv + d);
                    }
                    assert_close(*tensor_feature(&p.output, b, i, h * p.Dv + d), sum, 2e-5);
                }
            }
        }
    }
    trial_end(&p);
}

/*
 * A constant added to every score of a row: here by one more feature, 1 in every key and c_i in
 * query i, with the scale kept. Weights and result stay within the bound; the log-sum-exp grows by
 * c_i.
 */
static void a_constant_added_to_the_scores_of_a_row_changes_only_its_lse(void **state)
{
    (void)state;
    trial p, q;
    trial_begin(&p, 1, 70, 90, 1, 1, 16, 16);
    p.scale_is_set = 1;
    p.scale = 1.0f;
    trial_tensors(&p, 1, 1);
    draw d = {3};
    trial_fill(&p, &d, 0.7f);
    trial_begin(&q, 1, 70, 90, 1, 1, 17, 16);
    q.scale_is_set = 1;
    q.scale = 1.0f;
    trial_tensors(&q, 1, 1);
    for (int64_t i = 0; i < 70; ++i) {
        memcpy(q.query.data + i * 17, p.query.data + i * 16, 16 * sizeof(float));
        q.query.data[i * 17 + 16] = (float)(i - 35); /* -35 .. 34 */
    }
    for (int64_t j = 0; j < 90; ++j) {
        memcpy(q.key.data + j * 17, p.key.data + j * 16, 16 * sizeof(float));
        q.key.data[j * 17 + 16] = 1.0f;
    }
    memcpy(q.value.data, p.value.data, 90 * 16 * sizeof(float));
    SUCCEEDS(trial_forward(&p, 0, err));
    SUCCEEDS(trial_forward(&q, 0, err));
    const double bound = 2 * 8 * 0x1p-24 * (35 + 16 * 0.5 + 7 + 4);
    for (int64_t i = 0; i < 70; ++i) {
        assert_close(q.lse.data[i] - p.lse.data[i], (double)(i - 35), bound);
        for (int64_t c = 0; c < 16; ++c) {
            assert_close(q.output.data[i * 16 + c], p.output.data[i * 16 + c], bound);
        }
        for (int64_t j = 0; j < 90; ++j) {
            assert_close(q.weights.data[i * 90 + j], p.weights.data[i * 90 + j], bound);
        }
    }
    trial_end(&p);
    trial_end(&q);
}

static void permuting_keys_with_their_values_permutes_the_weights_and_keeps_the_result(void **state)
{
    (void)state;
    trial p, q;
    plain(&p, 40, 131, 24, 4);
    plain(&q, 40, 131, 24, 4);
    for (int64_t b = 0; b < p.B; ++b) {
        for (int64_t j = 0; j < p.S; ++j) {
            int64_t to = j * 50 % p.S; /* 50 and 131 share no factor */
            memcpy(tensor_feature(&q.key, b, to, 0), tensor_feature(&p.key, b, j, 0),
                   (size_t)p.Ek * sizeof(float));
            memcpy(tensor_feature(&q.value, b, to, 0), tensor_feature(&p.value, b, j, 0),
                   (size_t)p.Ev * sizeof(float));
        }
    }
    SUCCEEDS(trial_forward(&p, 0, err));
    SUCCEEDS(trial_forward(&q, 0, err));
    oracle r;
    oracle_run(&p, &r);
    for (int64_t i = 0; i < tensor_elements(&p.output); ++i) {
        assert_close(p.output.data[i], q.output.data[i], 2 * r.output_bound[i]);
    }
    for (int64_t row = 0; row < p.B * p.H * p.T; ++row) {
        for (int64_t j = 0; j < p.S; ++j) {
            assert_close(p.weights.data[row * p.S + j], q.weights.data[row * p.S + j * 50 % p.S],
                         2 * r.weights_bound[row * p.S + j]);
        }
    }
    oracle_end(&r);
    trial_end(&p);
    trial_end(&q);
}

static void equal_values_come_back(void **state)
{
    (void)state;
    for (int s = 0; s < SHAPE_COUNT; ++s) {
        trial p;
        plain(&p, SHAPES[s][0], SHAPES[s][1], 24, 5);
        for (int64_t b = 0; b < p.B; ++b) {
            for (int64_t j = 0; j < p.S; ++j) {
                for (int64_t c = 0; c < p.Ev; ++c) {
                    *tensor_feature(&p.value, b, j, c) = 3.0f + (float)c;
                }
            }
        }
        SUCCEEDS(trial_forward(&p, 0, err));
        for (int64_t b = 0; b < p.B; ++b) {
            for (int64_t i = 0; i < p.T; ++i) {
                for (int64_t h = 0; h < p.H; ++h) {
                    for (int64_t d = 0; d < p.Dv; ++d) {
                        float same = 3.0f + (float)(h / 2 * p.Dv + d);
                        assert_close(*tensor_feature(&p.output, b, i, h * p.Dv + d), same,
                                     1e-6 * sqrt((double)p.S) * (double)same);
                    }
                }
            }
        }
        trial_end(&p);
    }
}

/*
 * Causal: with NaN in keys and values from token n on, rows before n keep their bits, the others
 * have NaN.
 */
static void a_later_key_never_reaches_an_earlier_row(void **state)
{
    (void)state;
    enum { T = 150 };
    static const int64_t cuts[] = {1, 31, 64, 65, 100, 128, 149};
    trial p;
    plain(&p, T, T, 24, 6);
    p.causal = 1;
    SUCCEEDS(trial_forward(&p, 0, err));
    for (int c = 0; c < 7; ++c) {
        for (int which = 0; which < 2; ++which) {
            trial q;
            plain(&q, T, T, 24, 6);
            q.causal = 1;
            tensor *poisoned = which ? &q.key : &q.value;
            for (int64_t b = 0; b < q.B; ++b) {
                for (int64_t j = cuts[c]; j < T; ++j) {
                    for (int64_t e = 0; e < q.Ek; ++e) {
                        *tensor_feature(poisoned, b, j, e) = NAN;
                    }
                }
            }
            SUCCEEDS(trial_forward(&q, 0, err));
            for (int64_t b = 0; b < q.B; ++b) {
                float *row = tensor_feature(&q.output, b, 0, 0);
                assert_same_bits(row, tensor_feature(&p.output, b, 0, 0), cuts[c] * q.Eo);
                for (int64_t i = cuts[c] * q.Eo; i < T * q.Eo; ++i) {
                    assert_true(isnan(row[i]));
                }
            }
            trial_end(&q);
        }
    }
    trial_end(&p);
}

/* What stands in the other batch rows, NaN included, moves no bit of a row. */
static void a_batch_row_does_not_depend_on_the_others(void **state)
{
    (void)state;
    trial p, q;
    for (int32_t projected = 0; projected < 2; ++projected) {
        trial *const both[2] = {&p, &q};
        for (int t = 0; t < 2; ++t) {
            trial_begin(both[t], 3, 20, 70, 4, 2, 16, 16);
            for (int32_t side = 0; projected && side < 4; ++side) {
                trial_project(both[t], side, 40, 1);
            }
            trial_tensors(both[t], 1, 1);
            draw d = {7};
            trial_fill(both[t], &d, 1.0f);
        }
        SUCCEEDS(trial_forward(&p, 0, err));
        for (int64_t other = 0; other < 3; other += 2) {
            int64_t numbers = q.T * q.Eq;
            for (int64_t i = 0; i < numbers; ++i) {
                q.query.data[other * numbers + i] = i % 3 ? NAN : INFINITY;
            }
            numbers = q.S * q.Ek;
            for (int64_t i = 0; i < numbers; ++i) {
                q.key.data[other * numbers + i] = -1e30f;
                q.value.data[other * numbers + i] = NAN;
            }
        }
        SUCCEEDS(trial_forward(&q, 0, err));
        assert_same_bits(q.output.data + q.T * q.Eo, p.output.data + q.T * q.Eo, q.T * q.Eo);
        const int64_t pairs = q.H * q.T * q.S, rows = q.H * q.T;
        assert_same_bits(q.weights.data + pairs, p.weights.data + pairs, pairs);
        assert_same_bits(q.lse.data + rows, p.lse.data + rows, rows);
        trial_end(&p);
        trial_end(&q);
    }
}

static void scores_near_90_do_not_overflow(void **state)
{
    (void)state;
    trial p;
    trial_begin(&p, 1, 33, 130, 1, 1, 1, 8);
    trial_tensors(&p, 1, 1);
    draw d = {8};
    trial_fill(&p, &d, 1.0f);
    tensor_flood(&p.query, 1.0f);
    draw_fill(&d, p.key.data, 130, 90.0f, 100.0f);
    SUCCEEDS(trial_forward(&p, 0, err));
    oracle r;
    oracle_run(&p, &r);
    assert_true(oracle_compare(&p, &r) <= 1);
    oracle_end(&r);
    trial_end(&p);
}

/*
 * NaN or infinity in a value reaches the rows that see its key, with that feature, and nothing
 * else.
 */
static void a_value_that_is_not_finite_reaches_just_the_rows_that_see_it(void **state)
{
    (void)state;
    enum { T = 40, S = 140, SEEN = 70, FEATURE = 3 };
    static const float bad[3] = {NAN, INFINITY, -INFINITY};
    for (int kind = 0; kind < 3; ++kind) {
        trial p, q;
        trial *const both[2] = {&p, &q};
        for (int t = 0; t < 2; ++t) {
            trial_begin(both[t], 1, T, S, 1, 1, 8, 8);
            boolean_mask *m = trial_add_mask(both[t], MASK_QUERY_KEY, 1, 1, T, S);
            memset(m->bytes, 1, T * S);
            for (int64_t i = 0; i < T; i += 3) {
                m->bytes[i * S + SEEN] = 0; /* every third row does not see it */
            }
            trial_tensors(both[t], 0, 1);
            draw d = {9};
            trial_fill(both[t], &d, 1.0f);
        }
        *tensor_feature(&q.value, 0, SEEN, FEATURE) = bad[kind];
        SUCCEEDS(trial_forward(&p, 0, err));
        SUCCEEDS(trial_forward(&q, 0, err));
        for (int64_t i = 0; i < T; ++i) {
            const float *row = tensor_feature(&q.output, 0, i, 0);
            const float *clean = tensor_feature(&p.output, 0, i, 0);
            if (i % 3 == 0) {
                assert_same_bits(row, clean, 8);
                continue;
            }
            for (int64_t c = 0; c < 8; ++c) {
                if (c == FEATURE) {
                    assert_true(kind == 0 ? isnan(row[c]) : row[c] == bad[kind]);
                } else {
                    assert_close(row[c], clean[c], 1e-5);
                }
            }
        }
        assert_same_bits(q.lse.data, p.lse.data, T);
        trial_end(&p);
        trial_end(&q);
    }
}

/* A NaN query, or a NaN key that is seen, poisons its rows and no others. */
static void a_score_that_is_not_a_number_stays_in_its_row_and_head(void **state)
{
    (void)state;
    trial p, q;
    plain(&p, 66, 70, 24, 10);
    plain(&q, 66, 70, 24, 10);
    *tensor_feature(&q.query, 0, 5, 1 * 24 + 2) = NAN; /* batch row 0, query 5, head 1 */
    SUCCEEDS(trial_forward(&p, 0, err));
    SUCCEEDS(trial_forward(&q, 0, err));
    for (int64_t b = 0; b < q.B; ++b) {
        for (int64_t i = 0; i < q.T; ++i) {
            for (int64_t h = 0; h < q.H; ++h) {
                const float *row = tensor_feature(&q.output, b, i, h * q.Dv);
                if (b == 0 && i == 5 && h == 1) {
                    for (int64_t c = 0; c < q.Dv; ++c) {
                        assert_true(isnan(row[c]));
                    }
                    assert_true(isnan(*tensor_at(&q.lse, b, h, i, 0)));
                } else {
                    assert_same_bits(row, tensor_feature(&p.output, b, i, h * q.Dv), q.Dv);
                }
            }
        }
    }
    trial_end(&p);
    trial_end(&q);
}

/* p = allowed ? exp(s - m) / sum : 0: NaN where the row may look, 0 where it may not. */
static void
weights_of_a_row_that_is_not_a_number_are_nan_where_it_sees_and_0_where_not(void **state)
{
    (void)state;
    enum { ROW = 20, T = 70, S = 300 };
    /* every score of the row NaN; one score +infinity, in the first, the second and the last tile */
    static const int64_t infinite[4] = {-1, 3, 130, 249};
    for (int kind = 0; kind < 4; ++kind) {
        trial p;
        trial_begin(&p, 1, T, S, 1, 1, 4, 4);
        boolean_mask *m = trial_add_mask(&p, MASK_KEY, 1, 1, 1, S);
        draw d = {13};
        draw_booleans(&d, m->bytes, S, 0.7);
        p.causal = 1;
        p.alignment = MHA_ALIGNMENT_BOTTOM_RIGHT;
        trial_tensors(&p, 1, 1);
        trial_fill(&p, &d, 1.0f);
        for (int64_t i = 0; i < T; ++i) {
            *tensor_feature(&p.query, 0, i, 0) = i != ROW ? 0.0f : kind == 0 ? NAN : 1e30f;
        }
        for (int64_t j = 0; j < S; ++j) {
            *tensor_feature(&p.key, 0, j, 0) = j == infinite[kind] ? 1e30f : 0.0f;
        }
        m->bytes[infinite[kind] < 0 ? 0 : infinite[kind]] = 1;
        SUCCEEDS(trial_forward(&p, 0, err));
        for (int64_t i = 0; i < T; ++i) {
            for (int64_t j = 0; j < S; ++j) {
                float w = *tensor_at(&p.weights, 0, 0, i, j);
                if (!trial_allowed(&p, 0, 0, i, j)) {
                    assert_true(w == 0);
                } else {
                    assert_int_equal(isnan(w) != 0, i == ROW);
                }
            }
        }
        trial_end(&p);
    }
}

/* Keys attended to in two disjoint parts and merged by their log-sum-exp: the whole. */
static void parts_over_disjoint_keys_merge_to_the_whole(void **state)
{
    (void)state;
    trial whole, part[2];
    plain(&whole, 30, 100, 24, 11);
    SUCCEEDS(trial_forward(&whole, 0, err));
    for (int half = 0; half < 2; ++half) {
        plain(&part[half], 30, 100, 24, 11);
        boolean_mask *m = trial_add_mask(&part[half], MASK_KEY, 1, 1, 1, 100);
        for (int64_t j = 0; j < 100; ++j) {
            m->bytes[j] = (j % 3 == 0) == half;
        }
        SUCCEEDS(trial_forward(&part[half], 0, err));
    }
    for (int64_t b = 0; b < whole.B; ++b) {
        for (int64_t h = 0; h < whole.H; ++h) {
            for (int64_t i = 0; i < whole.T; ++i) {
                double l0 = (double)*tensor_at(&part[0].lse, b, h, i, 0);
                double l1 = (double)*tensor_at(&part[1].lse, b, h, i, 0);
                double m = fmax(l0, l1), w0 = exp(l0 - m), w1 = exp(l1 - m);
                assert_close(*tensor_at(&whole.lse, b, h, i, 0), m + log(w0 + w1), 2e-5);
                for (int64_t c = h * 24; c < h * 24 + 24; ++c) {
                    double o = (w0 * (double)*tensor_feature(&part[0].output, b, i, c) +
                                w1 * (double)*tensor_feature(&part[1].output, b, i, c)) /
                               (w0 + w1);
                    assert_close(*tensor_feature(&whole.output, b, i, c), o, 2e-5);
                }
            }
        }
    }
    trial_end(&whole);
    trial_end(&part[0]);
    trial_end(&part[1]);
}

/* Asking for weights and log-sum-exp never changes the result beyond rounding. */
static void asking_for_more_outputs_keeps_the_result(void **state)
{
    (void)state;
    for (int s = 0; s < SHAPE_COUNT; ++s) {
        trial more, less;
        plain(&more, SHAPES[s][0], SHAPES[s][1], 20, 12);
        plain(&less, SHAPES[s][0], SHAPES[s][1], 20, 12);
        tensor_destroy(&less.weights);
        tensor_destroy(&less.lse);
        SUCCEEDS(trial_forward(&more, 0, err));
        SUCCEEDS(trial_forward(&less, 0, err));
        oracle r;
        oracle_run(&more, &r);
        for (int64_t i = 0; i < tensor_elements(&more.output); ++i) {
            assert_close(more.output.data[i], less.output.data[i], 2 * r.output_bound[i]);
        }
        oracle_end(&r);
        trial_end(&more);
        trial_end(&less);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_of_a_row_sum_to_1),
        cmocka_unit_test(output_is_what_the_weights_say),
        cmocka_unit_test(a_constant_added_to_the_scores_of_a_row_changes_only_its_lse),
        cmocka_unit_test(
            permuting_keys_with_their_values_permutes_the_weights_and_keeps_the_result),
        cmocka_unit_test(equal_values_come_back),
        cmocka_unit_test(a_later_key_never_reaches_an_earlier_row),
        cmocka_unit_test(a_batch_row_does_not_depend_on_the_others),
        cmocka_unit_test(scores_near_90_do_not_overflow),
        cmocka_unit_test(a_value_that_is_not_finite_reaches_just_the_rows_that_see_it),
        cmocka_unit_test(a_score_that_is_not_a_number_stays_in_its_row_and_head),
        cmocka_unit_test(
            weights_of_a_row_that_is_not_a_number_are_nan_where_it_sees_and_0_where_not),
        cmocka_unit_test(parts_over_disjoint_keys_merge_to_the_whole),
        cmocka_unit_test(asking_for_more_outputs_keeps_the_result),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
