/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA_FORWARD_H
#define MHA_FORWARD_H

#include <mha/call.h>
#include <mha/layer.h>

MHA_BEGIN_DECLS

/**
 * The forward pass over the tensors of a call, of any stride, with every option of the config, the
 * mask and the call. B, T and S come from the shapes. QUERY, KEY and VALUE are needed, and at least
 * one output (a tensor, top keys, a callback for the weights).
 *
 *   s0  = scale_h <q_i, k_j>                             q and k turned by rotary positions
 *   s1  = cap tanh(s0 / cap)                             with a softcap
 *   s2  = s1 + biases - slope_h |i + off - j|            in float32
 *   s3  = callback(s2)
 *   p   = allowed ? exp(s3 - m) / sum : 0                m and sum with the sink of the head
 *   lse = m + ln sum
 *   o   = gate_h sum_j p keep_ij / (1 - dropout) v_j     out = concat_h(o) Wo^T + bo
 *
 * No output changes another beyond rounding. Weights sum to 1 within 1e-6 sqrt(S) (less the sink's
 * share); in a row without an allowed key they are 0 and its lse is -infinity, or the sink.
 * Aliasing  inputs may share memory with each other; an output may share an element with no input and
 *           no other output (interleaved tensors that share none are fine).
 * Memory    as mha_layer_forward. Weights and scores take the T x S memory they are written to. Without
 *           them, what is made of the weights takes at most 128 rows of S numbers a thread, and
 *           KEY_MASS B * H * ceil(T / tile) rows.
 * Threads, numerics, edges: as mha_layer_forward.
 *
 * @retval MHA_OK
 * @retval MHA_ERROR_NULL_ARGUMENT  the context, the layer or the call is NULL
 * @retval MHA_ERROR_NOT_SET        a tensor or a parameter is missing; the sentence names it
 * @retval MHA_ERROR_SHAPE          shapes that do not fit each other, the layer or the mask
 * @retval MHA_ERROR_ALIGNMENT      causal, window, ALiBi or rotary positions, some T_b != S_b, and the
 *                                  mask has no alignment
 * @retval MHA_ERROR_TOO_LARGE      a product of sizes passes 2^63, a BLAS size 2^31-1, or the limit
 * @retval MHA_ERROR_OVERLAP        an output shares an element with another tensor
 * @retval MHA_ERROR_OUT_OF_MEMORY  the context is as before and usable
 * @retval MHA_ERROR_BLAS           the BLAS computes wrong products on this CPU
 * @retval MHA_ERROR_EXECUTOR       the host's executor failed; the outputs are then undefined
 */
MHA_API int32_t mha_forward(
    mha_context *ctx, const mha_layer *layer, const mha_mask *mask, mha_call *call, mha_error *err);

MHA_END_DECLS
#endif
