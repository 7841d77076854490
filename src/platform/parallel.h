/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA__PARALLEL_H
#define MHA__PARALLEL_H

/*
 * count independent tasks on several threads. Tasks are claimed from one counter, so who runs a task is
 * chance, but what it computes must not depend on it: that is why bits are the same for every number of
 * threads.
 *
 * A thread that works on tasks is a lane, 0 .. lanes-1; scratch memory belongs to a lane. Every lane
 * holds a place in the BLAS and runs in the floating-point environment of fpenv.h.
 *
 *   own pool   process-wide, started at first need, at most 63 workers that sleep when idle and stay;
 *              several calls share it. The caller is lane 0 and waits for no worker that has not begun.
 *   the host   executes lanes as its tasks, in any order, also one after another.
 */
#include "platform/profile.h"

#include <mha/context.h>

#include <stdint.h>

enum { MHA__MOST_THREADS = 64 };

struct mha__executor {
    int32_t threads;
    mha_parallel_for parallel_for; /* NULL: the own pool */
    void *user;
    struct mha__profile *profile; /* NULL: nobody asks where the time goes */
};

typedef void mha__task(void *arg, int64_t task, int64_t lane);

/* The number of lanes that count tasks get. */
int64_t mha__parallel_lanes(const struct mha__executor *executor, int64_t count);

/*
 * MHA_OK when all tasks are done; MHA_ERROR_OUT_OF_MEMORY when no lane could enter the BLAS (no
 * task has run then); MHA_ERROR_EXECUTOR when the host's executor failed or left tasks undone.
 */
int32_t mha__parallel_for(const struct mha__executor *executor,
                          int64_t count,
                          mha__task *task,
                          void *arg,
                          mha_error *err);

/* MHA_NUM_THREADS, else the CPUs this process may use; 1 .. min(64, what the BLAS can serve). */
int32_t mha__parallel_default_threads(void);

#endif
