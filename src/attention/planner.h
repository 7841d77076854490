/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA__PLANNER_H
#define MHA__PLANNER_H

/*
 * Decide first, then do: a pure function from sizes and settings to tiles, tasks and the workspace.
 * All tuning numbers live in planner.c. Nothing here looks at a tensor, a thread or a clock, and
 * sizes of tiles never depend on the number of threads: so the bits do not either.
 */
#include "platform/blas.h"

#include <stdbool.h>
#include <stdint.h>

struct mha__planner_request {
    int64_t B, T, S, H, G, D, Dv;
    int64_t Eq, Ek, Ev;
    bool project_q, project_k, project_v, project_out;
    bool gather;         /* an input of a projection is strided: its rows are copied first */
    bool banded;         /* causal or window: half of a tile near the diagonal is empty */
    bool weights;        /* some output is made of the weights */
    bool block;          /* … and they are no output themselves: a lane keeps rows of them */
    bool heads_together; /* the mean over the heads: a task takes all heads of its rows */
    bool masses;         /* sums of weights over the queries */
    bool scores;   /* somebody looks at the scores: an output or a callback; a tile is one band */
    bool by_rows;  /* some option beside these needs the scores or weights of a query in a row */
    int64_t extra; /* columns beside the S keys */
    int64_t top;   /* top keys a row */
    int64_t rotary_size;       /* 0: no rotary positions */
    int64_t rotary_key_tables; /* see rotary.h */
    int64_t threads;
    bool fused;                     /* MHA_ENGINE_FUSED: all products are our own */
    int64_t panel;                  /* of the kernel set in use: see panel_product */
    int64_t query_panel, row_panel; /* of its transposed form */
    struct mha__blas_state blas;
};

/* Scratch memory of one lane, in bytes from its start. Attention and projection take turns in it. */
struct mha__planner_lane {
    int64_t queries; /* [rows, D]  scaled */
    int64_t
        scores; /* [score_rows, score_ld] of a band: row 0 is its first; transposed [keys, queries] */
    int64_t out;          /* [rows, values_ld] */
    int64_t query_panels; /* [rows, D], transposed panel by panel, transposed form only */
    int64_t out_panels;   /* [rows, values_ld], the same */
    int64_t slots;        /* [key_slots] which tiles are in keys and values */
    int64_t keys;         /* [key_slots] packed tiles that the lane keeps from task to task */
    int64_t values;       /* the same; or one, with what is not finite replaced by 0 */
    int64_t rows;         /* 5 x [rows] max, sum, shrink, factor, p ln p */
    int64_t spans;        /* [rows] struct mha__span */
    int64_t visible;      /* [rows, key_tile / 64] bits */
    int64_t heads;        /* [H / G] struct mha__attend_head, direct only */
    int64_t maxima;       /* [key_tiles + 1, query_tile] the running maximum after each tile */
    int64_t block;        /* [query_tile, block_ld] weights, then [top] */
    int64_t product;      /* [row_tile, weight tile] */
    int64_t gathered;     /* [row_tile, widest input] */
    int64_t bytes;
};

struct mha__planner_plan {
    int64_t query_tile, key_tile;
    int64_t query_tiles, key_tiles;
    int64_t alike_band; /* queries a product where all rows see the same keys */
    int64_t
        rows; /* of a task: query_tile, in whole panels if transposed; the queries of a group if direct */
    bool direct;   /* keys and values are read in place: see attend_direct.c */
    bool unpacked; /* keys and values lie as they are given or projected: direct, or key_slots */
    int64_t key_slots;  /* transposed: packed tiles that a lane keeps; 0: all are packed before */
    int64_t key_splits; /* direct: chunks of keys, split_tiles tiles each */
    int64_t split_tiles;
    int64_t band;     /* queries a product in a mixed tile, each clipped to the keys its rows see */
    int64_t score_ld; /* row of a tile of scores, a multiple of 16 */
    int64_t score_rows; /* the most rows of a band */
    int64_t block_ld;   /* row of the block of weights, 0: no block */
    bool heads_together;
    bool fused;
    bool transposed; /* see attend_transposed.c */
    int64_t
        key_panel; /* columns of a panel of packed keys: all of a tile, panel_product's, or row_panel */
    int64_t value_panel; /* the same of packed values: Dv, panel_product's, or row_panel */
    int64_t value_keys;  /* keys from panel to panel of them: key_tile, or a line more */
    int64_t values_ld;   /* Dv in whole panels: a row of O, a key's share of the packed values */
    int64_t tasks;    /* B H query_tiles; heads_together: B query_tiles; direct: B G key_splits */
    int64_t few_rows; /* products of at most so many rows are our own */
    int64_t row_tile; /* projections: rows a task */
    int64_t columns; /* … and the most columns, unless rows are few; divides a wider weight tile */
    int64_t k_block; /* projections: inputs a product */
    int64_t lanes;

    /* The workspace, in bytes from its start; every piece 64-byte aligned. */
    int64_t q_heads; /* [B, T, H, D]   projected queries */
    int64_t o_heads; /* [B, T, H, Dv]  attention output before its projection; may be q_heads */
    int64_t
        keys; /* [B, G, key_tiles, key_tile / key_panel, D, key_panel]; unpacked: [B, S, G, D] */
    int64_t
        values; /* [B, G, key_tiles, values_ld / value_panel, value_keys, value_panel]; unpacked:
                          [B, S, G, Dv]; both only if they are projected */
    int64_t nonfinite; /* [B, G, key_tiles] bytes */
    /* [B, G, key_splits, rows, values_ld + 3] O, m, l, p ln p of chunks of keys, if there are several */
    int64_t partials;
    int64_t arrived;      /* [B, G] chunks that are done, int32 */
    int64_t masses;       /* [B, H, query_tiles, S + extra] weights summed over a task's rows */
    int64_t query_angles; /* see rotary.h */
    int64_t key_angles;
    int64_t lane0; /* lanes x lane.bytes */
    int64_t bytes;
    int64_t packed_bytes; /* keys, values, nonfinite */
    struct mha__planner_lane lane;
    const char *algorithm;
};

/* Columns of a weight that are stored together, a multiple of every panel; depends on the BLAS alone. */
enum { MHA__WEIGHT_TILE_MOST = 256 };
int64_t mha__planner_weight_tile(const struct mha__blas_state *blas);

/* False: a size overflows. */
bool mha__planner_make(const struct mha__planner_request *request, struct mha__planner_plan *plan);

#endif
