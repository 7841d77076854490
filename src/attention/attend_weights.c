/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/attend.h"
#include "attention/dropout.h"

#include <math.h>
#include <string.h>

/*
 * The weights of the rows of a task, S' = S + extra columns: kept tile by tile against the maximum known
 * then, normalised when the rows are finished, then handed to every output that is made of them. They lie in
 * the weights output where there is one, else in the lane's block.
 */

bool mha__attend_wants_weights(const struct mha__problem *p)
{
    return p->weights.data || p->weights_dropped.data || p->weights_mean.data || p->key_mass.data ||
           p->key_mass_total.data || p->weights_callback || p->top > 0;
}

/* The weights of row r of the task, [S + extra]. */
static float *weights_row(const struct mha__attend_task *t, int64_t r)
{
    return t->problem->weights.data ? mha__attend_row(t, &t->problem->weights, r)
                                    : t->block + r * t->means->plan.block_ld;
}

void mha__attend_keep_weights(const struct mha__attend_task *t,
                              int64_t slot,
                              int64_t at,
                              const struct mha__attend_band *band,
                              int64_t count)
{
    const struct mha__planner_plan *plan = &t->means->plan;
    const int64_t first = band->first;
    const int64_t end = band->end;
    for (int64_t r = band->r0; r < band->r0 + band->rows; r++) {
        float *row = weights_row(t, r) + at;
        memset(row, 0, (size_t)first * sizeof *row);
        memcpy(row + first, t->scores + (r - band->r0) * plan->score_ld + first,
               (size_t)(end - first) * sizeof *row);
        memset(row + end, 0, (size_t)(count - end) * sizeof *row);
        t->maxima[slot * plan->query_tile + r] = t->row_max[r];
    }
}

/* A row with a NaN or +infinity score: NaN at the keys it may see, 0 at the others. */
static void poison(const struct mha__attend_task *t, int64_t r)
{
    const struct mha__planner_plan *plan = &t->means->plan;
    float *row = weights_row(t, r);
    for (int64_t tile = 0; tile < plan->key_tiles; tile++) {
        const struct mha__attend_band band = mha__attend_band(t, tile, 0, t->rows);
        const enum mha__tile_class class = mha__attend_classify(t, tile, &band);
        for (int64_t c = band.first; c < band.end; c++) {
            if (mha__attend_sees(t, class, r, c)) {
                row[tile * plan->key_tile + c] = NAN;
            }
        }
    }
    for (int64_t e = 0; e < t->problem->extra; e++) {
        row[t->problem->S + e] = NAN;
    }
}

/* w = p exp(m_then - m) factor, tile by tile; the extra columns are the last slot. */
static void normalise(const struct mha__attend_task *t)
{
    const struct mha__planner_plan *plan = &t->means->plan;
    for (int64_t r = 0; r < t->rows; r++) {
        const float m = t->row_max[r];
        if (isnan(t->row_factor[r])) {
            poison(t, r);
            continue;
        }
        float *row = weights_row(t, r);
        const int64_t slots = plan->key_tiles + (t->problem->extra > 0);
        for (int64_t slot = 0; slot < slots && m != -INFINITY; slot++) {
            const bool extra = slot == plan->key_tiles;
            const float then = t->maxima[slot * plan->query_tile + r];
            const float factor = (then == m ? 1.0f : expf(then - m)) * t->row_factor[r];
            float *part = row + (extra ? t->problem->S : slot * plan->key_tile);
            t->means->kernels->scaled_copy(
                part, part, extra ? t->problem->extra : mha__attend_tile_keys(t, slot), factor);
        }
    }
}

static void give_dropped(const struct mha__attend_task *t, int64_t columns)
{
    const struct mha__problem *p = t->problem;
    const float factor = p->dropout > 0.0 ? mha__dropout_factor(p) : 1.0f;
    for (int64_t r = 0; r < t->rows; r++) {
        float *to = mha__attend_row(t, &p->weights_dropped, r);
        t->means->kernels->scaled_copy(to, weights_row(t, r), columns, factor);
        if (p->dropout > 0.0) {
            mha__dropout_row(p, t->b, t->h, t->i0 + r, 0, columns, to);
        }
    }
}

/* The heads come one after another: the first stores, the others add, the last divides. */
static void give_mean(const struct mha__attend_task *t, int64_t columns)
{
    const struct mha__problem *p = t->problem;
    for (int64_t r = 0; r < t->rows; r++) {
        float *to = p->weights_mean.data + t->b * p->weights_mean.stride[0] +
                    (t->i0 + r) * p->weights_mean.stride[2];
        const float *row = weights_row(t, r);
        if (t->h == 0) {
            memcpy(to, row, (size_t)columns * sizeof *to);
        } else {
            t->means->kernels->add_row(to, row, columns);
        }
        if (t->h == p->H - 1) {
            t->means->kernels->scaled_copy(to, to, columns, 1.0f / (float)p->H);
        }
    }
}

static void give_mass(const struct mha__attend_task *t, int64_t columns)
{
    float *mass = (float *)mha__piece(t->means, t->means->plan.masses) + t->number * columns;
    memset(mass, 0, (size_t)columns * sizeof *mass);
    for (int64_t r = 0; r < t->rows; r++) {
        t->means->kernels->add_row(mass, weights_row(t, r), columns);
    }
}

void mha__attend_reduce_mass(const struct mha__problem *p, const struct mha__means *m, int64_t b)
{
    const int64_t columns = p->S + p->extra;
    const int64_t tiles = m->plan.query_tiles;
    const float *masses = mha__piece(m, m->plan.masses);
    float *total =
        p->key_mass_total.data ? p->key_mass_total.data + b * p->key_mass_total.stride[0] : NULL;
    for (int64_t h = 0; h < p->H; h++) {
        float *head = p->key_mass.data
                          ? p->key_mass.data + b * p->key_mass.stride[0] + h * p->key_mass.stride[1]
                          : NULL;
        for (int64_t tile = 0; tile < tiles; tile++) {
            const float *mass = masses + ((b * p->H + h) * tiles + tile) * columns;
            for (int64_t j = 0; head && j < columns; j++) {
                head[j] = tile == 0 ? mass[j] : head[j] + mass[j];
            }
            for (int64_t j = 0; total && j < columns; j++) {
                total[j] = tile == 0 && h == 0 ? mass[j] : total[j] + mass[j];
            }
        }
    }
}

/* Puts (j, w) into a list of `top` that falls, behind what is equal. */
static void insert(int64_t *keys, float *weights, int64_t top, int64_t *found, int64_t j, float w)
{
    int64_t at = *found < top ? (*found)++ : top - 1;
    for (; at > 0 && weights[at - 1] < w; at--) {
        keys[at] = keys[at - 1];
        weights[at] = weights[at - 1];
    }
    keys[at] = j;
    weights[at] = w;
}

/* Keys that are visible but whose weight has vanished fill the places that are left, lowest first. */
static void fill_with_zeros(const struct mha__attend_task *t,
                            int64_t r,
                            int64_t *keys,
                            float *weights,
                            int64_t top,
                            int64_t found)
{
    const struct mha__planner_plan *plan = &t->means->plan;
    const float *row = weights_row(t, r);
    for (int64_t tile = 0; tile < plan->key_tiles && found < top; tile++) {
        const struct mha__attend_band band = mha__attend_band(t, tile, 0, t->rows);
        const enum mha__tile_class class = mha__attend_classify(t, tile, &band);
        for (int64_t c = band.first; c < band.end && found < top; c++) {
            const int64_t j = tile * plan->key_tile + c;
            if (row[j] == 0.0f && mha__attend_sees(t, class, r, c)) {
                insert(keys, weights, top, &found, j, 0.0f);
            }
        }
    }
    const bool real = t->i0 + r < t->row_rules.queries;
    for (int64_t e = 0; real && e < t->problem->extra && found < top; e++) {
        if (row[t->problem->S + e] == 0.0f) {
            insert(keys, weights, top, &found, t->problem->S + e, 0.0f);
        }
    }
    for (; found < top; found++) {
        keys[found] = -1;
        weights[found] = 0.0f;
    }
}

static void give_top(const struct mha__attend_task *t, int64_t columns)
{
    const struct mha__problem *p = t->problem;
    float *scratch = t->block + t->means->plan.query_tile * t->means->plan.block_ld;
    for (int64_t r = 0; r < t->rows; r++) {
        const int64_t at = ((t->b * p->H + t->h) * p->T + t->i0 + r) * p->top;
        const float *row = weights_row(t, r);
        int64_t *keys = p->top_keys + at;
        float *weights = p->top_weights ? p->top_weights + at : scratch;
        int64_t found = 0;
        for (int64_t j = 0; j < columns; j++) {
            if (row[j] > 0.0f && (found < p->top || row[j] > weights[p->top - 1])) {
                insert(keys, weights, p->top, &found, j, row[j]);
            }
        }
        if (found < p->top) {
            fill_with_zeros(t, r, keys, weights, p->top, found);
        }
    }
}

static void give_tiles(const struct mha__attend_task *t, int64_t columns)
{
    const struct mha__problem *p = t->problem;
    const int64_t ld = p->weights.data ? p->weights.stride[2] : t->means->plan.block_ld;
    for (int64_t j = 0; j < columns; j += t->means->plan.key_tile) {
        const int64_t n =
            columns - j < t->means->plan.key_tile ? columns - j : t->means->plan.key_tile;
        p->weights_callback(p->weights_user, t->b, t->h, t->i0, t->rows, j, n,
                            weights_row(t, 0) + j, ld);
    }
}

void mha__attend_finish_weights(const struct mha__attend_task *t)
{
    const struct mha__problem *p = t->problem;
    const int64_t columns = p->S + p->extra;
    normalise(t);
    if (p->weights_dropped.data) {
        give_dropped(t, columns);
    }
    if (p->weights_mean.data) {
        give_mean(t, columns);
    }
    if (p->key_mass.data || p->key_mass_total.data) {
        give_mass(t, columns);
    }
    if (p->top > 0) {
        give_top(t, columns);
    }
    if (p->weights_callback) {
        give_tiles(t, columns);
    }
}
