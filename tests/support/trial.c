/* SPDX-License-Identifier: Apache-2.0 */
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
    if (!p->output.data) {
        tensor_create(&p->output, 3, (int64_t[]){p->B, p->T, p->Eo}, NULL);
    }
    if (weights && !p->weights.data) {
        tensor_create(&p->weights, 4, (int64_t[]){p->B, p->H, p->T, p->S}, NULL);
    }
    if (lse && !p->lse.data) {
        tensor_create(&p->lse, 3, (int64_t[]){p->B, p->H, p->T}, NULL);
    }
}

static void fill_tensor(tensor *t, draw *d, float amplitude)
{
    int64_t elements = t->data ? tensor_elements(t) : 0;
    for (int64_t i = 0; i < elements; ++i) {
        *tensor_element(t, i) = draw_float(d, -amplitude, amplitude);
    }
}

void trial_fill(trial *p, draw *d, float amplitude)
{
    const int64_t fan_in[4] = {p->Eq, p->Ek, p->Ev, p->H * p->Dv};
    for (int32_t id = 0; id < 8; ++id) {
        int64_t count = trial_parameter_count(p, id);
        if (count > 0) {
            float bound = id % 2 ? 0.5f : 1.0f / sqrtf((float)fan_in[id / 2]);
            free(p->parameter[id]);
            p->parameter[id] = malloc((size_t)count * sizeof(float));
            if (!p->parameter[id]) {
                abort();
            }
            draw_fill(d, p->parameter[id], count, -bound, bound);
        }
    }
    fill_tensor(&p->query, d, amplitude);
    fill_tensor(&p->key, d, amplitude);
    fill_tensor(&p->value, d, amplitude);
}

void trial_end(trial *p)
{
    for (int32_t id = 0; id < 8; ++id) {
        free(p->parameter[id]);
    }
    for (int32_t m = 0; m < p->masks; ++m) {
        free(p->mask[m].bytes);
    }
    tensor_destroy(&p->query);
    tensor_destroy(&p->key);
    tensor_destroy(&p->value);
    tensor_destroy(&p->output);
    tensor_destroy(&p->weights);
    tensor_destroy(&p->lse);
    memset(p, 0, sizeof *p);
}

float trial_scale(const trial *p)
{
    return p->scale_is_set ? p->scale : (float)(1.0 / sqrt((double)p->D));
}

int64_t trial_keys(const trial *p, int64_t b)
{
    return p->key_batch ? p->key_lengths[p->key_batch == 1 ? 0 : b] : p->S;
}

int64_t trial_queries(const trial *p, int64_t b)
{
    return p->query_batch ? p->query_lengths[p->query_batch == 1 ? 0 : b] : p->T;
}

static int64_t offset(const trial *p, int64_t b)
{
    switch (p->alignment) {
    case MHA_ALIGNMENT_BOTTOM_RIGHT:
        return trial_keys(p, b) - trial_queries(p, b);
    case MHA_ALIGNMENT_EXPLICIT:
        return p->offsets[p->offset_batch == 1 ? 0 : b];
    default:
        return 0;
    }
}

static int mask_allows(const boolean_mask *m, int64_t b, int64_t h, int64_t i, int64_t j)
{
    if (j >= m->shape[3]) {
        return 0; /* a last axis shorter than S hides the rest, inverted or not */
    }
    int64_t at = (m->shape[0] == 1 ? 0 : b) * m->strides[0] +
                 (m->shape[1] == 1 ? 0 : h) * m->strides[1] +
                 (m->shape[2] == 1 ? 0 : i) * m->strides[2] + j * m->strides[3];
    int set = m->bytes[at] != 0;
    return m->flags & MHA_MASK_INVERTED ? !set : set;
}

int trial_allowed(const trial *p, int64_t b, int64_t h, int64_t i, int64_t j)
{
    int64_t centre = i + offset(p, b);
    int allowed = j < trial_keys(p, b) && i < trial_queries(p, b) && (!p->causal || j <= centre) &&
                  (p->left < 0 || j >= centre - p->left) &&
                  (p->right < 0 || j <= centre + p->right);
    for (int32_t m = 0; allowed && m < p->masks; ++m) {
        allowed = mask_allows(&p->mask[m], b, h, i, j);
    }
    return allowed;
}

int64_t trial_parameter_count(const trial *p, int32_t parameter)
{
    const int64_t out[4] = {p->H * p->D, p->G * p->D, p->G * p->Dv, p->Eo};
    const int64_t in[4] = {p->Eq, p->Ek, p->Ev, p->H * p->Dv};
    int32_t side = parameter / 2;
    if (!p->projection[side] || (parameter % 2 && !p->bias[side])) {
        return 0;
    }
    return parameter % 2 ? out[side] : out[side] * in[side];
}
