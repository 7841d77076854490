/* SPDX-License-Identifier: Apache-2.0 */
/* fork before and after first use: child and parent compute, with the same numbers. */
#define _GNU_SOURCE
#include "support/expect.h"
#include "support/trial.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE = MHA_TESTS_REDUCED ? 100 : 20 }; /* seconds */

static void build(trial *p)
{
    trial_begin(p, 1, 150, 150, 4, 4, 32, 32);
    for (int32_t side = 0; side < 4; ++side) {
        trial_project(p, side, 64, 1);
    }
    trial_tensors(p, 0, 0);
    draw d = {1};
    trial_fill(p, &d, 1.0f);
}

/* What a child does; its exit status is the verdict, SIGALRM ends one that hangs. */
typedef int work(void *argument);

static void expect_child_succeeds(work *child, void *argument)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        alarm(PATIENCE);
        _exit(child(argument));
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status)); /* not ended by the alarm or a fault */
    assert_int_equal(WEXITSTATUS(status), 0);
}

typedef struct shared {
    trial p;
    float *expected; /* NULL: nothing was computed yet */
    mha_context *ctx;
    mha_layer *layer;
    mha_call *call;
} shared;

/* 0: the forward succeeds and gives the expected bits. */
static int forward(void *argument)
{
    shared *s = argument;
    tensor_flood(&s->p.output, -7.0f);
    if (mha_forward(s->ctx, s->layer, NULL, s->call, NULL) != MHA_OK) {
        return 1;
    }
    return s->expected && !same_bits(s->p.output.data, s->expected, s->p.output.count - 1) ? 2 : 0;
}

static int forward_here_and_in_a_child(void *argument)
{
    int first = forward(argument);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(PATIENCE);
        _exit(forward(argument));
    }
    int status = 0;
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status)) {
        return 3;
    }
    /* a new context in the child, and the old one destroyed there */
    shared *s = argument;
    mha_context *ctx = NULL;
    if (mha_context_create(&ctx, NULL) != MHA_OK ||
        mha_context_set_threads(ctx, 4, NULL) != MHA_OK) {
        return 4;
    }
    mha_context_destroy(s->ctx);
    s->ctx = ctx;
    int second = forward(s);
    mha_context_destroy(ctx);
    return first | second | WEXITSTATUS(status);
}

static void shared_begin(shared *s)
{
    build(&s->p);
    s->expected = NULL;
    s->layer = trial_layer(&s->p);
    s->call = trial_call(&s->p);
    s->ctx = NULL;
    SUCCEEDS(mha_context_create(&s->ctx, err));
    SUCCEEDS(mha_context_set_threads(s->ctx, 4, err));
}

static void shared_end(shared *s)
{
    free(s->expected);
    mha_call_destroy(s->call);
    mha_layer_destroy(s->layer);
    mha_context_destroy(s->ctx);
    trial_end(&s->p);
}

static void B01_child_forked_before_first_use_computes_and_so_does_the_parent(void **state)
{
    (void)state;
    shared s;
    shared_begin(&s);
    expect_child_succeeds(forward, &s);
    assert_int_equal(forward(&s), 0);
    shared_end(&s);
}

static void B01_child_forked_after_use_and_its_own_child_compute_the_same_bits(void **state)
{
    (void)state;
    shared s;
    shared_begin(&s);
    for (int round = 0; round < 5; ++round) {
        assert_int_equal(forward(&s), 0);
        if (!s.expected) {
            s.expected = tensor_read(&s.p.output);
        }
        expect_child_succeeds(forward_here_and_in_a_child, &s);
        assert_int_equal(forward(&s), 0);
    }
    shared_end(&s);
}

static int attention_in_child(void *argument)
{
    const trial *p = argument;
    float *out = calloc((size_t)p->output.count, sizeof *out);
    int32_t status = mha_attention(1, 150, 150, 4, 4, 16, p->query.data, p->query.data,
                                   p->query.data, 0, out, NULL);
    free(out);
    return status != MHA_OK;
}

static void B01_the_hidden_contexts_work_in_a_child(void **state)
{
    (void)state;
    trial p;
    build(&p);
    assert_int_equal(attention_in_child(&p), 0);
    expect_child_succeeds(attention_in_child, &p);
    assert_int_equal(attention_in_child(&p), 0);
    trial_end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(B01_child_forked_before_first_use_computes_and_so_does_the_parent),
        cmocka_unit_test(B01_child_forked_after_use_and_its_own_child_compute_the_same_bits),
        cmocka_unit_test(B01_the_hidden_contexts_work_in_a_child),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
