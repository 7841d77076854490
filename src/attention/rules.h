/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA__RULES_H
#define MHA__RULES_H

/*
 * Who may see whom, as plain data: what a mha_mask holds. Rules by position take O(1) or O(B)
 * memory, boolean masks a bit per cell. All hold at once.
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

struct mha__rules {
    bool causal;
    int32_t alignment;   /* MHA_ALIGNMENT_* */
    int64_t left, right; /* window, -1 = no bound */
    int64_t offset_batch, key_batch,
        query_batch; /* entries of the arrays below: 0 (none), 1 or B */
    int64_t *offsets;
    int64_t *key_lengths;
    int64_t *query_lengths;
    int64_t booleans;
    struct mha__boolean *boolean;
};

#endif
