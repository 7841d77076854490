/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The multi-head layer of "Attention Is All You Need": d_model = 512, 8 heads of 64.
 *
 *   1. project   Q, K, V = x Wq^T + bq, x Wk^T + bk, x Wv^T + bv            [B, T, 512]
 *   2. split     512 features = 8 heads of 64                               [B, T, 8, 64]
 *   3. attend    per head: weights = softmax(Q K^T / sqrt(64)), O = weights V
 *   4. join      the 8 results side by side, then the output projection     [B, T, 512]
 *
 * The layer does all four. Here it runs on six random tokens and also hands out the weights.
 */
#include <mha/mha.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { B = 1, T = 6, E = 512, H = 8, D = E / H };

static void check(int32_t status, mha_error *err)
{
    char why[512];
    if (status == MHA_OK)
        return;
    mha_error_message(err, why, sizeof why);
    fprintf(stderr, "%s: %s\n", mha_status_string(status), why);
    exit(1);
}

int main(void)
{
    static float x[B][T][E], out[B][T][E], weights[B][H][T][T];
    static const int64_t tokens_shape[3] = {B, T, E}, weights_shape[4] = {B, H, T, T};
    mha_error *err = mha_error_create();
    mha_config *cfg;
    mha_layer *layer;
    mha_context *ctx;
    mha_call *call;

    unsigned state = 1; /* any numbers in [-1, 1) will do for tokens */
    for (int i = 0; i < T * E; ++i) {
        state = state * 1664525u + 1013904223u;
        (&x[0][0][0])[i] = (float)(state >> 8) / 8388608.0f - 1.0f;
    }

    check(mha_config_create(E, H, &cfg, err), err);
    check(mha_layer_create(cfg, &layer, err), err);
    check(mha_layer_initialize(layer, 2017, err), err); /* random weights, as PyTorch draws them */
    check(mha_context_create(&ctx, err), err);
    check(mha_call_create(&call, err), err);

    check(mha_call_set_input(call, MHA_TENSOR_QUERY, MHA_FLOAT32, x, 3, tokens_shape, NULL, err),
          err);
    check(mha_call_set_input(call, MHA_TENSOR_KEY, MHA_FLOAT32, x, 3, tokens_shape, NULL, err),
          err);
    check(mha_call_set_input(call, MHA_TENSOR_VALUE, MHA_FLOAT32, x, 3, tokens_shape, NULL, err),
          err);
    check(
        mha_call_set_output(call, MHA_TENSOR_OUTPUT, MHA_FLOAT32, out, 3, tokens_shape, NULL, err),
        err);
    check(mha_call_set_output(
              call, MHA_TENSOR_WEIGHTS, MHA_FLOAT32, weights, 4, weights_shape, NULL, err),
          err);
    check(mha_forward(ctx, layer, NULL, call, err), err);

    printf("tokens              [%d, %d, %d]\n", B, T, E);
    printf("Q, K, V projected   [%d, %d, %d]\n", B, T, (int)(mha_config_heads(cfg) * D));
    printf("split into heads    [%d, %d, %d, %d]\n", B, T, H, (int)mha_config_head_size(cfg));
    printf("weights             [%d, %d, %d, %d]\n", B, H, T, T);
    printf("joined, projected   [%d, %d, %d]\n\n", B, T, E);

    printf("weights of head 0: row i is how token i spreads its attention\n");
    double worst = 0.0;
    for (int h = 0; h < H; ++h)
        for (int i = 0; i < T; ++i) {
            double sum = 0.0;
            for (int j = 0; j < T; ++j) {
                sum += (double)weights[0][h][i][j];
                if (h == 0)
                    printf("%s%.3f%s",
                           j == 0 ? "  " : " ",
                           (double)weights[0][h][i][j],
                           j == T - 1 ? "\n" : "");
            }
            worst = fmax(worst, fabs(sum - 1.0));
        }
    printf("every row of every head sums to 1; the worst is off by %.1e\n", worst);

    mha_call_destroy(call);
    mha_context_destroy(ctx);
    mha_layer_destroy(layer);
    mha_config_destroy(cfg);
    mha_error_destroy(err);
    return worst < 1e-5 && isfinite(out[0][0][0]) ? 0 : 1;
}
