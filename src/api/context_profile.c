/* SPDX-License-Identifier: Apache-2.0 */
#include "api/objects.h"
#include "platform/fpenv.h"
#include "platform/memory.h"
#include "platform/profile.h"

#include <mha/context.h>

_Static_assert((int)MHA__PROFILE_LANES >= (int)MHA__MOST_THREADS, "a clock for every lane");
_Static_assert(MHA_TIME_PROJECTIONS == (int)MHA__PROFILE_PROJECTIONS &&
                   MHA_TIME_PACKING == (int)MHA__PROFILE_PACKING &&
                   MHA_TIME_SCORES == (int)MHA__PROFILE_SCORES &&
                   MHA_TIME_SOFTMAX == (int)MHA__PROFILE_SOFTMAX &&
                   MHA_TIME_VALUES == (int)MHA__PROFILE_VALUES &&
                   MHA_TIME_OTHER == (int)MHA__PROFILE_OTHER &&
                   MHA_TIME_IDLE == (int)MHA__PROFILE_PARTS,
               "parts by their public numbers, idle after them");

int32_t mha_context_set_profiling(mha_context *ctx, int32_t on, mha_error *err)
{
    MHA_CHECK_HANDLE(err, ctx, MHA__MAGIC_CONTEXT);
    MHA_CHECK(err, on == 0 || on == 1, MHA_ERROR_VALUE, "profiling %d; 0 and 1 are possible",
              (int)on);
    if (on && !ctx->profile) {
        ctx->profile = mha__memory_allocate(sizeof *ctx->profile);
        MHA_CHECK(err, ctx->profile, MHA_ERROR_OUT_OF_MEMORY, "no memory for the times of %d lanes",
                  MHA__PROFILE_LANES);
    }
    if (on) {
        mha__profile_start(ctx->profile);
    } else {
        mha__memory_release(ctx->profile);
        ctx->profile = NULL;
    }
    return mha__error_clear(err);
}

int32_t mha_context_profiling(const mha_context *ctx)
{
    return ctx ? ctx->profile != NULL : MHA_ERROR_NULL_ARGUMENT;
}

int32_t mha_context_profile(const mha_context *ctx, int32_t part, double *seconds, mha_error *err)
{
    MHA_CHECK_HANDLE(err, ctx, MHA__MAGIC_CONTEXT);
    MHA_CHECK_POINTER(err, seconds);
    MHA_CHECK(err, part >= MHA_TIME_PROJECTIONS && part <= MHA_TIME_IDLE, MHA_ERROR_UNKNOWN_ID,
              "part %d; MHA_TIME_PROJECTIONS (0) to MHA_TIME_IDLE (%d) are known", (int)part,
              MHA_TIME_IDLE);
    MHA_CHECK(err, ctx->profile, MHA_ERROR_NOT_SET,
              "profiling is off; mha_context_set_profiling comes before the calls");
    struct mha__fpenv hosts;
    mha__fpenv_enter(&hosts);
    *seconds = part == MHA_TIME_IDLE
                   ? mha__profile_idle(ctx->profile)
                   : mha__profile_seconds(ctx->profile, (enum mha__profile_part)part);
    mha__fpenv_leave(&hosts);
    return mha__error_clear(err);
}
