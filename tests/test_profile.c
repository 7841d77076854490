/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the time of a call goes: the parts add up to the duration of the calls, and each part is charged
 * by what belongs to it. No test asks how long something took, only what cannot be otherwise.
 */
#define _GNU_SOURCE
#include "support/brutal.h"
#include "support/executors.h"
#include "support/trial.h"

#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

enum { PARTS = MHA_TIME_IDLE + 1, CALLS = MHA_TESTS_REDUCED ? 4 : 20 };

static double clock_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double seconds_of(const mha_context *ctx, int32_t part)
{
    double seconds = -1.0;
    SUCCEEDS(mha_context_profile(ctx, part, &seconds, err));
    assert_true(seconds >= 0.0);
    return seconds;
}

static double sum_of(const mha_context *ctx)
{
    double sum = 0.0;
    for (int32_t part = 0; part < PARTS; ++part) {
        sum += seconds_of(ctx, part);
    }
    return sum;
}

typedef struct fixture {
    trial p;
    mha_context *ctx;
    mha_layer *layer;
    mha_call *call;
} fixture;

/* 4 heads of 32 over T tokens; a layer of 128 features, or the core alone. */
static void fixture_begin(fixture *f, int64_t T, bool layer, int32_t threads)
{
    trial_begin(&f->p, 1, T, T, 4, 4, 32, 32);
    for (int32_t side = 0; layer && side < 4; ++side) {
        trial_project(&f->p, side, 128, 1);
    }
    draw d = {(uint64_t)T};
    trial_tensors(&f->p, 0, 0);
    trial_fill(&f->p, &d, 1.0f);
    f->layer = trial_layer(&f->p);
    f->call = trial_call(&f->p);
    f->ctx = NULL;
    assert_int_equal(mha_context_create(&f->ctx, NULL), MHA_OK);
    assert_int_equal(mha_context_set_threads(f->ctx, threads, NULL), MHA_OK);
}

static int32_t forward(fixture *f, mha_error *err)
{
    return mha_forward(f->ctx, f->layer, NULL, f->call, err);
}

static void fixture_end(fixture *f)
{
    mha_call_destroy(f->call);
    mha_layer_destroy(f->layer);
    mha_context_destroy(f->ctx);
    trial_end(&f->p);
}

/* ---- behaviour ---- */

static void profiling_is_off_by_default_and_begins_at_zero(void **state)
{
    (void)state;
    fixture f;
    fixture_begin(&f, 64, false, 1);
    assert_int_equal(mha_context_profiling(f.ctx), 0);
    SUCCEEDS(forward(&f, err));
    SUCCEEDS(mha_context_set_profiling(f.ctx, 1, err));
    assert_int_equal(mha_context_profiling(f.ctx), 1);
    assert_true(sum_of(f.ctx) == 0.0);
    SUCCEEDS(forward(&f, err));
    assert_true(sum_of(f.ctx) > 0.0);
    SUCCEEDS(mha_context_set_profiling(f.ctx, 1, err));
    assert_true(sum_of(f.ctx) == 0.0);
    fixture_end(&f);
}

static void profile_adds_up_to_lanes_times_the_duration(void **state)
{
    (void)state;
    for (int32_t threads = 1; threads <= 2; ++threads) {
        for (int32_t engine = MHA_ENGINE_BLAS; engine <= MHA_ENGINE_FUSED; ++engine) {
            fixture f;
            fixture_begin(&f, 300, true, threads);
            SUCCEEDS(mha_context_set_engine(f.ctx, engine, err));
            SUCCEEDS(forward(&f, err));
            mha_plan *plan = NULL;
            SUCCEEDS(mha_plan_create(f.ctx, f.layer, NULL, 1, 300, 300, 0, &plan, err));
            const int32_t lanes = mha_plan_threads(plan);
            mha_plan_destroy(plan);
            SUCCEEDS(mha_context_set_profiling(f.ctx, 1, err));
            const double begin = clock_seconds();
            for (int i = 0; i < CALLS; ++i) {
                assert_int_equal(forward(&f, NULL), MHA_OK);
            }
            const double wall = clock_seconds() - begin;
            const double sum = sum_of(f.ctx);
            /* Two clocks, read at different moments: 1 %. The calls fill nearly all of the loop, but
             * this thread may be away between two of them. */
            if (!(sum <= 1.01 * lanes * wall && sum >= 0.5 * lanes * wall)) {
                fail_msg("%d lanes for %g s, parts of %g s", (int)lanes, wall, sum);
            }
            fixture_end(&f);
        }
    }
}

static void profile_charges_each_part_by_what_belongs_to_it(void **state)
{
    (void)state;
    for (int32_t engine = MHA_ENGINE_BLAS; engine <= MHA_ENGINE_FUSED; ++engine) {
        for (int layer = 0; layer < 2; ++layer) {
            fixture f;
            fixture_begin(&f, 200, layer != 0, 1);
            SUCCEEDS(mha_context_set_engine(f.ctx, engine, err));
            SUCCEEDS(mha_context_set_profiling(f.ctx, 1, err));
            SUCCEEDS(forward(&f, err));
            static const int32_t always[] = {MHA_TIME_PACKING, MHA_TIME_SCORES, MHA_TIME_SOFTMAX,
                                             MHA_TIME_VALUES, MHA_TIME_OTHER};
            for (int i = 0; i < 5; ++i) {
                assert_true(seconds_of(f.ctx, always[i]) > 0.0);
            }
            assert_int_equal(seconds_of(f.ctx, MHA_TIME_PROJECTIONS) > 0.0, layer);
            fixture_end(&f);
        }
    }
}

static void profile_without_an_output_has_no_weights_times_values(void **state)
{
    (void)state;
    fixture f;
    fixture_begin(&f, 200, false, 1);
    mha_call_destroy(f.call);
    f.p.output.data = NULL;
    trial_ask(&f.p, MHA_TENSOR_ENTROPY);
    f.call = trial_call(&f.p);
    SUCCEEDS(mha_context_set_profiling(f.ctx, 1, err));
    SUCCEEDS(forward(&f, err));
    assert_true(seconds_of(f.ctx, MHA_TIME_SOFTMAX) > 0.0);
    assert_true(seconds_of(f.ctx, MHA_TIME_VALUES) == 0.0);
    fixture_end(&f);
}

/* A host that runs its four lanes one after another keeps three of them waiting all the time. */
static void profile_lanes_one_after_another_are_idle_for_the_rest(void **state)
{
    (void)state;
    fixture f;
    fixture_begin(&f, 600, false, 1);
    executor_log log;
    executor_log_begin(&log);
    SUCCEEDS(mha_context_set_executor(f.ctx, executor_backwards, &log, 4, err));
    SUCCEEDS(forward(&f, err));
    SUCCEEDS(mha_context_set_profiling(f.ctx, 1, err));
    SUCCEEDS(forward(&f, err));
    const double idle = seconds_of(f.ctx, MHA_TIME_IDLE);
    const double sum = sum_of(f.ctx);
    assert_true(idle >= 0.74 * sum && idle <= 0.80 * sum);
    fixture_end(&f);
}

/* What the lanes did is not charged a second time as work outside of them. */
static void profile_of_calls_that_the_executor_fails_adds_up_too(void **state)
{
    (void)state;
    fixture f;
    fixture_begin(&f, 600, true, 1);
    executor_log log;
    executor_log_begin(&log);
    SUCCEEDS(forward(&f, err));
    SUCCEEDS(mha_context_set_executor(f.ctx, executor_fails, &log, 1, err));
    SUCCEEDS(mha_context_set_profiling(f.ctx, 1, err));
    const double begin = clock_seconds();
    for (int i = 0; i < CALLS; ++i) {
        REFUSED(MHA_ERROR_EXECUTOR, forward(&f, err), "executor");
    }
    const double wall = clock_seconds() - begin;
    assert_true(seconds_of(f.ctx, MHA_TIME_PROJECTIONS) > 0.0);
    assert_true(sum_of(f.ctx) <= 1.01 * wall);
    fixture_end(&f);
}

static void profiling_changes_no_bit_and_a_second_call_allocates_nothing(void **state)
{
    (void)state;
    fixture f;
    fixture_begin(&f, 150, true, 3);
    SUCCEEDS(forward(&f, err));
    float *expected = tensor_read(&f.p.output);
    SUCCEEDS(mha_context_set_profiling(f.ctx, 1, err));
    const int64_t made = mha__memory_allocations();
    tensor_flood(&f.p.output, -7.0f);
    assert_int_equal(forward(&f, NULL), MHA_OK);
    assert_int_equal(mha__memory_allocations(), made);
    assert_same_bits(f.p.output.data, expected, f.p.output.count);
    free(expected);
    fixture_end(&f);
}

/* ---- refusals ---- */

static void profile_of_a_context_that_does_not_profile_is_refused(void **state)
{
    (void)state;
    fixture f;
    fixture_begin(&f, 9, false, 1);
    double seconds = 3.0;
    REFUSED(MHA_ERROR_NOT_SET, mha_context_profile(f.ctx, MHA_TIME_IDLE, &seconds, err),
            "profiling");
    SUCCEEDS(mha_context_set_profiling(f.ctx, 1, err));
    SUCCEEDS(mha_context_set_profiling(f.ctx, 0, err));
    assert_int_equal(mha_context_profiling(f.ctx), 0);
    REFUSED(MHA_ERROR_NOT_SET, mha_context_profile(f.ctx, MHA_TIME_IDLE, &seconds, err),
            "profiling");
    assert_true(seconds == 3.0);
    fixture_end(&f);
}

static void profile_arguments_that_make_no_sense_are_refused_and_change_nothing(void **state)
{
    (void)state;
    fixture f;
    fixture_begin(&f, 9, false, 1);
    double seconds = 3.0;
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_context_set_profiling(NULL, 1, err), "NULL");
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_context_profile(NULL, 0, &seconds, err), "NULL");
    assert_int_equal(mha_context_profiling(NULL), MHA_ERROR_NULL_ARGUMENT);
    REFUSED(MHA_ERROR_VALUE, mha_context_set_profiling(f.ctx, 2, err), "2");
    REFUSED(MHA_ERROR_VALUE, mha_context_set_profiling(f.ctx, -1, err), "-1");
    assert_int_equal(mha_context_profiling(f.ctx), 0);
    SUCCEEDS(mha_context_set_profiling(f.ctx, 1, err));
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_context_profile(f.ctx, 0, NULL, err), "NULL");
    REFUSED(MHA_ERROR_UNKNOWN_ID, mha_context_profile(f.ctx, -1, &seconds, err), "-1");
    REFUSED(MHA_ERROR_UNKNOWN_ID, mha_context_profile(f.ctx, PARTS, &seconds, err), "7");
    assert_true(seconds == 3.0);
    fixture_end(&f);
}

/* ---- brutal ---- */

static void profiling_without_memory_stays_off(void **state)
{
    (void)state;
    fixture f;
    fixture_begin(&f, 9, false, 1);
    BRUTAL(mha_context_set_profiling(f.ctx, 1, NULL), {
        assert_int_equal(mha_context_profiling(f.ctx), 0);
        SUCCEEDS(forward(&f, err));
    });
    assert_true(brutal_failures >= 1);
    fixture_end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(profiling_is_off_by_default_and_begins_at_zero),
        cmocka_unit_test(profile_adds_up_to_lanes_times_the_duration),
        cmocka_unit_test(profile_charges_each_part_by_what_belongs_to_it),
        cmocka_unit_test(profile_without_an_output_has_no_weights_times_values),
        cmocka_unit_test(profile_lanes_one_after_another_are_idle_for_the_rest),
        cmocka_unit_test(profile_of_calls_that_the_executor_fails_adds_up_too),
        cmocka_unit_test(profiling_changes_no_bit_and_a_second_call_allocates_nothing),
        cmocka_unit_test(profile_of_a_context_that_does_not_profile_is_refused),
        cmocka_unit_test(profile_arguments_that_make_no_sense_are_refused_and_change_nothing),
        cmocka_unit_test(profiling_without_memory_stays_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
