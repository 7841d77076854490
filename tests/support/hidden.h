/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_HIDDEN_H
#define TESTS_HIDDEN_H

/* The memory of a trial that no result may depend on, and the memory that no call may write to. */
#include "trial.h"

/*
 * Writes NaN, infinities and huge numbers over every number of the inputs that no visible (query, key)
 * pair reads: keys and values hidden for all queries of their heads, values that are dropped everywhere or
 * behind gates of 0, queries that see nothing or are padding, cells of additive biases that the mask hides,
 * gaps between strides; and turns the dropout mask there. Returns how many.
 */
int64_t hidden_poison(trial *p);

/*
 * Whether every number of the output blocks that is no element of its tensor still is `fill`; without
 * queries, every number.
 */
int hidden_gaps_untouched(const trial *p, float fill);

#endif
