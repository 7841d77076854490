/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/rotary.h"

#include "attention/pack.h"
#include "platform/sizes.h"

#include <mha/config.h>

#include <math.h>

/* The two features of pair n. */
static void pair_of(const struct mha__problem *p, int64_t n, int64_t *first, int64_t *second)
{
    const bool halves = p->rotary_pairing == MHA_ROTARY_HALVES;
    *first = halves ? n : 2 * n;
    *second = halves ? n + p->rotary_size / 2 : 2 * n + 1;
}

/* Radians a position of pair n: base^(-2n / size). */
static double frequency(const struct mha__problem *p, int64_t n)
{
    return pow(p->rotary_base, -2.0 * (double)n / (double)p->rotary_size);
}

/* Tokens whose angles are filled together, so that a frequency is computed once for all of them. */
enum { TOKENS = 64 };

static int64_t query_blocks(const struct mha__problem *p)
{
    return (p->T + TOKENS - 1) / TOKENS;
}

int64_t mha__rotary_key_tables(const struct mha__problem *p)
{
    return p->key_ids && p->ids_batch > 1 ? p->B : 1;
}

int64_t mha__rotary_tasks(const struct mha__problem *p, const struct mha__means *m)
{
    return p->rotary_size > 0
               ? p->B * query_blocks(p) + mha__rotary_key_tables(p) * m->plan.key_tiles
               : 0;
}

static float *
query_angles(const struct mha__problem *p, const struct mha__means *m, int64_t b, int64_t i)
{
    return (float *)mha__piece(m, m->plan.query_angles) + (b * p->T + i) * p->rotary_size;
}

static float *
key_angles(const struct mha__problem *p, const struct mha__means *m, int64_t table, int64_t tile)
{
    return (float *)mha__piece(m, m->plan.key_angles) +
           (table * m->plan.key_tiles + tile) * p->rotary_size * m->plan.key_tile;
}

static const int64_t *
ids_of(const struct mha__problem *p, const int64_t *ids, int64_t b, int64_t tokens)
{
    return ids ? ids + (p->ids_batch == 1 ? 0 : b) * tokens : NULL;
}

static void
fill_queries(const struct mha__problem *p, const struct mha__means *m, int64_t b, int64_t block)
{
    const int64_t *ids = ids_of(p, p->query_ids, b, p->T);
    struct mha__row_rules rules;
    mha__visibility_of_batch_row(p->rules, b, 0, p->T, p->S, &rules);
    const int64_t first = block * TOKENS;
    const int64_t end = first + TOKENS < p->T ? first + TOKENS : p->T;
    for (int64_t n = 0; n < p->rotary_size / 2; n++) {
        const double turn = frequency(p, n);
        for (int64_t i = first; i < end; i++) {
            const int64_t position = ids ? ids[i] : mha__visibility_query_position(&rules, i);
            float *angles = query_angles(p, m, b, i) + 2 * n;
            angles[0] = (float)cos((double)position * turn);
            angles[1] = (float)sin((double)position * turn);
        }
    }
}

static void
fill_keys(const struct mha__problem *p, const struct mha__means *m, int64_t table, int64_t tile)
{
    const int64_t *ids = ids_of(p, p->key_ids, table, p->S);
    const int64_t width = m->plan.key_tile;
    struct mha__row_rules rules;
    mha__visibility_of_batch_row(p->rules, table, 0, p->T, p->S, &rules);
    float *angles = key_angles(p, m, table, tile);
    for (int64_t n = 0; n < p->rotary_size / 2; n++) {
        const double turn = frequency(p, n);
        for (int64_t c = 0; c < width && tile * width + c < p->S; c++) {
            const int64_t j = tile * width + c;
            const int64_t position = ids ? ids[j] : mha__visibility_key_position(&rules, j);
            angles[2 * n * width + c] = (float)cos((double)position * turn);
            angles[(2 * n + 1) * width + c] = (float)sin((double)position * turn);
        }
    }
}

void mha__rotary_task(const struct mha__problem *p, const struct mha__means *m, int64_t task)
{
    const int64_t blocks = query_blocks(p);
    const int64_t queries = p->B * blocks;
    if (task < queries) {
        fill_queries(p, m, task / blocks, task % blocks);
    } else {
        fill_keys(p, m, (task - queries) / m->plan.key_tiles, (task - queries) % m->plan.key_tiles);
    }
}

void mha__rotary_turn_query(
    const struct mha__problem *p, const struct mha__means *m, int64_t b, int64_t i, float *q)
{
    const float *angles = query_angles(p, m, b, i);
    for (int64_t n = 0; n < p->rotary_size / 2; n++) {
        int64_t first = 0;
        int64_t second = 0;
        pair_of(p, n, &first, &second);
        const float x = q[first];
        const float y = q[second];
        q[first] = x * angles[2 * n] - y * angles[2 * n + 1];
        q[second] = x * angles[2 * n + 1] + y * angles[2 * n];
    }
}

void mha__rotary_turn_keys(const struct mha__problem *p, const struct mha__means *m, int64_t task)
{
    const int64_t width = m->plan.key_tile;
    const int64_t panel = m->plan.key_panel;
    const int64_t tile = task % m->plan.key_tiles;
    const int64_t b = task / m->plan.key_tiles / p->G;
    const int64_t keys = mha__smaller(p->S - tile * width, width);
    float *packed = mha__pack_key_tile(p, m, b, task / m->plan.key_tiles % p->G, tile);
    const float *angles = key_angles(p, m, mha__rotary_key_tables(p) == 1 ? 0 : b, tile);
    for (int64_t n = 0; n < p->rotary_size / 2; n++) {
        int64_t first = 0;
        int64_t second = 0;
        pair_of(p, n, &first, &second);
        const float *cosine = angles + 2 * n * width;
        const float *sine = cosine + width;
        for (int64_t c0 = 0; c0 < keys; c0 += panel) {
            float *x = packed + mha__pack_key_at(p, &m->plan, c0, first);
            float *y = packed + mha__pack_key_at(p, &m->plan, c0, second);
            for (int64_t c = 0; c < mha__smaller(panel, keys - c0); c++) {
                const float turned = x[c] * cosine[c0 + c] - y[c] * sine[c0 + c];
                y[c] = x[c] * sine[c0 + c] + y[c] * cosine[c0 + c];
                x[c] = turned;
            }
        }
    }
}
