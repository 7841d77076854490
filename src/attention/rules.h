/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA__RULES_H
#define MHA__RULES_H

/*
 * Who may see whom, as plain data: what a mha_mask holds. Rules by position take O(1), O(B) or O(T)
 * memory, boolean masks a bit per cell. All hold at once. An array with 0 entries is not set; one
 * with 1 entry a batch row (a head) serves all of them.
 */
#include <stdbool.h>
#include <stdint.h>

/* [batch, heads, queries, keys]; the first three are 1 (for all) or full. Bit j % 64 of word j / 64
 * of a row says: may be seen. Bits from `keys` on are 0. */
struct mha__boolean {
    int64_t batch, heads, queries, keys;
    int64_t words; /* a row: ceil(keys / 64) */
    uint64_t *bits;
};

/* Only equal ids see each other. What a query may see lies in first <= j < end; where the keys of
 * one id are not all side by side, ids are compared key by key. */
struct mha__segments {
    int64_t batch, queries, keys; /* batch 0: not set */
    int64_t *query_ids, *key_ids; /* [batch, queries], [batch, keys] */
    int64_t *first, *end;         /* [batch, queries] */
    bool scattered;
};

struct mha__rules {
    bool causal;
    int64_t causal_heads; /* entries of head_causal; 0: `causal` is for all heads */
    bool *head_causal;
    int64_t left, right; /* window, -1 = no bound */
    int64_t
        window_heads; /* entries of head_left, head_right; 0: `left`, `right` are for all heads */
    int64_t *head_left, *head_right;

    int32_t alignment; /* MHA_ALIGNMENT_* */
    int64_t offset_batch;
    int64_t *offsets;

    int64_t key_batch, query_batch;
    int64_t *key_lengths, *query_lengths;

    int64_t range_batch, range_queries;
    int64_t *range_lo, *range_hi; /* [batch, queries] */

    struct mha__segments segments;

    int64_t packed;                       /* sequences, 0: not packed */
    int64_t *query_offsets, *key_offsets; /* [packed + 1] */

    bool alibi;
    int64_t alibi_heads; /* entries of slopes; 0: the default slopes of H */
    float *slopes;

    int64_t booleans;
    struct mha__boolean *boolean;
};

#endif
