/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA__ROTARY_H
#define MHA__ROTARY_H

/*
 * Rotary positions (RoFormer, Su et al. 2021): pair n of a head's first `size` features turns by the angle
 * position * base^(-2n / size). cos and sin are computed once a call, in float64, and kept as float32:
 *
 *   queries  [B, T, size / 2, 2]                                      a row a token
 *   keys     [batch, key_tiles, size / 2, 2, key_tile]                like the packed keys, a lane a key
 */
#include "attention/problem.h"

/* Angle tables are filled by independent tasks: blocks of queries, then key tables * key tiles. */
int64_t mha__rotary_tasks(const struct mha__problem *problem, const struct mha__means *means);
void mha__rotary_task(const struct mha__problem *problem,
                      const struct mha__means *means,
                      int64_t task);

/* Whether every batch row has the same key positions: then there is one key table. */
int64_t mha__rotary_key_tables(const struct mha__problem *problem);

/* Turns the features of query i of batch row b in place. */
void mha__rotary_turn_query(const struct mha__problem *problem,
                            const struct mha__means *means,
                            int64_t b,
                            int64_t i,
                            float *q);

/* Turns a packed tile of keys in place; tiles are independent, B * G * key_tiles of them. */
void mha__rotary_turn_keys(const struct mha__problem *problem,
                           const struct mha__means *means,
                           int64_t tile);

#endif
