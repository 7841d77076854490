/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/visibility.h"

#include <mha/mask.h>

#include <stddef.h>

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t entry(const int64_t *array, int64_t batch, int64_t b, int64_t otherwise)
{
    return batch == 0 ? otherwise : array[batch == 1 ? 0 : b];
}

void mha__visibility_of_batch_row(
    const struct mha__rules *rules, int64_t b, int64_t T, int64_t S, struct mha__row_rules *row)
{
    *row = (struct mha__row_rules){.queries = T, .keys = S, .back = INT64_MAX, .ahead = INT64_MAX};
    if (!rules) {
        return;
    }
    row->queries = entry(rules->query_lengths, rules->query_batch, b, T);
    row->keys = entry(rules->key_lengths, rules->key_batch, b, S);
    int64_t off = 0;
    if (rules->alignment == MHA_ALIGNMENT_BOTTOM_RIGHT) {
        off = row->keys - row->queries;
    } else if (rules->alignment == MHA_ALIGNMENT_EXPLICIT) {
        off = entry(rules->offsets, rules->offset_batch, b, 0);
    }
    for (int64_t m = 0; m < rules->booleans; m++) {
        row->keys = smaller(row->keys, rules->boolean[m].keys);
    }
    if (rules->causal) {
        row->ahead = off + 1; // j <= i + off
    }
    if (rules->right >= 0 && rules->right < INT64_MAX / 4) {
        row->ahead = smaller(row->ahead, off + rules->right + 1); // j <= i + off + right
    }
    if (rules->left >= 0 && rules->left < INT64_MAX / 4) {
        row->back = rules->left - off; // j >= i + off - left
    }
}

struct mha__span mha__visibility_span(const struct mha__row_rules *row, int64_t i)
{
    struct mha__span span = {0, 0};
    if (i >= row->queries) {
        return span;
    }
    if (row->back != INT64_MAX && i > row->back) {
        span.lo = i - row->back;
    }
    span.hi = row->ahead == INT64_MAX ? row->keys : smaller(row->keys, i + row->ahead);
    if (span.hi <= span.lo) {
        span.lo = span.hi = 0;
    }
    return span;
}

/* Bits c of one word whose keys j0 + c lie in the span. */
static uint64_t span_bits(struct mha__span span, int64_t j0)
{
    if (span.hi <= j0 || span.lo >= j0 + 64) {
        return 0;
    }
    uint64_t bits = ~UINT64_C(0);
    if (span.lo > j0) {
        bits &= ~UINT64_C(0) << (span.lo - j0);
    }
    if (span.hi < j0 + 64) {
        bits &= ~UINT64_C(0) >> (j0 + 64 - span.hi);
    }
    return bits;
}

static const uint64_t *boolean_row(const struct mha__boolean *mask, int64_t b, int64_t h, int64_t i)
{
    int64_t row = mask->batch == 1 ? 0 : b;
    row = row * mask->heads + (mask->heads == 1 ? 0 : h);
    row = row * mask->queries + (mask->queries == 1 ? 0 : i);
    return mask->bits + row * mask->words;
}

enum mha__tile_class mha__visibility_tile(const struct mha__rules *rules,
                                          const struct mha__span *spans,
                                          int64_t b,
                                          int64_t h,
                                          int64_t i0,
                                          int64_t rows,
                                          int64_t j0,
                                          int64_t columns,
                                          uint64_t *bits,
                                          int64_t words)
{
    bool all = true;
    bool none = true;
    for (int64_t r = 0; r < rows; r++) {
        all = all && spans[r].lo <= j0 && spans[r].hi >= j0 + columns;
        none = none &&
               (spans[r].hi <= j0 || spans[r].lo >= j0 + columns || spans[r].lo == spans[r].hi);
    }
    const int64_t booleans = rules ? rules->booleans : 0;
    if (none) {
        return MHA__TILE_SKIP;
    }
    if (all && booleans == 0) {
        return MHA__TILE_FULL;
    }
    const struct mha__span inside = {j0, j0 + columns};
    uint64_t some = 0;
    uint64_t hidden = 0;
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t w = 0; w < words; w++) {
            const int64_t j = j0 + 64 * w;
            const uint64_t real = span_bits(inside, j);
            uint64_t word = real & span_bits(spans[r], j);
            for (int64_t m = 0; m < booleans && word; m++) {
                const struct mha__boolean *mask = &rules->boolean[m];
                // Beyond the mask's own words its key axis has ended: hidden.
                word &= j / 64 < mask->words ? boolean_row(mask, b, h, i0 + r)[j / 64] : 0;
            }
            bits[r * words + w] = word;
            some |= word;
            hidden |= real & ~word;
        }
    }
    return !some ? MHA__TILE_SKIP : !hidden ? MHA__TILE_FULL : MHA__TILE_MIXED;
}

int64_t mha__visibility_pairs(const struct mha__rules *rules, int64_t B, int64_t T, int64_t S)
{
    if (!rules) {
        return B * T * S;
    }
    int64_t pairs = 0;
    for (int64_t b = 0; b < B; b++) {
        struct mha__row_rules row;
        mha__visibility_of_batch_row(rules, b, T, S, &row);
        for (int64_t i = 0; i < row.queries; i++) {
            struct mha__span span = mha__visibility_span(&row, i);
            pairs += span.hi - span.lo;
        }
    }
    return pairs;
}

bool mha__visibility_is_banded(const struct mha__rules *rules)
{
    return rules && (rules->causal || rules->left >= 0 || rules->right >= 0);
}
