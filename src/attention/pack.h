/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA__PACK_H
#define MHA__PACK_H

/*
 * Keys and values are packed once per (batch row, key-value head), in the layout that the products
 * want:
 *
 *   keys    [B][G][key_tiles][D][key_tile]   transposed tiles: S = Q K^T is then a plain product
 *   values  [B][G][S][Dv]                    contiguous rows
 *
 * A product over a whole tile of values would spread one NaN over rows that may not see it (0 *
 * NaN). So tiles that hold something not finite are noted, and treated with care when they are
 * used.
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

/* A packed tile of keys [D][key_tile], of values [tile rows][Dv], and whether the latter has a
 * note. */
const float *mha__pack_key_tile(
    const struct mha__problem *p, const struct mha__means *m, int64_t b, int64_t g, int64_t tile);
const float *mha__pack_value_tile(
    const struct mha__problem *p, const struct mha__means *m, int64_t b, int64_t g, int64_t tile);
bool mha__pack_is_noted(
    const struct mha__problem *p, const struct mha__means *m, int64_t b, int64_t g, int64_t tile);

#endif
