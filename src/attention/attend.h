/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA__ATTEND_H
#define MHA__ATTEND_H

#include "attention/problem.h"

/*
 * Attention of all heads, keys and values being packed: for each (b, h, tile of queries)
 *
 *   o_i = sum_j p_ij v_j    p_ij = allowed ? exp(s_ij - m_i) / l_i : 0    s_ij = scale <q_i, k_j>
 *
 * queries is read by [B,T,H,D] strides, out written by [B,T,H,Dv] strides. The weights and the
 * log-sum-exp are written where the problem has them.
 */
int32_t mha__attend(const struct mha__problem *problem,
                    const struct mha__means *means,
                    const struct mha__input *queries,
                    const struct mha__output *out,
                    mha_error *err);

/* One task of it, by name: shared by attend.c and attend_rows.c. */
struct mha__attend_task {
    const struct mha__problem *problem;
    const struct mha__means *means;
    struct mha__input queries;
    struct mha__output out;

    int64_t b, h, g;
    int64_t i0, rows; /* the tile of queries */
    struct mha__row_rules row_rules;

    /* scratch memory of the lane */
    float *q, *scores, *o, *finite_values;
    float *row_max, *row_sum, *shrink;
    float *maxima;
    struct mha__span *spans;
    uint64_t *visible;
};

/* Columns of key tile `tile`, from its start, that some of rows r0 .. r0+rows-1 may see by
 * position. */
int64_t
mha__attend_columns(const struct mha__attend_task *task, int64_t tile, int64_t r0, int64_t rows);

enum mha__tile_class
mha__attend_classify(const struct mha__attend_task *task, int64_t tile, int64_t columns);

/* weights[i, tile] <- p of the tile just done (columns numbers of scores; the rest of the tile is
 * 0). */
void mha__attend_keep_weights(const struct mha__attend_task *task, int64_t tile, int64_t columns);

/* After the last tile: out, log-sum-exp and weights of the rows. */
void mha__attend_finish_rows(const struct mha__attend_task *task);

#endif
