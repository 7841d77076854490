/* SPDX-License-Identifier: Apache-2.0 */
#include "api/objects.h"
#include "api/run.h"
#include "attention/planner.h"
#include "platform/memory.h"

#include <mha/layer.h>

#include <string.h>

static const char *const sides[] = {"query", "key", "value", "output"};

/* in and out features of one side's projection. */
static void linear_sizes(const mha_layer *layer, int32_t side, int64_t *out, int64_t *in)
{
    const int64_t heads[] = {layer->H * layer->D, layer->G * layer->D, layer->G * layer->Dv,
                             layer->H * layer->Dv};
    *out = side == MHA_PROJECTION_OUT ? layer->width[side] : heads[side];
    *in = side == MHA_PROJECTION_OUT ? heads[side] : layer->width[side];
}

static int32_t check_sizes(const mha_config *cfg, mha_error *err)
{
    const int64_t D = mha_config_head_size(cfg);
    const int64_t Dv = mha_config_value_head_size(cfg);
    MHA_CHECK(err, D > 0, MHA_ERROR_HEAD_COUNT,
              "E = %lld features do not divide into H = %lld heads; set a head size",
              (long long)cfg->E, (long long)cfg->H);
    /* H, D, Dv <= 2^31-1 each, so these products fit 64 bits. */
    MHA_CHECK(
        err, cfg->H * D <= INT32_MAX && cfg->H * Dv <= INT32_MAX, MHA_ERROR_TOO_LARGE,
        "H * D = %lld * %lld or H * Dv = %lld * %lld passes 2147483647, the largest BLAS size",
        (long long)cfg->H, (long long)D, (long long)cfg->H, (long long)Dv);
    const int64_t heads[] = {cfg->H * D, cfg->G * D, cfg->G * Dv, cfg->H * Dv};
    for (int i = 0; i < MHA__PROJECTIONS; i++) {
        MHA_CHECK(err, cfg->projection[i] || !cfg->width[i] || cfg->width[i] == heads[i],
                  MHA_ERROR_SHAPE,
                  "the %s width is %lld, but without its projection it is heads * head size = %lld",
                  sides[i], (long long)cfg->width[i], (long long)heads[i]);
    }
    MHA_CHECK(err, cfg->rotary.size <= D, MHA_ERROR_SHAPE,
              "the rotary size %lld is above the head size D = %lld", (long long)cfg->rotary.size,
              (long long)D);
    return MHA_OK;
}

static int32_t
allocate_linear(mha_layer *layer, const mha_config *cfg, int32_t side, int64_t tile, mha_error *err)
{
    struct mha__linear *linear = &layer->linear[side];
    int64_t bytes = 0;
    linear_sizes(layer, side, &linear->out, &linear->in);
    linear->width = tile;
    MHA_CHECK(err, mha__product_fits(linear->out, linear->in, sizeof(float), &bytes),
              MHA_ERROR_TOO_LARGE, "the %s weight [%lld, %lld] passes 2^63 bytes", sides[side],
              (long long)linear->out, (long long)linear->in);
    linear->tiles = mha__memory_allocate((size_t)bytes);
    MHA_CHECK(err, linear->tiles, MHA_ERROR_OUT_OF_MEMORY,
              "no memory for the %s weight of %lld bytes", sides[side], (long long)bytes);
    if (cfg->bias[side]) {
        linear->bias = mha__memory_allocate((size_t)linear->out * sizeof(float));
        MHA_CHECK(err, linear->bias, MHA_ERROR_OUT_OF_MEMORY, "no memory for the %s bias",
                  sides[side]);
    }
    return MHA_OK;
}

/* Room for a vector that the config asks for; its numbers are set later. */
static int32_t allocate_vector(
    mha_layer *layer, int32_t parameter, const char *name, bool on, int64_t count, mha_error *err)
{
    struct mha__vector *vector = &layer->vector[parameter - MHA__FIRST_VECTOR];
    if (on) {
        vector->count = count;
        vector->data = mha__memory_allocate((size_t)count * sizeof(float));
        MHA_CHECK(err, vector->data, MHA_ERROR_OUT_OF_MEMORY, "no memory for %lld %s",
                  (long long)count, name);
    }
    return MHA_OK;
}

static int32_t allocate_vectors(mha_layer *layer, const mha_config *cfg, mha_error *err)
{
    MHA_TRY(allocate_vector(layer, MHA_PARAM_SINKS, "sinks", cfg->sinks, cfg->H, err));
    MHA_TRY(allocate_vector(layer, MHA_PARAM_GATES, "gates", cfg->gates, cfg->H, err));
    MHA_TRY(allocate_vector(layer, MHA_PARAM_BIAS_K, "numbers of the extra key", cfg->bias_kv,
                            cfg->G * layer->D, err));
    return allocate_vector(layer, MHA_PARAM_BIAS_V, "numbers of the extra value", cfg->bias_kv,
                           cfg->G * layer->Dv, err);
}

/* A copy of numbers [H], where there are any. */
static int32_t copy_per_head(float **to, const float *from, int64_t H, mha_error *err)
{
    if (from) {
        *to = mha__memory_allocate((size_t)H * sizeof(float));
        MHA_CHECK(err, *to, MHA_ERROR_OUT_OF_MEMORY,
                  "no memory for a number for each of %lld heads", (long long)H);
        memcpy(*to, from, (size_t)H * sizeof(float));
    }
    return MHA_OK;
}

static int32_t allocate_all(mha_layer *layer, const mha_config *cfg, mha_error *err)
{
    struct mha__blas_state blas;
    mha__blas_ask(&blas);
    for (int32_t side = 0; side < MHA__PROJECTIONS; side++) {
        if (cfg->projection[side]) {
            MHA_TRY(allocate_linear(layer, cfg, side, mha__planner_weight_tile(&blas), err));
        }
    }
    MHA_TRY(allocate_vectors(layer, cfg, err));
    MHA_TRY(copy_per_head(&layer->head_scales, cfg->head_scales, cfg->H, err));
    return copy_per_head(&layer->head_softcaps, cfg->head_softcaps, cfg->H, err);
}

int32_t mha_layer_create(const mha_config *cfg, mha_layer **out, mha_error *err)
{
    MHA_CHECK_POINTER(err, out);
    *out = NULL;
    MHA_CHECK_HANDLE(err, cfg, MHA__MAGIC_CONFIG);
    MHA_TRY(check_sizes(cfg, err));
    mha_layer *layer = mha__memory_allocate_zeroed(sizeof *layer);
    MHA_CHECK(err, layer, MHA_ERROR_OUT_OF_MEMORY, "no memory for a layer");
    layer->magic = MHA__MAGIC_LAYER;
    layer->H = cfg->H;
    layer->G = cfg->G;
    layer->D = mha_config_head_size(cfg);
    layer->Dv = mha_config_value_head_size(cfg);
    layer->scale = mha_config_scale(cfg);
    layer->softcap = mha_config_softcap(cfg);
    layer->width[MHA_PROJECTION_Q] = mha_config_query_width(cfg);
    layer->width[MHA_PROJECTION_K] = mha_config_key_width(cfg);
    layer->width[MHA_PROJECTION_V] = mha_config_value_width(cfg);
    layer->width[MHA_PROJECTION_OUT] = mha_config_output_width(cfg);
    layer->rotary = cfg->rotary;
    layer->zero_key = cfg->zero_key;
    const int32_t status = allocate_all(layer, cfg, err);
    if (status != MHA_OK) {
        mha_layer_destroy(layer);
        return status;
    }
    *out = layer;
    return mha__error_clear(err);
}

void mha_layer_destroy(mha_layer *layer)
{
    if (!layer) {
        return;
    }
    mha__panels_drop(layer);
    for (int i = 0; i < MHA__PROJECTIONS; i++) {
        mha__memory_release(layer->linear[i].tiles);
        mha__memory_release(layer->linear[i].bias);
    }
    for (int i = 0; i < MHA__VECTORS; i++) {
        mha__memory_release(layer->vector[i].data);
    }
    mha__memory_release(layer->head_scales);
    mha__memory_release(layer->head_softcaps);
    layer->magic = 0;
    mha__memory_release(layer);
}

int64_t mha_layer_bytes(const mha_layer *layer)
{
    if (!layer) {
        return MHA_ERROR_NULL_ARGUMENT;
    }
    int64_t numbers = layer->head_scales ? layer->H : 0;
    numbers += layer->head_softcaps ? layer->H : 0;
    for (int i = 0; i < MHA__PROJECTIONS; i++) {
        const struct mha__linear *linear = &layer->linear[i];
        numbers += linear->tiles ? linear->out * linear->in : 0;
        numbers += linear->bias ? linear->out : 0;
    }
    for (int i = 0; i < MHA__VECTORS; i++) {
        numbers += layer->vector[i].count;
    }
    return (int64_t)sizeof *layer + numbers * (int64_t)sizeof(float) +
           (layer->panels ? mha__panels_bytes(layer) : 0);
}

int32_t mha_layer_forward(mha_context *ctx,
                          const mha_layer *layer,
                          int64_t B,
                          int64_t T,
                          int64_t S,
                          const float *query,
                          const float *key,
                          const float *value,
                          const mha_mask *mask,
                          float *out,
                          mha_error *err)
{
    MHA_CHECK_HANDLE(err, ctx, MHA__MAGIC_CONTEXT);
    MHA_CHECK_HANDLE(err, layer, MHA__MAGIC_LAYER);
    return mha__run_contiguous(ctx, layer, B, T, S, query, key, value, mask, out, err);
}
