/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA__MASK_PARTS_H
#define MHA__MASK_PARTS_H

/* What the setters of a mask share: copies are all made before the first array is replaced. */
#include "api/objects.h"

/* An array that a mask is to own. from NULL: no numbers to copy, room for `count` is made. */
struct mha__mask_copy {
    int64_t count;
    const int64_t *from;
    int64_t *copy;
};

/* Makes all n copies, or none. */
int32_t mha__mask_copy_all(struct mha__mask_copy *copies, int32_t n, mha_error *err);

/* *array <- copy; what was there is released. */
void mha__mask_take(int64_t **array, int64_t *copy);

/* A live mask, numbers that are there, and at least one batch row of them. */
int32_t
mha__mask_check_batch(mha_mask *mask, int64_t batch, const int64_t *numbers, mha_error *err);

/* The same for numbers [batch, tokens]; tokens may be 0, then numbers may be NULL. */
int32_t mha__mask_check_table(mha_mask *mask,
                              int64_t batch,
                              int64_t tokens,
                              const int64_t *numbers,
                              const char *name,
                              mha_error *err);

#endif
