/* SPDX-License-Identifier: Apache-2.0 */
/* The first part of trial.h: sizes, tensors, numbers. */
#include "trial.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void trial_begin(
    trial *p, int64_t B, int64_t T, int64_t S, int64_t H, int64_t G, int64_t D, int64_t Dv)
{
    memset(p, 0, sizeof *p);
    p->B = B;
    p->T = T;
    p->S = S;
    p->H = H;
    p->G = G;
    p->D = D;
    p->Dv = Dv;
    p->E = H * D;
    p->Eq = H * D;
    p->Ek = G * D;
    p->Ev = G * Dv;
    p->Eo = H * Dv;
    p->left = -1;
    p->right = -1;
}

void trial_project(trial *p, int32_t projection, int64_t features, int32_t bias)
{
    int64_t *const width[4] = {&p->Eq, &p->Ek, &p->Ev, &p->Eo};
    p->projection[projection] = 1;
    p->bias[projection] = bias;
    *width[projection] = features;
}

boolean_mask *
trial_add_mask(trial *p, mask_kind kind, int64_t B, int64_t H, int64_t T, int64_t keys)
{
    boolean_mask *mask = &p->mask[p->masks++];
    memset(mask, 0, sizeof *mask);
    mask->kind = kind;
    int64_t shape[4] = {B, H, T, keys};
    int64_t step = 1;
    for (int a = 3; a >= 0; --a) {
        mask->shape[a] = shape[a];
        mask->strides[a] = step;
        step *= shape[a];
    }
    mask->bytes = calloc((size_t)step + 1, 1);
    if (!mask->bytes) {
        abort();
    }
    return mask;
}

tensor *trial_add_bias(trial *p, const int64_t shape[4], const int64_t *strides)
{
    tensor *bias = &p->additive[p->biases++];
    tensor_create(bias, 4, shape, strides);
    return bias;
}

void trial_tensors(trial *p, int weights, int lse)
{
    if (!p->query.data) {
        tensor_create(&p->query, 3, (int64_t[]){p->B, p->T, p->Eq}, NULL);
    }
    if (!p->key.data) {
        tensor_create(&p->key, 3, (int64_t[]){p->B, p->S, p->Ek}, NULL);
    }
    if (!p->value.data) {
        tensor_create(&p->value, 3, (int64_t[]){p->B, p->S, p->Ev}, NULL);
    }
    trial_ask(p, MHA_TENSOR_OUTPUT);
    if (weights) {
        trial_ask(p, MHA_TENSOR_WEIGHTS);
    }
    if (lse) {
        trial_ask(p, MHA_TENSOR_LSE);
    }
}

tensor *trial_result(trial *p, int32_t id)
{
    switch (id) {
    case MHA_TENSOR_OUTPUT:
        return &p->output;
    case MHA_TENSOR_WEIGHTS:
        return &p->weights;
    case MHA_TENSOR_LSE:
        return &p->lse;
    default:
        return id >= MHA_TENSOR_WEIGHTS_MEAN ? &p->result[id - MHA_TENSOR_WEIGHTS_MEAN] : NULL;
    }
}

int32_t trial_result_shape(const trial *p, int32_t id, int64_t shape[4])
{
    const int64_t columns = trial_columns(p);
    switch (id) {
    case MHA_TENSOR_OUTPUT:
        memcpy(shape, (int64_t[]){p->B, p->T, p->Eo}, 3 * sizeof *shape);
        return 3;
    case MHA_TENSOR_LSE:
    case MHA_TENSOR_ENTROPY:
    case MHA_TENSOR_MAXIMUM:
        memcpy(shape, (int64_t[]){p->B, p->H, p->T}, 3 * sizeof *shape);
        return 3;
    case MHA_TENSOR_WEIGHTS_MEAN:
        memcpy(shape, (int64_t[]){p->B, p->T, columns}, 3 * sizeof *shape);
        return 3;
    case MHA_TENSOR_KEY_MASS:
        memcpy(shape, (int64_t[]){p->B, p->H, columns}, 3 * sizeof *shape);
        return 3;
    case MHA_TENSOR_KEY_MASS_TOTAL:
        memcpy(shape, (int64_t[]){p->B, columns}, 2 * sizeof *shape);
        return 2;
    case MHA_TENSOR_SCORES_SCALED:
    case MHA_TENSOR_SCORES_CAPPED:
    case MHA_TENSOR_SCORES_BIASED:
        memcpy(shape, (int64_t[]){p->B, p->H, p->T, p->S}, 4 * sizeof *shape);
        return 4;
    default:
        memcpy(shape, (int64_t[]){p->B, p->H, p->T, columns}, 4 * sizeof *shape);
        return 4;
    }
}

void trial_ask(trial *p, int32_t id)
{
    int64_t shape[4];
    const int32_t rank = trial_result_shape(p, id, shape);
    tensor *t = trial_result(p, id);
    if (!t->data) {
        tensor_create(t, rank, shape, NULL);
    }
}

static void *room(int64_t count, size_t size)
{
    void *block = calloc((size_t)count + 1, size);
    if (!block) {
        abort();
    }
    return block;
}

void trial_ask_top(trial *p, int64_t k, int with_weights)
{
    p->top = k;
    p->top_keys = room(p->B * p->H * p->T * k, sizeof *p->top_keys);
    p->top_weights = with_weights ? room(p->B * p->H * p->T * k, sizeof(float)) : NULL;
}

void trial_ask_stream(trial *p, callback_kind kind)
{
    int64_t shape[4];
    p->stream = room(1, sizeof *p->stream);
    p->stream->kind = kind;
    tensor_create(&p->stream->weights, trial_result_shape(p, MHA_TENSOR_WEIGHTS, shape), shape,
                  NULL);
}

static void fill_tensor(tensor *t, draw *d, float amplitude)
{
    int64_t elements = t->data ? tensor_elements(t) : 0;
    for (int64_t i = 0; i < elements; ++i) {
        *tensor_element(t, i) = draw_float(d, -amplitude, amplitude);
    }
}

/* The range of the numbers of a parameter. */
static void range_of(const trial *p, int32_t id, float *low, float *high)
{
    const int64_t fan_in[4] = {p->Eq, p->Ek, p->Ev, p->H * p->Dv};
    *high = id < 8 && id % 2 == 0 ? 1.0f / sqrtf((float)fan_in[id / 2]) : 0.5f;
    *low = -*high;
    if (id == MHA_PARAM_GATES) {
        *low = 0.0f;
        *high = 2.0f;
    }
}

void trial_fill(trial *p, draw *d, float amplitude)
{
    for (int32_t id = 0; id < TRIAL_PARAMETERS; ++id) {
        int64_t count = trial_parameter_count(p, id);
        if (count > 0) {
            float low, high;
            range_of(p, id, &low, &high);
            free(p->parameter[id]);
            p->parameter[id] = room(count, sizeof(float));
            draw_fill(d, p->parameter[id], count, low, high);
        }
    }
    fill_tensor(&p->query, d, amplitude);
    fill_tensor(&p->key, d, amplitude);
    fill_tensor(&p->value, d, amplitude);
    for (int32_t n = 0; n < p->biases; ++n) {
        fill_tensor(&p->additive[n], d, amplitude);
    }
}

void trial_end(trial *p)
{
    for (int32_t id = 0; id < TRIAL_PARAMETERS; ++id) {
        free(p->parameter[id]);
    }
    for (int32_t m = 0; m < p->masks; ++m) {
        free(p->mask[m].bytes);
    }
    for (int32_t n = 0; n < p->biases; ++n) {
        tensor_destroy(&p->additive[n]);
    }
    tensor_destroy(&p->query);
    tensor_destroy(&p->key);
    tensor_destroy(&p->value);
    tensor_destroy(&p->output);
    tensor_destroy(&p->weights);
    tensor_destroy(&p->lse);
    for (int r = 0; r < TRIAL_RESULTS; ++r) {
        tensor_destroy(&p->result[r]);
    }
    if (p->stream) {
        tensor_destroy(&p->stream->weights);
    }
    void *const owned[] = {p->stream,         p->top_keys,    p->top_weights, p->keep,
                           p->range_lo,       p->range_hi,    p->query_ids,   p->key_ids,
                           p->query_segments, p->key_segments};
    for (size_t n = 0; n < sizeof owned / sizeof *owned; ++n) {
        free(owned[n]);
    }
    memset(p, 0, sizeof *p);
}

int64_t trial_parameter_count(const trial *p, int32_t parameter)
{
    const int64_t out[4] = {p->H * p->D, p->G * p->D, p->G * p->Dv, p->Eo};
    const int64_t in[4] = {p->Eq, p->Ek, p->Ev, p->H * p->Dv};
    switch (parameter) {
    case MHA_PARAM_IN_PROJ_WEIGHT:
    case MHA_PARAM_IN_PROJ_BIAS:
        return 0;
    case MHA_PARAM_SINKS:
        return p->sinks ? p->H : 0;
    case MHA_PARAM_GATES:
        return p->gates ? p->H : 0;
    case MHA_PARAM_BIAS_K:
        return p->bias_kv ? out[MHA_PROJECTION_K] : 0;
    case MHA_PARAM_BIAS_V:
        return p->bias_kv ? out[MHA_PROJECTION_V] : 0;
    default:
        break;
    }
    int32_t side = parameter / 2;
    if (!p->projection[side] || (parameter % 2 && !p->bias[side])) {
        return 0;
    }
    return parameter % 2 ? out[side] : out[side] * in[side];
}
