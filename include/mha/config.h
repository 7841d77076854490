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

/* Which features of a head turn together under rotary positions. */
#define MHA_ROTARY_HALVES     0
#define MHA_ROTARY_NEIGHBOURS 1

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
 * The factor of the scores, instead of 1/sqrt(D), for all heads. 0 and negative numbers are legal.
 * @retval MHA_ERROR_VALUE  NaN or infinite
 */
MHA_API int32_t mha_config_set_scale(mha_config *cfg, float scale, mha_error *err);

/**
 * A factor per query head, scales [heads], heads = H; replaces mha_config_set_scale.
 * @retval MHA_ERROR_SHAPE          heads is not H
 * @retval MHA_ERROR_VALUE          NaN or infinite
 * @retval MHA_ERROR_OUT_OF_MEMORY
 */
MHA_API int32_t mha_config_set_head_scales(mha_config *cfg,
                                           int64_t heads,
                                           const float *scales,
                                           mha_error *err);

/**
 * Softcap (Gemma 2, 2024): s = cap tanh(s / cap), before anything is added. 0 = none, the default.
 * @retval MHA_ERROR_VALUE  negative, NaN or infinite
 */
MHA_API int32_t mha_config_set_softcap(mha_config *cfg, float cap, mha_error *err);

/**
 * The same per query head, caps [heads], heads = H; 0 = none.
 * @retval MHA_ERROR_SHAPE          heads is not H
 * @retval MHA_ERROR_VALUE          negative, NaN or infinite
 * @retval MHA_ERROR_OUT_OF_MEMORY
 */
MHA_API int32_t mha_config_set_head_softcaps(mha_config *cfg,
                                             int64_t heads,
                                             const float *caps,
                                             mha_error *err);

/**
 * Rotary positions (RoFormer, Su et al. 2021) on q and k, in the first `size` features of a head,
 * even and <= D: pair n turns by position * base^(-2n/size). Pairs are (n, n + size/2) for HALVES (Llama,
 * rotate_half) and (2n, 2n + 1) for NEIGHBOURS (GPT-J). Query i has position off[b] + i, key j has
 * j, by the mask's alignment (which must be said where T != S), unless the call gives ids. base 0 =
 * 10000. size 0 switches it off again, the default.
 * @retval MHA_ERROR_UNKNOWN_ID  the pairing
 * @retval MHA_ERROR_SHAPE       size is negative or odd (above D: mha_layer_create)
 * @retval MHA_ERROR_VALUE       base is negative, NaN or infinite
 */
MHA_API int32_t
mha_config_set_rotary(mha_config *cfg, int32_t pairing, int64_t size, double base, mha_error *err);

/**
 * Sinks: a parameter MHA_PARAM_SINKS [H] of scores that take part in the softmax's sum, but have no
 * value (StreamingLLM, Xiao et al. 2023; gpt-oss). 0 or 1; default 0.
 * @retval MHA_ERROR_VALUE  neither
 */
MHA_API int32_t mha_config_set_sinks(mha_config *cfg, int32_t on, mha_error *err);

/**
 * Gates: a parameter MHA_PARAM_GATES [H] of factors on each head's output. The work of a head whose
 * gate is 0 is skipped and its output is 0, NaN or not. 0 or 1; default 0.
 * @retval MHA_ERROR_VALUE  neither
 */
MHA_API int32_t mha_config_set_gates(mha_config *cfg, int32_t on, mha_error *err);

/**
 * Extra keys, as torch.nn.MultiheadAttention has them: K' = [K; bias_k; 0], V' = [V; bias_v; 0],
 * visible to every real query whatever the mask, without bias, causal, window or ALiBi. bias_kv
 * adds the parameters MHA_PARAM_BIAS_K [G*D] and MHA_PARAM_BIAS_V [G*Dv] (after the projections);
 * zero adds a key of zeros. The weights have a column more for each. 0 or 1 each; default 0.
 * @retval MHA_ERROR_VALUE  neither
 */
MHA_API int32_t mha_config_set_extra_keys(mha_config *cfg,
                                          int32_t bias_kv,
                                          int32_t zero,
                                          mha_error *err);

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
/** The factor of head 0 where heads differ. */
MHA_API float mha_config_scale(const mha_config *cfg);
/** 0: none; that of head 0 where heads differ. */
MHA_API float mha_config_softcap(const mha_config *cfg);
MHA_API int32_t mha_config_rotary_pairing(const mha_config *cfg);
MHA_API int64_t mha_config_rotary_size(const mha_config *cfg);
MHA_API double mha_config_rotary_base(const mha_config *cfg);
MHA_API int32_t mha_config_sinks(const mha_config *cfg);
MHA_API int32_t mha_config_gates(const mha_config *cfg);
/** 0, 1 or 2: columns that the weights have beside the S keys. */
MHA_API int32_t mha_config_extra_keys(const mha_config *cfg);

MHA_END_DECLS
#endif
