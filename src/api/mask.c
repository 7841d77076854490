/* SPDX-License-Identifier: Apache-2.0 */
#include "api/mask_parts.h"
#include "platform/memory.h"

#include <mha/mask.h>

#define MOST_OFFSET (INT64_C(1) << 40)

/* The object itself, and the rules around the diagonal: causal, window, alignment. */

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
    void *const arrays[] = {
        rules->boolean,          rules->head_causal,
        rules->head_left,        rules->head_right,
        rules->offsets,          rules->key_lengths,
        rules->query_lengths,    rules->range_lo,
        rules->range_hi,         rules->segments.query_ids,
        rules->segments.key_ids, rules->segments.first,
        rules->segments.end,     rules->query_offsets,
        rules->key_offsets,      rules->slopes,
    };
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        mha__memory_release(arrays[i]);
    }
    mask->magic = 0;
    mha__memory_release(mask);
}

int64_t mha_mask_bytes(const mha_mask *mask)
{
    if (!mask) {
        return MHA_ERROR_NULL_ARGUMENT;
    }
    const struct mha__rules *rules = &mask->rules;
    const struct mha__segments *segments = &rules->segments;
    int64_t numbers = rules->offset_batch + rules->key_batch + rules->query_batch;
    numbers += 2 * rules->window_heads + 2 * rules->range_batch * rules->range_queries;
    numbers += segments->batch * (3 * segments->queries + segments->keys);
    numbers += rules->packed ? 2 * (rules->packed + 1) : 0;
    int64_t bytes = (int64_t)sizeof *mask + numbers * (int64_t)sizeof(int64_t);
    bytes += rules->causal_heads * (int64_t)sizeof(bool);
    bytes += rules->alibi_heads * (int64_t)sizeof(float);
    for (int64_t m = 0; m < rules->booleans; m++) {
        const struct mha__boolean *boolean = &rules->boolean[m];
        bytes += (int64_t)sizeof *boolean;
        bytes += boolean->batch * boolean->heads * boolean->queries * boolean->words * 8;
    }
    return bytes;
}

/* ---- causal ---- */

static void take_causal(struct mha__rules *rules, bool on, int64_t heads, bool *head_causal)
{
    mha__memory_release(rules->head_causal);
    rules->causal = on;
    rules->causal_heads = heads;
    rules->head_causal = head_causal;
}

int32_t mha_mask_set_causal(mha_mask *mask, int32_t on, mha_error *err)
{
    MHA_CHECK_HANDLE(err, mask, MHA__MAGIC_MASK);
    MHA_CHECK(err, on == 0 || on == 1, MHA_ERROR_VALUE, "causal = %d; it is 0 or 1", (int)on);
    take_causal(&mask->rules, on == 1, 0, NULL);
    return mha__error_clear(err);
}

static int32_t check_heads(mha_mask *mask, int64_t heads, mha_error *err)
{
    MHA_CHECK_HANDLE(err, mask, MHA__MAGIC_MASK);
    MHA_CHECK(err, heads >= 1 && heads <= INT32_MAX, MHA_ERROR_SHAPE,
              "%lld heads in a mask; 1 to 2147483647 are possible", (long long)heads);
    return MHA_OK;
}

int32_t mha_mask_set_head_causal(mha_mask *mask, int64_t heads, const int32_t *on, mha_error *err)
{
    MHA_TRY(check_heads(mask, heads, err));
    MHA_CHECK_POINTER(err, on);
    for (int64_t h = 0; h < heads; h++) {
        MHA_CHECK(err, on[h] == 0 || on[h] == 1, MHA_ERROR_VALUE,
                  "causal = %d for head %lld; it is 0 or 1", (int)on[h], (long long)h);
    }
    bool *copy = mha__memory_allocate((size_t)heads * sizeof *copy);
    MHA_CHECK(err, copy, MHA_ERROR_OUT_OF_MEMORY, "no memory for %lld heads of a mask",
              (long long)heads);
    for (int64_t h = 0; h < heads; h++) {
        copy[h] = on[h] == 1;
    }
    take_causal(&mask->rules, false, heads, copy);
    return mha__error_clear(err);
}

/* ---- window ---- */

static void
take_windows(struct mha__rules *rules, int64_t left, int64_t right, int64_t heads, int64_t *head[2])
{
    rules->left = left;
    rules->right = right;
    rules->window_heads = heads;
    mha__mask_take(&rules->head_left, head[0]);
    mha__mask_take(&rules->head_right, head[1]);
}

int32_t mha_mask_set_window(mha_mask *mask, int64_t left, int64_t right, mha_error *err)
{
    MHA_CHECK_HANDLE(err, mask, MHA__MAGIC_MASK);
    MHA_CHECK(err, left >= -1 && right >= -1, MHA_ERROR_SHAPE,
              "window (%lld, %lld); a bound is 0 or more, or -1 for none", (long long)left,
              (long long)right);
    take_windows(&mask->rules, left, right, 0, (int64_t *[]){NULL, NULL});
    return mha__error_clear(err);
}

int32_t mha_mask_set_head_windows(
    mha_mask *mask, int64_t heads, const int64_t *left, const int64_t *right, mha_error *err)
{
    MHA_TRY(check_heads(mask, heads, err));
    MHA_CHECK_POINTER(err, left);
    MHA_CHECK_POINTER(err, right);
    for (int64_t h = 0; h < heads; h++) {
        MHA_CHECK(err, left[h] >= -1 && right[h] >= -1, MHA_ERROR_SHAPE,
                  "window (%lld, %lld) of head %lld; a bound is 0 or more, or -1 for none",
                  (long long)left[h], (long long)right[h], (long long)h);
    }
    struct mha__mask_copy copies[] = {{heads, left, NULL}, {heads, right, NULL}};
    MHA_TRY(mha__mask_copy_all(copies, 2, err));
    take_windows(&mask->rules, -1, -1, heads, (int64_t *[]){copies[0].copy, copies[1].copy});
    return mha__error_clear(err);
}

/* ---- alignment ---- */

int32_t mha_mask_set_alignment(mha_mask *mask, int32_t alignment, mha_error *err)
{
    MHA_CHECK_HANDLE(err, mask, MHA__MAGIC_MASK);
    MHA_CHECK(err, alignment >= MHA_ALIGNMENT_UNSET && alignment <= MHA_ALIGNMENT_BOTTOM_RIGHT,
              MHA_ERROR_UNKNOWN_ID,
              "alignment %d; UNSET (0), TOP_LEFT (1), BOTTOM_RIGHT (2); explicit offsets have a "
              "setter of their own",
              (int)alignment);
    mask->rules.alignment = alignment;
    return mha__error_clear(err);
}

int32_t mha_mask_set_offsets(mha_mask *mask, int64_t batch, const int64_t *offsets, mha_error *err)
{
    MHA_TRY(mha__mask_check_batch(mask, batch, offsets, err));
    for (int64_t b = 0; b < batch; b++) {
        MHA_CHECK(err, offsets[b] >= -MOST_OFFSET && offsets[b] <= MOST_OFFSET, MHA_ERROR_TOO_LARGE,
                  "offset %lld of batch row %lld; +-2^40 are possible", (long long)offsets[b],
                  (long long)b);
    }
    struct mha__mask_copy copy = {batch, offsets, NULL};
    MHA_TRY(mha__mask_copy_all(&copy, 1, err));
    mha__mask_take(&mask->rules.offsets, copy.copy);
    mask->rules.offset_batch = batch;
    mask->rules.alignment = MHA_ALIGNMENT_EXPLICIT;
    return mha__error_clear(err);
}
