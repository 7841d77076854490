/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA__PREFETCH_H
#define MHA__PREFETCH_H

/*
 * Asks for n numbers that will be read (or written) soon. Rows of a head lie far apart, so no CPU guesses
 * the next one; past the end of a tensor nothing happens.
 */
#include <stdint.h>

static inline void mha__prefetch(const float *row, int64_t n)
{
    for (int64_t i = 0; i < n; i += 16) {
        __builtin_prefetch(row + i);
    }
}

static inline void mha__prefetch_to_write(const float *row, int64_t n)
{
    for (int64_t i = 0; i < n; i += 16) {
        __builtin_prefetch(row + i, 1);
    }
}

enum { MHA__ROWS_AHEAD = 8 };

#endif
