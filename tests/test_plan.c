/* SPDX-License-Identifier: Apache-2.0 */
#include "support/brutal.h"
#include "support/trial.h"

#include <math.h>
#include <string.h>

typedef struct fixture {
    mha_context *ctx;
    mha_layer *layer;
    mha_mask *mask;
} fixture;

static fixture core(int64_t H, int64_t G, int64_t D, int64_t Dv)
{
    trial p;
    trial_begin(&p, 1, 1, 1, H, G, D, Dv);
    fixture f = {NULL, trial_layer(&p), NULL};
    assert_int_equal(mha_context_create(&f.ctx, NULL), MHA_OK);
    assert_int_equal(mha_mask_create(&f.mask, NULL), MHA_OK);
    trial_end(&p);
    return f;
}

static void fixture_end(fixture *f)
{
    mha_mask_destroy(f->mask);
    mha_layer_destroy(f->layer);
    mha_context_destroy(f->ctx);
}

static mha_plan *plan_of(const fixture *f, int64_t B, int64_t T, int64_t S, int32_t outputs)
{
    mha_plan *plan = NULL;
    SUCCEEDS(mha_plan_create(f->ctx, f->layer, f->mask, B, T, S, outputs, &plan, err));
    assert_non_null(plan);
    return plan;
}

/* ---- behaviour ---- */

static void plan_of_plain_attention_counts_flops_bytes_and_tasks(void **state)
{
    (void)state;
    fixture f = core(8, 2, 64, 32);
    mha_plan *plan = plan_of(&f, 3, 200, 300, MHA_PLAN_WEIGHTS | MHA_PLAN_LSE);
    assert_int_equal(mha_plan_flops(plan), INT64_C(2) * 3 * 8 * 200 * 300 * (64 + 32));
    assert_int_equal(mha_plan_weights_bytes(plan), INT64_C(4) * 3 * 8 * 200 * 300);
    int64_t tile = mha_plan_query_tile(plan);
    assert_true(tile >= 1 && mha_plan_key_tile(plan) >= 1);
    assert_int_equal(mha_plan_tasks(plan), 3 * 8 * ((200 + tile - 1) / tile));
    assert_true(mha_plan_packed_bytes(plan) >= INT64_C(4) * 3 * 2 * 300 * (64 + 32));
    assert_true(mha_plan_workspace_bytes(plan) >= mha_plan_packed_bytes(plan));
    assert_in_range(mha_plan_threads(plan), 1, mha_context_threads(f.ctx));
    assert_true(mha_plan_visible_share(plan) == 1.0);
    mha_plan_destroy(plan);

    plan = plan_of(&f, 3, 200, 300, 0);
    assert_int_equal(mha_plan_weights_bytes(plan), 0);
    mha_plan_destroy(plan);
    fixture_end(&f);
}

static void plan_of_a_layer_adds_two_flops_a_weight_and_row(void **state)
{
    (void)state;
    trial p;
    trial_begin(&p, 2, 10, 12, 4, 2, 8, 6);
    trial_project(&p, MHA_PROJECTION_Q, 20, 1);
    trial_project(&p, MHA_PROJECTION_V, 22, 1);
    trial_project(&p, MHA_PROJECTION_OUT, 30, 0);
    draw d = {1};
    trial_fill(&p, &d, 1.0f);
    fixture f = {NULL, trial_layer(&p), NULL};
    SUCCEEDS(mha_context_create(&f.ctx, err));
    mha_plan *plan = plan_of(&f, 2, 10, 12, 0);
    const int64_t attention = INT64_C(2) * 2 * 4 * 10 * 12 * (8 + 6);
    const int64_t projections = 2 * (2 * 10 * (20 * 32) + 2 * 12 * (22 * 12) + 2 * 10 * (24 * 30));
    assert_int_equal(mha_plan_flops(plan), attention + projections);
    mha_plan_destroy(plan);
    fixture_end(&f);
    trial_end(&p);
}

static void plan_counts_the_pairs_that_rules_by_position_leave(void **state)
{
    (void)state;
    fixture f = core(1, 1, 4, 4);
    SUCCEEDS(mha_mask_set_causal(f.mask, 1, err));
    SUCCEEDS(mha_mask_set_alignment(f.mask, MHA_ALIGNMENT_BOTTOM_RIGHT, err));
    mha_plan *plan = plan_of(&f, 1, 100, 100, 0);
    assert_close(mha_plan_visible_share(plan), 5050.0 / 10000, 1e-12);
    assert_int_equal(mha_plan_flops(plan), 2 * 5050 * 8);
    mha_plan_destroy(plan);

    SUCCEEDS(mha_mask_set_window(f.mask, 1, 0, err)); /* 1 + 99 * 2 pairs */
    plan = plan_of(&f, 1, 100, 100, 0);
    assert_close(mha_plan_visible_share(plan), 199.0 / 10000, 1e-12);
    mha_plan_destroy(plan);

    /*
     * S_b - T_b = 0 in row 0, 20 in row 1; window 1: 2 pairs each but 1 for the first query of row
     * 0
     */
    SUCCEEDS(mha_mask_set_key_lengths(f.mask, 2, (int64_t[]){10, 30}, err));
    SUCCEEDS(mha_mask_set_query_lengths(f.mask, 1, (int64_t[]){10}, err));
    plan = plan_of(&f, 2, 100, 100, 0);
    assert_close(mha_plan_visible_share(plan), (19.0 + 20.0) / 20000, 1e-12);
    assert_int_equal(mha_plan_flops(plan), 2 * 39 * 8);
    mha_plan_destroy(plan);
    fixture_end(&f);
}

static void plan_sizes_are_64_bit_and_the_weights_are_not_counted_unless_asked_for(void **state)
{
    (void)state;
    fixture f = core(16, 16, 64, 64);
    mha_plan *plan = plan_of(&f, 64, 2048, 2048, MHA_PLAN_WEIGHTS);
    assert_int_equal(mha_plan_weights_bytes(plan), INT64_C(17179869184)); /* 4 * 2^32 */
    mha_plan_destroy(plan);
    plan = plan_of(&f, 64, 2048, 2048, 0);
    assert_int_equal(mha_plan_weights_bytes(plan), 0);
    /* packed keys and values, 1 GiB or 1 MiB a thread, and a little: no T x S scores */
    const int64_t beside = mha_plan_workspace_bytes(plan) - mha_plan_packed_bytes(plan);
    assert_true(beside < (INT64_C(2) << 20) * mha_plan_threads(plan) + (INT64_C(16) << 20));
    mha_plan_destroy(plan);
    fixture_end(&f);
}

static void plan_of_a_long_sequence_needs_less_than_64_mib_beside_the_packed_keys(void **state)
{
    (void)state;
    fixture f = core(8, 8, 64, 64);
    mha_plan *plan = plan_of(&f, 1, 32768, 32768, 0);
    int64_t beside = mha_plan_workspace_bytes(plan) - mha_plan_packed_bytes(plan);
    assert_true(beside < INT64_C(64) << 20);
    assert_true(mha_plan_packed_bytes(plan) < INT64_C(140) << 20); /* K and V are 128 MiB */
    mha_plan_destroy(plan);
    fixture_end(&f);
}

static void plan_is_what_the_forward_does(void **state)
{
    (void)state;
    trial p;
    trial_begin(&p, 2, 130, 140, 4, 2, 16, 8);
    trial_tensors(&p, 0, 0);
    draw d = {3};
    trial_fill(&p, &d, 1.0f);
    fixture f = {NULL, trial_layer(&p), NULL};
    SUCCEEDS(mha_context_create(&f.ctx, err));
    mha_plan *plan = plan_of(&f, 2, 130, 140, 0);
    mha_call *call = trial_call(&p);
    SUCCEEDS(mha_forward(f.ctx, f.layer, NULL, call, err));
    assert_int_equal(mha_context_bytes(f.ctx), mha_plan_workspace_bytes(plan));
    mha_call_destroy(call);
    mha_plan_destroy(plan);
    fixture_end(&f);
    trial_end(&p);
}

static void plan_tiles_do_not_depend_on_the_number_of_threads(void **state)
{
    (void)state;
    fixture f = core(4, 4, 64, 64);
    SUCCEEDS(mha_context_set_threads(f.ctx, 1, err));
    mha_plan *one = plan_of(&f, 1, 1000, 1000, 0);
    SUCCEEDS(mha_context_set_threads(f.ctx, 7, err));
    mha_plan *seven = plan_of(&f, 1, 1000, 1000, 0);
    assert_int_equal(mha_plan_query_tile(one), mha_plan_query_tile(seven));
    assert_int_equal(mha_plan_key_tile(one), mha_plan_key_tile(seven));
    assert_int_equal(mha_plan_tasks(one), mha_plan_tasks(seven));
    assert_int_equal(mha_plan_threads(one), 1);
    mha_plan_destroy(one);
    mha_plan_destroy(seven);
    fixture_end(&f);
}

static void plan_of_empty_sizes_is_a_plan_that_costs_nothing(void **state)
{
    (void)state;
    fixture f = core(2, 2, 8, 8);
    static const int64_t sizes[4][3] = {{0, 5, 5}, {2, 0, 5}, {0, 0, 0}, {2, 5, 0}};
    for (int i = 0; i < 4; ++i) {
        mha_plan *plan = plan_of(&f, sizes[i][0], sizes[i][1], sizes[i][2], MHA_PLAN_WEIGHTS);
        assert_int_equal(mha_plan_flops(plan), 0);
        assert_int_equal(mha_plan_weights_bytes(plan), 0);
        double share = mha_plan_visible_share(plan);
        assert_true(share >= 0 && share <= 1);
        mha_plan_destroy(plan);
    }
    fixture_end(&f);
}

static void plan_says_all_of_it_as_text_and_names_its_algorithm(void **state)
{
    (void)state;
    fixture f = core(2, 2, 8, 8);
    mha_plan *plan = plan_of(&f, 1, 100, 10, 0);
    char text[4096], part[8] = "#######";
    int64_t length = mha_plan_describe(plan, NULL, 0);
    assert_in_range(length, 40, 4000);
    assert_int_equal(mha_plan_describe(plan, text, sizeof text), length);
    assert_int_equal(strlen(text), length);
    assert_non_null(strchr(text, '\n'));
    assert_non_null(strstr(text, mha_plan_algorithm(plan)));
    const int fused = mha_context_engine(f.ctx) == MHA_ENGINE_FUSED;
    assert_int_equal(strncmp(mha_plan_algorithm(plan), fused ? "fused" : "blas", 4), 0);
    assert_int_equal(mha_plan_describe(plan, part, 4), length);
    assert_int_equal(strlen(part), 3);
    assert_int_equal(part[4], '#');
    mha_plan_destroy(plan);

    plan = plan_of(&f, 1, 1, 2000, 0); /* one token: nothing is packed, the keys are cut in four */
    assert_int_equal(strncmp(mha_plan_algorithm(plan), "direct", 6), 0);
    assert_int_equal(mha_plan_query_tile(plan), 1);
    assert_int_equal(mha_plan_tasks(plan), 2 * 4);
    assert_true(mha_plan_packed_bytes(plan) < 100);
    mha_plan_destroy(plan);
    plan = plan_of(&f, 1, 1, 2000, MHA_PLAN_WEIGHTS); /* the weights want whole rows */
    assert_int_not_equal(strncmp(mha_plan_algorithm(plan), "direct", 6), 0);
    mha_plan_destroy(plan);
    fixture_end(&f);
}

/* ---- refusals ---- */

static void plan_with_bad_arguments_is_refused_and_stores_null(void **state)
{
    (void)state;
    fixture f = core(2, 2, 8, 8);
    mha_plan *plan = (mha_plan *)&plan;
#define CREATE(ctx, layer, B, T, S, outputs, out)                                                  \
    mha_plan_create(ctx, layer, f.mask, B, T, S, outputs, out, err)
    REFUSED(MHA_ERROR_NULL_ARGUMENT, CREATE(NULL, f.layer, 1, 1, 1, 0, &plan), "NULL");
    assert_null(plan);
    REFUSED(MHA_ERROR_NULL_ARGUMENT, CREATE(f.ctx, NULL, 1, 1, 1, 0, &plan), "NULL");
    REFUSED(MHA_ERROR_NULL_ARGUMENT, CREATE(f.ctx, f.layer, 1, 1, 1, 0, NULL), "NULL");
    REFUSED(MHA_ERROR_UNKNOWN_ID, CREATE(f.ctx, f.layer, 1, 1, 1, 4, &plan), "4");
    REFUSED(MHA_ERROR_UNKNOWN_ID, CREATE(f.ctx, f.layer, 1, 1, 1, -1, &plan), "-1");
    REFUSED(MHA_ERROR_SHAPE, CREATE(f.ctx, f.layer, -1, 1, 1, 0, &plan), "-1");
    REFUSED(MHA_ERROR_SHAPE, CREATE(f.ctx, f.layer, 1, -2, 1, 0, &plan), "-2");
    REFUSED(MHA_ERROR_SHAPE, CREATE(f.ctx, f.layer, 1, 1, -3, 0, &plan), "-3");
    const int64_t big = INT32_MAX;
    plan = (mha_plan *)&plan;
    REFUSED(MHA_ERROR_TOO_LARGE, CREATE(f.ctx, f.layer, big, big, big, 0, &plan), "");
    assert_null(plan);
    REFUSED(MHA_ERROR_TOO_LARGE, CREATE(f.ctx, f.layer, INT64_MAX, 1, 1, 0, &plan), "");
    SUCCEEDS(mha_mask_set_causal(f.mask, 1, err));
    REFUSED(MHA_ERROR_ALIGNMENT, CREATE(f.ctx, f.layer, 1, 6, 9, 0, &plan), "6", "9");
    SUCCEEDS(mha_mask_set_key_lengths(f.mask, 3, (int64_t[]){1, 1, 1}, err));
    REFUSED(MHA_ERROR_SHAPE, CREATE(f.ctx, f.layer, 2, 1, 1, 0, &plan), "3", "2");
#undef CREATE
    fixture_end(&f);
}

static void plan_getters_of_null_say_so(void **state)
{
    (void)state;
    typedef int64_t getter(const mha_plan *);
    getter *const get[] = {mha_plan_workspace_bytes, mha_plan_packed_bytes, mha_plan_weights_bytes,
                           mha_plan_flops,           mha_plan_tasks,        mha_plan_query_tile,
                           mha_plan_key_tile};
    for (int i = 0; i < 7; ++i) {
        assert_int_equal(get[i](NULL), MHA_ERROR_NULL_ARGUMENT);
    }
    assert_int_equal(mha_plan_threads(NULL), MHA_ERROR_NULL_ARGUMENT);
    assert_true(isnan(mha_plan_visible_share(NULL)));
    assert_null(mha_plan_algorithm(NULL));
    char text[4] = "abc";
    assert_int_equal(mha_plan_describe(NULL, text, sizeof text), 0);
    assert_string_equal(text, "");
    mha_plan_destroy(NULL);
}

/* ---- brutal ---- */

static void plan_create_without_memory_stores_null_and_leaks_nothing(void **state)
{
    (void)state;
    fixture f = core(2, 2, 8, 8);
    mha_plan *plan = (mha_plan *)&plan;
    BRUTAL(mha_plan_create(f.ctx, f.layer, f.mask, 1, 100, 100, 0, &plan, NULL), {
        assert_null(plan);
        plan = (mha_plan *)&plan;
    });
    assert_true(brutal_failures >= 1);
    mha_plan_destroy(plan);
    fixture_end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plan_of_plain_attention_counts_flops_bytes_and_tasks),
        cmocka_unit_test(plan_of_a_layer_adds_two_flops_a_weight_and_row),
        cmocka_unit_test(plan_counts_the_pairs_that_rules_by_position_leave),
        cmocka_unit_test(plan_sizes_are_64_bit_and_the_weights_are_not_counted_unless_asked_for),
        cmocka_unit_test(plan_of_a_long_sequence_needs_less_than_64_mib_beside_the_packed_keys),
        cmocka_unit_test(plan_is_what_the_forward_does),
        cmocka_unit_test(plan_tiles_do_not_depend_on_the_number_of_threads),
        cmocka_unit_test(plan_of_empty_sizes_is_a_plan_that_costs_nothing),
        cmocka_unit_test(plan_says_all_of_it_as_text_and_names_its_algorithm),
        cmocka_unit_test(plan_with_bad_arguments_is_refused_and_stores_null),
        cmocka_unit_test(plan_getters_of_null_say_so),
        cmocka_unit_test(plan_create_without_memory_stores_null_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
