/* SPDX-License-Identifier: Apache-2.0 */
#include "api/objects.h"

#include <mha/preset.h>

#include <string.h>

/* What each library means by the same words: whether a layer projects, with biases, and where its
 * causal triangle begins. */
static const struct {
    const char *name;
    int32_t projections;
    int32_t alignment;
} known[] = {
    [MHA_PRESET_TORCH_MHA] = {"torch_mha", 1, MHA_ALIGNMENT_TOP_LEFT},
    [MHA_PRESET_TORCH_SDPA] = {"torch_sdpa", 0, MHA_ALIGNMENT_TOP_LEFT},
    [MHA_PRESET_KERAS] = {"keras", 1, MHA_ALIGNMENT_TOP_LEFT},
    [MHA_PRESET_ONNX] = {"onnx", 0, MHA_ALIGNMENT_TOP_LEFT},
    [MHA_PRESET_FLASH_ATTENTION] = {"flash_attention", 0, MHA_ALIGNMENT_BOTTOM_RIGHT},
    [MHA_PRESET_JAX] = {"jax", 0, MHA_ALIGNMENT_TOP_LEFT},
};
enum { KNOWN = sizeof known / sizeof *known };

int32_t mha_preset_by_name(const char *name)
{
    if (!name) {
        return MHA_ERROR_NULL_ARGUMENT;
    }
    for (int32_t id = 0; id < KNOWN; id++) {
        if (strcmp(known[id].name, name) == 0) {
            return id;
        }
    }
    return MHA_ERROR_UNKNOWN_ID;
}

int32_t
mha_preset_apply(int32_t preset, int32_t causal, mha_config *cfg, mha_mask *mask, mha_error *err)
{
    MHA_CHECK(err, preset >= 0 && preset < KNOWN, MHA_ERROR_UNKNOWN_ID,
              "preset %d; 0 to %d are known", (int)preset, KNOWN - 1);
    MHA_CHECK(err, causal == 0 || causal == 1, MHA_ERROR_VALUE, "causal = %d; it is 0 or 1",
              (int)causal);
    // Handles first: what follows them cannot fail, so nothing is done by half.
    if (cfg) {
        MHA_CHECK_HANDLE(err, cfg, MHA__MAGIC_CONFIG);
    }
    if (mask) {
        MHA_CHECK_HANDLE(err, mask, MHA__MAGIC_MASK);
    }
    for (int32_t side = 0; cfg && side < MHA__PROJECTIONS; side++) {
        MHA_TRY(mha_config_set_projection(cfg, side, known[preset].projections, err));
        MHA_TRY(mha_config_set_bias(cfg, side, 1, err));
    }
    if (mask) {
        MHA_TRY(mha_mask_set_alignment(mask, known[preset].alignment, err));
        MHA_TRY(mha_mask_set_causal(mask, causal, err));
    }
    return mha__error_clear(err);
}
