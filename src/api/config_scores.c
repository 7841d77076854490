/* SPDX-License-Identifier: Apache-2.0 */
#include "api/config_scores.h"

#include "platform/fpenv.h"
#include "platform/memory.h"

#include <mha/config.h>

#include <math.h>
#include <string.h>

/* The facts of a config that shape the scores: scale, softcap, rotary positions. */

/* The first of n numbers that is not finite, or is below 0 where it may not be; n: all are fine.
 * Comparing and converting raise flags, which the host must not see. */
static int64_t first_bad(const float *numbers, int64_t n, bool may_be_negative)
{
    struct mha__fpenv hosts;
    mha__fpenv_enter(&hosts);
    int64_t i = 0;
    while (i < n && isfinite(numbers[i]) && (may_be_negative || numbers[i] >= 0.0f)) {
        i++;
    }
    mha__fpenv_leave(&hosts);
    return i;
}

/* A number for all heads takes the place of an array of one a head. */
static void set_for_all(float *number, float **per_head, float value)
{
    *number = value;
    mha__memory_release(*per_head);
    *per_head = NULL;
}

/* Replaces *per_head by a copy of numbers [heads]. */
static int32_t set_per_head(mha_config *cfg,
                            float **per_head,
                            const char *name,
                            int64_t heads,
                            const float *numbers,
                            bool may_be_negative,
                            mha_error *err)
{
    MHA_CHECK(err, heads == cfg->H, MHA_ERROR_SHAPE, "%lld %ss, but the config has H = %lld heads",
              (long long)heads, name, (long long)cfg->H);
    const int64_t bad = first_bad(numbers, heads, may_be_negative);
    MHA_CHECK(err, bad == heads, MHA_ERROR_VALUE, "%s of head %lld is %g; it must be finite%s",
              name, (long long)bad, (double)numbers[bad], may_be_negative ? "" : " and 0 or more");
    float *copy = mha__memory_allocate((size_t)heads * sizeof *copy);
    MHA_CHECK(err, copy, MHA_ERROR_OUT_OF_MEMORY, "no memory for %lld %ss", (long long)heads, name);
    memcpy(copy, numbers, (size_t)heads * sizeof *copy);
    mha__memory_release(*per_head);
    *per_head = copy;
    return mha__error_clear(err);
}

int32_t mha_config_set_scale(mha_config *cfg, float scale, mha_error *err)
{
    MHA_CHECK_HANDLE(err, cfg, MHA__MAGIC_CONFIG);
    MHA_CHECK(err, first_bad(&scale, 1, true) == 1, MHA_ERROR_VALUE,
              "scale = %g is not a finite number", (double)scale);
    set_for_all(&cfg->scale, &cfg->head_scales, scale);
    cfg->has_scale = true;
    return mha__error_clear(err);
}

int32_t
mha_config_set_head_scales(mha_config *cfg, int64_t heads, const float *scales, mha_error *err)
{
    MHA_CHECK_HANDLE(err, cfg, MHA__MAGIC_CONFIG);
    MHA_CHECK_POINTER(err, scales);
    return set_per_head(cfg, &cfg->head_scales, "scale", heads, scales, true, err);
}

int32_t mha_config_set_softcap(mha_config *cfg, float cap, mha_error *err)
{
    MHA_CHECK_HANDLE(err, cfg, MHA__MAGIC_CONFIG);
    MHA_CHECK(err, first_bad(&cap, 1, false) == 1, MHA_ERROR_VALUE,
              "softcap = %g; it is a finite number above 0, or 0 for none", (double)cap);
    set_for_all(&cfg->softcap, &cfg->head_softcaps, cap);
    return mha__error_clear(err);
}

int32_t
mha_config_set_head_softcaps(mha_config *cfg, int64_t heads, const float *caps, mha_error *err)
{
    MHA_CHECK_HANDLE(err, cfg, MHA__MAGIC_CONFIG);
    MHA_CHECK_POINTER(err, caps);
    return set_per_head(cfg, &cfg->head_softcaps, "softcap", heads, caps, false, err);
}

int32_t
mha_config_set_rotary(mha_config *cfg, int32_t pairing, int64_t size, double base, mha_error *err)
{
    MHA_CHECK_HANDLE(err, cfg, MHA__MAGIC_CONFIG);
    MHA_CHECK(err, pairing == MHA_ROTARY_HALVES || pairing == MHA_ROTARY_NEIGHBOURS,
              MHA_ERROR_UNKNOWN_ID,
              "rotary pairing %d; MHA_ROTARY_HALVES (0) and MHA_ROTARY_NEIGHBOURS (1) are known",
              (int)pairing);
    MHA_CHECK(err, size >= 0 && size % 2 == 0, MHA_ERROR_SHAPE,
              "rotary size %lld; it is an even number of features, or 0 for none", (long long)size);
    struct mha__fpenv hosts;
    mha__fpenv_enter(&hosts);
    const bool fine = isfinite(base) && base >= 0.0;
    const bool unset = fine && base == 0.0;
    mha__fpenv_leave(&hosts);
    MHA_CHECK(err, fine, MHA_ERROR_VALUE,
              "rotary base %g; it is a finite number above 0, or 0 for 10000", base);
    cfg->rotary = (struct mha__rotary){pairing, size, unset ? MHA__ROTARY_BASE : base};
    return mha__error_clear(err);
}

float mha_config_scale(const mha_config *cfg)
{
    if (!cfg) {
        return NAN;
    }
    if (cfg->head_scales) {
        return cfg->head_scales[0];
    }
    if (cfg->has_scale) {
        return cfg->scale;
    }
    const int64_t D = mha_config_head_size(cfg);
    if (D <= 0) {
        return NAN;
    }
    struct mha__fpenv hosts; // 1/sqrt(D) is inexact: the host's flags must not tell
    mha__fpenv_enter(&hosts);
    const float scale = (float)(1.0 / sqrt((double)D));
    mha__fpenv_leave(&hosts);
    return scale;
}

float mha_config_softcap(const mha_config *cfg)
{
    if (!cfg) {
        return NAN;
    }
    return cfg->head_softcaps ? cfg->head_softcaps[0] : cfg->softcap;
}

int32_t mha_config_rotary_pairing(const mha_config *cfg)
{
    return cfg ? cfg->rotary.pairing : MHA_ERROR_NULL_ARGUMENT;
}

int64_t mha_config_rotary_size(const mha_config *cfg)
{
    return cfg ? cfg->rotary.size : MHA_ERROR_NULL_ARGUMENT;
}

double mha_config_rotary_base(const mha_config *cfg)
{
    return cfg ? cfg->rotary.base : (double)NAN;
}
