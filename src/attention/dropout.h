/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA__DROPOUT_H
#define MHA__DROPOUT_H

#include "attention/problem.h"
#include "platform/philox.h"

/*
 * Whether the weight of (b, h, i, j) is kept: word j % 4 of Philox at (j / 4, i, h, b), as a fraction of
 * 2^32, is at least p. A caller's mask covers the S keys; the extra ones are then kept.
 */
static inline bool
mha__dropout_keeps(const struct mha__problem *p, int64_t b, int64_t h, int64_t i, int64_t j)
{
    if (p->keep) {
        return p->dropout < 1.0 &&
               (j >= p->S || p->keep[((b * p->H + h) * p->T + i) * p->S + j] != 0);
    }
    const struct mha__philox counter = {{(uint32_t)(j / 4), (uint32_t)i, (uint32_t)h, (uint32_t)b}};
    return (double)mha__philox_at(p->seed, counter).word[j % 4] * 0x1p-32 >= p->dropout;
}

/* The factor of what is kept; 0 where nothing is. */
static inline float mha__dropout_factor(const struct mha__problem *p)
{
    return p->dropout < 1.0 ? (float)(1.0 / (1.0 - p->dropout)) : 0.0f;
}

/* x[j - j0] = 0 where the weight of key j is dropped, n keys from j0 on. */
void mha__dropout_row(
    const struct mha__problem *p, int64_t b, int64_t h, int64_t i, int64_t j0, int64_t n, float *x);

#endif
