/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA_HEADS_H
#define MHA_HEADS_H

#include <stddef.h>
#include <stdint.h>

/*
 * What one head does with T tokens, from its weights p [T,T] (a row per query, rows sum to 1).
 * Every number is a mean over the queries that have such a key: previous over i >= 1, next over i <
 * T - 1.
 */
struct mha__heads_stats {
    double entropy;   /* -sum_j p ln p, nats */
    double effective; /* exp(entropy): as many tokens would share evenly with that entropy */
    double distance;  /* sum_j p |i - j|, tokens */
    double self, previous, next, first, last;
    double near;        /* sum of p over |i - j| <= 2 */
    double token;       /* the largest mean share of one key between the first and the last */
    int64_t token_key;  /* that key; -1 where T < 3 */
    double link;        /* the largest single p with |i - j| >= 2, first and last left out */
    int64_t link_query; /* who looks; -1 where T < 5 */
    int64_t link_key;   /* at whom */
};

void mha__heads_measure(const float *weights, int64_t tokens, struct mha__heads_stats *out);

#endif
