/* SPDX-License-Identifier: Apache-2.0 */
#include "api/mask_parts.h"

#include <mha/mask.h>

/* The rules that are numbers per batch row, query or sequence: lengths, ranges, packed. */

/* Replaces *lengths by a copy of `batch` numbers. */
static int32_t set_lengths(mha_mask *mask,
                           int64_t **lengths,
                           int64_t *entries,
                           int64_t batch,
                           const int64_t *numbers,
                           mha_error *err)
{
    MHA_TRY(mha__mask_check_batch(mask, batch, numbers, err));
    for (int64_t b = 0; b < batch; b++) {
        MHA_CHECK(err, numbers[b] >= 0, MHA_ERROR_SHAPE, "length %lld of batch row %lld",
                  (long long)numbers[b], (long long)b);
    }
    struct mha__mask_copy copy = {batch, numbers, NULL};
    MHA_TRY(mha__mask_copy_all(&copy, 1, err));
    mha__mask_take(lengths, copy.copy);
    *entries = batch;
    return mha__error_clear(err);
}

int32_t
mha_mask_set_key_lengths(mha_mask *mask, int64_t batch, const int64_t *lengths, mha_error *err)
{
    return set_lengths(mask, mask ? &mask->rules.key_lengths : NULL,
                       mask ? &mask->rules.key_batch : NULL, batch, lengths, err);
}

int32_t
mha_mask_set_query_lengths(mha_mask *mask, int64_t batch, const int64_t *lengths, mha_error *err)
{
    return set_lengths(mask, mask ? &mask->rules.query_lengths : NULL,
                       mask ? &mask->rules.query_batch : NULL, batch, lengths, err);
}

int32_t mha_mask_set_ranges(mha_mask *mask,
                            int64_t batch,
                            int64_t queries,
                            const int64_t *lo,
                            const int64_t *hi,
                            mha_error *err)
{
    MHA_TRY(mha__mask_check_table(mask, batch, queries, lo, "lo", err));
    MHA_TRY(mha__mask_check_table(mask, batch, queries, hi, "hi", err));
    for (int64_t i = 0; i < batch * queries; i++) {
        MHA_CHECK(err, lo[i] >= 0 && hi[i] >= 0, MHA_ERROR_SHAPE,
                  "range [%lld, %lld) of query %lld in batch row %lld; a bound is 0 or more",
                  (long long)lo[i], (long long)hi[i], (long long)(i % queries),
                  (long long)(i / queries));
    }
    struct mha__mask_copy copies[] = {{batch * queries, lo, NULL}, {batch * queries, hi, NULL}};
    MHA_TRY(mha__mask_copy_all(copies, 2, err));
    struct mha__rules *rules = &mask->rules;
    mha__mask_take(&rules->range_lo, copies[0].copy);
    mha__mask_take(&rules->range_hi, copies[1].copy);
    rules->range_batch = batch;
    rules->range_queries = queries;
    return mha__error_clear(err);
}

/* offsets [n + 1] begin at 0 and never fall. */
static int32_t check_offsets(const char *name, int64_t n, const int64_t *offsets, mha_error *err)
{
    MHA_CHECK(err, offsets[0] == 0, MHA_ERROR_SHAPE, "the %s begin at %lld, not at 0", name,
              (long long)offsets[0]);
    for (int64_t s = 0; s < n; s++) {
        MHA_CHECK(err, offsets[s] <= offsets[s + 1], MHA_ERROR_SHAPE,
                  "the %s fall from %lld to %lld at sequence %lld", name, (long long)offsets[s],
                  (long long)offsets[s + 1], (long long)s);
    }
    return MHA_OK;
}

int32_t mha_mask_set_packed(mha_mask *mask,
                            int64_t n,
                            const int64_t *query_offsets,
                            const int64_t *key_offsets,
                            mha_error *err)
{
    MHA_CHECK_HANDLE(err, mask, MHA__MAGIC_MASK);
    MHA_CHECK_POINTER(err, query_offsets);
    MHA_CHECK_POINTER(err, key_offsets);
    MHA_CHECK(err, n >= 1 && n < INT64_MAX / 8, MHA_ERROR_SHAPE, "%lld packed sequences",
              (long long)n);
    MHA_TRY(check_offsets("query offsets", n, query_offsets, err));
    MHA_TRY(check_offsets("key offsets", n, key_offsets, err));
    struct mha__mask_copy copies[] = {{n + 1, query_offsets, NULL}, {n + 1, key_offsets, NULL}};
    MHA_TRY(mha__mask_copy_all(copies, 2, err));
    struct mha__rules *rules = &mask->rules;
    mha__mask_take(&rules->query_offsets, copies[0].copy);
    mha__mask_take(&rules->key_offsets, copies[1].copy);
    rules->packed = n;
    return mha__error_clear(err);
}
