/* SPDX-License-Identifier: Apache-2.0 */
#include "io/io_memory.h"
#include "io/io_widths.h"

/*
 * Loading is all or nothing: everything is checked and read into memory of our own, converted and
 * turned to [out, in], before the first parameter is set.
 *
 *   staged:  | Wq | Wk | Wv | Wo | bq | bk | bv | bo |
 *
 * Packed tensors are q, k, v one below the other, which is how they lie here.
 */
struct staging {
    float *staged;
    float *turning;                      /* one stored weight, where weights are [in, out] */
    int64_t weight[MHA__IO_PROJECTIONS]; /* where each part begins */
    int64_t bias[MHA__IO_PROJECTIONS];
};

/* Sizes come from tensors that lie in the file, so their sum, 4 bytes each, is far from 2^63. */
static int32_t allocate(const mha_io_safetensors *file,
                        const struct mha__io_found *found,
                        const struct mha__io_widths *widths,
                        struct staging *staging,
                        mha_error *err)
{
    int64_t numbers = 0;
    int64_t largest = 0;
    for (int32_t p = 0; p < MHA__IO_PROJECTIONS; p++) {
        staging->weight[p] = numbers;
        numbers += widths->weight[p] ? widths->out[p] * widths->in[p] : 0;
        int64_t tensor = mha__io_scheme_weight(found, p);
        if (tensor >= 0 && file->tensors[tensor].count > largest) {
            largest = file->tensors[tensor].count;
        }
    }
    for (int32_t p = 0; p < MHA__IO_PROJECTIONS; p++) {
        staging->bias[p] = numbers;
        numbers += widths->bias[p] ? widths->out[p] : 0;
    }
    staging->staged = mha__io_memory_array(numbers, sizeof(float));
    if (staging->staged && found->scheme->transposed) {
        staging->turning = mha__io_memory_array(largest, sizeof(float));
    }
    if (!staging->staged || (found->scheme->transposed && !staging->turning)) {
        return mha__io_error_memory(err, file->source.label);
    }
    return MHA_OK;
}

static int32_t read_tensor(const mha_io_safetensors *file, int64_t index, float *to, mha_error *err)
{
    return mha_io_safetensors_read(file, index, to, file->tensors[index].count, err);
}

static int32_t read_weight(const mha_io_safetensors *file,
                           const struct mha__io_found *found,
                           int64_t index,
                           struct staging *staging,
                           float *to,
                           mha_error *err)
{
    if (!found->scheme->transposed) {
        return read_tensor(file, index, to, err);
    }
    MHA__IO_TRY(read_tensor(file, index, staging->turning, err));
    const int64_t in = file->tensors[index].shape[0];
    const int64_t out = file->tensors[index].shape[1];
    for (int64_t i = 0; i < in; i++) {
        for (int64_t o = 0; o < out; o++) {
            to[o * in + i] = staging->turning[i * out + o];
        }
    }
    return MHA_OK;
}

static int32_t read_all(const mha_io_safetensors *file,
                        const struct mha__io_found *found,
                        struct staging *staging,
                        mha_error *err)
{
    float *staged = staging->staged;
    if (found->packed_weight >= 0) {
        MHA__IO_TRY(read_weight(
            file, found, found->packed_weight, staging, staged + staging->weight[0], err));
    }
    if (found->packed_bias >= 0) {
        MHA__IO_TRY(read_tensor(file, found->packed_bias, staged + staging->bias[0], err));
    }
    for (int32_t p = 0; p < MHA__IO_PROJECTIONS; p++) {
        if (found->weight[p] >= 0) {
            MHA__IO_TRY(read_weight(
                file, found, found->weight[p], staging, staged + staging->weight[p], err));
        }
        if (found->bias[p] >= 0) {
            MHA__IO_TRY(read_tensor(file, found->bias[p], staged + staging->bias[p], err));
        }
    }
    return MHA_OK;
}

/* Ids and counts were checked, so none of these can fail. */
static int32_t set_all(mha_layer *layer,
                       const struct mha__io_widths *widths,
                       const struct staging *staging,
                       mha_error *err)
{
    for (int32_t p = 0; p < MHA__IO_PROJECTIONS; p++) {
        int32_t weight = MHA_PARAM_Q_WEIGHT + 2 * p;
        if (widths->weight[p]) {
            MHA__IO_TRY(mha_layer_set_parameter(layer,
                                                weight,
                                                MHA_FLOAT32,
                                                staging->staged + staging->weight[p],
                                                widths->out[p] * widths->in[p],
                                                err));
        }
        if (widths->bias[p]) {
            MHA__IO_TRY(mha_layer_set_parameter(layer,
                                                weight + 1,
                                                MHA_FLOAT32,
                                                staging->staged + staging->bias[p],
                                                widths->out[p],
                                                err));
        }
    }
    return MHA_OK;
}

int32_t mha_io_load_layer(const mha_io_safetensors *file,
                          int32_t scheme,
                          const char *prefix,
                          mha_layer *layer,
                          mha_error *err)
{
    if (!file || !prefix || !layer) {
        return mha__io_error_null(err, !file ? "file" : !prefix ? "prefix" : "layer");
    }
    struct mha__io_found found;
    struct mha__io_widths widths;
    struct staging staging = {NULL, NULL, {0}, {0}};
    MHA__IO_TRY(mha__io_scheme_find(file, scheme, prefix, &found, err));
    mha__io_widths_of_layer(layer, &widths);
    MHA__IO_TRY(mha__io_widths_check(file, &found, &widths, err));

    int32_t status = allocate(file, &found, &widths, &staging, err);
    if (status == MHA_OK) {
        status = read_all(file, &found, &staging, err);
    }
    if (status == MHA_OK) {
        status = set_all(layer, &widths, &staging, err);
    }
    mha__io_memory_release(staging.staged);
    mha__io_memory_release(staging.turning);
    return status == MHA_OK ? mha__io_error_none(err) : status;
}
