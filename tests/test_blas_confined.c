/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What libmha hands to the BLAS, seen by a cblas_sgemm of our own before the real one: never a
 * vector, never more than the BLAS computes on one thread where it has several. Run with one and
 * with four threads in OPENBLAS_NUM_THREADS.
 */
#define _GNU_SOURCE
#include "support/expect.h"
#include "support/sgemm_shim.h"
#include "support/sweep.h"

#include <dirent.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/* OpenBLAS never threads a product of 65536 * 4 or less. */
static const int64_t UNTHREADED = 262144;

/* Whether the BLAS would thread a larger product. */
static int blas_may_thread(void)
{
    return sgemm_shim_blas_parallel() == 2 ||
           (sgemm_shim_blas_parallel() == 1 && sgemm_shim_blas_threads() > 1);
}

/* MHA_ENGINE may say so. */
static bool fused_by_default(void)
{
    mha_context *ctx = NULL;
    SUCCEEDS(mha_context_create(&ctx, err));
    const bool fused = mha_context_engine(ctx) == MHA_ENGINE_FUSED;
    mha_context_destroy(ctx);
    return fused;
}

static void assert_confined(void)
{
    sgemm_watch w = sgemm_shim_read();
    assert_true(w.products > 0 || fused_by_default());
    assert_int_equal(w.vectors, 0);
    assert_int_equal(w.empty, 0);
    if (blas_may_thread()) {
        assert_true(w.largest <= UNTHREADED);
    }
    if (sgemm_shim_blas_parallel() == 0 || sgemm_shim_blas_parallel() == -1) {
        assert_int_equal(w.at_once, 1); /* no locks, or unknown: one product at a time */
    }
}

/* ---- what is asked of the BLAS ---- */

static void products_of_every_kind_of_call_are_no_vectors_and_no_larger_than_allowed(void **state)
{
    (void)state;
    enum { MOST = 4000 };
    static sweep_case cases[MOST];
    int missed = 0;
    int count = sweep_make(cases, 0, MOST, MHA_TESTS_REDUCED ? 4000000 : 30000000, 99, &missed);
    sgemm_shim_reset();
    for (int i = 0; i < count; ++i) {
        trial p;
        sweep_trial(&cases[i], &p, 0.0f);
        int32_t status = trial_forward(&p, sweep_threads(&cases[i]), NULL);
        assert_int_equal(status, sweep_status(&p));
        trial_end(&p);
        assert_int_equal(sgemm_shim_read().vectors, 0);
    }
    assert_confined();
}

static void products_of_large_layers_are_confined(void **state)
{
    (void)state;
    static const int64_t sizes[][4] = {
        /* T, S, D, E */
        {1, 1, 64, 512},     {1, 700, 64, 512},   {700, 1, 64, 64}, {65, 129, 257, 300},
        {300, 700, 64, 512}, {513, 513, 32, 768}, {3, 3, 1, 3000},  {128, 128, 512, 64},
    };
    sgemm_shim_reset();
    for (int i = 0; i < 8; ++i) {
        trial p;
        trial_begin(&p, 1, sizes[i][0], sizes[i][1], 2, 1, sizes[i][2], sizes[i][2]);
        for (int32_t side = 0; side < 4; ++side) {
            trial_project(&p, side, sizes[i][3], 1);
        }
        trial_tensors(&p, 1, 1);
        draw d = {1};
        trial_fill(&p, &d, 1.0f);
        SUCCEEDS(trial_forward(&p, 2, err));
        trial_end(&p);
    }
    assert_confined();
    assert_true(!fused_by_default() || sgemm_shim_read().products == 0);
    if (!blas_may_thread() && !MHA_TESTS_REDUCED && sgemm_shim_blas_parallel() == 1 &&
        !fused_by_default()) {
        assert_true(sgemm_shim_read().largest > UNTHREADED); /* bigger tiles where they are safe */
    }
}

/* ---- the BLAS's own threads stay idle ---- */

/* Clock ticks used by every thread of the process but the calling one. */
static long ticks_of_others(void)
{
    long ticks = 0;
    DIR *tasks = opendir("/proc/self/task");
    struct dirent *entry;
    while (tasks && (entry = readdir(tasks))) {
        char path[300], line[1024];
        long tid = atol(entry->d_name);
        if (tid <= 0 || tid == syscall(SYS_gettid)) {
            continue;
        }
        snprintf(path, sizeof path, "/proc/self/task/%ld/stat", tid);
        FILE *stat = fopen(path, "r");
        if (stat && fgets(line, sizeof line, stat)) {
            long user = 0, kernel = 0;
            char *after_name = strrchr(line, ')');
            if (after_name &&
                sscanf(after_name, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld %ld", &user,
                       &kernel) == 2) {
                ticks += user + kernel;
            }
        }
        if (stat) {
            fclose(stat);
        }
    }
    if (tasks) {
        closedir(tasks);
    }
    return ticks;
}

static double seconds_of_this_thread(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void B05_one_thread_asked_for_leaves_every_other_thread_idle(void **state)
{
    (void)state;
    trial p;
    trial_begin(&p, 1, 600, 600, 8, 8, 64, 64);
    for (int32_t side = 0; side < 4; ++side) {
        trial_project(&p, side, 512, 1);
    }
    trial_tensors(&p, 0, 0);
    draw d = {2};
    trial_fill(&p, &d, 1.0f);
    mha_context *ctx = NULL;
    SUCCEEDS(mha_context_create(&ctx, err));
    SUCCEEDS(mha_context_set_threads(ctx, 1, err));
    mha_layer *layer = trial_layer(&p);
    mha_call *call = trial_call(&p);
    SUCCEEDS(mha_forward(ctx, layer, NULL, call, err));
    nanosleep(&(struct timespec){0, 300 * 1000 * 1000},
              NULL); /* threads spin for a while at start */
    long before = ticks_of_others();
    double start = seconds_of_this_thread();
    while (seconds_of_this_thread() - start < 0.4) {
        SUCCEEDS(mha_forward(ctx, layer, NULL, call, err));
    }
    long used = ticks_of_others() - before;
    assert_true(used <= 2); /* ticks of 10 ms, beside 400 ms of ours */
    mha_call_destroy(call);
    mha_layer_destroy(layer);
    mha_context_destroy(ctx);
    trial_end(&p);
}

/* ---- beside the host's own products ---- */

enum { CALLERS = 8, ROUNDS = MHA_TESTS_REDUCED ? 5 : 40, HOST_SIZE = 128 };
static atomic_int stop_host;

static void *host_multiplies(void *unused)
{
    (void)unused;
    static float a[HOST_SIZE * HOST_SIZE], b[HOST_SIZE * HOST_SIZE], c[HOST_SIZE * HOST_SIZE];
    draw d = {3};
    draw_fill(&d, a, HOST_SIZE * HOST_SIZE, -1, 1);
    draw_fill(&d, b, HOST_SIZE * HOST_SIZE, -1, 1);
    sgemm_shim_host(1);
    while (!stop_host) {
        sgemm_shim_host_product(HOST_SIZE, 0, a, b, c);
        sgemm_shim_host_product(HOST_SIZE, 1, a, b, c);
    }
    return NULL;
}

static void *forward_again_and_again(void *argument)
{
    int64_t number = *(int64_t *)argument;
    intptr_t wrong = 0;
    trial p;
    trial_begin(&p, 1, 100 + number, 150, 2, 1, 64, 64);
    for (int32_t side = 0; side < 4; ++side) {
        trial_project(&p, side, 100, 1);
    }
    trial_tensors(&p, 0, 0);
    draw d = {4};
    trial_fill(&p, &d, 1.0f);
    wrong |= trial_forward(&p, 1, NULL) != MHA_OK;
    float *expected = tensor_read(&p.output);
    for (int round = 0; round < ROUNDS; ++round) {
        tensor_flood(&p.output, -7.0f);
        wrong |= trial_forward(&p, 1 + round % 3, NULL) != MHA_OK;
        wrong |= !same_bits(p.output.data, expected, tensor_elements(&p.output));
    }
    free(expected);
    trial_end(&p);
    return (void *)wrong;
}

static void calls_beside_threaded_products_of_the_host_keep_their_bits(void **state)
{
    (void)state;
    if (sgemm_shim_blas_parallel() == 0) {
        skip(); /* a BLAS without locks cannot be shared with a host at all */
    }
    pthread_t host, thread[CALLERS];
    int64_t number[CALLERS];
    intptr_t wrong = 0;
    stop_host = 0;
    sgemm_shim_reset();
    assert_int_equal(pthread_create(&host, NULL, host_multiplies, NULL), 0);
    for (int t = 0; t < CALLERS; ++t) {
        number[t] = t;
        if (pthread_create(&thread[t], NULL, forward_again_and_again, &number[t]) != 0) {
            abort();
        }
    }
    for (int t = 0; t < CALLERS; ++t) {
        void *verdict = NULL;
        wrong |= pthread_join(thread[t], &verdict);
        wrong |= (intptr_t)verdict;
    }
    stop_host = 1; /* before any assertion: OpenBLAS waits for its products when the program ends */
    assert_int_equal(pthread_join(host, NULL), 0);
    assert_int_equal(wrong, 0);
    assert_confined();
}

/* ---- many callers, little memory ---- */

static pthread_barrier_t gate;

static void *attend_once(void *argument)
{
    enum { T = 70 };
    float *out = argument, q[T] = {0}, v[T];
    for (int j = 0; j < T; ++j) {
        v[j] = (float)j;
    }
    pthread_barrier_wait(&gate);
    int32_t status = mha_attention(1, T, T, 1, 1, 1, q, q, v, MHA_CAUSAL_TOP_LEFT, out, NULL);
    int wrong = status != MHA_OK && status != MHA_ERROR_OUT_OF_MEMORY;
    for (int i = 0; status == MHA_OK && i < T; ++i) {
        wrong |= !(fabs((double)out[i] - i / 2.0) < 1e-3);
    }
    return (void *)(intptr_t)(wrong ? 1 : status == MHA_OK ? 0 : 2);
}

static void callers_in_any_number_succeed_or_get_a_status(void **state)
{
    (void)state;
    static const int counts[] = {70, 200};
    for (int c = 0; c < (MHA_TESTS_REDUCED ? 1 : 2); ++c) {
        pthread_t thread[200];
        static float out[200][70];
        int succeeded = 0;
        sgemm_shim_reset();
        assert_int_equal(pthread_barrier_init(&gate, NULL, (unsigned)counts[c]), 0);
        for (int t = 0; t < counts[c]; ++t) {
            assert_int_equal(pthread_create(&thread[t], NULL, attend_once, out[t]), 0);
        }
        for (int t = 0; t < counts[c]; ++t) {
            void *verdict = NULL;
            assert_int_equal(pthread_join(thread[t], &verdict), 0);
            assert_ptr_not_equal(verdict, (void *)1);
            succeeded += verdict == NULL;
        }
        pthread_barrier_destroy(&gate);
        assert_true(succeeded > 0);
        assert_true(sgemm_shim_read().at_once <= 64);
    }
}

/*
 * In a child whose address space may grow by so many MiB only: success or a status, never a hang.
 */
static int attend_in_little_space(rlim_t mebibytes)
{
    char line[256];
    rlim_t kib = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status)) {
        if (strncmp(line, "VmSize:", 7) == 0) {
            kib = strtoull(line + 7, NULL, 10);
        }
    }
    struct rlimit limit = {kib * 1024 + (mebibytes << 20), kib * 1024 + (mebibytes << 20)};
    if (kib == 0 || setrlimit(RLIMIT_AS, &limit) != 0) {
        return 9;
    }
    static float x[200 * 64], out[200 * 64];
    int32_t got = mha_attention(1, 200, 200, 1, 1, 64, x, x, x, 0, out, NULL);
    return got == MHA_OK || got == MHA_ERROR_OUT_OF_MEMORY ? 0 : 1;
}

static void little_address_space_is_a_status_never_a_hang(void **state)
{
    (void)state;
    if (SANITIZED) {
        skip(); /* their shadow memory needs all the address space there is */
    }
    static const rlim_t mebibytes[] = {0, 1, 8, 64, 127, 129, 200, 400};
    for (int i = 0; i < 8; ++i) {
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            alarm(20);
            _exit(attend_in_little_space(mebibytes[i]));
        }
        int status = 0;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
}

int main(void)
{
    print_message("BLAS: parallel %d, %d threads\n", sgemm_shim_blas_parallel(),
                  sgemm_shim_blas_threads());
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(little_address_space_is_a_status_never_a_hang), /* before any first use */
        cmocka_unit_test(products_of_every_kind_of_call_are_no_vectors_and_no_larger_than_allowed),
        cmocka_unit_test(products_of_large_layers_are_confined),
        cmocka_unit_test(B05_one_thread_asked_for_leaves_every_other_thread_idle),
        cmocka_unit_test(calls_beside_threaded_products_of_the_host_keep_their_bits),
        cmocka_unit_test(callers_in_any_number_succeed_or_get_a_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
