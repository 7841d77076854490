/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/attend.h"
#include "attention/dropout.h"
#include "attention/pack.h"
#include "kernels/product.h"

#include <math.h>
#include <string.h>

/*
 * One tile of keys: scores, online softmax, weights times values. A mixed tile is cut into bands of rows,
 * and each band to the columns that its rows may see: near the diagonal of a causal mask that is half of
 * the tile. Where somebody looks at the scores themselves (an output, a callback), all of it is computed.
 */
struct band {
    int64_t r0, rows;
    int64_t first, end; /* columns of the tile, first a multiple of every panel; equal: none */
};

enum { FIRST_STEP = 32 };

static bool is_whole(const struct mha__attend_task *t)
{
    return mha__attend_wants_scores(t->problem) || t->problem->score_callback;
}

/* The columns that some row of the band may see by position. */
static void clip_band(const struct mha__attend_task *t, int64_t tile, struct band *band)
{
    const int64_t j0 = tile * t->means->plan.key_tile;
    int64_t first = INT64_MAX;
    for (int64_t r = band->r0; r < band->r0 + band->rows; r++) {
        if (t->spans[r].lo < t->spans[r].hi && t->spans[r].hi > j0) {
            first = t->spans[r].lo < first ? t->spans[r].lo : first;
        }
    }
    band->end = mha__attend_columns(t, tile, band->r0, band->rows);
    band->first = first <= j0 ? 0 : (first - j0) / FIRST_STEP * FIRST_STEP;
    if (first == INT64_MAX || band->first > band->end) {
        band->first = band->end = 0;
    }
}

static bool
next_band(const struct mha__attend_task *t, int64_t tile, int64_t height, struct band *band)
{
    band->r0 += band->rows;
    band->rows = t->rows - band->r0 < height ? t->rows - band->r0 : height;
    if (band->rows <= 0) {
        return false;
    }
    if (is_whole(t)) {
        band->first = 0;
        band->end = mha__attend_tile_keys(t, tile);
    } else {
        clip_band(t, tile, band);
    }
    return true;
}

/*
 * C = A B or C += A B with B in panels of `width` columns, `stride` numbers apart: one panel for the BLAS,
 * many for our own kernel.
 */
static void product(const struct mha__means *m,
                    int64_t rows,
                    int64_t columns,
                    int64_t depth,
                    const float *a,
                    int64_t lda,
                    const float *b,
                    int64_t width,
                    int64_t stride,
                    bool add,
                    float *c,
                    int64_t ldc)
{
    if (m->plan.fused) {
        m->kernels->panel_product(rows, columns, depth, a, lda, b, stride, add, c, ldc);
    } else {
        mha__product_nn(m->kernels, &m->blas, rows, columns, depth, a, lda, b, width,
                        add ? 1.0f : 0.0f, c, ldc);
    }
}

static void score_tile(const struct mha__attend_task *t, int64_t tile, int64_t height)
{
    const struct mha__problem *p = t->problem;
    const struct mha__means *m = t->means;
    const int64_t ld = m->plan.score_ld;
    const float *keys = mha__pack_key_tile(p, m, t->b, t->g, tile);
    for (struct band band = {0}; next_band(t, tile, height, &band);) {
        if (band.first < band.end) {
            // S = Q K^T, Q already carries the scale                              [rows, columns]
            product(m, band.rows, band.end - band.first, p->D, t->q + band.r0 * p->D, p->D,
                    keys + mha__pack_key_at(p, &m->plan, band.first, 0), m->plan.key_panel,
                    m->plan.key_panel * p->D, false, t->scores + band.r0 * ld + band.first, ld);
            mha__attend_score_options(t, tile, band.r0, band.rows, band.end);
        }
    }
}

/*
 * A packed tile of values in which what is not finite is 0: rows that may see it get it in attend_rows.c.
 * Columns beyond Dv, keys beyond the last one hold anything and are used by nobody.
 */
static const float *only_finite(const struct mha__attend_task *t, const float *values)
{
    const int64_t count = t->means->plan.key_tile * t->means->plan.values_ld;
    for (int64_t i = 0; i < count; i++) {
        t->finite_values[i] = isfinite(values[i]) ? values[i] : 0.0f;
    }
    return t->finite_values;
}

static void add_values(const struct mha__attend_task *t, int64_t tile, int64_t height)
{
    const struct mha__problem *p = t->problem;
    const struct mha__means *m = t->means;
    const int64_t ld = m->plan.score_ld;
    const float *values = mha__pack_value_tile(p, m, t->b, t->g, tile);
    if (mha__pack_is_noted(p, m, t->b, t->g, tile)) {
        values = only_finite(t, values);
    }
    for (struct band band = {0}; next_band(t, tile, height, &band);) {
        if (band.first < band.end) {
            // O = O + P V_j                                                       [rows, Dv]
            product(m, band.rows, p->Dv, band.end - band.first,
                    t->scores + band.r0 * ld + band.first, ld,
                    values + mha__pack_value_at(&m->plan, band.first, 0), m->plan.value_panel,
                    m->plan.value_panel * m->plan.key_tile, true,
                    t->o + band.r0 * m->plan.values_ld, m->plan.values_ld);
        }
    }
}

/*
 * sum p (s - m) for the entropy. When the maximum moves by d = m_old - m, each old term p (s - m_old)
 * becomes shrink p (s - m_old + d).
 */
static void add_entropy(const struct mha__attend_task *t, const float *old_max, int64_t columns)
{
    const int64_t ld = t->means->plan.score_ld;
    for (int64_t r = 0; r < t->rows; r++) {
        float *sum = t->entropy + 2 * r;
        if (old_max[r] != -INFINITY && old_max[r] != t->row_max[r]) {
            const float shrink = t->shrink[r]; // 0 selects 0: the move may be beyond float32
            const float moved = sum[1] + (old_max[r] - t->row_max[r]) * sum[0];
            sum[1] = shrink == 0.0f ? 0.0f : shrink * moved;
            sum[0] *= shrink;
        }
        t->means->kernels->entropy_row(t->scores + r * ld, t->score_copy + r * ld, columns,
                                       t->row_max[r], sum);
    }
}

/* P and the running (m, l) of `columns` scores a row; hidden cells by bits, or none. O follows the move. */
static void soften(const struct mha__attend_task *t, int64_t columns, const uint64_t *bits)
{
    const struct mha__planner_plan *plan = &t->means->plan;
    const struct mha__kernels *kernels = t->means->kernels;
    float *old_max = t->row_factor; // not used before the rows are finished
    if (t->problem->entropy.data) {
        memcpy(old_max, t->row_max, (size_t)t->rows * sizeof *old_max);
        memcpy(t->score_copy, t->scores, (size_t)(t->rows * plan->score_ld) * sizeof *t->scores);
    }
    // (m, l, P, shrink) <- online softmax of S
    const bool moved =
        kernels->softmax_tile(t->scores, plan->score_ld, t->rows, columns, bits,
                              plan->key_tile / 64, t->row_max, t->row_sum, t->shrink);
    if (t->problem->entropy.data) {
        add_entropy(t, old_max, columns);
    }
    // O = diag(shrink) O
    if (moved) {
        kernels->scale_rows(t->o, plan->values_ld, t->rows, t->problem->Dv, t->shrink);
    }
}

static void drop(const struct mha__attend_task *t, int64_t j0, int64_t columns)
{
    for (int64_t r = 0; t->problem->dropout > 0.0 && r < t->rows; r++) {
        mha__dropout_row(t->problem, t->b, t->h, t->i0 + r, j0, columns,
                         t->scores + r * t->means->plan.score_ld);
    }
}

void mha__attend_tile(const struct mha__attend_task *t, int64_t tile)
{
    const struct mha__problem *p = t->problem;
    const struct mha__planner_plan *plan = &t->means->plan;
    const int64_t keys = mha__attend_tile_keys(t, tile);
    int64_t columns = mha__attend_columns(t, tile, 0, t->rows);
    const enum mha__tile_class class = mha__attend_classify(t, tile, columns);
    const int64_t height = class == MHA__TILE_FULL || is_whole(t) ? t->rows : plan->band;
    if (class != MHA__TILE_SKIP || mha__attend_wants_scores(p)) {
        mha__profile_to(t->clock, MHA__PROFILE_SCORES);
        score_tile(t, tile, height);
    }
    if (p->scores_biased.data) {
        mha__attend_keep_biased(t, class, tile);
    }
    if (class != MHA__TILE_SKIP) {
        mha__profile_to(t->clock, MHA__PROFILE_SOFTMAX);
        soften(t, columns, class == MHA__TILE_MIXED ? t->visible : NULL);
    } else {
        columns = 0;
    }
    mha__profile_to(t->clock, MHA__PROFILE_OTHER);
    if (mha__attend_wants_weights(p)) {
        mha__attend_keep_weights(t, tile, tile * plan->key_tile, columns, keys);
    }
    if (class != MHA__TILE_SKIP && p->out.data) {
        drop(t, tile * plan->key_tile, columns);
        if (is_whole(t)) {
            // the product takes all keys of the tile: P ends with zeros
            for (int64_t r = 0; columns < keys && r < t->rows; r++) {
                memset(t->scores + r * plan->score_ld + columns, 0,
                       (size_t)(keys - columns) * sizeof *t->scores);
            }
        }
        mha__profile_to(t->clock, MHA__PROFILE_VALUES);
        add_values(t, tile, height);
        mha__profile_to(t->clock, MHA__PROFILE_OTHER);
    }
}

/* o_i += p_ie v_e for the few extra keys. */
static void add_extra_values(const struct mha__attend_task *t)
{
    const struct mha__problem *p = t->problem;
    for (int64_t e = 0; e < p->extra; e++) {
        const float *value = p->extra_value[e] ? p->extra_value[e] + t->g * p->Dv : NULL;
        for (int64_t r = 0; value && r < t->rows; r++) {
            const float weight = t->scores[r * t->means->plan.score_ld + e];
            for (int64_t d = 0; weight != 0.0f && d < p->Dv; d++) {
                t->o[r * t->means->plan.values_ld + d] += weight * value[d];
            }
        }
    }
}

void mha__attend_extra(const struct mha__attend_task *t)
{
    const struct mha__problem *p = t->problem;
    const struct mha__planner_plan *plan = &t->means->plan;
    const int64_t words = plan->key_tile / 64;
    if (p->extra == 0) {
        return;
    }
    for (int64_t r = 0; r < t->rows; r++) {
        float *scores = t->scores + r * plan->score_ld;
        for (int64_t e = 0; e < p->extra; e++) {
            // s = cap(scale <q, k_e>); the key of zeros scores 0
            scores[e] = 0.0f;
            for (int64_t d = 0; !p->extra_key[e] && d < p->D; d++) {
                scores[e] += t->q[r * p->D + d] * 0.0f; // NaN stays one
            }
            if (p->extra_key[e]) {
                t->means->kernels->column_product(1, p->D, t->q + r * p->D, p->D,
                                                  p->extra_key[e] + t->g * p->D, 1, 0.0f,
                                                  &scores[e], 1);
            }
            scores[e] *= t->left_scale;
        }
        if (t->softcap > 0.0f) {
            t->means->kernels->softcap_row(scores, p->extra, t->softcap);
        }
        // every real query sees them, a padded one nothing
        t->visible[r * words] =
            t->i0 + r < t->row_rules.queries ? (UINT64_C(1) << p->extra) - 1 : 0;
    }
    soften(t, p->extra, t->visible);
    if (mha__attend_wants_weights(p)) {
        mha__attend_keep_weights(t, plan->key_tiles, p->S, p->extra, p->extra);
    }
    if (p->out.data) {
        drop(t, p->S, p->extra);
        add_extra_values(t);
    }
}
