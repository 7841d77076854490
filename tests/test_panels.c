/* SPDX-License-Identifier: Apache-2.0 */
/* The copy of its weights that a layer keeps for the fused engine: made by a call, dropped by a setter. */
#include "support/expect.h"
#include "support/oracle.h"

#include <fenv.h>
#include <kernels/kernels.h>
#include <math.h>
#include <platform/memory.h>
#include <stdlib.h>
#include <string.h>

/* Widths that are no multiple of any panel, and outputs beyond one tile of a weight. */
enum { TOKENS = 30, E = 37, H = 10, G = 5, D = 31, EO = 270 };

static void build(trial *p, uint64_t seed)
{
    trial_begin(p, 1, TOKENS, TOKENS, H, G, D, D);
    for (int32_t side = 0; side < 4; ++side) {
        trial_project(p, side, side == MHA_PROJECTION_OUT ? EO : E, 1);
    }
    trial_tensors(p, 0, 0);
    draw d = {seed};
    trial_fill(p, &d, 1.0f);
}

static mha_context *context_of(int32_t engine)
{
    mha_context *ctx = NULL;
    assert_int_equal(mha_context_create(&ctx, NULL), MHA_OK);
    assert_int_equal(mha_context_set_engine(ctx, engine, NULL), MHA_OK);
    return ctx;
}

/* Parameters first .. end-1 of q into a layer of its sizes. */
static void set_parameters(mha_layer *layer, const trial *q, int32_t first, int32_t end)
{
    for (int32_t id = first; id < end; ++id) {
        assert_int_equal(mha_layer_set_parameter(layer, id, MHA_FLOAT32, q->parameter[id],
                                                 trial_parameter_count(q, id), NULL),
                         MHA_OK);
    }
}

static void expect_oracle(mha_context *ctx, const mha_layer *layer, const mha_mask *mask, trial *p)
{
    oracle r = {0};
    mha_call *call = trial_call(p);
    tensor_flood(&p->output, -7.0f);
    assert_int_equal(mha_forward(ctx, layer, mask, call, NULL), MHA_OK);
    mha_call_destroy(call);
    oracle_run(p, &r);
    assert_true(oracle_compare(p, &r) <= 1);
    oracle_end(&r);
}

static int64_t panel_bytes(void)
{
    const int64_t panel = mha__kernels_chosen()->panel;
    const int64_t rounded[] = {(H * D + panel - 1) / panel * panel,
                               (G * D + panel - 1) / panel * panel,
                               (EO + panel - 1) / panel * panel};
    return 4 * (E * rounded[0] + 2 * E * rounded[1] + H * D * rounded[2]);
}

static void layer_keeps_panels_from_the_first_fused_call_to_the_next_setter(void **state)
{
    (void)state;
    trial p;
    build(&p, 1);
    mha_layer *layer = trial_layer(&p);
    mha_context *blas = context_of(MHA_ENGINE_BLAS), *fused = context_of(MHA_ENGINE_FUSED);
    const int64_t before = mha_layer_bytes(layer);
    expect_oracle(blas, layer, NULL, &p);
    assert_int_equal(mha_layer_bytes(layer), before);
    for (int again = 0; again < 2; ++again) {
        expect_oracle(fused, layer, NULL, &p);
        assert_int_equal(mha_layer_bytes(layer), before + panel_bytes());
    }
    set_parameters(layer, &p, MHA_PARAM_K_BIAS, MHA_PARAM_K_BIAS + 1);
    assert_int_equal(mha_layer_bytes(layer), before + panel_bytes()); // a bias is in no panel
    set_parameters(layer, &p, MHA_PARAM_K_WEIGHT, MHA_PARAM_K_WEIGHT + 1);
    assert_int_equal(mha_layer_bytes(layer), before);
    mha_context_destroy(blas);
    mha_context_destroy(fused);
    mha_layer_destroy(layer);
    trial_end(&p);
}

/* All three input weights by their packed name: those of p, halved. */
static void expect_packed_setter(mha_context *fused, mha_layer *layer, trial *p)
{
    enum { COUNT = (H + 2 * G) * D * E };
    static float packed[COUNT];
    int64_t at = 0;
    for (int32_t id = MHA_PARAM_Q_WEIGHT; id <= MHA_PARAM_V_WEIGHT; id += 2) {
        for (int64_t i = 0; i < trial_parameter_count(p, id); ++i) {
            packed[at++] = p->parameter[id][i] *= 0.5f;
        }
    }
    assert_int_equal(at, COUNT);
    assert_int_equal(
        mha_layer_set_parameter(layer, MHA_PARAM_IN_PROJ_WEIGHT, MHA_FLOAT32, packed, COUNT, NULL),
        MHA_OK);
    expect_oracle(fused, layer, NULL, p);
}

static void fused_call_after_any_setter_uses_the_new_weights(void **state)
{
    (void)state;
    trial p, q;
    build(&p, 1);
    build(&q, 2);
    mha_context *fused = context_of(MHA_ENGINE_FUSED);
    mha_layer *layer = trial_layer(&p);
    expect_oracle(fused, layer, NULL, &p);
    for (int32_t id = 0; id < MHA_PARAM_IN_PROJ_WEIGHT; ++id) { /* one after the other */
        const size_t bytes = (size_t)trial_parameter_count(&p, id) * sizeof(float);
        memcpy(p.parameter[id], q.parameter[id], bytes);
        set_parameters(layer, &q, id, id + 1);
        expect_oracle(fused, layer, NULL, &p);
    }
    expect_packed_setter(fused, layer, &p);
    assert_int_equal(mha_layer_initialize(layer, 3, NULL), MHA_OK);
    for (int32_t id = 0; id < MHA_PARAM_IN_PROJ_WEIGHT; ++id) {
        assert_int_equal(mha_layer_get_parameter(layer, id, MHA_FLOAT32, p.parameter[id],
                                                 trial_parameter_count(&p, id), NULL),
                         MHA_OK);
    }
    expect_oracle(fused, layer, NULL, &p);
    mha_context_destroy(fused);
    mha_layer_destroy(layer);
    trial_end(&p);
    trial_end(&q);
}

static void layer_without_projections_and_calls_of_few_rows_make_no_panels(void **state)
{
    (void)state;
    trial p;
    trial_begin(&p, 1, TOKENS, TOKENS, H, G, D, D);
    trial_tensors(&p, 0, 0);
    draw d = {4};
    trial_fill(&p, &d, 1.0f);
    mha_context *fused = context_of(MHA_ENGINE_FUSED);
    mha_layer *layer = trial_layer(&p);
    const int64_t before = mha_layer_bytes(layer);
    expect_oracle(fused, layer, NULL, &p);
    assert_int_equal(mha_layer_bytes(layer), before);
    mha_layer_destroy(layer);
    trial_end(&p);

    trial_begin(&p, 1, 1, 40, H, G, D, D); /* many keys, which nobody projects */
    trial_project(&p, MHA_PROJECTION_Q, E, 1);
    trial_tensors(&p, 0, 0);
    trial_fill(&p, &d, 1.0f);
    layer = trial_layer(&p);
    const int64_t one = mha_layer_bytes(layer);
    expect_oracle(fused, layer, NULL, &p);
    assert_int_equal(mha_layer_bytes(layer), one);
    mha_layer_destroy(layer);
    mha_context_destroy(fused);
    trial_end(&p);
}

/*
 * Inputs so wide that a product goes over parts of them; 64 outputs are whole panels, computed in place between
 * strided rows, 70 are not. Each batch row has padded queries.
 */
static void wide_inputs_are_added_part_by_part(void **state)
{
    (void)state;
    enum { ROWS = 19, WIDE = 1700, GAP = 9 };
    for (int64_t out = 64; out <= 70; out += 6) {
        trial p;
        trial_begin(&p, 2, ROWS, ROWS, 2, 2, 32, 32);
        for (int32_t side = 0; side < 4; ++side) {
            trial_project(&p, side, side == MHA_PROJECTION_OUT ? out : WIDE, 1);
        }
        p.query_batch = 2;
        p.query_lengths[0] = ROWS - 1;
        p.query_lengths[1] = ROWS - 4;
        const int64_t shape[] = {2, ROWS, out};
        const int64_t strides[] = {ROWS * (out + GAP), out + GAP, 1};
        tensor_create(&p.output, 3, shape, strides);
        trial_tensors(&p, 0, 0);
        draw d = {7};
        trial_fill(&p, &d, 1.0f);
        mha_context *fused = context_of(MHA_ENGINE_FUSED);
        mha_layer *layer = trial_layer(&p);
        mha_mask *mask = trial_mask(&p);
        expect_oracle(fused, layer, mask, &p);
        for (int64_t row = 0; row < 2 * ROWS - 1; ++row) {
            assert_true(all_are(p.output.data + row * (out + GAP) + out, GAP, -7.0f));
        }
        mha_mask_destroy(mask);
        mha_layer_destroy(layer);
        mha_context_destroy(fused);
        trial_end(&p);
    }
}

/* What the making of panels looks at is not the host's business. */
static void panels_of_weights_that_are_not_finite_raise_no_flag_of_the_host(void **state)
{
    (void)state;
    trial p;
    build(&p, 6);
    p.parameter[MHA_PARAM_Q_WEIGHT][3] = INFINITY;
    p.parameter[MHA_PARAM_OUT_WEIGHT][0] = 1e-42f;
    mha_context *fused = context_of(MHA_ENGINE_FUSED);
    mha_layer *layer = trial_layer(&p);
    mha_call *call = trial_call(&p);
    assert_int_equal(feclearexcept(FE_ALL_EXCEPT), 0);
    const int32_t status = mha_forward(fused, layer, NULL, call, NULL);
    const int raised = fetestexcept(FE_ALL_EXCEPT);
    assert_int_equal(status, MHA_OK);
    assert_int_equal(raised, 0);
    mha_call_destroy(call);
    mha_layer_destroy(layer);
    mha_context_destroy(fused);
    trial_end(&p);
}

static void panels_without_memory_leave_layer_and_output_as_they_were(void **state)
{
    (void)state;
    trial p;
    build(&p, 5);
    mha_context *fused = context_of(MHA_ENGINE_FUSED);
    mha_layer *layer = trial_layer(&p);
    mha_call *call = trial_call(&p);
    tensor_flood(&p.output, -7.0f);
    float *flooded = tensor_read(&p.output);
    const int64_t before = mha_layer_bytes(layer);
    // the panels are made first, then the workspace: without room for that they stay
    const int64_t bytes[] = {before, before + panel_bytes()};
    for (int64_t nth = 1; nth <= 2; ++nth) {
        const int64_t blocks = mha__memory_live();
        mha__memory_fail_at(nth);
        assert_int_equal(mha_forward(fused, layer, NULL, call, NULL), MHA_ERROR_OUT_OF_MEMORY);
        mha__memory_fail_at(0);
        assert_int_equal(mha_layer_bytes(layer), bytes[nth - 1]);
        assert_int_equal(mha__memory_live(), blocks + nth - 1);
        assert_true(same_bits(p.output.data, flooded, tensor_elements(&p.output)));
    }
    expect_oracle(fused, layer, NULL, &p);
    free(flooded);
    mha_call_destroy(call);
    mha_layer_destroy(layer);
    mha_context_destroy(fused);
    trial_end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layer_keeps_panels_from_the_first_fused_call_to_the_next_setter),
        cmocka_unit_test(fused_call_after_any_setter_uses_the_new_weights),
        cmocka_unit_test(layer_without_projections_and_calls_of_few_rows_make_no_panels),
        cmocka_unit_test(wide_inputs_are_added_part_by_part),
        cmocka_unit_test(panels_of_weights_that_are_not_finite_raise_no_flag_of_the_host),
        cmocka_unit_test(panels_without_memory_leave_layer_and_output_as_they_were),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
