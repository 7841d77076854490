/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many threads at once: own contexts and calls, shared layers and masks, one pool for the process.
 */
#define _GNU_SOURCE
#include "support/executors.h"
#include "support/expect.h"
#include "support/trial.h"

#include <platform/pool.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CALLERS = 8, ROUNDS = MHA_TESTS_REDUCED ? 10 : 250, MOST_WORKERS = 63 };

/* The context setting of all callers: one thread each, some of the pool, the default. */
static const int32_t SETTINGS[] = {1, 3, 0};

static void build(trial *p, int64_t T)
{
    trial_begin(p, 1, T, T, 4, 2, 16, 16);
    for (int32_t side = 0; side < 4; ++side) {
        trial_project(p, side, 32, 1);
    }
    p->causal = 1;
    boolean_mask *m = trial_add_mask(p, MASK_KEY, 1, 1, 1, 17); /* only the first 17 keys */
    memset(m->bytes, 1, 17);
    m->bytes[5] = 0;
    trial_tensors(p, 1, 1);
    draw d = {77}; /* parameters are drawn first: every T has the same layer */
    trial_fill(p, &d, 1.0f);
}

typedef struct caller {
    int number;
    int32_t threads;
    const mha_layer *layer; /* NULL: one of its own */
    const mha_mask *mask;
    int wrong;
} caller;

static void *call_again_and_again(void *argument)
{
    caller *c = argument;
    trial p;
    build(&p, 17 + 16 * c->number); /* 17 .. 129 */
    mha_layer *own = c->layer ? NULL : trial_layer(&p);
    mha_mask *own_mask = c->mask ? NULL : trial_mask(&p);
    const mha_layer *layer = c->layer ? c->layer : own;
    const mha_mask *mask = c->mask ? c->mask : own_mask;
    mha_context *ctx = NULL;
    c->wrong |= mha_context_create(&ctx, NULL) != MHA_OK;
    c->wrong |= mha_context_set_threads(ctx, 1, NULL) != MHA_OK;
    c->wrong |= mha_context_set_engine(ctx, c->number % 2, NULL) != MHA_OK; /* both, in turn */
    mha_call *call = trial_call(&p);
    c->wrong |= mha_forward(ctx, layer, mask, call, NULL) != MHA_OK;
    float *output = tensor_read(&p.output), *weights = tensor_read(&p.weights);
    c->wrong |= mha_context_set_threads(ctx, c->threads, NULL) != MHA_OK;
    for (int round = 0; round < ROUNDS; ++round) {
        tensor_flood(&p.output, -7.0f);
        tensor_flood(&p.weights, -7.0f);
        c->wrong |= mha_forward(ctx, layer, mask, call, NULL) != MHA_OK;
        c->wrong |= !same_bits(p.output.data, output, tensor_elements(&p.output));
        c->wrong |= !same_bits(p.weights.data, weights, tensor_elements(&p.weights));
    }
    free(output);
    free(weights);
    mha_call_destroy(call);
    mha_context_destroy(ctx);
    mha_mask_destroy(own_mask);
    mha_layer_destroy(own);
    trial_end(&p);
    return NULL;
}

static void run_callers(const mha_layer *layer, const mha_mask *mask)
{
    for (int s = 0; s < 3; ++s) {
        pthread_t thread[CALLERS];
        caller callers[CALLERS];
        for (int i = 0; i < CALLERS; ++i) {
            callers[i] = (caller){i, SETTINGS[s], layer, mask, 0};
            assert_int_equal(pthread_create(&thread[i], NULL, call_again_and_again, &callers[i]),
                             0);
        }
        for (int i = 0; i < CALLERS; ++i) {
            assert_int_equal(pthread_join(thread[i], NULL), 0);
            assert_false(callers[i].wrong);
        }
    }
}

static void B05_one_thread_asked_for_starts_no_worker(void **state)
{
    (void)state;
    assert_int_equal(mha__pool_workers(), 0); /* the first test of this program */
    trial p;
    build(&p, 129);
    SUCCEEDS(trial_forward(&p, 1, err));
    assert_int_equal(mha__pool_workers(), 0);
    SUCCEEDS(trial_forward(&p, 3, err));
    assert_in_range(mha__pool_workers(), 0, 2);
    trial_end(&p);
}

static void B03_callers_with_layers_of_their_own_get_the_bits_of_a_serial_run(void **state)
{
    (void)state;
    run_callers(NULL, NULL);
}

static void B03_callers_that_share_a_layer_and_a_mask_get_the_bits_of_a_serial_run(void **state)
{
    (void)state;
    trial p;
    build(&p, 129);
    mha_layer *layer = trial_layer(&p);
    mha_mask *mask = trial_mask(&p);
    run_callers(layer, mask);
    mha_mask_destroy(mask);
    mha_layer_destroy(layer);
    trial_end(&p);
}

/* ---- one pool ---- */

static int live_threads(void)
{
    char line[256];
    int threads = -1;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status)) {
        if (strncmp(line, "Threads:", 8) == 0) {
            threads = atoi(line + 8);
        }
    }
    if (status) {
        fclose(status);
    }
    return threads;
}

/* A joined thread stays in the count for a moment: up to two seconds for it to fall to most. */
static int settled_threads(int most)
{
    const struct timespec pause = {0, 10 * 1000 * 1000};
    int threads = live_threads();
    for (int wait = 0; wait < (most == 0 ? 10 : 200) && threads > most; ++wait) {
        nanosleep(&pause, NULL);
        threads = live_threads();
    }
    return threads;
}

static void *create_and_destroy(void *argument)
{
    int *wrong = argument;
    trial p;
    build(&p, 64);
    for (int round = 0; round < ROUNDS; ++round) {
        *wrong |= trial_forward(&p, 0, NULL) != MHA_OK;
    }
    trial_end(&p);
    return NULL;
}

static void B06_the_process_has_one_pool_that_does_not_grow(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    pthread_t thread[THREADS];
    int wrong[THREADS] = {0};
    int after_first = 0;
    for (int repeat = 0; repeat < 3; ++repeat) {
        for (int t = 0; t < THREADS; ++t) {
            assert_int_equal(pthread_create(&thread[t], NULL, create_and_destroy, &wrong[t]), 0);
        }
        for (int t = 0; t < THREADS; ++t) {
            assert_int_equal(pthread_join(thread[t], NULL), 0);
            assert_false(wrong[t]);
        }
        int threads = settled_threads(repeat == 0 ? 0 : after_first);
        assert_true(threads > 0);
        if (repeat == 0) {
            after_first = threads;
        }
        assert_true(threads <= after_first);
    }
    assert_in_range(mha__pool_workers(), 0, MOST_WORKERS);
}

static void the_most_threads_a_context_may_ask_for_are_served(void **state)
{
    (void)state;
    trial p;
    build(&p, 129);
    SUCCEEDS(trial_forward(&p, 1, err));
    float *expected = tensor_read(&p.output);
    for (int round = 0; round < 5; ++round) {
        tensor_flood(&p.output, -7.0f);
        SUCCEEDS(trial_forward(&p, 64, err));
        assert_same_bits(p.output.data, expected, tensor_elements(&p.output));
    }
    assert_in_range(mha__pool_workers(), 1, MOST_WORKERS);
    free(expected);
    trial_end(&p);
}

/* ---- host executors beside the pool ---- */

static void *call_on_an_executor(void *argument)
{
    int *wrong = argument;
    trial p;
    build(&p, 100);
    *wrong |= trial_forward(&p, 1, NULL) != MHA_OK;
    float *expected = tensor_read(&p.output);
    mha_context *ctx = NULL;
    executor_log log;
    executor_log_begin(&log);
    *wrong |= mha_context_create(&ctx, NULL) != MHA_OK;
    *wrong |= mha_context_set_executor(ctx, executor_threads, &log, 3, NULL) != MHA_OK;
    mha_layer *layer = trial_layer(&p);
    mha_mask *mask = trial_mask(&p);
    mha_call *call = trial_call(&p);
    for (int round = 0; round < ROUNDS / 5; ++round) {
        tensor_flood(&p.output, -7.0f);
        *wrong |= mha_forward(ctx, layer, mask, call, NULL) != MHA_OK;
        *wrong |= !same_bits(p.output.data, expected, tensor_elements(&p.output));
    }
    *wrong |= log.entered_elsewhere || log.entered == 0;
    free(expected);
    mha_call_destroy(call);
    mha_mask_destroy(mask);
    mha_layer_destroy(layer);
    mha_context_destroy(ctx);
    trial_end(&p);
    return NULL;
}

static void callers_with_executors_of_their_own_do_not_disturb_each_other(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    pthread_t thread[THREADS];
    int wrong[THREADS] = {0};
    for (int t = 0; t < THREADS; ++t) {
        assert_int_equal(pthread_create(&thread[t], NULL,
                                        t % 2 ? create_and_destroy : call_on_an_executor,
                                        &wrong[t]),
                         0);
    }
    for (int t = 0; t < THREADS; ++t) {
        assert_int_equal(pthread_join(thread[t], NULL), 0);
        assert_false(wrong[t]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(B05_one_thread_asked_for_starts_no_worker),
        cmocka_unit_test(B03_callers_with_layers_of_their_own_get_the_bits_of_a_serial_run),
        cmocka_unit_test(B03_callers_that_share_a_layer_and_a_mask_get_the_bits_of_a_serial_run),
        cmocka_unit_test(B06_the_process_has_one_pool_that_does_not_grow),
        cmocka_unit_test(the_most_threads_a_context_may_ask_for_are_served),
        cmocka_unit_test(callers_with_executors_of_their_own_do_not_disturb_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
