/* SPDX-License-Identifier: Apache-2.0 */
#include "support/brutal.h"
#include "support/draw.h"

#include <api/objects.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { E = 10, H = 6, G = 3, D = 4, DV = 3, EO = 7, TOKENS = 5, KEYS = 6, PARAMETERS = 14 };

/* All options, all parameters random. extras: sinks, gates, extra keys, numbers per head, rotary. */
static mha_layer *layer_of(int64_t kv_heads, int extras, int projections)
{
    mha_config *cfg = NULL;
    mha_layer *layer = NULL;
    const float scales[H] = {0.5f, 0.6f, -0.7f, 0.8f, 0.9f, 1.0f}, caps[H] = {1, 0, 3, 4, 5, 6};
    assert_int_equal(mha_config_create(E, H, &cfg, NULL), MHA_OK);
    assert_int_equal(mha_config_set_kv_heads(cfg, kv_heads, NULL), MHA_OK);
    assert_int_equal(mha_config_set_head_size(cfg, D, NULL), MHA_OK);
    assert_int_equal(mha_config_set_value_head_size(cfg, DV, NULL), MHA_OK);
    assert_int_equal(mha_config_set_output_width(cfg, EO, NULL), MHA_OK);
    for (int32_t side = 0; side < 3; ++side) {
        assert_int_equal(mha_config_set_projection(cfg, side, projections, NULL), MHA_OK);
    }
    if (extras) {
        assert_int_equal(mha_config_set_head_scales(cfg, H, scales, NULL), MHA_OK);
        assert_int_equal(mha_config_set_head_softcaps(cfg, H, caps, NULL), MHA_OK);
        assert_int_equal(mha_config_set_rotary(cfg, MHA_ROTARY_HALVES, 2, 100, NULL), MHA_OK);
        assert_int_equal(mha_config_set_sinks(cfg, 1, NULL), MHA_OK);
        assert_int_equal(mha_config_set_extra_keys(cfg, 1, 1, NULL), MHA_OK);
    }
    assert_int_equal(mha_config_set_gates(cfg, 1, NULL), MHA_OK);
    assert_int_equal(mha_layer_create(cfg, &layer, NULL), MHA_OK);
    mha_config_destroy(cfg);
    draw d = {(uint64_t)(kv_heads + 10 * extras)};
    for (int32_t id = 0; id < PARAMETERS; ++id) {
        float x[H * D * 3 * E];
        const int64_t count = mha_layer_parameter_count(layer, id);
        if (count > 0 && id != MHA_PARAM_IN_PROJ_WEIGHT && id != MHA_PARAM_IN_PROJ_BIAS) {
            draw_fill(&d, x, count, -1, 1);
            assert_int_equal(mha_layer_set_parameter(layer, id, MHA_FLOAT32, x, count, NULL),
                             MHA_OK);
        }
    }
    return layer;
}

static float *read_parameter(const mha_layer *layer, int32_t id)
{
    const int64_t count = mha_layer_parameter_count(layer, id);
    float *x = malloc((size_t)(count + 1) * sizeof *x);
    assert_non_null(x);
    assert_int_equal(mha_layer_get_parameter(layer, id, MHA_FLOAT32, x, count, NULL), MHA_OK);
    return x;
}

/* small[o][n][i] = large[o][kept[n]][i] */
static void expect_gathered(const mha_layer *small,
                            const mha_layer *large,
                            int32_t id,
                            int64_t outer,
                            int64_t all,
                            int64_t count,
                            const int64_t *kept,
                            int64_t inner)
{
    float *a = read_parameter(small, id), *b = read_parameter(large, id);
    assert_int_equal(mha_layer_parameter_count(small, id), outer * count * inner);
    for (int64_t o = 0; o < outer; ++o) {
        for (int64_t n = 0; n < count; ++n) {
            assert_same_bits(a + (o * count + n) * inner, b + (o * all + kept[n]) * inner, inner);
        }
    }
    free(a);
    free(b);
}

/* ---- behaviour ---- */

static void prune_keeps_the_numbers_of_the_other_heads(void **state)
{
    (void)state;
    mha_layer *large = layer_of(G, 1, 1), *small = NULL;
    /* group 1 goes, the others lose one head each */
    SUCCEEDS(mha_layer_prune_heads(large, 4, (int64_t[]){5, 2, 3, 0}, &small, err));
    const int64_t heads[2] = {1, 4}, groups[2] = {0, 2}, all[1] = {0};
    assert_int_equal(small->H, 2);
    assert_int_equal(small->G, 2);
    assert_int_equal(small->D, D);
    assert_int_equal(small->Dv, DV);
    expect_gathered(small, large, MHA_PARAM_Q_WEIGHT, 1, H, 2, heads, D * E);
    expect_gathered(small, large, MHA_PARAM_Q_BIAS, 1, H, 2, heads, D);
    expect_gathered(small, large, MHA_PARAM_K_WEIGHT, 1, G, 2, groups, D * E);
    expect_gathered(small, large, MHA_PARAM_K_BIAS, 1, G, 2, groups, D);
    expect_gathered(small, large, MHA_PARAM_V_WEIGHT, 1, G, 2, groups, DV * E);
    expect_gathered(small, large, MHA_PARAM_V_BIAS, 1, G, 2, groups, DV);
    expect_gathered(small, large, MHA_PARAM_OUT_WEIGHT, EO, H, 2, heads, DV);
    expect_gathered(small, large, MHA_PARAM_OUT_BIAS, 1, 1, 1, all, EO);
    expect_gathered(small, large, MHA_PARAM_SINKS, 1, H, 2, heads, 1);
    expect_gathered(small, large, MHA_PARAM_GATES, 1, H, 2, heads, 1);
    expect_gathered(small, large, MHA_PARAM_BIAS_K, 1, G, 2, groups, D);
    expect_gathered(small, large, MHA_PARAM_BIAS_V, 1, G, 2, groups, DV);
    assert_true(small->head_scales[0] == 0.6f && small->head_scales[1] == 0.9f);
    assert_true(small->head_softcaps[0] == 0.0f && small->head_softcaps[1] == 5.0f);
    assert_int_equal(small->rotary.size, 2);
    assert_true(small->rotary.base == 100.0 && small->zero_key);
    assert_true(mha_layer_bytes(small) < mha_layer_bytes(large));
    mha_layer_destroy(large); /* nothing is shared */
    float *x = read_parameter(small, MHA_PARAM_SINKS);
    free(x);
    mha_layer_destroy(small);
}

static void
forward(const mha_layer *layer, const float *q, const float *k, const float *v, float *out)
{
    mha_context *ctx = NULL;
    mha_mask *mask = NULL;
    SUCCEEDS(mha_context_create(&ctx, err));
    SUCCEEDS(mha_mask_create(&mask, err));
    SUCCEEDS(mha_mask_set_causal(mask, 1, err));
    SUCCEEDS(mha_mask_set_alignment(mask, MHA_ALIGNMENT_BOTTOM_RIGHT, err));
    SUCCEEDS(mha_layer_forward(ctx, layer, 2, TOKENS, KEYS, q, k, v, mask, out, err));
    mha_mask_destroy(mask);
    mha_context_destroy(ctx);
}

/* The smaller layer against the whole one with the gates of the same heads at 0; rounding of at most
 * H * Dv products of numbers below 4. */
static void expect_same_result(mha_layer *large, int64_t count, const int64_t *heads)
{
    mha_layer *small = NULL;
    SUCCEEDS(mha_layer_prune_heads(large, count, heads, &small, err));
    float *gates = read_parameter(large, MHA_PARAM_GATES);
    float x[2 * KEYS * E], a[2 * TOKENS * EO], b[2 * TOKENS * EO];
    draw d = {99};
    draw_fill(&d, x, 2 * KEYS * E, -1, 1);
    forward(large, x, x, x, a);
    for (int64_t n = 0; n < count; ++n) {
        gates[heads[n]] = 0.0f;
    }
    SUCCEEDS(mha_layer_set_parameter(large, MHA_PARAM_GATES, MHA_FLOAT32, gates, H, err));
    forward(small, x, x, x, b);
    if (count > 0) {
        double difference = 0;
        for (int i = 0; i < 2 * TOKENS * EO; ++i) {
            difference = fmax(difference, fabs((double)a[i] - (double)b[i]));
        }
        assert_true(difference > 1e-3); /* the heads did count */
    }
    forward(large, x, x, x, a);
    for (int i = 0; i < 2 * TOKENS * EO; ++i) {
        assert_close(b[i], a[i], 64 * 0x1p-24 * 4);
    }
    free(gates);
    mha_layer_destroy(small);
    mha_layer_destroy(large);
}

static void prune_computes_what_gates_of_0_do(void **state)
{
    (void)state;
    for (int extras = 0; extras < 2; ++extras) {
        expect_same_result(layer_of(G, extras, 1), 0, NULL);
        expect_same_result(layer_of(G, extras, 1), 2, (int64_t[]){2, 3});
        expect_same_result(layer_of(G, extras, 1), 4, (int64_t[]){4, 5, 0, 3});
        expect_same_result(layer_of(H, extras, 1), 3, (int64_t[]){5, 0, 2});
        expect_same_result(layer_of(1, extras, 1), 5, (int64_t[]){0, 1, 2, 3, 4});
    }
}

static void prune_without_input_projections_expects_fewer_heads(void **state)
{
    (void)state;
    mha_layer *large = layer_of(G, 0, 0), *small = NULL;
    SUCCEEDS(mha_layer_prune_heads(large, 2, (int64_t[]){0, 1}, &small, err));
    assert_int_equal(small->width[MHA_PROJECTION_Q], 4 * D);
    assert_int_equal(small->width[MHA_PROJECTION_K], 2 * D);
    assert_int_equal(small->width[MHA_PROJECTION_V], 2 * DV);
    assert_int_equal(small->width[MHA_PROJECTION_OUT], EO);
    /* the tensors of the kept heads give what the large layer gives with the gates at 0 */
    float q[TOKENS * H * D], k[TOKENS * G * D], v[TOKENS * G * DV], a[TOKENS * EO], b[TOKENS * EO];
    float q4[TOKENS * 4 * D], k2[TOKENS * 2 * D], v2[TOKENS * 2 * DV];
    float gates[H] = {0, 0, 0.5f, 1.5f, -1, 2};
    draw d = {5};
    draw_fill(&d, q, TOKENS * H * D, -1, 1);
    draw_fill(&d, k, TOKENS * G * D, -1, 1);
    draw_fill(&d, v, TOKENS * G * DV, -1, 1);
    for (int t = 0; t < TOKENS; ++t) {
        memcpy(q4 + t * 4 * D, q + t * H * D + 2 * D, 4 * D * sizeof *q);
        memcpy(k2 + t * 2 * D, k + t * G * D + D, 2 * D * sizeof *k);
        memcpy(v2 + t * 2 * DV, v + t * G * DV + DV, 2 * DV * sizeof *v);
    }
    SUCCEEDS(mha_layer_set_parameter(large, MHA_PARAM_GATES, MHA_FLOAT32, gates, H, err));
    SUCCEEDS(mha_layer_set_parameter(small, MHA_PARAM_GATES, MHA_FLOAT32, gates + 2, 4, err));
    mha_context *ctx = NULL;
    SUCCEEDS(mha_context_create(&ctx, err));
    SUCCEEDS(mha_layer_forward(ctx, large, 1, TOKENS, TOKENS, q, k, v, NULL, a, err));
    SUCCEEDS(mha_layer_forward(ctx, small, 1, TOKENS, TOKENS, q4, k2, v2, NULL, b, err));
    for (int i = 0; i < TOKENS * EO; ++i) {
        assert_close(b[i], a[i], 64 * 0x1p-24 * 4);
    }
    mha_context_destroy(ctx);
    mha_layer_destroy(small);
    mha_layer_destroy(large);
}

/* ---- refusals ---- */

static void prune_refuses_heads_that_do_not_fit_and_stores_null(void **state)
{
    (void)state;
    mha_layer *layer = layer_of(G, 1, 1), *out = (mha_layer *)&out;
    const int32_t heads = MHA_ERROR_HEAD_COUNT;
    const int64_t six[6] = {0, 1, 2, 3, 4, 5};
    REFUSED(heads, mha_layer_prune_heads(layer, 6, six, &out, err), "6 heads", "H = 6");
    assert_null(out);
    REFUSED(heads, mha_layer_prune_heads(layer, -1, six, &out, err), "-1");
    REFUSED(heads, mha_layer_prune_heads(layer, 1, (int64_t[]){6}, &out, err), "head 6", "0 to 5");
    REFUSED(heads, mha_layer_prune_heads(layer, 1, (int64_t[]){-2}, &out, err), "head -2");
    REFUSED(heads, mha_layer_prune_heads(layer, 3, (int64_t[]){4, 1, 4}, &out, err), "head 4",
            "twice");
    REFUSED(heads, mha_layer_prune_heads(layer, 1, (int64_t[]){2}, &out, err), "head 1", "1", "2");
    REFUSED(heads, mha_layer_prune_heads(layer, 3, six, &out, err), "head 2", "same number");
    out = (mha_layer *)&out;
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_layer_prune_heads(NULL, 1, six, &out, err), "NULL");
    assert_null(out);
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_layer_prune_heads(layer, 1, NULL, &out, err), "heads");
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_layer_prune_heads(layer, 1, six, NULL, err), "out");
    mha_layer_destroy(layer);
}

static void prune_needs_all_parameters_and_an_output_projection(void **state)
{
    (void)state;
    mha_config *cfg = NULL;
    mha_layer *layer = NULL, *out = (mha_layer *)&out;
    SUCCEEDS(mha_config_create(8, 2, &cfg, err));
    SUCCEEDS(mha_layer_create(cfg, &layer, err));
    REFUSED(MHA_ERROR_NOT_SET, mha_layer_prune_heads(layer, 1, (int64_t[]){0}, &out, err),
            "MHA_PARAM_Q_WEIGHT");
    assert_null(out);
    mha_layer_destroy(layer);
    SUCCEEDS(mha_config_set_projection(cfg, MHA_PROJECTION_OUT, 0, err));
    SUCCEEDS(mha_layer_create(cfg, &layer, err));
    SUCCEEDS(mha_layer_initialize(layer, 1, err));
    REFUSED(MHA_ERROR_UNKNOWN_ID, mha_layer_prune_heads(layer, 1, (int64_t[]){0}, &out, err),
            "output projection");
    mha_layer_destroy(layer);
    mha_config_destroy(cfg);
}

/* ---- brutal ---- */

static void prune_without_memory_stores_null_and_leaks_nothing(void **state)
{
    (void)state;
    mha_layer *layer = layer_of(G, 1, 1), *out = (mha_layer *)&out;
    BRUTAL(mha_layer_prune_heads(layer, 2, (int64_t[]){2, 3}, &out, NULL), {
        assert_null(out);
        out = (mha_layer *)&out;
    });
    assert_int_equal(brutal_failures, 1 + (1 + 8 + 4 + 2) + 1); /* lists, the layer, a copy */
    mha_layer_destroy(out);
    mha_layer_destroy(layer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prune_keeps_the_numbers_of_the_other_heads),
        cmocka_unit_test(prune_computes_what_gates_of_0_do),
        cmocka_unit_test(prune_without_input_projections_expects_fewer_heads),
        cmocka_unit_test(prune_refuses_heads_that_do_not_fit_and_stores_null),
        cmocka_unit_test(prune_needs_all_parameters_and_an_output_projection),
        cmocka_unit_test(prune_without_memory_stores_null_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
