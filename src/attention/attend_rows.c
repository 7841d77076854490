/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/attend.h"
#include "attention/pack.h"

#include <math.h>
#include <string.h>

static float *out_row(const struct mha__attend_task *t, int64_t r)
{
    return t->out.data + t->b * t->out.batch + (t->i0 + r) * t->out.token + t->h * t->out.head;
}

static float *weights_row(const struct mha__attend_task *t, int64_t r)
{
    const int64_t *stride = t->problem->weights_stride;
    return t->problem->weights + t->b * stride[0] + t->h * stride[1] + (t->i0 + r) * stride[2];
}

static int64_t tile_keys(const struct mha__attend_task *t, int64_t tile)
{
    const int64_t left = t->problem->S - tile * t->means->plan.key_tile;
    return left < t->means->plan.key_tile ? left : t->means->plan.key_tile;
}

void mha__attend_keep_weights(const struct mha__attend_task *t, int64_t tile, int64_t columns)
{
    const struct mha__planner_plan *plan = &t->means->plan;
    const int64_t j0 = tile * plan->key_tile;
    const size_t hidden = (size_t)(tile_keys(t, tile) - columns);
    for (int64_t r = 0; r < t->rows; r++) {
        float *row = weights_row(t, r) + j0;
        memcpy(row, t->scores + r * plan->score_ld, (size_t)columns * sizeof *row);
        memset(row + columns, 0, hidden * sizeof *row);
        t->maxima[tile * plan->query_tile + r] = t->row_max[r];
    }
}

/* A row with a NaN or +infinity score: NaN at the keys it may see, 0 at the others. */
static void poison_weights(const struct mha__attend_task *t, int64_t r)
{
    const struct mha__planner_plan *plan = &t->means->plan;
    const int64_t words = plan->key_tile / 64;
    for (int64_t tile = 0; tile < plan->key_tiles; tile++) {
        const int64_t columns = mha__attend_columns(t, tile, 0, t->rows);
        const enum mha__tile_class class = mha__attend_classify(t, tile, columns);
        float *row = weights_row(t, r) + tile * plan->key_tile;
        for (int64_t c = 0; class != MHA__TILE_SKIP && c < columns; c++) {
            if (class == MHA__TILE_FULL || (t->visible[r * words + c / 64] >> (c % 64) & 1)) {
                row[c] = NAN;
            }
        }
    }
}

/* Tile by tile p was written against the maximum known then: w = p exp(m_then - m) / l. */
static void finish_weights(const struct mha__attend_task *t)
{
    const struct mha__planner_plan *plan = &t->means->plan;
    for (int64_t r = 0; r < t->rows; r++) {
        const float m = t->row_max[r];
        if (isnan(t->row_sum[r])) {
            poison_weights(t, r);
            continue;
        }
        for (int64_t tile = 0; tile < plan->key_tiles && m != -INFINITY; tile++) {
            const float then = t->maxima[tile * plan->query_tile + r];
            const float factor = (then == m ? 1.0f : expf(then - m)) / t->row_sum[r];
            float *row = weights_row(t, r) + tile * plan->key_tile;
            t->means->kernels->scaled_copy(row, row, tile_keys(t, tile), factor);
        }
    }
}

/* o_i += v_j for what is not finite in v_j, in the rows that may see key j: p is above 0 there, and
 * p * infinity is infinity, p * NaN is NaN. */
static void add_nonfinite_values(const struct mha__attend_task *t, int64_t tile)
{
    const struct mha__planner_plan *plan = &t->means->plan;
    const int64_t Dv = t->problem->Dv;
    const int64_t words = plan->key_tile / 64;
    const int64_t columns = mha__attend_columns(t, tile, 0, t->rows);
    const enum mha__tile_class class = mha__attend_classify(t, tile, columns);
    if (class == MHA__TILE_SKIP) {
        return;
    }
    const float *values = mha__pack_value_tile(t->problem, t->means, t->b, t->g, tile);
    for (int64_t c = 0; c < columns; c++) {
        for (int64_t d = 0; d < Dv; d++) {
            const float v = values[c * Dv + d];
            for (int64_t r = 0; !isfinite(v) && r < t->rows; r++) {
                bool sees =
                    class == MHA__TILE_FULL || (t->visible[r * words + c / 64] >> (c % 64) & 1);
                if (sees && t->row_max[r] != -INFINITY) {
                    out_row(t, r)[d] += v;
                }
            }
        }
    }
}

static void finish_output(const struct mha__attend_task *t)
{
    const int64_t Dv = t->problem->Dv;
    for (int64_t r = 0; r < t->rows; r++) {
        // o_i = o_i / l_i; a row that saw no finite score has l = 0, o = 0 and gives exact zeros
        const float factor = t->row_sum[r] == 0.0f ? 0.0f : 1.0f / t->row_sum[r];
        t->means->kernels->scaled_copy(out_row(t, r), t->o + r * Dv, Dv, factor);
    }
    for (int64_t tile = 0; tile < t->means->plan.key_tiles; tile++) {
        if (mha__pack_is_noted(t->problem, t->means, t->b, t->g, tile)) {
            add_nonfinite_values(t, tile);
        }
    }
}

static void finish_lse(const struct mha__attend_task *t)
{
    const int64_t *stride = t->problem->lse_stride;
    float *lse = t->problem->lse + t->b * stride[0] + t->h * stride[1] + t->i0 * stride[2];
    for (int64_t r = 0; r < t->rows; r++) {
        lse[r * stride[2]] = t->row_max[r] + logf(t->row_sum[r]); // -infinity + log 0 = -infinity
    }
}

void mha__attend_finish_rows(const struct mha__attend_task *t)
{
    if (t->problem->out.data) {
        finish_output(t);
    }
    if (t->problem->lse) {
        finish_lse(t);
    }
    if (t->problem->weights) {
        finish_weights(t);
    }
}
