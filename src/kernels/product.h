/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA__PRODUCT_H
#define MHA__PRODUCT_H

#include "kernels/kernels.h"
#include "platform/blas.h"

/*
 * C = A B + beta C for any m, n, k >= 1, beta 0 or 1: the BLAS where it may be asked, our own loops for at most
 * `few` rows, which are no work for it, and for a single row or column (the BLAS would hand those to a GEMV that
 * has a threading threshold of its own).
 */
void mha__product_nn(const struct mha__kernels *kernels,
                     const struct mha__blas_state *blas,
                     int64_t few,
                     int64_t m,
                     int64_t n,
                     int64_t k,
                     const float *a,
                     int64_t lda,
                     const float *b,
                     int64_t ldb,
                     float beta,
                     float *c,
                     int64_t ldc);

#endif
