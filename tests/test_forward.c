/* SPDX-License-Identifier: Apache-2.0 */
#include "support/brutal.h"
#include "support/oracle.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * A layer with everything: projections, biases, grouped heads, D != Dv, odd widths, causal,
 * lengths.
 */
static void rich(trial *p, uint64_t seed)
{
    trial_begin(p, 2, 9, 13, 6, 3, 10, 7);
    trial_project(p, MHA_PROJECTION_Q, 23, 1);
    trial_project(p, MHA_PROJECTION_K, 19, 0);
    trial_project(p, MHA_PROJECTION_V, 31, 1);
    trial_project(p, MHA_PROJECTION_OUT, 17, 1);
    p->causal = 1;
    p->alignment = MHA_ALIGNMENT_BOTTOM_RIGHT;
    p->key_batch = 2;
    p->key_lengths[0] = 13;
    p->key_lengths[1] = 4;
    trial_tensors(p, 1, 1);
    draw d = {seed};
    trial_fill(p, &d, 1.0f);
}

typedef struct objects {
    mha_context *ctx;
    mha_layer *layer;
    mha_mask *mask;
    mha_call *call;
} objects;

static objects objects_of(const trial *p)
{
    objects o = {NULL, trial_layer(p), trial_mask(p), trial_call(p)};
    assert_int_equal(mha_context_create(&o.ctx, NULL), MHA_OK);
    return o;
}

static void objects_end(objects *o)
{
    mha_call_destroy(o->call);
    mha_mask_destroy(o->mask);
    mha_layer_destroy(o->layer);
    mha_context_destroy(o->ctx);
}

/* ---- behaviour ---- */

static void forward_of_a_rich_layer_equals_the_oracle(void **state)
{
    (void)state;
    trial p;
    rich(&p, 1);
    SUCCEEDS(trial_forward(&p, 0, err));
    oracle r;
    oracle_run(&p, &r);
    double worst = oracle_compare(&p, &r);
    assert_true(worst <= 1);
    assert_true(worst > 0); /* float32 cannot be exact here: the comparison looks at something */
    oracle_end(&r);
    trial_end(&p);
}

static void forward_computes_only_the_outputs_that_are_set(void **state)
{
    (void)state;
    trial whole;
    rich(&whole, 2);
    SUCCEEDS(trial_forward(&whole, 1, err));
    for (int wanted = 1; wanted < 8; ++wanted) {
        trial p;
        rich(&p, 2);
        tensor *const outputs[3] = {&p.output, &p.weights, &p.lse};
        const tensor *const expected[3] = {&whole.output, &whole.weights, &whole.lse};
        for (int i = 0; i < 3; ++i) {
            if (!(wanted >> i & 1)) {
                tensor_destroy(outputs[i]);
            }
        }
        SUCCEEDS(trial_forward(&p, 1, err));
        oracle r;
        oracle_run(&p, &r);
        assert_true(oracle_compare(&p, &r) <= 1);
        oracle_end(&r);
        for (int i = 0; i < 3; ++i) {
            if (outputs[i]->data) {
                assert_int_equal(outputs[i]->count, expected[i]->count);
            }
        }
        trial_end(&p);
    }
    trial_end(&whole);
}

static void forward_with_a_missing_tensor_or_no_output_names_it_and_writes_nothing(void **state)
{
    (void)state;
    static const char *const name[3] = {"QUERY", "KEY", "VALUE"};
    trial p;
    rich(&p, 3);
    objects o = objects_of(&p);
    for (int32_t missing = 0; missing < 3; ++missing) {
        const tensor *const in[3] = {&p.query, &p.key, &p.value};
        const tensor *t = in[missing];
        tensor_flood(&p.output, -7.0f);
        SUCCEEDS(mha_call_set_input(o.call, missing, MHA_FLOAT32, NULL, 0, NULL, NULL, err));
        REFUSED(MHA_ERROR_NOT_SET, mha_forward(o.ctx, o.layer, o.mask, o.call, err), name[missing]);
        assert_true(all_are(p.output.block, p.output.count, -7.0f));
        SUCCEEDS(mha_call_set_input(o.call, missing, MHA_FLOAT32, t->data, t->rank, t->shape,
                                    t->strides, err));
    }
    for (int32_t id = MHA_TENSOR_OUTPUT; id <= MHA_TENSOR_LSE; ++id) {
        SUCCEEDS(mha_call_set_output(o.call, id, MHA_FLOAT32, NULL, 0, NULL, NULL, err));
    }
    REFUSED(MHA_ERROR_NOT_SET, mha_forward(o.ctx, o.layer, o.mask, o.call, err), "output");
    objects_end(&o);
    trial_end(&p);
}

static void forward_with_null_objects_is_refused(void **state)
{
    (void)state;
    trial p;
    rich(&p, 4);
    objects o = objects_of(&p);
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_forward(NULL, o.layer, o.mask, o.call, err), "NULL");
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_forward(o.ctx, NULL, o.mask, o.call, err), "NULL");
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_forward(o.ctx, o.layer, o.mask, NULL, err), "NULL");
    objects_end(&o);
    trial_end(&p);
}

/*
 * Every axis of every tensor, one too long: refused, the number and the one expected in the
 * sentence.
 */
static void forward_with_a_shape_that_does_not_fit_is_refused_with_both_numbers(void **state)
{
    (void)state;
    trial p;
    rich(&p, 5);
    objects o = objects_of(&p);
    const tensor *const tensors[6] = {&p.query, &p.key, &p.value, &p.output, &p.weights, &p.lse};
    for (int32_t id = 0; id < 6; ++id) {
        const tensor *t = tensors[id];
        float *room = calloc((size_t)t->count * 3 + 64, sizeof *room);
        assert_non_null(room);
        for (int32_t axis = 0; axis < t->rank; ++axis) {
            int64_t shape[4];
            memcpy(shape, t->shape, sizeof shape);
            shape[axis] += 1;
            char got[24], expected[24];
            snprintf(got, sizeof got, "%lld", (long long)shape[axis]);
            snprintf(expected, sizeof expected, "%lld", (long long)t->shape[axis]);
            if (id < 3) {
                SUCCEEDS(
                    mha_call_set_input(o.call, id, MHA_FLOAT32, room, t->rank, shape, NULL, err));
            } else {
                SUCCEEDS(
                    mha_call_set_output(o.call, id, MHA_FLOAT32, room, t->rank, shape, NULL, err));
            }
            tensor_flood(&p.output, -7.0f);
            REFUSED(MHA_ERROR_SHAPE, mha_forward(o.ctx, o.layer, o.mask, o.call, err), got,
                    expected);
            assert_true(all_are(p.output.block, p.output.count, -7.0f));
        }
        if (id < 3) {
            SUCCEEDS(
                mha_call_set_input(o.call, id, MHA_FLOAT32, t->data, t->rank, t->shape, NULL, err));
        } else {
            SUCCEEDS(mha_call_set_output(o.call, id, MHA_FLOAT32, t->data, t->rank, t->shape, NULL,
                                         err));
        }
        free(room);
    }
    SUCCEEDS(mha_forward(o.ctx, o.layer, o.mask, o.call, err));
    objects_end(&o);
    trial_end(&p);
}

static void forward_with_heads_where_a_projection_is_on_is_refused(void **state)
{
    (void)state;
    trial p;
    rich(&p, 6);
    objects o = objects_of(&p);
    float x[2 * 9 * 23] = {0};
    SUCCEEDS(mha_call_set_input(o.call, MHA_TENSOR_QUERY, MHA_FLOAT32, x, 4,
                                (int64_t[]){2, 9, 23, 1}, NULL, err));
    REFUSED(MHA_ERROR_SHAPE, mha_forward(o.ctx, o.layer, o.mask, o.call, err), "QUERY");
    objects_end(&o);
    trial_end(&p);
}

static void forward_refuses_an_output_that_shares_an_element_with_another_tensor(void **state)
{
    (void)state;
    trial p;
    trial_begin(&p, 1, 4, 4, 1, 1, 4, 4);
    trial_tensors(&p, 1, 1);
    draw d = {7};
    trial_fill(&p, &d, 1.0f);
    objects o = objects_of(&p);
    const tensor *const others[5] = {&p.query, &p.key, &p.value, &p.weights, &p.lse};
    const int64_t shape[3] = {1, 4, 4};
    for (int i = 0; i < 5; ++i) {
        const float first = others[i]->data[0];
        SUCCEEDS(mha_call_set_output(o.call, MHA_TENSOR_OUTPUT, MHA_FLOAT32, others[i]->data, 3,
                                     shape, NULL, err));
        REFUSED(MHA_ERROR_OVERLAP, mha_forward(o.ctx, o.layer, NULL, o.call, err), "OUTPUT");
        assert_true(same_bits(others[i]->data, &first, 1));
    }
    objects_end(&o);
    trial_end(&p);
}

static void forward_takes_interleaved_tensors_that_share_no_element(void **state)
{
    (void)state;
    /*
     * rows of 16 numbers: query, key, value, output, four each; the output lies between the inputs
     */
    trial p;
    trial_begin(&p, 1, 5, 5, 1, 1, 4, 4);
    float fused[5 * 16];
    draw d = {8};
    draw_fill(&d, fused, 80, -1, 1);
    const int64_t shape[3] = {1, 5, 4}, strides[3] = {80, 16, 1};
    tensor_view(&p.query, fused, 3, shape, strides);
    tensor_view(&p.key, fused + 4, 3, shape, strides);
    tensor_view(&p.value, fused + 12, 3, shape, strides);
    tensor_view(&p.output, fused + 8, 3, shape, strides);
    oracle r;
    oracle_run(&p, &r);
    SUCCEEDS(trial_forward(&p, 1, err));
    assert_true(oracle_compare(&p, &r) <= 1);
    oracle_end(&r);
    trial_end(&p);
}

static void forward_weights_and_lse_may_be_strided(void **state)
{
    (void)state;
    trial p;
    rich(&p, 9);
    /* weights [B,H,T,S] laid out as [T,B,H,S + 3]; lse as [H,B,T + 2] */
    tensor_destroy(&p.weights);
    tensor_destroy(&p.lse);
    tensor_create(&p.weights, 4, (int64_t[]){2, 6, 9, 13}, (int64_t[]){6 * 16, 16, 12 * 16, 1});
    tensor_create(&p.lse, 3, (int64_t[]){2, 6, 9}, (int64_t[]){11, 22, 1});
    tensor_flood(&p.lse, -7.0f);
    tensor_flood(&p.weights, -7.0f);
    SUCCEEDS(trial_forward(&p, 1, err));
    oracle r;
    oracle_run(&p, &r);
    assert_true(oracle_compare(&p, &r) <= 1);
    oracle_end(&r);
    for (int64_t row = 0; row < 2 * 6 * 9 - 1; ++row) {
        assert_true(all_are(p.weights.block + row * 16 + 13, 3, -7.0f));
    }
    trial_end(&p);
}

/* ---- brutal ---- */

static void forward_without_memory_writes_nothing_and_every_object_works_on(void **state)
{
    (void)state;
    trial p;
    rich(&p, 10);
    SUCCEEDS(trial_forward(&p, 1, err)); /* what the process keeps is there now */
    float *expected = tensor_read(&p.output);
    objects o = objects_of(&p);
    mha_context *other = NULL; /* by its call, so is what the layer keeps: see test_panels.c */
    SUCCEEDS(mha_context_create(&other, err));
    SUCCEEDS(mha_forward(other, o.layer, o.mask, o.call, err));
    mha_context_destroy(other);
    tensor_flood(&p.output, -7.0f);
    BRUTAL(mha_forward(o.ctx, o.layer, o.mask, o.call, NULL),
           assert_true(all_are(p.output.block, p.output.count, -7.0f)));
    assert_true(brutal_failures >= 1);
    assert_same_bits(p.output.data, expected, p.output.count);
    free(expected);
    objects_end(&o);
    trial_end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward_of_a_rich_layer_equals_the_oracle),
        cmocka_unit_test(forward_computes_only_the_outputs_that_are_set),
        cmocka_unit_test(forward_with_a_missing_tensor_or_no_output_names_it_and_writes_nothing),
        cmocka_unit_test(forward_with_null_objects_is_refused),
        cmocka_unit_test(forward_with_a_shape_that_does_not_fit_is_refused_with_both_numbers),
        cmocka_unit_test(forward_with_heads_where_a_projection_is_on_is_refused),
        cmocka_unit_test(forward_refuses_an_output_that_shares_an_element_with_another_tensor),
        cmocka_unit_test(forward_takes_interleaved_tensors_that_share_no_element),
        cmocka_unit_test(forward_weights_and_lse_may_be_strided),
        cmocka_unit_test(forward_without_memory_writes_nothing_and_every_object_works_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
