/* SPDX-License-Identifier: Apache-2.0 */
#include "support/expect.h"

#include <stdio.h>
#include <string.h>

static void version_functions_equal_the_macros(void **state)
{
    (void)state;
    char expected[32];
    snprintf(expected, sizeof expected, "%d.%d.%d", MHA_VERSION_MAJOR, MHA_VERSION_MINOR,
             MHA_VERSION_PATCH);
    assert_string_equal(MHA_VERSION_STRING, expected);
    assert_string_equal(mha_version_string(), expected);
    assert_int_equal(mha_version_number(), MHA_VERSION_NUMBER);
    assert_int_equal(mha_version_number(),
                     MHA_VERSION_MAJOR * 10000 + MHA_VERSION_MINOR * 100 + MHA_VERSION_PATCH);
}

static void version_build_info_is_one_line_that_names_version_kernels_and_blas(void **state)
{
    (void)state;
    char info[2048], core[256];
    int64_t length = mha_version_build_info(NULL, 0);
    assert_in_range(length, 20, 2000);
    assert_int_equal(mha_version_build_info(info, sizeof info), length);
    assert_int_equal(strlen(info), length);
    assert_null(strchr(info, '\n'));
    assert_non_null(strstr(info, mha_version_string()));
    assert_non_null(strstr(info, mha_runtime_kernels()));
    assert_true(mha_runtime_blas_core(core, sizeof core) < (int64_t)sizeof core);
    assert_non_null(strstr(info, core));
}

static void version_build_info_into_a_short_buffer_is_cut_and_terminated(void **state)
{
    (void)state;
    char whole[2048], part[9] = "########";
    int64_t length = mha_version_build_info(whole, sizeof whole);
    assert_int_equal(mha_version_build_info(part, 6), length);
    assert_int_equal(strlen(part), 5);
    assert_memory_equal(part, whole, 5);
    assert_int_equal(part[6], '#');
    assert_int_equal(mha_version_build_info(part, 0), length);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(version_functions_equal_the_macros),
        cmocka_unit_test(version_build_info_is_one_line_that_names_version_kernels_and_blas),
        cmocka_unit_test(version_build_info_into_a_short_buffer_is_cut_and_terminated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
