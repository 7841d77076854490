/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks, lanes and the pool below them; the memory and the floating-point environment they run in.
 */
#define _GNU_SOURCE
#include "support/executors.h"
#include "support/expect.h"

#include <fenv.h>
#include <platform/cpu.h>
#include <platform/fpenv.h>
#include <platform/memory.h>
#include <platform/parallel.h>
#include <platform/pool.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TASKS = 1000 };

typedef struct record {
    _Atomic int32_t done[MOST_TASKS]; /* how often each task ran */
    _Atomic int32_t busy[MHA__MOST_THREADS];
    _Atomic int32_t lane_shared; /* two threads were in one lane at once */
    _Atomic int32_t bad_lane;
    int64_t lanes;
} record;

static void note_task(void *arg, int64_t task, int64_t lane)
{
    record *r = arg;
    if (lane < 0 || lane >= r->lanes) {
        r->bad_lane = 1;
        return;
    }
    r->lane_shared |= atomic_fetch_add(&r->busy[lane], 1) != 0;
    ++r->done[task];
    atomic_fetch_sub(&r->busy[lane], 1);
}

static void expect_each_task_once(const struct mha__executor *executor, int64_t count)
{
    static record r;
    memset(&r, 0, sizeof r);
    r.lanes = mha__parallel_lanes(executor, count);
    assert_in_range(r.lanes, 1, executor->threads);
    SUCCEEDS(mha__parallel_for(executor, count, note_task, &r, err));
    assert_false(r.bad_lane);
    assert_false(r.lane_shared);
    for (int64_t i = 0; i < MOST_TASKS; ++i) {
        assert_int_equal(r.done[i], i < count);
    }
}

static void every_task_runs_once_and_no_lane_is_shared(void **state)
{
    (void)state;
    static const int32_t threads[] = {1, 2, 3, 7, 16, 64};
    static const int64_t counts[] = {0, 1, 2, 3, 63, 64, 65, 1000};
    for (int t = 0; t < 6; ++t) {
        for (int c = 0; c < 8; ++c) {
            for (int round = 0; round < (MHA_TESTS_REDUCED ? 3 : 30); ++round) {
                expect_each_task_once(&(struct mha__executor){threads[t], NULL, NULL, NULL},
                                      counts[c]);
            }
        }
    }
    assert_in_range(mha__pool_workers(), 1, MHA__MOST_THREADS - 1);
}

static void every_task_runs_once_on_executors_of_a_host(void **state)
{
    (void)state;
    mha_parallel_for const executors[2] = {executor_backwards, executor_threads};
    for (int e = 0; e < 2; ++e) {
        for (int32_t threads = 1; threads <= 16; threads += 5) {
            executor_log log;
            executor_log_begin(&log);
            expect_each_task_once(&(struct mha__executor){threads, executors[e], &log, NULL}, 100);
            assert_int_equal(log.entered, 1);
            assert_false(log.entered_elsewhere);
        }
    }
}

static void executors_that_fail_or_leave_tasks_undone_are_found_out(void **state)
{
    (void)state;
    static record r;
    executor_log log;
    executor_log_begin(&log);
    r.lanes = 4;
    struct mha__executor fails = {4, executor_fails, &log, NULL};
    struct mha__executor idle = {4, executor_does_nothing, &log, NULL};
    REFUSED(MHA_ERROR_EXECUTOR, mha__parallel_for(&fails, 10, note_task, &r, err), "7");
    REFUSED(MHA_ERROR_EXECUTOR, mha__parallel_for(&idle, 10, note_task, &r, err), "10");
}

static void default_number_of_threads_follows_the_environment_at_each_call(void **state)
{
    (void)state;
    const int32_t usable = mha__cpu_usable();
    const char *kept = getenv("MHA_NUM_THREADS");
    char *copy = kept ? strdup(kept) : NULL;
    assert_true(usable >= 1);
    setenv("MHA_NUM_THREADS", "3", 1);
    assert_int_equal(mha__parallel_default_threads(), 3);
    setenv("MHA_NUM_THREADS", "100000", 1);
    assert_in_range(mha__parallel_default_threads(), 1, MHA__MOST_THREADS);
    static const char *const nonsense[] = {"", "0", "-3", "two", "3x"};
    unsetenv("MHA_NUM_THREADS");
    const int32_t usual = mha__parallel_default_threads();
    assert_true(usual >= 1 && usual <= usable);
    for (int i = 0; i < 5; ++i) {
        setenv("MHA_NUM_THREADS", nonsense[i], 1);
        assert_int_equal(mha__parallel_default_threads(), usual);
    }
    unsetenv("MHA_NUM_THREADS");
    if (copy) {
        setenv("MHA_NUM_THREADS", copy, 1);
        free(copy);
    }
}

/* ---- what tasks run in ---- */

static void environment_of_a_task_rounds_to_nearest_whatever_the_host_does(void **state)
{
    (void)state;
    struct mha__fpenv saved;
    volatile float one = 1, three = 3, tiny = 1e-38f, denormal = 1e-40f;
    volatile float nearest = one / three; /* 1/3 is rounded up */
    assert_int_equal(fesetround(FE_DOWNWARD), 0);
    feclearexcept(FE_ALL_EXCEPT);
    volatile float downward = one / three;
    feclearexcept(FE_ALL_EXCEPT);
    mha__fpenv_enter(&saved);
    volatile float inside = one / three;
    volatile float underflow = tiny * tiny, input = denormal * 4;
    mha__fpenv_leave(&saved);
    const int raised = fetestexcept(FE_ALL_EXCEPT), rounding = fegetround();
    fesetenv(FE_DFL_ENV);
    assert_true(downward != nearest);
    assert_true(inside == nearest);
    assert_true(underflow == 0 && input == 0); /* denormals are zero */
    assert_int_equal(raised, 0);
    assert_int_equal(rounding, FE_DOWNWARD);
}

static void memory_is_aligned_counted_and_fails_when_told(void **state)
{
    (void)state;
    const int64_t live = mha__memory_live();
    for (size_t bytes = 0; bytes < 300; bytes += 7) {
        unsigned char *block = mha__memory_allocate(bytes);
        assert_non_null(block);
        assert_int_equal((uintptr_t)block % 64, 0);
        memset(block, 0xFF, bytes);
        assert_int_equal(mha__memory_live(), live + 1);
        mha__memory_release(block);
        block = mha__memory_allocate_zeroed(bytes);
        for (size_t i = 0; i < bytes; ++i) {
            assert_int_equal(block[i], 0);
        }
        mha__memory_release(block);
    }
    assert_int_equal(mha__memory_live(), live);
    mha__memory_fail_at(2);
    void *first = mha__memory_allocate(8), *second = mha__memory_allocate(8);
    void *third = mha__memory_allocate(8);
    assert_true(first && !second && third);
    mha__memory_release(first);
    mha__memory_release(NULL);
    mha__memory_release(third);
    assert_null(mha__memory_allocate(SIZE_MAX - 10));
    assert_int_equal(mha__memory_live(), live);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_task_runs_once_and_no_lane_is_shared),
        cmocka_unit_test(every_task_runs_once_on_executors_of_a_host),
        cmocka_unit_test(executors_that_fail_or_leave_tasks_undone_are_found_out),
        cmocka_unit_test(default_number_of_threads_follows_the_environment_at_each_call),
        cmocka_unit_test(environment_of_a_task_rounds_to_nearest_whatever_the_host_does),
        cmocka_unit_test(memory_is_aligned_counted_and_fails_when_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
