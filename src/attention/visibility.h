/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA__VISIBILITY_H
#define MHA__VISIBILITY_H

/*
 * From rules to tiles. Every rule by position leaves each query one span of keys [lo, hi); boolean
 * masks are looked up in it. A tile of scores is then one of three: skipped, full, or mixed with a
 * bit per cell, so that a hidden tile costs nothing and a full one no masking.
 */
#include "attention/rules.h"

#include <stdbool.h>
#include <stdint.h>

/* The rules of one batch row and head. */
struct mha__row_rules {
    const struct mha__rules *rules; /* or NULL */
    int64_t queries;                /* T_b: queries from here on are padding */
    int64_t keys;                   /* S_b, no key axis of a boolean mask being shorter */
    int64_t off; /* query i stands at key i + off; within its sequence if packed */
    bool causal;
    int64_t left, right;                        /* window, -1 = no bound */
    const int64_t *range_lo, *range_hi;         /* [T] or NULL */
    const int64_t *segment_first, *segment_end; /* [T] or NULL */
};

struct mha__span {
    int64_t lo, hi; /* lo <= hi; equal: nothing is visible */
};

enum mha__tile_class { MHA__TILE_SKIP, MHA__TILE_FULL, MHA__TILE_MIXED };

/* rules may be NULL: all is visible. */
void mha__visibility_of_batch_row(const struct mha__rules *rules,
                                  int64_t b,
                                  int64_t h,
                                  int64_t T,
                                  int64_t S,
                                  struct mha__row_rules *row);

struct mha__span mha__visibility_span(const struct mha__row_rules *row, int64_t i);

/* Where query i stands among the keys, for ALiBi: |i + off - j| = |stand - j|. */
int64_t mha__visibility_stand(const struct mha__row_rules *row, int64_t i);

/* Positions for rotary embeddings: counted within the sequence where the batch is packed. */
int64_t mha__visibility_query_position(const struct mha__row_rules *row, int64_t i);
int64_t mha__visibility_key_position(const struct mha__row_rules *row, int64_t j);

/*
 * The tile of queries i0 .. i0+rows-1 and keys j0 .. j0+columns-1 of (b, h); j0 is a multiple of
 * 64; spans[r] belongs to query i0 + r. MIXED fills bits [rows, words], bit c % 64 of word c / 64
 * for key j0 + c; columns <= 64 * words. Words beyond the columns are left alone.
 */
enum mha__tile_class mha__visibility_tile(const struct mha__rules *rules,
                                          const struct mha__span *spans,
                                          int64_t b,
                                          int64_t h,
                                          int64_t i0,
                                          int64_t rows,
                                          int64_t j0,
                                          int64_t columns,
                                          uint64_t *bits,
                                          int64_t words);

/* Visible (i, j) pairs by position, boolean masks not counted, of all batch rows and heads. */
int64_t
mha__visibility_pairs(const struct mha__rules *rules, int64_t B, int64_t H, int64_t T, int64_t S);

/* Whether some rule makes rows see different spans: then tiles near the diagonal are half empty. */
bool mha__visibility_is_banded(const struct mha__rules *rules);

/* Whether some rule depends on where queries stand: causal, window, ALiBi. */
bool mha__visibility_needs_alignment(const struct mha__rules *rules);

#endif
