/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "platform/pool.h"

#include "platform/blas.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#if defined(__x86_64__)
#include <immintrin.h>
#define RELAX() _mm_pause()
#elif defined(__aarch64__)
#define RELAX() __asm__ volatile("yield")
#else
#define RELAX() ((void)0)
#endif

enum {
    MOST_WORKERS = 63,
    STACK_BYTES = 2 << 20,
    SPIN_NANOSECONDS = 50000 /* about the time between two phases of one call; then sleep */
};

/* One running call. Lives on the stack of its caller; in the list while lanes are to be begun. */
struct job {
    void (*work)(void *arg, int64_t lane);
    void *arg;
    int64_t lanes;
    int64_t next_lane;    /* under pool.mutex */
    _Atomic int64_t busy; /* workers inside work */
    struct job *next;
};

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t work; /* a job came */
    pthread_cond_t done; /* a worker left a job */
    struct job *jobs;
    int32_t workers;
    _Atomic int32_t open; /* lanes to be begun in all jobs: what a spinning worker looks at */
    bool fork_handled;
} pool = {.mutex = PTHREAD_MUTEX_INITIALIZER,
          .work = PTHREAD_COND_INITIALIZER,
          .done = PTHREAD_COND_INITIALIZER};

static int64_t nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* A worker out of work looks for a lane to begin before it sleeps: the next phase is often near. */
static void look_for_lanes(void)
{
    int64_t start = nanoseconds();
    do {
        for (int i = 0; i < 64; i++) {
            if (atomic_load_explicit(&pool.open, memory_order_relaxed) > 0) {
                return;
            }
            RELAX();
        }
    } while (nanoseconds() - start < SPIN_NANOSECONDS);
}

/* Takes a lane of the first job that has one left; NULL when none has. Under pool.mutex. */
static struct job *begin_lane(int64_t *lane)
{
    struct job *job = pool.jobs;
    if (!job) {
        return NULL;
    }
    *lane = job->next_lane++;
    atomic_fetch_add_explicit(&job->busy, 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(&pool.open, 1, memory_order_relaxed);
    if (job->next_lane == job->lanes) {
        pool.jobs = job->next;
    }
    return job;
}

static void *worker(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&pool.mutex);
    for (;;) {
        int64_t lane = 0;
        struct job *job = begin_lane(&lane);
        if (!job) {
            pthread_mutex_unlock(&pool.mutex);
            look_for_lanes();
            pthread_mutex_lock(&pool.mutex);
            while (!pool.jobs) {
                pthread_cond_wait(&pool.work, &pool.mutex);
            }
            continue;
        }
        pthread_mutex_unlock(&pool.mutex);
        job->work(job->arg, lane);
        pthread_mutex_lock(&pool.mutex);
        /* After this the caller may return and the job is gone. */
        if (atomic_fetch_sub_explicit(&job->busy, 1, memory_order_release) == 1) {
            pthread_cond_broadcast(&pool.done);
        }
    }
    return NULL;
}

static void before_fork(void)
{
    pthread_mutex_lock(&pool.mutex);
}

static void after_fork_in_parent(void)
{
    pthread_mutex_unlock(&pool.mutex);
}

/* The workers are not in the child: it starts its own at its first call. */
static void after_fork_in_child(void)
{
    pthread_mutex_init(&pool.mutex, NULL);
    pthread_cond_init(&pool.work, NULL);
    pthread_cond_init(&pool.done, NULL);
    pool.jobs = NULL;
    pool.workers = 0;
    atomic_store(&pool.open, 0);
    mha__blas_after_fork_in_child();
}

/* Starts workers until there are `wanted`, or as many as the system gives. Under pool.mutex. */
static void start_workers(int32_t wanted)
{
    if (!pool.fork_handled) {
        if (pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) != 0) {
            return; /* without it a forked child would hang: one thread then */
        }
        pool.fork_handled = true;
    }
    if (pool.workers >= wanted) {
        return;
    }
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0) {
        return;
    }
    (void)pthread_attr_setstacksize(&attributes, STACK_BYTES);
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    sigset_t all;
    sigset_t hosts;
    sigfillset(&all);
    /* Workers inherit the mask: the host's signals stay with the host's threads. */
    pthread_sigmask(SIG_SETMASK, &all, &hosts);
    while (pool.workers < wanted) {
        pthread_t thread;
        if (pthread_create(&thread, &attributes, worker, NULL) != 0) {
            break;
        }
        pool.workers++;
    }
    pthread_sigmask(SIG_SETMASK, &hosts, NULL);
    pthread_attr_destroy(&attributes);
}

/* No further lane of this job is begun. Under pool.mutex. */
static void withdraw(struct job *job)
{
    for (struct job **link = &pool.jobs; *link; link = &(*link)->next) {
        if (*link == job) {
            *link = job->next;
            atomic_fetch_sub_explicit(&pool.open, (int32_t)(job->lanes - job->next_lane),
                                      memory_order_relaxed);
            return;
        }
    }
}

void mha__pool_run(int64_t lanes, void (*work)(void *arg, int64_t lane), void *arg)
{
    if (lanes > MOST_WORKERS + 1) {
        lanes = MOST_WORKERS + 1;
    }
    if (lanes <= 1) {
        work(arg, 0);
        return;
    }
    struct job job = {.work = work, .arg = arg, .lanes = lanes, .next_lane = 1};
    pthread_mutex_lock(&pool.mutex);
    start_workers((int32_t)lanes - 1);
    struct job **last = &pool.jobs;
    while (*last) {
        last = &(*last)->next;
    }
    *last = &job;
    atomic_fetch_add_explicit(&pool.open, (int32_t)lanes - 1, memory_order_relaxed);
    if (lanes == 2) {
        pthread_cond_signal(&pool.work);
    } else {
        pthread_cond_broadcast(&pool.work);
    }
    pthread_mutex_unlock(&pool.mutex);

    work(arg, 0);

    int64_t start = nanoseconds();
    pthread_mutex_lock(&pool.mutex);
    withdraw(&job);
    pthread_mutex_unlock(&pool.mutex);
    while (atomic_load_explicit(&job.busy, memory_order_acquire) > 0 &&
           nanoseconds() - start < SPIN_NANOSECONDS) {
        RELAX();
    }
    pthread_mutex_lock(&pool.mutex);
    while (atomic_load_explicit(&job.busy, memory_order_acquire) > 0) {
        pthread_cond_wait(&pool.done, &pool.mutex);
    }
    pthread_mutex_unlock(&pool.mutex);
}

int32_t mha__pool_workers(void)
{
    pthread_mutex_lock(&pool.mutex);
    int32_t workers = pool.workers;
    pthread_mutex_unlock(&pool.mutex);
    return workers;
}
