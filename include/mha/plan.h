/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA_PLAN_H
#define MHA_PLAN_H

#include <mha/layer.h>

MHA_BEGIN_DECLS

/**
 * What a forward of these sizes would do and cost, before it is made. No tensor is touched and no
 * arithmetic is done; the forward itself follows the same plan. A forward with more than a plan
 * reckons with (callbacks, raw scores, what is made of the weights) may take other tiles, and
 * pack keys and values where its plan says "direct". With the fused engine so may one with biases,
 * dropout or the entropy, where its plan says "fused, transposed".
 *
 * Threads: any number of readers.
 */
typedef struct mha_plan mha_plan;

/* Outputs that a plan reckons with, beside the result. */
#define MHA_PLAN_WEIGHTS 1
#define MHA_PLAN_LSE     2

/**
 * The plan of a forward with B, T, S on this context, layer and mask (NULL: all visible); outputs
 * is a sum of MHA_PLAN_* (0: the result alone).
 * @retval MHA_OK
 * @retval MHA_ERROR_NULL_ARGUMENT  ctx, layer or out is NULL
 * @retval MHA_ERROR_UNKNOWN_ID     an unknown output flag
 * @retval MHA_ERROR_SHAPE          B, T or S is negative, or the mask has other sizes
 * @retval MHA_ERROR_ALIGNMENT      causal, window or ALiBi, some T_b != S_b, and the mask has no
 *                                  alignment
 * @retval MHA_ERROR_TOO_LARGE      a product of sizes passes 2^63, or a BLAS size 2^31-1
 * @retval MHA_ERROR_OUT_OF_MEMORY  *out is NULL
 */
MHA_API int32_t mha_plan_create(const mha_context *ctx,
                                const mha_layer *layer,
                                const mha_mask *mask,
                                int64_t B,
                                int64_t T,
                                int64_t S,
                                int32_t outputs,
                                mha_plan **out,
                                mha_error *err);

/** Frees plan; NULL is fine. */
MHA_API void mha_plan_destroy(mha_plan *plan);

/* Each getter returns MHA_ERROR_NULL_ARGUMENT for NULL. */

/** Bytes of workspace, beside inputs and outputs, for contiguous tensors and without other outputs than
 * those asked for; strided inputs to a projection take some rows more a thread. */
MHA_API int64_t mha_plan_workspace_bytes(const mha_plan *plan);
/** Of those, the packed keys and values; the projected ones, if they are projected, for few queries and where each
 * thread packs what it needs (then a MiB a thread at most, not counted here). */
MHA_API int64_t mha_plan_packed_bytes(const mha_plan *plan);
/** Bytes of the weights output: 4*B*H*T*S' if MHA_PLAN_WEIGHTS was asked for, else 0. */
MHA_API int64_t mha_plan_weights_bytes(const mha_plan *plan);
/** Useful floating-point operations: 2*B*H*pairs*(D + Dv), with the visible (i, j) pairs, and
 * 2*in*out a row for each projection. */
MHA_API int64_t mha_plan_flops(const mha_plan *plan);
/** Independent tasks of the attention: batch rows * heads * query tiles; for few queries batch rows *
 * key-value heads * chunks of keys. */
MHA_API int64_t mha_plan_tasks(const mha_plan *plan);
/** Queries a tile. */
MHA_API int64_t mha_plan_query_tile(const mha_plan *plan);
/** Keys a tile. */
MHA_API int64_t mha_plan_key_tile(const mha_plan *plan);
/** Threads that the forward would use. */
MHA_API int32_t mha_plan_threads(const mha_plan *plan);
/** The share of the T x S pairs that rules by position (causal, window, ranges, lengths, segments) leave
 * visible, 0 .. 1; the cells of boolean masks are not counted. NaN for NULL. */
MHA_API double mha_plan_visible_share(const mha_plan *plan);
/** The engine and tile table by name ("blas, packed tiles", "fused, transposed"), or for few queries with
 * either engine "direct, keys and values in place"; static. NULL for NULL. */
MHA_API const char *mha_plan_algorithm(const mha_plan *plan);
/** All of it as text, a line a fact; copied like mha_error_message. "" for NULL. */
MHA_API int64_t mha_plan_describe(const mha_plan *plan, char *buf, int64_t cap);

MHA_END_DECLS
#endif
