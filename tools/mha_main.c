/* SPDX-License-Identifier: Apache-2.0 */
#include "mha_tool.h"

#include <string.h>

struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
};

static const struct command commands[] = {
    {"info", mha__info_main, "version, kernels, BLAS, threads, and advice for this machine"},
    {"selftest", mha__selftest_main, "check the BLAS and the kernels on this machine"},
    {"inspect", mha__inspect_main, "run a pre-trained layer and show what its heads look at"},
    {"bench", mha__bench_main, "time one shape and compare with the peak of the machine"},
};

static const size_t command_count = sizeof commands / sizeof commands[0];

static void print_help(FILE *stream)
{
    fputs("Usage: mha COMMAND [OPTION]...\n"
          "Multi-head attention on CPUs: look at heads, measure, check.\n\n"
          "Commands:\n",
          stream);
    for (size_t i = 0; i < command_count; i++) {
        fprintf(stream, "  %-9s %s\n", commands[i].name, commands[i].summary);
    }
    fputs(
        "\n"
        "  mha COMMAND --help   the options of a command\n"
        "  mha --version        the version of the library in use\n\n"
        "Exit status: 0 success, 1 a failure or a result that is not as expected, 2 wrong usage.\n",
        stream);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        print_help(stderr);
        return MHA_TOOL_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        print_help(stdout);
        return MHA_TOOL_OK;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("mha %s\n", mha_version_string());
        return MHA_TOOL_OK;
    }
    for (size_t i = 0; i < command_count; i++) {
        if (strcmp(argv[1], commands[i].name) == 0) {
            return commands[i].run(argc - 1, argv + 1);
        }
    }
    fprintf(stderr, "mha: there is no command '%s'\nTry 'mha --help'.\n", argv[1]);
    return MHA_TOOL_USAGE;
}
