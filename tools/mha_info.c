/* SPDX-License-Identifier: Apache-2.0 */
#include "mha_tool.h"

#include <getopt.h>
#include <stdbool.h>
#include <stdlib.h>

static const char info_help[] =
    "Usage: mha info [--json]\n"
    "What the library found on this machine: version, kernels, BLAS, threads, advice.\n\n"
    "  --json   one JSON object\n"
    "  --help   this text\n";

static const char selftest_help[] = "Usage: mha selftest\n"
                                    "Products of known answer through the BLAS, exp over its "
                                    "range, one attention against a float64\n"
                                    "computation. Exit status 1 when a result is wrong.\n";

struct facts {
    char *build;
    char *blas;
    char *core;
    char *advice;
};

static int print_text(const struct facts *facts)
{
    printf("libmha   %s\n", mha_version_string());
    printf("kernels  %s\n", mha_runtime_kernels());
    printf("BLAS     %s\n", facts->blas);
    printf("core     %s\n", facts->core[0] != '\0' ? facts->core : "not told by this BLAS");
    printf("threads  %d\n", (int)mha_runtime_threads());
    printf("build    %s\n", facts->build);
    printf("advice   ");
    for (const char *c = facts->advice; *c != '\0'; c++) {
        putchar(*c);
        if (*c == '\n' && c[1] != '\0') {
            printf("         ");
        }
    }
    puts(facts->advice[0] != '\0' ? "" : "none: the settings are good");
    return fflush(stdout) == 0 ? MHA_TOOL_OK : MHA_TOOL_FAILED;
}

static json_t *advice_lines(const char *advice)
{
    json_t *lines = json_array();
    while (*advice != '\0') {
        const char *end = advice;
        while (*end != '\0' && *end != '\n') {
            end++;
        }
        json_array_append_new(lines, json_stringn(advice, (size_t)(end - advice)));
        advice = *end == '\n' ? end + 1 : end;
    }
    return lines;
}

int mha__info_main(int argc, char **argv)
{
    static const struct option options[] = {
        {"json", no_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    bool json = false;
    for (int c; (c = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
        switch (c) {
        case 'j':
            json = true;
            break;
        case 'h':
            fputs(info_help, stdout);
            return MHA_TOOL_OK;
        default:
            return mha__tool_usage("info", "unknown option");
        }
    }
    if (optind < argc) {
        return mha__tool_usage("info", "unexpected argument '%s'", argv[optind]);
    }
    struct facts facts = {
        .build = mha__tool_text(mha_version_build_info),
        .blas = mha__tool_text(mha_runtime_blas),
        .core = mha__tool_text(mha_runtime_blas_core),
        .advice = mha__tool_text(mha_runtime_advice),
    };
    int status;
    if (facts.build == NULL || facts.blas == NULL || facts.core == NULL || facts.advice == NULL) {
        status = mha__tool_fail("info", "out of memory");
    } else if (json) {
        status = mha__tool_print_json(
            "info",
            json_pack("{s:s, s:s, s:s, s:s, s:i, s:s, s:o}", "version", mha_version_string(),
                      "kernels", mha_runtime_kernels(), "blas", facts.blas, "blas_core", facts.core,
                      "threads", (int)mha_runtime_threads(), "build", facts.build, "advice",
                      advice_lines(facts.advice)));
    } else {
        status = print_text(&facts);
    }
    free(facts.build);
    free(facts.blas);
    free(facts.core);
    free(facts.advice);
    return status;
}

int mha__selftest_main(int argc, char **argv)
{
    static const struct option options[] = {
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    for (int c; (c = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
        switch (c) {
        case 'h':
            fputs(selftest_help, stdout);
            return MHA_TOOL_OK;
        default:
            return mha__tool_usage("selftest", "unknown option");
        }
    }
    if (optind < argc) {
        return mha__tool_usage("selftest", "unexpected argument '%s'", argv[optind]);
    }
    mha_error *err = mha_error_create();
    const int32_t result = mha_runtime_selftest(err);
    int status = MHA_TOOL_OK;
    if (result == MHA_OK) {
        puts("selftest: BLAS and kernels compute right results here");
    } else {
        status = mha__tool_error("selftest", result, err);
    }
    mha_error_destroy(err);
    return status;
}
