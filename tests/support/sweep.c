/* SPDX-License-Identifier: Apache-2.0 */
#include "sweep.h"

#include <stdio.h>
#include <stdlib.h>

static const int64_t BATCHES[] = {1, 2, 3, 0, 1};
/* 0, 1, 2, and both sides of every size that a tile might have */
static const int64_t TOKENS[] = {1, 2, 3, 16, 17, 40, 63, 64, 65, 127, 128, 129, 255, 256, 257, 0};
/* … and keys for several chunks */
static const int64_t KEYS[] = {1,   2,   3,   16,  17,  40,  63,  64,   65,
                               127, 128, 129, 255, 256, 257, 700, 1300, 0};
static const int64_t HEADS[] = {1, 2, 4, 4, 6, 3};
static const int64_t HEAD_SIZES[] = {1, 2, 3, 5, 8, 16, 31, 33, 64, 65, 100, 127, 128, 130};
static const int64_t VALUE_SIZES[] = {0, 1, 4, 33, 64, 129}; /* 0 = as D */

static const struct factor {
    const char *name;
    int levels;
    const int64_t *sizes; /* of the levels, or NULL */
} FACTORS[SWEEP_FACTORS] = {
    [SWEEP_B] = {"b", 5, BATCHES},
    [SWEEP_T] = {"t", 16, TOKENS},
    [SWEEP_S] = {"s", 18, KEYS},
    [SWEEP_HEADS] = {"heads", 6, HEADS},
    [SWEEP_D] = {"d", 14, HEAD_SIZES},
    [SWEEP_DV] = {"dv", 6, VALUE_SIZES},
    [SWEEP_PROJECTIONS] = {"projections", 5, NULL},
    [SWEEP_SCALE] = {"scale", 5, NULL},
    [SWEEP_SOFTCAP] = {"softcap", 3, NULL},
    [SWEEP_ROTARY] = {"rotary", 5, NULL},
    [SWEEP_SINKS] = {"sinks", 2, NULL},
    [SWEEP_GATES] = {"gates", 3, NULL},
    [SWEEP_EXTRA_KEYS] = {"extra keys", 4, NULL},
    [SWEEP_CAUSAL] = {"causal", 3, NULL},
    [SWEEP_ALIGNMENT] = {"alignment", 5, NULL},
    [SWEEP_WINDOW] = {"window", 8, NULL},
    [SWEEP_KEY_LENGTHS] = {"key lengths", 3, NULL},
    [SWEEP_QUERY_LENGTHS] = {"query lengths", 3, NULL},
    [SWEEP_RANGES] = {"ranges", 3, NULL},
    [SWEEP_SEGMENTS] = {"segments", 4, NULL},
    [SWEEP_KEY_MASK] = {"key mask", 6, NULL},
    [SWEEP_PAIR_MASK] = {"pair mask", 6, NULL},
    [SWEEP_FULL_MASK] = {"full mask", 6, NULL},
    [SWEEP_ALIBI] = {"alibi", 3, NULL},
    [SWEEP_BIAS_SHAPE] = {"bias shape", 7, NULL},
    [SWEEP_BIAS_CELLS] = {"bias cells", 5, NULL},
    [SWEEP_BIAS_LAYOUT] = {"bias layout", 3, NULL},
    [SWEEP_CALLBACK] = {"callback", 3, NULL},
    [SWEEP_DROPOUT] = {"dropout", 5, NULL},
    [SWEEP_INPUT_LAYOUT] = {"input layout", 7, NULL},
    [SWEEP_OUTPUTS] = {"outputs", 6, NULL},
    [SWEEP_WEIGHTS] = {"weights", 6, NULL},
    [SWEEP_STAGES] = {"stages", 5, NULL},
    [SWEEP_STATISTICS] = {"statistics", 6, NULL},
    [SWEEP_TOP_KEYS] = {"top keys", 3, NULL},
    [SWEEP_OUTPUT_LAYOUT] = {"output layout", 3, NULL},
    [SWEEP_NUMBERS] = {"numbers", 3, NULL},
    [SWEEP_THREADS] = {"threads", 3, NULL},
};

int64_t sweep_size(sweep_factor factor, int level)
{
    return FACTORS[factor].sizes ? FACTORS[factor].sizes[level] : level;
}

/* ---- which combinations ---- */

enum { ALL_LEVELS = 240 };

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
        s->level[f] = (int)draw_int(d, 0, FACTORS[f].levels - 1);
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
        c->first[f + 1] = c->first[f] + FACTORS[f].levels;
    }
    if (c->first[SWEEP_FACTORS] > ALL_LEVELS) {
        abort();
    }
    draw d = {seed};
    int count = 0;
    *missed = 0;
    for (int f = 0; f < SWEEP_FACTORS; ++f) {
        for (int g = f + 1; g < SWEEP_FACTORS; ++g) {
            for (int cell = 0; cell < FACTORS[f].levels * FACTORS[g].levels; ++cell) {
                int i = cell / FACTORS[g].levels, j = cell % FACTORS[g].levels;
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

void sweep_make_few(sweep_case *c)
{
    static const sweep_factor off[] = {SWEEP_ROTARY, SWEEP_CALLBACK, SWEEP_WEIGHTS, SWEEP_STAGES,
                                       SWEEP_TOP_KEYS};
    static const int outputs[] = {0, 2, 5}; /* output alone, with lse, lse alone */
    for (size_t i = 0; i < sizeof off / sizeof *off; ++i) {
        c->level[off[i]] = 0;
    }
    c->level[SWEEP_T] %= 6;
    c->level[SWEEP_OUTPUTS] = outputs[c->level[SWEEP_OUTPUTS] % 3];
    c->level[SWEEP_STATISTICS] %= 3; /* none, the entropy, the maximum */
}

int64_t sweep_cost(const sweep_case *c)
{
    int64_t D = sweep_size(SWEEP_D, c->level[SWEEP_D]);
    int64_t Dv = sweep_size(SWEEP_DV, c->level[SWEEP_DV]);
    int64_t H = sweep_size(SWEEP_HEADS, c->level[SWEEP_HEADS]);
    int64_t rows = sweep_size(SWEEP_B, c->level[SWEEP_B]) * H;
    int64_t T = sweep_size(SWEEP_T, c->level[SWEEP_T]), S = sweep_size(SWEEP_S, c->level[SWEEP_S]);
    int64_t features = D + (Dv ? Dv : D);
    return rows * T * S * (features + 50) + rows * (T + S) * features * 40;
}

void sweep_describe(const sweep_case *c, char *text, size_t cap)
{
    size_t used = 0;
    text[0] = '\0';
    for (int f = 0; f < SWEEP_FACTORS && used < cap; ++f) {
        int n = snprintf(text + used, cap - used, "%s %lld, ", FACTORS[f].name,
                         (long long)sweep_size((sweep_factor)f, c->level[f]));
        used += n > 0 ? (size_t)n : 0;
    }
}
