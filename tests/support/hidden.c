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

static int sees_something(const trial *p, int64_t b, int64_t h, int64_t i)
{
    for (int64_t j = 0; j < p->S; ++j) {
        if (trial_allowed(p, b, h, i, j)) {
            return 1;
        }
    }
    return 0;
}

static int is_seen(const trial *p, int64_t b, int64_t h, int64_t j)
{
    for (int64_t i = 0; i < p->T; ++i) {
        if (trial_allowed(p, b, h, i, j)) {
            return 1;
        }
    }
    return 0;
}

static void mark_what_is_read(const trial *p, marks *blocks)
{
    const int32_t *on = p->projection;
    for (int64_t b = 0; b < p->B; ++b) {
        for (int64_t h = 0; h < p->H; ++h) {
            const int64_t g = h / (p->H / p->G);
            for (int64_t i = 0; i < p->T; ++i) {
                if (sees_something(p, b, h, i)) {
                    mark_token(blocks, &p->query, b, i, on[MHA_PROJECTION_Q] ? 0 : h * p->D,
                               on[MHA_PROJECTION_Q] ? p->Eq : p->D);
                }
            }
            for (int64_t j = 0; j < p->S; ++j) {
                if (is_seen(p, b, h, j)) {
                    mark_token(blocks, &p->key, b, j, on[MHA_PROJECTION_K] ? 0 : g * p->D,
                               on[MHA_PROJECTION_K] ? p->Ek : p->D);
                    mark_token(blocks, &p->value, b, j, on[MHA_PROJECTION_V] ? 0 : g * p->Dv,
                               on[MHA_PROJECTION_V] ? p->Ev : p->Dv);
                }
            }
        }
    }
}

int64_t hidden_poison(trial *p)
{
    static const float poison[4] = {NAN, INFINITY, -INFINITY, 3e38f};
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
                inputs[m]->block[i] = poison[(i + m) % 4];
                ++poisoned;
            }
        }
        free(blocks[m].read);
    }
    return poisoned;
}

static int gaps_are(const tensor *t, float fill)
{
    if (!t->block) {
        return 1;
    }
    unsigned char *element = calloc((size_t)t->count, 1);
    if (!element) {
        abort();
    }
    int64_t elements = tensor_elements(t);
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
    return gaps_are(&p->output, fill) && gaps_are(&p->weights, fill) && gaps_are(&p->lse, fill);
}
