/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/attend.h"
#include "attention/pack.h"
#include "platform/sizes.h"

#include <math.h>
#include <string.h>

/*
 * The transposed form of the loop over key tiles: S^T = K Q^T, P^T down its columns, O^T = V^T P^T. Queries lie
 * side by side, query_panel of them, so maximum, sum and masks go number by number, without a sum across a
 * vector, and P^T is already the operand of the second product. A panel of queries goes through all of a key tile,
 * clipped to what its rows may see, while its scores stay in the first-level cache.
 *
 * It has the masks, softcap, sinks, gates, rotary positions, log-sum-exp and maximum. What looks at rows of scores or
 * weights takes attend_tile.c: see by_rows of planner.h.
 */

/* Some queries of a task, n with those that pad the last vector. */
struct panel {
    int64_t r0, rows, n;
    float *q; /* [D, n] */
    float *o; /* [values_ld, n] */
};

enum { QUERIES_MOST = 64 }; /* of a panel: a bit each in a word */

static int64_t panel_count(const struct mha__attend_task *t)
{
    return mha__tiles_of(t->rows, t->means->kernels->query_panel);
}

/* Whole panels and what is left. If that is one vector, too few sums to keep the multiply-adds busy (8 queries take 0.6 of
 * the time of 24), the panel before it gives it one of its own. */
static struct panel panel_at(const struct mha__attend_task *t, int64_t i)
{
    const struct mha__kernels *kernels = t->means->kernels;
    const struct mha__planner_plan *plan = &t->means->plan;
    const int64_t last = panel_count(t) - 1;
    const int64_t step = kernels->query_step;
    const bool gives = last > 0 && t->rows - last * kernels->query_panel <= step;
    struct panel panel = {.r0 = i * kernels->query_panel, .rows = kernels->query_panel};
    if (gives && i == last) {
        panel.r0 -= step;
    }
    if (gives && i == last - 1) {
        panel.rows -= step;
    }
    panel.rows = mha__smaller(t->rows - panel.r0, panel.rows);
    panel.n = mha__tiles_of(panel.rows, step) * step;
    panel.q = t->query_panels + panel.r0 * t->problem->D;
    panel.o = t->out_panels + panel.r0 * plan->values_ld;
    return panel;
}

/* The queries side by side, scaled; zeros where the last vector has none. */
static void load_panel(const struct mha__attend_task *t, const struct panel *panel)
{
    const struct mha__problem *p = t->problem;
    const struct mha__kernels *kernels = t->means->kernels;
    const struct mha__input *x = &t->queries;
    const bool is_loaded = p->rotary_size > 0; // by mha__attend_load_queries
    const float *from =
        is_loaded ? t->q + panel->r0 * p->D
                  : x->data + t->b * x->batch + (t->i0 + panel->r0) * x->token + t->h * x->head;
    if (panel->rows < panel->n) {
        memset(panel->q, 0, (size_t)(panel->n * p->D) * sizeof *panel->q);
    }
    kernels->transpose(panel->q, panel->n, from, is_loaded ? p->D : x->token, panel->rows, p->D);
    if (!is_loaded && t->left_scale == 1.0f) {
        kernels->scaled_copy(panel->q, panel->q, panel->n * p->D, t->scale);
    }
    for (int64_t r = panel->r0 + panel->rows; r < panel->r0 + panel->n; r++) {
        t->row_max[r] = -INFINITY;
        t->row_sum[r] = 0.0f;
    }
}

/* A packed tile of keys and values, the latter all finite. */
struct tile {
    int64_t number;
    const float *keys, *values;
};

/*
 * Few keys are not packed before all attention but by the lane that needs them, head after head: they are still in
 * its cache when they are used, and nothing is written to memory for others to read. It keeps them for its next
 * tasks, in the slot of their tile; with several lanes some are packed by each. What is not finite in the values
 * is noted: rows that may see it get it in attend_rows.c.
 */
static void pack_tile(const struct mha__attend_task *t, int64_t number, float *keys, float *values)
{
    const struct mha__problem *p = t->problem;
    const struct mha__planner_plan *plan = &t->means->plan;
    const struct mha__kernels *kernels = t->means->kernels;
    const int64_t j0 = number * plan->key_tile;
    const int64_t count = mha__attend_tile_keys(t, number);
    mha__profile_to(t->clock, MHA__PROFILE_PACKING);
    kernels->transpose_panels(keys, kernels->row_panel * p->D, mha__attend_given(t, &t->keys, j0),
                              t->keys.token, count, p->D);
    if (p->out.data &&
        !kernels->panel_copy(values, plan->value_panel, plan->value_keys * plan->value_panel,
                             mha__attend_given(t, &t->values, j0), t->values.token, count, p->Dv)) {
        mha__pack_note(p, t->means, t->b, t->g, number);
        mha__attend_keep_finite(t, values, values);
    }
    mha__profile_to(t->clock, MHA__PROFILE_OTHER);
}

static bool is_packed(const struct mha__attend_task *t, int64_t number)
{
    return t->slots[number] == mha__pack_tile_number(t->problem, t->means, t->b, t->g, number);
}

static struct tile find_tile(const struct mha__attend_task *t, int64_t number)
{
    const struct mha__problem *p = t->problem;
    const struct mha__planner_plan *plan = &t->means->plan;
    if (plan->key_slots == 0) {
        const float *values = p->out.data ? mha__attend_tile_values(t, number) : NULL;
        return (struct tile){number, mha__pack_key_tile(p, t->means, t->b, t->g, number), values};
    }
    float *keys = t->packed_keys + number * plan->key_tile * p->D;
    float *values = t->finite_values + number * plan->value_keys * plan->values_ld;
    if (!is_packed(t, number)) {
        pack_tile(t, number, keys, values);
        t->slots[number] = mha__pack_tile_number(p, t->means, t->b, t->g, number);
    }
    return (struct tile){number, keys, values};
}

/* Part i of `count` of the rows of a tile is asked for, if the lane will have to pack it. */
static void ask_ahead(const struct mha__attend_task *t, int64_t number, int64_t i, int64_t count)
{
    if (t->means->plan.key_slots == 0 || is_packed(t, number)) {
        return;
    }
    const int64_t j0 = number * t->means->plan.key_tile;
    const int64_t keys = mha__attend_tile_keys(t, number);
    for (int64_t j = keys * i / count; j < keys * (i + 1) / count; j++) {
        mha__prefetch(mha__attend_given(t, &t->keys, j0 + j), t->problem->D);
        if (t->problem->out.data) {
            mha__prefetch(mha__attend_given(t, &t->values, j0 + j), t->problem->Dv);
        }
    }
}

/* Row r of a 64 x 64 matrix of bits becomes its column r: blocks of 32, 16, … 1 change places across the
 * diagonal (Warren, Hacker's Delight, 7-3). */
static void transpose_bits(uint64_t bits[64])
{
    uint64_t low = 0xffffffff;
    for (int size = 32; size > 0; size /= 2, low ^= low << size) {
        for (int r = 0; r < 64; r = ((r | size) + 1) & ~size) {
            const uint64_t swap = (bits[r] >> size ^ bits[r | size]) & low;
            bits[r] ^= swap << size;
            bits[r | size] ^= swap;
        }
    }
}

/* -infinity where the bits of a mixed band say hidden; the maximum of what is left. s begins at band->first. */
static void hide(const struct mha__attend_task *t,
                 const struct panel *panel,
                 const struct mha__attend_band *band,
                 float *s,
                 float *most)
{
    const int64_t words = t->means->plan.key_tile / 64;
    for (int64_t c = band->first, end; c < band->end; c = end) {
        end = mha__smaller((c / 64 + 1) * 64, band->end);
        uint64_t bits[64] = {0}; // of a query, then of a key
        for (int64_t r = 0; r < panel->rows; r++) {
            bits[r] = t->visible[(panel->r0 + r) * words + c / 64];
        }
        transpose_bits(bits);
        t->means->kernels->transposed_hide(end - c, panel->n, bits + c % 64,
                                           s + (c - band->first) * panel->n, most);
    }
}

/* Scores of columns first .. end-1 of a tile, and their maxima; s is where column `first` belongs. */
static void score_columns(const struct mha__attend_task *t,
                          const struct tile *tile,
                          const struct panel *panel,
                          int64_t first,
                          int64_t end,
                          float *s,
                          float *most)
{
    const struct mha__problem *p = t->problem;
    const struct mha__kernels *kernels = t->means->kernels;
    const struct mha__attend_band band = {
        .r0 = panel->r0, .rows = panel->rows, .first = first, .end = end};
    const int64_t count = (end - first) * panel->n;
    const enum mha__tile_class class = mha__attend_classify(t, tile->number, &band);
    if (class == MHA__TILE_SKIP) {
        for (int64_t i = 0; i < count; i++) {
            s[i] = -INFINITY;
        }
        return;
    }
    const bool changes = t->left_scale != 1.0f || t->softcap > 0.0f;
    float unused[QUERIES_MOST] = {0};
    // S^T = K Q^T, Q already carries the scale                                   [columns, n]
    kernels->transposed_scores(end - first, panel->n, p->D,
                               tile->keys + mha__pack_key_at(p, &t->means->plan, first, 0),
                               panel->q, s, changes || class == MHA__TILE_MIXED ? unused : most);
    if (t->left_scale != 1.0f) {
        kernels->scaled_copy(s, s, count, t->left_scale);
    }
    if (t->softcap > 0.0f) {
        kernels->softcap_row(s, count, t->softcap);
    }
    if (class == MHA__TILE_MIXED) {
        hide(t, panel, &band, s, most);
    } else if (changes) {
        kernels->transposed_hide(end - first, panel->n, NULL, s, most);
    }
}

/*
 * The columns of a band that all its rows see by position, in whole words of bits where they are not all:
 * these are not looked at one by one.
 */
static void common_columns(const struct mha__attend_task *t,
                           int64_t j0,
                           const struct mha__attend_band *band,
                           int64_t *first,
                           int64_t *end)
{
    int64_t lo = band->first;
    int64_t hi = band->end;
    for (int64_t r = band->r0; r < band->r0 + band->rows; r++) {
        lo = mha__larger(lo, t->spans[r].lo - j0);
        hi = mha__smaller(hi, t->spans[r].hi - j0);
    }
    *first = mha__tiles_of(lo, 64) * 64;
    *end = hi == band->end ? hi : hi / 64 * 64;
    if (*first >= *end) {
        *first = *end = band->end;
    }
}

/* One panel and one tile; false: nothing was to be seen. */
static bool attend_panel(const struct mha__attend_task *t,
                         const struct tile *tile,
                         const struct panel *panel,
                         bool is_begun)
{
    const struct mha__planner_plan *plan = &t->means->plan;
    const struct mha__kernels *kernels = t->means->kernels;
    const struct mha__attend_band band = mha__attend_band(t, tile->number, panel->r0, panel->rows);
    if (band.first == band.end) {
        return false;
    }
    mha__profile_to(t->clock, MHA__PROFILE_SCORES);
    float most[QUERIES_MOST];
    for (int64_t i = 0; i < panel->n; i++) {
        most[i] = -INFINITY;
    }
    int64_t cut[4] = {band.first, 0, 0, band.end};
    common_columns(t, tile->number * plan->key_tile, &band, &cut[1], &cut[2]);
    for (int part = 0; part < 3; part++) {
        if (cut[part] < cut[part + 1]) {
            score_columns(t, tile, panel, cut[part], cut[part + 1],
                          t->scores + (cut[part] - band.first) * panel->n, most);
        }
    }
    // (m, l, P^T, shrink) <- online softmax of S^T
    mha__profile_to(t->clock, MHA__PROFILE_SOFTMAX);
    kernels->transposed_softmax(band.end - band.first, panel->n, t->scores, most,
                                t->row_max + panel->r0, t->row_sum + panel->r0,
                                t->shrink + panel->r0);
    mha__profile_to(t->clock, MHA__PROFILE_VALUES);
    if (t->problem->out.data) {
        // O^T = O^T diag(shrink) + V_j^T P^T, the first tile O^T = V_j^T P^T            [values_ld, n]
        kernels->transposed_values(band.end - band.first, panel->n, plan->values_ld,
                                   tile->values + mha__pack_value_at(plan, band.first, 0),
                                   plan->value_panel * plan->value_keys, t->scores,
                                   is_begun ? t->shrink + panel->r0 : NULL, panel->o);
    }
    mha__profile_to(t->clock, MHA__PROFILE_OTHER);
    return true;
}

void mha__attend_transposed(struct mha__attend_task *t, int64_t first, int64_t end)
{
    const int64_t count = panel_count(t);
    t->panels_begun = 0;
    mha__profile_to(t->clock, MHA__PROFILE_PACKING);
    for (int64_t i = 0; first < end && i < count; i++) {
        const struct panel panel = panel_at(t, i);
        load_panel(t, &panel);
    }
    mha__profile_to(t->clock, MHA__PROFILE_OTHER);
    for (int64_t number = first; number < end; number++) {
        const struct tile tile = find_tile(t, number);
        for (int64_t i = 0; i < count; i++) {
            const struct panel panel = panel_at(t, i);
            if (number + 1 < end) {
                ask_ahead(t, number + 1, i, count);
            }
            const bool saw = attend_panel(t, &tile, &panel, t->panels_begun >> i & 1);
            t->panels_begun |= (uint64_t)saw << i;
        }
    }
}

/* Panel by panel, in pieces that fit the ways of a cache where rows lie a power of two apart. */
void mha__attend_store_transposed(const struct mha__attend_task *t)
{
    enum { PIECE = 8 };
    const struct mha__kernels *kernels = t->means->kernels;
    const int64_t Dv = t->problem->Dv;
    for (int64_t i = 0; i < panel_count(t); i++) {
        const struct panel panel = panel_at(t, i);
        float *out = t->out.data + t->b * t->out.batch + (t->i0 + panel.r0) * t->out.token +
                     t->h * t->out.head;
        if (t->gate == 0.0f || (t->panels_begun >> i & 1) == 0) {
            for (int64_t r = 0; r < panel.rows; r++) {
                memset(out + r * t->out.token, 0, (size_t)Dv * sizeof *out); // selected, NaN or not
            }
            continue;
        }
        float factor[QUERIES_MOST] = {0};
        for (int64_t r = 0; r < panel.rows; r++) {
            mha__prefetch_to_write(out + r * t->out.token, Dv);
            factor[r] = mha__attend_factor(t, panel.r0 + r) * t->gate;
        }
        // O^T = O^T diag(factor), no keys
        kernels->transposed_values(0, panel.n, t->means->plan.values_ld, panel.o, 0, panel.o,
                                   factor, panel.o);
        for (int64_t r = 0; r < panel.rows; r += PIECE) {
            kernels->transpose(out + r * t->out.token, t->out.token, panel.o + r, panel.n, Dv,
                               mha__smaller(PIECE, panel.rows - r));
        }
    }
}
