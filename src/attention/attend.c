/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/attend.h"

#include "attention/alibi.h"
#include "attention/rotary.h"

#include <math.h>
#include <string.h>

/*
 * (b, h, query tile) of a task. Head after head, so that its keys and values stay in the cache; of a head the
 * tiles at the end come first: under a causal mask they are the longest.
 */
static void name_task(struct mha__attend_task *t, int64_t number)
{
    const struct mha__problem *p = t->problem;
    const struct mha__planner_plan *plan = &t->means->plan;
    const int64_t heads = plan->heads_together ? 1 : p->H;
    const int64_t tile = plan->query_tiles - 1 - number % plan->query_tiles;
    t->h = number / plan->query_tiles % heads;
    t->b = number / plan->query_tiles / heads;
    t->i0 = tile * plan->query_tile;
    t->rows = p->T - t->i0 < plan->query_tile ? p->T - t->i0 : plan->query_tile;
}

void mha__attend_name_head(struct mha__attend_task *t, int64_t h)
{
    const struct mha__problem *p = t->problem;
    t->h = h;
    t->g = h / (p->H / p->G);
    t->number = (t->b * p->H + h) * t->means->plan.query_tiles + t->i0 / t->means->plan.query_tile;
    t->scale = p->head_scales ? p->head_scales[h] : p->scale;
    t->softcap = p->head_softcaps ? p->head_softcaps[h] : p->softcap;
    t->gate = p->gates ? p->gates[h] : 1.0f;
    t->slope = !p->alibi ? 0.0f : p->slopes ? p->slopes[h] : mha__alibi_default_slope(p->H, h);
}

void mha__attend_find_scratch(struct mha__attend_task *t, int64_t lane)
{
    char *memory = mha__lane(t->means, lane);
    const struct mha__planner_plan *plan = &t->means->plan;
    t->q = (void *)(memory + plan->lane.queries);
    t->scores = (void *)(memory + plan->lane.scores);
    t->o = (void *)(memory + plan->lane.out);
    t->slots = (void *)(memory + plan->lane.slots);
    t->packed_keys = (void *)(memory + plan->lane.keys);
    t->finite_values = (void *)(memory + plan->lane.values);
    t->query_panels = (void *)(memory + plan->lane.query_panels);
    t->out_panels = (void *)(memory + plan->lane.out_panels);
    t->row_max = (void *)(memory + plan->lane.rows);
    t->row_sum = t->row_max + plan->rows;
    t->shrink = t->row_sum + plan->rows;
    t->row_factor = t->shrink + plan->rows;
    t->p_ln_p = t->row_factor + plan->rows;
    t->is_begun = true;
    t->maxima = (void *)(memory + plan->lane.maxima);
    t->block = (void *)(memory + plan->lane.block);
    t->spans = (void *)(memory + plan->lane.spans);
    t->visible = (void *)(memory + plan->lane.visible);
}

enum { FIRST_STEP = 32 }; /* a multiple of every panel */

struct mha__attend_band
mha__attend_band(const struct mha__attend_task *t, int64_t tile, int64_t r0, int64_t rows)
{
    const int64_t width = t->means->plan.key_tile;
    const int64_t j0 = tile * width;
    int64_t first = j0 + width;
    int64_t end = j0;
    for (int64_t r = r0; r < r0 + rows; r++) {
        if (t->spans[r].lo < t->spans[r].hi && t->spans[r].hi > j0 && t->spans[r].lo < j0 + width) {
            first = t->spans[r].lo < first ? t->spans[r].lo : first;
            end = t->spans[r].hi > end ? t->spans[r].hi : end;
        }
    }
    struct mha__attend_band band = {.r0 = r0, .rows = rows};
    band.end = end - j0 < width ? end - j0 : width;
    band.first = first <= j0 ? 0 : (first - j0) / FIRST_STEP * FIRST_STEP;
    if (band.first >= band.end) {
        band.first = band.end = 0;
    }
    return band;
}

int64_t mha__attend_tile_keys(const struct mha__attend_task *t, int64_t tile)
{
    const int64_t left = t->problem->S - tile * t->means->plan.key_tile;
    return left < t->means->plan.key_tile ? left : t->means->plan.key_tile;
}

/* The class of columns c0 .. end-1 of some rows from their bits; c0 is a multiple of 64. */
static enum mha__tile_class
class_of_bits(const uint64_t *bits, int64_t rows, int64_t c0, int64_t end, int64_t words)
{
    bool some = false;
    bool hidden = false;
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = c0; c < end; c += 64) {
            const uint64_t real = end - c < 64 ? (UINT64_C(1) << (end - c)) - 1 : ~UINT64_C(0);
            const uint64_t word = bits[r * words + c / 64] & real;
            some = some || word != 0;
            hidden = hidden || word != real;
        }
    }
    return !some ? MHA__TILE_SKIP : hidden ? MHA__TILE_MIXED : MHA__TILE_FULL;
}

enum mha__tile_class mha__attend_classify(const struct mha__attend_task *t,
                                          int64_t tile,
                                          const struct mha__attend_band *band)
{
    const int64_t words = t->means->plan.key_tile / 64;
    const int64_t c0 = band->first / 64 * 64;
    uint64_t *bits = t->visible + band->r0 * words;
    if (band->first == band->end) {
        return MHA__TILE_SKIP;
    }
    enum mha__tile_class class = mha__visibility_tile(
        t->problem->rules, t->spans + band->r0, t->b, t->h, t->i0 + band->r0, band->rows,
        tile * t->means->plan.key_tile + c0, band->end - c0, bits + c0 / 64, words);
    if (t->problem->biases == 0 || class == MHA__TILE_SKIP) {
        return class;
    }
    if (class == MHA__TILE_FULL) {
        memset(bits, 0xff, (size_t)(band->rows * words) * sizeof *bits);
    }
    mha__attend_hide_by_bias(t, tile, band, words);
    return class_of_bits(bits, band->rows, c0, band->end, words);
}

bool mha__attend_sees(const struct mha__attend_task *t,
                      enum mha__tile_class class,
                      int64_t r,
                      int64_t c)
{
    const int64_t words = t->means->plan.key_tile / 64;
    return class == MHA__TILE_FULL ||
           (class == MHA__TILE_MIXED && (t->visible[r * words + c / 64] >> (c % 64) & 1));
}

/*
 * q <- q_i, scaled before the product where that cannot overflow more than the score itself: |scale| <= 1;
 * else the finished sums are. Then turned by its position.
 */
void mha__attend_load_queries(struct mha__attend_task *t)
{
    const struct mha__problem *p = t->problem;
    const bool first = fabsf(t->scale) <= 1.0f;
    t->left_scale = first ? 1.0f : t->scale;
    if (t->means->plan.transposed && p->rotary_size == 0) {
        return; // panels of queries are made of the input itself
    }
    float *factor = t->row_factor; // not used before the rows are finished
    for (int64_t r = 0; r < t->rows; r++) {
        factor[r] = first ? t->scale : 1.0f;
    }
    t->means->kernels->scaled_rows(t->q, p->D,
                                   t->queries.data + t->b * t->queries.batch +
                                       t->i0 * t->queries.token + t->h * t->queries.head,
                                   t->queries.token, t->rows, p->D, factor);
    for (int64_t r = 0; p->rotary_size > 0 && r < t->rows; r++) {
        mha__rotary_turn_query(p, t->means, t->b, t->i0 + r, t->q + r * p->D);
    }
}

/* Only the output needs the head's work, and the gate says 0. */
static bool is_gated_off(const struct mha__attend_task *t)
{
    const struct mha__problem *p = t->problem;
    return t->gate == 0.0f && !mha__attend_wants_weights(p) && !mha__attend_wants_scores(p) &&
           !p->lse.data && !p->entropy.data && !p->maximum.data;
}

void mha__attend_begin_rows(struct mha__attend_task *t, int64_t *first, int64_t *end)
{
    const struct mha__problem *p = t->problem;
    mha__visibility_of_batch_row(p->rules, t->b, t->h, p->T, p->S, &t->row_rules);
    *first = INT64_MAX;
    *end = 0;
    for (int64_t r = 0; r < t->rows; r++) {
        t->spans[r] = mha__visibility_span(&t->row_rules, t->i0 + r);
        if (t->spans[r].lo < t->spans[r].hi) {
            *first = t->spans[r].lo < *first ? t->spans[r].lo : *first;
            *end = t->spans[r].hi > *end ? t->spans[r].hi : *end;
        }
        t->row_max[r] = -INFINITY;
        t->row_sum[r] = 0.0f;
        t->p_ln_p[r] = 0.0f;
    }
}

static void attend_head(struct mha__attend_task *t)
{
    const struct mha__problem *p = t->problem;
    const int64_t width = t->means->plan.key_tile;
    const bool whole = mha__attend_wants_scores(p) || mha__attend_wants_weights(p);

    int64_t first = 0; // keys that any row of this tile may see: first .. end-1
    int64_t end = 0;
    mha__attend_begin_rows(t, &first, &end);
    if (is_gated_off(t)) {
        mha__attend_finish_rows(t);
        return;
    }
    if (first < end || p->extra > 0 || mha__attend_wants_scores(p)) {
        mha__profile_to(t->clock, MHA__PROFILE_PACKING);
        mha__attend_load_queries(t);
        mha__profile_to(t->clock, MHA__PROFILE_OTHER);
    }
    int64_t tile = whole || first >= end ? 0 : first / width;
    const int64_t last = whole ? t->means->plan.key_tiles : (end + width - 1) / width;
    if (t->means->plan.transposed) {
        mha__attend_transposed(t, tile, last);
        mha__attend_finish_rows(t);
        return;
    }
    t->is_begun = false;
    for (; tile < last; tile++) {
        mha__attend_tile(t, tile);
        t->is_begun = true;
    }
    if (!t->is_begun) {
        memset(t->o, 0, (size_t)(t->rows * t->means->plan.values_ld) * sizeof *t->o);
        t->is_begun = true;
    }
    mha__attend_extra(t);
    mha__attend_finish_rows(t);
}

static void attend_task(void *arg, int64_t number, int64_t lane)
{
    struct mha__attend_task t = *(const struct mha__attend_task *)arg;
    name_task(&t, number);
    mha__attend_find_scratch(&t, lane);
    t.clock = mha__profile_lane(t.means->executor.profile, lane);
    // The mean over the heads adds them in their order: then one task takes them all.
    const int64_t last = t.means->plan.heads_together ? t.problem->H : t.h + 1;
    for (int64_t h = t.h; h < last; h++) {
        mha__attend_name_head(&t, h);
        attend_head(&t);
    }
}

static void mass_task(void *arg, int64_t b, int64_t lane)
{
    const struct mha__attend_task *common = arg;
    (void)lane;
    mha__attend_reduce_mass(common->problem, common->means, b);
}

int32_t mha__attend(const struct mha__problem *problem,
                    const struct mha__means *means,
                    const struct mha__input *queries,
                    const struct mha__input *keys,
                    const struct mha__input *values,
                    const struct mha__output *out,
                    mha_error *err)
{
    struct mha__attend_task common = {.problem = problem,
                                      .means = means,
                                      .queries = *queries,
                                      .keys = *keys,
                                      .values = *values,
                                      .out = *out};
    if (means->plan.direct) {
        return mha__attend_direct(&common, err);
    }
    for (int64_t lane = 0; lane < means->plan.lanes; lane++) {
        int64_t *slots = (void *)(mha__lane(means, lane) + means->plan.lane.slots);
        for (int64_t i = 0; i < means->plan.key_slots; i++) {
            slots[i] = -1; // nothing is packed
        }
    }
    int32_t status =
        mha__parallel_for(&means->executor, means->plan.tasks, attend_task, &common, err);
    if (status == MHA_OK && (problem->key_mass.data || problem->key_mass_total.data)) {
        status = mha__parallel_for(&means->executor, problem->B, mass_task, &common, err);
    }
    return status;
}
