/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "platform/blas.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/*
 * MHA_BLAS_PREFIX          what a renamed build puts before its symbols (scipy_), or nothing
 * MHA_BLAS_WEAK            1: the openblas_* functions are weak, found at run time or not
 * MHA_BLAS_HAS_OPENBLAS    without weak symbols: 1 if they were there when this was configured
 * MHA_BLAS_GEMM_THRESHOLD  OPENBLAS_GEMM_MULTITHREAD_THRESHOLD of the header that was found
 */
#ifndef MHA_BLAS_PREFIX
#define MHA_BLAS_PREFIX
#endif
#ifndef MHA_BLAS_WEAK
#define MHA_BLAS_WEAK 0
#endif
#ifndef MHA_BLAS_HAS_OPENBLAS
#define MHA_BLAS_HAS_OPENBLAS 0
#endif
#ifndef MHA_BLAS_GEMM_THRESHOLD
#define MHA_BLAS_GEMM_THRESHOLD 4
#endif

#define PASTE_(a, b) a##b
#define PASTE(a, b)  PASTE_(a, b)
#define BLAS(name)   PASTE(MHA_BLAS_PREFIX, name)

/* The CBLAS interface with 32-bit integers; declared here, so that no header of a BLAS is needed.
 */
enum { ROW_MAJOR = 101, NO_TRANSPOSE = 111 };
extern void BLAS(cblas_sgemm)(int layout,
                              int transpose_a,
                              int transpose_b,
                              int m,
                              int n,
                              int k,
                              float alpha,
                              const float *a,
                              int lda,
                              const float *b,
                              int ldb,
                              float beta,
                              float *c,
                              int ldc);

#if MHA_BLAS_WEAK || MHA_BLAS_HAS_OPENBLAS
#define HAS_OPENBLAS 1
#if MHA_BLAS_WEAK
#define MAYBE __attribute__((weak))
#else
#define MAYBE
#endif
extern int BLAS(openblas_get_parallel)(void) MAYBE;
extern int BLAS(openblas_get_num_threads)(void) MAYBE;
extern char *BLAS(openblas_get_config)(void) MAYBE;
extern char *BLAS(openblas_get_corename)(void) MAYBE;
#else
#define HAS_OPENBLAS 0
#endif

#define UNTHREADED_PRODUCT                                                                         \
    ((int64_t)65536 * (MHA_BLAS_GEMM_THRESHOLD < 4 ? MHA_BLAS_GEMM_THRESHOLD : 4))
#define SMALL_PRODUCT 1000000             /* OpenBLAS's copy-free kernels: m*n*k <= 10^6 */
#define BUFFER_BYTES  ((size_t)128 << 20) /* what OpenBLAS maps for a caller */

enum parallel { SERIAL = 0, THREAD = 1, OPENMP = 2, UNKNOWN = -1 };

static struct {
    enum parallel parallel;
    bool locks;          /* a serial build that takes its locks all the same */
    int32_t max_threads; /* MAX_THREADS of the build */
    int32_t family;
    char config[256];
    char core[64];
} blas;

static pthread_once_t blas_once = PTHREAD_ONCE_INIT;
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t freed;
    int32_t taken;
} places = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};

#if HAS_OPENBLAS

/*
 * A weak function is believed only if it lies in the same object as the sgemm that is called: in a
 * host that has an OpenBLAS beside the BLAS of this library it would otherwise speak of the wrong
 * one.
 */
static bool same_object(void (*function)(void))
{
    if (!function) {
        return false;
    }
#if MHA_BLAS_WEAK
    Dl_info ours;
    Dl_info theirs;
    void (*sgemm)(void) = (void (*)(void))BLAS(cblas_sgemm);
    void *a = NULL;
    void *b = NULL;
    memcpy(&a, &sgemm, sizeof a);
    memcpy(&b, &function, sizeof b);
    return dladdr(a, &ours) && dladdr(b, &theirs) && ours.dli_fbase == theirs.dli_fbase;
#else
    return true;
#endif
}

#define CAN_ASK(name) same_object((void (*)(void))BLAS(name))

static void copy_text(char *to, size_t cap, const char *from)
{
    (void)snprintf(to, cap, "%s", from ? from : "");
}

static void ask_openblas(void)
{
    if (!CAN_ASK(openblas_get_parallel) || !CAN_ASK(openblas_get_num_threads)) {
        return;
    }
    int parallel = BLAS(openblas_get_parallel)();
    blas.parallel = parallel == 1 ? THREAD : parallel == 2 ? OPENMP : SERIAL;
    if (CAN_ASK(openblas_get_config)) {
        copy_text(blas.config, sizeof blas.config, BLAS(openblas_get_config)());
    }
    if (CAN_ASK(openblas_get_corename)) {
        copy_text(blas.core, sizeof blas.core, BLAS(openblas_get_corename)());
    }
    const char *threads = strstr(blas.config, "MAX_THREADS=");
    int limit = threads ? atoi(threads + strlen("MAX_THREADS=")) : 0;
    if (limit > 0) {
        blas.max_threads = limit;
    }
    blas.locks = blas.parallel != SERIAL || strstr(blas.config, "USE_LOCKING") != NULL;
    static const char *const small[] = {"SkylakeX", "Cooperlake", "Sapphirerapids",
                                        "SapphireRapids"};
    for (size_t i = 0; i < sizeof small / sizeof *small; i++) {
        if (strcmp(blas.core, small[i]) == 0) {
            blas.family = MHA__BLAS_SMALL;
        }
    }
}

#endif

static void ask_once(void)
{
    blas.parallel = UNKNOWN;
    blas.locks = false;
    blas.max_threads = 64;
    blas.family = MHA__BLAS_PACKED;
#if HAS_OPENBLAS
    ask_openblas();
#endif
}

int32_t mha__blas_own_threads(void)
{
    pthread_once(&blas_once, ask_once);
#if HAS_OPENBLAS
    if (blas.parallel != UNKNOWN) {
        return (int32_t)BLAS(openblas_get_num_threads)();
    }
#endif
    return 0;
}

void mha__blas_ask(struct mha__blas_state *state)
{
    pthread_once(&blas_once, ask_once);
    /* The OpenMP build asks the calling thread's OpenMP, whatever its getter says: always confined.
     */
    state->confined =
        blas.parallel == OPENMP || (blas.parallel == THREAD && mha__blas_own_threads() != 1);
    state->serialised = !blas.locks;
    state->limit = state->confined ? UNTHREADED_PRODUCT : INT64_MAX;
    state->family = blas.family;
    state->small_max = state->family == MHA__BLAS_SMALL && state->limit > SMALL_PRODUCT
                           ? SMALL_PRODUCT
                           : state->limit;
}

int32_t mha__blas_max_threads(void)
{
    pthread_once(&blas_once, ask_once);
    return blas.max_threads;
}

/* A callback inside a call may call the library again: its thread has its place already. */
static _Thread_local int32_t depth;

bool mha__blas_enter(void)
{
    static _Thread_local bool buffer_fits;
    pthread_once(&blas_once, ask_once);
    if (depth > 0) {
        depth++;
        return true;
    }
    if (!buffer_fits) {
        void *probe =
            mmap(NULL, BUFFER_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (probe == MAP_FAILED) {
            return false;
        }
        munmap(probe, BUFFER_BYTES);
        buffer_fits = true;
    }
    pthread_mutex_lock(&places.mutex);
    while (places.taken >= blas.max_threads) {
        pthread_cond_wait(&places.freed, &places.mutex);
    }
    places.taken++;
    pthread_mutex_unlock(&places.mutex);
    depth = 1;
    return true;
}

void mha__blas_leave(void)
{
    if (--depth > 0) {
        return;
    }
    pthread_mutex_lock(&places.mutex);
    places.taken--;
    pthread_cond_signal(&places.freed);
    pthread_mutex_unlock(&places.mutex);
}

static void sgemm(const struct mha__blas_state *state,
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
    if (beta == 0.0f && state->family == MHA__BLAS_PACKED) {
        /* The packed path clears C in a pass of its own before it adds to it: sgemm_beta was 8 % of the
         * samples of attention at T = 128 and 512 (Zen 3). A memset is quicker. The copy-free kernels
         * write C without reading it. */
        for (int64_t i = 0; i < m; i++) {
            memset(c + i * ldc, 0, (size_t)n * sizeof *c);
        }
        beta = 1.0f;
    }
    if (state->serialised) {
        pthread_mutex_lock(&one_at_a_time);
    }
    BLAS(cblas_sgemm)
    (ROW_MAJOR, NO_TRANSPOSE, NO_TRANSPOSE, (int)m, (int)n, (int)k, 1.0f, a, (int)lda, b, (int)ldb,
     beta, c, (int)ldc);
    if (state->serialised) {
        pthread_mutex_unlock(&one_at_a_time);
    }
}

/* The next block of at most `block` out of `left`, never leaving a remainder of 1 (block >= 3). */
static int64_t next_block(int64_t left, int64_t block)
{
    return left <= block ? left : left == block + 1 ? block - 1 : block;
}

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
                       int64_t ldc)
{
    if (m <= state->limit / n / k) {
        sgemm(state, m, n, k, a, lda, b, ldb, beta, c, ldc);
        return;
    }
    int64_t mb = m < 64 ? m : 64;
    int64_t nb = n < 64 ? n : 64;
    int64_t kb = state->limit / mb / nb;
    for (int64_t i = 0, rows; i < m; i += rows) {
        rows = next_block(m - i, mb);
        for (int64_t j = 0, columns; j < n; j += columns) {
            columns = next_block(n - j, nb);
            for (int64_t p = 0; p < k; p += kb) {
                // C_ij = A_ip B_pj + (p > 0 ? C_ij : beta C_ij)
                sgemm(state, rows, columns, k - p < kb ? k - p : kb, a + i * lda + p, lda,
                      b + p * ldb + j, ldb, p > 0 ? 1.0f : beta, c + i * ldc + j, ldc);
            }
        }
    }
}

int64_t mha__blas_core(char *buf, int64_t cap)
{
    pthread_once(&blas_once, ask_once);
    return (int64_t)snprintf(buf, cap > 0 ? (size_t)cap : 0, "%s", blas.core);
}

int64_t mha__blas_describe(char *buf, int64_t cap)
{
    pthread_once(&blas_once, ask_once);
    size_t room = cap > 0 ? (size_t)cap : 0;
    if (blas.parallel == UNKNOWN) {
        return (int64_t)snprintf(buf, room, "unknown CBLAS, one product at a time");
    }
    static const char *const kinds[] = {"serial", "pthread", "openmp"};
    return (int64_t)snprintf(buf, room, "%s%s, %s, core %s, %d threads%s",
                             strncmp(blas.config, "OpenBLAS", 8) == 0 ? "" : "OpenBLAS ",
                             blas.config[0] ? blas.config : "(version not told)",
                             kinds[blas.parallel], blas.core[0] ? blas.core : "?",
                             (int)mha__blas_own_threads(),
                             blas.locks ? "" : ", no locks: one product at a time");
}

void mha__blas_after_fork_in_child(void)
{
    pthread_mutex_init(&one_at_a_time, NULL);
    pthread_mutex_init(&places.mutex, NULL);
    pthread_cond_init(&places.freed, NULL);
    places.taken = depth > 0 ? 1 : 0; // of the threads only the one that forked is left
}
