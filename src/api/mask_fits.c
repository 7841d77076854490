/* SPDX-License-Identifier: Apache-2.0 */
#include "api/objects.h"
#include "api/run.h"

/* Do the rules of a mask fit a call of B, H, T, S? */

static int32_t batch_fits(const char *name, int64_t batch, int64_t B, mha_error *err)
{
    MHA_CHECK(err, batch <= 1 || batch == B, MHA_ERROR_SHAPE,
              "the mask has %s of %lld batch rows, the call B = %lld", name, (long long)batch,
              (long long)B);
    return MHA_OK;
}

static int32_t lengths_fit(const char *name,
                           const int64_t *lengths,
                           int64_t batch,
                           int64_t B,
                           int64_t most,
                           mha_error *err)
{
    MHA_TRY(batch_fits(name, batch, B, err));
    for (int64_t b = 0; b < batch; b++) {
        MHA_CHECK(err, lengths[b] <= most, MHA_ERROR_SHAPE,
                  "%s: %lld of batch row %lld, but the call has %lld tokens", name,
                  (long long)lengths[b], (long long)b, (long long)most);
    }
    return MHA_OK;
}

/* heads 0: nothing is said per head. */
static int32_t heads_fit(const char *name, int64_t heads, int64_t H, mha_error *err)
{
    MHA_CHECK(err, heads == 0 || heads == H, MHA_ERROR_SHAPE,
              "the mask has %s of %lld heads, the call H = %lld", name, (long long)heads,
              (long long)H);
    return MHA_OK;
}

static int32_t
tokens_fit(const char *name, int64_t batch, int64_t tokens, int64_t expected, mha_error *err)
{
    MHA_CHECK(err, batch == 0 || tokens == expected, MHA_ERROR_SHAPE,
              "the mask has %s of %lld tokens, the call has %lld", name, (long long)tokens,
              (long long)expected);
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

static int32_t
packed_fits(const struct mha__rules *rules, int64_t B, int64_t T, int64_t S, mha_error *err)
{
    const int64_t n = rules->packed;
    MHA_CHECK(err, B == 1, MHA_ERROR_SHAPE,
              "the mask packs %lld sequences into one batch row, the call has B = %lld",
              (long long)n, (long long)B);
    MHA_CHECK(err, rules->query_batch == 0 && rules->key_batch == 0, MHA_ERROR_SHAPE,
              "the mask packs %lld sequences and has lengths too: a packed sequence ends where the "
              "next begins",
              (long long)n);
    MHA_CHECK(err, rules->query_offsets[n] <= T && rules->key_offsets[n] <= S, MHA_ERROR_SHAPE,
              "the packed sequences end at query %lld and key %lld, but the call has T = %lld and "
              "S = %lld",
              (long long)rules->query_offsets[n], (long long)rules->key_offsets[n], (long long)T,
              (long long)S);
    MHA_CHECK(err,
              rules->alignment != MHA_ALIGNMENT_EXPLICIT || rules->offset_batch == 1 ||
                  rules->offset_batch == n,
              MHA_ERROR_SHAPE, "the mask has offsets of %lld sequences, but packs %lld",
              (long long)rules->offset_batch, (long long)n);
    return MHA_OK;
}

/* T_b and S_b of a batch row, or of a sequence where the batch is packed. */
static void sizes_of(
    const struct mha__rules *rules, int64_t b, int64_t T, int64_t S, int64_t *T_b, int64_t *S_b)
{
    *T_b = T;
    *S_b = S;
    if (rules && rules->packed) {
        *T_b = rules->query_offsets[b + 1] - rules->query_offsets[b];
        *S_b = rules->key_offsets[b + 1] - rules->key_offsets[b];
        return;
    }
    if (rules && rules->query_batch) {
        *T_b = rules->query_lengths[rules->query_batch == 1 ? 0 : b];
    }
    if (rules && rules->key_batch) {
        *S_b = rules->key_lengths[rules->key_batch == 1 ? 0 : b];
    }
}

int32_t mha__mask_aligned(
    const mha_mask *mask, const char *what, int64_t B, int64_t T, int64_t S, mha_error *err)
{
    const struct mha__rules *rules = mask ? &mask->rules : NULL;
    if (rules && rules->alignment != MHA_ALIGNMENT_UNSET) {
        return MHA_OK;
    }
    const bool packed = rules && rules->packed;
    const bool alike = !packed && (!rules || (rules->query_batch <= 1 && rules->key_batch <= 1));
    const int64_t rows = packed ? rules->packed : alike && B > 1 ? 1 : B;
    for (int64_t b = 0; b < rows; b++) {
        int64_t T_b = 0;
        int64_t S_b = 0;
        sizes_of(rules, b, T, S, &T_b, &S_b);
        MHA_CHECK(err, T_b == S_b, MHA_ERROR_ALIGNMENT,
                  "%s with %lld queries and %lld keys in %s %lld: say the alignment "
                  "(mha_mask_set_alignment)",
                  what, (long long)T_b, (long long)S_b, packed ? "sequence" : "batch row",
                  (long long)b);
    }
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
    const struct mha__segments *segments = &rules->segments;
    if (rules->packed) {
        MHA_TRY(packed_fits(rules, B, T, S, err));
    } else if (rules->alignment == MHA_ALIGNMENT_EXPLICIT) {
        MHA_TRY(batch_fits("offsets", rules->offset_batch, B, err));
    }
    MHA_TRY(lengths_fit("key lengths", rules->key_lengths, rules->key_batch, B, S, err));
    MHA_TRY(lengths_fit("query lengths", rules->query_lengths, rules->query_batch, B, T, err));
    MHA_TRY(batch_fits("ranges", rules->range_batch, B, err));
    MHA_TRY(tokens_fit("ranges", rules->range_batch, rules->range_queries, T, err));
    MHA_TRY(batch_fits("segments", segments->batch, B, err));
    MHA_TRY(tokens_fit("query segments", segments->batch, segments->queries, T, err));
    MHA_TRY(tokens_fit("key segments", segments->batch, segments->keys, S, err));
    MHA_TRY(heads_fit("causal flags", rules->causal_heads, H, err));
    MHA_TRY(heads_fit("windows", rules->window_heads, H, err));
    MHA_TRY(heads_fit("ALiBi slopes", rules->alibi_heads, H, err));
    for (int64_t m = 0; m < rules->booleans; m++) {
        MHA_TRY(boolean_fits(&rules->boolean[m], B, H, T, S, err));
    }
    if (mha__visibility_needs_alignment(rules)) {
        MHA_TRY(mha__mask_aligned(mask, "causal, window or ALiBi", B, T, S, err));
    }
    return MHA_OK;
}
