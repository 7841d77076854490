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
};

struct mha__problem {
    int64_t B, T, S, H, G, D, Dv;
    int64_t Eq, Ek, Ev, Eo;
    float scale;
    struct mha__weight weight[4]; /* by MHA_PROJECTION_* */
    struct mha__input query, key, value;
    struct mha__output out;    /* data NULL: not asked for */
    float *weights;            /* [B,H,T,S] by strides, or NULL */
    int64_t weights_stride[3]; /* of b, h, i */
    float *lse;                /* [B,H,T] by strides, or NULL */
    int64_t lse_stride[3];
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
