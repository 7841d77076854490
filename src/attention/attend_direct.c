/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/attend.h"
#include "attention/pack.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

/*
 * Few queries: keys and values are read where they lie, once. Packing them first would be several times
 * the traffic of the whole call. A task is (b, g, chunk of keys); its rows are the T queries of all H / G
 * heads that share the key-value head g, so that a key serves them all while it is in the cache:
 *
 *   row n T + i is query i of head g H / G + n
 *
 * A chunk leaves m, l, sum p ln p and O of its rows; the last one of (b, g) to be done puts them together in
 * the order of chunks. Chunks follow from the shape, so the bits do not depend on who was last.
 */
struct group {
    struct mha__attend_task all;   /* the rows of all heads */
    struct mha__attend_head *head; /* [heads] */
    int64_t heads;
};

/* What chunk `chunk` leaves: O [rows, values_ld], then m, l and sum p ln p, [rows] each. */
static float *partial_of(const struct mha__attend_task *t, int64_t chunk)
{
    const struct mha__planner_plan *plan = &t->means->plan;
    const int64_t number = (t->b * t->problem->G + t->g) * plan->key_splits + chunk;
    return (float *)mha__piece(t->means, plan->partials) +
           number * plan->rows * (plan->values_ld + 3);
}

static void find_group(struct group *group, const struct mha__attend_task *common, int64_t lane)
{
    struct mha__attend_task *all = &group->all;
    const struct mha__problem *p = common->problem;
    const struct mha__planner_plan *plan = &common->means->plan;
    mha__attend_find_scratch(all, lane);
    all->rows = plan->rows;
    group->heads = p->H / p->G;
    group->head = (void *)(mha__lane(common->means, lane) + plan->lane.heads);
    for (int64_t n = 0; n < group->heads; n++) {
        const int64_t row = n * p->T;
        struct mha__attend_task *t = &group->head[n].task;
        *t = *all;
        t->rows = p->T;
        t->q += row * p->D;
        t->scores += row * plan->score_ld;
        t->o += row * plan->values_ld;
        t->row_max += row;
        t->row_sum += row;
        t->shrink += row;
        t->row_factor += row;
        t->p_ln_p += row;
        t->spans += row;
        t->visible += row * (plan->key_tile / 64);
        mha__attend_name_head(t, all->g * group->heads + n);
    }
}

/* What the heads and all of them together may see of a tile; false: nothing. */
static bool look_at_tile(struct group *group, int64_t tile, struct mha__attend_band *all)
{
    bool some = false;
    *all = mha__attend_band(&group->all, tile, 0, group->all.rows);
    for (int64_t n = 0; n < group->heads; n++) {
        struct mha__attend_head *head = &group->head[n];
        head->band = mha__attend_band(&head->task, tile, 0, head->task.rows);
        head->class = mha__attend_classify(&head->task, tile, &head->band);
        some = some || head->class != MHA__TILE_SKIP;
    }
    return some;
}

/* P of a tile: of all rows at once where the heads see the same, else by head. */
static void soften_group(const struct group *group, const struct mha__attend_band *all)
{
    const struct mha__attend_head *head = group->head;
    bool alike = true;
    for (int64_t n = 1; n < group->heads; n++) {
        alike = alike && head[n].class == head->class && head[n].band.first == head->band.first &&
                head[n].band.end == head->band.end;
    }
    if (alike) {
        mha__attend_soften(&group->all, all, head->class == MHA__TILE_MIXED);
        return;
    }
    for (int64_t n = 0; n < group->heads; n++) {
        if (head[n].class != MHA__TILE_SKIP) {
            mha__attend_soften(&head[n].task, &head[n].band, head[n].class == MHA__TILE_MIXED);
        }
    }
}

/* P of a head is 0 in those columns of `all` that it may not see: its softmax did not go there. */
static void clear_beside(const struct mha__attend_head *head, const struct mha__attend_band *all)
{
    const int64_t ld = head->task.means->plan.score_ld;
    const bool skip = head->class == MHA__TILE_SKIP;
    const int64_t begin = skip ? all->end : head->band.first / 64 * 64;
    const int64_t end = skip ? all->end : head->band.end;
    for (int64_t r = 0; r < head->task.rows; r++) {
        float *p = head->task.scores + r * ld;
        if (all->first < begin) {
            memset(p + all->first, 0, (size_t)(begin - all->first) * sizeof *p);
        }
        if (end < all->end) {
            memset(p + end, 0, (size_t)(all->end - end) * sizeof *p);
        }
    }
}

/* `count` rows of values of a tile with 0 for what is not finite, and a note if there is any: rows that may see
 * it get it in attend_rows.c. */
static const float *
only_finite(const struct mha__attend_task *t, int64_t tile, const float *from, int64_t count)
{
    const int64_t Dv = t->problem->Dv;
    for (int64_t c = 0; c < count; c++) {
        const float *row = from + c * t->values.token;
        bool finite = true;
        for (int64_t d = 0; d < Dv; d++) {
            t->finite_values[c * Dv + d] = isfinite(row[d]) ? row[d] : 0.0f;
            finite = finite && isfinite(row[d]);
        }
        if (!finite) {
            mha__pack_note(t->problem, t->means, t->b, t->g, tile);
        }
    }
    return t->finite_values;
}

static void attend_keys(struct group *group, int64_t tile, bool careful)
{
    const struct mha__attend_task *t = &group->all;
    const struct mha__problem *p = t->problem;
    const struct mha__kernels *kernels = t->means->kernels;
    const int64_t ld = t->means->plan.score_ld;
    const int64_t j0 = tile * t->means->plan.key_tile;
    struct mha__attend_band all;
    if (!look_at_tile(group, tile, &all)) {
        return;
    }
    const int64_t keys = all.end - all.first;
    float *scores = t->scores + all.first;
    mha__profile_to(t->clock, MHA__PROFILE_SCORES);
    // S = Q K^T, Q already carries the scale                                  [rows, keys]
    kernels->few_dots(t->rows, keys, p->D, t->q, p->D,
                      mha__attend_given(t, &t->keys, j0 + all.first),
                      keys > 1 ? t->keys.token : p->D, scores, ld);
    for (int64_t n = 0; n < group->heads; n++) {
        const struct mha__attend_head *head = &group->head[n];
        if (head->class != MHA__TILE_SKIP) {
            mha__attend_score_options(&head->task, tile, &head->band);
        }
    }
    mha__profile_to(t->clock, MHA__PROFILE_SOFTMAX);
    soften_group(group, &all);
    mha__profile_to(t->clock, MHA__PROFILE_OTHER);
    if (!p->out.data) {
        return;
    }
    for (int64_t n = 0; n < group->heads; n++) {
        const struct mha__attend_head *head = &group->head[n];
        mha__attend_drop(&head->task, j0, &head->band);
        clear_beside(head, &all);
    }
    const float *values = mha__attend_given(t, &t->values, j0 + all.first);
    int64_t ldv = keys > 1 ? t->values.token : p->Dv;
    if (careful) {
        values = only_finite(t, tile, values, keys);
        ldv = p->Dv;
    }
    mha__profile_to(t->clock, MHA__PROFILE_VALUES);
    // O = O + P V                                                             [rows, Dv]
    kernels->few_product(t->rows, p->Dv, keys, scores, ld, values, ldv, true, t->o,
                         t->means->plan.values_ld);
    mha__profile_to(t->clock, MHA__PROFILE_OTHER);
}

static bool all_finite(const float *x, int64_t n)
{
    bool finite = true;
    for (int64_t i = 0; i < n; i++) {
        finite &= isfinite(x[i]) != 0;
    }
    return finite;
}

/*
 * Tiles first .. end-1. A value that is not finite leaves no O finite, whatever its weight (0 NaN is NaN): then
 * the chunk is done again with care. Finite values cost nothing and keep their bits.
 */
static void attend_tiles(struct group *group, int64_t first, int64_t end)
{
    const struct mha__attend_task *t = &group->all;
    const int64_t numbers = t->rows * t->means->plan.values_ld;
    for (int careful = 0; careful < 2; careful++) {
        memset(t->o, 0, (size_t)numbers * sizeof *t->o);
        for (int64_t r = 0; r < t->rows; r++) {
            t->row_max[r] = -INFINITY;
            t->row_sum[r] = t->p_ln_p[r] = 0.0f;
        }
        for (int64_t tile = first; tile < end; tile++) {
            attend_keys(group, tile, careful == 1);
        }
        if (all_finite(t->o, numbers)) {
            return;
        }
    }
}

static void finish_group(struct group *group)
{
    for (int64_t n = 0; n < group->heads; n++) {
        mha__attend_extra(&group->head[n].task);
        mha__attend_finish_rows(&group->head[n].task);
    }
}

static void keep_partial(const struct mha__attend_task *t, int64_t chunk)
{
    float *to = partial_of(t, chunk);
    const int64_t numbers = t->rows * t->means->plan.values_ld;
    memcpy(to, t->o, (size_t)numbers * sizeof *to);
    memcpy(to + numbers, t->row_max, (size_t)t->rows * sizeof *to);
    memcpy(to + numbers + t->rows, t->row_sum, (size_t)t->rows * sizeof *to);
    memcpy(to + numbers + 2 * t->rows, t->p_ln_p, (size_t)t->rows * sizeof *to);
}

/*
 * M = max_c m_c    l = sum_c w_c l_c    O = sum_c w_c O_c with w_c = exp(m_c - M), c in their order
 *
 * Where the maximum moves, ln p moves by m_c - M: sum p ln p = sum_c w_c (x_c + (m_c - M) l_c).
 */
static void merge_partials(const struct mha__attend_task *t)
{
    const struct mha__planner_plan *plan = &t->means->plan;
    const int64_t maxima = t->rows * plan->values_ld;
    const int64_t sums = maxima + t->rows;
    memset(t->o, 0, (size_t)maxima * sizeof *t->o);
    for (int64_t r = 0; r < t->rows; r++) {
        float m = -INFINITY;
        for (int64_t c = 0; c < plan->key_splits; c++) {
            const float other = partial_of(t, c)[maxima + r];
            m = other > m ? other : m;
        }
        const float base = m == -INFINITY ? 0.0f : m;
        float l = 0.0f;
        float p_ln_p = 0.0f;
        for (int64_t c = 0; c < plan->key_splits; c++) {
            const float *part = partial_of(t, c);
            if (part[sums + r] == 0.0f) {
                continue; // it saw nothing; a NaN it saw is in its sum
            }
            const float move = part[maxima + r] - base;
            const float weight = expf(move);
            l += weight * part[sums + r];
            // 0 selects 0: the move may be beyond float32
            p_ln_p +=
                weight == 0.0f ? 0.0f : weight * (part[sums + t->rows + r] + move * part[sums + r]);
            for (int64_t d = 0; d < t->problem->Dv; d++) {
                t->o[r * plan->values_ld + d] += weight * part[r * plan->values_ld + d];
            }
        }
        t->row_max[r] = m;
        t->row_sum[r] = l;
        t->p_ln_p[r] = p_ln_p;
    }
}

static void direct_task(void *arg, int64_t number, int64_t lane)
{
    const struct mha__attend_task *common = arg;
    const struct mha__problem *p = common->problem;
    const struct mha__planner_plan *plan = &common->means->plan;
    // a chunk of all heads, then the next: where a token has its heads side by side they share pages of memory
    const int64_t g = number % p->G;
    const int64_t chunk = number / p->G % plan->key_splits;
    const int64_t b = number / p->G / plan->key_splits;
    struct group group = {.all = *common};
    struct mha__attend_task *all = &group.all;
    all->b = b;
    all->g = g;
    all->clock = mha__profile_lane(common->means->executor.profile, lane);
    find_group(&group, common, lane);

    int64_t first = INT64_MAX;
    int64_t end = 0;
    for (int64_t n = 0; n < group.heads; n++) {
        int64_t from = 0;
        int64_t to = 0;
        mha__attend_begin_rows(&group.head[n].task, &from, &to);
        first = from < first ? from : first;
        end = to > end ? to : end;
    }
    // the tiles of this chunk that some row may see
    int64_t tile = chunk * plan->split_tiles;
    int64_t last = tile + plan->split_tiles;
    tile = first < end && first / plan->key_tile > tile ? first / plan->key_tile : tile;
    last = (end + plan->key_tile - 1) / plan->key_tile < last
               ? (end + plan->key_tile - 1) / plan->key_tile
               : last;
    mha__profile_to(all->clock, MHA__PROFILE_PACKING);
    for (int64_t n = 0; (tile < last || p->extra > 0) && n < group.heads; n++) {
        mha__attend_load_queries(&group.head[n].task);
    }
    mha__profile_to(all->clock, MHA__PROFILE_OTHER);
    attend_tiles(&group, tile, last);
    if (plan->key_splits > 1) {
        _Atomic int32_t *arrived = (_Atomic int32_t *)mha__piece(common->means, plan->arrived);
        keep_partial(all, chunk);
        // acquire what the others kept, release what this one kept
        if (atomic_fetch_add_explicit(&arrived[b * p->G + g], 1, memory_order_acq_rel) + 1 <
            plan->key_splits) {
            return;
        }
        merge_partials(all);
    }
    finish_group(&group);
}

int32_t mha__attend_direct(const struct mha__attend_task *common, mha_error *err)
{
    const struct mha__means *means = common->means;
    struct mha__attend_task shared = *common;
    if (means->plan.key_splits > 1) {
        memset(mha__piece(means, means->plan.arrived), 0,
               (size_t)(common->problem->B * common->problem->G) * sizeof(int32_t));
    }
    return mha__parallel_for(&means->executor, means->plan.tasks, direct_task, &shared, err);
}
