/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA_LAYER_H
#define MHA_LAYER_H

#include <mha/config.h>
#include <mha/context.h>
#include <mha/mask.h>

MHA_BEGIN_DECLS

/**
 * A config and its weights. Weights are stored packed; a getter returns the bits that were set.
 *
 * Threads: its parameters are read-only in every forward, so one layer serves any number of them at
 * once, each with a context of its own (what a first call adds, see mha_layer_bytes, is put in place by
 * one atomic operation); setting a parameter needs the layer alone.
 */
typedef struct mha_layer mha_layer;

/* Parameters. Weights are [out, in], as torch stores them. */
#define MHA_PARAM_Q_WEIGHT       0  /* [H*D, Eq] */
#define MHA_PARAM_Q_BIAS         1  /* [H*D] */
#define MHA_PARAM_K_WEIGHT       2  /* [G*D, Ek] */
#define MHA_PARAM_K_BIAS         3  /* [G*D] */
#define MHA_PARAM_V_WEIGHT       4  /* [G*Dv, Ev] */
#define MHA_PARAM_V_BIAS         5  /* [G*Dv] */
#define MHA_PARAM_OUT_WEIGHT     6  /* [Eo, H*Dv] */
#define MHA_PARAM_OUT_BIAS       7  /* [Eo] */
#define MHA_PARAM_IN_PROJ_WEIGHT 8  /* [H*D + G*D + G*Dv, E]: rows q, k, v; where Eq = Ek = Ev */
#define MHA_PARAM_IN_PROJ_BIAS   9  /* [H*D + G*D + G*Dv] */
#define MHA_PARAM_SINKS          10 /* [H] */
#define MHA_PARAM_GATES          11 /* [H] */
#define MHA_PARAM_BIAS_K         12 /* [G*D] */
#define MHA_PARAM_BIAS_V         13 /* [G*Dv] */

/**
 * A layer with no parameter set. cfg is copied.
 * @retval MHA_OK
 * @retval MHA_ERROR_NULL_ARGUMENT  cfg or out is NULL
 * @retval MHA_ERROR_HEAD_COUNT     E % H != 0 and no head size was set
 * @retval MHA_ERROR_SHAPE          a width that contradicts a projection that is off, or a rotary
 *                                  size above D
 * @retval MHA_ERROR_TOO_LARGE      H*D, G*D or H*Dv passes 2^31-1, or a weight 2^63 bytes
 * @retval MHA_ERROR_OUT_OF_MEMORY  *out is NULL
 */
MHA_API int32_t mha_layer_create(const mha_config *cfg, mha_layer **out, mha_error *err);

/** Frees layer; NULL is fine. */
MHA_API void mha_layer_destroy(mha_layer *layer);

/**
 * Sets a parameter from count numbers. The two IN_PROJ ids set the q, k and v parts at once, as
 * torch packs them. Nothing of the caller's is kept. On failure the layer is as before.
 * Cost: one pass over the numbers.
 * @retval MHA_OK
 * @retval MHA_ERROR_NULL_ARGUMENT  layer or data is NULL
 * @retval MHA_ERROR_UNKNOWN_ID     unknown parameter or type, or one that this layer does not have
 * @retval MHA_ERROR_SHAPE          count is not the parameter's count; both numbers in the sentence
 */
MHA_API int32_t mha_layer_set_parameter(mha_layer *layer,
                                        int32_t parameter,
                                        int32_t type,
                                        const void *data,
                                        int64_t count,
                                        mha_error *err);

/**
 * Copies a parameter out, bit for bit as it was set.
 * @retval MHA_OK
 * @retval MHA_ERROR_NULL_ARGUMENT  layer or data is NULL
 * @retval MHA_ERROR_UNKNOWN_ID     unknown parameter or type, or one that this layer does not have
 * @retval MHA_ERROR_SHAPE          count is not the parameter's count
 * @retval MHA_ERROR_NOT_SET        it was never set
 */
MHA_API int32_t mha_layer_get_parameter(const mha_layer *layer,
                                        int32_t parameter,
                                        int32_t type,
                                        void *data,
                                        int64_t count,
                                        mha_error *err);

/**
 * How many numbers a parameter has; 0 if this layer has no such parameter. Negative:
 * MHA_ERROR_NULL_ARGUMENT, MHA_ERROR_UNKNOWN_ID.
 */
MHA_API int64_t mha_layer_parameter_count(const mha_layer *layer, int32_t parameter);

/**
 * The shape of a parameter: stores up to cap sizes in shape and returns the rank (2 or 1), 0 if
 * this layer has no such parameter. (NULL, 0) asks for the rank. Negative: MHA_ERROR_NULL_ARGUMENT,
 * MHA_ERROR_UNKNOWN_ID.
 */
MHA_API int32_t mha_layer_parameter_shape(const mha_layer *layer,
                                          int32_t parameter,
                                          int64_t *shape,
                                          int32_t cap);

/**
 * Initial parameters as torch.nn.MultiheadAttention has them: input projections uniform in
 * +-sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio 2010) where fan_out counts q, k and v together
 * if they read inputs of one width, output projection uniform in +-1/sqrt(fan_in), biases 0; sinks
 * 0, gates 1, BIAS_K and BIAS_V [n] normal with deviation 1/sqrt(n). Random numbers from
 * Philox4x32-10 (Salmon et al. 2011), key = seed, counter = (low and high word of index / 4, 0,
 * parameter id), word index % 4: a seed gives the same numbers everywhere, for ever. Normal ones by
 * Box and Muller from words 0, 1 and 2, 3, in float64 (the C library's log, sin and cos may move a
 * last bit).
 * @retval MHA_OK
 * @retval MHA_ERROR_NULL_ARGUMENT  layer is NULL
 */
MHA_API int32_t mha_layer_initialize(mha_layer *layer, uint64_t seed, mha_error *err);

/**
 * A smaller layer without some query heads: it computes what this one would with their gates at 0.
 * heads [count] are the heads to drop, each 0 .. H-1, in any order, each once. A key-value head
 * goes when all its query heads go; what stays must keep the same number of query heads a key-value
 * head. The output bias stays. Needs an output projection; a projection that is off keeps its
 * tensors' heads, fewer. What a mask or a call says per head is the caller's to shorten alike.
 * @retval MHA_OK
 * @retval MHA_ERROR_NULL_ARGUMENT
 * @retval MHA_ERROR_HEAD_COUNT     count outside 0 .. H-1, a head twice or out of range, or groups
 *                                  that would become uneven
 * @retval MHA_ERROR_NOT_SET        a parameter was never set
 * @retval MHA_ERROR_UNKNOWN_ID     the layer has no output projection
 * @retval MHA_ERROR_OUT_OF_MEMORY  *out is NULL
 */
MHA_API int32_t mha_layer_prune_heads(
    const mha_layer *layer, int64_t count, const int64_t *heads, mha_layer **out, mha_error *err);

/**
 * Bytes that the layer holds. From the first forward of more than 16 rows with MHA_ENGINE_FUSED, until a weight
 * is set, these are the weights twice: in tiles, and in panels for that engine's products.
 * MHA_ERROR_NULL_ARGUMENT for NULL.
 */
MHA_API int64_t mha_layer_bytes(const mha_layer *layer);

/**
 * One layer on one batch, all tensors contiguous:
 *
 *   out = concat_h(softmax(scale Q_h K_g^T) V_g) Wo^T + bo
 *
 * query [B,T,Eq], key [B,S,Ek], value [B,S,Ev], out [B,T,Eo]; mask may be NULL: all is visible.
 * Softcap, ALiBi, rotary positions, sinks, gates and extra keys hold as the config and the mask have
 * them (the whole formula: mha_forward). For strides, biases, dropout or other outputs use mha_forward.
 * A query that may see no key gets the row bo, never NaN; a padded query (mha_mask_set_query_lengths)
 * gets 0. S = 0: every row is bo. B = 0 or T = 0: success, nothing is written. Pointers of empty
 * tensors may be NULL.
 * Aliasing  query, key and value may be one buffer; out may overlap none of them: refused.
 * Memory    grows the context's workspace only when a call is larger than all before.
 * Threads   one call at a time per context; layer and mask may be shared.
 * Numerics  same bits for every number of threads, given the same build, engine, kernels and BLAS
 *           thread setting; |error| <= 8 * 2^-24 * (A + log2 S + 4) * max|v| in the attention, A the
 *           largest allowed |scale| sum_d |q_d k_d| + |biases| + slope |i + off - j|.
 *           Denormal numbers count as 0, scale * q among them. Sums are formed before they are
 *           divided: S * max|v| must be below 3.4e38.
 *
 * @retval MHA_OK
 * @retval MHA_ERROR_NULL_ARGUMENT  a tensor, the context or the layer is NULL
 * @retval MHA_ERROR_SHAPE          B, T or S is negative, or the mask has other sizes
 * @retval MHA_ERROR_ALIGNMENT      causal, window, ALiBi or rotary positions, some T_b != S_b, and the
 *                                  mask has no alignment
 * @retval MHA_ERROR_TOO_LARGE      a product of sizes passes 2^63, a BLAS size 2^31-1, or the limit
 * @retval MHA_ERROR_OVERLAP        out shares memory with an input
 * @retval MHA_ERROR_NOT_SET        a parameter was never set; the sentence names it
 * @retval MHA_ERROR_OUT_OF_MEMORY  the context is as before and usable
 * @retval MHA_ERROR_BLAS           the BLAS computes wrong products on this CPU
 * @retval MHA_ERROR_EXECUTOR       the host's executor failed; out is then undefined
 */
MHA_API int32_t mha_layer_forward(mha_context *ctx,
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

MHA_END_DECLS
#endif
