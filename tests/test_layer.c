/* SPDX-License-Identifier: Apache-2.0 */
#include "support/brutal.h"
#include "support/trial.h"

#include <api/objects.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* E = 6, H = 2, G = 1, D = 4, Dv = 3, Eq = 5, Ek = 7, Ev = 6, Eo = 9: every size is another one. */
static mha_config *odd_config(void)
{
    mha_config *cfg = NULL;
    assert_int_equal(mha_config_create(6, 2, &cfg, NULL), MHA_OK);
    assert_int_equal(mha_config_set_kv_heads(cfg, 1, NULL), MHA_OK);
    assert_int_equal(mha_config_set_head_size(cfg, 4, NULL), MHA_OK);
    assert_int_equal(mha_config_set_value_head_size(cfg, 3, NULL), MHA_OK);
    assert_int_equal(mha_config_set_query_width(cfg, 5, NULL), MHA_OK);
    assert_int_equal(mha_config_set_key_width(cfg, 7, NULL), MHA_OK);
    assert_int_equal(mha_config_set_value_width(cfg, 6, NULL), MHA_OK);
    assert_int_equal(mha_config_set_output_width(cfg, 9, NULL), MHA_OK);
    return cfg;
}

static mha_layer *odd_layer(void)
{
    mha_config *cfg = odd_config();
    mha_layer *layer = NULL;
    assert_int_equal(mha_layer_create(cfg, &layer, NULL), MHA_OK);
    mha_config_destroy(cfg);
    return layer;
}

/* E = H * D = 6, all widths 6: has the packed parameters. */
static mha_layer *square_layer(int64_t kv_heads)
{
    mha_config *cfg = NULL;
    mha_layer *layer = NULL;
    assert_int_equal(mha_config_create(6, 2, &cfg, NULL), MHA_OK);
    assert_int_equal(mha_config_set_kv_heads(cfg, kv_heads, NULL), MHA_OK);
    assert_int_equal(mha_layer_create(cfg, &layer, NULL), MHA_OK);
    mha_config_destroy(cfg);
    return layer;
}

/* Every option that a layer may carry: H = 4, G = 2, D = 4, Dv = 3, E = 6. */
static mha_layer *rich_layer(void)
{
    mha_config *cfg = NULL;
    mha_layer *layer = NULL;
    const float numbers[4] = {1, 2, 3, 4};
    assert_int_equal(mha_config_create(6, 4, &cfg, NULL), MHA_OK);
    assert_int_equal(mha_config_set_kv_heads(cfg, 2, NULL), MHA_OK);
    assert_int_equal(mha_config_set_head_size(cfg, 4, NULL), MHA_OK);
    assert_int_equal(mha_config_set_value_head_size(cfg, 3, NULL), MHA_OK);
    assert_int_equal(mha_config_set_head_scales(cfg, 4, numbers, NULL), MHA_OK);
    assert_int_equal(mha_config_set_head_softcaps(cfg, 4, numbers, NULL), MHA_OK);
    assert_int_equal(mha_config_set_sinks(cfg, 1, NULL), MHA_OK);
    assert_int_equal(mha_config_set_gates(cfg, 1, NULL), MHA_OK);
    assert_int_equal(mha_config_set_extra_keys(cfg, 1, 1, NULL), MHA_OK);
    assert_int_equal(mha_layer_create(cfg, &layer, NULL), MHA_OK);
    mha_config_destroy(cfg);
    return layer;
}

static float *ramp(int64_t count, float first)
{
    float *x = malloc((size_t)count * sizeof *x);
    assert_non_null(x);
    for (int64_t i = 0; i < count; ++i) {
        x[i] = first + 0.25f * (float)i;
    }
    return x;
}

/* ---- behaviour: parameters ---- */

static void layer_parameter_counts_and_shapes_follow_the_config(void **state)
{
    (void)state;
    static const int64_t shape[8][2] = {{8, 5}, {8, 0}, {4, 7}, {4, 0},
                                        {3, 6}, {3, 0}, {9, 6}, {9, 0}};
    mha_layer *layer = odd_layer();
    for (int32_t id = 0; id < 8; ++id) {
        int32_t rank = id % 2 ? 1 : 2;
        int64_t got[3] = {-1, -1, -1};
        assert_int_equal(mha_layer_parameter_shape(layer, id, NULL, 0), rank);
        assert_int_equal(mha_layer_parameter_shape(layer, id, got, 1), rank);
        assert_int_equal(got[0], shape[id][0]);
        assert_int_equal(got[1], -1);
        assert_int_equal(mha_layer_parameter_shape(layer, id, got, 3), rank);
        assert_int_equal(got[1], rank == 2 ? shape[id][1] : -1);
        assert_int_equal(got[2], -1);
        assert_int_equal(mha_layer_parameter_count(layer, id),
                         rank == 2 ? shape[id][0] * shape[id][1] : shape[id][0]);
    }
    /* inputs of different widths have no packed weight; a packed bias needs no equal widths */
    assert_int_equal(mha_layer_parameter_count(layer, MHA_PARAM_IN_PROJ_WEIGHT), 0);
    assert_int_equal(mha_layer_parameter_shape(layer, MHA_PARAM_IN_PROJ_WEIGHT, NULL, 0), 0);
    assert_int_equal(mha_layer_parameter_count(layer, MHA_PARAM_IN_PROJ_BIAS), 8 + 4 + 3);
    assert_int_equal(mha_layer_parameter_shape(layer, MHA_PARAM_IN_PROJ_BIAS, NULL, 0), 1);
    mha_layer_destroy(layer);

    layer = square_layer(1);
    int64_t packed[2];
    assert_int_equal(mha_layer_parameter_count(layer, MHA_PARAM_IN_PROJ_WEIGHT), 12 * 6);
    assert_int_equal(mha_layer_parameter_shape(layer, MHA_PARAM_IN_PROJ_WEIGHT, packed, 2), 2);
    assert_int_equal(packed[0], 6 + 3 + 3);
    assert_int_equal(packed[1], 6);
    assert_int_equal(mha_layer_parameter_count(layer, MHA_PARAM_IN_PROJ_BIAS), 12);
    mha_layer_destroy(layer);
}

static void layer_get_returns_the_bits_that_were_set(void **state)
{
    (void)state;
    mha_layer *layer = odd_layer();
    for (int32_t id = 0; id < 8; ++id) {
        int64_t count = mha_layer_parameter_count(layer, id);
        float *set = ramp(count, (float)id);
        float *got = ramp(count, -9.0f);
        set[0] = -0.0f;
        set[count - 1] = NAN;
        set[count / 2] = 1e-40f; /* a denormal number */
        SUCCEEDS(mha_layer_set_parameter(layer, id, MHA_FLOAT32, set, count, err));
        SUCCEEDS(mha_layer_get_parameter(layer, id, MHA_FLOAT32, got, count, err));
        assert_same_bits(got, set, count);
        free(set);
        free(got);
    }
    mha_layer_destroy(layer);
}

static void layer_large_parameters_come_back_bit_for_bit(void **state)
{
    (void)state;
    mha_config *cfg = NULL;
    mha_layer *layer = NULL;
    SUCCEEDS(mha_config_create(195, 3, &cfg, err)); /* no multiple of any tile */
    SUCCEEDS(mha_layer_create(cfg, &layer, err));
    draw d = {20};
    for (int32_t id = 0; id < 8; ++id) {
        int64_t count = mha_layer_parameter_count(layer, id);
        float *set = ramp(count, 0);
        float *got = ramp(count, 1);
        draw_fill(&d, set, count, -1, 1);
        SUCCEEDS(mha_layer_set_parameter(layer, id, MHA_FLOAT32, set, count, err));
        SUCCEEDS(mha_layer_get_parameter(layer, id, MHA_FLOAT32, got, count, err));
        assert_same_bits(got, set, count);
        free(set);
        free(got);
    }
    mha_layer_destroy(layer);
    mha_config_destroy(cfg);
}

static void layer_packed_parameters_are_rows_q_then_k_then_v(void **state)
{
    (void)state;
    mha_layer *layer = square_layer(1);
    float *weight = ramp(12 * 6, 1.0f), *bias = ramp(12, -5.0f), part[36], back[72];
    SUCCEEDS(
        mha_layer_set_parameter(layer, MHA_PARAM_IN_PROJ_WEIGHT, MHA_FLOAT32, weight, 12 * 6, err));
    SUCCEEDS(mha_layer_set_parameter(layer, MHA_PARAM_IN_PROJ_BIAS, MHA_FLOAT32, bias, 12, err));
    SUCCEEDS(mha_layer_get_parameter(layer, MHA_PARAM_Q_WEIGHT, MHA_FLOAT32, part, 36, err));
    assert_same_bits(part, weight, 36);
    SUCCEEDS(mha_layer_get_parameter(layer, MHA_PARAM_K_WEIGHT, MHA_FLOAT32, part, 18, err));
    assert_same_bits(part, weight + 36, 18);
    SUCCEEDS(mha_layer_get_parameter(layer, MHA_PARAM_V_WEIGHT, MHA_FLOAT32, part, 18, err));
    assert_same_bits(part, weight + 54, 18);
    SUCCEEDS(mha_layer_get_parameter(layer, MHA_PARAM_Q_BIAS, MHA_FLOAT32, part, 6, err));
    assert_same_bits(part, bias, 6);
    SUCCEEDS(mha_layer_get_parameter(layer, MHA_PARAM_K_BIAS, MHA_FLOAT32, part, 3, err));
    assert_same_bits(part, bias + 6, 3);
    SUCCEEDS(mha_layer_get_parameter(layer, MHA_PARAM_V_BIAS, MHA_FLOAT32, part, 3, err));
    assert_same_bits(part, bias + 9, 3);
    /* set apart, read as one */
    part[0] = 77.0f;
    part[1] = 78.0f;
    part[2] = 79.0f;
    SUCCEEDS(mha_layer_set_parameter(layer, MHA_PARAM_K_BIAS, MHA_FLOAT32, part, 3, err));
    memcpy(bias + 6, part, 3 * sizeof *bias);
    SUCCEEDS(mha_layer_get_parameter(layer, MHA_PARAM_IN_PROJ_WEIGHT, MHA_FLOAT32, back, 72, err));
    assert_same_bits(back, weight, 72);
    SUCCEEDS(mha_layer_get_parameter(layer, MHA_PARAM_IN_PROJ_BIAS, MHA_FLOAT32, back, 12, err));
    assert_same_bits(back, bias, 12);
    free(weight);
    free(bias);
    mha_layer_destroy(layer);
}

static void layer_without_projections_or_biases_has_no_such_parameters(void **state)
{
    (void)state;
    mha_config *cfg = NULL;
    mha_layer *layer = NULL;
    SUCCEEDS(mha_config_create(6, 2, &cfg, err));
    SUCCEEDS(mha_config_set_projection(cfg, MHA_PROJECTION_K, 0, err));
    SUCCEEDS(mha_config_set_bias(cfg, MHA_PROJECTION_OUT, 0, err));
    SUCCEEDS(mha_layer_create(cfg, &layer, err));
    const int32_t absent[] = {MHA_PARAM_K_WEIGHT, MHA_PARAM_K_BIAS, MHA_PARAM_OUT_BIAS,
                              MHA_PARAM_IN_PROJ_WEIGHT, MHA_PARAM_IN_PROJ_BIAS};
    float x[36] = {0};
    for (int i = 0; i < 5; ++i) {
        assert_int_equal(mha_layer_parameter_count(layer, absent[i]), 0);
        assert_int_equal(mha_layer_parameter_shape(layer, absent[i], NULL, 0), 0);
        REFUSED(MHA_ERROR_UNKNOWN_ID,
                mha_layer_set_parameter(layer, absent[i], MHA_FLOAT32, x, 6, err), "");
        REFUSED(MHA_ERROR_UNKNOWN_ID,
                mha_layer_get_parameter(layer, absent[i], MHA_FLOAT32, x, 6, err), "");
    }
    mha_layer_destroy(layer);
    mha_config_destroy(cfg);
}

static void layer_vectors_have_rank_1_and_return_their_bits(void **state)
{
    (void)state;
    static const int64_t count[4] = {4, 4, 2 * 4, 2 * 3};
    static const char *const name[4] = {"SINKS", "GATES", "BIAS_K", "BIAS_V"};
    mha_layer *layer = rich_layer();
    for (int32_t v = 0; v < 4; ++v) {
        const int32_t id = MHA_PARAM_SINKS + v;
        int64_t shape[2] = {-1, -1};
        float set[8] = {-0.0f, NAN, 3, 4, 5, 6, 1e-40f, 8}, got[8] = {0};
        assert_int_equal(mha_layer_parameter_count(layer, id), count[v]);
        assert_int_equal(mha_layer_parameter_shape(layer, id, NULL, 0), 1);
        assert_int_equal(mha_layer_parameter_shape(layer, id, shape, 2), 1);
        assert_int_equal(shape[0], count[v]);
        assert_int_equal(shape[1], -1);
        REFUSED(MHA_ERROR_NOT_SET,
                mha_layer_get_parameter(layer, id, MHA_FLOAT32, got, count[v], err), name[v]);
        REFUSED(MHA_ERROR_SHAPE,
                mha_layer_set_parameter(layer, id, MHA_FLOAT32, set, count[v] + 1, err), name[v]);
        SUCCEEDS(mha_layer_set_parameter(layer, id, MHA_FLOAT32, set, count[v], err));
        SUCCEEDS(mha_layer_get_parameter(layer, id, MHA_FLOAT32, got, count[v], err));
        assert_same_bits(got, set, count[v]);
        assert_true(same_bits(got + count[v], (const float[8]){0}, 8 - count[v]));
    }
    mha_layer_destroy(layer);

    /* a zero key alone has no parameter; neither has a layer without any of it */
    mha_config *cfg = NULL;
    SUCCEEDS(mha_config_create(6, 2, &cfg, err));
    SUCCEEDS(mha_config_set_extra_keys(cfg, 0, 1, err));
    SUCCEEDS(mha_layer_create(cfg, &layer, err));
    for (int32_t id = MHA_PARAM_SINKS; id <= MHA_PARAM_BIAS_V; ++id) {
        assert_int_equal(mha_layer_parameter_count(layer, id), 0);
        assert_int_equal(mha_layer_parameter_shape(layer, id, NULL, 0), 0);
    }
    mha_layer_destroy(layer);
    mha_config_destroy(cfg);
}

static void layer_copies_the_numbers_per_head_and_counts_all_it_holds(void **state)
{
    (void)state;
    mha_config *cfg = NULL;
    mha_layer *layer = NULL, *plain = NULL;
    const float numbers[2] = {1.5f, -2.5f}, caps[2] = {10, 20};
    SUCCEEDS(mha_config_create(8, 2, &cfg, err));
    SUCCEEDS(mha_layer_create(cfg, &plain, err));
    SUCCEEDS(mha_config_set_head_scales(cfg, 2, numbers, err));
    SUCCEEDS(mha_config_set_head_softcaps(cfg, 2, caps, err));
    SUCCEEDS(mha_config_set_rotary(cfg, MHA_ROTARY_NEIGHBOURS, 2, 77.0, err));
    SUCCEEDS(mha_config_set_sinks(cfg, 1, err));
    SUCCEEDS(mha_config_set_gates(cfg, 1, err));
    SUCCEEDS(mha_config_set_extra_keys(cfg, 1, 1, err));
    SUCCEEDS(mha_layer_create(cfg, &layer, err));
    mha_config_destroy(cfg);
    assert_true(layer->head_scales[0] == 1.5f && layer->head_scales[1] == -2.5f);
    assert_true(layer->head_softcaps[0] == 10.0f && layer->head_softcaps[1] == 20.0f);
    assert_int_equal(layer->rotary.pairing, MHA_ROTARY_NEIGHBOURS);
    assert_int_equal(layer->rotary.size, 2);
    assert_true(layer->rotary.base == 77.0);
    assert_true(layer->zero_key);
    assert_null(plain->head_scales);
    /* scales, softcaps, sinks and gates of 2 heads, a key and a value of 8 features */
    assert_int_equal(mha_layer_bytes(layer) - mha_layer_bytes(plain), (4 * 2 + 8 + 8) * 4);
    mha_layer_destroy(layer);
    mha_layer_destroy(plain);
}

static void layer_keeps_its_copy_of_the_config(void **state)
{
    (void)state;
    mha_config *cfg = odd_config();
    mha_layer *layer = NULL;
    SUCCEEDS(mha_layer_create(cfg, &layer, err));
    SUCCEEDS(mha_config_set_query_width(cfg, 50, err));
    mha_config_destroy(cfg);
    assert_int_equal(mha_layer_parameter_count(layer, MHA_PARAM_Q_WEIGHT), 40);
    mha_layer_destroy(layer);
}

static void layer_bytes_cover_the_parameters(void **state)
{
    (void)state;
    mha_layer *layer = odd_layer();
    const int64_t numbers = 8 * 5 + 8 + 4 * 7 + 4 + 3 * 6 + 3 + 9 * 6 + 9;
    assert_int_equal(mha_layer_initialize(layer, 1, NULL), MHA_OK);
    assert_true(mha_layer_bytes(layer) >= numbers * (int64_t)sizeof(float));
    assert_int_equal(mha_layer_bytes(NULL), MHA_ERROR_NULL_ARGUMENT);
    mha_layer_destroy(layer);
    mha_layer_destroy(NULL);
}

/* ---- behaviour: the flat forward ---- */

static void layer_forward_equals_forward_over_a_call(void **state)
{
    (void)state;
    trial p;
    trial_begin(&p, 2, 5, 7, 4, 2, 8, 8);
    for (int32_t side = 0; side < 4; ++side) {
        trial_project(&p, side, 20 + side, 1);
    }
    p.causal = 1;
    p.alignment = MHA_ALIGNMENT_BOTTOM_RIGHT;
    trial_tensors(&p, 0, 0);
    draw d = {5};
    trial_fill(&p, &d, 1.0f);
    SUCCEEDS(trial_forward(&p, 1, err));

    mha_context *ctx = NULL;
    SUCCEEDS(mha_context_create(&ctx, err));
    mha_layer *layer = trial_layer(&p);
    mha_mask *mask = trial_mask(&p);
    int64_t numbers = tensor_elements(&p.output);
    float *out = ramp(numbers, 0);
    SUCCEEDS(mha_layer_forward(ctx, layer, p.B, p.T, p.S, p.query.data, p.key.data, p.value.data,
                               mask, out, err));
    assert_same_bits(out, p.output.data, numbers);
    free(out);
    mha_mask_destroy(mask);
    mha_layer_destroy(layer);
    mha_context_destroy(ctx);
    trial_end(&p);
}

static void layer_forward_takes_one_buffer_as_query_key_and_value(void **state)
{
    (void)state;
    mha_layer *layer = square_layer(2);
    mha_context *ctx = NULL;
    SUCCEEDS(mha_layer_initialize(layer, 3, err));
    SUCCEEDS(mha_context_create(&ctx, err));
    float *x = ramp(4 * 6, -1), *y = ramp(4 * 6, -1), *z = ramp(4 * 6, -1), one[24], three[24];
    SUCCEEDS(mha_layer_forward(ctx, layer, 1, 4, 4, x, x, x, NULL, one, err));
    SUCCEEDS(mha_layer_forward(ctx, layer, 1, 4, 4, x, y, z, NULL, three, err));
    assert_same_bits(one, three, 24);
    free(x);
    free(y);
    free(z);
    mha_context_destroy(ctx);
    mha_layer_destroy(layer);
}

static void layer_set_parameter_again_changes_the_result(void **state)
{
    (void)state;
    mha_layer *layer = square_layer(2), *fresh = square_layer(2);
    mha_context *ctx = NULL;
    SUCCEEDS(mha_context_create(&ctx, err));
    SUCCEEDS(mha_layer_initialize(layer, 1, err));
    SUCCEEDS(mha_layer_initialize(fresh, 2, err));
    float *x = ramp(3 * 6, -2), before[18], after[18], expected[18], copy[36];
    SUCCEEDS(mha_layer_forward(ctx, layer, 1, 3, 3, x, x, x, NULL, before, err));
    for (int32_t id = 0; id < 8; ++id) {
        int64_t count = mha_layer_parameter_count(fresh, id);
        SUCCEEDS(mha_layer_get_parameter(fresh, id, MHA_FLOAT32, copy, count, err));
        SUCCEEDS(mha_layer_set_parameter(layer, id, MHA_FLOAT32, copy, count, err));
    }
    SUCCEEDS(mha_layer_forward(ctx, layer, 1, 3, 3, x, x, x, NULL, after, err));
    SUCCEEDS(mha_layer_forward(ctx, fresh, 1, 3, 3, x, x, x, NULL, expected, err));
    assert_same_bits(after, expected, 18);
    assert_false(same_bits(after, before, 18));
    free(x);
    mha_context_destroy(ctx);
    mha_layer_destroy(layer);
    mha_layer_destroy(fresh);
}

/* ---- refusals ---- */

static void layer_create_refuses_what_does_not_belong_together(void **state)
{
    (void)state;
    mha_layer *layer = (mha_layer *)&layer;
    mha_config *cfg = NULL;
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_layer_create(NULL, &layer, err), "NULL");
    assert_null(layer);
    SUCCEEDS(mha_config_create(10, 3, &cfg, err));
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_layer_create(cfg, NULL, err), "NULL");
    layer = (mha_layer *)&layer;
    REFUSED(MHA_ERROR_HEAD_COUNT, mha_layer_create(cfg, &layer, err), "10", "3");
    assert_null(layer);
    SUCCEEDS(mha_config_set_head_size(cfg, 4, err));
    SUCCEEDS(mha_layer_create(cfg, &layer, err));
    mha_layer_destroy(layer);
    mha_config_destroy(cfg);
}

static void layer_create_refuses_a_width_that_contradicts_a_projection_that_is_off(void **state)
{
    (void)state;
    typedef int32_t width_setter(mha_config *, int64_t, mha_error *);
    width_setter *const set[] = {mha_config_set_query_width, mha_config_set_key_width,
                                 mha_config_set_value_width, mha_config_set_output_width};
    for (int32_t side = 0; side < 4; ++side) {
        mha_config *cfg = NULL;
        mha_layer *layer = (mha_layer *)&layer;
        SUCCEEDS(mha_config_create(12, 3, &cfg, err));
        SUCCEEDS(mha_config_set_projection(cfg, side, 0, err));
        SUCCEEDS(set[side](cfg, 13, err));
        REFUSED(MHA_ERROR_SHAPE, mha_layer_create(cfg, &layer, err), "13", "12");
        assert_null(layer);
        SUCCEEDS(set[side](cfg, 12, err));
        SUCCEEDS(mha_layer_create(cfg, &layer, err));
        mha_layer_destroy(layer);
        mha_config_destroy(cfg);
    }
}

static void layer_create_refuses_a_rotary_size_above_the_head_size(void **state)
{
    (void)state;
    mha_config *cfg = NULL;
    mha_layer *layer = (mha_layer *)&layer;
    SUCCEEDS(mha_config_create(12, 3, &cfg, err)); /* D = 4 */
    SUCCEEDS(mha_config_set_rotary(cfg, MHA_ROTARY_HALVES, 6, 0, err));
    REFUSED(MHA_ERROR_SHAPE, mha_layer_create(cfg, &layer, err), "6", "D = 4");
    assert_null(layer);
    SUCCEEDS(mha_config_set_rotary(cfg, MHA_ROTARY_HALVES, 4, 0, err));
    SUCCEEDS(mha_layer_create(cfg, &layer, err));
    mha_layer_destroy(layer);
    mha_config_destroy(cfg);
}

static void layer_create_refuses_sizes_beyond_the_blas(void **state)
{
    (void)state;
    mha_config *cfg = NULL;
    mha_layer *layer = (mha_layer *)&layer;
    SUCCEEDS(mha_config_create(1, 65536, &cfg, err));
    SUCCEEDS(mha_config_set_head_size(cfg, 32768, err)); /* H * D = 2^31 */
    REFUSED(MHA_ERROR_TOO_LARGE, mha_layer_create(cfg, &layer, err), "65536 * 32768", "2147483647");
    assert_null(layer);
    SUCCEEDS(mha_config_set_head_size(cfg, 1, err));
    SUCCEEDS(mha_config_set_value_head_size(cfg, 32768, err)); /* H * Dv */
    REFUSED(MHA_ERROR_TOO_LARGE, mha_layer_create(cfg, &layer, err), "65536 * 32768", "2147483647");
    mha_config_destroy(cfg);
}

static void layer_parameters_with_bad_arguments_are_refused_and_unchanged(void **state)
{
    (void)state;
    mha_layer *layer = odd_layer();
    float *x = ramp(40, 0), *y = ramp(40, 100), got[40];
    SUCCEEDS(mha_layer_set_parameter(layer, MHA_PARAM_Q_WEIGHT, MHA_FLOAT32, x, 40, err));
    REFUSED(MHA_ERROR_SHAPE,
            mha_layer_set_parameter(layer, MHA_PARAM_Q_WEIGHT, MHA_FLOAT32, y, 39, err), "39",
            "40");
    REFUSED(MHA_ERROR_SHAPE,
            mha_layer_set_parameter(layer, MHA_PARAM_Q_WEIGHT, MHA_FLOAT32, y, -1, err), "-1",
            "40");
    REFUSED(MHA_ERROR_UNKNOWN_ID, mha_layer_set_parameter(layer, MHA_PARAM_Q_WEIGHT, 1, y, 40, err),
            "1");
    REFUSED(MHA_ERROR_UNKNOWN_ID, mha_layer_set_parameter(layer, 14, MHA_FLOAT32, y, 40, err), "14",
            "13");
    REFUSED(MHA_ERROR_UNKNOWN_ID,
            mha_layer_set_parameter(layer, MHA_PARAM_SINKS, MHA_FLOAT32, y, 2, err),
            "MHA_PARAM_SINKS");
    REFUSED(MHA_ERROR_UNKNOWN_ID, mha_layer_set_parameter(layer, -1, MHA_FLOAT32, y, 40, err),
            "-1");
    REFUSED(MHA_ERROR_NULL_ARGUMENT,
            mha_layer_set_parameter(layer, MHA_PARAM_Q_WEIGHT, MHA_FLOAT32, NULL, 40, err), "NULL");
    REFUSED(MHA_ERROR_NULL_ARGUMENT,
            mha_layer_set_parameter(NULL, MHA_PARAM_Q_WEIGHT, MHA_FLOAT32, y, 40, err), "NULL");
    SUCCEEDS(mha_layer_get_parameter(layer, MHA_PARAM_Q_WEIGHT, MHA_FLOAT32, got, 40, err));
    assert_same_bits(got, x, 40);

    REFUSED(MHA_ERROR_SHAPE,
            mha_layer_get_parameter(layer, MHA_PARAM_Q_WEIGHT, MHA_FLOAT32, y, 41, err), "41",
            "40");
    REFUSED(MHA_ERROR_UNKNOWN_ID,
            mha_layer_get_parameter(layer, MHA_PARAM_Q_WEIGHT, -2, y, 40, err), "-2");
    REFUSED(MHA_ERROR_UNKNOWN_ID, mha_layer_get_parameter(layer, 99, MHA_FLOAT32, y, 40, err),
            "99");
    REFUSED(MHA_ERROR_NULL_ARGUMENT,
            mha_layer_get_parameter(layer, MHA_PARAM_Q_WEIGHT, MHA_FLOAT32, NULL, 40, err), "NULL");
    REFUSED(MHA_ERROR_NULL_ARGUMENT,
            mha_layer_get_parameter(NULL, MHA_PARAM_Q_WEIGHT, MHA_FLOAT32, y, 40, err), "NULL");
    REFUSED(MHA_ERROR_NOT_SET,
            mha_layer_get_parameter(layer, MHA_PARAM_Q_BIAS, MHA_FLOAT32, y, 8, err), "");
    assert_true(y[0] == 100.0f);
    assert_int_equal(mha_layer_parameter_count(NULL, 0), MHA_ERROR_NULL_ARGUMENT);
    assert_int_equal(mha_layer_parameter_count(layer, 14), MHA_ERROR_UNKNOWN_ID);
    assert_int_equal(mha_layer_parameter_count(layer, -1), MHA_ERROR_UNKNOWN_ID);
    assert_int_equal(mha_layer_parameter_shape(NULL, 0, NULL, 0), MHA_ERROR_NULL_ARGUMENT);
    assert_int_equal(mha_layer_parameter_shape(layer, 14, NULL, 0), MHA_ERROR_UNKNOWN_ID);
    free(x);
    free(y);
    mha_layer_destroy(layer);
}

static void layer_forward_with_a_parameter_missing_names_it_and_writes_nothing(void **state)
{
    (void)state;
    static const char *const name[8] = {"Q_WEIGHT", "Q_BIAS", "K_WEIGHT",   "K_BIAS",
                                        "V_WEIGHT", "V_BIAS", "OUT_WEIGHT", "OUT_BIAS"};
    mha_context *ctx = NULL;
    SUCCEEDS(mha_context_create(&ctx, err));
    for (int32_t missing = 0; missing < 8; ++missing) {
        mha_layer *layer = square_layer(2);
        float x[36] = {0}, out[18];
        for (int i = 0; i < 18; ++i) {
            out[i] = -7.0f;
        }
        for (int32_t id = 0; id < 8; ++id) {
            if (id != missing) {
                int64_t count = mha_layer_parameter_count(layer, id);
                SUCCEEDS(mha_layer_set_parameter(layer, id, MHA_FLOAT32, x, count, err));
            }
        }
        REFUSED(MHA_ERROR_NOT_SET, mha_layer_forward(ctx, layer, 1, 3, 3, x, x, x, NULL, out, err),
                name[missing]);
        assert_true(all_are(out, 18, -7.0f));
        mha_layer_destroy(layer);
    }
    mha_context_destroy(ctx);
}

static void layer_forward_with_a_vector_missing_names_it(void **state)
{
    (void)state;
    static const char *const name[4] = {"PARAM_SINKS", "PARAM_GATES", "PARAM_BIAS_K",
                                        "PARAM_BIAS_V"};
    mha_context *ctx = NULL;
    SUCCEEDS(mha_context_create(&ctx, err));
    for (int32_t missing = 0; missing < 4; ++missing) {
        mha_layer *layer = rich_layer();
        float x[96] = {0}, out[6] = {-7, -7, -7, -7, -7, -7};
        for (int32_t id = 0; id < 14; ++id) {
            const bool packed = id == MHA_PARAM_IN_PROJ_WEIGHT || id == MHA_PARAM_IN_PROJ_BIAS;
            if (!packed && id != MHA_PARAM_SINKS + missing) {
                int64_t count = mha_layer_parameter_count(layer, id);
                assert_in_range(count, 1, 96);
                SUCCEEDS(mha_layer_set_parameter(layer, id, MHA_FLOAT32, x, count, err));
            }
        }
        REFUSED(MHA_ERROR_NOT_SET, mha_layer_forward(ctx, layer, 1, 1, 1, x, x, x, NULL, out, err),
                name[missing]);
        assert_true(all_are(out, 6, -7.0f));
        mha_layer_destroy(layer);
    }
    mha_context_destroy(ctx);
}

static void layer_forward_with_bad_arguments_is_refused_and_writes_nothing(void **state)
{
    (void)state;
    mha_layer *layer = square_layer(2);
    mha_context *ctx = NULL;
    mha_mask *mask = NULL;
    SUCCEEDS(mha_context_create(&ctx, err));
    SUCCEEDS(mha_layer_initialize(layer, 1, err));
    SUCCEEDS(mha_mask_create(&mask, err));
    float x[60] = {0}, out[30];
    for (int i = 0; i < 30; ++i) {
        out[i] = -7.0f;
    }
#define FORWARD(ctx, layer, B, T, S, q, k, v, mask, out)                                           \
    mha_layer_forward(ctx, layer, B, T, S, q, k, v, mask, out, err)
    const int32_t null = MHA_ERROR_NULL_ARGUMENT;
    REFUSED(null, FORWARD(NULL, layer, 1, 3, 3, x, x, x, NULL, out), "NULL");
    REFUSED(null, FORWARD(ctx, NULL, 1, 3, 3, x, x, x, NULL, out), "NULL");
    REFUSED(null, FORWARD(ctx, layer, 1, 3, 3, NULL, x, x, NULL, out), "QUERY");
    REFUSED(null, FORWARD(ctx, layer, 1, 3, 3, x, NULL, x, NULL, out), "KEY");
    REFUSED(null, FORWARD(ctx, layer, 1, 3, 3, x, x, NULL, NULL, out), "VALUE");
    REFUSED(null, FORWARD(ctx, layer, 1, 3, 3, x, x, x, NULL, NULL), "OUTPUT");
    REFUSED(MHA_ERROR_SHAPE, FORWARD(ctx, layer, -1, 3, 3, x, x, x, NULL, out), "-1");
    REFUSED(MHA_ERROR_SHAPE, FORWARD(ctx, layer, 1, -3, 3, x, x, x, NULL, out), "-3");
    REFUSED(MHA_ERROR_SHAPE, FORWARD(ctx, layer, 1, 3, -4, x, x, x, NULL, out), "-4");
    REFUSED(MHA_ERROR_TOO_LARGE, FORWARD(ctx, layer, INT64_MAX, 3, 3, x, x, x, NULL, out), "");
    REFUSED(MHA_ERROR_TOO_LARGE, FORWARD(ctx, layer, 1, INT64_MAX, 3, x, x, x, NULL, out), "");
    REFUSED(MHA_ERROR_TOO_LARGE, FORWARD(ctx, layer, 1, 3, INT64_MAX, x, x, x, NULL, out), "");
    REFUSED(MHA_ERROR_OVERLAP, FORWARD(ctx, layer, 1, 3, 3, x, x, x, NULL, x), "");
    REFUSED(MHA_ERROR_OVERLAP, FORWARD(ctx, layer, 1, 3, 3, x, x + 18, x + 36, NULL, x + 53), "");
    SUCCEEDS(mha_mask_set_causal(mask, 1, err));
    REFUSED(MHA_ERROR_ALIGNMENT, FORWARD(ctx, layer, 1, 3, 4, x, x, x, mask, out), "3", "4");
    SUCCEEDS(mha_mask_set_key_lengths(mask, 2, (int64_t[]){3, 3}, err));
    REFUSED(MHA_ERROR_SHAPE, FORWARD(ctx, layer, 3, 1, 3, x, x, x, mask, out), "2", "3");
#undef FORWARD
    assert_true(all_are(out, 30, -7.0f));
    mha_mask_destroy(mask);
    mha_context_destroy(ctx);
    mha_layer_destroy(layer);
}

/* ---- brutal ---- */

static void layer_with_every_option_and_no_memory_stores_null(void **state)
{
    (void)state;
    mha_config *cfg = NULL;
    const float numbers[2] = {1, 2};
    SUCCEEDS(mha_config_create(8, 2, &cfg, err));
    SUCCEEDS(mha_config_set_head_scales(cfg, 2, numbers, err));
    SUCCEEDS(mha_config_set_head_softcaps(cfg, 2, numbers, err));
    SUCCEEDS(mha_config_set_sinks(cfg, 1, err));
    SUCCEEDS(mha_config_set_gates(cfg, 1, err));
    SUCCEEDS(mha_config_set_extra_keys(cfg, 1, 0, err));
    mha_layer *layer = (mha_layer *)&layer;
    BRUTAL(mha_layer_create(cfg, &layer, NULL), {
        assert_null(layer);
        layer = (mha_layer *)&layer;
    });
    assert_int_equal(brutal_failures, 1 + 8 + 4 + 2); /* the layer, projections, vectors, numbers */
    mha_layer_destroy(layer);
    mha_config_destroy(cfg);
}

static void layer_create_and_set_without_memory_leave_everything_as_before(void **state)
{
    (void)state;
    mha_config *cfg = odd_config();
    mha_layer *layer = (mha_layer *)&layer;
    BRUTAL(mha_layer_create(cfg, &layer, NULL), {
        assert_null(layer);
        layer = (mha_layer *)&layer;
    });
    assert_true(brutal_failures >= 1);
    for (int32_t id = 0; id < 8; ++id) {
        int64_t count = mha_layer_parameter_count(layer, id);
        float *first = ramp(count, 1), *second = ramp(count, 2), *got = ramp(count, 3);
        SUCCEEDS(mha_layer_set_parameter(layer, id, MHA_FLOAT32, first, count, err));
        BRUTAL(mha_layer_set_parameter(layer, id, MHA_FLOAT32, second, count, NULL), {
            SUCCEEDS(mha_layer_get_parameter(layer, id, MHA_FLOAT32, got, count, err));
            assert_same_bits(got, first, count);
        });
        SUCCEEDS(mha_layer_get_parameter(layer, id, MHA_FLOAT32, got, count, err));
        assert_same_bits(got, second, count);
        free(first);
        free(second);
        free(got);
    }
    mha_layer_destroy(layer);
    mha_config_destroy(cfg);
}

static void layer_forward_without_memory_leaves_the_context_usable(void **state)
{
    (void)state;
    mha_layer *layer = square_layer(2);
    SUCCEEDS(mha_layer_initialize(layer, 9, err));
    float *x = ramp(33 * 6, -3), out[33 * 6], expected[33 * 6];
    mha_context *warm = NULL;
    SUCCEEDS(mha_context_create(&warm, err));
    SUCCEEDS(mha_layer_forward(warm, layer, 1, 33, 33, x, x, x, NULL, expected, err));

    mha_context *ctx = NULL;
    SUCCEEDS(mha_context_create(&ctx, err));
    int64_t bytes = mha_context_bytes(ctx);
    BRUTAL(mha_layer_forward(ctx, layer, 1, 33, 33, x, x, x, NULL, out, NULL),
           assert_int_equal(mha_context_bytes(ctx), bytes));
    assert_true(brutal_failures >= 1);
    assert_same_bits(out, expected, 33 * 6);
    free(x);
    mha_context_destroy(ctx);
    mha_context_destroy(warm);
    mha_layer_destroy(layer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layer_parameter_counts_and_shapes_follow_the_config),
        cmocka_unit_test(layer_get_returns_the_bits_that_were_set),
        cmocka_unit_test(layer_large_parameters_come_back_bit_for_bit),
        cmocka_unit_test(layer_packed_parameters_are_rows_q_then_k_then_v),
        cmocka_unit_test(layer_without_projections_or_biases_has_no_such_parameters),
        cmocka_unit_test(layer_vectors_have_rank_1_and_return_their_bits),
        cmocka_unit_test(layer_copies_the_numbers_per_head_and_counts_all_it_holds),
        cmocka_unit_test(layer_keeps_its_copy_of_the_config),
        cmocka_unit_test(layer_bytes_cover_the_parameters),
        cmocka_unit_test(layer_forward_equals_forward_over_a_call),
        cmocka_unit_test(layer_forward_takes_one_buffer_as_query_key_and_value),
        cmocka_unit_test(layer_set_parameter_again_changes_the_result),
        cmocka_unit_test(layer_create_refuses_what_does_not_belong_together),
        cmocka_unit_test(layer_create_refuses_a_width_that_contradicts_a_projection_that_is_off),
        cmocka_unit_test(layer_create_refuses_a_rotary_size_above_the_head_size),
        cmocka_unit_test(layer_create_refuses_sizes_beyond_the_blas),
        cmocka_unit_test(layer_parameters_with_bad_arguments_are_refused_and_unchanged),
        cmocka_unit_test(layer_forward_with_a_parameter_missing_names_it_and_writes_nothing),
        cmocka_unit_test(layer_forward_with_a_vector_missing_names_it),
        cmocka_unit_test(layer_forward_with_bad_arguments_is_refused_and_writes_nothing),
        cmocka_unit_test(layer_with_every_option_and_no_memory_stores_null),
        cmocka_unit_test(layer_create_and_set_without_memory_leave_everything_as_before),
        cmocka_unit_test(layer_forward_without_memory_leaves_the_context_usable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
