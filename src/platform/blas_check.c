/* SPDX-License-Identifier: Apache-2.0 */
#include "platform/blas_check.h"

#include "platform/blas.h"
#include "platform/fpenv.h"
#include "platform/memory.h"
#include "platform/status.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

/* Shapes that take different ways through a BLAS: tiles of ours, ragged edges, copy-free and
 * packed. */
static const struct product {
    int64_t m, n, k;
    float beta;
} products[] = {
    {64, 64, 64, 0.0f},   {32, 128, 64, 0.0f}, {96, 128, 64, 0.0f}, {128, 256, 64, 0.0f},
    {128, 64, 256, 1.0f}, {5, 7, 3, 1.0f},     {33, 17, 129, 0.0f}, {2, 300, 40, 1.0f},
};
enum { PRODUCTS = sizeof products / sizeof *products, MOST = 128 * 300 };

/* Whole numbers -4 .. 4: every product and every partial sum is exact in float32. */
static float entry(int64_t i, int64_t j, int64_t salt)
{
    return (float)((i * 7 + j * 13 + salt + (i * j) % 5) % 9 - 4);
}

static int check_one(const struct mha__blas_state *state,
                     const struct product *p,
                     float *a,
                     float *b,
                     float *c,
                     mha_error *err)
{
    const int64_t lda = p->k + 3;
    const int64_t ldb = p->n + 5;
    const int64_t ldc = p->n + 1;
    for (int64_t i = 0; i < p->m; i++) {
        for (int64_t j = 0; j < p->k; j++) {
            a[i * lda + j] = entry(i, j, 1);
        }
    }
    for (int64_t i = 0; i < p->k; i++) {
        for (int64_t j = 0; j < p->n; j++) {
            b[i * ldb + j] = entry(i, j, 2);
        }
    }
    for (int64_t i = 0; i < p->m; i++) {
        for (int64_t j = 0; j < p->n; j++) {
            c[i * ldc + j] = entry(i, j, 3);
        }
    }
    mha__blas_gemm_nn(state, p->m, p->n, p->k, a, lda, b, ldb, p->beta, c, ldc);
    for (int64_t i = 0; i < p->m; i++) {
        for (int64_t j = 0; j < p->n; j++) {
            int64_t sum = (int64_t)(p->beta * entry(i, j, 3));
            for (int64_t l = 0; l < p->k; l++) {
                sum += (int64_t)a[i * lda + l] * (int64_t)b[l * ldb + j];
            }
            if (c[i * ldc + j] != (float)sum) {
                char core[64];
                (void)mha__blas_core(core, sizeof core);
                return mha__error_format(
                    err, MHA_ERROR_BLAS,
                    "the BLAS computes wrong products here: entry (%lld, %lld) of a "
                    "%lldx%lldx%lld product is %g instead of %lld (core \"%s\"); use a newer "
                    "OpenBLAS or set OPENBLAS_CORETYPE",
                    (long long)i, (long long)j, (long long)p->m, (long long)p->n, (long long)p->k,
                    (double)c[i * ldc + j], (long long)sum, core);
            }
        }
    }
    return MHA_OK;
}

static int32_t check_all(mha_error *err)
{
    float *a = mha__memory_allocate(MOST * 2 * sizeof *a);
    float *b = mha__memory_allocate(MOST * 2 * sizeof *b);
    float *c = mha__memory_allocate(MOST * 2 * sizeof *c);
    int32_t status = MHA_OK;
    if (!a || !b || !c || !mha__blas_enter()) {
        status = mha__error_format(err, MHA_ERROR_OUT_OF_MEMORY, "no memory to check the BLAS");
        goto done;
    }
    struct mha__fpenv hosts;
    mha__fpenv_enter(&hosts);
    struct mha__blas_state state;
    mha__blas_ask(&state);
    for (size_t i = 0; i < PRODUCTS && status == MHA_OK; i++) {
        status = check_one(&state, &products[i], a, b, c, err);
    }
    mha__fpenv_leave(&hosts);
    mha__blas_leave();
done:
    mha__memory_release(a);
    mha__memory_release(b);
    mha__memory_release(c);
    return status;
}

int32_t mha__blas_check(int again, mha_error *err)
{
    /* Only a success is remembered: a failure is found anew, with its sentence. Two threads that
     * come first may both check; that is harmless. */
    static atomic_int checked;
    if (!again && atomic_load_explicit(&checked, memory_order_acquire)) {
        return MHA_OK;
    }
    MHA_TRY(check_all(err));
    atomic_store_explicit(&checked, 1, memory_order_release);
    return MHA_OK;
}
