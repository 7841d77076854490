/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/visibility.h"

#include "platform/sizes.h"

#include <mha/mask.h>

#include <stddef.h>

static int64_t entry(const int64_t *array, int64_t batch, int64_t b, int64_t otherwise)
{
    return batch == 0 ? otherwise : array[batch == 1 ? 0 : b];
}

static const int64_t *batch_row(const int64_t *array, int64_t batch, int64_t b, int64_t length)
{
    return batch == 0 ? NULL : array + (batch == 1 ? 0 : b) * length;
}

void mha__visibility_of_batch_row(const struct mha__rules *rules,
                                  int64_t b,
                                  int64_t h,
                                  int64_t T,
                                  int64_t S,
                                  struct mha__row_rules *row)
{
    *row =
        (struct mha__row_rules){.rules = rules, .queries = T, .keys = S, .left = -1, .right = -1};
    if (!rules) {
        return;
    }
    row->queries = entry(rules->query_lengths, rules->query_batch, b, T);
    row->keys = entry(rules->key_lengths, rules->key_batch, b, S);
    if (rules->packed > 0) {
        row->queries = rules->query_offsets[rules->packed];
        row->keys = rules->key_offsets[rules->packed];
    } else if (rules->alignment == MHA_ALIGNMENT_BOTTOM_RIGHT) {
        row->off = row->keys - row->queries;
    } else if (rules->alignment == MHA_ALIGNMENT_EXPLICIT) {
        row->off = entry(rules->offsets, rules->offset_batch, b, 0);
    }
    for (int64_t m = 0; m < rules->booleans; m++) {
        row->keys = mha__smaller(row->keys, rules->boolean[m].keys);
    }
    row->causal = rules->causal_heads ? rules->head_causal[h] : rules->causal;
    row->left = rules->window_heads ? rules->head_left[h] : rules->left;
    row->right = rules->window_heads ? rules->head_right[h] : rules->right;
    row->range_lo = batch_row(rules->range_lo, rules->range_batch, b, rules->range_queries);
    row->range_hi = batch_row(rules->range_hi, rules->range_batch, b, rules->range_queries);
    const struct mha__segments *segments = &rules->segments;
    row->segment_first = batch_row(segments->first, segments->batch, b, segments->queries);
    row->segment_end = batch_row(segments->end, segments->batch, b, segments->queries);
}

/* The sequence s with offsets[s] <= x < offsets[s + 1]; offsets[0] = 0 <= x < offsets[n]. */
static int64_t sequence_of(const int64_t *offsets, int64_t n, int64_t x)
{
    int64_t low = 0;
    int64_t high = n;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (offsets[middle] <= x) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

/* The keys of the sequence of query i and what is added to i to stand among them. */
struct sequence {
    int64_t first, end, off;
};

static struct sequence find_sequence(const struct mha__row_rules *row, int64_t i)
{
    const struct mha__rules *rules = row->rules;
    if (!rules || rules->packed == 0) {
        return (struct sequence){0, row->keys, row->off};
    }
    const int64_t s = sequence_of(rules->query_offsets, rules->packed, i);
    const int64_t q0 = rules->query_offsets[s];
    const int64_t k0 = rules->key_offsets[s];
    const int64_t k1 = rules->key_offsets[s + 1];
    int64_t off = k0 - q0;
    if (rules->alignment == MHA_ALIGNMENT_BOTTOM_RIGHT) {
        off = k1 - rules->query_offsets[s + 1];
    } else if (rules->alignment == MHA_ALIGNMENT_EXPLICIT) {
        off += entry(rules->offsets, rules->offset_batch, s, 0);
    }
    return (struct sequence){k0, mha__smaller(k1, row->keys), off};
}

int64_t mha__visibility_stand(const struct mha__row_rules *row, int64_t i)
{
    return i < row->queries ? i + find_sequence(row, i).off : i;
}

int64_t mha__visibility_query_position(const struct mha__row_rules *row, int64_t i)
{
    if (i >= row->queries) {
        return i + row->off; // padding
    }
    const struct sequence sequence = find_sequence(row, i);
    return i + sequence.off - sequence.first;
}

int64_t mha__visibility_key_position(const struct mha__row_rules *row, int64_t j)
{
    const struct mha__rules *rules = row->rules;
    if (!rules || rules->packed == 0 || j >= rules->key_offsets[rules->packed]) {
        return j;
    }
    return j - rules->key_offsets[sequence_of(rules->key_offsets, rules->packed, j)];
}

static bool is_bound(int64_t bound)
{
    return bound >= 0 && bound < INT64_MAX / 4;
}

struct mha__span mha__visibility_span(const struct mha__row_rules *row, int64_t i)
{
    struct mha__span span = {0, 0};
    if (i >= row->queries) {
        return span;
    }
    const struct sequence sequence = find_sequence(row, i);
    const int64_t stand = i + sequence.off;
    span.lo = sequence.first;
    span.hi = sequence.end;
    if (row->causal) {
        span.hi = mha__smaller(span.hi, stand + 1); // j <= i + off
    }
    if (is_bound(row->right)) {
        span.hi = mha__smaller(span.hi, stand + row->right + 1); // j <= i + off + right
    }
    if (is_bound(row->left)) {
        span.lo = mha__larger(span.lo, stand - row->left); // j >= i + off - left
    }
    if (row->range_lo) {
        span.lo = mha__larger(span.lo, row->range_lo[i]);
        span.hi = mha__smaller(span.hi, row->range_hi[i]);
    }
    if (row->segment_first) {
        span.lo = mha__larger(span.lo, row->segment_first[i]);
        span.hi = mha__smaller(span.hi, row->segment_end[i]);
    }
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

/* Those of the set bits of a word whose keys j + c have the id of query i. */
static uint64_t
segment_bits(const struct mha__segments *segments, int64_t b, int64_t i, int64_t j, uint64_t word)
{
    const int64_t row = segments->batch == 1 ? 0 : b;
    const int64_t id = segments->query_ids[row * segments->queries + i];
    const int64_t *keys = segments->key_ids + row * segments->keys + j;
    uint64_t bits = 0;
    for (; word; word &= word - 1) {
        const int c = __builtin_ctzll(word);
        bits |= (uint64_t)(keys[c] == id) << c;
    }
    return bits;
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
    const bool scattered = rules && rules->segments.scattered;
    if (none) {
        return MHA__TILE_SKIP;
    }
    if (all && booleans == 0 && !scattered) {
        return MHA__TILE_FULL;
    }
    const struct mha__span inside = {j0, j0 + columns};
    uint64_t some = 0;
    uint64_t hidden = 0;
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t w = 0; 64 * w < columns; w++) {
            const int64_t j = j0 + 64 * w;
            const uint64_t real = span_bits(inside, j);
            uint64_t word = real & span_bits(spans[r], j);
            for (int64_t m = 0; m < booleans && word; m++) {
                const struct mha__boolean *mask = &rules->boolean[m];
                // Beyond the mask's own words its key axis has ended: hidden.
                word &= j / 64 < mask->words ? boolean_row(mask, b, h, i0 + r)[j / 64] : 0;
            }
            if (scattered && word) {
                word = segment_bits(&rules->segments, b, i0 + r, j, word);
            }
            bits[r * words + w] = word;
            some |= word;
            hidden |= real & ~word;
        }
    }
    return !some ? MHA__TILE_SKIP : !hidden ? MHA__TILE_FULL : MHA__TILE_MIXED;
}

static int64_t length_of(const struct mha__row_rules *row, int64_t i)
{
    const struct mha__span span = mha__visibility_span(row, i);
    return span.hi - span.lo;
}

/*
 * sum of the span lengths of queries 0 .. queries-1. By causal, window and lengths alone the length is
 * linear in i between a few places where a bound begins or ends to matter: each stretch is summed by its
 * ends. Other rules are asked query by query.
 */
static int64_t pairs_of_row(const struct mha__row_rules *row)
{
    int64_t pairs = 0;
    if (row->range_lo || row->segment_first || (row->rules && row->rules->packed > 0)) {
        for (int64_t i = 0; i < row->queries; i++) {
            pairs += length_of(row, i);
        }
        return pairs;
    }
    const int64_t left = is_bound(row->left) ? row->left : 0;
    const int64_t right = is_bound(row->right) ? row->right : 0;
    const int64_t places[] = {0, left, -right, row->keys, row->keys + left, row->keys - right};
    for (int64_t i = 0, end; i < row->queries; i = end) {
        end = row->queries;
        for (size_t n = 0; n < sizeof places / sizeof *places; n++) {
            for (int64_t near = -2; near <= 2; near++) {
                const int64_t at = places[n] - row->off + near;
                end = at > i && at < end ? at : end;
            }
        }
        pairs += (length_of(row, i) + length_of(row, end - 1)) * (end - i) / 2;
    }
    return pairs;
}

int64_t
mha__visibility_pairs(const struct mha__rules *rules, int64_t B, int64_t H, int64_t T, int64_t S)
{
    if (!rules || T == 0 || S == 0) {
        return B * H * T * S;
    }
    const bool alike = rules->causal_heads == 0 && rules->window_heads == 0;
    int64_t pairs = 0;
    for (int64_t b = 0; b < B; b++) {
        for (int64_t h = 0; h < (alike ? 1 : H); h++) {
            struct mha__row_rules row;
            mha__visibility_of_batch_row(rules, b, h, T, S, &row);
            pairs += pairs_of_row(&row);
        }
    }
    return alike ? pairs * H : pairs;
}

bool mha__visibility_is_banded(const struct mha__rules *rules)
{
    return rules && (rules->causal || rules->left >= 0 || rules->right >= 0 ||
                     rules->causal_heads > 0 || rules->window_heads > 0 || rules->range_batch > 0 ||
                     rules->segments.batch > 0 || rules->packed > 0);
}

bool mha__visibility_needs_alignment(const struct mha__rules *rules)
{
    bool needs = rules->causal || rules->left >= 0 || rules->right >= 0 || rules->alibi;
    for (int64_t h = 0; h < rules->causal_heads; h++) {
        needs = needs || rules->head_causal[h];
    }
    for (int64_t h = 0; h < rules->window_heads; h++) {
        needs = needs || rules->head_left[h] >= 0 || rules->head_right[h] >= 0;
    }
    return needs;
}
