/* SPDX-License-Identifier: Apache-2.0 */
#include "io/io_widths.h"

#include <inttypes.h>

/* What the shapes of the weights say: D and Dv, and the widths. */
struct facts {
    int64_t heads;
    int64_t kv_heads;
    int64_t head_size;
    int64_t value_head_size;
};

/* total / parts, which must be whole. */
static int32_t divide(const mha_io_safetensors *file,
                      int64_t total,
                      int64_t parts,
                      const char *what,
                      int64_t *quotient,
                      mha_error *err)
{
    if (total < 1 || total % parts != 0) {
        return mha__io_error_fail(err,
                                  MHA_ERROR_HEAD_COUNT,
                                  file->source.label,
                                  "%" PRId64 " %s do not divide into %" PRId64 " heads",
                                  total,
                                  what,
                                  parts);
    }
    *quotient = total / parts;
    return MHA_OK;
}

/* rows = H D + G D + G Dv, where Dv is known from the output projection [Eo, H Dv]. */
static int32_t split_packed(const mha_io_safetensors *file,
                            int64_t rows,
                            struct facts *facts,
                            struct mha__io_widths *widths,
                            mha_error *err)
{
    if (facts->value_head_size > rows / facts->kv_heads) {
        return mha__io_error_fail(err,
                                  MHA_ERROR_SHAPE,
                                  file->source.label,
                                  "query, key and value together have %" PRId64
                                  " features, too few for %" PRId64 " value heads of %" PRId64,
                                  rows,
                                  facts->kv_heads,
                                  facts->value_head_size);
    }
    int64_t value = facts->kv_heads * facts->value_head_size;
    MHA__IO_TRY(divide(file,
                       rows - value,
                       facts->heads + facts->kv_heads,
                       "packed query and key features",
                       &facts->head_size,
                       err));
    widths->out[MHA_PROJECTION_Q] = facts->heads * facts->head_size;
    widths->out[MHA_PROJECTION_K] = facts->kv_heads * facts->head_size;
    widths->out[MHA_PROJECTION_V] = value;
    return MHA_OK;
}

static int32_t read_widths(const mha_io_safetensors *file,
                           const struct mha__io_found *found,
                           struct facts *facts,
                           struct mha__io_widths *widths,
                           mha_error *err)
{
    bool transposed = found->scheme->transposed;
    for (int32_t p = 0; p < MHA__IO_PROJECTIONS; p++) {
        int64_t tensor = mha__io_scheme_weight(found, p);
        if (tensor < 0) {
            return mha__io_scheme_missing(file, found, p, false, err);
        }
        MHA__IO_TRY(
            mha__io_widths_matrix(file, tensor, transposed, &widths->out[p], &widths->in[p], err));
        widths->weight[p] = true;
        widths->bias[p] = mha__io_scheme_bias(found, p) >= 0;
    }
    MHA__IO_TRY(divide(file,
                       widths->in[MHA_PROJECTION_OUT],
                       facts->heads,
                       "features that enter the output projection",
                       &facts->value_head_size,
                       err));
    if (found->packed_weight >= 0) {
        MHA__IO_TRY(split_packed(file, widths->out[MHA_PROJECTION_Q], facts, widths, err));
    } else {
        MHA__IO_TRY(divide(file,
                           widths->out[MHA_PROJECTION_Q],
                           facts->heads,
                           "query features",
                           &facts->head_size,
                           err));
    }
    /* What the heads make of k and v must be what the tensors have. */
    const int64_t key = facts->kv_heads * facts->head_size;
    const int64_t value = facts->kv_heads * facts->value_head_size;
    if (widths->out[MHA_PROJECTION_K] != key || widths->out[MHA_PROJECTION_V] != value) {
        return mha__io_error_fail(err,
                                  MHA_ERROR_HEAD_COUNT,
                                  file->source.label,
                                  "key and value have %" PRId64 " and %" PRId64
                                  " features, where %" PRId64 " heads of %" PRId64 " and %" PRId64
                                  " make %" PRId64 " and %" PRId64,
                                  widths->out[MHA_PROJECTION_K],
                                  widths->out[MHA_PROJECTION_V],
                                  facts->kv_heads,
                                  facts->head_size,
                                  facts->value_head_size,
                                  key,
                                  value);
    }
    return mha__io_widths_check(file, found, widths, err);
}

static int32_t fill_config(mha_config *cfg,
                           const struct mha__io_scheme *scheme,
                           const struct facts *facts,
                           const struct mha__io_widths *widths,
                           mha_error *err)
{
    MHA__IO_TRY(mha_config_set_kv_heads(cfg, facts->kv_heads, err));
    MHA__IO_TRY(mha_config_set_head_size(cfg, facts->head_size, err));
    MHA__IO_TRY(mha_config_set_value_head_size(cfg, facts->value_head_size, err));
    MHA__IO_TRY(mha_config_set_query_width(cfg, widths->in[MHA_PROJECTION_Q], err));
    MHA__IO_TRY(mha_config_set_key_width(cfg, widths->in[MHA_PROJECTION_K], err));
    MHA__IO_TRY(mha_config_set_value_width(cfg, widths->in[MHA_PROJECTION_V], err));
    MHA__IO_TRY(mha_config_set_output_width(cfg, widths->out[MHA_PROJECTION_OUT], err));
    for (int32_t p = 0; p < MHA__IO_PROJECTIONS; p++) {
        MHA__IO_TRY(mha_config_set_bias(cfg, p, widths->bias[p], err));
    }
    if (scheme->rotary) {
        MHA__IO_TRY(
            mha_config_set_rotary(cfg, MHA_ROTARY_HALVES, facts->head_size, 0, err));
    }
    return MHA_OK;
}

int32_t mha_io_read_config(const mha_io_safetensors *file,
                           int32_t scheme,
                           const char *prefix,
                           int64_t heads,
                           int64_t kv_heads,
                           mha_config **out,
                           mha_error *err)
{
    if (!out) {
        return mha__io_error_null(err, "out");
    }
    *out = NULL;
    if (!file || !prefix) {
        return mha__io_error_null(err, !file ? "file" : "prefix");
    }
    struct facts facts = {heads, kv_heads == 0 ? heads : kv_heads, 0, 0};
    if (heads < 1 || heads > INT32_MAX || facts.kv_heads < 1 || heads % facts.kv_heads != 0) {
        return mha__io_error_fail(err,
                                  MHA_ERROR_HEAD_COUNT,
                                  NULL,
                                  "%" PRId64 " heads do not share %" PRId64 " key-value heads",
                                  heads,
                                  kv_heads);
    }
    struct mha__io_found found;
    struct mha__io_widths widths;
    MHA__IO_TRY(mha__io_scheme_find(file, scheme, prefix, &found, err));
    MHA__IO_TRY(read_widths(file, &found, &facts, &widths, err));

    mha_config *cfg = NULL;
    MHA__IO_TRY(mha_config_create(widths.in[MHA_PROJECTION_Q], heads, &cfg, err));
    int32_t status = fill_config(cfg, found.scheme, &facts, &widths, err);
    if (status != MHA_OK) {
        mha_config_destroy(cfg);
        return status;
    }
    *out = cfg;
    return mha__io_error_none(err);
}
