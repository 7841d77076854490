/* SPDX-License-Identifier: Apache-2.0 */
/* The second part of trial.h: what its options mean. */
#include <math.h>

#include "platform/philox.h"
#include "trial.h"

int64_t trial_extra(const trial *p)
{
    return (p->bias_kv ? 1 : 0) + (p->zero_key ? 1 : 0);
}

int64_t trial_columns(const trial *p)
{
    return p->S + trial_extra(p);
}

float trial_scale(const trial *p)
{
    return p->scale_is_set ? p->scale : (float)(1.0 / sqrt((double)p->D));
}

float trial_head_scale(const trial *p, int64_t h)
{
    return p->head_scales_are_set ? p->head_scales[h] : trial_scale(p);
}

float trial_softcap(const trial *p, int64_t h)
{
    return p->head_softcaps_are_set ? p->head_softcaps[h] : p->softcap;
}

float trial_slope(const trial *p, int64_t h)
{
    if (!p->alibi) {
        return 0;
    }
    if (p->slopes_are_set) {
        return p->slopes[h];
    }
    /* the slopes of a power of two, then every second one of the next power */
    int64_t n = 1;
    while (n * 2 <= p->H) {
        n *= 2;
    }
    double exponent = h < n ? 8.0 / (double)n * (double)(h + 1)
                            : 4.0 / (double)n * (double)(2 * (h - n) + 1);
    return (float)pow(0.5, exponent);
}

int64_t trial_keys(const trial *p, int64_t b)
{
    return p->key_batch ? p->key_lengths[p->key_batch == 1 ? 0 : b] : p->S;
}

int64_t trial_queries(const trial *p, int64_t b)
{
    return p->query_batch ? p->query_lengths[p->query_batch == 1 ? 0 : b] : p->T;
}

/* ---- where tokens stand ---- */

/* The packed sequence of a token, p->packed for padding; 0 where nothing is packed. */
static int64_t sequence(const trial *p, const int64_t *offsets, int64_t token)
{
    int64_t s = 0;
    while (s < p->packed && token >= offsets[s + 1]) {
        ++s;
    }
    return s;
}

int trial_is_real(const trial *p, int64_t b, int64_t i)
{
    return p->packed ? sequence(p, p->query_offsets, i) < p->packed : i < trial_queries(p, b);
}

int64_t trial_query_position(const trial *p, int64_t b, int64_t i)
{
    int64_t s = sequence(p, p->query_offsets, i), row = b;
    int64_t keys = trial_keys(p, b), queries = trial_queries(p, b);
    if (p->packed && s == p->packed) {
        return i;
    }
    if (p->packed) {
        row = s;
        keys = p->key_offsets[s + 1] - p->key_offsets[s];
        queries = p->query_offsets[s + 1] - p->query_offsets[s];
        i -= p->query_offsets[s];
    }
    switch (p->alignment) {
    case MHA_ALIGNMENT_BOTTOM_RIGHT:
        return i + keys - queries;
    case MHA_ALIGNMENT_EXPLICIT:
        return i + p->offsets[p->offset_batch == 1 ? 0 : row];
    default:
        return i;
    }
}

int64_t trial_key_position(const trial *p, int64_t b, int64_t j)
{
    (void)b;
    int64_t s = sequence(p, p->key_offsets, j);
    return p->packed && s < p->packed ? j - p->key_offsets[s] : j;
}

/* ---- who may see whom ---- */

static int boolean_allows(const boolean_mask *m, int64_t b, int64_t h, int64_t i, int64_t j)
{
    if (j >= m->shape[3]) {
        return 0; /* a last axis shorter than S hides the rest, inverted or not */
    }
    int64_t at = (m->shape[0] == 1 ? 0 : b) * m->strides[0]
                 + (m->shape[1] == 1 ? 0 : h) * m->strides[1]
                 + (m->shape[2] == 1 ? 0 : i) * m->strides[2] + j * m->strides[3];
    int set = m->bytes[at] != 0;
    return m->flags & MHA_MASK_INVERTED ? !set : set;
}

int trial_mask_allows(const trial *p, int64_t b, int64_t h, int64_t i, int64_t j)
{
    int64_t centre = trial_query_position(p, b, i), at = trial_key_position(p, b, j);
    int causal = p->head_causal_is_set ? p->head_causal[h] : p->causal;
    int64_t left = p->head_windows_are_set ? p->head_left[h] : p->left;
    int64_t right = p->head_windows_are_set ? p->head_right[h] : p->right;
    int allowed = trial_is_real(p, b, i) && (!causal || at <= centre)
                  && (left < 0 || at >= centre - left) && (right < 0 || at <= centre + right);
    if (p->packed) {
        int64_t s = sequence(p, p->key_offsets, j);
        allowed = allowed && s < p->packed && s == sequence(p, p->query_offsets, i);
    } else {
        allowed = allowed && j < trial_keys(p, b);
    }
    if (p->range_batch) {
        int64_t row = (p->range_batch == 1 ? 0 : b) * p->T + i;
        allowed = allowed && p->range_lo[row] <= j && j < p->range_hi[row];
    }
    if (p->segment_batch) {
        int64_t row = p->segment_batch == 1 ? 0 : b;
        allowed = allowed
                  && p->query_segments[row * p->T + i] == p->key_segments[row * p->S + j];
    }
    for (int32_t m = 0; allowed && m < p->masks; ++m) {
        allowed = boolean_allows(&p->mask[m], b, h, i, j);
    }
    return allowed;
}

int trial_allowed(const trial *p, int64_t b, int64_t h, int64_t i, int64_t j)
{
    int allowed = trial_mask_allows(p, b, h, i, j);
    for (int32_t n = 0; allowed && n < p->biases; ++n) {
        const tensor *x = &p->additive[n];
        allowed = j < x->shape[3]
                  && *tensor_at(x,
                                x->shape[0] == 1 ? 0 : b,
                                x->shape[1] == 1 ? 0 : h,
                                x->shape[2] == 1 ? 0 : i,
                                j)
                         != -INFINITY;
    }
    return allowed;
}

int trial_kept(const trial *p, int64_t b, int64_t h, int64_t i, int64_t j)
{
    if (p->dropout == 0) {
        return 1;
    }
    if (p->dropout == 1) {
        return 0;
    }
    if (p->keep) {
        return j >= p->S || p->keep[((b * p->H + h) * p->T + i) * p->S + j] != 0;
    }
    struct mha__philox at = {{(uint32_t)(j / 4), (uint32_t)i, (uint32_t)h, (uint32_t)b}};
    return mha__philox_at(p->seed, at).word[j % 4] / 4294967296.0 >= p->dropout;
}

float trial_called_back(float score, int64_t b, int64_t h, int64_t i, int64_t j)
{
    return 0.75f * score + 0.25f * (float)((b + 2 * h + 3 * i + 5 * j) % 7);
}
