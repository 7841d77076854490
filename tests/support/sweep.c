/* SPDX-License-Identifier: Apache-2.0 */
#include "sweep.h"

#include "sweep_layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int64_t BATCHES[] = {1, 2, 3, 0};
/* 0, 1, 2, and both sides of every size that a tile might have */
static const int64_t TOKENS[] = {1, 2, 3, 16, 17, 40, 63, 64, 65, 127, 128, 129, 255, 256, 257, 0};
static const int64_t HEADS[][2] = {{1, 1}, {2, 2}, {4, 2}, {4, 1}, {6, 3}, {3, 3}};
static const int64_t HEAD_SIZES[] = {1, 2, 3, 5, 8, 16, 31, 33, 64, 65, 100, 127, 128, 130};
static const int64_t VALUE_SIZES[] = {0, 1, 4, 33, 64, 129}; /* 0 = as D */

static const int LEVELS[SWEEP_FACTORS] = {
    [SWEEP_B] = 4,
    [SWEEP_T] = 16,
    [SWEEP_S] = 16,
    [SWEEP_HEADS] = 6,
    [SWEEP_D] = 14,
    [SWEEP_DV] = 6,
    [SWEEP_PROJECTIONS] = 5,
    [SWEEP_SCALE] = 4,
    [SWEEP_CAUSAL] = 2,
    [SWEEP_ALIGNMENT] = 5,
    [SWEEP_WINDOW] = 7,
    [SWEEP_KEY_LENGTHS] = 3,
    [SWEEP_QUERY_LENGTHS] = 3,
    [SWEEP_KEY_MASK] = 5,
    [SWEEP_PAIR_MASK] = 5,
    [SWEEP_FULL_MASK] = 5,
    [SWEEP_INPUT_LAYOUT] = 7,
    [SWEEP_OUTPUTS] = 6,
    [SWEEP_OUTPUT_LAYOUT] = 3,
    [SWEEP_NUMBERS] = 3,
    [SWEEP_THREADS] = 3,
};
static const char *const NAMES[SWEEP_FACTORS] = {"b",
                                                 "t",
                                                 "s",
                                                 "heads",
                                                 "d",
                                                 "dv",
                                                 "projections",
                                                 "scale",
                                                 "causal",
                                                 "alignment",
                                                 "window",
                                                 "key lengths",
                                                 "query lengths",
                                                 "key mask",
                                                 "pair mask",
                                                 "full mask",
                                                 "input layout",
                                                 "outputs",
                                                 "output layout",
                                                 "numbers",
                                                 "threads"};

/* ---- which combinations ---- */

enum { ALL_LEVELS = 160 };

typedef struct coverage {
    int first[SWEEP_FACTORS + 1]; /* number of a factor's level 0 among all levels */
    unsigned char done[ALL_LEVELS][ALL_LEVELS];
} coverage;

static int new_pairs(const coverage *c, const sweep_case *s)
{
    int count = 0;
    for (int f = 0; f < SWEEP_FACTORS; ++f) {
        for (int g = f + 1; g < SWEEP_FACTORS; ++g) {
            count += !c->done[c->first[f] + s->level[f]][c->first[g] + s->level[g]];
        }
    }
    return count;
}

static void mark_pairs(coverage *c, const sweep_case *s)
{
    for (int f = 0; f < SWEEP_FACTORS; ++f) {
        for (int g = f + 1; g < SWEEP_FACTORS; ++g) {
            c->done[c->first[f] + s->level[f]][c->first[g] + s->level[g]] = 1;
        }
    }
}

static void draw_levels(sweep_case *s, draw *d)
{
    for (int f = 0; f < SWEEP_FACTORS; ++f) {
        s->level[f] = (int)draw_int(d, 0, LEVELS[f] - 1);
    }
    s->seed = draw_bits(d);
}

/* The best of some random cases with f at i and g at j; 0 where none fits the budget. */
static int
best_case(const coverage *c, draw *d, int f, int i, int g, int j, int64_t budget, sweep_case *best)
{
    int most = 0, fitting = 0;
    for (int attempt = 0; attempt < 400 && fitting < 30; ++attempt) {
        sweep_case s;
        draw_levels(&s, d);
        s.level[f] = i;
        s.level[g] = j;
        if (sweep_cost(&s) > budget) {
            continue;
        }
        ++fitting;
        int pairs = new_pairs(c, &s);
        if (pairs > most) {
            most = pairs;
            *best = s;
        }
    }
    return most;
}

int sweep_make(sweep_case *cases, int least, int most, int64_t budget, uint64_t seed, int *missed)
{
    coverage *c = calloc(1, sizeof *c);
    if (!c) {
        abort();
    }
    for (int f = 0; f < SWEEP_FACTORS; ++f) {
        c->first[f + 1] = c->first[f] + LEVELS[f];
    }
    if (c->first[SWEEP_FACTORS] > ALL_LEVELS) {
        abort();
    }
    draw d = {seed};
    int count = 0;
    *missed = 0;
    for (int f = 0; f < SWEEP_FACTORS; ++f) {
        for (int g = f + 1; g < SWEEP_FACTORS; ++g) {
            for (int cell = 0; cell < LEVELS[f] * LEVELS[g]; ++cell) {
                int i = cell / LEVELS[g], j = cell % LEVELS[g];
                if (c->done[c->first[f] + i][c->first[g] + j]) {
                    continue;
                }
                if (count < most && best_case(c, &d, f, i, g, j, budget, &cases[count])) {
                    mark_pairs(c, &cases[count++]);
                } else {
                    ++*missed;
                }
            }
        }
    }
    while (count < least && count < most) {
        draw_levels(&cases[count], &d);
        count += sweep_cost(&cases[count]) <= budget;
    }
    free(c);
    return count;
}

int64_t sweep_cost(const sweep_case *c)
{
    int64_t D = HEAD_SIZES[c->level[SWEEP_D]];
    int64_t Dv = VALUE_SIZES[c->level[SWEEP_DV]] ? VALUE_SIZES[c->level[SWEEP_DV]] : D;
    int64_t H = HEADS[c->level[SWEEP_HEADS]][0];
    int64_t rows = BATCHES[c->level[SWEEP_B]] * H;
    int64_t T = TOKENS[c->level[SWEEP_T]], S = TOKENS[c->level[SWEEP_S]];
    return rows * T * S * (D + Dv) + rows * (T + S) * (D + Dv) * 40;
}

void sweep_describe(const sweep_case *c, char *text, size_t cap)
{
    size_t used = 0;
    text[0] = '\0';
    for (int f = 0; f < SWEEP_FACTORS && used < cap; ++f) {
        int level = c->level[f];
        int64_t shown = level;
        if (f == SWEEP_B) {
            shown = BATCHES[level];
        } else if (f == SWEEP_T || f == SWEEP_S) {
            shown = TOKENS[level];
        } else if (f == SWEEP_D) {
            shown = HEAD_SIZES[level];
        } else if (f == SWEEP_DV) {
            shown = VALUE_SIZES[level];
        }
        int n = snprintf(text + used, cap - used, "%s %lld, ", NAMES[f], (long long)shown);
        used += n > 0 ? (size_t)n : 0;
    }
}

/* ---- from a case to a trial ---- */

static void set_sizes(const sweep_case *c, trial *p, draw *d)
{
    int64_t D = HEAD_SIZES[c->level[SWEEP_D]];
    int64_t Dv = VALUE_SIZES[c->level[SWEEP_DV]];
    const int64_t *heads = HEADS[c->level[SWEEP_HEADS]];
    trial_begin(p, BATCHES[c->level[SWEEP_B]], TOKENS[c->level[SWEEP_T]], TOKENS[c->level[SWEEP_S]],
                heads[0], heads[1], D, Dv ? Dv : D);
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
    const float scales[4] = {0, 0, -0.3f, 1.7f};
    p->scale_is_set = c->level[SWEEP_SCALE] > 0;
    p->scale = scales[c->level[SWEEP_SCALE]];
}

static void set_rules(const sweep_case *c, trial *p, draw *d)
{
    static const int64_t windows[7][2] = {{-1, -1}, {0, 0},     {3, 0}, {-1, 5},
                                          {7, -1},  {100, 100}, {40, 2}};
    const int64_t batch = p->B > 0 ? p->B : 1;
    p->causal = c->level[SWEEP_CAUSAL];
    p->left = windows[c->level[SWEEP_WINDOW]][0];
    p->right = windows[c->level[SWEEP_WINDOW]][1];
    /* unset, top left, bottom right, explicit for each batch row, explicit for all */
    p->alignment = c->level[SWEEP_ALIGNMENT] > 3 ? 3 : c->level[SWEEP_ALIGNMENT];
    if (p->alignment == MHA_ALIGNMENT_EXPLICIT) {
        p->offset_batch = c->level[SWEEP_ALIGNMENT] == 3 ? batch : 1;
    }
    if (c->level[SWEEP_KEY_LENGTHS]) {
        p->key_batch = c->level[SWEEP_KEY_LENGTHS] == 1 ? batch : 1;
    }
    if (c->level[SWEEP_QUERY_LENGTHS]) {
        p->query_batch = c->level[SWEEP_QUERY_LENGTHS] == 1 ? batch : 1;
    }
    for (int64_t b = 0; b < batch; ++b) {
        p->offsets[b] = draw_int(d, -5, p->S + 3);
        p->key_lengths[b] = draw_int(d, 0, p->S);
        p->query_lengths[b] = draw_int(d, 0, p->T);
    }
}

static void fill_mask(boolean_mask *m, draw *d, double p, int32_t flags)
{
    int64_t bytes = m->shape[0] * m->shape[1] * m->shape[2] * m->shape[3];
    draw_booleans(d, m->bytes, bytes, p);
    m->flags = flags;
}

static void add_masks(const sweep_case *c, trial *p, draw *d)
{
    const int64_t batch = p->B > 0 ? p->B : 1, T = p->T > 0 ? p->T : 1;
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
    default:
        break;
    }
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
    default:
        break;
    }
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
    default:
        break;
    }
}

/* Numbers of ordinary size; scores of about +-90, where a naive exp overflows; large values. */
static void fill_numbers(const sweep_case *c, trial *p, draw *d)
{
    trial_fill(p, d, 1.0f);
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
    set_rules(c, p, &d);
    add_masks(c, p, &d);
    sweep_layout(c, p, output_fill);
    fill_numbers(c, p, &d);
}

int32_t sweep_threads(const sweep_case *c)
{
    return c->level[SWEEP_THREADS] + 1;
}

int32_t sweep_status(const trial *p)
{
    if (p->alignment != MHA_ALIGNMENT_UNSET || (!p->causal && p->left < 0 && p->right < 0)) {
        return MHA_OK;
    }
    for (int64_t b = 0; b < p->B; ++b) {
        if (trial_keys(p, b) != trial_queries(p, b)) {
            return MHA_ERROR_ALIGNMENT;
        }
    }
    return MHA_OK;
}
