/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA_FORWARD_H
#define MHA_FORWARD_H

#include <mha/call.h>
#include <mha/layer.h>

MHA_BEGIN_DECLS

/**
 * The forward pass over the tensors of a call: the formula of mha_layer_forward for tensors of any
 * stride, with the weights and the log-sum-exp where the call has them. B, T and S come from the
 * shapes. QUERY, KEY, VALUE are needed, and at least one output.
 *
 *   s = scale <q_i, k_j>     p = allowed ? exp(s - m) / sum : 0     lse = m + log sum     o = sum_j
 * p v_j
 *
 * Asking for the weights or the log-sum-exp never changes the output beyond rounding. Weights sum
 * to 1 within 1e-6 sqrt(S); in a row without an allowed key they are 0 and its lse is -infinity.
 * Aliasing  inputs may share memory with each other; an output may share an element with no input and
 *           no other output (interleaved tensors that share none are fine).
 * Memory, threads, numerics, edges: as mha_layer_forward. Weights take the T x S memory they are written
 * to and O(T) beside; nothing else does.
 *
 * @retval MHA_OK
 * @retval MHA_ERROR_NULL_ARGUMENT  the context, the layer or the call is NULL
 * @retval MHA_ERROR_NOT_SET        a tensor or a parameter is missing; the sentence names it
 * @retval MHA_ERROR_SHAPE          shapes that do not fit each other, the layer or the mask
 * @retval MHA_ERROR_ALIGNMENT      causal or window, some T_b != S_b, and the mask has no alignment
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
