/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void set_shape(tensor *t, int32_t rank, const int64_t *shape, const int64_t *strides)
{
    memset(t, 0, sizeof *t);
    t->rank = rank;
    int64_t step = 1;
    for (int32_t a = rank - 1; a >= 0; --a) {
        t->shape[a] = shape[a];
        t->strides[a] = strides ? strides[a] : step;
        step *= shape[a];
    }
}

void tensor_create(tensor *t, int32_t rank, const int64_t *shape, const int64_t *strides)
{
    set_shape(t, rank, shape, strides);
    t->count = 1;
    for (int32_t a = 0; a < rank; ++a) {
        t->count += shape[a] > 0 ? (shape[a] - 1) * t->strides[a] : 0;
    }
    t->block = malloc((size_t)t->count * sizeof *t->block);
    if (!t->block) {
        abort();
    }
    t->data = t->block;
    tensor_flood(t, NAN);
}

void tensor_view(tensor *t, float *data, int32_t rank, const int64_t *shape, const int64_t *strides)
{
    set_shape(t, rank, shape, strides);
    t->data = data;
}

void tensor_destroy(tensor *t)
{
    free(t->block);
    memset(t, 0, sizeof *t);
}

int64_t tensor_elements(const tensor *t)
{
    int64_t product = 1;
    for (int32_t a = 0; a < t->rank; ++a) {
        product *= t->shape[a];
    }
    return product;
}

float *tensor_element(const tensor *t, int64_t index)
{
    int64_t offset = 0;
    for (int32_t a = t->rank - 1; a >= 0; --a) {
        offset += index % t->shape[a] * t->strides[a];
        index /= t->shape[a];
    }
    return t->data + offset;
}

float *tensor_feature(const tensor *t, int64_t b, int64_t i, int64_t c)
{
    float *token = t->data + b * t->strides[0] + i * t->strides[1];
    if (t->rank == 3) {
        return token + c * t->strides[2];
    }
    return token + c / t->shape[3] * t->strides[2] + c % t->shape[3] * t->strides[3];
}

float *tensor_at(const tensor *t, int64_t i0, int64_t i1, int64_t i2, int64_t i3)
{
    return t->data + i0 * t->strides[0] + i1 * t->strides[1] + i2 * t->strides[2] +
           (t->rank == 4 ? i3 * t->strides[3] : 0);
}

float *tensor_read(const tensor *t)
{
    int64_t elements = tensor_elements(t);
    float *dense = malloc((size_t)(elements + 1) * sizeof *dense);
    if (!dense) {
        abort();
    }
    for (int64_t i = 0; i < elements; ++i) {
        dense[i] = *tensor_element(t, i);
    }
    return dense;
}

void tensor_write(tensor *t, const float *dense)
{
    int64_t elements = tensor_elements(t);
    for (int64_t i = 0; i < elements; ++i) {
        *tensor_element(t, i) = dense[i];
    }
}

void tensor_flood(tensor *t, float value)
{
    for (int64_t i = 0; i < t->count; ++i) {
        t->block[i] = value;
    }
}
