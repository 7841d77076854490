/* SPDX-License-Identifier: Apache-2.0 */
#include "api/mask_parts.h"

#include "platform/memory.h"

#include <string.h>

int32_t mha__mask_copy_all(struct mha__mask_copy *copies, int32_t n, mha_error *err)
{
    for (int32_t c = 0; c < n; c++) {
        const size_t bytes = (size_t)copies[c].count * sizeof(int64_t);
        copies[c].copy = mha__memory_allocate(bytes);
        if (!copies[c].copy) {
            for (int32_t made = 0; made < c; made++) {
                mha__memory_release(copies[made].copy);
            }
            return mha__error_format(err, MHA_ERROR_OUT_OF_MEMORY,
                                     "no memory for %lld numbers of a mask",
                                     (long long)copies[c].count);
        }
        if (copies[c].from && bytes) {
            memcpy(copies[c].copy, copies[c].from, bytes);
        }
    }
    return MHA_OK;
}

void mha__mask_take(int64_t **array, int64_t *copy)
{
    mha__memory_release(*array);
    *array = copy;
}

int32_t mha__mask_check_batch(mha_mask *mask, int64_t batch, const int64_t *numbers, mha_error *err)
{
    MHA_CHECK_HANDLE(err, mask, MHA__MAGIC_MASK);
    MHA_CHECK_POINTER(err, numbers);
    MHA_CHECK(err, batch >= 1 && batch <= INT64_MAX / 8, MHA_ERROR_SHAPE,
              "%lld batch rows in a mask", (long long)batch);
    return MHA_OK;
}

int32_t mha__mask_check_table(mha_mask *mask,
                              int64_t batch,
                              int64_t tokens,
                              const int64_t *numbers,
                              const char *name,
                              mha_error *err)
{
    int64_t bytes = 0;
    MHA_CHECK_HANDLE(err, mask, MHA__MAGIC_MASK);
    MHA_CHECK(err, batch >= 1 && tokens >= 0, MHA_ERROR_SHAPE,
              "%s of %lld batch rows and %lld tokens", name, (long long)batch, (long long)tokens);
    MHA_CHECK(err, mha__product_fits(batch, tokens, sizeof(int64_t), &bytes), MHA_ERROR_TOO_LARGE,
              "%s of %lld batch rows and %lld tokens pass 2^63 bytes", name, (long long)batch,
              (long long)tokens);
    MHA_CHECK(err, numbers || tokens == 0, MHA_ERROR_NULL_ARGUMENT, "%s is NULL", name);
    return MHA_OK;
}
