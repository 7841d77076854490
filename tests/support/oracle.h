/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_ORACLE_H
#define TESTS_ORACLE_H

/*
 * Attention in float64, written in the plainest way, and how far float32 may be from it.
 *
 * Bound of the attention, elementwise (eps = 2^-24, c = 8):
 *   |error| <= c eps (A + log2 S + 4) max|v| + FLT_MIN
 *   A = max over allowed j of |scale| sum_d |q_d k_d|
 * The weights have the same bound with max|v| = 1, the log-sum-exp too. A projection of n features
 * adds the classic (n + 2) eps (sum |w x| + |b|) of any order of summation; what it does to a score
 * s moves every weight by a factor of at most exp(2 |ds|).
 */
#include "trial.h"

typedef struct oracle {
    double *output, *output_bound;   /* [B, T, Eo] */
    double *weights, *weights_bound; /* [B, H, T, S] */
    double *lse, *lse_bound;         /* [B, H, T] */
    double *A;                       /* [B, H, T], 0 in an empty row */
} oracle;

void oracle_run(const trial *p, oracle *o);
void oracle_end(oracle *o);

/*
 * The largest |got - expected| / bound over every output that p has, infinite where a NaN came out
 * or where something that must be exact is not: weights of hidden keys, empty and padded rows.
 * Prints the worst element when the result passes 1.
 */
double oracle_compare(const trial *p, const oracle *o);

#endif
