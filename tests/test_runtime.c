/* SPDX-License-Identifier: Apache-2.0 */
#include "support/brutal.h"

#include <platform/cpu.h>
#include <stdlib.h>
#include <string.h>

static void runtime_kernels_is_a_set_that_this_cpu_has(void **state)
{
    (void)state;
    const struct mha__cpu *cpu = mha__cpu_features();
    const char *name = mha_runtime_kernels();
    assert_ptr_equal(name, mha_runtime_kernels()); /* static, chosen once */
    assert_true(strcmp(name, "ref") == 0 || (strcmp(name, "avx2") == 0 && cpu->avx2) ||
                (strcmp(name, "avx512") == 0 && cpu->avx512) ||
                (strcmp(name, "neon") == 0 && cpu->neon));
    const char *forced = getenv("MHA_KERNELS");
    if (forced && strcmp(forced, "ref") == 0) {
        assert_string_equal(name, "ref");
    }
}

typedef int64_t text_function(char *, int64_t);

static void runtime_texts_are_copied_cut_and_terminated(void **state)
{
    (void)state;
    text_function *const texts[] = {mha_runtime_blas, mha_runtime_blas_core, mha_runtime_advice};
    for (int i = 0; i < 3; ++i) {
        char whole[2048], part[8] = "#######";
        int64_t length = texts[i](NULL, 0);
        assert_in_range(length, 0, 2000);
        assert_int_equal(texts[i](whole, sizeof whole), length);
        assert_int_equal(strlen(whole), length);
        assert_int_equal(texts[i](part, 4), length);
        assert_true(strlen(part) <= 3);
        assert_memory_equal(part, whole, strlen(part));
        assert_int_equal(part[4], '#');
    }
}

static void runtime_blas_has_a_name(void **state)
{
    (void)state;
    assert_true(mha_runtime_blas(NULL, 0) > 0);
}

static void runtime_threads_is_at_least_1_and_at_most_64(void **state)
{
    (void)state;
    assert_in_range(mha_runtime_threads(), 1, 64);
}

static void runtime_selftest_of_this_machine_passes(void **state)
{
    (void)state;
    SUCCEEDS(mha_runtime_selftest(err));
    SUCCEEDS(mha_runtime_selftest(err));
    assert_int_equal(mha_runtime_selftest(NULL), MHA_OK);
}

static void runtime_selftest_without_memory_says_so_and_leaks_nothing(void **state)
{
    (void)state;
    /* what a first call keeps for good (pool, hidden contexts) is there already */
    assert_int_equal(mha_runtime_selftest(NULL), MHA_OK);
    BRUTAL(mha_runtime_selftest(NULL), {});
    assert_true(brutal_failures >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runtime_kernels_is_a_set_that_this_cpu_has),
        cmocka_unit_test(runtime_texts_are_copied_cut_and_terminated),
        cmocka_unit_test(runtime_blas_has_a_name),
        cmocka_unit_test(runtime_threads_is_at_least_1_and_at_most_64),
        cmocka_unit_test(runtime_selftest_of_this_machine_passes),
        cmocka_unit_test(runtime_selftest_without_memory_says_so_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
