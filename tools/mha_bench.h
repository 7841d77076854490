/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA_BENCH_H
#define MHA_BENCH_H

#include "mha_shape.h"
#include "mha_tool.h"

#include <stdbool.h>

enum mha__bench_what {
    MHA__BENCH_CORE, /* attention over [B,T,H,D], all projections off */
    MHA__BENCH_LAYER /* with all four projections; key and value are the query where T = S */
};

/* One option whose cost is measured against the same shape without it. */
enum mha__bench_with {
    MHA__BENCH_WITH_NONE,
    MHA__BENCH_WITH_ALL_TRUE_MASK, /* a boolean mask [1,1,T,S] that hides nothing, made before */
    MHA__BENCH_WITH_BIAS,          /* one bias [1,1,T,S] */
    MHA__BENCH_WITH_WEIGHTS,       /* all weights [B,H,T,S] returned */
    MHA__BENCH_WITH_ENTROPY,       /* entropy and maximum of each row */
    MHA__BENCH_WITH_MASS,          /* the sum of the weights of each key */
    MHA__BENCH_WITH_HALF_KEYS,     /* key lengths of S / 2 */
    MHA__BENCH_WITH_CAUSAL,
    MHA__BENCH_WITH_WINDOW /* (255, 0) */
};

struct mha__bench_options {
    const char *shape_text;
    struct mha__shape shape;
    enum mha__bench_what what;
    enum mha__bench_with with;
    const char *with_text;    /* NULL: no such comparison */
    const char *against_text; /* NULL: no such comparison */
    struct mha__shape against;
    int32_t threads;     /* 0: the library's default */
    int32_t engine;      /* MHA_ENGINE_*, or -1: the library's default */
    int64_t repetitions; /* 0: at least 5, and half a second */
    bool json;
};

/* What was measured of one of the two that alternate, or of the only one. */
struct mha__bench_side {
    int32_t threads;
    int64_t repetitions;
    double seconds_min, seconds_median; /* of one forward */
    double flops;                       /* of one forward, as mha__bench_flops */
    int64_t workspace_bytes;
    int64_t packed_bytes;
    double visible_share;  /* of the T x S pairs */
    const char *algorithm; /* static text */
};

struct mha__bench_result {
    int32_t engine;
    double peak; /* GFLOP/s of one core, the best sample beside the timings */
    struct mha__bench_side side;
    /* The same shape plain, or the other shape; all 0 without a comparison. */
    struct mha__bench_side reference;
};

static inline bool mha__bench_compares(const struct mha__bench_options *options)
{
    return options->with != MHA__BENCH_WITH_NONE || options->against_text != NULL;
}

/*
 * Useful operations of one forward: 2 B H T S (D + Dv) for the core, times the visible share (one
 * half for causal with T = S, as is the custom), and 2 in out a row for each projection of a layer.
 */
double mha__bench_flops(const struct mha__shape *shape, enum mha__bench_what what, double visible);

/* Makes the objects and the tensors, warms up, measures. Returns an exit status. */
int mha__bench_run(const struct mha__bench_options *options, struct mha__bench_result *result);

/* Prints the result, as text or as one JSON object. Returns an exit status. */
int mha__bench_report(const struct mha__bench_options *options,
                      const struct mha__bench_result *result);

#endif
