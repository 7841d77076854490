/* SPDX-License-Identifier: Apache-2.0 */
#include "api/objects.h"
#include "platform/fpenv.h"

#include <mha/call.h>

/* What a call carries beside its tensors: dropout, positions, callbacks, top keys. */

/* numbers [a, b, c, d] of `size` bytes each: no size is negative, they fit 63 bits, and data is
 * there unless it is empty. */
static int32_t check_array(
    const char *name, const void *data, const int64_t shape[4], int64_t size, mha_error *err)
{
    int64_t numbers = 0;
    for (int i = 0; i < 4; i++) {
        MHA_CHECK(err, shape[i] >= 0, MHA_ERROR_SHAPE, "%s: axis %d has size %lld", name, i,
                  (long long)shape[i]);
    }
    const bool empty = !shape[0] || !shape[1] || !shape[2] || !shape[3];
    MHA_CHECK(err,
              empty || (mha__product_fits(shape[0], shape[1], shape[2], &numbers) &&
                        mha__product_fits(numbers, shape[3], size, &numbers)),
              MHA_ERROR_TOO_LARGE, "%s [%lld, %lld, %lld, %lld] pass 2^63 bytes", name,
              (long long)shape[0], (long long)shape[1], (long long)shape[2], (long long)shape[3]);
    MHA_CHECK(err, data || empty, MHA_ERROR_NULL_ARGUMENT, "%s is NULL", name);
    return MHA_OK;
}

int32_t mha_call_set_dropout(mha_call *call, double p, uint64_t seed, mha_error *err)
{
    MHA_CHECK_HANDLE(err, call, MHA__MAGIC_CALL);
    struct mha__fpenv hosts; // comparing a NaN raises a flag
    mha__fpenv_enter(&hosts);
    const bool fine = p >= 0.0 && p <= 1.0;
    mha__fpenv_leave(&hosts);
    MHA_CHECK(err, fine, MHA_ERROR_VALUE, "dropout p = %g; 0 to 1 are possible", p);
    call->dropout = p;
    call->seed = seed;
    return mha__error_clear(err);
}

int32_t mha_call_set_dropout_mask(
    mha_call *call, const uint8_t *keep, int64_t B, int64_t H, int64_t T, int64_t S, mha_error *err)
{
    MHA_CHECK_HANDLE(err, call, MHA__MAGIC_CALL);
    const int64_t shape[4] = {B, H, T, S};
    if (keep) {
        MHA_TRY(check_array("keep", keep, shape, 1, err));
    }
    call->keep = keep;
    for (int i = 0; i < 4; i++) {
        call->keep_shape[i] = keep ? shape[i] : 0;
    }
    return mha__error_clear(err);
}

int32_t mha_call_set_positions(mha_call *call,
                               int64_t batch,
                               int64_t T,
                               const int64_t *query_ids,
                               int64_t S,
                               const int64_t *key_ids,
                               mha_error *err)
{
    MHA_CHECK_HANDLE(err, call, MHA__MAGIC_CALL);
    const bool given = query_ids || key_ids;
    if (given) {
        MHA_CHECK(err, batch >= 1, MHA_ERROR_SHAPE, "positions of %lld batch rows",
                  (long long)batch);
        MHA_TRY(check_array("query_ids", query_ids, (int64_t[]){batch, T, 1, 1}, 8, err));
        MHA_TRY(check_array("key_ids", key_ids, (int64_t[]){batch, S, 1, 1}, 8, err));
    }
    call->query_ids = query_ids;
    call->key_ids = key_ids;
    call->ids_batch = given ? batch : 0;
    call->ids_T = given ? T : 0;
    call->ids_S = given ? S : 0;
    return mha__error_clear(err);
}

static int32_t check_flags(mha_call *call, int32_t flags, mha_error *err)
{
    MHA_CHECK_HANDLE(err, call, MHA__MAGIC_CALL);
    MHA_CHECK(err, (flags & ~MHA_CALLBACK_CONCURRENT) == 0, MHA_ERROR_UNKNOWN_ID,
              "callback flags %d; MHA_CALLBACK_CONCURRENT (1) is known", (int)flags);
    return MHA_OK;
}

int32_t mha_call_set_score_callback(
    mha_call *call, mha_score_callback callback, void *user, int32_t flags, mha_error *err)
{
    MHA_TRY(check_flags(call, flags, err));
    call->score_callback = callback;
    call->score_user = callback ? user : NULL;
    call->score_flags = callback ? flags : 0;
    return mha__error_clear(err);
}

int32_t mha_call_set_weights_callback(
    mha_call *call, mha_weights_callback callback, void *user, int32_t flags, mha_error *err)
{
    MHA_TRY(check_flags(call, flags, err));
    call->weights_callback = callback;
    call->weights_user = callback ? user : NULL;
    call->weights_flags = callback ? flags : 0;
    return mha__error_clear(err);
}

int32_t mha_call_set_top_keys(mha_call *call,
                              int64_t B,
                              int64_t H,
                              int64_t T,
                              int64_t k,
                              int64_t *keys,
                              float *weights,
                              mha_error *err)
{
    MHA_CHECK_HANDLE(err, call, MHA__MAGIC_CALL);
    MHA_TRY(check_array("top keys", keys, (int64_t[]){B, H, T, k}, 8, err)); // of k = 0 none
    call->top = k;
    call->top_keys = k > 0 ? keys : NULL;
    call->top_weights = k > 0 ? weights : NULL;
    call->top_shape[0] = k > 0 ? B : 0;
    call->top_shape[1] = k > 0 ? H : 0;
    call->top_shape[2] = k > 0 ? T : 0;
    return mha__error_clear(err);
}
