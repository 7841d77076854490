/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SGEMM_SHIM_H
#define TESTS_SGEMM_SHIM_H

/*
 * A cblas_sgemm that stands before the real one in this program, looks at every product of the
 * library and hands it on.
 */
#include <stdint.h>

typedef struct sgemm_watch {
    int64_t products; /* of the library */
    int64_t vectors;  /* of those with m = 1 or n = 1: forbidden, some BLAS thread their GEMV */
    int64_t empty;    /* with m, n or k < 1: forbidden */
    int64_t largest;  /* m * n * k */
    int32_t at_once;  /* the most that were inside the BLAS together */
} sgemm_watch;

void sgemm_shim_reset(void);
sgemm_watch sgemm_shim_read(void);

/* Products of the calling thread are the host's own from now on (1), not watched; or not (0). */
void sgemm_shim_host(int is_host);

/* C = A op(B), n x n each, as a host would call its BLAS. transposed: op(B) = B^T. */
void sgemm_shim_host_product(int n, int transposed, const float *a, const float *b, float *c);

/* 0 serial, 1 pthread, 2 OpenMP; -1 where the BLAS does not tell. Its number of threads, or -1. */
int sgemm_shim_blas_parallel(void);
int sgemm_shim_blas_threads(void);

#endif
