/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A guest in the process: nothing printed, nothing of the host changed, nothing of the host in the
 * numbers.
 */
#define _GNU_SOURCE
#include "support/executors.h"
#include "support/expect.h"
#include "support/host_state.h"
#include "support/trial.h"

#include <fenv.h>
#include <locale.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* Sizes that use several tiles, threads and every part of a forward. */
static void build(trial *p)
{
    trial_begin(p, 2, 130, 140, 4, 2, 16, 16);
    for (int32_t side = 0; side < 4; ++side) {
        trial_project(p, side, 48, 1);
    }
    p->causal = 1;
    p->alignment = MHA_ALIGNMENT_BOTTOM_RIGHT;
    trial_tensors(p, 1, 1);
    draw d = {1};
    trial_fill(p, &d, 1.0f);
}

static host_state before;

/* Reads the state anew and stops at the first thing that the last call changed. */
static void unchanged_by(const char *call, const char *file, int line)
{
    host_state after;
    host_state_read(&after);
    const char *difference = host_state_difference(&before, &after);
    if (difference) {
        print_error("%s changed %s\n", call, difference);
        _fail(file, line);
    }
}

#define CHECKED(call)                                                                              \
    do {                                                                                           \
        host_state_read(&before);                                                                  \
        (void)(call);                                                                              \
        unchanged_by(#call, __FILE__, __LINE__);                                                   \
    } while (0)

/* Every public function that does something, with good and with bad arguments. */
static void call_everything(void)
{
    trial p;
    build(&p);
    mha_error *err = NULL;
    mha_config *cfg = NULL;
    mha_layer *layer = NULL;
    mha_context *ctx = NULL;
    mha_mask *mask = NULL;
    mha_call *call = NULL;
    mha_plan *plan = NULL;
    char text[2048];
    int64_t number = 0;
    double seconds = 0.0;
    float out[64 * 48];

    CHECKED(err = mha_error_create());
    CHECKED(mha_config_create(0, 0, &cfg, err));
    CHECKED(mha_error_message(err, text, sizeof text));
    CHECKED(mha_config_create(48, 3, &cfg, err));
    CHECKED(mha_config_set_kv_heads(cfg, 2, err));
    CHECKED(mha_config_set_scale(cfg, 0.3f, err));
    CHECKED(mha_config_set_scale(cfg, NAN, err));
    CHECKED(mha_config_scale(cfg));
    const float no_number[3] = {1e-40f, NAN, INFINITY}, three[3] = {0.1f, 0.2f, 0.3f};
    CHECKED(mha_config_set_head_scales(cfg, 3, no_number, err));
    CHECKED(mha_config_set_head_scales(cfg, 3, three, err));
    CHECKED(mha_config_set_softcap(cfg, NAN, err));
    CHECKED(mha_config_set_softcap(cfg, 1e-40f, err));
    CHECKED(mha_config_set_head_softcaps(cfg, 3, no_number, err));
    CHECKED(mha_config_set_head_softcaps(cfg, 3, three, err));
    CHECKED(mha_config_set_rotary(cfg, MHA_ROTARY_HALVES, 4, (double)NAN, err));
    CHECKED(mha_config_set_rotary(cfg, MHA_ROTARY_HALVES, 4, 333.3, err));
    CHECKED(mha_config_set_sinks(cfg, 1, err));
    CHECKED(mha_config_set_gates(cfg, 1, err));
    CHECKED(mha_config_set_extra_keys(cfg, 1, 1, err));
    CHECKED(mha_config_set_kv_heads(cfg, 3, err));
    CHECKED(mha_layer_create(cfg, &layer, err));
    CHECKED(mha_layer_initialize(layer, 5, err));
    CHECKED(mha_context_create(&ctx, err));
    CHECKED(mha_context_set_threads(ctx, 3, err));
    CHECKED(mha_context_set_threads(ctx, 1000, err));
    CHECKED(mha_context_profile(ctx, MHA_TIME_OTHER, &seconds, err));
    CHECKED(mha_context_set_profiling(ctx, 1, err));
    CHECKED(mha_layer_forward(ctx, layer, 1, 64, 64, p.query.data, p.query.data, p.query.data, NULL,
                              out, err));
    CHECKED(mha_layer_forward(ctx, layer, 1, 64, 64, NULL, NULL, NULL, NULL, NULL, err));
    mha_layer *smaller = NULL;
    CHECKED(mha_layer_prune_heads(layer, 1, (int64_t[]){3}, &smaller, err));
    CHECKED(mha_layer_prune_heads(layer, 1, (int64_t[]){1}, &smaller, err));
    CHECKED(mha_layer_destroy(smaller));
    CHECKED(mha_layer_destroy(layer));
    CHECKED(layer = trial_layer(&p));
    CHECKED(mha_mask_create(&mask, err));
    CHECKED(mha_mask_set_alibi(mask, 3, no_number, err));
    CHECKED(mha_mask_set_alibi(mask, 3, three, err));
    CHECKED(mha_mask_set_alibi(mask, 3, NULL, err));
    CHECKED(mha_mask_describe(mask, 2, 3, 50, 50, 7, 64, text, sizeof text, &number, err));
    CHECKED(mha_preset_apply(MHA_PRESET_JAX, 1, cfg, mask, err));
    CHECKED(mha_preset_by_name("jax"));
    CHECKED(mha_mask_destroy(mask));
    CHECKED(mask = trial_mask(&p));
    CHECKED(call = trial_call(&p));
    CHECKED(mha_call_set_dropout(call, (double)NAN, 1, err));
    CHECKED(mha_call_set_dropout(call, 0.1, 1, err));
    CHECKED(mha_forward(ctx, layer, mask, call, err));
    CHECKED(mha_context_profile(ctx, MHA_TIME_SOFTMAX, &seconds, err));
    CHECKED(mha_context_profile(ctx, MHA_TIME_IDLE, &seconds, err));
    const float *const parts[2] = {p.query.data, p.key.data};
    CHECKED(mha_merge(2, 64, 48, parts, parts, out, NULL, err));
    CHECKED(mha_merge(2, 64, 48, parts, parts, NULL, NULL, err));
    CHECKED(mha_forward(ctx, layer, NULL, call, err));
    CHECKED(mha_plan_create(ctx, layer, mask, 2, 130, 140, 3, &plan, err));
    CHECKED(mha_plan_describe(plan, text, sizeof text));
    CHECKED(mha_plan_visible_share(plan));
    CHECKED(mha_attention(1, 20, 20, 2, 2, 8, p.query.data, p.key.data, p.value.data, 1, out, err));
    CHECKED(mha_attention(1, 20, 20, 2, 3, 8, NULL, NULL, NULL, 9, NULL, err));
    CHECKED(mha_constant_value("MHA_OK", &number, err));
    CHECKED(mha_constant_value("no such", &number, err));
    CHECKED(mha_version_build_info(text, sizeof text));
    CHECKED(mha_runtime_blas(text, sizeof text));
    CHECKED(mha_runtime_blas_core(text, sizeof text));
    CHECKED(mha_runtime_advice(text, sizeof text));
    CHECKED(mha_runtime_threads());
    CHECKED(mha_runtime_selftest(err));
    CHECKED(mha_plan_destroy(plan));
    CHECKED(mha_call_destroy(call));
    CHECKED(mha_mask_destroy(mask));
    CHECKED(mha_context_destroy(ctx));
    CHECKED(mha_layer_destroy(layer));
    CHECKED(mha_config_destroy(cfg));
    CHECKED(mha_error_destroy(err));
    trial_end(&p);
}

static void nothing_is_printed_by_any_call_good_or_bad(void **state)
{
    (void)state;
    capture c;
    capture_begin(&c);
    call_everything();
    assert_int_equal(capture_end(&c), 0);
}

static void nothing_of_the_host_changes_in_any_call(void **state)
{
    (void)state;
    call_everything();
}

static void nothing_changes_with_another_locale_mask_of_signals_and_environment(void **state)
{
    (void)state;
    sigset_t usual, odd;
    sigemptyset(&odd);
    sigaddset(&odd, SIGUSR1);
    sigaddset(&odd, SIGWINCH);
    sigprocmask(SIG_SETMASK, &odd, &usual);
    setlocale(LC_ALL, "C.UTF-8");
    setenv("MHA_TEST_MARK", "a = b", 1);
    call_everything();
    unsetenv("MHA_TEST_MARK");
    setlocale(LC_ALL, "C");
    sigprocmask(SIG_SETMASK, &usual, NULL);
}

/* ---- odd floating-point control words: neither changed nor seen ---- */

static int always(void)
{
    return 1;
}

static int round_downward(void)
{
    return fesetround(FE_DOWNWARD) == 0;
}

static void odd_control_words_stay_and_change_no_bit(void **state)
{
    (void)state;
    int (*const odd[])(void) = {always, host_round_upward, round_downward, host_flush_to_zero,
                                host_unmask_nothing_but_raise_flags};
    trial p;
    build(&p);
    p.value.data[0] = 1e-40f; /* something for FTZ to bite on */
    host_default_floating_point();
    SUCCEEDS(trial_forward(&p, 1, err));
    float *expected[3] = {tensor_read(&p.output), tensor_read(&p.weights), tensor_read(&p.lse)};
    const tensor *const got[3] = {&p.output, &p.weights, &p.lse};
    mha_layer *layer = trial_layer(&p);
    mha_mask *mask = trial_mask(&p);
    mha_call *call = trial_call(&p);
    for (size_t w = 0; w < sizeof odd / sizeof *odd; ++w) {
        for (int32_t threads = 1; threads < 4; ++threads) {
            mha_context *ctx = NULL;
            SUCCEEDS(mha_context_create(&ctx, err));
            SUCCEEDS(mha_context_set_threads(ctx, threads, err));
            tensor_flood(&p.output, -7.0f);
            assert_true(odd[w]());
            host_state_read(&before);
            int32_t status = mha_forward(ctx, layer, mask, call, NULL);
            host_state after;
            host_state_read(&after);
            host_default_floating_point();
            assert_null(host_state_difference(&before, &after));
            assert_int_equal(status, MHA_OK);
            for (int t = 0; t < 3; ++t) {
                assert_same_bits(got[t]->data, expected[t], tensor_elements(got[t]));
            }
            mha_context_destroy(ctx);
        }
    }
    /* setters and sentences that format numbers, and a parameter that is packed */
    assert_true(host_round_upward());
    mha_layer *second = trial_layer(&p);
    host_default_floating_point();
    mha_context *ctx = NULL;
    SUCCEEDS(mha_context_create(&ctx, err));
    SUCCEEDS(mha_forward(ctx, second, mask, call, err));
    assert_same_bits(p.output.data, expected[0], tensor_elements(&p.output));
    mha_context_destroy(ctx);
    mha_layer_destroy(second);

    mha_call_destroy(call);
    mha_mask_destroy(mask);
    mha_layer_destroy(layer);
    for (int t = 0; t < 3; ++t) {
        free(expected[t]);
    }
    trial_end(&p);
}

/* A host executor's threads get their own control word back too. */
typedef struct seen {
    executor_log log;
    int changed;
} seen;

static int32_t run_with_odd_words(void *user, int64_t n, void (*task)(void *, int64_t), void *arg)
{
    seen *s = user;
    for (int64_t i = 0; i < n; ++i) {
        host_state a, b;
        host_default_floating_point();
        fesetround(i % 2 ? FE_UPWARD : FE_TOWARDZERO);
        host_state_read(&a);
        task(arg, i);
        host_state_read(&b);
        s->changed |= host_state_difference(&a, &b) != NULL;
    }
    host_default_floating_point();
    s->log.tasks += n;
    return 0;
}

static void tasks_on_a_host_executor_give_the_control_word_back_and_do_not_see_it(void **state)
{
    (void)state;
    trial p;
    build(&p);
    SUCCEEDS(trial_forward(&p, 1, err));
    float *expected = tensor_read(&p.output);
    mha_context *ctx = NULL;
    SUCCEEDS(mha_context_create(&ctx, err));
    mha_layer *layer = trial_layer(&p);
    mha_mask *mask = trial_mask(&p);
    mha_call *call = trial_call(&p);
    seen s;
    memset(&s, 0, sizeof s);
    SUCCEEDS(mha_context_set_executor(ctx, run_with_odd_words, &s, 4, err));
    SUCCEEDS(mha_forward(ctx, layer, mask, call, err));
    assert_true(s.log.tasks > 0);
    assert_false(s.changed);
    assert_same_bits(p.output.data, expected, tensor_elements(&p.output));
    free(expected);
    mha_call_destroy(call);
    mha_mask_destroy(mask);
    mha_layer_destroy(layer);
    mha_context_destroy(ctx);
    trial_end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_printed_by_any_call_good_or_bad),
        cmocka_unit_test(nothing_of_the_host_changes_in_any_call),
        cmocka_unit_test(nothing_changes_with_another_locale_mask_of_signals_and_environment),
        cmocka_unit_test(odd_control_words_stay_and_change_no_bit),
        cmocka_unit_test(tasks_on_a_host_executor_give_the_control_word_back_and_do_not_see_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
