/* SPDX-License-Identifier: Apache-2.0 */
#include "api/objects.h"
#include "api/run.h"

#include <mha/attention.h>

#include <stdatomic.h>

/*
 * Hidden contexts: a call takes one out of a slot and puts it back, so their workspaces are used
 * again and no lock is held over a call or a fork. More callers at once than slots make contexts of
 * their own.
 */
enum { SLOTS = 8 };
static _Atomic(mha_context *) slots[SLOTS];

static int32_t take_context(mha_context **ctx, mha_error *err)
{
    for (int i = 0; i < SLOTS; i++) {
        *ctx = atomic_exchange(&slots[i], NULL);
        if (*ctx) {
            return MHA_OK;
        }
    }
    return mha_context_create(ctx, err);
}

static void give_back(mha_context *ctx)
{
    for (int i = 0; i < SLOTS; i++) {
        mha_context *nobody = NULL;
        if (atomic_compare_exchange_strong(&slots[i], &nobody, ctx)) {
            return;
        }
    }
    mha_context_destroy(ctx);
}

int32_t mha_attention(int64_t B,
                      int64_t T,
                      int64_t S,
                      int64_t H,
                      int64_t G,
                      int64_t D,
                      const float *q,
                      const float *k,
                      const float *v,
                      int32_t causal,
                      float *out,
                      mha_error *err)
{
    MHA_CHECK(
        err, H >= 1 && G >= 1 && H <= INT32_MAX && H % G == 0, MHA_ERROR_HEAD_COUNT,
        "H = %lld query heads, G = %lld key-value heads: both are at least 1, and G divides H",
        (long long)H, (long long)G);
    MHA_CHECK(err, D >= 1, MHA_ERROR_SHAPE, "D = %lld features per head; at least 1", (long long)D);
    MHA_CHECK(err, D <= INT32_MAX && H * D <= INT32_MAX, MHA_ERROR_TOO_LARGE,
              "H * D = %lld * %lld passes 2147483647, the largest BLAS size", (long long)H,
              (long long)D);
    MHA_CHECK(err, causal >= MHA_CAUSAL_NONE && causal <= MHA_CAUSAL_BOTTOM_RIGHT,
              MHA_ERROR_UNKNOWN_ID,
              "causal = %d; MHA_CAUSAL_NONE (0), _TOP_LEFT (1) and _BOTTOM_RIGHT (2) are known",
              (int)causal);
    /* A layer without projections is attention itself; it needs no memory of its own. */
    const mha_config cfg = {.magic = MHA__MAGIC_CONFIG, .E = H * D, .H = H, .G = G, .D = D};
    const mha_layer layer = {.magic = MHA__MAGIC_LAYER,
                             .H = H,
                             .G = G,
                             .D = D,
                             .Dv = D,
                             .width = {H * D, G * D, G * D, H * D},
                             .scale = mha_config_scale(&cfg)};
    const mha_mask mask = {.magic = MHA__MAGIC_MASK,
                           .rules = {.causal = causal != MHA_CAUSAL_NONE,
                                     .alignment = causal == MHA_CAUSAL_TOP_LEFT
                                                      ? MHA_ALIGNMENT_TOP_LEFT
                                                      : MHA_ALIGNMENT_BOTTOM_RIGHT,
                                     .left = -1,
                                     .right = -1}};
    mha_context *ctx = NULL;
    MHA_TRY(take_context(&ctx, err));
    const int32_t status = mha__run_contiguous(ctx, &layer, B, T, S, q, k, v, &mask, out, err);
    give_back(ctx);
    return status;
}
