/* SPDX-License-Identifier: Apache-2.0 */
#include "api/text.h"
#include "kernels/kernels.h"
#include "platform/blas.h"
#include "platform/parallel.h"

#include <mha/version.h>

#include <stdio.h>

#if defined(__clang__)
#define COMPILER "clang " __clang_version__
#elif defined(__GNUC__)
#define COMPILER "gcc " __VERSION__
#else
#define COMPILER "unknown compiler"
#endif

int32_t mha_version_number(void)
{
    return MHA_VERSION_NUMBER;
}

const char *mha_version_string(void)
{
    return MHA_VERSION_STRING;
}

int64_t mha_version_build_info(char *buf, int64_t cap)
{
    char blas[512];
    char line[1024];
    struct mha__blas_state state;
    (void)mha__blas_describe(blas, sizeof blas);
    mha__blas_ask(&state);
    (void)snprintf(line, sizeof line, "libmha %s, %s, kernels %s, BLAS %s, %s %s tiles, %d threads",
                   MHA_VERSION_STRING, COMPILER, mha__kernels_chosen()->name, blas,
                   state.confined ? "confined" : "free",
                   state.family == MHA__BLAS_SMALL ? "copy-free" : "packed",
                   (int)mha__parallel_default_threads());
    return mha__text_copy(line, buf, cap);
}
