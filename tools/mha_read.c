/* SPDX-License-Identifier: Apache-2.0 */
#include "mha_read.h"

#include "mha_clock.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

enum { MOST_THREADS = 64, MOST_PASSES = 64, STREAMS = 8 };
static const double sample_seconds = 2e-3;

typedef uint32_t (*read_loop)(const float *data, int64_t count);

/* The sum of all words of data modulo 2^32, in STREAMS vectors that do not wait for each other. */
#define READ_LOOP(name, target, bytes)                                                             \
    typedef uint32_t vector_##name __attribute__((vector_size(bytes)));                            \
    target static uint32_t name(const float *data, int64_t count)                                  \
    {                                                                                              \
        enum { FLOATS = (bytes) / 4 };                                                             \
        vector_##name sum[STREAMS] = {{0}};                                                        \
        int64_t i = 0;                                                                             \
        for (; i + STREAMS * FLOATS <= count; i += STREAMS * FLOATS) {                             \
            for (int s = 0; s < STREAMS; s++) {                                                    \
                vector_##name word;                                                                \
                memcpy(&word, data + i + s * FLOATS, sizeof word);                                 \
                sum[s] += word;                                                                    \
            }                                                                                      \
        }                                                                                          \
        uint32_t total = 0;                                                                        \
        for (int s = 0; s < STREAMS; s++) {                                                        \
            for (int w = 0; w < FLOATS; w++) {                                                     \
                total += sum[s][w];                                                                \
            }                                                                                      \
        }                                                                                          \
        for (; i < count; i++) {                                                                   \
            uint32_t word;                                                                         \
            memcpy(&word, data + i, sizeof word);                                                  \
            total += word;                                                                         \
        }                                                                                          \
        return total;                                                                              \
    }

READ_LOOP(read_plain, , 16)
#if defined(__x86_64__)
READ_LOOP(read_avx2, __attribute__((target("avx2"))), 32)
READ_LOOP(read_avx512, __attribute__((target("avx512f"))), 64)
#endif

static read_loop widest(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f")) {
        return read_avx512;
    }
    if (__builtin_cpu_supports("avx2")) {
        return read_avx2;
    }
#endif
    return read_plain;
}

/* Threads go through the passes together: each begins when all have finished the one before. */
struct reading {
    const float *data[2];
    int64_t count[2];
    int threads;
    read_loop loop;
    _Atomic int pass; /* the pass that may begin; MOST_PASSES: stop */
    _Atomic int finished;
    _Atomic uint32_t sum; /* of the pass */
};

struct reader {
    struct reading *reading;
    int number;
};

static void read_share(struct reading *r, int number)
{
    uint32_t sum = 0;
    for (int i = 0; i < 2; i++) {
        const int64_t first = r->count[i] / r->threads * number;
        const int64_t end =
            number + 1 == r->threads ? r->count[i] : r->count[i] / r->threads * (number + 1);
        sum += r->loop(r->data[i] + first, end - first);
    }
    atomic_fetch_add_explicit(&r->sum, sum, memory_order_relaxed);
    atomic_fetch_add(&r->finished, 1);
}

static void *reader(void *arg)
{
    const struct reader *me = arg;
    struct reading *r = me->reading;
    atomic_fetch_add(&r->finished, 1); /* ready */
    for (int pass = 0; pass < MOST_PASSES; pass++) {
        while (atomic_load(&r->pass) < pass) {
            sched_yield();
        }
        if (atomic_load(&r->pass) == MOST_PASSES) {
            break;
        }
        read_share(r, me->number);
    }
    return NULL;
}

static void wait_for(struct reading *r, int finished)
{
    while (atomic_load(&r->finished) < finished) {
        sched_yield();
    }
    atomic_store(&r->finished, 0);
}

double mha__read_sample(
    const float *a, int64_t a_count, const float *b, int64_t b_count, int threads, uint32_t *sum)
{
    struct reading r = {.data = {a, b},
                        .count = {a_count, b_count},
                        .threads = threads < MOST_THREADS ? threads : MOST_THREADS,
                        .loop = widest(),
                        .pass = -1};
    struct reader readers[MOST_THREADS];
    pthread_t thread[MOST_THREADS];
    int started = 1;
    for (; started < r.threads; started++) {
        readers[started] = (struct reader){&r, started};
        if (pthread_create(&thread[started], NULL, reader, &readers[started]) != 0) {
            break;
        }
    }
    wait_for(&r, started - 1);
    double best = -1.0;
    double total = 0.0;
    for (int pass = 0; started == r.threads && pass < MOST_PASSES && total < sample_seconds;
         pass++) {
        const double begin = mha__clock_seconds();
        atomic_store(&r.pass, pass);
        read_share(&r, 0);
        wait_for(&r, r.threads);
        *sum = atomic_exchange(&r.sum, 0);
        const double seconds = mha__clock_seconds() - begin;
        const double real = seconds > 1e-9 ? seconds : 1e-9; /* the clock's smallest step */
        best = best < 0.0 || real < best ? real : best;
        total += seconds;
    }
    atomic_store(&r.pass, MOST_PASSES);
    for (int i = 1; i < started; i++) {
        pthread_join(thread[i], NULL);
    }
    return best;
}
