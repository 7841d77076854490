/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_EXECUTORS_H
#define TESTS_EXECUTORS_H

/* Executors that a host might bring (mha_parallel_for). user points to an executor_log. */
#include <stdint.h>

typedef struct executor_log {
    int64_t entered;       /* how often parallel_for was called */
    int64_t tasks;         /* tasks over all calls */
    int entered_elsewhere; /* 1 if ever called on another thread than `caller` */
    unsigned long caller;  /* pthread_self() of the thread that calls the library */
} executor_log;

void executor_log_begin(executor_log *log);

/* One after another, from the last to the first. */
int32_t executor_backwards(void *user, int64_t n, void (*task)(void *, int64_t), void *arg);
/* On three new threads, which share the tasks by remainder. */
int32_t executor_threads(void *user, int64_t n, void (*task)(void *, int64_t), void *arg);
/* Does every task, then says that it failed. */
int32_t executor_fails(void *user, int64_t n, void (*task)(void *, int64_t), void *arg);
/* Does no task and says that all is well. */
int32_t executor_does_nothing(void *user, int64_t n, void (*task)(void *, int64_t), void *arg);

#endif
