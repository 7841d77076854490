/* SPDX-License-Identifier: Apache-2.0 */
#include "api/objects.h"
#include "api/run.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Do two strided tensors share an element? Strides are not negative, so a tensor lies between its
 * first and its last element; only where these ranges meet are elements looked at, a contiguous row
 * at a time.
 */

/* Distance from the first element to the last, in elements, over axes from.. on. */
static int64_t extent(const struct mha__tensor *t, int32_t rank)
{
    int64_t sum = 0;
    for (int32_t i = 0; i < rank; i++) {
        sum += (t->shape[i] - 1) * t->stride[i];
    }
    return sum;
}

static bool is_empty(const struct mha__tensor *t)
{
    for (int32_t i = 0; i < t->rank; i++) {
        if (t->shape[i] == 0) {
            return true;
        }
    }
    return t->rank == 0;
}

/* The axes by falling stride; those of size 1 are dropped. The rank that is left. */
static int32_t sorted(const struct mha__tensor *t, struct mha__tensor *to)
{
    int32_t rank = 0;
    *to = *t;
    for (int32_t i = 0; i < t->rank; i++) {
        if (t->shape[i] == 1) {
            continue;
        }
        int32_t at = rank++;
        for (; at > 0 && to->stride[at - 1] < t->stride[i]; at--) {
            to->shape[at] = to->shape[at - 1];
            to->stride[at] = to->stride[at - 1];
        }
        to->shape[at] = t->shape[i];
        to->stride[at] = t->stride[i];
    }
    to->rank = rank;
    return rank;
}

bool mha__overlap_with_itself(const struct mha__tensor *tensor)
{
    struct mha__tensor t;
    if (is_empty(tensor)) {
        return false;
    }
    const int32_t rank = sorted(tensor, &t);
    /* Enough that each axis steps beyond all that lies inside it. */
    int64_t inner = 0;
    for (int32_t i = rank - 1; i >= 0; i--) {
        if (t.stride[i] <= inner) {
            return true;
        }
        inner += (t.shape[i] - 1) * t.stride[i];
    }
    return false;
}

/* Does some element of axes axis.. of t, starting at offset `at`, lie in low .. high (inclusive)?
 */
static bool
touches(const struct mha__tensor *t, int32_t axis, int64_t at, int64_t low, int64_t high)
{
    if (axis == t->rank) {
        return at >= low && at <= high;
    }
    int64_t inner = 0;
    for (int32_t i = axis + 1; i < t->rank; i++) {
        inner += (t->shape[i] - 1) * t->stride[i];
    }
    const int64_t stride = t->stride[axis];
    if (stride == 0) {
        return touches(t, axis + 1, at, low, high);
    }
    /* at + n stride + inner >= low and at + n stride <= high */
    int64_t first = low - inner - at <= 0 ? 0 : (low - inner - at + stride - 1) / stride;
    int64_t last = high < at ? -1 : (high - at) / stride;
    last = last < t->shape[axis] ? last : t->shape[axis] - 1;
    for (int64_t n = first; n <= last; n++) {
        if (touches(t, axis + 1, at + n * stride, low, high)) {
            return true;
        }
    }
    return false;
}

bool mha__overlap(const struct mha__tensor *a, const struct mha__tensor *b)
{
    if (is_empty(a) || is_empty(b)) {
        return false;
    }
    const uintptr_t a0 = (uintptr_t)a->data;
    const uintptr_t b0 = (uintptr_t)b->data;
    const uintptr_t a1 = a0 + (uintptr_t)extent(a, a->rank) * sizeof(float) + sizeof(float) - 1;
    const uintptr_t b1 = b0 + (uintptr_t)extent(b, b->rank) * sizeof(float) + sizeof(float) - 1;
    if (a1 < b0 || b1 < a0) {
        return false;
    }
    if ((a0 - b0) % sizeof(float) != 0) {
        return true; // elements that lie across each other: no one means that
    }
    /* Row by row of a, whose last axis is contiguous. */
    struct mha__tensor other;
    (void)sorted(b, &other);
    const int64_t shift =
        a0 >= b0 ? (int64_t)((a0 - b0) / sizeof(float)) : -(int64_t)((b0 - a0) / sizeof(float));
    const int64_t length = a->shape[a->rank - 1];
    int64_t rows = 1;
    for (int32_t i = 0; i < a->rank - 1; i++) {
        rows *= a->shape[i];
    }
    for (int64_t row = 0; row < rows; row++) {
        int64_t at = shift;
        int64_t rest = row;
        for (int32_t i = a->rank - 2; i >= 0; i--) {
            at += rest % a->shape[i] * a->stride[i];
            rest /= a->shape[i];
        }
        if (touches(&other, 0, 0, at, at + length - 1)) {
            return true;
        }
    }
    return false;
}
