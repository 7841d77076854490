/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA_CONTEXT_H
#define MHA_CONTEXT_H

#include <mha/error.h>

MHA_BEGIN_DECLS

/**
 * What a call needs besides its tensors: workspace, threads, engine. It says how, never what: no
 * setting changes a number beyond rounding, and the number of threads changes no bit.
 *
 * The worker threads belong to the process, not to a context: they start at first need, sleep when
 * idle and stay until the process ends.
 *
 * Threads: one call at a time per context; as many contexts as there are calls at once.
 */
typedef struct mha_context mha_context;

/* How products are computed, of projections and inside attention. */
#define MHA_ENGINE_BLAS 0 /* through cblas_sgemm, per head and tile; few rows by our own kernels */
#define MHA_ENGINE_FUSED                                                                           \
    1 /* by kernels of our own, whatever the BLAS: none of its products is used */

/**
 * The host's own threads in place of ours: must call task(arg, i) once for each i in 0 .. n-1, in
 * any order, on any threads, one after another or at once, and return when all have returned: 0 for
 * success, anything else fails the call with MHA_ERROR_EXECUTOR. No exception or longjmp may pass
 * through task.
 */
typedef int32_t (*mha_parallel_for)(void *user,
                                    int64_t n,
                                    void (*task)(void *arg, int64_t i),
                                    void *arg);

/** A context with the defaults. @retval MHA_ERROR_OUT_OF_MEMORY  *out is NULL */
MHA_API int32_t mha_context_create(mha_context **out, mha_error *err);

/** Frees ctx and its workspace; NULL is fine. */
MHA_API void mha_context_destroy(mha_context *ctx);

/**
 * How many threads a call may use, the calling one included; 0 = the default (mha_runtime_threads).
 * @retval MHA_ERROR_VALUE  outside 0 .. 64
 */
MHA_API int32_t mha_context_set_threads(mha_context *ctx, int32_t threads, mha_error *err);

/**
 * The host's executor, and how many of its threads to plan for (1 .. 64). NULL returns to our own
 * pool. parallel_for is entered on the calling thread only; user is handed back, never read, and
 * both are kept until another executor is set.
 * @retval MHA_ERROR_VALUE  threads outside 1 .. 64
 */
MHA_API int32_t mha_context_set_executor(
    mha_context *ctx, mha_parallel_for parallel_for, void *user, int32_t threads, mha_error *err);

/**
 * The engine. Default: MHA_ENGINE in the environment ("blas" or "fused"), else MHA_ENGINE_BLAS.
 * @retval MHA_ERROR_UNKNOWN_ID
 */
MHA_API int32_t mha_context_set_engine(mha_context *ctx, int32_t engine, mha_error *err);

/**
 * The most bytes of workspace a call may need; 0 = no limit (the default). A call that needs
 * more is refused with MHA_ERROR_TOO_LARGE, both numbers in the sentence.
 * @retval MHA_ERROR_SHAPE  bytes < 0
 */
MHA_API int32_t mha_context_set_workspace_limit(mha_context *ctx, int64_t bytes, mha_error *err);

/*
 * Where the time of a call goes. Every moment of a lane (a thread that works on a call) belongs to
 * exactly one of these.
 */
#define MHA_TIME_PROJECTIONS 0 /* products with the weights of a layer */
#define MHA_TIME_PACKING     1 /* copies: keys, values and queries in, the output out */
#define MHA_TIME_SCORES      2 /* Q K^T and the stages of the scores */
#define MHA_TIME_SOFTMAX     3
#define MHA_TIME_VALUES      4 /* weights times V */
#define MHA_TIME_OTHER       5 /* everything else: checks, plan, masks, rotary, other outputs */
#define MHA_TIME_IDLE        6 /* lanes that wait for others, or have not begun */

/**
 * 1: from now on the context notes where the time of its calls goes, beginning at zero, also where it
 * did so before. 0 (the default): it does not, and what it knew is gone. No number of a result depends
 * on it. Off it costs nothing that can be measured; on, a read of a counter per tile and part.
 *
 * Memory: some 8 KiB, held until it is set to 0 or the context is destroyed.
 * @retval MHA_ERROR_VALUE          neither 0 nor 1
 * @retval MHA_ERROR_OUT_OF_MEMORY  the setting is as before
 */
MHA_API int32_t mha_context_set_profiling(mha_context *ctx, int32_t on, mha_error *err);

/**
 * Seconds of part MHA_TIME_* in all calls since profiling was set, summed over lanes: the seven parts
 * add up to lanes * duration of each call (lanes: mha_plan_threads). A failed call counts as far as it
 * came. Not while a call runs.
 * @retval MHA_ERROR_NULL_ARGUMENT  ctx or seconds is NULL
 * @retval MHA_ERROR_UNKNOWN_ID     no such part
 * @retval MHA_ERROR_NOT_SET        profiling is off; *seconds is as before in all three cases
 */
MHA_API int32_t mha_context_profile(const mha_context *ctx,
                                    int32_t part,
                                    double *seconds,
                                    mha_error *err);

/* What is set, or in force by default. MHA_ERROR_NULL_ARGUMENT for NULL. */
MHA_API int32_t mha_context_threads(const mha_context *ctx);
MHA_API int32_t mha_context_engine(const mha_context *ctx);
MHA_API int64_t mha_context_workspace_limit(const mha_context *ctx);
MHA_API int32_t mha_context_profiling(const mha_context *ctx);
/** Bytes of workspace held now; grows only when a call is larger than all before. */
MHA_API int64_t mha_context_bytes(const mha_context *ctx);

MHA_END_DECLS
#endif
