/* SPDX-License-Identifier: Apache-2.0 */
/* The second half of sweep.h: from a case to a trial. */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "sweep.h"
#include "sweep_layout.h"

static int64_t at_least_one(int64_t n)
{
    return n > 0 ? n : 1;
}

static void set_projections(const sweep_case *c, trial *p, draw *d)
{
    /* all off, all on with biases, all on without, inputs only, each by chance */
    for (int32_t side = 0; side < 4; ++side) {
        int on = 0, bias = 0;
        switch (c->level[SWEEP_PROJECTIONS]) {
        case 1:
            on = bias = 1;
            break;
        case 2:
            on = 1;
            break;
        case 3:
            on = bias = side != MHA_PROJECTION_OUT;
            break;
        case 4:
            on = draw_chance(d, 0.5);
            bias = draw_chance(d, 0.5);
            break;
        default:
            break;
        }
        if (on) {
            trial_project(p, side, draw_int(d, 1, 70), bias);
        }
    }
}

static void set_sizes(const sweep_case *c, trial *p, draw *d)
{
    static const int64_t groups[] = {1, 2, 2, 1, 3, 3}; /* G of each level of the heads */
    const int64_t D = sweep_size(SWEEP_D, c->level[SWEEP_D]);
    const int64_t Dv = sweep_size(SWEEP_DV, c->level[SWEEP_DV]);
    trial_begin(p,
                sweep_size(SWEEP_B, c->level[SWEEP_B]),
                sweep_size(SWEEP_T, c->level[SWEEP_T]),
                sweep_size(SWEEP_S, c->level[SWEEP_S]),
                sweep_size(SWEEP_HEADS, c->level[SWEEP_HEADS]),
                groups[c->level[SWEEP_HEADS]],
                D,
                Dv ? Dv : D);
    set_projections(c, p, d);
}

static void set_rotary(const sweep_case *c, trial *p, draw *d)
{
    const int level = p->D < 2 ? 0 : c->level[SWEEP_ROTARY];
    if (level == 0) {
        return;
    }
    /* all of the head in halves, part of it in neighbours, and both again by ids */
    p->rotary_pairing = level % 2 ? MHA_ROTARY_HALVES : MHA_ROTARY_NEIGHBOURS;
    p->rotary_size = level % 2 ? p->D / 2 * 2 : 2 * draw_int(d, 1, p->D / 2);
    p->rotary_base = level == 2 ? 500.0 : 0.0;
    if (level >= 3) {
        p->id_batch = level == 3 ? 1 : at_least_one(p->B);
        p->query_ids = calloc((size_t)(p->id_batch * p->T) + 1, sizeof *p->query_ids);
        p->key_ids = calloc((size_t)(p->id_batch * p->S) + 1, sizeof *p->key_ids);
        if (!p->query_ids || !p->key_ids) {
            abort();
        }
        for (int64_t n = 0; n < p->id_batch * p->T; ++n) {
            p->query_ids[n] = draw_int(d, -50, 4000);
        }
        for (int64_t n = 0; n < p->id_batch * p->S; ++n) {
            p->key_ids[n] = draw_int(d, -50, 4000);
        }
    }
}

static void set_scores(const sweep_case *c, trial *p, draw *d)
{
    static const float scales[4] = {0, 0, -0.3f, 1.7f};
    const int scale = c->level[SWEEP_SCALE];
    p->scale_is_set = scale > 0;
    p->scale = scale < 4 ? scales[scale] : 0.1f;
    p->head_scales_are_set = scale == 4;
    p->softcap = c->level[SWEEP_SOFTCAP] == 1 ? 5.0f : 0.0f;
    p->head_softcaps_are_set = c->level[SWEEP_SOFTCAP] == 2;
    for (int64_t h = 0; h < p->H; ++h) {
        static const float head_scales[5] = {0.2f, -1.5f, 0, 2.5f, -0.05f};
        p->head_scales[h] = head_scales[h % 5];
        p->head_softcaps[h] = (float)(h % 3) * 15.0f; /* 0 = none */
        p->slopes[h] = draw_float(d, -0.2f, 0.7f);
    }
    p->sinks = c->level[SWEEP_SINKS];
    p->gates = c->level[SWEEP_GATES] > 0;
    p->bias_kv = c->level[SWEEP_EXTRA_KEYS] & 1;
    p->zero_key = c->level[SWEEP_EXTRA_KEYS] >> 1;
    p->alibi = c->level[SWEEP_ALIBI] > 0;
    p->slopes_are_set = c->level[SWEEP_ALIBI] == 2;
    p->score_callback = (callback_kind)c->level[SWEEP_CALLBACK];
    set_rotary(c, p, d);
}

static void pack(trial *p, draw *d)
{
    p->packed = draw_int(d, 1, 5);
    p->query_offsets[0] = p->key_offsets[0] = 0;
    for (int64_t s = 1; s <= p->packed; ++s) {
        p->query_offsets[s] = draw_int(d, p->query_offsets[s - 1], p->T);
        p->key_offsets[s] = draw_int(d, p->key_offsets[s - 1], p->S);
    }
    if (draw_chance(d, 0.5)) { /* no padding behind them */
        p->query_offsets[p->packed] = p->T;
        p->key_offsets[p->packed] = p->S;
    }
}

static void set_positions(const sweep_case *c, trial *p, draw *d)
{
    static const int64_t windows[8][2] = {
        {-1, -1}, {0, 0}, {3, 0}, {-1, 5}, {7, -1}, {100, 100}, {40, 2}, {-1, -1}};
    const int packed = c->level[SWEEP_B] == 4;
    const int64_t batch = at_least_one(p->B);
    const int64_t rows = packed ? TRIAL_BATCH : batch;
    p->causal = c->level[SWEEP_CAUSAL] == 1;
    p->head_causal_is_set = c->level[SWEEP_CAUSAL] == 2;
    p->left = windows[c->level[SWEEP_WINDOW]][0];
    p->right = windows[c->level[SWEEP_WINDOW]][1];
    p->head_windows_are_set = c->level[SWEEP_WINDOW] == 7;
    for (int64_t h = 0; h < p->H; ++h) {
        p->head_causal[h] = draw_chance(d, 0.5);
        p->head_left[h] = draw_chance(d, 0.3) ? -1 : draw_int(d, 0, 70);
        p->head_right[h] = draw_chance(d, 0.3) ? -1 : draw_int(d, 0, 20);
    }
    if (packed) {
        pack(p, d);
    }
    /* unset, top left, bottom right, explicit for each batch row (sequence), explicit for all */
    p->alignment = c->level[SWEEP_ALIGNMENT] > 3 ? 3 : c->level[SWEEP_ALIGNMENT];
    if (p->alignment == MHA_ALIGNMENT_EXPLICIT) {
        p->offset_batch = c->level[SWEEP_ALIGNMENT] != 3 ? 1 : packed ? p->packed : batch;
    }
    if (c->level[SWEEP_KEY_LENGTHS] && !packed) {
        p->key_batch = c->level[SWEEP_KEY_LENGTHS] == 1 ? batch : 1;
    }
    if (c->level[SWEEP_QUERY_LENGTHS] && !packed) {
        p->query_batch = c->level[SWEEP_QUERY_LENGTHS] == 1 ? batch : 1;
    }
    for (int64_t b = 0; b < rows; ++b) {
        p->offsets[b] = draw_int(d, -5, p->S + 3);
        p->key_lengths[b] = draw_int(d, 0, p->S);
        p->query_lengths[b] = draw_int(d, 0, p->T);
    }
}

static int64_t *whole_numbers(int64_t count)
{
    int64_t *x = calloc((size_t)count + 1, sizeof *x);
    if (!x) {
        abort();
    }
    return x;
}

static void set_ranges(const sweep_case *c, trial *p, draw *d)
{
    if (c->level[SWEEP_RANGES] == 0) {
        return;
    }
    p->range_batch = c->level[SWEEP_RANGES] == 1 ? at_least_one(p->B) : 1;
    p->range_lo = whole_numbers(p->range_batch * p->T);
    p->range_hi = whole_numbers(p->range_batch * p->T);
    for (int64_t n = 0; n < p->range_batch * p->T; ++n) {
        p->range_lo[n] = draw_chance(d, 0.4) ? 0 : draw_int(d, 0, p->S);
        p->range_hi[n] = draw_chance(d, 0.4) ? p->S + 2 : draw_int(d, 0, p->S);
    }
}

/* Ids in runs, or (level 3) each by chance. */
static void draw_segments(const sweep_case *c, draw *d, int64_t *ids, int64_t count)
{
    int64_t id = 0;
    for (int64_t n = 0; n < count; ++n) {
        if (c->level[SWEEP_SEGMENTS] == 3) {
            id = draw_int(d, -1, 1);
        } else if (draw_chance(d, 0.04)) {
            ++id;
        }
        ids[n] = id;
    }
}

static void set_segments(const sweep_case *c, trial *p, draw *d)
{
    if (c->level[SWEEP_SEGMENTS] == 0) {
        return;
    }
    p->segment_batch = c->level[SWEEP_SEGMENTS] == 2 ? 1 : at_least_one(p->B);
    p->query_segments = whole_numbers(p->segment_batch * p->T);
    p->key_segments = whole_numbers(p->segment_batch * p->S);
    for (int64_t b = 0; b < p->segment_batch; ++b) {
        draw_segments(c, d, p->query_segments + b * p->T, p->T);
        draw_segments(c, d, p->key_segments + b * p->S, p->S);
    }
}

static void fill_mask(boolean_mask *m, draw *d, double p, int32_t flags)
{
    int64_t bytes = m->shape[0] * m->shape[1] * m->shape[2] * m->shape[3];
    draw_booleans(d, m->bytes, bytes, p);
    m->flags = flags;
}

static void add_key_mask(const sweep_case *c, trial *p, draw *d)
{
    const int64_t batch = at_least_one(p->B);
    switch (c->level[SWEEP_KEY_MASK]) {
    case 1:
        fill_mask(trial_add_mask(p, MASK_KEY, batch, 1, 1, p->S), d, 0.7, 0);
        break;
    case 2:
        fill_mask(trial_add_mask(p, MASK_KEY, 1, 1, 1, p->S), d, 0.3, MHA_MASK_INVERTED);
        break;
    case 3: {
        boolean_mask *m = trial_add_mask(p, MASK_KEY, batch, 1, 1, p->S);
        fill_mask(m, d, 0.8, 0);
        m->strides[0] = 0;
        break;
    }
    case 4:
        fill_mask(trial_add_mask(p, MASK_KEY, batch, 1, 1, p->S / 2), d, 0.8, 0);
        break;
    case 5:
        fill_mask(trial_add_mask(p, MASK_KEY, batch, 1, 1, p->S), d, 0.8, MHA_MASK_BITS);
        break;
    default:
        break;
    }
}

static void add_pair_mask(const sweep_case *c, trial *p, draw *d)
{
    const int64_t T = at_least_one(p->T);
    switch (c->level[SWEEP_PAIR_MASK]) {
    case 1:
        fill_mask(trial_add_mask(p, MASK_QUERY_KEY, 1, 1, T, p->S), d, 0.6, 0);
        break;
    case 2:
        fill_mask(trial_add_mask(p, MASK_QUERY_KEY, 1, 1, T, p->S), d, 0.03, 0);
        break;
    case 3:
        fill_mask(trial_add_mask(p, MASK_QUERY_KEY, 1, 1, 1, p->S), d, 0.5, MHA_MASK_INVERTED);
        break;
    case 4: { /* every second byte, rows three bytes apart */
        boolean_mask *m = trial_add_mask(p, MASK_QUERY_KEY, 1, 1, T, 2 * p->S + 3);
        fill_mask(m, d, 0.8, 0);
        m->shape[3] = p->S;
        m->strides[3] = 2;
        break;
    }
    case 5:
        fill_mask(trial_add_mask(p, MASK_QUERY_KEY, 1, 1, T, p->S),
                  d,
                  0.2,
                  MHA_MASK_BITS | MHA_MASK_INVERTED);
        break;
    default:
        break;
    }
}

static void add_full_mask(const sweep_case *c, trial *p, draw *d)
{
    const int64_t batch = at_least_one(p->B), T = at_least_one(p->T);
    switch (c->level[SWEEP_FULL_MASK]) {
    case 1:
        fill_mask(trial_add_mask(p, MASK_FULL, batch, p->H, T, p->S), d, 0.7, 0);
        break;
    case 2:
        fill_mask(trial_add_mask(p, MASK_FULL, 1, p->H, 1, p->S), d, 0.5, 0);
        break;
    case 3:
        fill_mask(trial_add_mask(p, MASK_FULL, batch, 1, T, p->S), d, 0.4, MHA_MASK_INVERTED);
        break;
    case 4:
        fill_mask(trial_add_mask(p, MASK_FULL, 1, 1, T, p->S / 2), d, 0.9, 0);
        break;
    case 5:
        fill_mask(trial_add_mask(p, MASK_FULL, batch, p->H, T, p->S), d, 0.8, MHA_MASK_BITS);
        break;
    default:
        break;
    }
}

/* ---- biases ---- */

static void add_bias(
    const sweep_case *c, trial *p, int64_t B, int64_t H, int64_t T, int64_t keys)
{
    const int64_t row = keys + 3;
    const int64_t shape[4] = {B, H, T, keys};
    /* contiguous; rows three numbers apart; the same row for every query */
    switch (c->level[SWEEP_BIAS_LAYOUT]) {
    case 1:
        trial_add_bias(p, shape, (int64_t[]){H * T * row + 5, T * row, row, 1});
        break;
    case 2:
        trial_add_bias(p, shape, (int64_t[]){H * keys, keys, 0, 1});
        break;
    default:
        trial_add_bias(p, shape, NULL);
        break;
    }
}

static void add_biases(const sweep_case *c, trial *p)
{
    const int64_t B = at_least_one(p->B), T = at_least_one(p->T);
    switch (c->level[SWEEP_BIAS_SHAPE]) {
    case 1:
        add_bias(c, p, 1, 1, T, p->S);
        break;
    case 2:
        add_bias(c, p, B, p->H, T, p->S);
        break;
    case 3:
        add_bias(c, p, B, 1, 1, p->S);
        break;
    case 4:
        add_bias(c, p, 1, p->H, T, p->S / 2);
        break;
    case 5:
        add_bias(c, p, 1, p->H, 1, p->S);
        add_bias(c, p, B, 1, T, p->S);
        break;
    case 6:
        add_bias(c, p, B, 1, T, p->S);
        add_bias(c, p, 1, p->H, T, p->S);
        add_bias(c, p, 1, 1, 1, p->S);
        add_bias(c, p, B, p->H, 1, p->S - (p->S > 3));
        break;
    default:
        break;
    }
}

/* Cells that are no ordinary numbers, in the first bias only: elsewhere sums of them would not be exact. */
static void mark_cells(const sweep_case *c, trial *p, draw *d)
{
    static const float large[3] = {-1e9f, -FLT_MAX, -1e4f};
    const int level = c->level[SWEEP_BIAS_CELLS];
    if (level == 0 || p->biases == 0) {
        return;
    }
    const tensor *bias = &p->additive[0];
    const int64_t elements = tensor_elements(bias), keys = bias->shape[3];
    for (int64_t n = 0; n < elements; ++n) {
        float *cell = tensor_element(bias, n);
        switch (level) {
        case 1: /* some hidden */
            *cell = draw_chance(d, 0.3) ? -INFINITY : *cell;
            break;
        case 2: /* some so low that they vanish beside the others */
            *cell = draw_chance(d, 0.4) ? large[draw_int(d, 0, 2)] : *cell;
            break;
        case 3: /* whole rows of one low number, or of -infinity, or ordinary */
            if (n / keys % 4 != 3) {
                *cell = (n / keys % 4) == 2 ? -INFINITY : large[n / keys % 4];
            }
            break;
        default: /* all of it */
            *cell = draw_chance(d, 0.7) ? -1e9f : draw_chance(d, 0.5) ? -FLT_MAX : -INFINITY;
            break;
        }
    }
}

/* ---- numbers ---- */

static void set_dropout(const sweep_case *c, trial *p, draw *d)
{
    static const double chances[5] = {0, 0.3, 0.6, 1, 0.1};
    const int64_t cells = p->B * p->H * p->T * p->S;
    p->dropout = chances[c->level[SWEEP_DROPOUT]];
    p->seed = draw_bits(d);
    if (c->level[SWEEP_DROPOUT] == 2) {
        p->keep = calloc((size_t)cells + 1, 1);
        if (!p->keep) {
            abort();
        }
        draw_booleans(d, p->keep, cells, 0.4);
    }
}

/* Numbers of ordinary size; scores of about +-90, where a naive exp overflows; large values. */
static void fill_numbers(const sweep_case *c, trial *p, draw *d)
{
    trial_fill(p, d, 1.0f);
    mark_cells(c, p, d);
    for (int64_t h = 0; h < p->H && c->level[SWEEP_GATES] == 2; ++h) {
        if (h % 2 == 0) {
            p->parameter[MHA_PARAM_GATES][h] = 0;
        }
    }
    int64_t elements = 0;
    if (c->level[SWEEP_NUMBERS] == 1 && !p->projection[0] && !p->projection[1]) {
        float scale = trial_scale(p) < 0 ? -trial_scale(p) : trial_scale(p);
        float amplitude = scale > 0 ? 270.0f / (scale * (float)p->D) : 1e6f;
        elements = tensor_elements(&p->query);
        for (int64_t i = 0; i < elements; ++i) {
            *tensor_element(&p->query, i) = draw_float(d, -amplitude, amplitude);
        }
    } else if (c->level[SWEEP_NUMBERS] == 2) {
        elements = tensor_elements(&p->value);
        for (int64_t i = 0; i < elements; ++i) {
            *tensor_element(&p->value, i) = draw_float(d, -1e4f, 3e4f);
        }
    }
}

void sweep_trial(const sweep_case *c, trial *p, float output_fill)
{
    draw d = {c->seed};
    set_sizes(c, p, &d);
    set_scores(c, p, &d);
    set_positions(c, p, &d);
    set_ranges(c, p, &d);
    set_segments(c, p, &d);
    add_key_mask(c, p, &d);
    add_pair_mask(c, p, &d);
    add_full_mask(c, p, &d);
    add_biases(c, p);
    set_dropout(c, p, &d);
    sweep_layout(c, p, output_fill);
    fill_numbers(c, p, &d);
}

int32_t sweep_threads(const sweep_case *c)
{
    return c->level[SWEEP_THREADS] + 1;
}

/* Whether some rule asks where queries stand. A head's rule counts as much as everybody's. */
static int asks_for_alignment(const trial *p)
{
    int asks = p->causal || p->left >= 0 || p->right >= 0 || p->alibi
               || (p->rotary_size > 0 && !p->id_batch);
    for (int64_t h = 0; h < p->H; ++h) {
        asks |= p->head_causal_is_set && p->head_causal[h];
        asks |= p->head_windows_are_set && (p->head_left[h] >= 0 || p->head_right[h] >= 0);
    }
    return asks;
}

int32_t sweep_status(const trial *p)
{
    if (p->alignment != MHA_ALIGNMENT_UNSET || !asks_for_alignment(p)) {
        return MHA_OK;
    }
    for (int64_t s = 0; s < p->packed; ++s) {
        if (p->key_offsets[s + 1] - p->key_offsets[s]
            != p->query_offsets[s + 1] - p->query_offsets[s]) {
            return MHA_ERROR_ALIGNMENT;
        }
    }
    for (int64_t b = 0; b < p->B && !p->packed; ++b) {
        if (trial_keys(p, b) != trial_queries(p, b)) {
            return MHA_ERROR_ALIGNMENT;
        }
    }
    return MHA_OK;
}
