/* SPDX-License-Identifier: Apache-2.0 */
#include "platform/parallel.h"

#include "platform/blas.h"
#include "platform/cpu.h"
#include "platform/fpenv.h"
#include "platform/pool.h"
#include "platform/status.h"

#include <stdatomic.h>
#include <stdlib.h>

struct run {
    mha__task *task;
    void *arg;
    int64_t count;
    struct mha__profile *profile;
    _Atomic int64_t claimed;
    _Atomic int64_t finished;
    _Atomic int32_t refused; /* lanes that found no place in the BLAS */
};

static void lane_of_run(void *arg, int64_t lane)
{
    struct run *run = arg;
    if (!mha__blas_enter()) {
        atomic_fetch_add_explicit(&run->refused, 1, memory_order_relaxed);
        return;
    }
    struct mha__fpenv hosts;
    struct mha__profile_lane *clock = mha__profile_lane(run->profile, lane);
    mha__fpenv_enter(&hosts);
    mha__profile_begin(clock);
    int64_t done = 0;
    for (;;) {
        int64_t task = atomic_fetch_add_explicit(&run->claimed, 1, memory_order_relaxed);
        if (task >= run->count) {
            break;
        }
        run->task(run->arg, task, lane);
        done++;
    }
    mha__profile_end(clock);
    mha__fpenv_leave(&hosts);
    mha__blas_leave();
    atomic_fetch_add_explicit(&run->finished, done, memory_order_release);
}

int64_t mha__parallel_lanes(const struct mha__executor *executor, int64_t count)
{
    int64_t lanes = executor->threads < count ? executor->threads : count;
    return lanes > 1 ? lanes : 1;
}

int32_t mha__parallel_for(
    const struct mha__executor *executor, int64_t count, mha__task *task, void *arg, mha_error *err)
{
    if (count <= 0) {
        return MHA_OK;
    }
    struct mha__profile *profile = executor->profile;
    struct run run = {.task = task, .arg = arg, .count = count, .profile = profile};
    const uint64_t begin = profile ? mha__profile_ticks() : 0;
    int64_t lanes = mha__parallel_lanes(executor, count);
    int32_t answer = 0;
    if (executor->parallel_for) {
        answer = executor->parallel_for(executor->user, lanes, lane_of_run, &run);
    } else {
        mha__pool_run(lanes, lane_of_run, &run);
    }
    if (profile) {
        profile->phases += mha__profile_between(begin, mha__profile_ticks());
    }
    MHA_CHECK(err, answer == 0, MHA_ERROR_EXECUTOR, "the host's executor returned %d", (int)answer);
    int64_t finished = atomic_load_explicit(&run.finished, memory_order_acquire);
    if (finished == count) {
        return MHA_OK;
    }
    /* A lane that enters claims tasks until none is left; so with some undone, all were refused. */
    MHA_CHECK(err, atomic_load(&run.refused) == 0, MHA_ERROR_OUT_OF_MEMORY,
              "no room for the BLAS's buffer of 128 MiB of address space");
    return mha__error_format(err, MHA_ERROR_EXECUTOR,
                             "the host's executor finished %lld of %lld tasks", (long long)finished,
                             (long long)count);
}

int32_t mha__parallel_default_threads(void)
{
    int32_t threads = 0;
    const char *wish = getenv("MHA_NUM_THREADS");
    if (wish) {
        char *end = NULL;
        long number = strtol(wish, &end, 10);
        if (end != wish && *end == '\0' && number > 0) {
            threads = number < MHA__MOST_THREADS ? (int32_t)number : MHA__MOST_THREADS;
        }
    }
    if (threads == 0) {
        threads = mha__cpu_usable();
    }
    if (threads > MHA__MOST_THREADS) {
        threads = MHA__MOST_THREADS;
    }
    int32_t served = mha__blas_max_threads();
    return threads < served ? threads : served;
}
