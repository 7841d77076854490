/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA__PROBLEM_H
#define MHA__PROBLEM_H

/*
 * One forward as plain data: everything was checked by src/api, nothing below checks again. B, T,
 * H, G, D, Dv >= 1; S may be 0.
 */
#include "attention/planner.h"
#include "attention/rules.h"
#include "attention/visibility.h"
#include "kernels/kernels.h"
#include "platform/parallel.h"
#include "platform/prefetch.h"

#include <mha/call.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A tensor [batch, tokens, heads, features] by the strides of the first three axes, in elements;
 * the features lie side by side. For [batch, tokens, features] the stride of heads is the head
 * size. */
struct mha__input {
    const float *data;
    int64_t batch, token, head;
};

struct mha__output {
    float *data;
    int64_t batch, token, head;
};

/*
 * A weight [out, in] as tiles of `width` outputs (the last may be narrower): tile n holds its
 * outputs as columns, [in][width], so that x W^T is a plain product of row-major matrices.
 */
struct mha__weight {
    int64_t out, in, width;
    const float *tiles; /* out * in numbers; NULL: no projection */
    const float *bias;  /* [out] or NULL */
    /* Fused engine: the same outputs in panels of panel_product, [in][panel] each, zeros behind the last; NULL
     * where no product wants them. */
    const float *panels;
};

/* An additive bias [batch, heads, queries, keys]; an axis of size 1 has stride 0. Keys beyond its last
 * axis are hidden. */
struct mha__bias {
    const float *data;
    int64_t stride[3]; /* of b, h, i */
    int64_t keys;
};

/* An output [B,H,T,…] by strides; data NULL: not asked for. */
struct mha__rows {
    float *data;
    int64_t stride[3]; /* of b, h, i */
};

enum { MHA__MOST_BIASES = 4, MHA__MOST_EXTRA = 2 };

struct mha__problem {
    int64_t B, T, S, H, G, D, Dv;
    int64_t Eq, Ek, Ev, Eo;
    struct mha__weight weight[4]; /* by MHA_PROJECTION_* */
    struct mha__input query, key, value;

    /* Scores. Arrays of H entries, or NULL: the number is for all heads, or there is none. */
    float scale, softcap; /* softcap 0: none */
    const float *head_scales, *head_softcaps;
    const float *sinks, *gates;
    bool alibi;
    const float *slopes; /* [H], or NULL: the default ones */
    int64_t biases;
    struct mha__bias bias[MHA__MOST_BIASES];
    mha_score_callback score_callback;
    void *score_user;

    /* Rotary positions: size 0 is none. ids [ids_batch, T] and [ids_batch, S], or NULL: by alignment. */
    int32_t rotary_pairing;
    int64_t rotary_size;
    double rotary_base;
    int64_t ids_batch;
    const int64_t *query_ids, *key_ids;

    /* Keys S, S+1 that every real query sees: extra of them, values beside; NULL stands for zeros. */
    int64_t extra;
    const float *extra_key[MHA__MOST_EXTRA];   /* [G, D] */
    const float *extra_value[MHA__MOST_EXTRA]; /* [G, Dv] */

    /* Dropout of the weights: 0 is none. keep [B,H,T,S], or NULL: by Philox from the seed. */
    double dropout;
    uint64_t seed;
    const uint8_t *keep;

    struct mha__output out; /* data NULL: not asked for */
    struct mha__rows weights, weights_dropped;
    struct mha__rows scores_scaled, scores_capped, scores_biased;
    struct mha__rows lse, entropy,
        maximum;                     /* rows of one number: stride[2] is from query to query */
    struct mha__rows weights_mean;   /* [B,T,S']: stride[1] unused */
    struct mha__rows key_mass;       /* [B,H,S'] */
    struct mha__rows key_mass_total; /* [B,S'] */
    mha_weights_callback weights_callback;
    void *weights_user;
    int64_t top; /* keys a row; 0: not asked for */
    int64_t *top_keys;
    float *top_weights; /* [B,H,T,top] or NULL */

    bool one_thread;                /* a callback that must not be called at once from several */
    const struct mha__rules *rules; /* NULL: all is visible */
};

/* What carries it out. */
struct mha__means {
    const struct mha__kernels *kernels;
    struct mha__blas_state blas;
    struct mha__planner_plan plan;
    struct mha__executor executor;
    char *workspace; /* plan.bytes */
};

/* A piece of the workspace. */
static inline void *mha__piece(const struct mha__means *means, int64_t offset)
{
    return means->workspace + offset;
}

/* The scratch memory of a lane. */
static inline char *mha__lane(const struct mha__means *means, int64_t lane)
{
    return means->workspace + means->plan.lane0 + lane * means->plan.lane.bytes;
}

#endif
