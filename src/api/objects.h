/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA__OBJECTS_H
#define MHA__OBJECTS_H

/*
 * What is inside the opaque objects, and how a public function refuses what is not one: each begins
 * with a magic word of its kind, which destroy clears.
 */
#include "attention/problem.h"
#include "platform/status.h"

#include <mha/mha.h>

#include <stdatomic.h>

enum mha__magic {
    MHA__MAGIC_ERROR = 0x6d686145,
    MHA__MAGIC_CONFIG = 0x6d686143,
    MHA__MAGIC_LAYER = 0x6d68614c,
    MHA__MAGIC_CONTEXT = 0x6d686158,
    MHA__MAGIC_MASK = 0x6d68614d,
    MHA__MAGIC_CALL = 0x6d686161,
    MHA__MAGIC_PLAN = 0x6d686150
};

/* NULL and foreign or freed handles. */
#define MHA_CHECK_HANDLE(err, object, kind)                                                        \
    do {                                                                                           \
        MHA_CHECK(err, (object) != NULL, MHA_ERROR_NULL_ARGUMENT, "%s: %s is NULL", __func__,      \
                  #object);                                                                        \
        MHA_CHECK(err, (object)->magic == (kind), MHA_ERROR_BAD_HANDLE,                            \
                  "%s: %s is not a live object of its kind", __func__, #object);                   \
    } while (0)

#define MHA_CHECK_POINTER(err, pointer)                                                            \
    MHA_CHECK(err, (pointer) != NULL, MHA_ERROR_NULL_ARGUMENT, "%s is NULL", #pointer)

enum { MHA__MESSAGE_BYTES = 512 };

struct mha_error {
    uint32_t magic;
    int32_t code;
    char message[MHA__MESSAGE_BYTES];
};

enum {
    MHA__PROJECTIONS = 4,
    MHA__VECTORS = 4,      /* MHA_PARAM_SINKS, _GATES, _BIAS_K, _BIAS_V */
    MHA__FIRST_VECTOR = 10 /* the first of these ids */
};

/* Rotary positions; size 0: none. */
struct mha__rotary {
    int32_t pairing;
    int64_t size;
    double base;
};

struct mha_config {
    uint32_t magic;
    int64_t E, H, G;
    int64_t D, Dv;                   /* 0: not set */
    int64_t width[MHA__PROJECTIONS]; /* Eq, Ek, Ev, Eo; 0: not set */
    bool projection[MHA__PROJECTIONS];
    bool bias[MHA__PROJECTIONS];
    bool has_scale;
    float scale;
    float softcap;        /* 0: none */
    float *head_scales;   /* [H] or NULL */
    float *head_softcaps; /* [H] or NULL */
    struct mha__rotary rotary;
    bool sinks, gates, bias_kv, zero_key;
};

/* One projection of a layer: its parameters as they are stored. */
struct mha__linear {
    int64_t out, in, width;
    float *tiles; /* NULL: no such projection */
    float *bias;  /* NULL: no bias */
    bool weight_is_set, bias_is_set;
};

/* A parameter that is a vector; data NULL: the layer has none. */
struct mha__vector {
    int64_t count;
    float *data;
    bool is_set;
};

struct mha_layer {
    uint32_t magic;
    int64_t H, G, D, Dv;
    int64_t width[MHA__PROJECTIONS];
    float scale, softcap;
    float *head_scales;   /* [H] or NULL: scale is for all */
    float *head_softcaps; /* [H] or NULL: softcap is for all */
    struct mha__rotary rotary;
    bool zero_key;
    struct mha__linear linear[MHA__PROJECTIONS];
    struct mha__vector vector[MHA__VECTORS]; /* by id - MHA__FIRST_VECTOR */
    _Atomic(float *) panels; /* the weights for the fused engine, or NULL: see layer_panels.c */
};

struct mha_context {
    uint32_t magic;
    int32_t threads; /* 0: the default */
    int32_t engine;
    int64_t limit; /* bytes of workspace, 0: none */
    mha_parallel_for parallel_for;
    void *user;
    int32_t executor_threads;
    char *workspace;
    int64_t bytes;
    struct mha__profile *profile; /* NULL: off */
};

struct mha_mask {
    uint32_t magic;
    struct mha__rules rules;
};

/* A tensor of a call. rank 0: not set. */
struct mha__tensor {
    float *data; /* const for inputs */
    int32_t rank;
    int64_t shape[4];
    int64_t stride[4];
};

enum { MHA__TENSORS = 19, MHA__INPUTS = 3, MHA__BIASES = 4 };

struct mha_call {
    uint32_t magic;
    struct mha__tensor tensor[MHA__TENSORS];
    double dropout;
    uint64_t seed;
    const uint8_t *keep; /* [B,H,T,S] or NULL */
    int64_t keep_shape[4];
    const int64_t *query_ids, *key_ids; /* rotary positions [batch, T], [batch, S], or NULL */
    int64_t ids_batch, ids_T, ids_S;
    mha_score_callback score_callback;
    void *score_user;
    int32_t score_flags;
    mha_weights_callback weights_callback;
    void *weights_user;
    int32_t weights_flags;
    int64_t *top_keys; /* [B,H,T,top] or NULL */
    float *top_weights;
    int64_t top, top_shape[3]; /* B, H, T */
};

struct mha_plan {
    uint32_t magic;
    struct mha__planner_request request;
    struct mha__planner_plan plan;
    int64_t weights_bytes, flops;
    double visible_share;
    int32_t visible_permille;
};

/* a * b * c; false when it passes 2^63 - 1. Factors are not negative. */
static inline bool mha__product_fits(int64_t a, int64_t b, int64_t c, int64_t *product)
{
    return !__builtin_mul_overflow(a, b, product) && !__builtin_mul_overflow(*product, c, product);
}

#endif
