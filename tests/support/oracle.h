/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_ORACLE_H
#define TESTS_ORACLE_H

/*
 * Attention in float64, written in the plainest way and apart from the library's own reference, and how
 * far float32 may be from it. eps = 2^-24, c = 8.
 *
 * Bound of the attention, elementwise:
 *   |error| <= u max|v| + FLT_MIN      u = c eps (A + log2 S' + 4)
 *   A = max over allowed j of |scale| sum_d |q_d k_d| + sum |biases| + slope |i + off - j| + |callback's score|
 *
 * - Keys whose weight is below e^-110 whatever the errors do not count for A: beside an ordinary key, one
 *   at -1e9 is 0. A key whose sum with a bias is the same float32 for every score within its error and in
 *   any order of the terms counts 0: it is exact.
 * - What a projection of n features or a rotation does to a score, ds, moves every weight by a factor of at
 *   most exp(2 |ds|). A projection errs by the classic (n + 2) eps (sum |w x| + |b|) of any order of
 *   summation, a rotation by 4 eps (|a| + |b|) of its pair. A softcap's slope is at most 1.
 * - Weights and maximum: the bound with max|v| = 1. Log-sum-exp: the same and 2 eps |lse|. Dropped
 *   weights: twice that over 1 - p. Mean and masses: the sum of the weights' bounds and n eps of the result for
 *   n terms.
 * - Entropy: dH = -sum (ln p + 1) dp with |dp| <= u p gives u (H + 1); twice that and a unit for the sums.
 * - Raw scores: c eps (|scale| sum |q k| + 4) + ds, for each stage c eps of the terms that it adds.
 * - Gates and 1 / (1 - p) multiply the bound of their head.
 */
#include "trial.h"

typedef struct oracle {
    double *output, *output_bound;                       /* [B, T, Eo] */
    double *weights, *weights_bound;                     /* [B, H, T, S'] */
    double *lse, *lse_bound;                             /* [B, H, T] */
    double *A;                                           /* [B, H, T], 0 in an empty row */
    double *u;                                           /* [B, H, T], ds included */
    double *value[TRIAL_RESULTS], *bound[TRIAL_RESULTS]; /* by MHA_TENSOR_*, see oracle_value */
} oracle;

void oracle_run(const trial *p, oracle *o);
void oracle_end(oracle *o);
/* Expected numbers and bounds of an output, MHA_TENSOR_OUTPUT and on, in the order of its elements. */
const double *oracle_value(const oracle *o, int32_t id);
const double *oracle_bound(const oracle *o, int32_t id);

/*
 * The largest |got - oracle| / bound over the outputs that were asked for; what must be exact (zeros,
 * infinities) counts as infinite if it is not. Says on stderr where it is worst when above 1.
 */
double oracle_compare(const trial *p, const oracle *o);

/*
 * The same for two runs of one trial: `expected` is asked for every output that p is. Raw scores that no
 * rule defines are left out in both: those of padded queries under rotary positions.
 */
double oracle_compare_runs(const trial *p, const trial *expected, const oracle *o);

/* Top keys are visible, different, falling, no larger weight is missing, and their weights are right. */
int oracle_top_is_right(const trial *p, const oracle *o);

#endif
