/* SPDX-License-Identifier: Apache-2.0 */
#include "api/config_scores.h"
#include "platform/memory.h"

#include <mha/config.h>

int32_t mha_config_create(int64_t embedding, int64_t heads, mha_config **out, mha_error *err)
{
    MHA_CHECK_POINTER(err, out);
    *out = NULL;
    MHA_CHECK(err, embedding >= 1 && embedding <= INT32_MAX, MHA_ERROR_SHAPE,
              "E = %lld features per token; 1 to 2147483647 are possible", (long long)embedding);
    MHA_CHECK(err, heads >= 1 && heads <= INT32_MAX, MHA_ERROR_HEAD_COUNT,
              "H = %lld heads (E = %lld); 1 to 2147483647 are possible", (long long)heads,
              (long long)embedding);
    mha_config *cfg = mha__memory_allocate_zeroed(sizeof *cfg);
    MHA_CHECK(err, cfg, MHA_ERROR_OUT_OF_MEMORY, "no memory for a config");
    cfg->magic = MHA__MAGIC_CONFIG;
    cfg->E = embedding;
    cfg->H = heads;
    cfg->G = heads;
    cfg->rotary.base = MHA__ROTARY_BASE;
    for (int i = 0; i < MHA__PROJECTIONS; i++) {
        cfg->projection[i] = true;
        cfg->bias[i] = true;
    }
    *out = cfg;
    return mha__error_clear(err);
}

void mha_config_destroy(mha_config *cfg)
{
    if (cfg) {
        mha__memory_release(cfg->head_scales);
        mha__memory_release(cfg->head_softcaps);
        cfg->magic = 0;
        mha__memory_release(cfg);
    }
}

int32_t mha_config_set_kv_heads(mha_config *cfg, int64_t kv_heads, mha_error *err)
{
    MHA_CHECK_HANDLE(err, cfg, MHA__MAGIC_CONFIG);
    MHA_CHECK(err, kv_heads >= 1 && kv_heads <= cfg->H && cfg->H % kv_heads == 0,
              MHA_ERROR_HEAD_COUNT, "G = %lld key-value heads do not divide H = %lld query heads",
              (long long)kv_heads, (long long)cfg->H);
    cfg->G = kv_heads;
    return mha__error_clear(err);
}

static int32_t
set_size(mha_config *cfg, int64_t *field, const char *name, int64_t size, mha_error *err)
{
    MHA_CHECK_HANDLE(err, cfg, MHA__MAGIC_CONFIG);
    MHA_CHECK(err, size >= 1 && size <= INT32_MAX, MHA_ERROR_SHAPE,
              "%s = %lld; 1 to 2147483647 are possible", name, (long long)size);
    *field = size;
    return mha__error_clear(err);
}

int32_t mha_config_set_head_size(mha_config *cfg, int64_t head_size, mha_error *err)
{
    return set_size(cfg, cfg ? &cfg->D : NULL, "head size D", head_size, err);
}

int32_t mha_config_set_value_head_size(mha_config *cfg, int64_t head_size, mha_error *err)
{
    return set_size(cfg, cfg ? &cfg->Dv : NULL, "value head size Dv", head_size, err);
}

int32_t mha_config_set_query_width(mha_config *cfg, int64_t features, mha_error *err)
{
    return set_size(cfg, cfg ? &cfg->width[MHA_PROJECTION_Q] : NULL, "query width Eq", features,
                    err);
}

int32_t mha_config_set_key_width(mha_config *cfg, int64_t features, mha_error *err)
{
    return set_size(cfg, cfg ? &cfg->width[MHA_PROJECTION_K] : NULL, "key width Ek", features, err);
}

int32_t mha_config_set_value_width(mha_config *cfg, int64_t features, mha_error *err)
{
    return set_size(cfg, cfg ? &cfg->width[MHA_PROJECTION_V] : NULL, "value width Ev", features,
                    err);
}

int32_t mha_config_set_output_width(mha_config *cfg, int64_t features, mha_error *err)
{
    return set_size(cfg, cfg ? &cfg->width[MHA_PROJECTION_OUT] : NULL, "output width Eo", features,
                    err);
}

static int32_t
set_switch(mha_config *cfg, bool *switches, int32_t projection, int32_t on, mha_error *err)
{
    MHA_CHECK_HANDLE(err, cfg, MHA__MAGIC_CONFIG);
    MHA_CHECK(err, projection >= 0 && projection < MHA__PROJECTIONS, MHA_ERROR_UNKNOWN_ID,
              "projection %d; MHA_PROJECTION_Q (0) to MHA_PROJECTION_OUT (3) are known",
              (int)projection);
    MHA_CHECK(err, on == 0 || on == 1, MHA_ERROR_VALUE, "on = %d; it is 0 or 1", (int)on);
    switches[projection] = on == 1;
    return mha__error_clear(err);
}

int32_t mha_config_set_projection(mha_config *cfg, int32_t projection, int32_t on, mha_error *err)
{
    return set_switch(cfg, cfg ? cfg->projection : NULL, projection, on, err);
}

int32_t mha_config_set_bias(mha_config *cfg, int32_t projection, int32_t on, mha_error *err)
{
    return set_switch(cfg, cfg ? cfg->bias : NULL, projection, on, err);
}

int64_t mha_config_embedding(const mha_config *cfg)
{
    return cfg ? cfg->E : MHA_ERROR_NULL_ARGUMENT;
}

int64_t mha_config_heads(const mha_config *cfg)
{
    return cfg ? cfg->H : MHA_ERROR_NULL_ARGUMENT;
}

int64_t mha_config_kv_heads(const mha_config *cfg)
{
    return cfg ? cfg->G : MHA_ERROR_NULL_ARGUMENT;
}

int64_t mha_config_head_size(const mha_config *cfg)
{
    if (!cfg) {
        return MHA_ERROR_NULL_ARGUMENT;
    }
    return cfg->D ? cfg->D : cfg->E % cfg->H == 0 ? cfg->E / cfg->H : 0;
}

int64_t mha_config_value_head_size(const mha_config *cfg)
{
    if (!cfg) {
        return MHA_ERROR_NULL_ARGUMENT;
    }
    return cfg->Dv ? cfg->Dv : mha_config_head_size(cfg);
}

/* The width of one side: what was set, else E, or the heads themselves where there is no
 * projection. */
static int64_t width_of(const mha_config *cfg, int32_t side)
{
    if (!cfg) {
        return MHA_ERROR_NULL_ARGUMENT;
    }
    if (cfg->width[side]) {
        return cfg->width[side];
    }
    if (cfg->projection[side]) {
        return cfg->E;
    }
    const int64_t D = mha_config_head_size(cfg);
    const int64_t Dv = mha_config_value_head_size(cfg);
    const int64_t heads[] = {cfg->H * D, cfg->G * D, cfg->G * Dv, cfg->H * Dv};
    return heads[side];
}

int64_t mha_config_query_width(const mha_config *cfg)
{
    return width_of(cfg, MHA_PROJECTION_Q);
}

int64_t mha_config_key_width(const mha_config *cfg)
{
    return width_of(cfg, MHA_PROJECTION_K);
}

int64_t mha_config_value_width(const mha_config *cfg)
{
    return width_of(cfg, MHA_PROJECTION_V);
}

int64_t mha_config_output_width(const mha_config *cfg)
{
    return width_of(cfg, MHA_PROJECTION_OUT);
}

int32_t mha_config_projection(const mha_config *cfg, int32_t projection)
{
    if (!cfg) {
        return MHA_ERROR_NULL_ARGUMENT;
    }
    if (projection < 0 || projection >= MHA__PROJECTIONS) {
        return MHA_ERROR_UNKNOWN_ID;
    }
    return cfg->projection[projection];
}

int32_t mha_config_bias(const mha_config *cfg, int32_t projection)
{
    const int32_t on = mha_config_projection(cfg, projection);
    return on == 1 ? cfg->bias[projection] : on;
}
