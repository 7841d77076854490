/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA__ATTEND_H
#define MHA__ATTEND_H

#include "attention/problem.h"

/*
 * Attention of all heads: for each (b, h, tile of queries) over packed keys and values, or, where the plan is
 * direct, for each (b, g, chunk of keys) over keys and values in place
 *
 *   o_i = gate sum_j p_ij keep_ij / (1 - dropout) v_j    p_ij = allowed ? exp(s_ij - m_i) / l_i : 0
 *   s_ij = cap(scale <q_i, k_j>) + biases - slope |i + off - j|
 *
 * queries is read by [B,T,H,D] strides, out written by [B,T,H,Dv] strides; every other output is written
 * where the problem has it. keys [B,S,G,D] and values [B,S,G,Dv] are read by their strides if the plan has
 * them unpacked.
 */
int32_t mha__attend(const struct mha__problem *problem,
                    const struct mha__means *means,
                    const struct mha__input *queries,
                    const struct mha__input *keys,
                    const struct mha__input *values,
                    const struct mha__output *out,
                    mha_error *err);

/* One task of it, by name, as the attend_*.c files share it. */
struct mha__attend_task {
    const struct mha__problem *problem;
    const struct mha__means *means;
    struct mha__input queries;
    struct mha__input keys, values; /* where the plan has them unpacked */
    struct mha__output out;

    int64_t b, h, g;
    int64_t i0, rows; /* the tile of queries */
    int64_t number;   /* (b, h, tile) counted through: the row of the key masses */
    float scale, softcap, slope, gate;
    float
        left_scale; /* what the finished sums are still multiplied by: 1, or the scale if |scale| > 1 */
    struct mha__row_rules row_rules;

    /* scratch memory of the lane */
    float *q, *scores, *o, *finite_values;
    float *
        packed_keys; /* key_slots tiles that the lane packed itself; their values are in finite_values */
    int64_t *slots; /* [key_slots] which ones, (b, g, tile) counted through; -1: none */
    float *row_max, *row_sum, *shrink; /* over the keys seen so far, sinks apart */
    float *row_factor;                 /* weight = exp(s - m) * factor, once all keys are seen */
    float *query_panels,
        *out_panels;       /* transposed form: [D, queries], [values_ld, queries] of each panel */
    uint64_t panels_begun; /* a bit for each panel whose O^T holds sums */
    float *p_ln_p;         /* sum p ln p with p = exp(s - m), for the entropy */
    float *maxima;         /* the running maximum after each tile */
    float *block;  /* [rows, block_ld] weights that are no output themselves; behind it [top] */
    bool is_begun; /* o holds sums; until then it holds anything */
    struct mha__span *spans;
    uint64_t *visible;

    struct mha__profile_lane *clock; /* the lane's, or NULL */
};

/*
 * Rows of a task and the columns of a key tile that they may see by position: a tile is worked on band by
 * band. first is a multiple of every panel; first = end: nothing to see. Cells outside are never read.
 */
struct mha__attend_band {
    int64_t r0, rows;
    int64_t first, end;
};

/* One head of a group in the direct form: rows of their own in the arrays of the group. */
struct mha__attend_head {
    struct mha__attend_task task;
    struct mha__attend_band band; /* of the tile at hand */
    enum mha__tile_class class;
};

/* Row r of the task in an output [B,H,T,…]. */
static inline float *
mha__attend_row(const struct mha__attend_task *t, const struct mha__rows *rows, int64_t r)
{
    return rows->data + t->b * rows->stride[0] + t->h * rows->stride[1] +
           (t->i0 + r) * rows->stride[2];
}

/* Key j of the task's key-value head, or its value, where they are unpacked. */
static inline const float *
mha__attend_given(const struct mha__attend_task *t, const struct mha__input *x, int64_t j)
{
    return x->data + t->b * x->batch + t->g * x->head + j * x->token;
}

/* ---- attend.c ---- */

/* Where the arrays of a lane lie. */
void mha__attend_find_scratch(struct mha__attend_task *task, int64_t lane);

/* What belongs to head h. */
void mha__attend_name_head(struct mha__attend_task *task, int64_t h);

/* The rules and spans of the rows, which have seen no key yet; the keys [first, end) that some row may see,
 * first >= end if there are none. */
void mha__attend_begin_rows(struct mha__attend_task *task, int64_t *first, int64_t *end);

/* The queries of the rows, scaled and turned. */
void mha__attend_load_queries(struct mha__attend_task *task);

/* Rows r0 .. r0+rows-1 and the columns of key tile `tile` that some of them may see by position. */
struct mha__attend_band
mha__attend_band(const struct mha__attend_task *task, int64_t tile, int64_t r0, int64_t rows);

/* Keys of a tile: key_tile, or fewer in the last one. */
int64_t mha__attend_tile_keys(const struct mha__attend_task *task, int64_t tile);

/* Skipped, full or mixed, with biases of -infinity; MIXED leaves the bits of the band in task->visible,
 * row r's from words * r on: whole words, so those beside first .. end-1 are 0. */
enum mha__tile_class mha__attend_classify(const struct mha__attend_task *task,
                                          int64_t tile,
                                          const struct mha__attend_band *band);

/* Whether row r may see column c of a band of that class that was just classified. */
bool mha__attend_sees(const struct mha__attend_task *task,
                      enum mha__tile_class class,
                      int64_t r,
                      int64_t c);

/* ---- attend_direct.c ---- */

/* All tasks of the direct form; `common` has what they share. */
int32_t mha__attend_direct(const struct mha__attend_task *common, mha_error *err);

/* ---- attend_tile.c ---- */

/* P and the running (m, l) of a band; hidden cells by its bits, or none. O follows the move. */
void mha__attend_soften(const struct mha__attend_task *task,
                        const struct mha__attend_band *band,
                        bool is_mixed);

/* Dropout of a band whose column 0 is key j0. */
void mha__attend_drop(const struct mha__attend_task *task,
                      int64_t j0,
                      const struct mha__attend_band *band);

void mha__attend_tile(const struct mha__attend_task *task, int64_t tile);

/* finite <- a packed tile of values with 0 for what is not finite: rows that may see that get it in
 * attend_rows.c. */
void mha__attend_keep_finite(const struct mha__attend_task *task,
                             const float *values,
                             float *finite);

/* The packed values of a tile, all of them finite. */
const float *mha__attend_tile_values(const struct mha__attend_task *task, int64_t tile);

/* The keys of the extra columns, after the last tile. */
void mha__attend_extra(const struct mha__attend_task *task);

/* ---- attend_transposed.c ---- */

/* Key tiles first .. end-1 of a head, O^T with what they give. */
void mha__attend_transposed(struct mha__attend_task *task, int64_t first, int64_t end);

/* out = gate diag(row_factor) O, out of O^T. */
void mha__attend_store_transposed(const struct mha__attend_task *task);

/* ---- attend_scores.c ---- */

/* Some stage of the scores is an output: then all of a tile is computed, hidden or not. */
bool mha__attend_wants_scores(const struct mha__problem *problem);

/* From products to scores, in a band of a tile. */
void mha__attend_score_options(const struct mha__attend_task *task,
                               int64_t tile,
                               const struct mha__attend_band *band);

/* scores_biased of a tile, -infinity where hidden. */
void mha__attend_keep_biased(const struct mha__attend_task *task,
                             enum mha__tile_class class,
                             int64_t tile);

/* Clears the bits of cells of a band that a bias hides: -infinity, or keys beyond its last axis. The bits
 * of row r begin at task->visible + words * r. */
void mha__attend_hide_by_bias(const struct mha__attend_task *task,
                              int64_t tile,
                              const struct mha__attend_band *band,
                              int64_t words);

/* ---- attend_rows.c ---- */

/* What a row of O is multiplied by beside gate and dropout: 0 for a row that saw no key, whatever its sink is. */
float mha__attend_factor(const struct mha__attend_task *task, int64_t r);

/* After the last tile: out, log-sum-exp, statistics and weights of the rows. */
void mha__attend_finish_rows(const struct mha__attend_task *task);

/* ---- attend_weights.c ---- */

/* Some output is made of the weights: they are kept, in place or in the lane's block. */
bool mha__attend_wants_weights(const struct mha__problem *problem);

/* weights[i, at ..] <- p of the band just done, `count` numbers a row: zeros outside of first .. end-1. */
void mha__attend_keep_weights(const struct mha__attend_task *task,
                              int64_t slot,
                              int64_t at,
                              const struct mha__attend_band *band,
                              int64_t count);

/* Normalises the kept weights and hands them to every output made of them. */
void mha__attend_finish_weights(const struct mha__attend_task *task);

/* key_mass and key_mass_total of batch row b, from the masses of its tasks in their order. */
void mha__attend_reduce_mass(const struct mha__problem *problem,
                             const struct mha__means *means,
                             int64_t b);

#endif
