/* SPDX-License-Identifier: Apache-2.0 */
#include "api/objects.h"
#include "api/run.h"
#include "platform/memory.h"

#include <mha/mask.h>

#include <string.h>

#define MOST_OFFSET (INT64_C(1) << 40)

int32_t mha_mask_create(mha_mask **out, mha_error *err)
{
    MHA_CHECK_POINTER(err, out);
    *out = mha__memory_allocate_zeroed(sizeof **out);
    MHA_CHECK(err, *out, MHA_ERROR_OUT_OF_MEMORY, "no memory for a mask");
    (*out)->magic = MHA__MAGIC_MASK;
    (*out)->rules.left = (*out)->rules.right = -1;
    return mha__error_clear(err);
}

void mha_mask_destroy(mha_mask *mask)
{
    if (!mask) {
        return;
    }
    struct mha__rules *rules = &mask->rules;
    for (int64_t m = 0; m < rules->booleans; m++) {
        mha__memory_release(rules->boolean[m].bits);
    }
    mha__memory_release(rules->boolean);
    mha__memory_release(rules->offsets);
    mha__memory_release(rules->key_lengths);
    mha__memory_release(rules->query_lengths);
    mask->magic = 0;
    mha__memory_release(mask);
}

int32_t mha_mask_set_causal(mha_mask *mask, int32_t on, mha_error *err)
{
    MHA_CHECK_HANDLE(err, mask, MHA__MAGIC_MASK);
    MHA_CHECK(err, on == 0 || on == 1, MHA_ERROR_VALUE, "causal = %d; it is 0 or 1", (int)on);
    mask->rules.causal = on == 1;
    return mha__error_clear(err);
}

int32_t mha_mask_set_alignment(mha_mask *mask, int32_t alignment, mha_error *err)
{
    MHA_CHECK_HANDLE(err, mask, MHA__MAGIC_MASK);
    MHA_CHECK(err, alignment >= MHA_ALIGNMENT_UNSET && alignment <= MHA_ALIGNMENT_BOTTOM_RIGHT,
              MHA_ERROR_UNKNOWN_ID,
              "alignment %d; UNSET (0), TOP_LEFT (1), BOTTOM_RIGHT (2); explicit offsets have a "
              "setter of "
              "their own",
              (int)alignment);
    mask->rules.alignment = alignment;
    return mha__error_clear(err);
}

/* Replaces *array by a copy of `batch` numbers. */
static int32_t
replace(int64_t **array, int64_t *entries, int64_t batch, const int64_t *numbers, mha_error *err)
{
    int64_t *copy = mha__memory_allocate((size_t)batch * sizeof *copy);
    MHA_CHECK(err, copy, MHA_ERROR_OUT_OF_MEMORY, "no memory for %lld numbers of a mask",
              (long long)batch);
    memcpy(copy, numbers, (size_t)batch * sizeof *copy);
    mha__memory_release(*array);
    *array = copy;
    *entries = batch;
    return MHA_OK;
}

static int32_t check_batch(mha_mask *mask, int64_t batch, const int64_t *numbers, mha_error *err)
{
    MHA_CHECK_HANDLE(err, mask, MHA__MAGIC_MASK);
    MHA_CHECK_POINTER(err, numbers);
    MHA_CHECK(err, batch >= 1 && batch <= INT64_MAX / 8, MHA_ERROR_SHAPE,
              "%lld batch rows in a mask", (long long)batch);
    return MHA_OK;
}

int32_t mha_mask_set_offsets(mha_mask *mask, int64_t batch, const int64_t *offsets, mha_error *err)
{
    MHA_TRY(check_batch(mask, batch, offsets, err));
    for (int64_t b = 0; b < batch; b++) {
        MHA_CHECK(err, offsets[b] >= -MOST_OFFSET && offsets[b] <= MOST_OFFSET, MHA_ERROR_TOO_LARGE,
                  "offset %lld of batch row %lld; +-2^40 are possible", (long long)offsets[b],
                  (long long)b);
    }
    MHA_TRY(replace(&mask->rules.offsets, &mask->rules.offset_batch, batch, offsets, err));
    mask->rules.alignment = MHA_ALIGNMENT_EXPLICIT;
    return mha__error_clear(err);
}

int32_t mha_mask_set_window(mha_mask *mask, int64_t left, int64_t right, mha_error *err)
{
    MHA_CHECK_HANDLE(err, mask, MHA__MAGIC_MASK);
    MHA_CHECK(err, left >= -1 && right >= -1, MHA_ERROR_SHAPE,
              "window (%lld, %lld); a bound is 0 or more, or -1 for none", (long long)left,
              (long long)right);
    mask->rules.left = left;
    mask->rules.right = right;
    return mha__error_clear(err);
}

static int32_t check_lengths(mha_mask *mask, int64_t batch, const int64_t *lengths, mha_error *err)
{
    MHA_TRY(check_batch(mask, batch, lengths, err));
    for (int64_t b = 0; b < batch; b++) {
        MHA_CHECK(err, lengths[b] >= 0, MHA_ERROR_SHAPE, "length %lld of batch row %lld",
                  (long long)lengths[b], (long long)b);
    }
    return MHA_OK;
}

int32_t
mha_mask_set_key_lengths(mha_mask *mask, int64_t batch, const int64_t *lengths, mha_error *err)
{
    MHA_TRY(check_lengths(mask, batch, lengths, err));
    MHA_TRY(replace(&mask->rules.key_lengths, &mask->rules.key_batch, batch, lengths, err));
    return mha__error_clear(err);
}

int32_t
mha_mask_set_query_lengths(mha_mask *mask, int64_t batch, const int64_t *lengths, mha_error *err)
{
    MHA_TRY(check_lengths(mask, batch, lengths, err));
    MHA_TRY(replace(&mask->rules.query_lengths, &mask->rules.query_batch, batch, lengths, err));
    return mha__error_clear(err);
}

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

/* sizes and strides of batch, heads, queries, keys; strides of an axis of size 1 do not matter. */
static int32_t add_mask(mha_mask *mask,
                        const int64_t sizes[4],
                        const uint8_t *allowed,
                        const int64_t strides[4],
                        int32_t flags,
                        mha_error *err)
{
    MHA_CHECK_HANDLE(err, mask, MHA__MAGIC_MASK);
    MHA_CHECK(err, (flags & ~MHA_MASK_INVERTED) == 0, MHA_ERROR_UNKNOWN_ID,
              "mask flags %d; MHA_MASK_INVERTED (1) is known", (int)flags);
    for (int i = 0; i < 4; i++) {
        MHA_CHECK(err, sizes[i] >= (i < 3) && strides[i] >= 0, MHA_ERROR_SHAPE,
                  "axis %d of a mask has size %lld and stride %lld", i, (long long)sizes[i],
                  (long long)strides[i]);
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
        pack_row(bits, boolean.words, sizes[3],
                 allowed + b * strides[0] + h * strides[1] + i * strides[2], strides[3],
                 (flags & MHA_MASK_INVERTED) != 0);
    }
    const int32_t status = append_boolean(mask, &boolean, err);
    if (status != MHA_OK) {
        mha__memory_release(boolean.bits);
        return status;
    }
    return mha__error_clear(err);
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
    const int64_t steps[4] = {strides ? strides[0] : keys, 0, 0, strides ? strides[1] : 1};
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
    const int64_t steps[4] = {0, 0, strides ? strides[0] : keys, strides ? strides[1] : 1};
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
    int64_t steps[4] = {0, 0, keys, 1};
    // Negative sizes and overflow: refused by add_mask, which sees the sizes before it uses a
    // stride.
    if (keys < 0 || queries < 0 || heads < 0 || __builtin_mul_overflow(queries, keys, &steps[1]) ||
        __builtin_mul_overflow(steps[1], heads, &steps[0])) {
        steps[0] = steps[1] = 0;
    }
    steps[2] = keys < 0 ? 0 : keys;
    return add_mask(mask, sizes, allowed, steps, flags, err);
}

int64_t mha_mask_bytes(const mha_mask *mask)
{
    if (!mask) {
        return MHA_ERROR_NULL_ARGUMENT;
    }
    const struct mha__rules *rules = &mask->rules;
    int64_t bytes = (int64_t)sizeof *mask;
    bytes +=
        (rules->offset_batch + rules->key_batch + rules->query_batch) * (int64_t)sizeof(int64_t);
    for (int64_t m = 0; m < rules->booleans; m++) {
        const struct mha__boolean *boolean = &rules->boolean[m];
        bytes += (int64_t)sizeof *boolean;
        bytes += boolean->batch * boolean->heads * boolean->queries * boolean->words * 8;
    }
    return bytes;
}

static int32_t lengths_fit(const char *name,
                           const int64_t *lengths,
                           int64_t batch,
                           int64_t B,
                           int64_t most,
                           mha_error *err)
{
    MHA_CHECK(err, batch <= 1 || batch == B, MHA_ERROR_SHAPE,
              "the mask has %s of %lld batch rows, the call B = %lld", name, (long long)batch,
              (long long)B);
    for (int64_t b = 0; lengths && b < batch; b++) {
        MHA_CHECK(err, lengths[b] <= most, MHA_ERROR_SHAPE,
                  "%s: %lld of batch row %lld, but the call has %lld tokens", name,
                  (long long)lengths[b], (long long)b, (long long)most);
    }
    return MHA_OK;
}

static int32_t boolean_fits(
    const struct mha__boolean *m, int64_t B, int64_t H, int64_t T, int64_t S, mha_error *err)
{
    MHA_CHECK(err,
              (m->batch == 1 || m->batch == B) && (m->heads == 1 || m->heads == H) &&
                  (m->queries == 1 || m->queries == T) && m->keys <= S,
              MHA_ERROR_SHAPE,
              "a boolean mask [%lld, %lld, %lld, %lld] does not fit a call with B = %lld, H = "
              "%lld, T = %lld, S = %lld",
              (long long)m->batch, (long long)m->heads, (long long)m->queries, (long long)m->keys,
              (long long)B, (long long)H, (long long)T, (long long)S);
    return MHA_OK;
}

int32_t
mha__mask_fits(const mha_mask *mask, int64_t B, int64_t H, int64_t T, int64_t S, mha_error *err)
{
    if (!mask) {
        return MHA_OK;
    }
    MHA_CHECK_HANDLE(err, mask, MHA__MAGIC_MASK);
    const struct mha__rules *rules = &mask->rules;
    MHA_TRY(lengths_fit("key lengths", rules->key_lengths, rules->key_batch, B, S, err));
    MHA_TRY(lengths_fit("query lengths", rules->query_lengths, rules->query_batch, B, T, err));
    if (rules->alignment == MHA_ALIGNMENT_EXPLICIT) {
        MHA_TRY(lengths_fit("offsets", NULL, rules->offset_batch, B, 0, err));
    }
    for (int64_t m = 0; m < rules->booleans; m++) {
        MHA_TRY(boolean_fits(&rules->boolean[m], B, H, T, S, err));
    }
    if (mha__visibility_is_banded(rules) && rules->alignment == MHA_ALIGNMENT_UNSET) {
        for (int64_t b = 0; b < B; b++) {
            const int64_t T_b =
                rules->query_batch ? rules->query_lengths[rules->query_batch == 1 ? 0 : b] : T;
            const int64_t S_b =
                rules->key_batch ? rules->key_lengths[rules->key_batch == 1 ? 0 : b] : S;
            MHA_CHECK(err, T_b == S_b, MHA_ERROR_ALIGNMENT,
                      "causal or window with %lld queries and %lld keys in batch row %lld: say the "
                      "alignment "
                      "(mha_mask_set_alignment)",
                      (long long)T_b, (long long)S_b, (long long)b);
            if (rules->query_batch <= 1 && rules->key_batch <= 1) {
                break; // all rows are alike
            }
        }
    }
    return MHA_OK;
}
