/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scaled dot-product attention in one call, without any object.
 *
 * Two heads of size 4 look at a sentence of five tokens: the query of token i is a smooth code of
 * its position, so tokens look at their neighbours; the value of token j is the number j in every
 * feature. Row i of the output is then the mean position that token i looks at.
 */
#include <mha/mha.h>

#include <math.h>
#include <stdio.h>

enum { B = 1, T = 5, H = 2, D = 4 };

int main(void)
{
    float q[B][T][H][D], v[B][T][H][D], out[B][T][H][D];
    for (int i = 0; i < T; ++i)
        for (int h = 0; h < H; ++h)
            for (int d = 0; d < D; ++d) {
                /* (sin, cos) pairs: <q_i, q_j> is largest at i = j; head 1 looks more sharply */
                float angle = (float)i / (d < 2 ? 1.0f : 3.0f);
                q[0][i][h][d] = (h == 0 ? 1.5f : 4.0f) * (d % 2 == 0 ? sinf(angle) : cosf(angle));
                v[0][i][h][d] = (float)i;
            }

    /* out = softmax(q k^T / sqrt(D)) v, per head; here the keys are the queries: self-attention */
    mha_error *err = mha_error_create();
    int32_t status = mha_attention(B,
                                   T,
                                   T,
                                   H,
                                   H,
                                   D,
                                   &q[0][0][0][0],
                                   &q[0][0][0][0],
                                   &v[0][0][0][0],
                                   MHA_CAUSAL_NONE,
                                   &out[0][0][0][0],
                                   err);
    if (status != MHA_OK) {
        char why[512];
        mha_error_message(err, why, sizeof why);
        fprintf(stderr, "mha_attention: %s\n", why);
        mha_error_destroy(err);
        return 1;
    }

    printf("token   head 0 looks at   head 1 looks at   (mean position)\n");
    for (int i = 0; i < T; ++i)
        printf("%5d   %15.3f   %15.3f\n", i, (double)out[0][i][0][0], (double)out[0][i][1][0]);

    /* the same, but no token may look ahead: the first one sees itself alone */
    status = mha_attention(B,
                           T,
                           T,
                           H,
                           H,
                           D,
                           &q[0][0][0][0],
                           &q[0][0][0][0],
                           &v[0][0][0][0],
                           MHA_CAUSAL_TOP_LEFT,
                           &out[0][0][0][0],
                           err);
    printf("causal: token 0 looks at %.3f, token 4 at %.3f\n",
           (double)out[0][0][0][0],
           (double)out[0][4][0][0]);
    mha_error_destroy(err);
    return status == MHA_OK && out[0][0][0][0] == 0.0f && out[0][4][1][0] > 2.0f ? 0 : 1;
}
