/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA__BLAS_CHECK_H
#define MHA__BLAS_CHECK_H

#include <mha/error.h>

/*
 * Distrust: old OpenBLAS builds have computed wrong products on CPUs newer than they are. A handful
 * of products of small whole numbers, whose sums are exact in float32, is compared with the answer.
 * Done once a process (again = true: anew). MHA_OK, MHA_ERROR_BLAS or MHA_ERROR_OUT_OF_MEMORY.
 */
int32_t mha__blas_check(int again, mha_error *err);

#endif
