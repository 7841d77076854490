/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/attend.h"

#include <math.h>
#include <string.h>

/* What happens to a score between the product and the softmax, in this order:
 *   s0 = scale <q, k>    s1 = cap tanh(s0 / cap)    s2 = s1 + biases - slope |i + off - j|    callback */

bool mha__attend_wants_scores(const struct mha__problem *p)
{
    return p->scores_scaled.data || p->scores_capped.data || p->scores_biased.data;
}

/* A stage of the scores that is an output: then a tile is one band with all keys. */
static void keep(const struct mha__attend_task *t, const struct mha__rows *rows, int64_t tile)
{
    const int64_t keys = mha__attend_tile_keys(t, tile);
    for (int64_t r = 0; rows->data && r < t->rows; r++) {
        memcpy(mha__attend_row(t, rows, r) + tile * t->means->plan.key_tile,
               t->scores + r * t->means->plan.score_ld, (size_t)keys * sizeof(float));
    }
}

static const float *
bias_row(const struct mha__attend_task *t, const struct mha__bias *bias, int64_t r, int64_t j0)
{
    return bias->data + t->b * bias->stride[0] + t->h * bias->stride[1] +
           (t->i0 + r) * bias->stride[2] + j0;
}

/* How many of the keys from j on a bias has numbers for. */
static int64_t bias_columns(const struct mha__bias *bias, int64_t j, int64_t columns)
{
    const int64_t left = bias->keys > j ? bias->keys - j : 0;
    return left < columns ? left : columns;
}

/* Row r of the task, keys from j0 on. */
static void
add_to_row(const struct mha__attend_task *t, int64_t r, int64_t j0, int64_t columns, float *scores)
{
    const struct mha__problem *p = t->problem;
    const struct mha__kernels *kernels = t->means->kernels;
    for (int64_t n = 0; n < p->biases; n++) {
        const struct mha__bias *bias = &p->bias[n];
        kernels->add_row(scores, bias_row(t, bias, r, j0), bias_columns(bias, j0, columns));
    }
    if (t->slope != 0.0f) {
        const int64_t stand = mha__visibility_stand(&t->row_rules, t->i0 + r) - j0;
        kernels->alibi_row(scores, columns, t->slope, (float)stand);
    }
}

void mha__attend_score_options(const struct mha__attend_task *t,
                               int64_t tile,
                               const struct mha__attend_band *band)
{
    const struct mha__problem *p = t->problem;
    const int64_t ld = t->means->plan.score_ld;
    const int64_t j0 = tile * t->means->plan.key_tile + band->first;
    const int64_t r0 = band->r0;
    const int64_t rows = band->rows;
    const int64_t columns = band->end - band->first;
    float *scores = t->scores + band->first;
    for (int64_t r = 0; t->left_scale != 1.0f && r < rows; r++) {
        t->means->kernels->scaled_copy(scores + r * ld, scores + r * ld, columns, t->left_scale);
    }
    keep(t, &p->scores_scaled, tile);
    for (int64_t r = 0; t->softcap > 0.0f && r < rows; r++) {
        t->means->kernels->softcap_row(scores + r * ld, columns, t->softcap);
    }
    keep(t, &p->scores_capped, tile);
    for (int64_t r = 0; (p->biases > 0 || t->slope != 0.0f) && r < rows; r++) {
        add_to_row(t, r0 + r, j0, columns, scores + r * ld);
    }
    if (p->score_callback) {
        p->score_callback(p->score_user, t->b, t->h, t->i0 + r0, rows, j0, columns, scores, ld);
    }
}

void mha__attend_keep_biased(const struct mha__attend_task *t,
                             enum mha__tile_class class,
                             int64_t tile)
{
    const int64_t keys = mha__attend_tile_keys(t, tile);
    for (int64_t r = 0; r < t->rows; r++) {
        const float *scores = t->scores + r * t->means->plan.score_ld;
        float *to =
            mha__attend_row(t, &t->problem->scores_biased, r) + tile * t->means->plan.key_tile;
        for (int64_t c = 0; c < keys; c++) {
            to[c] = mha__attend_sees(t, class, r, c) ? scores[c] : -INFINITY;
        }
    }
}

void mha__attend_hide_by_bias(const struct mha__attend_task *t,
                              int64_t tile,
                              const struct mha__attend_band *band,
                              int64_t words)
{
    const int64_t c0 = band->first / 64 * 64;
    const int64_t j0 = tile * t->means->plan.key_tile + c0;
    for (int64_t n = 0; n < t->problem->biases; n++) {
        const struct mha__bias *bias = &t->problem->bias[n];
        const int64_t real = bias_columns(bias, j0, band->end - c0);
        for (int64_t r = band->r0; r < band->r0 + band->rows; r++) {
            uint64_t *row = t->visible + r * words + c0 / 64;
            t->means->kernels->hide_infinite(row, bias_row(t, bias, r, j0), real);
            for (int64_t c = real; c < band->end - c0; c++) {
                row[c / 64] &= ~(UINT64_C(1) << (c % 64));
            }
        }
    }
}
