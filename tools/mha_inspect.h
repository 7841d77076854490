/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA_INSPECT_H
#define MHA_INSPECT_H

#include "mha_heads.h"
#include "mha_tokens.h"
#include "mha_tool.h"

#include <stdbool.h>

/* The command line of `mha inspect`. */
struct mha__inspect_options {
    const char *weights, *scheme, *prefix, *input, *tokens; /* needed */
    const char *html, *expect, *output;                     /* NULL: not asked for */
    int64_t heads;
    int64_t kv_heads; /* 0: as heads */
    double tolerance; /* a miss is |got - expected| > tolerance max(1, |expected|) */
    int32_t threads;  /* 0: the library's default */
    bool causal;
    bool json;
};

/* One layer on one sentence: E features in and Eo out per token. */
struct mha__inspect_result {
    struct mha__tokens tokens;      /* T */
    int64_t heads;                  /* H */
    int64_t width;                  /* Eo */
    int64_t rank;                   /* of input and output: 2 or 3 (batch of one) */
    float *out;                     /* [T, Eo] */
    float *weights;                 /* [H, T, T] */
    struct mha__heads_stats *stats; /* [H] */
    bool compared;
    bool matched;
    double largest_error;
    int64_t error_at; /* index into out */
};

/* Loads, computes, measures, compares and writes --output. Returns an exit status other than 0,
 * with its sentence on stderr, when something is wrong; a miss of --expect is no failure here. */
int mha__inspect_run(const struct mha__inspect_options *options,
                     struct mha__inspect_result *result);

void mha__inspect_free(struct mha__inspect_result *result);

/* A table, a row per head, and the verdict on --expect. */
int mha__inspect_print(const struct mha__inspect_options *options,
                       const struct mha__inspect_result *result);

/* The same as an object; with_maps adds every weight in units of 1/10000. NULL when memory is
 * short. */
json_t *mha__inspect_json(const struct mha__inspect_options *options,
                          const struct mha__inspect_result *result,
                          bool with_maps);

/* One HTML file that needs nothing else. */
int mha__page_write(const struct mha__inspect_options *options,
                    const struct mha__inspect_result *result);

#endif
