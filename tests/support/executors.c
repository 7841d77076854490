/* SPDX-License-Identifier: Apache-2.0 */
#include "executors.h"

#include <pthread.h>

void executor_log_begin(executor_log *log)
{
    *log = (executor_log){0, 0, 0, (unsigned long)pthread_self()};
}

static void note(void *user, int64_t n)
{
    executor_log *log = user;
    log->entered += 1;
    log->tasks += n;
    log->entered_elsewhere |= log->caller != (unsigned long)pthread_self();
}

int32_t executor_backwards(void *user, int64_t n, void (*task)(void *, int64_t), void *arg)
{
    note(user, n);
    for (int64_t i = n - 1; i >= 0; --i) {
        task(arg, i);
    }
    return 0;
}

enum { THREADS = 3 };

typedef struct share {
    int64_t first, n;
    void (*task)(void *, int64_t);
    void *arg;
} share;

static void *run_share(void *argument)
{
    const share *s = argument;
    for (int64_t i = s->first; i < s->n; i += THREADS) {
        s->task(s->arg, i);
    }
    return NULL;
}

int32_t executor_threads(void *user, int64_t n, void (*task)(void *, int64_t), void *arg)
{
    note(user, n);
    pthread_t thread[THREADS];
    share shares[THREADS];
    int started = 0;
    for (; started < THREADS; ++started) {
        shares[started] = (share){started, n, task, arg};
        if (pthread_create(&thread[started], NULL, run_share, &shares[started]) != 0) {
            break;
        }
    }
    for (int t = 0; t < started; ++t) {
        pthread_join(thread[t], NULL);
    }
    return started == THREADS ? 0 : -1;
}

int32_t executor_fails(void *user, int64_t n, void (*task)(void *, int64_t), void *arg)
{
    executor_backwards(user, n, task, arg);
    return 7;
}

int32_t executor_does_nothing(void *user, int64_t n, void (*task)(void *, int64_t), void *arg)
{
    (void)task;
    (void)arg;
    note(user, n);
    return 0;
}
