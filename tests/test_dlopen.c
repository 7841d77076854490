/* SPDX-License-Identifier: Apache-2.0 */
/* The shared library loaded, used in a new thread and let go, again and again. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

/* cmocka.h needs the others before it */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

enum { ROUNDS = 100 };

typedef int32_t attention_function(int64_t B,
                                   int64_t T,
                                   int64_t S,
                                   int64_t H,
                                   int64_t G,
                                   int64_t D,
                                   const float *q,
                                   const float *k,
                                   const float *v,
                                   int32_t causal,
                                   float *out,
                                   void *err);

/* NULL = all right; else what was not. */
static void *load_use_and_let_go(void *round)
{
    enum { T = 70 };
    static const char *const cannot_load = "dlopen", *const no_symbol = "dlsym",
                             *const failed = "the call", *const wrong = "the result",
                             *const cannot_close = "dlclose";
    void *library = dlopen(MHA_SHARED_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        print_error("%s\n", dlerror());
        return (void *)(uintptr_t)cannot_load;
    }
    void *symbol = dlsym(library, "mha_attention");
    attention_function *attention = NULL;
    memcpy(&attention, &symbol, sizeof attention);
    if (!attention) {
        return (void *)(uintptr_t)no_symbol;
    }
    float q[T] = {0}, v[T], out[T];
    for (int j = 0; j < T; ++j) {
        v[j] = (float)(j + *(const int *)round);
    }
    if (attention(1, T, T, 1, 1, 1, q, q, v, 1, out, NULL) != 0) {
        return (void *)(uintptr_t)failed;
    }
    for (int i = 0; i < T; ++i) {
        if (!(fabs((double)out[i] - (double)*(const int *)round - i / 2.0) < 1e-3)) {
            return (void *)(uintptr_t)wrong;
        }
    }
    return dlclose(library) == 0 ? NULL : (void *)(uintptr_t)cannot_close;
}

static void B09_library_may_be_loaded_and_let_go_in_a_hundred_threads(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; ++round) {
        pthread_t thread;
        void *what = NULL;
        assert_int_equal(pthread_create(&thread, NULL, load_use_and_let_go, &round), 0);
        assert_int_equal(pthread_join(thread, &what), 0);
        if (what) {
            print_error("round %d: %s\n", round, (const char *)what);
        }
        assert_null(what);
    }
}

static void B09_library_stays_mapped_after_the_last_dlclose(void **state)
{
    (void)state;
    /* it has threads and fork handlers: -z nodelete; RTLD_NOLOAD finds it without loading it */
    void *library = dlopen(MHA_SHARED_LIBRARY, RTLD_NOW | RTLD_NOLOAD);
    assert_non_null(library);
    dlclose(library);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(B09_library_may_be_loaded_and_let_go_in_a_hundred_threads),
        cmocka_unit_test(B09_library_stays_mapped_after_the_last_dlclose),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
