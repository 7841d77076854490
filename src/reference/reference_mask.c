/* SPDX-License-Identifier: Apache-2.0 */
#include "reference/reference_parts.h"

#include <mha/mask.h>

#include <math.h>

/* The sequence of a packed batch that holds a token, -1 past the last one; 0 where nothing is
 * packed. */
static int64_t sequence_of(const struct mha__rules *rules, const int64_t *offsets, int64_t token)
{
    if (rules->packed == 0) {
        return 0;
    }
    for (int64_t s = 0; s < rules->packed; s++) {
        if (offsets[s] <= token && token < offsets[s + 1]) {
            return s;
        }
    }
    return -1;
}

/* S_b and T_b; of a packed batch those of sequence s. */
static int64_t keys_of(const struct mha__problem *p, int64_t b, int64_t s)
{
    const struct mha__rules *r = p->rules;
    if (r->packed > 0) {
        return r->key_offsets[s + 1] - r->key_offsets[s];
    }
    return r->key_batch == 0 ? p->S : r->key_lengths[r->key_batch == 1 ? 0 : b];
}

static int64_t queries_of(const struct mha__problem *p, int64_t b, int64_t s)
{
    const struct mha__rules *r = p->rules;
    if (r->packed > 0) {
        return r->query_offsets[s + 1] - r->query_offsets[s];
    }
    return r->query_batch == 0 ? p->T : r->query_lengths[r->query_batch == 1 ? 0 : b];
}

/* off[b] */
static int64_t offset_of(const struct mha__problem *p, int64_t b, int64_t s)
{
    const struct mha__rules *r = p->rules;
    switch (r->alignment) {
    case MHA_ALIGNMENT_BOTTOM_RIGHT:
        return keys_of(p, b, s) - queries_of(p, b, s);
    case MHA_ALIGNMENT_EXPLICIT:
        return r->offsets[r->offset_batch == 1 ? 0 : r->packed > 0 ? s : b];
    default:
        return 0;
    }
}

bool mha__reference_mask_real(const struct mha__problem *p, int64_t b, int64_t i)
{
    const struct mha__rules *r = p->rules;
    if (!r) {
        return true;
    }
    return r->packed > 0 ? sequence_of(r, r->query_offsets, i) >= 0 : i < queries_of(p, b, 0);
}

int64_t mha__reference_mask_query_position(const struct mha__problem *p, int64_t b, int64_t i)
{
    const struct mha__rules *r = p->rules;
    const int64_t s = r ? sequence_of(r, r->query_offsets, i) : 0;
    if (!r || s < 0) {
        return i;
    }
    return i - (r->packed > 0 ? r->query_offsets[s] : 0) + offset_of(p, b, s);
}

int64_t mha__reference_mask_key_position(const struct mha__problem *p, int64_t b, int64_t j)
{
    const struct mha__rules *r = p->rules;
    (void)b;
    const int64_t s = r ? sequence_of(r, r->key_offsets, j) : 0;
    return !r || r->packed == 0 || s < 0 ? j : j - r->key_offsets[s];
}

static bool boolean_allows(const struct mha__boolean *m, int64_t b, int64_t h, int64_t i, int64_t j)
{
    if (j >= m->keys) {
        return false;
    }
    const int64_t row =
        ((m->batch == 1 ? 0 : b) * m->heads + (m->heads == 1 ? 0 : h)) * m->queries +
        (m->queries == 1 ? 0 : i);
    return m->bits[row * m->words + j / 64] >> (j % 64) & 1;
}

static bool bias_allows(const struct mha__bias *bias, int64_t b, int64_t h, int64_t i, int64_t j)
{
    return j < bias->keys &&
           bias->data[b * bias->stride[0] + h * bias->stride[1] + i * bias->stride[2] + j] !=
               -INFINITY;
}

static bool rules_allow(const struct mha__problem *p, int64_t b, int64_t h, int64_t i, int64_t j)
{
    const struct mha__rules *r = p->rules;
    // key length; sequences of a packed batch
    if (r->packed > 0) {
        const int64_t s = sequence_of(r, r->key_offsets, j);
        if (s < 0 || s != sequence_of(r, r->query_offsets, i)) {
            return false;
        }
    } else if (j >= keys_of(p, b, 0)) {
        return false;
    }
    // causal: j <= i + off
    const int64_t ahead =
        mha__reference_mask_key_position(p, b, j) - mha__reference_mask_query_position(p, b, i);
    const bool causal =
        r->causal_heads > 0 ? r->head_causal[r->causal_heads == 1 ? 0 : h] : r->causal;
    if (causal && ahead > 0) {
        return false;
    }
    // window: i + off - left <= j <= i + off + right
    const int64_t which = r->window_heads == 1 ? 0 : h;
    const int64_t left = r->window_heads > 0 ? r->head_left[which] : r->left;
    const int64_t right = r->window_heads > 0 ? r->head_right[which] : r->right;
    if ((left >= 0 && -ahead > left) || (right >= 0 && ahead > right)) {
        return false;
    }
    // range: lo <= j < hi
    if (r->range_batch > 0) {
        const int64_t row = (r->range_batch == 1 ? 0 : b) * r->range_queries + i;
        if (j < r->range_lo[row] || j >= r->range_hi[row]) {
            return false;
        }
    }
    // segment: equal ids
    const struct mha__segments *g = &r->segments;
    if (g->batch > 0) {
        const int64_t row = g->batch == 1 ? 0 : b;
        if (g->query_ids[row * g->queries + i] != g->key_ids[row * g->keys + j]) {
            return false;
        }
    }
    // every boolean mask
    for (int64_t m = 0; m < r->booleans; m++) {
        if (!boolean_allows(&r->boolean[m], b, h, i, j)) {
            return false;
        }
    }
    return true;
}

bool mha__reference_mask_allowed(
    const struct mha__problem *p, int64_t b, int64_t h, int64_t i, int64_t j)
{
    // a padded query sees nothing, every real one sees the extra keys
    if (!mha__reference_mask_real(p, b, i)) {
        return false;
    }
    if (j >= p->S) {
        return true;
    }
    if (p->rules && !rules_allow(p, b, h, i, j)) {
        return false;
    }
    // no bias is -infinity
    for (int64_t n = 0; n < p->biases; n++) {
        if (!bias_allows(&p->bias[n], b, h, i, j)) {
            return false;
        }
    }
    return true;
}
