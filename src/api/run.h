/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA__RUN_H
#define MHA__RUN_H

/* The common way of mha_attention, mha_layer_forward and mha_forward: check, plan, make room, go. */
#include "api/objects.h"

/* MHA_ERROR_NOT_SET, by name, while a parameter is missing. */
int32_t mha__parameter_all_set(const mha_layer *layer, mha_error *err);

/* The rules of a mask fit a call of B, H, T, S, and an alignment was said where it matters. */
int32_t
mha__mask_fits(const mha_mask *mask, int64_t B, int64_t H, int64_t T, int64_t S, mha_error *err);

/* MHA_ERROR_ALIGNMENT unless an alignment was said or T_b = S_b everywhere; `what` ("rotary
 * positions") needs it. mask may be NULL. */
int32_t mha__mask_aligned(
    const mha_mask *mask, const char *what, int64_t B, int64_t T, int64_t S, mha_error *err);

/* The weights in panels, NULL for a projection that is off; the first call makes them. */
int32_t
mha__panels_find(const mha_layer *layer, const float *sides[MHA__PROJECTIONS], mha_error *err);
/* How many bytes they take, and away with them: a weight changes. */
int64_t mha__panels_bytes(const mha_layer *layer);
void mha__panels_drop(mha_layer *layer);

/* The sizes of a call on a layer: not negative, and no product too large. */
int32_t
mha__run_check_sizes(const mha_layer *layer, int64_t B, int64_t T, int64_t S, mha_error *err);

/* What a forward asks of the planner. */
void mha__run_request(const mha_context *ctx,
                      const mha_layer *layer,
                      const mha_mask *mask,
                      int64_t B,
                      int64_t T,
                      int64_t S,
                      struct mha__planner_request *request);

/* Columns that the weights have beside the S keys. */
int64_t mha__run_extra_keys(const mha_layer *layer);

/* Checks the objects of a call (live ones) against each other and fills the problem. */
int32_t mha__run_describe(const mha_layer *layer,
                          const mha_mask *mask,
                          const mha_call *call,
                          struct mha__problem *problem,
                          mha_error *err);

/* ctx, layer and call are live objects. */
int32_t mha__run(mha_context *ctx,
                 const mha_layer *layer,
                 const mha_mask *mask,
                 const mha_call *call,
                 mha_error *err);

/* The same over contiguous tensors. */
int32_t mha__run_contiguous(mha_context *ctx,
                            const mha_layer *layer,
                            int64_t B,
                            int64_t T,
                            int64_t S,
                            const float *query,
                            const float *key,
                            const float *value,
                            const mha_mask *mask,
                            float *out,
                            mha_error *err);

/* Room for `bytes` of workspace; on failure the context is as before. */
int32_t mha__context_reserve(mha_context *ctx, int64_t bytes, mha_error *err);

struct mha__executor mha__context_executor(const mha_context *ctx);

/* Whether two tensors share an element; whether two elements of one may lie in one place. */
bool mha__overlap(const struct mha__tensor *a, const struct mha__tensor *b);
bool mha__overlap_with_itself(const struct mha__tensor *tensor);

#endif
