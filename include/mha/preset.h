/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA_PRESET_H
#define MHA_PRESET_H

#include <mha/config.h>
#include <mha/mask.h>

MHA_BEGIN_DECLS

/*
 * For people who come from elsewhere: a preset sets options of a config and a mask to what another
 * library means by the same words, and nothing else. docs/presets.md says what differs all the
 * same.
 */
#define MHA_PRESET_TORCH_MHA       0 /* torch.nn.MultiheadAttention: projections with bias */
#define MHA_PRESET_TORCH_SDPA      1 /* scaled_dot_product_attention: none, causal top-left */
#define MHA_PRESET_KERAS           2 /* keras.layers.MultiHeadAttention: causal top-left */
#define MHA_PRESET_ONNX            3 /* ONNX Attention-23: no projections, causal top-left */
#define MHA_PRESET_FLASH_ATTENTION 4 /* flash_attn_func: none, causal bottom-right */
#define MHA_PRESET_JAX             5 /* jax.nn.dot_product_attention: none, causal top-left */

/** The id of a preset by name ("torch_mha", "torch_sdpa", "keras", "onnx", "flash_attention",
 * "jax"); MHA_ERROR_UNKNOWN_ID, or MHA_ERROR_NULL_ARGUMENT for NULL. */
MHA_API int32_t mha_preset_by_name(const char *name);

/**
 * Sets the options of cfg and mask (either may be NULL). causal says whether the caller's is_causal
 * is on.
 * @retval MHA_OK
 * @retval MHA_ERROR_UNKNOWN_ID  an unknown preset
 * @retval MHA_ERROR_VALUE       causal is neither 0 nor 1
 */
MHA_API int32_t
mha_preset_apply(int32_t preset, int32_t causal, mha_config *cfg, mha_mask *mask, mha_error *err);

MHA_END_DECLS
#endif
