/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA_CALL_H
#define MHA_CALL_H

#include <mha/error.h>

MHA_BEGIN_DECLS

/**
 * The tensors of one call, by name. The only object that remembers caller pointers: they are
 * touched inside mha_forward only and must stay valid until it returns. Shapes and strides are
 * copied. A call may be used again, with all or some tensors set anew.
 *
 * Threads: one at a time per call.
 */
typedef struct mha_call mha_call;

/*
 * Tensors. Where a projection is off its tensor holds heads; then the shape may be given as
 * [B,T,H,D] or as [B,T,H*D], likewise for the others.
 */
#define MHA_TENSOR_QUERY   0 /* in   [B,T,Eq] or [B,T,H,D] */
#define MHA_TENSOR_KEY     1 /* in   [B,S,Ek] or [B,S,G,D] */
#define MHA_TENSOR_VALUE   2 /* in   [B,S,Ev] or [B,S,G,Dv] */
#define MHA_TENSOR_OUTPUT  3 /* out  [B,T,Eo] or [B,T,H,Dv] */
#define MHA_TENSOR_WEIGHTS 4 /* out  [B,H,T,S], after the softmax; 0 at hidden keys */
#define MHA_TENSOR_LSE     5 /* out  [B,H,T], ln of the sum of exp(score), allowed keys */

/** A call with no tensor set. @retval MHA_ERROR_OUT_OF_MEMORY  *out is NULL */
MHA_API int32_t mha_call_create(mha_call **out, mha_error *err);

/** Frees call; NULL is fine. The tensors are the caller's. */
MHA_API void mha_call_destroy(mha_call *call);

/**
 * Sets an input tensor. strides counts elements, one per axis, NULL = contiguous; the last axis
 * must have stride 1 (or size 1). Strides of 0 broadcast. data may be NULL where a size is 0; NULL
 * data with rank 0 takes the tensor out of the call again. Nothing is read before mha_forward.
 * @retval MHA_OK
 * @retval MHA_ERROR_NULL_ARGUMENT  call or shape is NULL, or data is and no size is 0
 * @retval MHA_ERROR_UNKNOWN_ID     not an input tensor, or an unknown type
 * @retval MHA_ERROR_SHAPE          a rank the tensor cannot have, a negative size or stride, or a
 * last axis that is not contiguous
 * @retval MHA_ERROR_TOO_LARGE      the extent passes 2^63 bytes
 */
MHA_API int32_t mha_call_set_input(mha_call *call,
                                   int32_t tensor,
                                   int32_t type,
                                   const void *data,
                                   int32_t rank,
                                   const int64_t *shape,
                                   const int64_t *strides,
                                   mha_error *err);

/**
 * Sets an output tensor; what is not set is not computed. As mha_call_set_input, but a stride that
 * would let two elements share memory is refused (MHA_ERROR_OVERLAP).
 */
MHA_API int32_t mha_call_set_output(mha_call *call,
                                    int32_t tensor,
                                    int32_t type,
                                    void *data,
                                    int32_t rank,
                                    const int64_t *shape,
                                    const int64_t *strides,
                                    mha_error *err);

MHA_END_DECLS
#endif
