/* SPDX-License-Identifier: Apache-2.0 */
#include "api/objects.h"
#include "platform/fpenv.h"
#include "platform/memory.h"

#include <mha/mask.h>

#include <math.h>
#include <string.h>

/* The first of n numbers that is not finite; n: all are. */
static int64_t first_bad(const float *numbers, int64_t n)
{
    struct mha__fpenv hosts; // looking at a signalling NaN raises a flag
    mha__fpenv_enter(&hosts);
    int64_t i = 0;
    while (i < n && isfinite(numbers[i])) {
        i++;
    }
    mha__fpenv_leave(&hosts);
    return i;
}

int32_t mha_mask_set_alibi(mha_mask *mask, int64_t heads, const float *slopes, mha_error *err)
{
    MHA_CHECK_HANDLE(err, mask, MHA__MAGIC_MASK);
    MHA_CHECK(err, heads >= 0 && heads <= INT32_MAX, MHA_ERROR_SHAPE,
              "ALiBi for %lld heads; 1 to 2147483647 are possible, 0 for none", (long long)heads);
    struct mha__rules *rules = &mask->rules;
    const int64_t given = slopes ? heads : 0; // the default slopes follow from H alone
    float *copy = NULL;
    if (given > 0) {
        const int64_t bad = first_bad(slopes, given);
        MHA_CHECK(err, bad == given, MHA_ERROR_VALUE, "ALiBi slope %g of head %lld is not finite",
                  (double)slopes[bad], (long long)bad);
        copy = mha__memory_allocate((size_t)given * sizeof *copy);
        MHA_CHECK(err, copy, MHA_ERROR_OUT_OF_MEMORY, "no memory for %lld ALiBi slopes",
                  (long long)given);
        memcpy(copy, slopes, (size_t)given * sizeof *copy);
    }
    mha__memory_release(rules->slopes);
    rules->slopes = copy;
    rules->alibi_heads = given;
    rules->alibi = heads > 0;
    return mha__error_clear(err);
}
