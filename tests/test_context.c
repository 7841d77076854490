/* SPDX-License-Identifier: Apache-2.0 */
#include "support/brutal.h"
#include "support/executors.h"
#include "support/trial.h"

#include <stdlib.h>
#include <string.h>

static mha_context *context(void)
{
    mha_context *ctx = NULL;
    assert_int_equal(mha_context_create(&ctx, NULL), MHA_OK);
    assert_non_null(ctx);
    return ctx;
}

/* Objects of one plain self-attention of T tokens, run by forward(). */
typedef struct fixture {
    trial p;
    mha_layer *layer;
    mha_call *call;
} fixture;

static void fixture_begin(fixture *f, int64_t T)
{
    trial_begin(&f->p, 2, T, T, 4, 4, 16, 16);
    draw d = {(uint64_t)T};
    trial_tensors(&f->p, 0, 0);
    trial_fill(&f->p, &d, 1.0f);
    f->layer = trial_layer(&f->p);
    f->call = trial_call(&f->p);
}

static int32_t forward(mha_context *ctx, fixture *f, mha_error *err)
{
    tensor_flood(&f->p.output, -7.0f);
    return mha_forward(ctx, f->layer, NULL, f->call, err);
}

static void fixture_end(fixture *f)
{
    mha_call_destroy(f->call);
    mha_layer_destroy(f->layer);
    trial_end(&f->p);
}

/* ---- behaviour ---- */

static void context_fresh_has_the_defaults(void **state)
{
    (void)state;
    mha_context *ctx = context();
    assert_int_equal(mha_context_threads(ctx), mha_runtime_threads());
    const char *wish = getenv("MHA_ENGINE");
    assert_int_equal(mha_context_engine(ctx),
                     wish && strcmp(wish, "fused") == 0 ? MHA_ENGINE_FUSED : MHA_ENGINE_BLAS);
    assert_int_equal(mha_context_workspace_limit(ctx), 0);
    assert_true(mha_context_bytes(ctx) >= 0);
    mha_context_destroy(ctx);
    mha_context_destroy(NULL);
}

static void context_threads_are_kept_and_0_returns_to_the_default(void **state)
{
    (void)state;
    mha_context *ctx = context();
    SUCCEEDS(mha_context_set_threads(ctx, 64, err));
    assert_true(mha_context_threads(ctx) >= 1 && mha_context_threads(ctx) <= 64);
    SUCCEEDS(mha_context_set_threads(ctx, 1, err));
    assert_int_equal(mha_context_threads(ctx), 1);
    SUCCEEDS(mha_context_set_threads(ctx, 0, err));
    assert_int_equal(mha_context_threads(ctx), mha_runtime_threads());
    mha_context_destroy(ctx);
}

static void context_workspace_grows_only_when_a_call_is_larger_than_all_before(void **state)
{
    (void)state;
    mha_context *ctx = context();
    fixture small, large;
    fixture_begin(&small, 9);
    fixture_begin(&large, 150);
    SUCCEEDS(forward(ctx, &small, err));
    int64_t first = mha_context_bytes(ctx);
    SUCCEEDS(forward(ctx, &large, err));
    int64_t second = mha_context_bytes(ctx);
    assert_true(second > first);
    SUCCEEDS(forward(ctx, &small, err));
    assert_int_equal(mha_context_bytes(ctx), second);
    fixture_end(&small);
    fixture_end(&large);
    mha_context_destroy(ctx);
}

static void context_second_identical_call_makes_no_allocation(void **state)
{
    (void)state;
    mha_context *ctx = context();
    fixture f;
    fixture_begin(&f, 70);
    SUCCEEDS(forward(ctx, &f, err));
    int64_t made = mha__memory_allocations();
    assert_int_equal(forward(ctx, &f, NULL), MHA_OK);
    assert_int_equal(mha__memory_allocations(), made);
    fixture_end(&f);
    mha_context_destroy(ctx);
}

static void context_workspace_limit_refuses_what_needs_more_and_names_both_numbers(void **state)
{
    (void)state;
    mha_context *ctx = context();
    fixture f;
    fixture_begin(&f, 150);
    SUCCEEDS(mha_context_set_workspace_limit(ctx, 4097, err));
    assert_int_equal(mha_context_workspace_limit(ctx), 4097);
    REFUSED(MHA_ERROR_TOO_LARGE, forward(ctx, &f, err), "4097");
    assert_true(all_are(f.p.output.block, f.p.output.count, -7.0f));

    mha_plan *plan = NULL;
    SUCCEEDS(mha_plan_create(ctx, f.layer, NULL, 2, 150, 150, 0, &plan, err));
    int64_t needed = mha_plan_workspace_bytes(plan);
    mha_plan_destroy(plan);
    SUCCEEDS(mha_context_set_workspace_limit(ctx, needed - 1, err));
    REFUSED(MHA_ERROR_TOO_LARGE, forward(ctx, &f, err), "");
    SUCCEEDS(mha_context_set_workspace_limit(ctx, needed, err));
    SUCCEEDS(forward(ctx, &f, err));
    assert_true(mha_context_bytes(ctx) <= needed);
    fixture_end(&f);
    mha_context_destroy(ctx);
}

static void
context_executor_gets_the_work_on_the_calling_thread_and_null_returns_to_ours(void **state)
{
    (void)state;
    mha_context *ctx = context();
    fixture f;
    fixture_begin(&f, 150);
    SUCCEEDS(forward(ctx, &f, err));
    float *expected = tensor_read(&f.p.output);

    executor_log log;
    executor_log_begin(&log);
    SUCCEEDS(mha_context_set_executor(ctx, executor_backwards, &log, 4, err));
    SUCCEEDS(forward(ctx, &f, err));
    assert_true(log.entered >= 1);
    assert_true(log.tasks >= 2);
    assert_false(log.entered_elsewhere);
    assert_same_bits(f.p.output.data, expected, f.p.output.count);

    executor_log_begin(&log);
    SUCCEEDS(mha_context_set_executor(ctx, NULL, NULL, 1, err));
    SUCCEEDS(forward(ctx, &f, err));
    assert_int_equal(log.entered, 0);
    assert_same_bits(f.p.output.data, expected, f.p.output.count);
    free(expected);
    fixture_end(&f);
    mha_context_destroy(ctx);
}

/* ---- refusals ---- */

static void context_executor_that_fails_fails_the_call_and_the_context_stays_usable(void **state)
{
    (void)state;
    mha_context *ctx = context();
    fixture f;
    fixture_begin(&f, 150);
    executor_log log;
    executor_log_begin(&log);
    SUCCEEDS(mha_context_set_executor(ctx, executor_fails, &log, 4, err));
    REFUSED(MHA_ERROR_EXECUTOR, forward(ctx, &f, err), "7");
    SUCCEEDS(mha_context_set_executor(ctx, executor_does_nothing, &log, 4, err));
    REFUSED(MHA_ERROR_EXECUTOR, forward(ctx, &f, err), "");
    SUCCEEDS(mha_context_set_executor(ctx, executor_backwards, &log, 4, err));
    SUCCEEDS(forward(ctx, &f, err));
    fixture_end(&f);
    mha_context_destroy(ctx);
}

static void context_settings_outside_their_range_are_refused_and_change_nothing(void **state)
{
    (void)state;
    mha_context *ctx = context();
    executor_log log;
    executor_log_begin(&log);
    SUCCEEDS(mha_context_set_threads(ctx, 1, err));
    SUCCEEDS(mha_context_set_workspace_limit(ctx, 1 << 20, err));
    REFUSED(MHA_ERROR_VALUE, mha_context_set_threads(ctx, -1, err), "-1");
    REFUSED(MHA_ERROR_VALUE, mha_context_set_threads(ctx, 65, err), "65", "64");
    REFUSED(MHA_ERROR_VALUE, mha_context_set_executor(ctx, executor_backwards, &log, 0, err), "0",
            "64");
    REFUSED(MHA_ERROR_VALUE, mha_context_set_executor(ctx, executor_backwards, &log, 65, err), "65",
            "64");
    SUCCEEDS(mha_context_set_engine(ctx, MHA_ENGINE_FUSED, err));
    assert_int_equal(mha_context_engine(ctx), MHA_ENGINE_FUSED);
    SUCCEEDS(mha_context_set_engine(ctx, MHA_ENGINE_BLAS, err));
    REFUSED(MHA_ERROR_UNKNOWN_ID, mha_context_set_engine(ctx, 99, err), "99");
    REFUSED(MHA_ERROR_UNKNOWN_ID, mha_context_set_engine(ctx, -1, err), "-1");
    REFUSED(MHA_ERROR_SHAPE, mha_context_set_workspace_limit(ctx, -1, err), "-1");
    assert_int_equal(mha_context_threads(ctx), 1);
    assert_int_equal(mha_context_engine(ctx), MHA_ENGINE_BLAS);
    assert_int_equal(mha_context_workspace_limit(ctx), 1 << 20);
    mha_context_destroy(ctx);
}

static void context_null_is_refused_everywhere(void **state)
{
    (void)state;
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_context_create(NULL, err), "NULL");
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_context_set_threads(NULL, 1, err), "NULL");
    REFUSED(MHA_ERROR_NULL_ARGUMENT,
            mha_context_set_executor(NULL, executor_backwards, NULL, 1, err), "NULL");
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_context_set_engine(NULL, 0, err), "NULL");
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_context_set_workspace_limit(NULL, 0, err), "NULL");
    assert_int_equal(mha_context_threads(NULL), MHA_ERROR_NULL_ARGUMENT);
    assert_int_equal(mha_context_engine(NULL), MHA_ERROR_NULL_ARGUMENT);
    assert_int_equal(mha_context_workspace_limit(NULL), MHA_ERROR_NULL_ARGUMENT);
    assert_int_equal(mha_context_bytes(NULL), MHA_ERROR_NULL_ARGUMENT);
}

/* ---- brutal ---- */

static void context_create_without_memory_stores_null_and_leaks_nothing(void **state)
{
    (void)state;
    mha_context *ctx = (mha_context *)&ctx;
    BRUTAL(mha_context_create(&ctx, NULL), {
        assert_null(ctx);
        ctx = (mha_context *)&ctx;
    });
    assert_true(brutal_failures >= 1);
    mha_context_destroy(ctx);
}

static void context_that_cannot_grow_keeps_its_workspace_and_works_on(void **state)
{
    (void)state;
    mha_context *ctx = context();
    fixture small, large;
    fixture_begin(&small, 9);
    fixture_begin(&large, 150);
    SUCCEEDS(forward(ctx, &small, err));
    float *expected = tensor_read(&small.p.output);
    int64_t bytes = mha_context_bytes(ctx);
    BRUTAL(forward(ctx, &large, NULL), {
        assert_int_equal(mha_context_bytes(ctx), bytes);
        assert_true(all_are(large.p.output.block, large.p.output.count, -7.0f));
        SUCCEEDS(forward(ctx, &small, err));
        assert_same_bits(small.p.output.data, expected, small.p.output.count);
    });
    assert_true(brutal_failures >= 1);
    free(expected);
    fixture_end(&small);
    fixture_end(&large);
    mha_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(context_fresh_has_the_defaults),
        cmocka_unit_test(context_threads_are_kept_and_0_returns_to_the_default),
        cmocka_unit_test(context_workspace_grows_only_when_a_call_is_larger_than_all_before),
        cmocka_unit_test(context_second_identical_call_makes_no_allocation),
        cmocka_unit_test(context_workspace_limit_refuses_what_needs_more_and_names_both_numbers),
        cmocka_unit_test(
            context_executor_gets_the_work_on_the_calling_thread_and_null_returns_to_ours),
        cmocka_unit_test(context_executor_that_fails_fails_the_call_and_the_context_stays_usable),
        cmocka_unit_test(context_settings_outside_their_range_are_refused_and_change_nothing),
        cmocka_unit_test(context_null_is_refused_everywhere),
        cmocka_unit_test(context_create_without_memory_stores_null_and_leaks_nothing),
        cmocka_unit_test(context_that_cannot_grow_keeps_its_workspace_and_works_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
