/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_CASE_FILE_H
#define TESTS_CASE_FILE_H

/*
 * tests/data/cases.json: small problems with known answers. Arrays are flat and row-major; "nan",
 * "inf" and "-inf" stand for those numbers.
 */
#include "trial.h"

#include <jansson.h>

/* Every entry as a JSON array; NULL with a sentence on stderr. Free with json_decref. */
json_t *case_file_load(const char *path);

/* The problem of an entry, ready to run, with all kinds of weights and the log-sum-exp. */
void case_file_trial(const json_t *entry, trial *p);

/* Numbers of an array as double (expected) and their count. -1: the entry has no such field. */
int64_t case_file_numbers(const json_t *entry, const char *field, double **numbers);
double case_file_tolerance(const json_t *entry, const char *of);

#endif
