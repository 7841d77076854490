/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/attend.h"

#include "attention/pack.h"
#include "kernels/product.h"

#include <math.h>
#include <string.h>

/* (b, h, query tile) of a task. Tiles at the end come first: under a causal mask they are the
 * longest. */
static void name_task(struct mha__attend_task *t, int64_t number)
{
    const struct mha__problem *p = t->problem;
    const struct mha__planner_plan *plan = &t->means->plan;
    const int64_t heads = p->B * p->H;
    const int64_t tile = plan->query_tiles - 1 - number / heads;
    t->b = number % heads / p->H;
    t->h = number % heads % p->H;
    t->g = t->h / (p->H / p->G);
    t->i0 = tile * plan->query_tile;
    t->rows = p->T - t->i0 < plan->query_tile ? p->T - t->i0 : plan->query_tile;
}

static void find_scratch(struct mha__attend_task *t, int64_t lane)
{
    char *memory = mha__lane(t->means, lane);
    const struct mha__planner_plan *plan = &t->means->plan;
    t->q = (void *)(memory + plan->lane.queries);
    t->scores = (void *)(memory + plan->lane.scores);
    t->o = (void *)(memory + plan->lane.out);
    t->finite_values = (void *)(memory + plan->lane.values);
    t->row_max = (void *)(memory + plan->lane.rows);
    t->row_sum = t->row_max + plan->query_tile;
    t->shrink = t->row_sum + plan->query_tile;
    t->spans = (void *)(memory + plan->lane.spans);
    t->visible = (void *)(memory + plan->lane.visible);
    t->maxima = (void *)(memory + plan->lane.maxima);
}

int64_t
mha__attend_columns(const struct mha__attend_task *t, int64_t tile, int64_t r0, int64_t rows)
{
    const int64_t j0 = tile * t->means->plan.key_tile;
    int64_t end = j0;
    for (int64_t r = r0; r < r0 + rows; r++) {
        end = t->spans[r].hi > end ? t->spans[r].hi : end;
    }
    return end - j0 < t->means->plan.key_tile ? end - j0 : t->means->plan.key_tile;
}

enum mha__tile_class
mha__attend_classify(const struct mha__attend_task *t, int64_t tile, int64_t columns)
{
    if (columns == 0) {
        return MHA__TILE_SKIP;
    }
    return mha__visibility_tile(t->problem->rules, t->spans, t->b, t->h, t->i0, t->rows,
                                tile * t->means->plan.key_tile, columns, t->visible,
                                t->means->plan.key_tile / 64);
}

/*
 * q <- q_i, scaled before the product where that cannot overflow more than the score itself:
 * |scale| <= 1. Returns the factor that is left for the finished sums.
 */
static float load_queries(const struct mha__attend_task *t)
{
    const struct mha__problem *p = t->problem;
    const bool first = fabsf(p->scale) <= 1.0f;
    for (int64_t r = 0; r < t->rows; r++) {
        const float *row = t->queries.data + t->b * t->queries.batch +
                           (t->i0 + r) * t->queries.token + t->h * t->queries.head;
        t->means->kernels->scaled_copy(t->q + r * p->D, row, p->D, first ? p->scale : 1.0f);
    }
    return first ? 1.0f : p->scale;
}

/* A tile of values in which what is not finite is 0: rows that may see it get it in finish_rows. */
static const float *
only_finite(const struct mha__attend_task *t, const float *values, int64_t columns)
{
    for (int64_t i = 0; i < columns * t->problem->Dv; i++) {
        t->finite_values[i] = isfinite(values[i]) ? values[i] : 0.0f;
    }
    return t->finite_values;
}

/*
 * A mixed tile is cut into bands of rows, and each band to the columns that its rows may see: near
 * the diagonal of a causal mask that is half of the tile.
 */
struct band {
    int64_t r0, rows, columns;
};

static bool
next_band(const struct mha__attend_task *t, int64_t tile, int64_t height, struct band *band)
{
    band->r0 += band->rows;
    band->rows = t->rows - band->r0 < height ? t->rows - band->r0 : height;
    band->columns = mha__attend_columns(t, tile, band->r0, band->rows);
    return band->rows > 0;
}

static void
score_tile(const struct mha__attend_task *t, int64_t tile, int64_t height, float left_scale)
{
    const struct mha__problem *p = t->problem;
    const struct mha__means *m = t->means;
    const int64_t ld = m->plan.score_ld;
    const float *keys = mha__pack_key_tile(p, m, t->b, t->g, tile);
    for (struct band band = {0}; next_band(t, tile, height, &band);) {
        float *scores = t->scores + band.r0 * ld;
        if (band.columns > 0) {
            // S = Q K^T, Q already carries the scale                              [rows, columns]
            mha__product_nn(m->kernels, &m->blas, band.rows, band.columns, p->D,
                            t->q + band.r0 * p->D, p->D, keys, m->plan.key_tile, 0.0f, scores, ld);
        }
        for (int64_t r = 0; left_scale != 1.0f && r < band.rows; r++) {
            m->kernels->scaled_copy(scores + r * ld, scores + r * ld, band.columns, left_scale);
        }
    }
}

static void add_values(const struct mha__attend_task *t, int64_t tile, int64_t height)
{
    const struct mha__problem *p = t->problem;
    const struct mha__means *m = t->means;
    const int64_t ld = m->plan.score_ld;
    const float *values = mha__pack_value_tile(p, m, t->b, t->g, tile);
    if (mha__pack_is_noted(p, m, t->b, t->g, tile)) {
        values = only_finite(t, values, mha__attend_columns(t, tile, 0, t->rows));
    }
    for (struct band band = {0}; next_band(t, tile, height, &band);) {
        if (band.columns > 0) {
            // O = O + P V_j                                                       [rows, Dv]
            mha__product_nn(m->kernels, &m->blas, band.rows, p->Dv, band.columns,
                            t->scores + band.r0 * ld, ld, values, p->Dv, 1.0f,
                            t->o + band.r0 * p->Dv, p->Dv);
        }
    }
}

static void attend_tile(const struct mha__attend_task *t, int64_t tile, float left_scale)
{
    const struct mha__problem *p = t->problem;
    const struct mha__planner_plan *plan = &t->means->plan;
    const struct mha__kernels *kernels = t->means->kernels;
    const int64_t columns = mha__attend_columns(t, tile, 0, t->rows);
    const enum mha__tile_class class = mha__attend_classify(t, tile, columns);
    if (class != MHA__TILE_SKIP) {
        const bool mixed = class == MHA__TILE_MIXED;
        const int64_t height = mixed ? plan->band : t->rows;
        score_tile(t, tile, height, left_scale);
        // (m, l, P, shrink) <- online softmax of S
        const bool moved = kernels->softmax_tile(t->scores, plan->score_ld, t->rows, columns,
                                                 mixed ? t->visible : NULL, plan->key_tile / 64,
                                                 t->row_max, t->row_sum, t->shrink);
        if (p->out.data) {
            // O = diag(shrink) O
            if (moved) {
                kernels->scale_rows(t->o, p->Dv, t->rows, p->Dv, t->shrink);
            }
            add_values(t, tile, height);
        }
    }
    if (p->weights) {
        mha__attend_keep_weights(t, tile, class == MHA__TILE_SKIP ? 0 : columns);
    }
}

static void attend_task(void *arg, int64_t number, int64_t lane)
{
    struct mha__attend_task t = *(const struct mha__attend_task *)arg;
    name_task(&t, number);
    find_scratch(&t, lane);
    const struct mha__problem *p = t.problem;
    const int64_t width = t.means->plan.key_tile;

    mha__visibility_of_batch_row(p->rules, t.b, p->T, p->S, &t.row_rules);
    int64_t first = INT64_MAX; // keys that any row of this tile may see: first .. end-1
    int64_t end = 0;
    for (int64_t r = 0; r < t.rows; r++) {
        t.spans[r] = mha__visibility_span(&t.row_rules, t.i0 + r);
        if (t.spans[r].lo < t.spans[r].hi) {
            first = t.spans[r].lo < first ? t.spans[r].lo : first;
            end = t.spans[r].hi > end ? t.spans[r].hi : end;
        }
        t.row_max[r] = -INFINITY;
        t.row_sum[r] = 0.0f;
    }
    memset(t.o, 0, (size_t)(t.rows * p->Dv) * sizeof *t.o);
    float left_scale = first < end ? load_queries(&t) : 1.0f;
    int64_t tile = p->weights || first >= end ? 0 : first / width;
    int64_t last = p->weights ? t.means->plan.key_tiles : (end + width - 1) / width;
    for (; tile < last; tile++) {
        attend_tile(&t, tile, left_scale);
    }
    mha__attend_finish_rows(&t);
}

int32_t mha__attend(const struct mha__problem *problem,
                    const struct mha__means *means,
                    const struct mha__input *queries,
                    const struct mha__output *out,
                    mha_error *err)
{
    struct mha__attend_task common = {
        .problem = problem, .means = means, .queries = *queries, .out = *out};
    return mha__parallel_for(&means->executor, means->plan.tasks, attend_task, &common, err);
}
