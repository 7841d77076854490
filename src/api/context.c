/* SPDX-License-Identifier: Apache-2.0 */
#include "api/objects.h"
#include "api/run.h"
#include "platform/memory.h"

#include <mha/context.h>

#include <stdlib.h>
#include <string.h>

static int32_t default_engine(void)
{
    const char *wish = getenv("MHA_ENGINE");
    return wish && strcmp(wish, "fused") == 0 ? MHA_ENGINE_FUSED : MHA_ENGINE_BLAS;
}

/* The defaults. */
static void begin(mha_context *ctx)
{
    *ctx = (mha_context){.magic = MHA__MAGIC_CONTEXT, .engine = default_engine()};
}

int32_t mha_context_create(mha_context **out, mha_error *err)
{
    MHA_CHECK_POINTER(err, out);
    *out = mha__memory_allocate(sizeof **out);
    MHA_CHECK(err, *out, MHA_ERROR_OUT_OF_MEMORY, "no memory for a context");
    begin(*out);
    return mha__error_clear(err);
}

void mha_context_destroy(mha_context *ctx)
{
    if (ctx) {
        mha__memory_release(ctx->workspace);
        mha__memory_release(ctx->profile);
        ctx->magic = 0;
        mha__memory_release(ctx);
    }
}

int32_t mha_context_set_threads(mha_context *ctx, int32_t threads, mha_error *err)
{
    MHA_CHECK_HANDLE(err, ctx, MHA__MAGIC_CONTEXT);
    MHA_CHECK(err, threads >= 0 && threads <= MHA__MOST_THREADS, MHA_ERROR_VALUE,
              "%d threads; 0 (the default) to %d are possible", (int)threads, MHA__MOST_THREADS);
    ctx->threads = threads;
    return mha__error_clear(err);
}

int32_t mha_context_set_executor(
    mha_context *ctx, mha_parallel_for parallel_for, void *user, int32_t threads, mha_error *err)
{
    MHA_CHECK_HANDLE(err, ctx, MHA__MAGIC_CONTEXT);
    MHA_CHECK(err, !parallel_for || (threads >= 1 && threads <= MHA__MOST_THREADS), MHA_ERROR_VALUE,
              "an executor of %d threads; 1 to %d are possible", (int)threads, MHA__MOST_THREADS);
    ctx->parallel_for = parallel_for;
    ctx->user = parallel_for ? user : NULL;
    ctx->executor_threads = parallel_for ? threads : 0;
    return mha__error_clear(err);
}

int32_t mha_context_set_engine(mha_context *ctx, int32_t engine, mha_error *err)
{
    MHA_CHECK_HANDLE(err, ctx, MHA__MAGIC_CONTEXT);
    MHA_CHECK(err, engine == MHA_ENGINE_BLAS || engine == MHA_ENGINE_FUSED, MHA_ERROR_UNKNOWN_ID,
              "engine %d; MHA_ENGINE_BLAS (0) and MHA_ENGINE_FUSED (1) are known", (int)engine);
    ctx->engine = engine;
    return mha__error_clear(err);
}

int32_t mha_context_set_workspace_limit(mha_context *ctx, int64_t bytes, mha_error *err)
{
    MHA_CHECK_HANDLE(err, ctx, MHA__MAGIC_CONTEXT);
    MHA_CHECK(err, bytes >= 0, MHA_ERROR_SHAPE, "a limit of %lld bytes", (long long)bytes);
    ctx->limit = bytes;
    return mha__error_clear(err);
}

struct mha__executor mha__context_executor(const mha_context *ctx)
{
    struct mha__executor executor = {.threads = ctx->threads};
    if (ctx->parallel_for) {
        executor = (struct mha__executor){
            .threads = ctx->executor_threads, .parallel_for = ctx->parallel_for, .user = ctx->user};
    } else if (executor.threads == 0) {
        executor.threads = mha__parallel_default_threads();
    }
    executor.profile = ctx->profile;
    return executor;
}

int32_t mha_context_threads(const mha_context *ctx)
{
    return ctx ? mha__context_executor(ctx).threads : MHA_ERROR_NULL_ARGUMENT;
}

int32_t mha_context_engine(const mha_context *ctx)
{
    return ctx ? ctx->engine : MHA_ERROR_NULL_ARGUMENT;
}

int64_t mha_context_workspace_limit(const mha_context *ctx)
{
    return ctx ? ctx->limit : MHA_ERROR_NULL_ARGUMENT;
}

int64_t mha_context_bytes(const mha_context *ctx)
{
    return ctx ? ctx->bytes : MHA_ERROR_NULL_ARGUMENT;
}

int32_t mha__context_reserve(mha_context *ctx, int64_t bytes, mha_error *err)
{
    MHA_CHECK(err, ctx->limit == 0 || bytes <= ctx->limit, MHA_ERROR_TOO_LARGE,
              "the call needs %lld bytes of workspace, the context allows %lld", (long long)bytes,
              (long long)ctx->limit);
    if (bytes <= ctx->bytes) {
        return MHA_OK;
    }
    /* The new block first: when it cannot be had, the old one still serves. */
    char *workspace = mha__memory_allocate((size_t)bytes);
    MHA_CHECK(err, workspace, MHA_ERROR_OUT_OF_MEMORY, "no memory for a workspace of %lld bytes",
              (long long)bytes);
    mha__memory_release(ctx->workspace);
    ctx->workspace = workspace;
    ctx->bytes = bytes;
    return MHA_OK;
}
