/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA_RUNTIME_H
#define MHA_RUNTIME_H

#include <mha/error.h>

MHA_BEGIN_DECLS

/*
 * What the library found on this machine: kernels, BLAS, threads. All may be called from any thread
 * at any time. Texts are copied like mha_error_message: the return value is the full length without
 * the NUL, (NULL, 0) is fine.
 */

/**
 * The kernel set in use: "ref", "avx2", "avx512" or "neon". Chosen once, at first use, by the
 * CPU; MHA_KERNELS=ref in the environment forces a set (one that the CPU lacks is not taken).
 * Static.
 */
MHA_API const char *mha_runtime_kernels(void);

/** The BLAS: "OpenBLAS 0.3.21 … pthread, core Zen, 2 threads" as far as it tells. */
MHA_API int64_t mha_runtime_blas(char *buf, int64_t cap);

/** The core name that OpenBLAS runs ("Zen", "SkylakeX"), or "" where the BLAS does not tell. */
MHA_API int64_t mha_runtime_blas_core(char *buf, int64_t cap);

/**
 * How many threads a context uses unless told otherwise: MHA_NUM_THREADS, else the smaller of CPU
 * affinity and cgroup quota; never more than 64 or than the BLAS can serve at once. At least 1.
 */
MHA_API int32_t mha_runtime_threads(void);

/**
 * Advice for more speed on this machine, one sentence a line ("" when there is none), for example
 * to set OPENBLAS_NUM_THREADS=1 so that bigger tiles are safe.
 */
MHA_API int64_t mha_runtime_advice(char *buf, int64_t cap);

/**
 * Checks the BLAS and the kernels on this machine: products of known answer, exp over its range,
 * one attention against a plain float64 computation. About a tenth of a second.
 * @retval MHA_OK
 * @retval MHA_ERROR_BLAS           a product is wrong; the sentence says which and by how much
 * @retval MHA_ERROR_VALUE          a kernel of our own is wrong (please report it)
 * @retval MHA_ERROR_OUT_OF_MEMORY
 */
MHA_API int32_t mha_runtime_selftest(mha_error *err);

MHA_END_DECLS
#endif
