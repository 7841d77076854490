/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one would write without a library for attention, to be measured beside libmha; also compiled
 * with -ffast-math, so nothing here is infinite:
 *
 *   out[b,i,h,:] = sum_j softmax_j( <q[b,i,h,:], k[b,j,h,:]> / sqrt(D) ) v[b,j,h,:]
 *
 * q, k, v and out [B,T,H,D], contiguous; causal: j <= i only.
 */
#include <cblas.h>
#include <math.h>
#include <stdint.h>

void plain_attention_loops(int64_t B,
                           int64_t T,
                           int64_t H,
                           int64_t D,
                           int32_t causal,
                           const float *q,
                           const float *k,
                           const float *v,
                           float *out,
                           float *scratch);
void plain_attention_sgemm(int64_t B,
                           int64_t T,
                           int64_t H,
                           int64_t D,
                           int32_t causal,
                           const float *q,
                           const float *k,
                           const float *v,
                           float *out,
                           float *scratch);

/* row[j] = exp(scale row[j] - max) / sum, for j < n. */
static void softmax(float *row, int64_t n, float scale)
{
    float max = scale * row[0];
    for (int64_t j = 0; j < n; j++) {
        row[j] *= scale;
        max = row[j] > max ? row[j] : max;
    }
    float sum = 0.0F;
    for (int64_t j = 0; j < n; j++) {
        row[j] = expf(row[j] - max);
        sum += row[j];
    }
    for (int64_t j = 0; j < n; j++) {
        row[j] /= sum;
    }
}

/* Three nested loops a head. scratch [T]. */
void plain_attention_loops(int64_t B,
                           int64_t T,
                           int64_t H,
                           int64_t D,
                           int32_t causal,
                           const float *q,
                           const float *k,
                           const float *v,
                           float *out,
                           float *scratch)
{
    const float scale = 1.0F / sqrtf((float)D);
    const int64_t step = H * D; /* from a token to the next */
    for (int64_t b = 0; b < B; b++) {
        for (int64_t h = 0; h < H; h++) {
            const int64_t head = b * T * step + h * D;
            for (int64_t i = 0; i < T; i++) {
                const int64_t keys = causal != 0 ? i + 1 : T;
                const float *query = q + head + i * step;
                float *row = out + head + i * step;
                for (int64_t j = 0; j < keys; j++) {
                    const float *key = k + head + j * step;
                    float sum = 0.0F;
                    for (int64_t d = 0; d < D; d++) {
                        sum += query[d] * key[d];
                    }
                    scratch[j] = sum;
                }
                softmax(scratch, keys, scale);
                for (int64_t d = 0; d < D; d++) {
                    row[d] = 0.0F;
                }
                for (int64_t j = 0; j < keys; j++) {
                    const float *value = v + head + j * step;
                    for (int64_t d = 0; d < D; d++) {
                        row[d] += scratch[j] * value[d];
                    }
                }
            }
        }
    }
}

/* Two whole products a head, without tiles. scratch [T,T]. */
void plain_attention_sgemm(int64_t B,
                           int64_t T,
                           int64_t H,
                           int64_t D,
                           int32_t causal,
                           const float *q,
                           const float *k,
                           const float *v,
                           float *out,
                           float *scratch)
{
    const float scale = 1.0F / sqrtf((float)D);
    const int step = (int)(H * D);
    const int tokens = (int)T;
    for (int64_t b = 0; b < B; b++) {
        for (int64_t h = 0; h < H; h++) {
            const int64_t head = b * T * step + h * D;
            /* S = Q K^T    [T,T] */
            cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, tokens, tokens, (int)D, 1.0F,
                        q + head, step, k + head, step, 0.0F, scratch, tokens);
            for (int64_t i = 0; i < T; i++) {
                const int64_t keys = causal != 0 ? i + 1 : T;
                softmax(scratch + i * T, keys, scale);
                for (int64_t j = keys; j < T; j++) {
                    scratch[i * T + j] = 0.0F;
                }
            }
            /* O = P V    [T,D] */
            cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, tokens, (int)D, tokens, 1.0F,
                        scratch, tokens, v + head, step, 0.0F, out + head, step);
        }
    }
}
