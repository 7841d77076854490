/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_TRIAL_H
#define TESTS_TRIAL_H

/*
 * One forward pass as a plain struct: sizes, projections, mask, scores, tensors. The oracle computes from
 * it in float64; trial_layer, trial_mask and trial_call make the library's objects from it. What is zero
 * is off, whatever is owned is freed by trial_end.
 */
#include "draw.h"
#include "tensor.h"

#include <mha/mha.h>

enum {
    TRIAL_BATCH = 8, /* batch rows; sequences of a packed batch */
    TRIAL_HEADS = 16,
    TRIAL_MASKS = 4,
    TRIAL_BIASES = 4,
    TRIAL_PARAMETERS = 14, /* by MHA_PARAM_*; the two IN_PROJ ids are not used */
    TRIAL_RESULTS = 9      /* MHA_TENSOR_WEIGHTS_MEAN .. _KEY_MASS_TOTAL */
};

typedef enum mask_kind { MASK_KEY, MASK_QUERY_KEY, MASK_FULL } mask_kind;

/*
 * A boolean mask over [B|1, H|1, T|1, keys]; the axes that its kind does not have are 1. With
 * MHA_MASK_BITS `bytes` still holds a byte a cell, contiguous, and trial_mask packs them.
 */
typedef struct boolean_mask {
    mask_kind kind;
    int64_t shape[4];
    int64_t strides[4];
    uint8_t *bytes; /* owned */
    int32_t flags;
} boolean_mask;

/* How a forward looks at scores and weights while it runs. */
typedef enum callback_kind { CALLBACK_NONE, CALLBACK_PLAIN, CALLBACK_CONCURRENT } callback_kind;

/* What the weights callback had. */
typedef struct trial_stream {
    callback_kind kind;
    tensor weights; /* [B,H,T,S'], NaN where nothing came yet */
    int64_t wrong;  /* cells that came more than once, tiles outside the tensor */
} trial_stream;

typedef struct trial {
    int64_t B, T, S, H, G, D, Dv;
    int64_t E, Eq, Ek, Ev, Eo;
    int32_t projection[4], bias[4]; /* by MHA_PROJECTION_* */
    int32_t scale_is_set;
    float scale, softcap;
    int32_t head_scales_are_set, head_softcaps_are_set;
    float head_scales[TRIAL_HEADS], head_softcaps[TRIAL_HEADS];
    int32_t rotary_pairing;
    int64_t rotary_size;
    double rotary_base; /* 0 = the default */
    int32_t sinks, gates, bias_kv, zero_key;
    float *parameter[TRIAL_PARAMETERS]; /* owned; NULL where the layer has none */

    int32_t causal, alignment;
    int32_t head_causal_is_set, head_causal[TRIAL_HEADS];
    int64_t offset_batch, offsets[TRIAL_BATCH]; /* a batch of 0 = not set */
    int64_t left, right;                        /* -1 = no bound */
    int32_t head_windows_are_set;
    int64_t head_left[TRIAL_HEADS], head_right[TRIAL_HEADS];
    int64_t key_batch, key_lengths[TRIAL_BATCH];
    int64_t query_batch, query_lengths[TRIAL_BATCH];
    int64_t range_batch, *range_lo, *range_hi;             /* [range_batch, T], owned */
    int64_t segment_batch, *query_segments, *key_segments; /* [segment_batch, T], [.., S], owned */
    int64_t packed;                                        /* sequences */
    int64_t query_offsets[TRIAL_BATCH + 1], key_offsets[TRIAL_BATCH + 1];
    int32_t alibi, slopes_are_set;
    float slopes[TRIAL_HEADS];
    int32_t masks;
    boolean_mask mask[TRIAL_MASKS];

    int32_t biases;
    tensor additive[TRIAL_BIASES]; /* [B|1, H|1, T|1, keys] */
    double dropout;
    uint64_t seed;
    uint8_t *keep;                          /* [B,H,T,S] or NULL, owned */
    int64_t id_batch, *query_ids, *key_ids; /* rotary positions, owned */
    callback_kind score_callback;

    tensor query, key, value;
    tensor output, weights, lse;  /* data NULL = not asked for */
    tensor result[TRIAL_RESULTS]; /* by MHA_TENSOR_*, see trial_result */
    trial_stream *stream;         /* NULL = not asked for, owned */
    int64_t top, *top_keys;       /* [B,H,T,top], owned */
    float *top_weights;           /* the same, or NULL */
} trial;

/* Plain attention: all projections off, nothing hidden. Every width follows. */
void trial_begin(
    trial *p, int64_t B, int64_t T, int64_t S, int64_t H, int64_t G, int64_t D, int64_t Dv);
/* Switches a projection on, reading (writing, for OUT) tokens of this many features. */
void trial_project(trial *p, int32_t projection, int64_t features, int32_t bias);
/* A boolean mask of this kind with room for its bytes, contiguous; its sizes may be 1. */
boolean_mask *
trial_add_mask(trial *p, mask_kind kind, int64_t B, int64_t H, int64_t T, int64_t keys);
/* An additive bias of this shape, contiguous unless strides are given; NaN until it is filled. */
tensor *trial_add_bias(trial *p, const int64_t shape[4], const int64_t *strides);

/* Contiguous tensors for what has none yet; weights and lse on request. */
void trial_tensors(trial *p, int weights, int lse);
/* The shape of an output; returns its rank. */
int32_t trial_result_shape(const trial *p, int32_t id, int64_t shape[4]);
/* Asks for an output by MHA_TENSOR_*, contiguous, or for the k top keys with their weights. */
void trial_ask(trial *p, int32_t id);
void trial_ask_top(trial *p, int64_t k, int with_weights);
/* Asks for the stream of weights. */
void trial_ask_stream(trial *p, callback_kind kind);
/* The tensor of an output, MHA_TENSOR_OUTPUT and on; NULL for an input. */
tensor *trial_result(trial *p, int32_t id);

/* Parameters uniform in +-1/sqrt(fan_in), biases, sinks and extra keys in +-0.5, gates in 0 .. 2;
 * inputs and additive biases in +-amplitude. */
void trial_fill(trial *p, draw *d, float amplitude);
void trial_end(trial *p);

/* Facts. */
int64_t trial_extra(const trial *p);   /* keys behind the S ones */
int64_t trial_columns(const trial *p); /* S' */
float trial_scale(const trial *p);
float trial_head_scale(const trial *p, int64_t h);
float trial_softcap(const trial *p, int64_t h);
float trial_slope(const trial *p, int64_t h);            /* 0 without ALiBi */
int64_t trial_keys(const trial *p, int64_t b);           /* S_b */
int64_t trial_queries(const trial *p, int64_t b);        /* T_b */
int trial_is_real(const trial *p, int64_t b, int64_t i); /* no padding */
/* i + off, and j, counted within their sequence. */
int64_t trial_query_position(const trial *p, int64_t b, int64_t i);
int64_t trial_key_position(const trial *p, int64_t b, int64_t j);
/* By the mask alone; by the mask and the additive biases. j < S. */
int trial_mask_allows(const trial *p, int64_t b, int64_t h, int64_t i, int64_t j);
int trial_allowed(const trial *p, int64_t b, int64_t h, int64_t i, int64_t j);
int trial_kept(const trial *p, int64_t b, int64_t h, int64_t i, int64_t j); /* by dropout */
/* How many numbers MHA_PARAM_* has here; 0 = there is none. */
int64_t trial_parameter_count(const trial *p, int32_t parameter);
/* What the trial's score callback makes of a score: |d| of it is at most 0.75 |d| of the score. */
float trial_called_back(float score, int64_t b, int64_t h, int64_t i, int64_t j);

/* The library's objects; any failure here fails the test. trial_mask: NULL where nothing is set. */
mha_layer *trial_layer(const trial *p);
mha_mask *trial_mask(const trial *p);
mha_call *trial_call(const trial *p);
/* mha_forward with a context of this many threads (0 = default) that lives for the call. */
int32_t trial_forward(const trial *p, int32_t threads, mha_error *err);

/* Whether a plan of it, without weights, reads keys and values in place. */
int trial_is_direct(const trial *p);
/* mha_reference_forward into the same tensors. */
int32_t trial_reference(const trial *p, mha_error *err);

#endif
