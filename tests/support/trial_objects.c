/* SPDX-License-Identifier: Apache-2.0 */
/* The third part of trial.h: the library's objects from a trial. */
#include "trial.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Making an object from a legal trial cannot be refused: say what was, and stop the program. */
static void must(int32_t status, mha_error *err, const char *what)
{
    if (status != MHA_OK) {
        char sentence[512];
        mha_error_message(err, sentence, sizeof sentence);
        fprintf(stderr, "%s: %s: %s\n", what, mha_status_string(status), sentence);
        abort();
    }
}
#define MUST(expression) must((expression), err, #expression)

/* Options at zero are left alone, so that a fresh config has to mean them off. */
static void set_score_options(const trial *p, mha_config *cfg, mha_error *err)
{
    if (p->head_scales_are_set) {
        MUST(mha_config_set_head_scales(cfg, p->H, p->head_scales, err));
    }
    if (p->softcap > 0) {
        MUST(mha_config_set_softcap(cfg, p->softcap, err));
    }
    if (p->head_softcaps_are_set) {
        MUST(mha_config_set_head_softcaps(cfg, p->H, p->head_softcaps, err));
    }
    if (p->rotary_size > 0) {
        MUST(mha_config_set_rotary(cfg, p->rotary_pairing, p->rotary_size, p->rotary_base, err));
    }
    if (p->sinks) {
        MUST(mha_config_set_sinks(cfg, 1, err));
    }
    if (p->gates) {
        MUST(mha_config_set_gates(cfg, 1, err));
    }
    if (p->bias_kv || p->zero_key) {
        MUST(mha_config_set_extra_keys(cfg, p->bias_kv, p->zero_key, err));
    }
}

mha_layer *trial_layer(const trial *p)
{
    mha_error *err = mha_error_create();
    mha_config *cfg = NULL;
    mha_layer *layer = NULL;
    MUST(mha_config_create(p->E, p->H, &cfg, err));
    MUST(mha_config_set_kv_heads(cfg, p->G, err));
    MUST(mha_config_set_head_size(cfg, p->D, err));
    MUST(mha_config_set_value_head_size(cfg, p->Dv, err));
    for (int32_t side = 0; side < 4; ++side) {
        MUST(mha_config_set_projection(cfg, side, p->projection[side], err));
        MUST(mha_config_set_bias(cfg, side, p->bias[side], err));
    }
    /* where a projection is off its width follows from the heads */
    if (p->projection[MHA_PROJECTION_Q]) {
        MUST(mha_config_set_query_width(cfg, p->Eq, err));
    }
    if (p->projection[MHA_PROJECTION_K]) {
        MUST(mha_config_set_key_width(cfg, p->Ek, err));
    }
    if (p->projection[MHA_PROJECTION_V]) {
        MUST(mha_config_set_value_width(cfg, p->Ev, err));
    }
    if (p->projection[MHA_PROJECTION_OUT]) {
        MUST(mha_config_set_output_width(cfg, p->Eo, err));
    }
    if (p->scale_is_set) {
        MUST(mha_config_set_scale(cfg, p->scale, err));
    }
    set_score_options(p, cfg, err);
    MUST(mha_layer_create(cfg, &layer, err));
    mha_config_destroy(cfg);
    for (int32_t id = 0; id < TRIAL_PARAMETERS; ++id) {
        int64_t count = trial_parameter_count(p, id);
        if (count > 0) {
            MUST(mha_layer_set_parameter(layer, id, MHA_FLOAT32, p->parameter[id], count, err));
        }
    }
    mha_error_destroy(err);
    return layer;
}

/* Bits, least significant first, each row beginning on a byte. The caller frees. */
static uint8_t *packed_bits(const boolean_mask *m)
{
    int64_t rows = m->shape[0] * m->shape[1] * m->shape[2], row = (m->shape[3] + 7) / 8;
    uint8_t *bits = calloc((size_t)(rows * row) + 1, 1);
    if (!bits) {
        abort();
    }
    for (int64_t r = 0; r < rows; ++r) {
        for (int64_t j = 0; j < m->shape[3]; ++j) {
            if (m->bytes[r * m->shape[3] + j]) {
                bits[r * row + j / 8] |= (uint8_t)(1u << (j % 8));
            }
        }
    }
    return bits;
}

static void add_mask(mha_mask *mask, const boolean_mask *m, mha_error *err)
{
    const int64_t *n = m->shape;
    const int64_t *s = m->strides;
    const int bits = (m->flags & MHA_MASK_BITS) != 0;
    uint8_t *packed = bits ? packed_bits(m) : NULL;
    const uint8_t *bytes = bits ? packed : m->bytes;
    switch (m->kind) {
    case MASK_KEY:
        MUST(mha_mask_add_key_mask(mask, n[0], n[3], bytes, bits ? NULL : (int64_t[]){s[0], s[3]},
                                   m->flags, err));
        break;
    case MASK_QUERY_KEY:
        MUST(mha_mask_add_query_key_mask(mask, n[2], n[3], bytes,
                                         bits ? NULL : (int64_t[]){s[2], s[3]}, m->flags, err));
        break;
    case MASK_FULL:
        MUST(mha_mask_add_full_mask(mask, n[0], n[1], n[2], n[3], bytes, bits ? NULL : s, m->flags,
                                    err));
        break;
    }
    free(packed);
}

static int hides_nothing(const trial *p)
{
    return !p->causal && !p->head_causal_is_set && p->left < 0 && p->right < 0 &&
           !p->head_windows_are_set && !p->key_batch && !p->query_batch && !p->range_batch &&
           !p->segment_batch && !p->packed && !p->alibi && !p->masks &&
           !(p->rotary_size > 0 && p->alignment != MHA_ALIGNMENT_UNSET);
}

static void set_positions(const trial *p, mha_mask *mask, mha_error *err)
{
    MUST(mha_mask_set_causal(mask, p->causal, err));
    if (p->head_causal_is_set) {
        MUST(mha_mask_set_head_causal(mask, p->H, p->head_causal, err));
    }
    if (p->alignment == MHA_ALIGNMENT_EXPLICIT) {
        MUST(mha_mask_set_offsets(mask, p->offset_batch, p->offsets, err));
    } else {
        MUST(mha_mask_set_alignment(mask, p->alignment, err));
    }
    MUST(mha_mask_set_window(mask, p->left, p->right, err));
    if (p->head_windows_are_set) {
        MUST(mha_mask_set_head_windows(mask, p->H, p->head_left, p->head_right, err));
    }
    if (p->key_batch) {
        MUST(mha_mask_set_key_lengths(mask, p->key_batch, p->key_lengths, err));
    }
    if (p->query_batch) {
        MUST(mha_mask_set_query_lengths(mask, p->query_batch, p->query_lengths, err));
    }
    if (p->alibi) {
        MUST(mha_mask_set_alibi(mask, p->H, p->slopes_are_set ? p->slopes : NULL, err));
    }
}

mha_mask *trial_mask(const trial *p)
{
    if (hides_nothing(p)) {
        return NULL;
    }
    mha_error *err = mha_error_create();
    mha_mask *mask = NULL;
    MUST(mha_mask_create(&mask, err));
    set_positions(p, mask, err);
    if (p->range_batch) {
        MUST(mha_mask_set_ranges(mask, p->range_batch, p->T, p->range_lo, p->range_hi, err));
    }
    if (p->segment_batch) {
        MUST(mha_mask_set_segments(mask, p->segment_batch, p->T, p->query_segments, p->S,
                                   p->key_segments, err));
    }
    if (p->packed) {
        MUST(mha_mask_set_packed(mask, p->packed, p->query_offsets, p->key_offsets, err));
    }
    for (int32_t m = 0; m < p->masks; ++m) {
        add_mask(mask, &p->mask[m], err);
    }
    mha_error_destroy(err);
    return mask;
}

static void call_back_scores(void *user,
                             int64_t b,
                             int64_t h,
                             int64_t i0,
                             int64_t ni,
                             int64_t j0,
                             int64_t nj,
                             float *scores,
                             int64_t ld)
{
    (void)user;
    for (int64_t i = 0; i < ni; ++i) {
        for (int64_t j = 0; j < nj; ++j) {
            float *score = &scores[i * ld + j];
            *score = trial_called_back(*score, b, h, i0 + i, j0 + j);
        }
    }
}

static void keep_weights(void *user,
                         int64_t b,
                         int64_t h,
                         int64_t i0,
                         int64_t ni,
                         int64_t j0,
                         int64_t nj,
                         const float *weights,
                         int64_t ld)
{
    trial_stream *stream = user;
    const int64_t *n = stream->weights.shape;
    if (b >= n[0] || h >= n[1] || i0 + ni > n[2] || j0 + nj > n[3] || i0 < 0 || j0 < 0) {
        __atomic_fetch_add(&stream->wrong, 1, __ATOMIC_RELAXED);
        return;
    }
    for (int64_t i = 0; i < ni; ++i) {
        for (int64_t j = 0; j < nj; ++j) {
            float *cell = tensor_at(&stream->weights, b, h, i0 + i, j0 + j);
            if (!isnan(*cell)) {
                __atomic_fetch_add(&stream->wrong, 1, __ATOMIC_RELAXED);
            }
            *cell = weights[i * ld + j];
        }
    }
}

static int32_t flags_of(callback_kind kind)
{
    return kind == CALLBACK_CONCURRENT ? MHA_CALLBACK_CONCURRENT : 0;
}

static void set_input(mha_call *call, int32_t id, const tensor *t, mha_error *err)
{
    MUST(mha_call_set_input(call, id, MHA_FLOAT32, t->data, t->rank, t->shape, t->strides, err));
}

static void set_outputs(const trial *p, mha_call *call, mha_error *err)
{
    trial *owner = (trial *)(uintptr_t)p; /* trial_result has no const form; nothing is changed */
    for (int32_t id = MHA_TENSOR_OUTPUT; id <= MHA_TENSOR_KEY_MASS_TOTAL; ++id) {
        const int is_bias = id >= MHA_TENSOR_BIAS0 && id <= MHA_TENSOR_BIAS3;
        const tensor *t = is_bias ? NULL : trial_result(owner, id);
        if (t && t->data) {
            MUST(mha_call_set_output(call, id, MHA_FLOAT32, t->data, t->rank, t->shape, t->strides,
                                     err));
        }
    }
    if (p->stream) {
        MUST(mha_call_set_weights_callback(call, keep_weights, p->stream, flags_of(p->stream->kind),
                                           err));
    }
    if (p->top > 0) {
        MUST(mha_call_set_top_keys(call, p->B, p->H, p->T, p->top, p->top_keys, p->top_weights,
                                   err));
    }
}

mha_call *trial_call(const trial *p)
{
    mha_error *err = mha_error_create();
    mha_call *call = NULL;
    MUST(mha_call_create(&call, err));
    set_input(call, MHA_TENSOR_QUERY, &p->query, err);
    set_input(call, MHA_TENSOR_KEY, &p->key, err);
    set_input(call, MHA_TENSOR_VALUE, &p->value, err);
    for (int32_t n = 0; n < p->biases; ++n) {
        set_input(call, MHA_TENSOR_BIAS0 + n, &p->additive[n], err);
    }
    set_outputs(p, call, err);
    if (p->dropout > 0) {
        MUST(mha_call_set_dropout(call, p->dropout, p->seed, err));
    }
    if (p->keep) {
        MUST(mha_call_set_dropout_mask(call, p->keep, p->B, p->H, p->T, p->S, err));
    }
    if (p->id_batch) {
        MUST(mha_call_set_positions(call, p->id_batch, p->T, p->query_ids, p->S, p->key_ids, err));
    }
    if (p->score_callback) {
        MUST(mha_call_set_score_callback(call, call_back_scores, NULL, flags_of(p->score_callback),
                                         err));
    }
    mha_error_destroy(err);
    return call;
}

int32_t trial_forward(const trial *p, int32_t threads, mha_error *caller)
{
    mha_error *err = mha_error_create();
    mha_context *ctx = NULL;
    MUST(mha_context_create(&ctx, err));
    MUST(mha_context_set_threads(ctx, threads, err));
    mha_layer *layer = trial_layer(p);
    mha_mask *mask = trial_mask(p);
    mha_call *call = trial_call(p);
    int32_t status = mha_forward(ctx, layer, mask, call, caller);
    mha_call_destroy(call);
    mha_mask_destroy(mask);
    mha_layer_destroy(layer);
    mha_context_destroy(ctx);
    mha_error_destroy(err);
    return status;
}

int32_t trial_reference(const trial *p, mha_error *caller)
{
    mha_layer *layer = trial_layer(p);
    mha_mask *mask = trial_mask(p);
    mha_call *call = trial_call(p);
    int32_t status = mha_reference_forward(layer, mask, call, caller);
    mha_call_destroy(call);
    mha_mask_destroy(mask);
    mha_layer_destroy(layer);
    return status;
}

int trial_is_direct(const trial *p)
{
    mha_error *err = mha_error_create();
    mha_context *ctx = NULL;
    mha_plan *plan = NULL;
    mha_layer *layer = trial_layer(p);
    mha_mask *mask = trial_mask(p);
    MUST(mha_context_create(&ctx, err));
    MUST(mha_plan_create(ctx, layer, mask, p->B, p->T, p->S, 0, &plan, err));
    const int direct = strncmp(mha_plan_algorithm(plan), "direct", 6) == 0;
    mha_plan_destroy(plan);
    mha_context_destroy(ctx);
    mha_mask_destroy(mask);
    mha_layer_destroy(layer);
    mha_error_destroy(err);
    return direct;
}
