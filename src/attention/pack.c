/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/pack.h"

#include <stdatomic.h>

static int64_t tile_number(
    const struct mha__problem *p, const struct mha__means *m, int64_t b, int64_t g, int64_t tile)
{
    return (b * p->G + g) * m->plan.key_tiles + tile;
}

static float *key_tile(
    const struct mha__problem *p, const struct mha__means *m, int64_t b, int64_t g, int64_t tile)
{
    float *keys = mha__piece(m, m->plan.keys);
    return keys + tile_number(p, m, b, g, tile) * p->D * m->plan.key_tile;
}

static float *
value_row(const struct mha__problem *p, const struct mha__means *m, int64_t b, int64_t g, int64_t j)
{
    float *values = mha__piece(m, m->plan.values);
    return values + ((b * p->G + g) * p->S + j) * p->Dv;
}

/* Several tasks may note one tile (column tiles of a projection): so the byte is atomic. */
static _Atomic unsigned char *
note(const struct mha__problem *p, const struct mha__means *m, int64_t b, int64_t g, int64_t tile)
{
    _Atomic unsigned char *notes = mha__piece(m, m->plan.nonfinite);
    return notes + tile_number(p, m, b, g, tile);
}

void mha__pack_keys(const struct mha__problem *problem,
                    const struct mha__means *means,
                    int64_t b,
                    int64_t g,
                    int64_t j0,
                    int64_t nj,
                    int64_t d0,
                    int64_t nd,
                    const float *from,
                    int64_t ld)
{
    const int64_t width = means->plan.key_tile;
    float *tile = key_tile(problem, means, b, g, j0 / width);
    // tile[d][j] = k[j][d]
    means->kernels->transpose(tile + d0 * width + j0 % width, width, from, ld, nj, nd);
}

void mha__pack_values(const struct mha__problem *problem,
                      const struct mha__means *means,
                      int64_t b,
                      int64_t g,
                      int64_t j0,
                      int64_t nj,
                      int64_t d0,
                      int64_t nd,
                      const float *from,
                      int64_t ld)
{
    bool finite = true;
    for (int64_t j = 0; j < nj; j++) {
        float *row = value_row(problem, means, b, g, j0 + j) + d0;
        finite &= means->kernels->finite_copy(row, from + j * ld, nd);
    }
    if (!finite) {
        atomic_store_explicit(note(problem, means, b, g, j0 / means->plan.key_tile), 1,
                              memory_order_relaxed);
    }
}

const float *mha__pack_key_tile(
    const struct mha__problem *p, const struct mha__means *m, int64_t b, int64_t g, int64_t tile)
{
    return key_tile(p, m, b, g, tile);
}

const float *mha__pack_value_tile(
    const struct mha__problem *p, const struct mha__means *m, int64_t b, int64_t g, int64_t tile)
{
    return value_row(p, m, b, g, tile * m->plan.key_tile);
}

bool mha__pack_is_noted(
    const struct mha__problem *p, const struct mha__means *m, int64_t b, int64_t g, int64_t tile)
{
    return atomic_load_explicit(note(p, m, b, g, tile), memory_order_relaxed) != 0;
}
