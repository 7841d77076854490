/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA_TOOL_H
#define MHA_TOOL_H

/* What the subcommands of `mha` share. Each is a function over its own argv (argv[0] = its name)
 * that returns the exit status of the process. */
#include <mha/mha.h>

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

#define MHA_TOOL_OK     0
#define MHA_TOOL_FAILED 1 /* something went wrong, or an answer is not the expected one */
#define MHA_TOOL_USAGE  2 /* the command line makes no sense */

int mha__info_main(int argc, char **argv);
int mha__selftest_main(int argc, char **argv);
int mha__inspect_main(int argc, char **argv);
int mha__bench_main(int argc, char **argv);

/* "mha COMMAND: sentence" on stderr; both return the status they stand for. */
int mha__tool_fail(const char *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
int mha__tool_usage(const char *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* mha__tool_fail with the sentence of err, or the status' own text where there is none. */
int mha__tool_error(const char *command, int32_t status, const mha_error *err);

/* The text behind a (buf, cap) getter of the library, to be freed; NULL when memory is short. */
char *mha__tool_text(int64_t (*get)(char *buf, int64_t cap));

/* Prints object, indented, and releases it. NULL, or a stdout that takes nothing, is a failure. */
int mha__tool_print_json(const char *command, json_t *object);

#endif
