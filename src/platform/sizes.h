/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA__SIZES_H
#define MHA__SIZES_H

/* Arithmetic of sizes that everybody needs. */
#include <stdint.h>

static inline int64_t mha__smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t mha__larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Tiles that hold n things, the last one perhaps not full; without overflow. */
static inline int64_t mha__tiles_of(int64_t n, int64_t tile)
{
    return n / tile + (n % tile != 0);
}

#endif
