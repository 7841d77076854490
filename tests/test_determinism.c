/* SPDX-License-Identifier: Apache-2.0 */
/* The same bits for any number of threads, run after run, on any executor. */
#include "support/executors.h"
#include "support/expect.h"
#include "support/trial.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { REPEATS = MHA_TESTS_REDUCED ? 2 : 20 };
static const int32_t THREADS[] = {1, 2, 3, 4, 7, 16};
enum { THREAD_COUNTS = sizeof THREADS / sizeof *THREADS };

typedef struct results {
    float *output, *weights, *lse;
} results;

static results read_results(const trial *p)
{
    return (results){tensor_read(&p->output), p->weights.data ? tensor_read(&p->weights) : NULL,
                     tensor_read(&p->lse)};
}

static void free_results(results *r)
{
    free(r->output);
    free(r->weights);
    free(r->lse);
}

static void assert_results(const trial *p, const results *r)
{
    results now = read_results(p);
    assert_same_bits(now.output, r->output, tensor_elements(&p->output));
    if (r->weights) {
        assert_same_bits(now.weights, r->weights, tensor_elements(&p->weights));
    }
    assert_same_bits(now.lse, r->lse, tensor_elements(&p->lse));
    free_results(&now);
}

/*
 * An odd-sized layer, 56 features in, 444 out; a core of many heads; causal with lengths; a window; few
 * tokens, with and without weights.
 */
static void build(trial *p, int which)
{
    switch (which) {
    case 0:
        trial_begin(p, 1, 77, 77, 4, 2, 13, 11);
        for (int32_t side = 0; side < 3; ++side) {
            trial_project(p, side, 56, 1);
        }
        trial_project(p, MHA_PROJECTION_OUT, 444, 1);
        break;
    case 1:
        trial_begin(p, 2, 150, 333, 6, 3, 64, 64);
        break;
    case 2:
        trial_begin(p, 3, 200, 200, 4, 4, 32, 32);
        p->causal = 1;
        p->alignment = MHA_ALIGNMENT_BOTTOM_RIGHT;
        p->key_batch = 3;
        p->key_lengths[0] = 200;
        p->key_lengths[1] = 77;
        p->key_lengths[2] = 1;
        break;
    case 3:
        trial_begin(p, 1, 300, 300, 2, 1, 40, 24);
        p->alignment = MHA_ALIGNMENT_TOP_LEFT;
        p->left = 50;
        p->right = 20;
        break;
    case 4: /* one token, four heads to a key: chunks of keys */
        trial_begin(p, 1, 1, 5000, 4, 1, 64, 64);
        break;
    case 5: /* few tokens, chunks that nobody sees */
        trial_begin(p, 2, 3, 3000, 4, 2, 40, 24);
        p->causal = 1;
        p->alignment = MHA_ALIGNMENT_BOTTOM_RIGHT;
        p->key_batch = 2;
        p->key_lengths[0] = 2950;
        p->key_lengths[1] = 600;
        break;
    default: /* one token against many: rows alone */
        trial_begin(p, 2, 1, 1000, 8, 2, 64, 64);
        for (int32_t side = 0; side < 4; ++side) {
            trial_project(p, side, 96, 1);
        }
        break;
    }
    trial_tensors(p, which < 4 || which > 5, 1); // without weights few tokens pack nothing
    draw d = {(uint64_t)which + 1};
    trial_fill(p, &d, 1.0f);
}
enum { TRIALS = 7 };

static void bits_are_the_same_for_every_number_of_threads_and_every_repeat(void **state)
{
    (void)state;
    for (int which = 0; which < TRIALS; ++which) {
        trial p;
        build(&p, which);
        SUCCEEDS(trial_forward(&p, 1, err));
        results expected = read_results(&p);
        mha_context *ctx = NULL;
        SUCCEEDS(mha_context_create(&ctx, err));
        mha_layer *layer = trial_layer(&p);
        mha_mask *mask = trial_mask(&p);
        mha_call *call = trial_call(&p);
        for (int t = 0; t < THREAD_COUNTS; ++t) {
            SUCCEEDS(mha_context_set_threads(ctx, THREADS[t], err));
            for (int repeat = 0; repeat < REPEATS; ++repeat) {
                tensor_flood(&p.output, -7.0f);
                tensor_flood(&p.weights, -7.0f);
                tensor_flood(&p.lse, -7.0f);
                SUCCEEDS(mha_forward(ctx, layer, mask, call, err));
                assert_results(&p, &expected);
            }
        }
        mha_call_destroy(call);
        mha_mask_destroy(mask);
        mha_layer_destroy(layer);
        mha_context_destroy(ctx);
        free_results(&expected);
        trial_end(&p);
    }
}

static void bits_are_the_same_on_a_host_executor_in_any_order_and_on_any_threads(void **state)
{
    (void)state;
    mha_parallel_for const executors[] = {executor_backwards, executor_threads};
    static const int32_t planned[] = {1, 2, 3, 16, 64};
    for (int which = 0; which < TRIALS; ++which) {
        trial p;
        build(&p, which);
        SUCCEEDS(trial_forward(&p, 1, err));
        results expected = read_results(&p);
        mha_context *ctx = NULL;
        SUCCEEDS(mha_context_create(&ctx, err));
        mha_layer *layer = trial_layer(&p);
        mha_mask *mask = trial_mask(&p);
        mha_call *call = trial_call(&p);
        for (int e = 0; e < 2; ++e) {
            for (int n = 0; n < 5; ++n) {
                executor_log log;
                executor_log_begin(&log);
                SUCCEEDS(mha_context_set_executor(ctx, executors[e], &log, planned[n], err));
                tensor_flood(&p.output, -7.0f);
                tensor_flood(&p.weights, -7.0f);
                tensor_flood(&p.lse, -7.0f);
                SUCCEEDS(mha_forward(ctx, layer, mask, call, err));
                assert_false(log.entered_elsewhere);
                assert_results(&p, &expected);
            }
        }
        mha_call_destroy(call);
        mha_mask_destroy(mask);
        mha_layer_destroy(layer);
        mha_context_destroy(ctx);
        free_results(&expected);
        trial_end(&p);
    }
}

/* A large call before, NaN in the workspace, another mask: a context carries nothing over. */
static void bits_are_the_same_on_a_context_that_did_other_work_before(void **state)
{
    (void)state;
    mha_context *ctx = NULL;
    SUCCEEDS(mha_context_create(&ctx, err));
    for (int round = 0; round < 2; ++round) {
        for (int which = 0; which < TRIALS; ++which) {
            trial p, dirt;
            build(&p, which);
            SUCCEEDS(trial_forward(&p, 2, err));
            results expected = read_results(&p);

            build(&dirt, (which + 2) % TRIALS);
            tensor_flood(&dirt.query, NAN);
            tensor_flood(&dirt.key, INFINITY);
            tensor_flood(&dirt.value, NAN);
            trial *const both[2] = {&dirt, &p};
            for (int t = 0; t < 2; ++t) {
                mha_layer *layer = trial_layer(both[t]);
                mha_mask *mask = trial_mask(both[t]);
                mha_call *call = trial_call(both[t]);
                SUCCEEDS(mha_forward(ctx, layer, mask, call, err));
                mha_call_destroy(call);
                mha_mask_destroy(mask);
                mha_layer_destroy(layer);
            }
            assert_results(&p, &expected);
            free_results(&expected);
            trial_end(&p);
            trial_end(&dirt);
        }
    }
    mha_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_are_the_same_for_every_number_of_threads_and_every_repeat),
        cmocka_unit_test(bits_are_the_same_on_a_host_executor_in_any_order_and_on_any_threads),
        cmocka_unit_test(bits_are_the_same_on_a_context_that_did_other_work_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
