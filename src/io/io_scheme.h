/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA__IO_SCHEME_H
#define MHA__IO_SCHEME_H

/* Which tensor of a file is which parameter: the names of a scheme, and what was found under them. */
#include "io/io_safetensors.h"

/* Projections are numbered as in <mha/config.h>: q, k, v, out. */
#define MHA__IO_PROJECTIONS 4

/* Names after the prefix; NULL: the scheme has no such tensor. */
struct mha__io_scheme {
    const char *packed_weight; /* q, k and v in one tensor */
    const char *packed_bias;
    const char *weight[MHA__IO_PROJECTIONS];
    const char *bias[MHA__IO_PROJECTIONS];
    const char *refused[2]; /* would change the numbers in a way this library cannot follow */
    bool transposed;        /* weights are [in, out] */
    bool rotary; /* q and k turn by rotary positions, in halves */
};

/* Indices of tensors; -1: not in the file. */
struct mha__io_found {
    const struct mha__io_scheme *scheme;
    const char *prefix;
    int64_t packed_weight;
    int64_t packed_bias;
    int64_t weight[MHA__IO_PROJECTIONS];
    int64_t bias[MHA__IO_PROJECTIONS];
};

/* Looks the tensors up. Refuses an unknown scheme, two sets that contradict and tensors that the
 * library cannot follow; a tensor that is merely missing is left to mha__io_scheme_missing. */
int32_t mha__io_scheme_find(const mha_io_safetensors *file,
                            int32_t scheme,
                            const char *prefix,
                            struct mha__io_found *found,
                            mha_error *err);

/* The tensor that holds a projection's weight or bias, packed or its own; -1: none. */
int64_t mha__io_scheme_weight(const struct mha__io_found *found, int32_t projection);
int64_t mha__io_scheme_bias(const struct mha__io_found *found, int32_t projection);

/* FILE_TENSOR: the sentence names the tensor that a projection's weight or bias should have been. */
int32_t mha__io_scheme_missing(const mha_io_safetensors *file,
                               const struct mha__io_found *found,
                               int32_t projection,
                               bool is_bias,
                               mha_error *err);

#endif
