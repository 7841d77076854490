/* SPDX-License-Identifier: Apache-2.0 */
#include "api/objects.h"
#include "api/text.h"
#include "kernels/kernels.h"
#include "platform/blas.h"
#include "platform/parallel.h"

#include <mha/runtime.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *mha_runtime_kernels(void)
{
    return mha__kernels_chosen()->name;
}

int64_t mha_runtime_blas(char *buf, int64_t cap)
{
    char text[512];
    (void)mha__blas_describe(text, sizeof text);
    return mha__text_copy(text, buf, cap);
}

int64_t mha_runtime_blas_core(char *buf, int64_t cap)
{
    char text[64];
    (void)mha__blas_core(text, sizeof text);
    return mha__text_copy(text, buf, cap);
}

int32_t mha_runtime_threads(void)
{
    return mha__parallel_default_threads();
}

int64_t mha_runtime_advice(char *buf, int64_t cap)
{
    struct mha__blas_state state;
    mha__blas_ask(&state);
    char text[1024] = "";
    if (state.serialised && mha__blas_own_threads() > 0) {
        (void)snprintf(text, sizeof text,
                       "This OpenBLAS is a serial build without locks: products run one at a time. "
                       "Use its pthread "
                       "build for more than one thread.");
    } else if (state.serialised) {
        (void)snprintf(text, sizeof text,
                       "This BLAS is not known to be safe for several callers: products run one at "
                       "a time. Use "
                       "OpenBLAS for more than one thread.");
    } else if (state.confined && mha__blas_own_threads() > 1) {
        (void)snprintf(text, sizeof text,
                       "OpenBLAS has %d threads of its own, so tiles are kept small enough that it "
                       "never uses them. Set "
                       "OPENBLAS_NUM_THREADS=1 in the environment: bigger tiles are faster.",
                       (int)mha__blas_own_threads());
    } else if (state.confined) {
        (void)snprintf(text, sizeof text,
                       "The OpenMP build of OpenBLAS forces small tiles. Its pthread build with "
                       "OPENBLAS_NUM_THREADS=1 "
                       "is faster.");
    }
    const char *core = getenv("OPENBLAS_CORETYPE");
    if (core && *core) {
        const size_t used = strlen(text);
        (void)snprintf(text + used, sizeof text - used,
                       "%sOPENBLAS_CORETYPE=%.60s forces the kernels of OpenBLAS; without it they "
                       "may be faster.",
                       used ? "\n" : "", core);
    }
    return mha__text_copy(text, buf, cap);
}
