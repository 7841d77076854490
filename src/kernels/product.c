/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/product.h"

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
                     int64_t ldc)
{
    if (n == 1) {
        kernels->column_product(m, k, a, lda, b, ldb, beta, c, ldc);
    } else if (m == 1 || m <= few) {
        kernels->few_product(m, n, k, a, lda, b, ldb, beta != 0.0f, c, ldc);
    } else {
        mha__blas_gemm_nn(blas, m, n, k, a, lda, b, ldb, beta, c, ldc);
    }
}
