/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults that users of other libraries met, and the right answer. The entries of data/cases.json, each
 * through mha_forward and mha_reference_forward, then what an entry cannot say. (More of them, by the same
 * names, in test_edges.c.)
 */
#include "support/case_file.h"
#include "support/expect.h"
#include "support/oracle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static json_t *cases;

/*
 * abs(got - expected) <= tolerance * max(1, abs(expected)); what is not finite has to be that
 * itself.
 */
static int close_enough(double got, double expected, double tolerance)
{
    if (isnan(expected)) {
        return isnan(got);
    }
    if (isinf(expected)) {
        return got == expected;
    }
    return fabs(got - expected) <= tolerance * fmax(1, fabs(expected));
}

/* Returns how many numbers are wrong; an entry without the field asserts nothing. */
static int compare(const json_t *entry, const char *field, const char *of, const tensor *got)
{
    double *expected = NULL;
    int64_t count = case_file_numbers(entry, field, &expected);
    int wrong = 0;
    if (count < 0) {
        return 0;
    }
    wrong += count != tensor_elements(got);
    for (int64_t i = 0; !wrong && i < count; ++i) {
        double x = (double)*tensor_element(got, i);
        if (!close_enough(x, expected[i], case_file_tolerance(entry, of))) {
            print_error("%s: %s[%lld] is %.9g, expected %.9g\n",
                        json_string_value(json_object_get(entry, "id")), field, (long long)i, x,
                        expected[i]);
            wrong += 1;
        }
    }
    free(expected);
    return wrong;
}

/* Whatever the tolerance: hidden weights and the result of rows that see nothing are exactly 0. */
static int compare_exact_zeros(const json_t *entry, const trial *p)
{
    int wrong = 0, projected = p->projection[MHA_PROJECTION_OUT];
    for (int64_t b = 0; b < p->B; ++b) {
        for (int64_t i = 0; i < p->T; ++i) {
            for (int64_t h = 0; h < p->H; ++h) {
                int seen = 0;
                for (int64_t j = 0; j < p->S; ++j) {
                    int allowed = trial_allowed(p, b, h, i, j);
                    seen |= allowed;
                    wrong += !allowed && *tensor_at(&p->weights, b, h, i, j) != 0;
                }
                for (int64_t d = 0; !seen && !projected && d < p->Dv; ++d) {
                    wrong += *tensor_feature(&p->output, b, i, h * p->Dv + d) != 0;
                }
                wrong += !seen && *tensor_at(&p->lse, b, h, i, 0) != -INFINITY;
            }
        }
    }
    if (wrong) {
        print_error("%s: something hidden is not exactly 0\n",
                    json_string_value(json_object_get(entry, "id")));
    }
    return wrong;
}

/* Everything that an entry expects of the tensors of a run. */
static int wrong_in(const json_t *entry, const trial *p)
{
    return compare(entry, "expected_output", "output", &p->output) +
           compare(entry, "expected_weights", "weights", &p->weights) +
           compare(entry, "expected_lse", "lse", &p->lse) +
           compare(entry, "expected_weights_mean", "weights", &p->result[0]) +
           compare(entry, "expected_weights_after_dropout", "weights", &p->result[1]) +
           compare_exact_zeros(entry, p);
}

static int wrong_numbers(const json_t *entry)
{
    trial p, exact, alone;
    case_file_trial(entry, &p);
    SUCCEEDS(trial_forward(&p, 0, err));
    int wrong = wrong_in(entry, &p);
    trial_end(&p);

    case_file_trial(entry, &exact);
    SUCCEEDS(trial_reference(&exact, err));
    wrong += wrong_in(entry, &exact);
    trial_end(&exact);

    /* the result is the same when it is all that is asked for */
    case_file_trial(entry, &alone);
    tensor_destroy(&alone.weights);
    tensor_destroy(&alone.lse);
    tensor_destroy(&alone.result[0]);
    tensor_destroy(&alone.result[1]);
    SUCCEEDS(trial_forward(&alone, 0, err));
    wrong += compare(entry, "expected_output", "output", &alone.output);
    trial_end(&alone);
    return wrong;
}

/* The entries of one case, and how many there are: a change of the file changes it. */
typedef struct data_case {
    const char *name; /* begins with the id */
    int entries;
} data_case;

static const data_case DATA[] = {
    {"M01_a_fully_masked_row_is_zero_and_the_others_as_without_it", 4},
    {"M05_an_infinite_or_nan_bias_in_a_hidden_cell_changes_nothing", 2},
    {"M06_any_byte_that_is_not_zero_lets_a_key_be_seen", 6},
    {"M07_a_float_padding_mask_is_added_not_taken_for_a_boolean", 3},
    {"M12_window_and_lengths_apply_without_a_mask_array", 3},
    {"M14_one_head_that_sees_nothing_is_zero", 1},
    {"N01_equal_scores_of_any_size_give_the_mean", 2},
    {"N03_an_infinite_score_is_nan_in_its_row_only", 2},
    {"N04_softcap_saturates_at_its_cap", 2},
    {"N09_the_tail_of_a_vector_has_the_same_exp", 2},
    {"A01_causal_with_T_not_S_follows_its_alignment", 4},
    {"A02_a_single_token_sees_all_by_bottom_right_and_one_by_top_left", 3},
    {"A04_a_window_does_not_count_the_token_itself", 8},
    {"A05_empty_dimensions_succeed", 4},
    {"A06_a_fully_masked_row_of_a_layer_is_the_output_bias", 1},
    {"A08_padding_of_one_sequence_changes_no_other", 1},
    {"W02_mean_of_the_weights_over_heads", 1},
    {"W03_dropout_divides_what_it_keeps_by_1_minus_p", 2},
    {"W04_dropout_of_1_gives_zeros", 1},
    {"W06_weights_come_before_dropout_unless_asked_for_after_it", 1},
    {"S06_key_and_value_widths_of_their_own", 1},
    {"S07_query_heads_read_their_key_value_head_in_blocks", 1},
    {"S09_scale_is_of_the_head_size_and_0_is_a_number", 3},
    {"G01_forward_of_a_fully_masked_row", 2},
    {"G03_forward_of_grouped_heads", 1},
    {"G05_forward_of_a_broadcast_bias", 1},
    {"G09_forward_of_keys_that_no_query_sees", 2},
    {"K05_rotary_positions_in_both_pairings", 2},
    {"K07_alibi_slopes_where_H_is_no_power_of_two", 4},
    {"K08_alibi_counts_from_the_stored_tokens", 1},
    {"L01_rows_of_the_packed_projection_are_q_k_v", 1},
    {"L02_weights_are_out_in", 4},
};
enum { DATA_CASES = sizeof DATA / sizeof *DATA };

static int is_of(const json_t *entry, const data_case *c)
{
    return strncmp(json_string_value(json_object_get(entry, "id")), c->name, 3) == 0;
}

static void entries_give_the_expected_numbers(void **state)
{
    const data_case *c = *state;
    const size_t count = json_array_size(cases);
    int run = 0, failed = 0;
    for (size_t n = 0; n < count; ++n) {
        const json_t *entry = json_array_get(cases, n);
        if (is_of(entry, c)) {
            failed += wrong_numbers(entry) != 0;
            ++run;
        }
    }
    assert_int_equal(failed, 0);
    assert_int_equal(run, c->entries);
}

static void every_entry_belongs_to_a_test(void **state)
{
    (void)state;
    size_t entries = 0;
    for (int n = 0; n < DATA_CASES; ++n) {
        entries += (size_t)DATA[n].entries;
    }
    assert_int_equal(entries, json_array_size(cases));
}

/* ---- what an entry cannot say ---- */

/* B = 1, one head of one feature, queries of 0 and the values 1, 2, 4 ...: plain means. */
static void mean_trial(trial *p, int64_t T, int64_t S)
{
    draw d = {1};
    trial_begin(p, 1, T, S, 1, 1, 1, 1);
    trial_tensors(p, 1, 1);
    trial_fill(p, &d, 1.0f);
    tensor_flood(&p->query, 0);
    for (int64_t j = 0; j < S; ++j) {
        p->value.data[j] = ldexpf(1.0f, (int)j);
    }
}

static void M06_bytes_of_2_and_255_let_a_key_be_seen(void **state)
{
    (void)state;
    const uint8_t bytes[2][3] = {{2, 0, 0}, {255, 0, 0}};
    for (int n = 0; n < 2; ++n) {
        for (int inverted = 0; inverted < 2; ++inverted) {
            trial p;
            mean_trial(&p, 3, 3);
            boolean_mask *m = trial_add_mask(&p, MASK_QUERY_KEY, 1, 1, 1, 3);
            memcpy(m->bytes, bytes[n], 3);
            m->flags = inverted ? MHA_MASK_INVERTED : 0;
            SUCCEEDS(trial_forward(&p, 0, err));
            for (int64_t i = 0; i < 3; ++i) {
                assert_close(p.output.data[i], inverted ? 3.0 : 1.0, 1e-6);
            }
            trial_end(&p);
        }
    }
}

static void M12_every_combination_of_rules_equals_the_oracle(void **state)
{
    (void)state;
    for (int on = 0; on < 32; ++on) {
        trial p;
        draw d = {(uint64_t)on};
        trial_begin(&p, 2, 9, 9, 2, 1, 4, 4);
        p.causal = on & 1;
        p.left = on & 2 ? 3 : -1;
        p.right = on & 2 ? 1 : -1;
        p.key_batch = on & 4 ? 2 : 0;
        p.key_lengths[0] = 7;
        p.key_lengths[1] = 2;
        p.alignment = MHA_ALIGNMENT_TOP_LEFT;
        if (on & 8) {
            draw_booleans(&d, trial_add_mask(&p, MASK_KEY, 2, 1, 1, 9)->bytes, 18, 0.6);
        }
        if (on & 16) {
            trial_add_bias(&p, (int64_t[4]){1, 2, 9, 9}, NULL);
        }
        trial_tensors(&p, 1, 1);
        trial_fill(&p, &d, 1.0f);
        for (int64_t n = 0; n < 40 && p.biases; ++n) {
            p.additive[0].data[draw_int(&d, 0, 161)] = -INFINITY;
        }
        SUCCEEDS(trial_forward(&p, 0, err));
        oracle r;
        oracle_run(&p, &r);
        assert_true(oracle_compare(&p, &r) <= 1);
        oracle_end(&r);
        trial_end(&p);
    }
}

/* One key at score 0, others far below and one at -infinity, the places going round. */
static void N09_every_rotation_gives_the_same_weights(void **state)
{
    (void)state;
    static const float low[5] = {-87, -88, -100, -104, -1000};
    for (int64_t S = 1; S <= 33; ++S) {
        for (int64_t turn = 0; turn < S; ++turn) {
            trial p;
            mean_trial(&p, 1, S);
            tensor *bias = trial_add_bias(&p, (int64_t[4]){1, 1, 1, S}, NULL);
            for (int64_t n = 0; n < S; ++n) {
                bias->data[(n + turn) % S] = n == 0 ? 0 : n == 1 ? -INFINITY : low[n % 5];
            }
            SUCCEEDS(trial_forward(&p, 0, err));
            for (int64_t n = 0; n < S; ++n) {
                const float weight = p.weights.data[(n + turn) % S];
                assert_true(n == 1 ? weight == 0 : weight >= 0);
                assert_close(weight, n == 0, 1e-7);
            }
            trial_end(&p);
        }
    }
}

static void W02_mean_of_the_weights_stays_in_its_buffer(void **state)
{
    (void)state;
    trial p;
    draw d = {2};
    trial_begin(&p, 2, 3, 5, 2, 2, 4, 4);
    trial_tensors(&p, 1, 0);
    float buffer[2 * 3 * 5 + 8]; /* four words before the mean, four behind it */
    for (int n = 0; n < 38; ++n) {
        buffer[n] = -7.0f;
    }
    tensor_view(&p.result[0], buffer + 4, 3, (int64_t[]){2, 3, 5}, NULL);
    trial_fill(&p, &d, 1.0f);
    SUCCEEDS(trial_forward(&p, 0, err));
    assert_true(all_are(buffer, 4, -7.0f) && all_are(buffer + 34, 4, -7.0f));
    for (int64_t b = 0; b < 2; ++b) {
        for (int64_t i = 0; i < 3; ++i) {
            for (int64_t j = 0; j < 5; ++j) {
                const double mean = ((double)*tensor_at(&p.weights, b, 0, i, j) +
                                     (double)*tensor_at(&p.weights, b, 1, i, j)) /
                                    2;
                assert_close(*tensor_at(&p.result[0], b, i, j, 0), mean, 1e-7);
            }
        }
    }
    trial_end(&p);
}

/* 10000 rows of one key: 0 or 1.25; their mean has a deviation of 0.005, so 0.02 is four of them. */
static void W03_ten_thousand_rows_are_0_or_1_25_with_mean_1(void **state)
{
    (void)state;
    enum { ROWS = 10000 };
    trial p;
    mean_trial(&p, ROWS, 1);
    p.dropout = 0.2;
    p.seed = 12345;
    SUCCEEDS(trial_forward(&p, 0, err));
    double sum = 0;
    for (int64_t i = 0; i < ROWS; ++i) {
        const float o = p.output.data[i];
        assert_true(o == 0 || o == 1.25f);
        assert_true((o != 0) == trial_kept(&p, 0, 0, i, 0));
        sum += (double)o;
    }
    assert_close(sum / ROWS, 1.0, 0.02);
    trial_end(&p);
}

static void W04_dropout_outside_0_to_1_is_refused(void **state)
{
    (void)state;
    mha_call *call = NULL;
    SUCCEEDS(mha_call_create(&call, err));
    REFUSED(MHA_ERROR_VALUE, mha_call_set_dropout(call, -0.1, 1, err), "-0.1");
    REFUSED(MHA_ERROR_VALUE, mha_call_set_dropout(call, 1.5, 1, err), "1.5");
    REFUSED(MHA_ERROR_VALUE, mha_call_set_dropout(call, (double)NAN, 1, err), "nan");
    SUCCEEDS(mha_call_set_dropout(call, 1.0, 1, err));
    mha_call_destroy(call);
}

/* Weights after dropout times v are the output, row by row, and are not made to sum to 1. */
static void W06_output_is_the_dropped_weights_times_v(void **state)
{
    (void)state;
    trial p;
    draw d = {6};
    trial_begin(&p, 1, 20, 30, 2, 2, 4, 1);
    p.dropout = 0.5;
    p.seed = 99;
    trial_tensors(&p, 1, 0);
    trial_ask(&p, MHA_TENSOR_WEIGHTS_DROPPED);
    trial_fill(&p, &d, 1.0f);
    SUCCEEDS(trial_forward(&p, 0, err));
    double furthest = 0;
    for (int64_t h = 0; h < 2; ++h) {
        for (int64_t i = 0; i < 20; ++i) {
            double o = 0, kept = 0, all = 0;
            for (int64_t j = 0; j < 30; ++j) {
                const double w = (double)*tensor_at(&p.result[1], 0, h, i, j);
                o += w * (double)*tensor_feature(&p.value, 0, j, h);
                kept += w;
                all += (double)*tensor_at(&p.weights, 0, h, i, j);
            }
            assert_close(*tensor_feature(&p.output, 0, i, h), o, 1e-5);
            assert_close(all, 1.0, 1e-5);
            furthest = fmax(furthest, fabs(kept - 1));
        }
    }
    assert_true(furthest > 0.1);
    trial_end(&p);
}

/* Position 0 turns nothing: with ids of 0 everywhere the scores are those without rotary positions. */
static void K05_position_0_is_the_identity_and_bad_sizes_are_refused(void **state)
{
    (void)state;
    static int64_t zeros[3];
    for (int32_t pairing = MHA_ROTARY_HALVES; pairing <= MHA_ROTARY_NEIGHBOURS; ++pairing) {
        trial plain, turned;
        draw d = {5}, same = {5};
        trial_begin(&plain, 1, 3, 3, 1, 1, 6, 2);
        trial_tensors(&plain, 1, 0);
        trial_fill(&plain, &d, 1.0f);
        trial_begin(&turned, 1, 3, 3, 1, 1, 6, 2);
        trial_tensors(&turned, 1, 0);
        trial_fill(&turned, &same, 1.0f);
        turned.rotary_pairing = pairing;
        turned.rotary_size = 6;
        mha_layer *layer = trial_layer(&turned);
        mha_call *call = trial_call(&turned);
        mha_context *ctx = NULL;
        SUCCEEDS(mha_context_create(&ctx, err));
        SUCCEEDS(mha_call_set_positions(call, 1, 3, zeros, 3, zeros, err));
        SUCCEEDS(mha_forward(ctx, layer, NULL, call, err));
        SUCCEEDS(trial_forward(&plain, 0, err));
        assert_same_bits(plain.weights.data, turned.weights.data, 9);
        mha_context_destroy(ctx);
        mha_call_destroy(call);
        mha_layer_destroy(layer);
        trial_end(&plain);
        trial_end(&turned);
    }
    mha_config *cfg = NULL;
    mha_layer *layer = NULL;
    SUCCEEDS(mha_config_create(8, 2, &cfg, err));
    REFUSED(MHA_ERROR_SHAPE, mha_config_set_rotary(cfg, MHA_ROTARY_HALVES, 3, 0, err), "3");
    SUCCEEDS(mha_config_set_rotary(cfg, MHA_ROTARY_HALVES, 6, 0, err));
    REFUSED(MHA_ERROR_SHAPE, mha_layer_create(cfg, &layer, err), "6", "4");
    assert_null(layer);
    mha_config_destroy(cfg);
}

/* Slopes as they are seen: with scores of 0, ln(w_near / w_far) of a head is its slope. */
static void K07_slopes_of_8_6_12_and_3_heads(void **state)
{
    (void)state;
    static const struct {
        int64_t heads;
        double exponents[12];
    } expected[] = {
        {8, {1, 2, 3, 4, 5, 6, 7, 8}},
        {6, {2, 4, 6, 8, 1, 3}},
        {12, {1, 2, 3, 4, 5, 6, 7, 8, 0.5, 1.5, 2.5, 3.5}},
        {3, {4, 8, 2}},
    };
    for (size_t n = 0; n < sizeof expected / sizeof *expected; ++n) {
        trial p;
        draw d = {7};
        const int64_t H = expected[n].heads;
        trial_begin(&p, 1, 1, 2, H, H, 1, 1);
        p.alibi = 1;
        p.alignment = MHA_ALIGNMENT_BOTTOM_RIGHT;
        trial_tensors(&p, 1, 0);
        trial_fill(&p, &d, 1.0f);
        tensor_flood(&p.query, 0);
        SUCCEEDS(trial_forward(&p, 0, err));
        for (int64_t h = 0; h < H; ++h) {
            const double far = (double)*tensor_at(&p.weights, 0, h, 0, 0);
            const double near = (double)*tensor_at(&p.weights, 0, h, 0, 1);
            assert_close(log(near / far), exp2(-expected[n].exponents[h]), 1e-6);
        }
        trial_end(&p);
    }
}

/* 6 heads over 4, 2 over 4, 0: both numbers in the sentence. */
static void S08_H_that_is_no_multiple_of_G_is_refused(void **state)
{
    (void)state;
    mha_config *cfg = NULL;
    SUCCEEDS(mha_config_create(12, 6, &cfg, err));
    REFUSED(MHA_ERROR_HEAD_COUNT, mha_config_set_kv_heads(cfg, 4, err), "6", "4");
    REFUSED(MHA_ERROR_HEAD_COUNT, mha_config_set_kv_heads(cfg, 0, err), "0");
    mha_config_destroy(cfg);
    SUCCEEDS(mha_config_create(12, 2, &cfg, err));
    REFUSED(MHA_ERROR_HEAD_COUNT, mha_config_set_kv_heads(cfg, 4, err), "2", "4");
    mha_config_destroy(cfg);
}

/* An odd-sized layer, twenty times on each number of threads. */
static void B10_bits_are_the_same_for_1_to_7_threads(void **state)
{
    (void)state;
    static const int32_t threads[5] = {1, 2, 3, 4, 7};
    trial p;
    draw d = {10};
    trial_begin(&p, 1, 77, 77, 4, 2, 14, 14);
    for (int32_t side = 0; side < 3; ++side) {
        trial_project(&p, side, 56, 1);
    }
    trial_project(&p, MHA_PROJECTION_OUT, 444, 1);
    p.E = 56;
    trial_tensors(&p, 0, 0);
    trial_fill(&p, &d, 1.0f);
    SUCCEEDS(trial_forward(&p, 1, err));
    float *first = tensor_read(&p.output);
    for (int n = 0; n < 5; ++n) {
        for (int repeat = 0; repeat < 20; ++repeat) {
            tensor_flood(&p.output, NAN);
            SUCCEEDS(trial_forward(&p, threads[n], err));
            assert_same_bits(first, p.output.data, tensor_elements(&p.output));
        }
    }
    free(first);
    trial_end(&p);
}

static int load(void **state)
{
    (void)state;
    cases = case_file_load(MHA_TESTS_DATA "/cases.json");
    return cases ? 0 : -1;
}

static int unload(void **state)
{
    (void)state;
    json_decref(cases);
    return 0;
}

enum { OTHER_TESTS = 12 };

int main(void)
{
    struct CMUnitTest tests[DATA_CASES + OTHER_TESTS] = {
        cmocka_unit_test(every_entry_belongs_to_a_test),
        cmocka_unit_test(M06_bytes_of_2_and_255_let_a_key_be_seen),
        cmocka_unit_test(M12_every_combination_of_rules_equals_the_oracle),
        cmocka_unit_test(N09_every_rotation_gives_the_same_weights),
        cmocka_unit_test(W02_mean_of_the_weights_stays_in_its_buffer),
        cmocka_unit_test(W03_ten_thousand_rows_are_0_or_1_25_with_mean_1),
        cmocka_unit_test(W04_dropout_outside_0_to_1_is_refused),
        cmocka_unit_test(W06_output_is_the_dropped_weights_times_v),
        cmocka_unit_test(K05_position_0_is_the_identity_and_bad_sizes_are_refused),
        cmocka_unit_test(K07_slopes_of_8_6_12_and_3_heads),
        cmocka_unit_test(S08_H_that_is_no_multiple_of_G_is_refused),
        cmocka_unit_test(B10_bits_are_the_same_for_1_to_7_threads),
    };
    for (int n = 0; n < DATA_CASES; ++n) {
        tests[OTHER_TESTS + n] = (struct CMUnitTest){.name = DATA[n].name,
                                                     .test_func = entries_give_the_expected_numbers,
                                                     .initial_state = (void *)(uintptr_t)&DATA[n]};
    }
    return cmocka_run_group_tests(tests, load, unload);
}
