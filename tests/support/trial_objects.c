/* SPDX-License-Identifier: Apache-2.0 */
/* The second half of trial.h: the library's objects from a trial. */
#include "trial.h"

#include <stdio.h>
#include <stdlib.h>

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
    MUST(mha_layer_create(cfg, &layer, err));
    mha_config_destroy(cfg);
    for (int32_t id = 0; id < 8; ++id) {
        int64_t count = trial_parameter_count(p, id);
        if (count > 0) {
            MUST(mha_layer_set_parameter(layer, id, MHA_FLOAT32, p->parameter[id], count, err));
        }
    }
    mha_error_destroy(err);
    return layer;
}

static void add_mask(mha_mask *mask, const boolean_mask *m, mha_error *err)
{
    const int64_t *n = m->shape;
    const int64_t *s = m->strides;
    switch (m->kind) {
    case MASK_KEY:
        MUST(mha_mask_add_key_mask(mask, n[0], n[3], m->bytes, (int64_t[]){s[0], s[3]}, m->flags,
                                   err));
        break;
    case MASK_QUERY_KEY:
        MUST(mha_mask_add_query_key_mask(mask, n[2], n[3], m->bytes, (int64_t[]){s[2], s[3]},
                                         m->flags, err));
        break;
    case MASK_FULL:
        MUST(mha_mask_add_full_mask(mask, n[0], n[1], n[2], n[3], m->bytes, s, m->flags, err));
        break;
    }
}

mha_mask *trial_mask(const trial *p)
{
    if (!p->causal && p->left < 0 && p->right < 0 && !p->key_batch && !p->query_batch &&
        !p->masks) {
        return NULL;
    }
    mha_error *err = mha_error_create();
    mha_mask *mask = NULL;
    MUST(mha_mask_create(&mask, err));
    MUST(mha_mask_set_causal(mask, p->causal, err));
    if (p->alignment == MHA_ALIGNMENT_EXPLICIT) {
        MUST(mha_mask_set_offsets(mask, p->offset_batch, p->offsets, err));
    } else {
        MUST(mha_mask_set_alignment(mask, p->alignment, err));
    }
    MUST(mha_mask_set_window(mask, p->left, p->right, err));
    if (p->key_batch) {
        MUST(mha_mask_set_key_lengths(mask, p->key_batch, p->key_lengths, err));
    }
    if (p->query_batch) {
        MUST(mha_mask_set_query_lengths(mask, p->query_batch, p->query_lengths, err));
    }
    for (int32_t m = 0; m < p->masks; ++m) {
        add_mask(mask, &p->mask[m], err);
    }
    mha_error_destroy(err);
    return mask;
}

mha_call *trial_call(const trial *p)
{
    mha_error *err = mha_error_create();
    mha_call *call = NULL;
    MUST(mha_call_create(&call, err));
    const tensor *const in[3] = {&p->query, &p->key, &p->value};
    const tensor *const out[3] = {&p->output, &p->weights, &p->lse};
    for (int32_t id = 0; id < 3; ++id) {
        const tensor *t = in[id];
        MUST(
            mha_call_set_input(call, id, MHA_FLOAT32, t->data, t->rank, t->shape, t->strides, err));
    }
    for (int32_t id = 0; id < 3; ++id) {
        const tensor *t = out[id];
        if (t->data) {
            MUST(mha_call_set_output(call, MHA_TENSOR_OUTPUT + id, MHA_FLOAT32, t->data, t->rank,
                                     t->shape, t->strides, err));
        }
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
