/* SPDX-License-Identifier: Apache-2.0 */
#include "api/objects.h"
#include "platform/memory.h"

#include <mha/mask.h>

#include <string.h>

/* Boolean masks, from bytes or packed bits to the bits that a mask keeps. */

/* One row of bytes as bits; bits from `keys` on are 0. */
static void pack_row(uint64_t *bits,
                     int64_t words,
                     int64_t keys,
                     const uint8_t *bytes,
                     int64_t stride,
                     bool inverted)
{
    for (int64_t w = 0; w < words; w++) {
        uint64_t word = 0;
        for (int64_t j = 64 * w; j < keys && j < 64 * w + 64; j++) {
            word |= (uint64_t)((bytes[j * stride] != 0) != inverted) << (j % 64);
        }
        bits[w] = word;
    }
}

/* One row of packed bits, least significant first; bytes behind the last one are not touched. */
static void
copy_row(uint64_t *bits, int64_t words, int64_t keys, const uint8_t *bytes, bool inverted)
{
    const int64_t length = keys / 8 + (keys % 8 != 0);
    for (int64_t w = 0; w < words; w++) {
        uint64_t word = 0;
        for (int64_t n = 8 * w; n < length && n < 8 * w + 8; n++) {
            word |= (uint64_t)bytes[n] << (8 * (n % 8));
        }
        word = inverted ? ~word : word;
        const int64_t real = keys - 64 * w; // bits of this word that are keys
        bits[w] = real >= 64 ? word : word & ~(~UINT64_C(0) << real);
    }
}

static int32_t append_boolean(mha_mask *mask, const struct mha__boolean *boolean, mha_error *err)
{
    struct mha__rules *rules = &mask->rules;
    const size_t bytes = (size_t)rules->booleans * sizeof *boolean;
    struct mha__boolean *longer = mha__memory_allocate(bytes + sizeof *boolean);
    MHA_CHECK(err, longer, MHA_ERROR_OUT_OF_MEMORY, "no memory for one more boolean mask");
    if (bytes) {
        memcpy(longer, rules->boolean, bytes);
    }
    longer[rules->booleans] = *boolean;
    mha__memory_release(rules->boolean);
    rules->boolean = longer;
    rules->booleans++;
    return MHA_OK;
}

/* sizes and strides of batch, heads, queries, keys; strides of an axis of size 1 do not matter, nor
 * does the last one of packed bits. */
static int32_t add_mask(mha_mask *mask,
                        const int64_t sizes[4],
                        const uint8_t *allowed,
                        const int64_t strides[4],
                        int32_t flags,
                        mha_error *err)
{
    MHA_CHECK_HANDLE(err, mask, MHA__MAGIC_MASK);
    MHA_CHECK(err, (flags & ~(MHA_MASK_INVERTED | MHA_MASK_BITS)) == 0, MHA_ERROR_UNKNOWN_ID,
              "mask flags %d; MHA_MASK_INVERTED (1) and MHA_MASK_BITS (2) are known", (int)flags);
    const bool inverted = (flags & MHA_MASK_INVERTED) != 0;
    const bool packed = (flags & MHA_MASK_BITS) != 0;
    for (int i = 0; i < 4; i++) {
        MHA_CHECK(err, sizes[i] >= (i < 3) && (strides[i] >= 0 || (packed && i == 3)),
                  MHA_ERROR_SHAPE, "axis %d of a mask has size %lld and stride %lld", i,
                  (long long)sizes[i], (long long)strides[i]);
    }
    struct mha__boolean boolean = {
        sizes[0], sizes[1], sizes[2], sizes[3], sizes[3] / 64 + (sizes[3] % 64 != 0), NULL};
    int64_t rows = 0;
    int64_t bytes = 0;
    MHA_CHECK(err,
              mha__product_fits(sizes[0], sizes[1], sizes[2], &rows) &&
                  mha__product_fits(rows, boolean.words, 8, &bytes),
              MHA_ERROR_TOO_LARGE, "a mask of %lld x %lld x %lld x %lld overflows",
              (long long)sizes[0], (long long)sizes[1], (long long)sizes[2], (long long)sizes[3]);
    int64_t last = 0; /* the distance of the last byte */
    for (int i = 0; i < 4 && sizes[3] > 0; i++) {
        int64_t step = 0;
        MHA_CHECK(err,
                  (packed && i == 3) || (mha__product_fits(sizes[i] - 1, strides[i], 1, &step) &&
                                         !__builtin_add_overflow(last, step, &last)),
                  MHA_ERROR_TOO_LARGE, "axis %d of a mask has stride %lld: it passes 2^63 bytes", i,
                  (long long)strides[i]);
    }
    MHA_CHECK(err, allowed || sizes[3] == 0, MHA_ERROR_NULL_ARGUMENT,
              "the bytes of a mask are NULL");
    boolean.bits = mha__memory_allocate((size_t)bytes);
    MHA_CHECK(err, boolean.bits, MHA_ERROR_OUT_OF_MEMORY, "no memory for a mask of %lld bytes",
              (long long)bytes);
    uint64_t *bits = boolean.bits;
    for (int64_t row = 0; row < rows && sizes[3] > 0; row++, bits += boolean.words) {
        const int64_t i = row % sizes[2];
        const int64_t h = row / sizes[2] % sizes[1];
        const int64_t b = row / sizes[2] / sizes[1];
        const uint8_t *from = allowed + b * strides[0] + h * strides[1] + i * strides[2];
        if (packed) {
            copy_row(bits, boolean.words, sizes[3], from, inverted);
        } else {
            pack_row(bits, boolean.words, sizes[3], from, strides[3], inverted);
        }
    }
    const int32_t status = append_boolean(mask, &boolean, err);
    if (status != MHA_OK) {
        mha__memory_release(boolean.bits);
        return status;
    }
    return mha__error_clear(err);
}

/* The distance between contiguous rows of so many keys, in bytes. */
static int64_t row_bytes(int64_t keys, int32_t flags)
{
    return flags & MHA_MASK_BITS ? keys / 8 + (keys % 8 > 0) : keys;
}

int32_t mha_mask_add_key_mask(mha_mask *mask,
                              int64_t batch,
                              int64_t keys,
                              const uint8_t *allowed,
                              const int64_t *strides,
                              int32_t flags,
                              mha_error *err)
{
    const int64_t sizes[4] = {batch, 1, 1, keys};
    const int64_t steps[4] = {strides ? strides[0] : row_bytes(keys, flags), 0, 0,
                              strides ? strides[1] : 1};
    return add_mask(mask, sizes, allowed, steps, flags, err);
}

int32_t mha_mask_add_query_key_mask(mha_mask *mask,
                                    int64_t queries,
                                    int64_t keys,
                                    const uint8_t *allowed,
                                    const int64_t *strides,
                                    int32_t flags,
                                    mha_error *err)
{
    const int64_t sizes[4] = {1, 1, queries, keys};
    const int64_t steps[4] = {0, 0, strides ? strides[0] : row_bytes(keys, flags),
                              strides ? strides[1] : 1};
    return add_mask(mask, sizes, allowed, steps, flags, err);
}

int32_t mha_mask_add_full_mask(mha_mask *mask,
                               int64_t batch,
                               int64_t heads,
                               int64_t queries,
                               int64_t keys,
                               const uint8_t *allowed,
                               const int64_t *strides,
                               int32_t flags,
                               mha_error *err)
{
    const int64_t sizes[4] = {batch, heads, queries, keys};
    if (strides) {
        return add_mask(mask, sizes, allowed, strides, flags, err);
    }
    int64_t steps[4] = {0, 0, row_bytes(keys, flags), 1};
    // Negative sizes and overflow: refused by add_mask, which sees the sizes before it uses a
    // stride.
    if (keys < 0 || queries < 0 || heads < 0 ||
        __builtin_mul_overflow(queries, steps[2], &steps[1]) ||
        __builtin_mul_overflow(steps[1], heads, &steps[0])) {
        steps[0] = steps[1] = steps[2] = 0;
    }
    return add_mask(mask, sizes, allowed, steps, flags, err);
}
