/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/attend.h"
#include "attention/dropout.h"
#include "attention/pack.h"
#include "kernels/product.h"

#include <math.h>
#include <string.h>

/*
 * One tile of keys. Rows that see different parts of it are taken in bands, each clipped to what its rows
 * may see: near the diagonal of a causal mask that is half of the tile. A band goes through all of it,
 * scores, options, softmax, weights times values, while it is in the cache. Where somebody looks at the
 * scores themselves (an output, a callback), all of a tile is computed, as one band.
 */
static bool is_whole(const struct mha__attend_task *t)
{
    return mha__attend_wants_scores(t->problem) || t->problem->score_callback;
}

/* All rows see the same part of the tile. */
static bool is_alike(const struct mha__attend_task *t, int64_t tile)
{
    const int64_t j0 = tile * t->means->plan.key_tile;
    const int64_t j1 = j0 + t->means->plan.key_tile;
    const struct mha__span *first = &t->spans[0];
    bool alike = true;
    for (int64_t r = 1; r < t->rows; r++) {
        const struct mha__span *span = &t->spans[r];
        alike = alike && (span->lo == first->lo || (span->lo <= j0 && first->lo <= j0)) &&
                (span->hi == first->hi || (span->hi >= j1 && first->hi >= j1));
    }
    return alike;
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
        m->kernels->panel_product(rows, columns, depth, a, lda, b, stride, add ? c : NULL, ldc, c,
                                  ldc);
    } else {
        mha__product_nn(m->kernels, &m->blas, m->plan.few_rows, rows, columns, depth, a, lda, b,
                        width, add ? 1.0f : 0.0f, c, ldc);
    }
}

static void
score_band(const struct mha__attend_task *t, int64_t tile, const struct mha__attend_band *band)
{
    const struct mha__problem *p = t->problem;
    const struct mha__means *m = t->means;
    const int64_t ld = m->plan.score_ld;
    const float *keys = mha__pack_key_tile(p, m, t->b, t->g, tile);
    // S = Q K^T, Q already carries the scale                                      [rows, columns]
    product(m, band->rows, band->end - band->first, p->D, t->q + band->r0 * p->D, p->D,
            keys + mha__pack_key_at(p, &m->plan, band->first, 0), m->plan.key_panel,
            m->plan.key_panel * p->D, false, t->scores + band->first, ld);
    mha__attend_score_options(t, tile, band);
}

/* Columns beyond Dv, keys beyond the last one hold anything and are used by nobody. */
void mha__attend_keep_finite(const struct mha__attend_task *t, const float *values, float *finite)
{
    const int64_t count = t->means->plan.value_keys * t->means->plan.values_ld;
    for (int64_t i = 0; i < count; i++) {
        finite[i] = isfinite(values[i]) ? values[i] : 0.0f;
    }
}

const float *mha__attend_tile_values(const struct mha__attend_task *t, int64_t tile)
{
    const struct mha__problem *p = t->problem;
    const float *values = mha__pack_value_tile(p, t->means, t->b, t->g, tile);
    if (!mha__pack_is_noted(p, t->means, t->b, t->g, tile)) {
        return values;
    }
    mha__attend_keep_finite(t, values, t->finite_values);
    return t->finite_values;
}

static void add_values(const struct mha__attend_task *t,
                       const struct mha__attend_band *band,
                       const float *values)
{
    const struct mha__means *m = t->means;
    const int64_t ld = m->plan.score_ld;
    // O = O + P V_j, the first tile O = P V_j                                     [rows, Dv]
    product(m, band->rows, t->problem->Dv, band->end - band->first, t->scores + band->first, ld,
            values + mha__pack_value_at(&m->plan, band->first, 0), m->plan.value_panel,
            m->plan.value_panel * m->plan.value_keys, t->is_begun,
            t->o + band->r0 * m->plan.values_ld, m->plan.values_ld);
}

void mha__attend_soften(const struct mha__attend_task *t,
                        const struct mha__attend_band *band,
                        bool is_mixed)
{
    const struct mha__planner_plan *plan = &t->means->plan;
    const struct mha__kernels *kernels = t->means->kernels;
    const int64_t r0 = band->r0;
    const int64_t c0 = band->first / 64 * 64; // where a word of bits begins; hidden up to first
    const int64_t words = plan->key_tile / 64;
    float *scores = t->scores + c0;
    // (m, l, P, shrink) <- online softmax of S
    const bool moved = kernels->softmax_tile(
        scores, plan->score_ld, band->rows, band->end - c0,
        is_mixed ? t->visible + r0 * words + c0 / 64 : NULL, words, t->row_max + r0,
        t->row_sum + r0, t->shrink + r0, t->problem->entropy.data ? t->p_ln_p + r0 : NULL);
    // O = diag(shrink) O
    if (moved && t->is_begun) {
        kernels->scale_rows(t->o + r0 * plan->values_ld, plan->values_ld, band->rows,
                            t->problem->Dv, t->shrink + r0);
    }
}

void mha__attend_drop(const struct mha__attend_task *t,
                      int64_t j0,
                      const struct mha__attend_band *band)
{
    for (int64_t r = band->r0; t->problem->dropout > 0.0 && r < band->r0 + band->rows; r++) {
        mha__dropout_row(t->problem, t->b, t->h, t->i0 + r, j0 + band->first,
                         band->end - band->first,
                         t->scores + (r - band->r0) * t->means->plan.score_ld + band->first);
    }
}

static void attend_band(const struct mha__attend_task *t,
                        int64_t tile,
                        struct mha__attend_band band,
                        const float *values)
{
    const struct mha__problem *p = t->problem;
    const int64_t j0 = tile * t->means->plan.key_tile;
    const enum mha__tile_class class = mha__attend_classify(t, tile, &band);
    if (class != MHA__TILE_SKIP || mha__attend_wants_scores(p)) {
        mha__profile_to(t->clock, MHA__PROFILE_SCORES);
        score_band(t, tile, &band);
    }
    if (p->scores_biased.data) {
        mha__attend_keep_biased(t, class, tile);
    }
    if (class == MHA__TILE_SKIP) {
        band.first = band.end = 0;
    } else {
        mha__profile_to(t->clock, MHA__PROFILE_SOFTMAX);
        mha__attend_soften(t, &band, class == MHA__TILE_MIXED);
    }
    mha__profile_to(t->clock, MHA__PROFILE_OTHER);
    if (mha__attend_wants_weights(p)) {
        mha__attend_keep_weights(t, tile, j0, &band, mha__attend_tile_keys(t, tile));
    }
    if (class != MHA__TILE_SKIP && p->out.data) {
        mha__attend_drop(t, j0, &band);
        mha__profile_to(t->clock, MHA__PROFILE_VALUES);
        add_values(t, &band, values);
        mha__profile_to(t->clock, MHA__PROFILE_OTHER);
    } else if (!t->is_begun) {
        const int64_t ld = t->means->plan.values_ld;
        memset(t->o + band.r0 * ld, 0, (size_t)(band.rows * ld) * sizeof *t->o);
    }
}

void mha__attend_tile(const struct mha__attend_task *t, int64_t tile)
{
    const float *values = t->problem->out.data ? mha__attend_tile_values(t, tile) : NULL;
    if (is_whole(t)) {
        const struct mha__attend_band all = {.rows = t->rows,
                                             .end = mha__attend_tile_keys(t, tile)};
        attend_band(t, tile, all, values);
        return;
    }
    const struct mha__planner_plan *plan = &t->means->plan;
    const int64_t height = is_alike(t, tile) ? plan->alike_band : plan->band;
    for (int64_t r0 = 0; r0 < t->rows; r0 += height) {
        const int64_t rows = t->rows - r0 < height ? t->rows - r0 : height;
        attend_band(t, tile, mha__attend_band(t, tile, r0, rows), values);
    }
}

/* o_i += p_ie v_e for the few extra keys. */
static void add_extra_values(const struct mha__attend_task *t, const struct mha__attend_band *band)
{
    const struct mha__problem *p = t->problem;
    for (int64_t e = 0; e < p->extra; e++) {
        const float *value = p->extra_value[e] ? p->extra_value[e] + t->g * p->Dv : NULL;
        for (int64_t r = band->r0; value && r < band->r0 + band->rows; r++) {
            const float weight = t->scores[(r - band->r0) * t->means->plan.score_ld + e];
            for (int64_t d = 0; weight != 0.0f && d < p->Dv; d++) {
                t->o[r * t->means->plan.values_ld + d] += weight * value[d];
            }
        }
    }
}

/* s = cap(scale <q, k_e>); the key of zeros scores 0. */
static void score_extra(const struct mha__attend_task *t, int64_t r, float *scores)
{
    const struct mha__problem *p = t->problem;
    for (int64_t e = 0; e < p->extra; e++) {
        scores[e] = 0.0f;
        for (int64_t d = 0; !p->extra_key[e] && d < p->D; d++) {
            scores[e] += t->q[r * p->D + d] * 0.0f; // NaN stays one
        }
        if (p->extra_key[e]) {
            t->means->kernels->column_product(1, p->D, t->q + r * p->D, p->D,
                                              p->extra_key[e] + t->g * p->D, 1, 0.0f, &scores[e],
                                              1);
        }
        scores[e] *= t->left_scale;
    }
    if (t->softcap > 0.0f) {
        t->means->kernels->softcap_row(scores, p->extra, t->softcap);
    }
}

static void extra_band(const struct mha__attend_task *t, const struct mha__attend_band *band)
{
    const struct mha__problem *p = t->problem;
    const struct mha__planner_plan *plan = &t->means->plan;
    for (int64_t r = band->r0; r < band->r0 + band->rows; r++) {
        score_extra(t, r, t->scores + (r - band->r0) * plan->score_ld);
        // every real query sees them, a padded one nothing
        t->visible[r * (plan->key_tile / 64)] =
            t->i0 + r < t->row_rules.queries ? (UINT64_C(1) << p->extra) - 1 : 0;
    }
    mha__attend_soften(t, band, true);
    if (mha__attend_wants_weights(p)) {
        mha__attend_keep_weights(t, plan->key_tiles, p->S, band, p->extra);
    }
    if (p->out.data) {
        mha__attend_drop(t, p->S, band);
        add_extra_values(t, band);
    }
}

void mha__attend_extra(const struct mha__attend_task *t)
{
    const int64_t height = t->means->plan.score_rows;
    for (int64_t r0 = 0; t->problem->extra > 0 && r0 < t->rows; r0 += height) {
        const struct mha__attend_band band = {
            .r0 = r0,
            .rows = t->rows - r0 < height ? t->rows - r0 : height,
            .end = t->problem->extra,
        };
        extra_band(t, &band);
    }
}
