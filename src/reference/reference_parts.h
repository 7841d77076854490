/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA__REFERENCE_PARTS_H
#define MHA__REFERENCE_PARTS_H

/*
 * What the parts of the reference hand to each other. A batch row at a time, and in it a head at a
 * time; S' = S + extra keys.
 */
#include "attention/problem.h"

#include <stdbool.h>

struct mha__reference_room {
    int64_t columns; /* S' */
    /* of a batch row */
    double *q;     /* [T, H, D] */
    double *k, *v; /* [S', G, D], [S', G, Dv] */
    double *o;     /* [T, H, Dv] */
    double *mean;  /* [T, S'], the sum over the heads so far */
    double *total; /* [S'] */
    /* of a head */
    double *scores;  /* [T, S'], after each stage in turn */
    double *weights; /* [T, S'] */
    double *lse;     /* [T] */
    double *mass;    /* [S'] */
    bool *allowed;   /* [T, S'] */
    bool *taken;     /* [S'], of the top keys */
    float *tile;     /* [T, S'], what a callback is shown */
};

static inline int64_t mha__reference_columns(const struct mha__problem *p)
{
    return p->S + p->extra;
}

/* ---- reference_mask.c: who may see whom, and where tokens stand ---- */

/* Not padding. */
bool mha__reference_mask_real(const struct mha__problem *p, int64_t b, int64_t i);

/* Query i stands at key position i + off, key j at j, both counted within their sequence. */
int64_t mha__reference_mask_query_position(const struct mha__problem *p, int64_t b, int64_t i);
int64_t mha__reference_mask_key_position(const struct mha__problem *p, int64_t b, int64_t j);

/* j < S'. */
bool mha__reference_mask_allowed(
    const struct mha__problem *p, int64_t b, int64_t h, int64_t i, int64_t j);

/* ---- reference_tokens.c: from tokens to heads and back ---- */

/* room->q, k, v of batch row b: projected, turned, with the extra keys. */
void mha__reference_tokens_read(const struct mha__problem *p,
                                int64_t b,
                                struct mha__reference_room *room);

/* out of batch row b from room->o. */
void mha__reference_tokens_write(const struct mha__problem *p,
                                 int64_t b,
                                 const struct mha__reference_room *room);

/* ---- reference_scores.c, reference_weights.c: one head ---- */

/* room->allowed and room->scores; the raw scores that were asked for. */
void mha__reference_scores(const struct mha__problem *p,
                           int64_t b,
                           int64_t h,
                           struct mha__reference_room *room);

/* room->weights and room->lse from room->scores. */
void mha__reference_weights(const struct mha__problem *p,
                            int64_t b,
                            int64_t h,
                            struct mha__reference_room *room);

/* Whether dropout leaves the weight of a cell. */
bool mha__reference_weights_kept(
    const struct mha__problem *p, int64_t b, int64_t h, int64_t i, int64_t j);

/* ---- reference_outputs.c: all that is written beside out ---- */

void mha__reference_outputs_of_head(const struct mha__problem *p,
                                    int64_t b,
                                    int64_t h,
                                    struct mha__reference_room *room);
void mha__reference_outputs_of_batch_row(const struct mha__problem *p,
                                         int64_t b,
                                         const struct mha__reference_room *room);

#endif
