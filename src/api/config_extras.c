/* SPDX-License-Identifier: Apache-2.0 */
#include "api/objects.h"

#include <mha/config.h>

/* The parameters beyond the projections: sinks, gates, extra keys. */

static int32_t set_switch(mha_config *cfg, bool *to, const char *name, int32_t on, mha_error *err)
{
    MHA_CHECK_HANDLE(err, cfg, MHA__MAGIC_CONFIG);
    MHA_CHECK(err, on == 0 || on == 1, MHA_ERROR_VALUE, "%s = %d; it is 0 or 1", name, (int)on);
    *to = on == 1;
    return mha__error_clear(err);
}

int32_t mha_config_set_sinks(mha_config *cfg, int32_t on, mha_error *err)
{
    return set_switch(cfg, cfg ? &cfg->sinks : NULL, "sinks", on, err);
}

int32_t mha_config_set_gates(mha_config *cfg, int32_t on, mha_error *err)
{
    return set_switch(cfg, cfg ? &cfg->gates : NULL, "gates", on, err);
}

int32_t mha_config_set_extra_keys(mha_config *cfg, int32_t bias_kv, int32_t zero, mha_error *err)
{
    MHA_CHECK_HANDLE(err, cfg, MHA__MAGIC_CONFIG);
    MHA_CHECK(err, (bias_kv == 0 || bias_kv == 1) && (zero == 0 || zero == 1), MHA_ERROR_VALUE,
              "bias_kv = %d, zero = %d; each is 0 or 1", (int)bias_kv, (int)zero);
    cfg->bias_kv = bias_kv == 1;
    cfg->zero_key = zero == 1;
    return mha__error_clear(err);
}

int32_t mha_config_sinks(const mha_config *cfg)
{
    return cfg ? cfg->sinks : MHA_ERROR_NULL_ARGUMENT;
}

int32_t mha_config_gates(const mha_config *cfg)
{
    return cfg ? cfg->gates : MHA_ERROR_NULL_ARGUMENT;
}

int32_t mha_config_extra_keys(const mha_config *cfg)
{
    return cfg ? cfg->bias_kv + cfg->zero_key : MHA_ERROR_NULL_ARGUMENT;
}
