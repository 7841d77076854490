/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA__PACK_H
#define MHA__PACK_H

/*
 * Keys and values are packed once per (batch row, key-value head), in tiles of key_tile keys, as panels of
 * columns that the products want side by side:
 *
 *   keys    [B][G][key_tiles][key_tile / key_panel][D][key_panel]        k transposed: S = Q K^T is plain
 *   values  [B][G][key_tiles][values_ld / value_panel][value_keys][value_panel]
 *
 * For the BLAS a tile is one panel: key_panel = key_tile, value_panel = values_ld = Dv. value_keys is
 * key_tile; in the transposed form a line or two of the cache more, since many narrow panels a power of two apart would all
 * want the same ways of a cache.
 *
 * A product over a whole tile of values would spread one NaN over rows that may not see it (0 * NaN). So
 * tiles that hold something not finite are noted, and treated with care when they are used.
 */
#include "attention/problem.h"

/* Packs features d0 .. d0+nd-1 of keys j0 .. j0+nj-1, which lie in one key tile; from [nj, nd]. */
void mha__pack_keys(const struct mha__problem *problem,
                    const struct mha__means *means,
                    int64_t b,
                    int64_t g,
                    int64_t j0,
                    int64_t nj,
                    int64_t d0,
                    int64_t nd,
                    const float *from,
                    int64_t ld);

/* The same for values. */
void mha__pack_values(const struct mha__problem *problem,
                      const struct mha__means *means,
                      int64_t b,
                      int64_t g,
                      int64_t j0,
                      int64_t nj,
                      int64_t d0,
                      int64_t nd,
                      const float *from,
                      int64_t ld);

/* (b, g, tile) counted through. */
static inline int64_t mha__pack_tile_number(
    const struct mha__problem *p, const struct mha__means *m, int64_t b, int64_t g, int64_t tile)
{
    return (b * p->G + g) * m->plan.key_tiles + tile;
}

/* A packed tile of keys, of values, and whether the latter has a note. */
float *mha__pack_key_tile(
    const struct mha__problem *p, const struct mha__means *m, int64_t b, int64_t g, int64_t tile);
float *mha__pack_value_tile(
    const struct mha__problem *p, const struct mha__means *m, int64_t b, int64_t g, int64_t tile);
bool mha__pack_is_noted(
    const struct mha__problem *p, const struct mha__means *m, int64_t b, int64_t g, int64_t tile);

/* Notes that a tile of values holds something not finite. */
void mha__pack_note(
    const struct mha__problem *p, const struct mha__means *m, int64_t b, int64_t g, int64_t tile);

/* Feature d of key c of a packed tile. */
static inline int64_t mha__pack_key_at(const struct mha__problem *p,
                                       const struct mha__planner_plan *plan,
                                       int64_t c,
                                       int64_t d)
{
    const int64_t width = plan->key_panel;
    return (c / width * p->D + d) * width + c % width;
}

static inline int64_t mha__pack_value_at(const struct mha__planner_plan *plan, int64_t c, int64_t d)
{
    const int64_t width = plan->value_panel;
    return (d / width * plan->value_keys + c) * width + d % width;
}

#endif
