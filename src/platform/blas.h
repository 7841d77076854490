/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA__BLAS_H
#define MHA__BLAS_H

/*
 * The one door to the BLAS. Nothing here changes a setting of the host's BLAS; calls are kept so
 * small, or the BLAS known to be so single-threaded, that they never enter its thread queue:
 *
 *   OpenBLAS does not thread a product with m*n*k <= 65536 * 4, whatever the settings, and takes no
 *   level-3 lock for it. Threaded products of different transposition at once corrupt each other in
 *   0.3.4 to 0.3.33.
 */
#include <stdbool.h>
#include <stdint.h>

enum mha__blas_family {
    MHA__BLAS_PACKED, /* every product packs its operands first: big tiles */
    MHA__BLAS_SMALL   /* copy-free kernels for NN products up to m*n*k = 10^6 (OpenBLAS, AVX-512) */
};

/* What is true of the BLAS for one call of the library, asked once at its start. */
struct mha__blas_state {
    int64_t limit;     /* the largest m*n*k of one product */
    int64_t small_max; /* SMALL: the largest m*n*k that takes the copy-free kernels; else limit */
    int32_t family;    /* enum mha__blas_family */
    bool confined;     /* limit is 262144 (or less), not free */
    bool serialised;   /* no two products at once: the BLAS has no locks, or is unknown */
};

void mha__blas_ask(struct mha__blas_state *state);

/* The most threads that may be inside the BLAS at once. */
int32_t mha__blas_max_threads(void);

/*
 * A thread asks for a place in the BLAS before its first product and gives it back after its last;
 * it waits while all places are taken. False: the BLAS could not get its buffer (128 MiB of address
 * space), and would spin for ever.
 */
bool mha__blas_enter(void);
void mha__blas_leave(void);

/*
 * C = A B + beta C, row-major: A [m, k] with lda, B [k, n] with ldb, C [m, n] with ldc. beta = 0
 * does not read C. m, n >= 2 (some BLAS hand the others to a threaded GEMV: see kernels/product.h),
 * k >= 1. Products beyond state->limit are split in blocks fixed by the shape.
 */
void mha__blas_gemm_nn(const struct mha__blas_state *state,
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

/* For people: copied like mha_error_message. */
int64_t mha__blas_describe(char *buf, int64_t cap);
int64_t mha__blas_core(char *buf, int64_t cap);

/* The BLAS's own number of threads now; 0 = it does not tell. */
int32_t mha__blas_own_threads(void);

/* Locks and counters of the parent are worthless in a forked child. */
void mha__blas_after_fork_in_child(void);

#endif
