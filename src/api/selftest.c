/* SPDX-License-Identifier: Apache-2.0 */
#include "api/objects.h"
#include "api/run.h"
#include "kernels/kernels.h"
#include "platform/blas_check.h"
#include "platform/fpenv.h"
#include "platform/memory.h"

#include <math.h>

/* mha_runtime_selftest: what a user can ask of the machine at hand. */

/* exp(x), x = 0 .. -87, of the kernels in use: p of the scores (0, x) is exp(x), as their maximum
 * is 0. */
static int32_t check_exp(mha_error *err)
{
    float scores[16];
    double worst = 0.0;
    double worst_at = 0.0;
    for (int step = 0; step <= 87 * 512; step++) {
        const float x = -(float)step / 512.0f;
        float max = -INFINITY;
        float sum = 0.0f;
        float shrink = 0.0f;
        scores[0] = 0.0f;
        scores[1] = x;
        (void)mha__kernels_chosen()->softmax_tile(scores, 16, 1, 2, NULL, 0, &max, &sum, &shrink,
                                                  NULL);
        const double error = fabs((double)scores[1] / exp((double)x) - 1.0);
        if (!(error <= worst)) {
            worst = error;
            worst_at = (double)x;
        }
    }
    MHA_CHECK(err, worst <= 0x1p-22, MHA_ERROR_VALUE,
              "exp(%g) is wrong by %g of its value (kernels %s)", worst_at, worst,
              mha__kernels_chosen()->name);
    return MHA_OK;
}

enum { TOKENS = 70, KEYS = 130, HEADS = 2, SIZE = 40 };

static float number(int64_t i)
{
    return (float)((i * 37 + i / 11 * 5) % 101) / 50.0f - 1.0f;
}

/* The largest error of mha_attention, causal, one key-value head, against the formula in float64.
 */
static double worst_error(const float *q, const float *k, const float *v, const float *out)
{
    double worst = 0.0;
    for (int64_t row = 0; row < TOKENS * HEADS; row++) {
        const int64_t visible = row / HEADS + KEYS - TOKENS + 1;
        double sum = 0.0;
        double o[SIZE] = {0};
        for (int64_t j = 0; j < visible; j++) {
            double s = 0.0;
            for (int64_t d = 0; d < SIZE; d++) {
                s += (double)q[row * SIZE + d] * (double)k[j * SIZE + d];
            }
            const double p = exp(s / sqrt((double)SIZE));
            sum += p;
            for (int64_t d = 0; d < SIZE; d++) {
                o[d] += p * (double)v[j * SIZE + d];
            }
        }
        for (int64_t d = 0; d < SIZE; d++) {
            const double error = fabs(o[d] / sum - (double)out[row * SIZE + d]);
            worst = error <= worst ? worst : error;
        }
    }
    return worst;
}

static int32_t check_attention(mha_error *err)
{
    const int64_t queries = TOKENS * HEADS * SIZE;
    const int64_t keys = KEYS * SIZE;
    float *q = mha__memory_allocate((size_t)(2 * queries + 2 * keys) * sizeof *q);
    MHA_CHECK(err, q, MHA_ERROR_OUT_OF_MEMORY, "no memory for the self-test");
    float *k = q + queries;
    float *v = k + keys;
    float *out = v + keys;
    for (int64_t i = 0; i < queries + 2 * keys; i++) {
        q[i] = number(i);
    }
    int32_t status =
        mha_attention(1, TOKENS, KEYS, HEADS, 1, SIZE, q, k, v, MHA_CAUSAL_BOTTOM_RIGHT, out, err);
    if (status == MHA_OK) {
        const double worst = worst_error(q, k, v, out);
        if (!(worst <= 1e-5)) {
            status =
                mha__error_format(err, MHA_ERROR_VALUE, "attention is wrong by %g (kernels %s)",
                                  worst, mha__kernels_chosen()->name);
        }
    }
    mha__memory_release(q);
    return status;
}

int32_t mha_runtime_selftest(mha_error *err)
{
    MHA_TRY(mha__blas_check(1, err));
    struct mha__fpenv hosts;
    mha__fpenv_enter(&hosts);
    int32_t status = check_exp(err);
    if (status == MHA_OK) {
        status = check_attention(err);
    }
    mha__fpenv_leave(&hosts);
    return status;
}
