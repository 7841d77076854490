/* SPDX-License-Identifier: Apache-2.0 */
#include "api/objects.h"
#include "platform/fpenv.h"

#include <mha/merge.h>

#include <math.h>

/* Features whose sums are kept at a time, so that a result may lie in the place of a part. */
enum { FEATURES = 256 };

/* Below this, exp is nearly denormal, which counts as 0 here. */
#define LEAST_EXPONENT (-86.5f)

struct merge {
    int64_t parts, rows, Dv;
    const float *const *out; /* [parts] of [rows, Dv] */
    const float *const *lse; /* [parts] of [rows] */
    float *merged_out, *merged_lse;
};

/* M = max_p lse_p; -infinity: every part is empty. */
static float largest(const struct merge *m, int64_t row)
{
    float M = -INFINITY;
    for (int64_t p = 0; p < m->parts; p++) {
        M = m->lse[p][row] > M ? m->lse[p][row] : M;
    }
    return M;
}

/* w = exp(lse - M). A NaN stays one. */
static float weight_of(float lse, float M)
{
    return lse - M < LEAST_EXPONENT ? 0.0f : expf(lse - M);
}

static void merge_row(const struct merge *m, int64_t row)
{
    const float M = largest(m, row);
    // sum = sum_p w_p over the parts that are not empty
    float sum = 0.0f;
    bool empty = true;
    for (int64_t p = 0; p < m->parts; p++) {
        if (m->lse[p][row] != -INFINITY) {
            sum += weight_of(m->lse[p][row], M);
            empty = false;
        }
    }
    // o = sum_p w_p o_p / sum, some features at a time
    for (int64_t d0 = 0; d0 < m->Dv; d0 += FEATURES) {
        const int64_t n = m->Dv - d0 < FEATURES ? m->Dv - d0 : FEATURES;
        float o[FEATURES] = {0.0f};
        for (int64_t p = 0; p < m->parts; p++) {
            const float *part = m->out[p] + row * m->Dv + d0;
            if (m->lse[p][row] == -INFINITY) {
                continue; // selected, not multiplied by 0: the part may hold NaN
            }
            const float w = weight_of(m->lse[p][row], M) / sum;
            for (int64_t d = 0; d < n; d++) {
                o[d] += w * part[d];
            }
        }
        for (int64_t d = 0; d < n; d++) {
            m->merged_out[row * m->Dv + d0 + d] = o[d];
        }
    }
    if (m->merged_lse) {
        m->merged_lse[row] = empty ? -INFINITY : M + logf(sum);
    }
}

/* Whether [a, a + n) and [b, b + k) share a byte. */
static bool meet(const float *a, int64_t n, const float *b, int64_t k)
{
    const uintptr_t a0 = (uintptr_t)a;
    const uintptr_t b0 = (uintptr_t)b;
    return a && b && n > 0 && k > 0 && a0 < b0 + (uintptr_t)k * sizeof(float) &&
           b0 < a0 + (uintptr_t)n * sizeof(float);
}

static int32_t check_part(const struct merge *m, int64_t p, mha_error *err)
{
    const int64_t numbers = m->rows * m->Dv;
    MHA_CHECK(err, m->rows == 0 || (m->out[p] && m->lse[p]), MHA_ERROR_NULL_ARGUMENT,
              "out[%lld] or lse[%lld] is NULL", (long long)p, (long long)p);
    MHA_CHECK(err,
              (m->merged_out == m->out[p] || !meet(m->merged_out, numbers, m->out[p], numbers)) &&
                  !meet(m->merged_out, numbers, m->lse[p], m->rows),
              MHA_ERROR_OVERLAP, "merged_out shares memory with part %lld without being its out",
              (long long)p);
    MHA_CHECK(err,
              (m->merged_lse == m->lse[p] || !meet(m->merged_lse, m->rows, m->lse[p], m->rows)) &&
                  !meet(m->merged_lse, m->rows, m->out[p], numbers),
              MHA_ERROR_OVERLAP, "merged_lse shares memory with part %lld without being its lse",
              (long long)p);
    return MHA_OK;
}

int32_t mha_merge(int64_t parts,
                  int64_t rows,
                  int64_t Dv,
                  const float *const *out,
                  const float *const *lse,
                  float *merged_out,
                  float *merged_lse,
                  mha_error *err)
{
    int64_t bytes = 0;
    MHA_CHECK(err, parts >= 1 && rows >= 0 && Dv >= 1, MHA_ERROR_SHAPE,
              "%lld parts of %lld rows, Dv = %lld; at least 1, 0 and 1 are possible",
              (long long)parts, (long long)rows, (long long)Dv);
    MHA_CHECK(err, mha__product_fits(rows, Dv, sizeof(float), &bytes), MHA_ERROR_TOO_LARGE,
              "%lld rows of Dv = %lld pass 2^63 bytes", (long long)rows, (long long)Dv);
    MHA_CHECK_POINTER(err, out);
    MHA_CHECK_POINTER(err, lse);
    MHA_CHECK(err, merged_out || rows == 0, MHA_ERROR_NULL_ARGUMENT, "%s: merged_out is NULL",
              __func__);
    const struct merge m = {parts, rows, Dv, out, lse, merged_out, merged_lse};
    for (int64_t p = 0; p < parts; p++) {
        MHA_TRY(check_part(&m, p, err));
    }
    MHA_CHECK(err, !meet(merged_out, rows * Dv, merged_lse, rows), MHA_ERROR_OVERLAP,
              "merged_out and merged_lse share memory");
    struct mha__fpenv hosts;
    mha__fpenv_enter(&hosts);
    for (int64_t row = 0; row < rows; row++) {
        merge_row(&m, row);
    }
    mha__fpenv_leave(&hosts);
    return mha__error_clear(err);
}
