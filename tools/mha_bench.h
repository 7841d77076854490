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

struct mha__bench_options {
    const char *shape_text;
    struct mha__shape shape;
    enum mha__bench_what what;
    int32_t threads;     /* 0: the library's default */
    int32_t engine;      /* MHA_ENGINE_* */
    int64_t repetitions; /* 0: at least 5, and half a second */
    bool json;
};

struct mha__bench_result {
    int64_t repetitions;
    int32_t threads;
    double seconds_min, seconds_median; /* of one forward */
    double flops;                       /* of one forward, as mha__bench_flops */
    double peak; /* GFLOP/s of one core, the best sample beside the timings */
    int64_t workspace_bytes;
    int64_t packed_bytes;
    double visible_share;  /* of the T x S pairs */
    const char *algorithm; /* static text */
};

/*
 * Useful operations of one forward: 2 B H T S (D + Dv) for the core, times the visible share (one
 * half for causal with T = S, as is the custom), and 2 in out a row for each projection of a layer.
 */
double mha__bench_flops(const struct mha__shape *shape, enum mha__bench_what what, double visible);

/* Makes the objects and the tensors, warms up, measures. Returns an exit status. */
int mha__bench_run(const struct mha__bench_options *options, struct mha__bench_result *result);

#endif
