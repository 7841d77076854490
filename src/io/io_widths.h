/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA__IO_WIDTHS_H
#define MHA__IO_WIDTHS_H

/* The shapes that a layer's parameters have, by projection, and whether a file's tensors have them. */
#include "io/io_scheme.h"

struct mha__io_widths {
    bool weight[MHA__IO_PROJECTIONS]; /* whether the layer has it */
    bool bias[MHA__IO_PROJECTIONS];
    int64_t out[MHA__IO_PROJECTIONS]; /* a weight is [out, in], a bias [out] */
    int64_t in[MHA__IO_PROJECTIONS];
};

void mha__io_widths_of_layer(const mha_layer *layer, struct mha__io_widths *widths);

/* FILE_TENSOR: a parameter has no tensor, or a tensor no parameter. SHAPE: one has another shape. */
int32_t mha__io_widths_check(const mha_io_safetensors *file,
                             const struct mha__io_found *found,
                             const struct mha__io_widths *widths,
                             mha_error *err);

/* A weight's sizes, whichever way round it is stored. SHAPE when it is no matrix. */
int32_t mha__io_widths_matrix(const mha_io_safetensors *file,
                              int64_t tensor,
                              bool transposed,
                              int64_t *out,
                              int64_t *in,
                              mha_error *err);

#endif
