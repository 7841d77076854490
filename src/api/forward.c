/* SPDX-License-Identifier: Apache-2.0 */
#include "api/run.h"

#include <mha/forward.h>

int32_t mha_forward(
    mha_context *ctx, const mha_layer *layer, const mha_mask *mask, mha_call *call, mha_error *err)
{
    MHA_CHECK_HANDLE(err, ctx, MHA__MAGIC_CONTEXT);
    MHA_CHECK_HANDLE(err, layer, MHA__MAGIC_LAYER);
    MHA_CHECK_HANDLE(err, call, MHA__MAGIC_CALL);
    return mha__run(ctx, layer, mask, call, err);
}
