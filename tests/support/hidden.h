/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_HIDDEN_H
#define TESTS_HIDDEN_H

/* The memory of a trial that no result may depend on, and the memory that no call may write to. */
#include "trial.h"

/*
 * Writes NaN, infinities and huge numbers over every number of the inputs that no visible (query,
 * key) pair reads: keys and values hidden for all queries of their heads, queries that see nothing
 * or are padding, gaps between strides. Returns how many.
 */
int64_t hidden_poison(trial *p);

/* Whether every number of the output blocks that is no element of its tensor still is `fill`. */
int hidden_gaps_untouched(const trial *p, float fill);

#endif
