/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA_TESTS_TOOL_RUN_H
#define MHA_TESTS_TOOL_RUN_H

#include "support/expect.h"

#include <jansson.h>

/* A directory of this process for files, made at first use and removed at exit. */
const char *tool_run_directory(void);

/* "directory/name"; static, up to 16 names. */
const char *tool_run_file(const char *name);

/* Runs `mha` with the arguments, up to NULL. Returns its exit status (-1: it did not exit by
 * itself). What it printed can be read until the next run. */
int tool_run(const char *first, ...);
const char *tool_run_stdout(void);
const char *tool_run_stderr(void);

/* The standard output as JSON, to be released. Fails the test where it is none. */
json_t *tool_run_json(void);

/* A whole file, to be freed. Fails the test where it cannot be read. */
char *tool_run_read(const char *path);

void tool_run_write(const char *path, const char *text, size_t size);

#endif
