/* SPDX-License-Identifier: Apache-2.0 */
#include "tool_run.h"

#include <mha/mha.h>

#include <stdlib.h>
#include <string.h>

static void command_version_is_the_library_version(void **state)
{
    (void)state;
    assert_int_equal(tool_run("--version", NULL), 0);
    assert_string_equal(tool_run_stdout(), "mha " MHA_VERSION_STRING "\n");
}

static void command_help_names_every_subcommand(void **state)
{
    (void)state;
    static const char *const names[] = {"info", "selftest", "inspect", "bench"};
    assert_int_equal(tool_run("--help", NULL), 0);
    char *help = strdup(tool_run_stdout());
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        assert_non_null(strstr(help, names[i]));
        assert_int_equal(tool_run(names[i], "--help", NULL), 0);
        assert_non_null(strstr(tool_run_stdout(), "Usage: mha "));
        assert_non_null(strstr(tool_run_stdout(), names[i]));
        assert_string_equal(tool_run_stderr(), "");
    }
    free(help);
}

static void command_wrong_usage_is_status_2_with_a_sentence(void **state)
{
    (void)state;
    assert_int_equal(tool_run(NULL), 2);
    assert_int_equal(tool_run("frobnicate", NULL), 2);
    assert_non_null(strstr(tool_run_stderr(), "frobnicate"));
    assert_int_equal(tool_run("info", "--nonsense", NULL), 2);
    assert_int_equal(tool_run("info", "more", NULL), 2);
    assert_int_equal(tool_run("selftest", "more", NULL), 2);
    assert_string_equal(tool_run_stdout(), "");
    assert_non_null(strstr(tool_run_stderr(), "--help"));
}

static void info_tells_what_the_library_tells(void **state)
{
    (void)state;
    assert_int_equal(tool_run("info", "--json", NULL), 0);
    json_t *info = tool_run_json();
    assert_string_equal(json_string_value(json_object_get(info, "version")), MHA_VERSION_STRING);
    assert_string_equal(json_string_value(json_object_get(info, "kernels")), mha_runtime_kernels());
    assert_int_equal(json_integer_value(json_object_get(info, "threads")), mha_runtime_threads());
    char blas[512];
    mha_runtime_blas(blas, sizeof blas);
    assert_string_equal(json_string_value(json_object_get(info, "blas")), blas);
    assert_true(json_is_string(json_object_get(info, "blas_core")));
    assert_true(json_is_array(json_object_get(info, "advice")));
    json_decref(info);

    assert_int_equal(tool_run("info", NULL), 0);
    assert_non_null(strstr(tool_run_stdout(), mha_runtime_kernels()));
    assert_non_null(strstr(tool_run_stdout(), blas));
}

static void selftest_passes_here(void **state)
{
    (void)state;
    const int status = tool_run("selftest", NULL);
    assert_string_equal(tool_run_stderr(), "");
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(command_version_is_the_library_version),
        cmocka_unit_test(command_help_names_every_subcommand),
        cmocka_unit_test(command_wrong_usage_is_status_2_with_a_sentence),
        cmocka_unit_test(info_tells_what_the_library_tells),
        cmocka_unit_test(selftest_passes_here),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
