/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_TENSOR_H
#define TESTS_TENSOR_H

/* A float32 tensor of the tests: up to four axes, any strides, and the block it lies in. */
#include <stdint.h>

typedef struct tensor {
    float *block;  /* what tensor_destroy frees; NULL where the memory is another tensor's */
    int64_t count; /* numbers in block */
    float *data;   /* element [0, 0, ...]; NULL = the tensor is not there */
    int32_t rank;
    int64_t shape[4];
    int64_t strides[4];
} tensor;

/* strides NULL = contiguous. Everything, gaps included, starts as NaN. */
void tensor_create(tensor *t, int32_t rank, const int64_t *shape, const int64_t *strides);
/* A view of memory that another tensor owns. */
void tensor_view(
    tensor *t, float *data, int32_t rank, const int64_t *shape, const int64_t *strides);
void tensor_destroy(tensor *t);

/* Elements, gaps not counted. */
int64_t tensor_elements(const tensor *t);
/* The element of a row-major number, 0 .. tensor_elements - 1. */
float *tensor_element(const tensor *t, int64_t index);
/*
 * Activations [B, tokens, features] and heads [B, tokens, heads, size] alike: feature c of token i,
 * counted over all heads.
 */
float *tensor_feature(const tensor *t, int64_t b, int64_t i, int64_t c);
float *tensor_at(const tensor *t, int64_t i0, int64_t i1, int64_t i2, int64_t i3);

/* All elements, row-major, as a new dense array for free(); and back. */
float *tensor_read(const tensor *t);
void tensor_write(tensor *t, const float *dense);
/* Sets the whole block, gaps included. */
void tensor_flood(tensor *t, float value);

#endif
