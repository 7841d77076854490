/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_TRIAL_H
#define TESTS_TRIAL_H

/*
 * One forward pass as a plain struct: sizes, projections, mask, tensors. The oracle computes from
 * it in float64; trial_layer, trial_mask and trial_call make the library's objects from it.
 */
#include "draw.h"
#include "tensor.h"

#include <mha/mha.h>

enum { TRIAL_BATCH = 8, TRIAL_MASKS = 3 };

typedef enum mask_kind { MASK_KEY, MASK_QUERY_KEY, MASK_FULL } mask_kind;

/* A boolean mask over [B|1, H|1, T|1, keys]; the axes that its kind does not have are 1. */
typedef struct boolean_mask {
    mask_kind kind;
    int64_t shape[4];
    int64_t strides[4];
    uint8_t *bytes; /* owned */
    int32_t flags;
} boolean_mask;

typedef struct trial {
    int64_t B, T, S, H, G, D, Dv;
    int64_t E, Eq, Ek, Ev, Eo;
    int32_t projection[4], bias[4]; /* by MHA_PROJECTION_* */
    int32_t scale_is_set;
    float scale;
    float *parameter[8]; /* by MHA_PARAM_*, owned; NULL where the layer has none */

    int32_t causal, alignment;
    int64_t offset_batch, offsets[TRIAL_BATCH]; /* a batch of 0 = not set */
    int64_t left, right;                        /* -1 = no bound */
    int64_t key_batch, key_lengths[TRIAL_BATCH];
    int64_t query_batch, query_lengths[TRIAL_BATCH];
    int32_t masks;
    boolean_mask mask[TRIAL_MASKS];

    tensor query, key, value;
    tensor output, weights, lse; /* data NULL = not asked for */
} trial;

/* Plain attention: all projections off, nothing hidden. Every width follows. */
void trial_begin(
    trial *p, int64_t B, int64_t T, int64_t S, int64_t H, int64_t G, int64_t D, int64_t Dv);
/* Switches a projection on, reading (writing, for OUT) tokens of this many features. */
void trial_project(trial *p, int32_t projection, int64_t features, int32_t bias);
/* A boolean mask of this kind with room for its bytes, contiguous; its sizes may be 1. */
boolean_mask *
trial_add_mask(trial *p, mask_kind kind, int64_t B, int64_t H, int64_t T, int64_t keys);

/* Contiguous tensors for what has none yet; weights and lse on request. */
void trial_tensors(trial *p, int weights, int lse);
/* Parameters uniform in +-1/sqrt(fan_in), biases in +-0.5; inputs in +-amplitude. */
void trial_fill(trial *p, draw *d, float amplitude);
void trial_end(trial *p);

/* Facts. */
float trial_scale(const trial *p);
int64_t trial_keys(const trial *p, int64_t b);    /* S_b */
int64_t trial_queries(const trial *p, int64_t b); /* T_b */
int trial_allowed(const trial *p, int64_t b, int64_t h, int64_t i, int64_t j);
/* How many numbers MHA_PARAM_* has here; 0 = there is none. */
int64_t trial_parameter_count(const trial *p, int32_t parameter);

/* The library's objects; any failure here fails the test. trial_mask: NULL where nothing is set. */
mha_layer *trial_layer(const trial *p);
mha_mask *trial_mask(const trial *p);
mha_call *trial_call(const trial *p);
/* mha_forward with a context of this many threads (0 = default) that lives for the call. */
int32_t trial_forward(const trial *p, int32_t threads, mha_error *err);

#endif
