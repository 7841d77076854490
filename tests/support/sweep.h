/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SWEEP_H
#define TESTS_SWEEP_H

/*
 * Combinations of all options of a forward. A case picks a level of each factor; every pair of
 * levels of two factors occurs in at least one case.
 */
#include "trial.h"

#include <stddef.h>

typedef enum sweep_factor {
    SWEEP_B, /* the last level is one packed batch row of several sequences */
    SWEEP_T,
    SWEEP_S,
    SWEEP_HEADS,
    SWEEP_D,
    SWEEP_DV,
    SWEEP_PROJECTIONS,
    SWEEP_SCALE,
    SWEEP_SOFTCAP,
    SWEEP_ROTARY,
    SWEEP_SINKS,
    SWEEP_GATES,
    SWEEP_EXTRA_KEYS,
    SWEEP_CAUSAL,
    SWEEP_ALIGNMENT,
    SWEEP_WINDOW,
    SWEEP_KEY_LENGTHS,
    SWEEP_QUERY_LENGTHS,
    SWEEP_RANGES,
    SWEEP_SEGMENTS,
    SWEEP_KEY_MASK,
    SWEEP_PAIR_MASK,
    SWEEP_FULL_MASK,
    SWEEP_ALIBI,
    SWEEP_BIAS_SHAPE,
    SWEEP_BIAS_CELLS,
    SWEEP_BIAS_LAYOUT,
    SWEEP_CALLBACK,
    SWEEP_DROPOUT,
    SWEEP_INPUT_LAYOUT,
    SWEEP_OUTPUTS,
    SWEEP_WEIGHTS,
    SWEEP_STAGES,
    SWEEP_STATISTICS,
    SWEEP_TOP_KEYS,
    SWEEP_OUTPUT_LAYOUT,
    SWEEP_NUMBERS,
    SWEEP_THREADS,
    SWEEP_FACTORS
} sweep_factor;

typedef struct sweep_case {
    int level[SWEEP_FACTORS];
    uint64_t seed; /* of the numbers in it */
} sweep_case;

/*
 * Fills cases until every pair that fits the budget (multiplications and additions a case) has
 * occurred and there are at least `least`; returns how many, never more than `most`. missed counts
 * the pairs left out.
 */
int sweep_make(sweep_case *cases, int least, int most, int64_t budget, uint64_t seed, int *missed);
/* The same case for one to some tens of queries, without rotary positions, callbacks and what is made of
 * weights or scores: then keys and values are read in place. */
void sweep_make_few(sweep_case *c);
int64_t sweep_cost(const sweep_case *c);
/* The value of a level of the factors that are sizes, else the level. */
int64_t sweep_size(sweep_factor factor, int level);
/* The trial of a case, filled; output tensors start as `output_fill`. */
void sweep_trial(const sweep_case *c, trial *p, float output_fill);
int32_t sweep_threads(const sweep_case *c);
/*
 * What a forward of it returns: MHA_OK, or MHA_ERROR_ALIGNMENT where none was said and one is
 * needed.
 */
int32_t sweep_status(const trial *p);
void sweep_describe(const sweep_case *c, char *text, size_t cap);

#endif
