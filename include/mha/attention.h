/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA_ATTENTION_H
#define MHA_ATTENTION_H

#include <mha/error.h>

MHA_BEGIN_DECLS

/* Causal attention in the one-call form: which corner the triangle starts in where T != S. */
#define MHA_CAUSAL_NONE         0
#define MHA_CAUSAL_TOP_LEFT     1 /* query i sees keys j <= i */
#define MHA_CAUSAL_BOTTOM_RIGHT 2 /* query i sees keys j <= i + S - T */

/**
 * Scaled dot-product attention in one call, no object needed:
 *
 *   out[b,i,h,:] = sum_j softmax_j( <q[b,i,h,:], k[b,j,g,:]> / sqrt(D) ) v[b,j,g,:]
 *   g = h / (H/G)
 *
 * q [B,T,H,D], k [B,S,G,D], v [B,S,G,D], out [B,T,H,D], contiguous. Vaswani et al. 2017.
 * A query that may see no key gets 0. S = 0: zeros. B = 0 or T = 0: success, nothing is written.
 * Aliasing  q, k and v may be one buffer; out may overlap none of them: refused.
 * Memory    a hidden context, kept for the next call. Threads: any number of calls at once.
 * Numerics  as mha_layer_forward.
 *
 * @retval MHA_OK
 * @retval MHA_ERROR_NULL_ARGUMENT  a tensor that is not empty is NULL
 * @retval MHA_ERROR_UNKNOWN_ID     causal is none of the three
 * @retval MHA_ERROR_SHAPE          B, T or S is negative, D < 1
 * @retval MHA_ERROR_HEAD_COUNT     H or G < 1, or H % G != 0
 * @retval MHA_ERROR_TOO_LARGE      a product of sizes passes 2^63 or a BLAS size 2^31-1
 * @retval MHA_ERROR_OVERLAP        out shares memory with an input
 * @retval MHA_ERROR_OUT_OF_MEMORY
 * @retval MHA_ERROR_BLAS           the BLAS computes wrong products on this CPU
 */
MHA_API int32_t mha_attention(int64_t B,
                              int64_t T,
                              int64_t S,
                              int64_t H,
                              int64_t G,
                              int64_t D,
                              const float *q,
                              const float *k,
                              const float *v,
                              int32_t causal,
                              float *out,
                              mha_error *err);

MHA_END_DECLS
#endif
