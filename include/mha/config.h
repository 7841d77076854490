/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA_CONFIG_H
#define MHA_CONFIG_H

#include <mha/error.h>

MHA_BEGIN_DECLS

/**
 * The facts of one attention layer: widths, heads, biases, scale, which projections exist.
 *
 *   q = x_q Wq^T + bq  [B,T,H,D]     k = x_k Wk^T + bk  [B,S,G,D]     v = x_v Wv^T + bv  [B,S,G,Dv]
 *   out = concat_h( softmax(scale q_h k_g^T) v_g ) Wo^T + bo           g = h / (H/G)
 *
 * Vaswani et al., "Attention Is All You Need", 2017, section 3.2; grouped heads (G < H): Ainslie et
 * al., "GQA", 2023. Everything but E and H has a default. Each setter checks its own range; what
 * belongs together is checked by mha_layer_create, which copies the config.
 *
 * A projection that is switched off is the identity: the tensor then holds the heads themselves.
 * With all four off the layer is plain scaled dot-product attention over [B,T,H,D].
 *
 * Threads: one at a time per config. Every setter returns MHA_OK, MHA_ERROR_NULL_ARGUMENT (cfg is
 * NULL) or what stands beside it, and on failure leaves the config as before. The getters return
 * MHA_ERROR_NULL_ARGUMENT (the float ones NaN) for NULL.
 */
typedef struct mha_config mha_config;

/* The four projections. */
#define MHA_PROJECTION_Q   0
#define MHA_PROJECTION_K   1
#define MHA_PROJECTION_V   2
#define MHA_PROJECTION_OUT 3

/**
 * A config for E = embedding features per token and H = heads query heads.
 * Defaults: G = H, D = E / H (must be whole unless D is set), Dv = D, Eq = Ek = Ev = Eo = E, all
 * four projections on, all biases on, scale 1/sqrt(D).
 * @retval MHA_OK
 * @retval MHA_ERROR_NULL_ARGUMENT  out is NULL
 * @retval MHA_ERROR_SHAPE          embedding < 1, or above 2^31-1
 * @retval MHA_ERROR_HEAD_COUNT     heads < 1, or above 2^31-1
 * @retval MHA_ERROR_OUT_OF_MEMORY  *out is NULL
 */
MHA_API int32_t mha_config_create(int64_t embedding,
                                  int64_t heads,
                                  mha_config **out,
                                  mha_error *err);

/** Frees cfg; NULL is fine. Layers made from it keep their copy. */
MHA_API void mha_config_destroy(mha_config *cfg);

/** G, key-value heads, 1 <= G <= H. H % G != 0 is refused here. @retval MHA_ERROR_HEAD_COUNT */
MHA_API int32_t mha_config_set_kv_heads(mha_config *cfg, int64_t kv_heads, mha_error *err);

/** D, features per query and key head. @retval MHA_ERROR_SHAPE  outside 1 .. 2^31-1 */
MHA_API int32_t mha_config_set_head_size(mha_config *cfg, int64_t head_size, mha_error *err);

/** Dv, features per value head. @retval MHA_ERROR_SHAPE  outside 1 .. 2^31-1 */
MHA_API int32_t mha_config_set_value_head_size(mha_config *cfg, int64_t head_size, mha_error *err);

/** Eq, features per token of the query input. @retval MHA_ERROR_SHAPE  outside 1 .. 2^31-1 */
MHA_API int32_t mha_config_set_query_width(mha_config *cfg, int64_t features, mha_error *err);

/** Ek, features per token of the key input. @retval MHA_ERROR_SHAPE  outside 1 .. 2^31-1 */
MHA_API int32_t mha_config_set_key_width(mha_config *cfg, int64_t features, mha_error *err);

/** Ev, features per token of the value input. @retval MHA_ERROR_SHAPE  outside 1 .. 2^31-1 */
MHA_API int32_t mha_config_set_value_width(mha_config *cfg, int64_t features, mha_error *err);

/** Eo, features per token of the output. @retval MHA_ERROR_SHAPE  outside 1 .. 2^31-1 */
MHA_API int32_t mha_config_set_output_width(mha_config *cfg, int64_t features, mha_error *err);

/**
 * Whether a projection exists (0 or 1; default 1). Where it does not, the width of that side is
 * H*D (query), G*D (key), G*Dv (value) or H*Dv (output); another width set by hand is refused by
 * mha_layer_create. It has no bias either.
 * @retval MHA_ERROR_UNKNOWN_ID  projection is not MHA_PROJECTION_Q, _K, _V or _OUT
 * @retval MHA_ERROR_VALUE       on is neither 0 nor 1
 */
MHA_API int32_t mha_config_set_projection(mha_config *cfg,
                                          int32_t projection,
                                          int32_t on,
                                          mha_error *err);

/**
 * Whether a projection has a bias (0 or 1; default 1).
 * @retval MHA_ERROR_UNKNOWN_ID  projection is not MHA_PROJECTION_Q, _K, _V or _OUT
 * @retval MHA_ERROR_VALUE       on is neither 0 nor 1
 */
MHA_API int32_t mha_config_set_bias(mha_config *cfg,
                                    int32_t projection,
                                    int32_t on,
                                    mha_error *err);

/**
 * The factor of the scores, instead of 1/sqrt(D). 0 and negative numbers are legal.
 * @retval MHA_ERROR_VALUE  NaN or infinite
 */
MHA_API int32_t mha_config_set_scale(mha_config *cfg, float scale, mha_error *err);

/* What is set, or the default that is in force. D is 0 while it is neither set nor E / H whole. */
MHA_API int64_t mha_config_embedding(const mha_config *cfg);
MHA_API int64_t mha_config_heads(const mha_config *cfg);
MHA_API int64_t mha_config_kv_heads(const mha_config *cfg);
MHA_API int64_t mha_config_head_size(const mha_config *cfg);
MHA_API int64_t mha_config_value_head_size(const mha_config *cfg);
MHA_API int64_t mha_config_query_width(const mha_config *cfg);
MHA_API int64_t mha_config_key_width(const mha_config *cfg);
MHA_API int64_t mha_config_value_width(const mha_config *cfg);
MHA_API int64_t mha_config_output_width(const mha_config *cfg);
/** 1 or 0; MHA_ERROR_UNKNOWN_ID for an unknown projection. */
MHA_API int32_t mha_config_projection(const mha_config *cfg, int32_t projection);
/** 1 or 0 (0 too where the projection is off); MHA_ERROR_UNKNOWN_ID for an unknown projection. */
MHA_API int32_t mha_config_bias(const mha_config *cfg, int32_t projection);
MHA_API float mha_config_scale(const mha_config *cfg);

MHA_END_DECLS
#endif
