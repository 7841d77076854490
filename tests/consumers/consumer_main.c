/* SPDX-License-Identifier: Apache-2.0 */
/* A stranger's program against the installed library, C99: one call of known answer, one layer. */
#include <mha/mha.h>

#include <stdio.h>
#include <string.h>

int main(void)
{
    const float q[1] = {0.0f}, k[2] = {5.0f, -7.0f}, v[2] = {1.0f, 3.0f};
    float out[1] = {0.0f};
    float tokens[2 * 8], result[2 * 8];
    mha_config *cfg = NULL;
    mha_layer *layer = NULL;
    mha_context *ctx = NULL;
    mha_error *err = mha_error_create();
    int32_t status;
    int i;

    /* scores 0 and 0: the mean of 1 and 3 */
    status = mha_attention(1, 1, 2, 1, 1, 1, q, k, v, MHA_CAUSAL_NONE, out, err);
    if (status != MHA_OK || out[0] != 2.0f) {
        fprintf(stderr, "mha_attention: %s, %g\n", mha_status_string(status), (double)out[0]);
        return 1;
    }
    for (i = 0; i < 16; ++i)
        tokens[i] = (float)(i % 5);
    if (mha_config_create(8, 2, &cfg, err) != MHA_OK ||
        mha_layer_create(cfg, &layer, err) != MHA_OK ||
        mha_layer_initialize(layer, 1, err) != MHA_OK || mha_context_create(&ctx, err) != MHA_OK ||
        mha_layer_forward(ctx, layer, 1, 2, 2, tokens, tokens, tokens, NULL, result, err) !=
            MHA_OK) {
        fprintf(stderr, "the layer: %s\n", mha_status_string(mha_error_code(err)));
        return 1;
    }
    mha_context_destroy(ctx);
    mha_layer_destroy(layer);
    mha_config_destroy(cfg);
    mha_error_destroy(err);
    if (mha_version_number() != MHA_VERSION_NUMBER ||
        strcmp(mha_version_string(), MHA_VERSION_STRING) != 0) {
        fprintf(stderr, "header %s, library %s\n", MHA_VERSION_STRING, mha_version_string());
        return 1;
    }
    printf("libmha %s works\n", mha_version_string());
    return 0;
}
