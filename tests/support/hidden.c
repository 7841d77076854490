/* SPDX-License-Identifier: Apache-2.0 */
#include "hidden.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One byte a number of a block: is it read? */
typedef struct marks {
    const tensor *block;
    unsigned char *read;
} marks;

static void mark(marks *blocks, int count, const float *element)
{
    for (int m = 0; m < count; ++m) {
        const tensor *t = blocks[m].block;
        if (t->block && element >= t->block && element < t->block + t->count) {
            blocks[m].read[element - t->block] = 1;
            return;
        }
    }
    abort();
}

/*
 * Features first .. first + count - 1 of a token: one head, or all where a projection mixes them.
 */
static void
mark_token(marks *blocks, const tensor *t, int64_t b, int64_t i, int64_t first, int64_t count)
{
    for (int64_t c = first; c < first + count; ++c) {
        mark(blocks, 3, tensor_feature(t, b, i, c));
    }
}

/* Which tokens of one batch row and head some visible pair reads. */
typedef struct seen {
    unsigned char *query, *key, *value; /* [T], [S], [S] */
} seen;

static void look(const trial *p, int64_t b, int64_t h, seen *s)
{
    const int gate = !p->gates || p->parameter[MHA_PARAM_GATES][h] != 0;
    memset(s->query, 0, (size_t)p->T);
    memset(s->key, 0, (size_t)p->S);
    memset(s->value, 0, (size_t)p->S);
    for (int64_t i = 0; i < p->T; ++i) {
        s->query[i] = trial_extra(p) > 0 && trial_is_real(p, b, i);
        for (int64_t j = 0; j < p->S; ++j) {
            if (trial_allowed(p, b, h, i, j)) {
                s->query[i] = s->key[j] = 1;
                s->value[j] |= gate && trial_kept(p, b, h, i, j);
            }
        }
    }
}

static void mark_what_is_read(const trial *p, marks *blocks)
{
    const int32_t *on = p->projection;
    seen s = {malloc((size_t)p->T + 1), malloc((size_t)p->S + 1), malloc((size_t)p->S + 1)};
    if (!s.query || !s.key || !s.value) {
        abort();
    }
    for (int64_t n = 0; n < p->B * p->H; ++n) {
        const int64_t b = n / p->H, h = n % p->H, g = h / (p->H / p->G);
        look(p, b, h, &s);
        for (int64_t i = 0; i < p->T; ++i) {
            if (s.query[i]) {
                mark_token(blocks, &p->query, b, i, on[MHA_PROJECTION_Q] ? 0 : h * p->D,
                           on[MHA_PROJECTION_Q] ? p->Eq : p->D);
            }
        }
        for (int64_t j = 0; j < p->S; ++j) {
            if (s.key[j]) {
                mark_token(blocks, &p->key, b, j, on[MHA_PROJECTION_K] ? 0 : g * p->D,
                           on[MHA_PROJECTION_K] ? p->Ek : p->D);
            }
            if (s.value[j]) {
                mark_token(blocks, &p->value, b, j, on[MHA_PROJECTION_V] ? 0 : g * p->Dv,
                           on[MHA_PROJECTION_V] ? p->Ev : p->Dv);
            }
        }
    }
    free(s.query);
    free(s.key);
    free(s.value);
}

/* The next of the numbers that hurt. */
static float poison(int64_t n)
{
    static const float poisons[4] = {NAN, INFINITY, -INFINITY, 3e38f};
    return poisons[n % 4];
}

/* Cells of a bias that the mask hides wherever they are broadcast to, and gaps. */
static int64_t poison_bias(const trial *p, tensor *bias)
{
    unsigned char *read = calloc((size_t)bias->count + 1, 1);
    int64_t poisoned = 0;
    if (!read) {
        abort();
    }
    const int64_t *n = bias->shape;
    const int64_t cells = p->B * p->H * p->T * p->S;
    for (int64_t cell = 0; cell < cells; ++cell) {
        const int64_t j = cell % p->S, i = cell / p->S % p->T, row = cell / p->S / p->T;
        const int64_t h = row % p->H, b = row / p->H;
        if (j < n[3] && trial_mask_allows(p, b, h, i, j)) {
            const float *at =
                tensor_at(bias, n[0] == 1 ? 0 : b, n[1] == 1 ? 0 : h, n[2] == 1 ? 0 : i, j);
            read[at - bias->block] = 1;
        }
    }
    for (int64_t i = 0; i < bias->count; ++i) {
        if (!read[i]) {
            bias->block[i] = poison(i);
            ++poisoned;
        }
    }
    free(read);
    return poisoned;
}

/* Other decisions of the caller's dropout mask where nothing is to be dropped. */
static int64_t turn_hidden_keeps(trial *p)
{
    const int64_t cells = p->keep ? p->B * p->H * p->T * p->S : 0;
    int64_t turned = 0;
    for (int64_t cell = 0; cell < cells; ++cell) {
        const int64_t j = cell % p->S, i = cell / p->S % p->T, row = cell / p->S / p->T;
        if (!trial_allowed(p, row / p->H, row % p->H, i, j)) {
            p->keep[cell] = !p->keep[cell];
            ++turned;
        }
    }
    return turned;
}

int64_t hidden_poison(trial *p)
{
    tensor *const inputs[3] = {&p->query, &p->key, &p->value};
    marks blocks[3];
    int64_t poisoned = 0;
    for (int m = 0; m < 3; ++m) {
        blocks[m] = (marks){inputs[m], calloc((size_t)inputs[m]->count + 1, 1)};
        if (!blocks[m].read) {
            abort();
        }
    }
    mark_what_is_read(p, blocks);
    for (int m = 0; m < 3; ++m) {
        for (int64_t i = 0; i < inputs[m]->count; ++i) {
            if (!blocks[m].read[i]) {
                inputs[m]->block[i] = poison(i + m);
                ++poisoned;
            }
        }
        free(blocks[m].read);
    }
    poisoned += turn_hidden_keeps(p);
    for (int32_t n = 0; n < p->biases; ++n) {
        poisoned += poison_bias(p, &p->additive[n]);
    }
    return poisoned;
}

static int gaps_are(const trial *p, const tensor *t, float fill)
{
    if (!t->block) {
        return 1;
    }
    unsigned char *element = calloc((size_t)t->count, 1);
    if (!element) {
        abort();
    }
    int64_t elements = p->T > 0 ? tensor_elements(t) : 0;
    for (int64_t i = 0; i < elements; ++i) {
        element[tensor_element(t, i) - t->block] = 1;
    }
    int same = 1;
    for (int64_t i = 0; i < t->count; ++i) {
        same &= element[i] || memcmp(&t->block[i], &fill, sizeof fill) == 0;
    }
    free(element);
    return same;
}

int hidden_gaps_untouched(const trial *p, float fill)
{
    int same = gaps_are(p, &p->output, fill) && gaps_are(p, &p->weights, fill) &&
               gaps_are(p, &p->lse, fill);
    for (int n = 0; n < TRIAL_RESULTS; ++n) {
        same = same && gaps_are(p, &p->result[n], fill);
    }
    return same;
}
