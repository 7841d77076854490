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
 * [B,T,H,D] or as [B,T,H*D], likewise for the others. S' is S and the extra keys of the config.
 */
#define MHA_TENSOR_QUERY           0  /* in   [B,T,Eq] or [B,T,H,D] */
#define MHA_TENSOR_KEY             1  /* in   [B,S,Ek] or [B,S,G,D] */
#define MHA_TENSOR_VALUE           2  /* in   [B,S,Ev] or [B,S,G,Dv] */
#define MHA_TENSOR_OUTPUT          3  /* out  [B,T,Eo] or [B,T,H,Dv] */
#define MHA_TENSOR_WEIGHTS         4  /* out  [B,H,T,S'], after the softmax; 0 at hidden keys */
#define MHA_TENSOR_LSE             5  /* out  [B,H,T], ln of the sum of exp(score), allowed keys */
#define MHA_TENSOR_BIAS0           6  /* in   [B|1,H|1,T|1,S], added to the scores; -inf hides, */
#define MHA_TENSOR_BIAS1           7  /*      and so does a last axis shorter than S; */
#define MHA_TENSOR_BIAS2           8  /*      all four are summed, in this order */
#define MHA_TENSOR_BIAS3           9  /* */
#define MHA_TENSOR_WEIGHTS_MEAN    10 /* out  [B,T,S'], the mean of the weights over the heads */
#define MHA_TENSOR_WEIGHTS_DROPPED 11 /* out  [B,H,T,S'], the weights after dropout */
#define MHA_TENSOR_SCORES_SCALED   12 /* out  [B,H,T,S], scores after the scale */
#define MHA_TENSOR_SCORES_CAPPED   13 /* out  [B,H,T,S], after the softcap */
#define MHA_TENSOR_SCORES_BIASED   14 /* out  [B,H,T,S], after biases and callback; -inf if hidden */
#define MHA_TENSOR_ENTROPY         15 /* out  [B,H,T], -sum p ln p in nats; 0 for an empty row */
#define MHA_TENSOR_MAXIMUM         16 /* out  [B,H,T], the largest p; 0 for an empty row */
#define MHA_TENSOR_KEY_MASS        17 /* out  [B,H,S'], the sum of p over the queries */
#define MHA_TENSOR_KEY_MASS_TOTAL  18 /* out  [B,S'], the sum of p over queries and heads */

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
 *                                  last axis that is not contiguous
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

/**
 * Dropout (Srivastava et al. 2014) on the weights, after the softmax: each is kept with probability
 * 1 - p and divided by 1 - p, else the value is not added; rows are not renormalised. p = 1 gives
 * zeros. Kept iff word / 2^32 >= p, with word j % 4 of Philox4x32-10 at counter (j / 4, i, h, b),
 * key seed: the same for every number of threads, tile and padding. p = 0 (the default) is no
 * dropout.
 * @retval MHA_ERROR_VALUE  p outside 0 .. 1, or NaN
 */
MHA_API int32_t mha_call_set_dropout(mha_call *call, double p, uint64_t seed, mha_error *err);

/**
 * The caller's own keep mask in place of the random one: keep [B,H,T,S] bytes, non-zero = kept,
 * contiguous; remembered as a tensor is. NULL returns to the random one. p is still that of
 * mha_call_set_dropout: what is kept is divided by 1 - p, and p = 0 is no dropout. Extra keys are
 * kept.
 * @retval MHA_ERROR_SHAPE      a negative size
 * @retval MHA_ERROR_TOO_LARGE  B * H * T * S passes 2^63 bytes
 */
MHA_API int32_t mha_call_set_dropout_mask(mha_call *call,
                                          const uint8_t *keep,
                                          int64_t B,
                                          int64_t H,
                                          int64_t T,
                                          int64_t S,
                                          mha_error *err);

/**
 * Rotary positions in place of those by alignment: query_ids [batch, T], key_ids [batch, S], batch
 * = B or 1; remembered as tensors are. NULL and NULL return to the alignment.
 * @retval MHA_ERROR_NULL_ARGUMENT  one of them is NULL and not empty
 * @retval MHA_ERROR_SHAPE          batch < 1 or a negative size
 * @retval MHA_ERROR_TOO_LARGE      the ids pass 2^63 bytes
 */
MHA_API int32_t mha_call_set_positions(mha_call *call,
                                       int64_t batch,
                                       int64_t T,
                                       const int64_t *query_ids,
                                       int64_t S,
                                       const int64_t *key_ids,
                                       mha_error *err);

/* Callbacks run in the floating-point environment of a task: round to nearest, denormals are zero.
 * Their flags:
 *   CONCURRENT  it may be called by several threads at once, also not the calling one. Without it the
 *               call runs on the calling thread alone. */
#define MHA_CALLBACK_CONCURRENT 1

/**
 * Changes scores[r * ld + c] of head h of batch row b, queries i0 + r, r < ni, keys j0 + c, c < nj:
 * after the biases, before masking; hidden keys may be among them, and what is stored there is
 * ignored.
 */
typedef void (*mha_score_callback)(void *user,
                                   int64_t b,
                                   int64_t h,
                                   int64_t i0,
                                   int64_t ni,
                                   int64_t j0,
                                   int64_t nj,
                                   float *scores,
                                   int64_t ld);

/** NULL removes it. @retval MHA_ERROR_UNKNOWN_ID  an unknown flag */
MHA_API int32_t mha_call_set_score_callback(
    mha_call *call, mha_score_callback callback, void *user, int32_t flags, mha_error *err);

/**
 * Receives the finished weights (before dropout) tile by tile, each once, in no stated order:
 * weights [ni, nj] with ld, of head h of batch row b, queries i0 …, keys j0 …. Hidden tiles come
 * too, as zeros.
 */
typedef void (*mha_weights_callback)(void *user,
                                     int64_t b,
                                     int64_t h,
                                     int64_t i0,
                                     int64_t ni,
                                     int64_t j0,
                                     int64_t nj,
                                     const float *weights,
                                     int64_t ld);

/** NULL removes it. @retval MHA_ERROR_UNKNOWN_ID  an unknown flag */
MHA_API int32_t mha_call_set_weights_callback(
    mha_call *call, mha_weights_callback callback, void *user, int32_t flags, mha_error *err);

/**
 * The k keys of the largest weights of each row, falling, equal weights by the lowest key first:
 * keys [B,H,T,k] and weights [B,H,T,k], contiguous, remembered as tensors are; weights may be NULL.
 * Where fewer than k keys are visible: -1 and 0. k = 0 removes it.
 * @retval MHA_ERROR_NULL_ARGUMENT  keys is NULL and no size is 0
 * @retval MHA_ERROR_SHAPE          k or a size is negative
 * @retval MHA_ERROR_TOO_LARGE      B * H * T * k keys pass 2^63 bytes
 */
MHA_API int32_t mha_call_set_top_keys(mha_call *call,
                                      int64_t B,
                                      int64_t H,
                                      int64_t T,
                                      int64_t k,
                                      int64_t *keys,
                                      float *weights,
                                      mha_error *err);

MHA_END_DECLS
#endif
