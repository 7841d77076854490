/* SPDX-License-Identifier: Apache-2.0 */
#include "api/objects.h"
#include "api/run.h"
#include "platform/memory.h"

#include <mha/layer.h>

#include <string.h>

/*
 * Pruning: the rows of the input projections and the columns of the output projection that belong
 * to kept heads are gathered into a new layer.
 */

/* Heads of one kind that stay: `at[n]` of `all` is the n-th of the smaller layer. */
struct kept {
    int64_t all, count;
    int64_t *at;
};

/* Which heads stay, and which key-value heads: those with a query head left. */
static int32_t choose(const mha_layer *layer,
                      int64_t count,
                      const int64_t *heads,
                      struct kept *query,
                      struct kept *key,
                      mha_error *err)
{
    enum { DROPPED = -1 };
    for (int64_t h = 0; h < layer->H; h++) {
        query->at[h] = h;
    }
    for (int64_t n = 0; n < count; n++) {
        MHA_CHECK(err, heads[n] >= 0 && heads[n] < layer->H, MHA_ERROR_HEAD_COUNT,
                  "head %lld is to go, but the layer has heads 0 to %lld", (long long)heads[n],
                  (long long)layer->H - 1);
        MHA_CHECK(err, query->at[heads[n]] != DROPPED, MHA_ERROR_HEAD_COUNT,
                  "head %lld is to go twice", (long long)heads[n]);
        query->at[heads[n]] = DROPPED;
    }
    const int64_t group = layer->H / layer->G;
    int64_t each = 0; /* query heads that every key-value head keeps */
    for (int64_t g = 0; g < layer->G; g++) {
        int64_t left = 0;
        for (int64_t h = g * group; h < (g + 1) * group; h++) {
            if (query->at[h] != DROPPED) {
                query->at[query->count++] = h; // count <= h: not read again
                left++;
            }
        }
        MHA_CHECK(err, left == 0 || each == 0 || left == each, MHA_ERROR_HEAD_COUNT,
                  "key-value head %lld would keep %lld query heads and others %lld; all must keep "
                  "the same number, or none",
                  (long long)g, (long long)left, (long long)each);
        if (left > 0) {
            each = left;
            key->at[key->count++] = g;
        }
    }
    return MHA_OK;
}

/* rows [outer, all, inner] -> [outer, count, inner] in place; what moves moves down. */
static void gather(float *rows, int64_t outer, const struct kept *kept, int64_t inner)
{
    float *to = rows;
    for (int64_t o = 0; o < outer; o++) {
        for (int64_t n = 0; n < kept->count; n++, to += inner) {
            memmove(to, rows + (o * kept->all + kept->at[n]) * inner, (size_t)inner * sizeof *rows);
        }
    }
}

/* One parameter from layer to smaller, through buffer. heads NULL: as it is. */
static int32_t move_parameter(const mha_layer *layer,
                              mha_layer *smaller,
                              int32_t parameter,
                              const struct kept *heads,
                              float *buffer,
                              mha_error *err)
{
    const int64_t count = mha_layer_parameter_count(layer, parameter);
    if (count == 0) {
        return MHA_OK;
    }
    MHA_TRY(mha_layer_get_parameter(layer, parameter, MHA_FLOAT32, buffer, count, err));
    if (parameter == MHA_PARAM_OUT_WEIGHT) { // [Eo, H, Dv]
        gather(buffer, layer->width[MHA_PROJECTION_OUT], heads, layer->Dv);
    } else if (heads) { // [heads, the rest]
        gather(buffer, 1, heads, count / heads->all);
    }
    return mha_layer_set_parameter(smaller, parameter, MHA_FLOAT32, buffer,
                                   mha_layer_parameter_count(smaller, parameter), err);
}

static int32_t move_parameters(const mha_layer *layer,
                               mha_layer *smaller,
                               const struct kept *query,
                               const struct kept *key,
                               mha_error *err)
{
    const struct {
        int32_t parameter;
        const struct kept *heads;
    } parts[] = {
        {MHA_PARAM_Q_WEIGHT, query},   {MHA_PARAM_Q_BIAS, query},  {MHA_PARAM_K_WEIGHT, key},
        {MHA_PARAM_K_BIAS, key},       {MHA_PARAM_V_WEIGHT, key},  {MHA_PARAM_V_BIAS, key},
        {MHA_PARAM_OUT_WEIGHT, query}, {MHA_PARAM_OUT_BIAS, NULL}, {MHA_PARAM_SINKS, query},
        {MHA_PARAM_GATES, query},      {MHA_PARAM_BIAS_K, key},    {MHA_PARAM_BIAS_V, key},
    };
    enum { PARTS = sizeof parts / sizeof *parts };
    int64_t most = 0;
    for (int i = 0; i < PARTS; i++) {
        const int64_t count = mha_layer_parameter_count(layer, parts[i].parameter);
        most = count > most ? count : most;
    }
    float *buffer = mha__memory_allocate((size_t)most * sizeof *buffer);
    MHA_CHECK(err, buffer, MHA_ERROR_OUT_OF_MEMORY, "no memory for a copy of %lld numbers",
              (long long)most);
    int32_t status = MHA_OK;
    for (int i = 0; i < PARTS && status == MHA_OK; i++) {
        status = move_parameter(layer, smaller, parts[i].parameter, parts[i].heads, buffer, err);
    }
    mha__memory_release(buffer);
    return status;
}

/* The config of the smaller layer; its arrays are made from `numbers` [2 H]. */
static void describe(const mha_layer *layer,
                     const struct kept *query,
                     const struct kept *key,
                     float *numbers,
                     mha_config *cfg)
{
    *cfg = (mha_config){
        .magic = MHA__MAGIC_CONFIG,
        .E = layer->width[MHA_PROJECTION_OUT],
        .H = query->count,
        .G = key->count,
        .D = layer->D,
        .Dv = layer->Dv,
        .has_scale = true,
        .scale = layer->scale,
        .softcap = layer->softcap,
        .rotary = layer->rotary,
        .sinks = layer->vector[MHA_PARAM_SINKS - MHA__FIRST_VECTOR].data != NULL,
        .gates = layer->vector[MHA_PARAM_GATES - MHA__FIRST_VECTOR].data != NULL,
        .bias_kv = layer->vector[MHA_PARAM_BIAS_K - MHA__FIRST_VECTOR].data != NULL,
        .zero_key = layer->zero_key,
    };
    for (int side = 0; side < MHA__PROJECTIONS; side++) {
        cfg->projection[side] = layer->linear[side].tiles != NULL;
        cfg->bias[side] = layer->linear[side].bias != NULL;
        cfg->width[side] = cfg->projection[side] ? layer->width[side] : 0; // 0: heads * head size
    }
    if (layer->head_scales) {
        cfg->head_scales = numbers;
        memcpy(cfg->head_scales, layer->head_scales, (size_t)layer->H * sizeof *numbers);
        gather(cfg->head_scales, 1, query, 1);
    }
    if (layer->head_softcaps) {
        cfg->head_softcaps = numbers + layer->H;
        memcpy(cfg->head_softcaps, layer->head_softcaps, (size_t)layer->H * sizeof *numbers);
        gather(cfg->head_softcaps, 1, query, 1);
    }
}

int32_t mha_layer_prune_heads(
    const mha_layer *layer, int64_t count, const int64_t *heads, mha_layer **out, mha_error *err)
{
    MHA_CHECK_POINTER(err, out);
    *out = NULL;
    MHA_CHECK_HANDLE(err, layer, MHA__MAGIC_LAYER);
    MHA_CHECK(err, count >= 0 && count < layer->H, MHA_ERROR_HEAD_COUNT,
              "%lld heads are to go, but the layer has H = %lld and one must stay",
              (long long)count, (long long)layer->H);
    MHA_CHECK(err, heads || count == 0, MHA_ERROR_NULL_ARGUMENT, "%s: heads is NULL", __func__);
    MHA_CHECK(err, layer->linear[MHA_PROJECTION_OUT].tiles, MHA_ERROR_UNKNOWN_ID,
              "the layer has no output projection: without one its output would lose heads");
    MHA_TRY(mha__parameter_all_set(layer, err));

    const size_t room = (size_t)layer->H; // G <= H
    int64_t *lists = mha__memory_allocate(room * (2 * sizeof *lists + 2 * sizeof(float)));
    MHA_CHECK(err, lists, MHA_ERROR_OUT_OF_MEMORY, "no memory for lists of %lld heads",
              (long long)layer->H);
    struct kept query = {layer->H, 0, lists};
    struct kept key = {layer->G, 0, lists + layer->H};
    mha_layer *smaller = NULL;
    int32_t status = choose(layer, count, heads, &query, &key, err);
    if (status == MHA_OK) {
        mha_config cfg;
        describe(layer, &query, &key, (float *)(void *)(lists + 2 * layer->H), &cfg);
        status = mha_layer_create(&cfg, &smaller, err);
    }
    if (status == MHA_OK) {
        status = move_parameters(layer, smaller, &query, &key, err);
    }
    mha__memory_release(lists);
    if (status != MHA_OK) {
        mha_layer_destroy(smaller);
        return status;
    }
    *out = smaller;
    return mha__error_clear(err);
}
