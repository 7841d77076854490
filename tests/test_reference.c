/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mha_reference_forward against the oracle of the tests, which is written apart from it. Both are float64,
 * so they may differ by the rounding of the result to float32 and what float64 itself loses: far less than
 * the bounds of a float32 forward.
 *
 * MHA_TEST_SEED=n draws other cases, MHA_TEST_CASE=n runs one of them alone.
 */
#define _DEFAULT_SOURCE
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/brutal.h"
#include "support/expect.h"
#include "support/hidden.h"
#include "support/host_state.h"
#include "support/oracle.h"
#include "support/sweep.h"

enum { LEAST = MHA_TESTS_REDUCED ? 200 : 500, MOST = 4000 };
static const int64_t BUDGET = MHA_TESTS_REDUCED ? 2000000 : 6000000;
static const float FILL = -7.0f;

static sweep_case cases[MOST];
static int current = -1;

/*
 * The worst |got - oracle| of finite numbers over what one rounding allows: 2^-24 relative, and 1e-9 of the
 * size of the numbers that were summed (values up to 3e4 in 257 terms of float64 lose 1e-11).
 */
static double rounding_ratio(trial *p, const oracle *r)
{
    double worst = 0;
    for (int32_t id = MHA_TENSOR_OUTPUT; id <= MHA_TENSOR_KEY_MASS_TOTAL; ++id) {
        if (id >= MHA_TENSOR_BIAS0 && id <= MHA_TENSOR_BIAS3) {
            continue;
        }
        const tensor *t = trial_result(p, id);
        const double *value = oracle_value(r, id);
        const int64_t elements = t->data && p->T > 0 ? tensor_elements(t) : 0;
        double size = 1;
        for (int64_t n = 0; n < elements; ++n) {
            size = fmax(size, isfinite(value[n]) ? fabs(value[n]) : 0);
        }
        for (int64_t n = 0; n < elements; ++n) {
            const double got = (double)*tensor_element(t, n);
            const double allowed = 0x1.01p-24 * fabs(value[n]) + 1e-9 * fmin(size, 1e5) + 1.2e-38;
            const double ratio = got == value[n] ? 0 : fabs(got - value[n]) / allowed;
            if (!(ratio <= 1)) {
                print_error("tensor %d, number %lld: %.9g, oracle %.12g\n",
                            (int)id,
                            (long long)n,
                            got,
                            value[n]);
                return INFINITY;
            }
            worst = fmax(worst, ratio);
        }
    }
    return worst;
}

static void assert_twin_is_the_same(const sweep_case *c, trial *p)
{
    trial twin;
    sweep_trial(c, &twin, FILL);
    hidden_poison(&twin);
    SUCCEEDS(trial_reference(&twin, err));
    const tensor *results[][2] = {{&p->output, &twin.output},
                                  {&p->weights, &twin.weights},
                                  {&p->lse, &twin.lse}};
    for (int n = 0; n < 3; ++n) {
        const tensor *a = results[n][0], *b = results[n][1];
        assert_true(!a->data || same_bits(a->block, b->block, a->count));
    }
    trial_end(&twin);
}

static void reference_equals_the_oracle_in_every_pair_of_options(void **state)
{
    (void)state;
    const char *seed = getenv("MHA_TEST_SEED"), *only = getenv("MHA_TEST_CASE");
    int missed = 0, run = 0;
    double worst = 0;
    const int count =
        sweep_make(cases, LEAST, MOST, BUDGET, seed ? strtoull(seed, NULL, 10) : 777, &missed);
    for (int i = only ? atoi(only) : 0; i < (only ? atoi(only) + 1 : count); ++i) {
        trial p;
        current = i;
        sweep_trial(&cases[i], &p, FILL);
        if (sweep_status(&p) == MHA_OK) {
            SUCCEEDS(trial_reference(&p, err));
            oracle r;
            oracle_run(&p, &r);
            assert_true(oracle_compare(&p, &r) <= 1);
            assert_true(oracle_top_is_right(&p, &r));
            worst = fmax(worst, rounding_ratio(&p, &r));
            oracle_end(&r);
            assert_true(worst <= 1);
            assert_true(hidden_gaps_untouched(&p, FILL));
            assert_twin_is_the_same(&cases[i], &p);
            ++run;
        }
        trial_end(&p);
    }
    current = -1;
    print_message("%d cases, error at most %.2f of one rounding\n", run, worst);
    assert_int_equal(missed, 0);
    assert_true(only || (run >= LEAST / 2 && worst > 0));
}

static int name_the_case_that_failed(void **state)
{
    (void)state;
    if (current >= 0) {
        char text[1024];
        sweep_describe(&cases[current], text, sizeof text);
        print_error("MHA_TEST_CASE=%d: %s\n", current, text);
    }
    return 0;
}

/* A layer with everything, small. */
static void everything(trial *p, draw *d)
{
    trial_begin(p, 2, 3, 4, 4, 2, 4, 3);
    for (int32_t side = 0; side < 4; ++side) {
        trial_project(p, side, 5, 1);
    }
    p->sinks = p->gates = p->bias_kv = p->zero_key = p->causal = p->alibi = 1;
    p->alignment = MHA_ALIGNMENT_BOTTOM_RIGHT;
    p->rotary_size = 4;
    p->dropout = 0.25;
    p->softcap = 3;
    trial_add_bias(p, (int64_t[4]){1, 4, 3, 4}, NULL);
    trial_tensors(p, 1, 1);
    trial_ask(p, MHA_TENSOR_KEY_MASS_TOTAL);
    trial_ask_top(p, 2, 1);
    trial_fill(p, d, 1.0f);
}

/* Equal weights: the lowest key first; hidden keys never; -1 and 0 where there are no more. */
static void reference_top_keys_of_equal_weights_are_the_lowest_visible(void **state)
{
    (void)state;
    trial p;
    draw d = {3};
    trial_begin(&p, 1, 1, 6, 1, 1, 1, 1);
    p.scale_is_set = 1; /* a scale of 0: all weights are equal */
    boolean_mask *m = trial_add_mask(&p, MASK_KEY, 1, 1, 1, 6);
    memcpy(m->bytes, (uint8_t[]){0, 1, 0, 1, 1, 0}, 6);
    trial_tensors(&p, 0, 0);
    trial_ask_top(&p, 5, 1);
    trial_fill(&p, &d, 1.0f);
    SUCCEEDS(trial_reference(&p, err));
    const int64_t keys[5] = {1, 3, 4, -1, -1};
    const float third = (float)(1.0 / 3.0), weights[5] = {third, third, third, 0, 0};
    assert_memory_equal(p.top_keys, keys, sizeof keys);
    assert_same_bits(p.top_weights, weights, 5);
    trial_end(&p);
}

static void reference_leaves_the_floating_point_state_of_the_host_alone(void **state)
{
    (void)state;
    trial p;
    draw d = {4};
    everything(&p, &d);
    SUCCEEDS(trial_reference(&p, err));
    float *before = tensor_read(&p.output);
    int (*const change[])(void) = {
        host_round_upward, host_flush_to_zero, host_unmask_nothing_but_raise_flags};
    for (int n = 0; n < 3; ++n) {
        host_state here, after;
        const int there_is_one = change[n]();
        host_state_read(&here);
        const int32_t status = trial_reference(&p, NULL);
        host_state_read(&after);
        host_default_floating_point();
        assert_int_equal(status, MHA_OK);
        assert_null(host_state_difference(&here, &after));
        assert_true(there_is_one || n > 0);
    }
    float *now = tensor_read(&p.output);
    assert_same_bits(before, now, tensor_elements(&p.output));
    free(before);
    free(now);
    trial_end(&p);
}

static void reference_refuses_what_forward_refuses_and_writes_nothing(void **state)
{
    (void)state;
    trial p;
    draw d = {5};
    everything(&p, &d);
    tensor_flood(&p.output, FILL);
    mha_layer *layer = trial_layer(&p);
    mha_call *call = trial_call(&p);
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_reference_forward(NULL, NULL, call, err), "layer");
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_reference_forward(layer, NULL, NULL, err), "call");
    /* rotary positions with T != S, and no mask that says an alignment */
    REFUSED(MHA_ERROR_ALIGNMENT, mha_reference_forward(layer, NULL, call, err), "3", "4");
    mha_call_destroy(call);
    SUCCEEDS(mha_call_create(&call, err));
    REFUSED(MHA_ERROR_NOT_SET, mha_reference_forward(layer, NULL, call, err), "MHA_TENSOR_QUERY");
    assert_true(all_are(p.output.block, p.output.count, FILL));
    mha_call_destroy(call);
    mha_layer_destroy(layer);
    trial_end(&p);
}

static void reference_survives_every_allocation_that_fails(void **state)
{
    (void)state;
    trial p;
    draw d = {6};
    everything(&p, &d);
    mha_layer *layer = trial_layer(&p);
    mha_mask *mask = trial_mask(&p);
    mha_call *call = trial_call(&p);
    tensor_flood(&p.output, FILL);
    BRUTAL(mha_reference_forward(layer, mask, call, NULL),
           assert_true(all_are(p.output.block, p.output.count, FILL)));
    assert_true(brutal_failures > 0);
    assert_false(all_are(p.output.block, p.output.count, FILL));
    mha_call_destroy(call);
    mha_mask_destroy(mask);
    mha_layer_destroy(layer);
    trial_end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(reference_equals_the_oracle_in_every_pair_of_options,
                                  name_the_case_that_failed),
        cmocka_unit_test(reference_top_keys_of_equal_weights_are_the_lowest_visible),
        cmocka_unit_test(reference_leaves_the_floating_point_state_of_the_host_alone),
        cmocka_unit_test(reference_refuses_what_forward_refuses_and_writes_nothing),
        cmocka_unit_test(reference_survives_every_allocation_that_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
