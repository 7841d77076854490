/* SPDX-License-Identifier: Apache-2.0 */
#include "io/io_widths.h"

#include <inttypes.h>

static const char *const projection_names[MHA__IO_PROJECTIONS] = {
    "query", "key", "value", "output"};

void mha__io_widths_of_layer(const mha_layer *layer, struct mha__io_widths *widths)
{
    for (int32_t p = 0; p < MHA__IO_PROJECTIONS; p++) {
        int64_t shape[2] = {0, 0};
        /* Parameter ids come in pairs, weight and bias, in the order of the projections. */
        int32_t weight = MHA_PARAM_Q_WEIGHT + 2 * p;
        widths->weight[p] = mha_layer_parameter_shape(layer, weight, shape, 2) == 2;
        widths->bias[p] = mha_layer_parameter_shape(layer, weight + 1, NULL, 0) == 1;
        widths->out[p] = shape[0];
        widths->in[p] = shape[1];
    }
}

static int32_t refuse_surplus(const mha_io_safetensors *file,
                              int64_t tensor,
                              int32_t projection,
                              const char *what,
                              mha_error *err)
{
    char quote[MHA__IO_QUOTE];
    return mha__io_error_fail(
        err,
        MHA_ERROR_FILE_TENSOR,
        file->source.label,
        "has %s, but the layer has no %s %s",
        mha__io_error_quote(quote, file->tensors[tensor].name, file->tensors[tensor].name_length),
        projection_names[projection],
        what);
}

/* A parameter and no tensor, or a tensor and no parameter. */
static int32_t check_presence(const mha_io_safetensors *file,
                              const struct mha__io_found *found,
                              const struct mha__io_widths *widths,
                              mha_error *err)
{
    for (int32_t p = 0; p < MHA__IO_PROJECTIONS; p++) {
        int64_t weight = mha__io_scheme_weight(found, p);
        int64_t bias = mha__io_scheme_bias(found, p);
        if (widths->weight[p] && weight < 0) {
            return mha__io_scheme_missing(file, found, p, false, err);
        }
        if (widths->bias[p] && bias < 0) {
            return mha__io_scheme_missing(file, found, p, true, err);
        }
        if (!widths->weight[p] && weight >= 0) {
            return refuse_surplus(file, weight, p, "projection", err);
        }
        if (!widths->bias[p] && bias >= 0) {
            return refuse_surplus(file, bias, p, "bias", err);
        }
    }
    return MHA_OK;
}

static int32_t check_shape(const mha_io_safetensors *file,
                           int64_t index,
                           const int64_t *expected,
                           int32_t rank,
                           mha_error *err)
{
    const struct mha__io_tensor *tensor = &file->tensors[index];
    bool equal = tensor->rank == rank;
    for (int32_t axis = 0; equal && axis < rank; axis++) {
        equal = tensor->shape[axis] == expected[axis];
    }
    if (equal) {
        return MHA_OK;
    }
    char quote[MHA__IO_QUOTE];
    char have[MHA__IO_SHAPE];
    char need[MHA__IO_SHAPE];
    return mha__io_error_fail(err,
                              MHA_ERROR_SHAPE,
                              file->source.label,
                              "%s has the shape %s, the layer needs %s",
                              mha__io_error_quote(quote, tensor->name, tensor->name_length),
                              mha__io_error_shape(have, tensor->shape, tensor->rank),
                              mha__io_error_shape(need, expected, rank));
}

static int32_t check_matrix(const mha_io_safetensors *file,
                            int64_t tensor,
                            bool transposed,
                            int64_t out,
                            int64_t in,
                            mha_error *err)
{
    const int64_t expected[2] = {transposed ? in : out, transposed ? out : in};
    return check_shape(file, tensor, expected, 2, err);
}

/* q, k and v in one tensor, one below the other: the inputs must be equally wide. */
static int32_t check_packed(const mha_io_safetensors *file,
                            const struct mha__io_found *found,
                            const struct mha__io_widths *widths,
                            mha_error *err)
{
    const int64_t rows = widths->out[0] + widths->out[1] + widths->out[2];
    if (found->packed_weight >= 0) {
        if (widths->in[0] != widths->in[1] || widths->in[0] != widths->in[2]) {
            return mha__io_error_fail(
                err,
                MHA_ERROR_SHAPE,
                file->source.label,
                "packs query, key and value in one weight, but the layer's inputs "
                "are %" PRId64 ", %" PRId64 " and %" PRId64 " wide",
                widths->in[0],
                widths->in[1],
                widths->in[2]);
        }
        MHA__IO_TRY(check_matrix(
            file, found->packed_weight, found->scheme->transposed, rows, widths->in[0], err));
    }
    return found->packed_bias >= 0 ? check_shape(file, found->packed_bias, &rows, 1, err) : MHA_OK;
}

int32_t mha__io_widths_check(const mha_io_safetensors *file,
                             const struct mha__io_found *found,
                             const struct mha__io_widths *widths,
                             mha_error *err)
{
    MHA__IO_TRY(check_presence(file, found, widths, err));
    MHA__IO_TRY(check_packed(file, found, widths, err));
    for (int32_t p = 0; p < MHA__IO_PROJECTIONS; p++) {
        if (found->weight[p] >= 0) {
            MHA__IO_TRY(check_matrix(file,
                                     found->weight[p],
                                     found->scheme->transposed,
                                     widths->out[p],
                                     widths->in[p],
                                     err));
        }
        if (found->bias[p] >= 0) {
            MHA__IO_TRY(check_shape(file, found->bias[p], &widths->out[p], 1, err));
        }
    }
    return MHA_OK;
}

int32_t mha__io_widths_matrix(const mha_io_safetensors *file,
                              int64_t tensor,
                              bool transposed,
                              int64_t *out,
                              int64_t *in,
                              mha_error *err)
{
    const struct mha__io_tensor *matrix = &file->tensors[tensor];
    if (matrix->rank != 2 || matrix->count == 0) {
        char quote[MHA__IO_QUOTE];
        char shape[MHA__IO_SHAPE];
        return mha__io_error_fail(err,
                                  MHA_ERROR_SHAPE,
                                  file->source.label,
                                  "%s has the shape %s, a weight has two sizes from 1 on",
                                  mha__io_error_quote(quote, matrix->name, matrix->name_length),
                                  mha__io_error_shape(shape, matrix->shape, matrix->rank));
    }
    *out = matrix->shape[transposed ? 1 : 0];
    *in = matrix->shape[transposed ? 0 : 1];
    return MHA_OK;
}
