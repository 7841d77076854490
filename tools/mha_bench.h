/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA_BENCH_H
#define MHA_BENCH_H

#include "mha_shape.h"
#include "mha_tool.h"

#include <stdbool.h>

enum mha__bench_what {
    MHA__BENCH_CORE,  /* attention over [B,T,H,D], all projections off */
    MHA__BENCH_LAYER, /* with all four projections; key and value are the query where T = S */
    MHA__BENCH_START  /* the core of the smallest calls: what it costs to begin one */
};

enum mha__bench_form { MHA__BENCH_TEXT, MHA__BENCH_JSON, MHA__BENCH_CSV };

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
    enum mha__bench_form form;
    bool head_major;  /* keys and values [B,G,S,D] instead of [B,S,G,D] */
    bool profile;     /* afterwards, runs that tell where the time goes */
    int64_t curve[3]; /* T from, to, step; step 0: no curve */
    bool brief;       /* one of many: short timings */
};

/* Where the time of a forward goes: seconds a run by MHA_TIME_*, summed over lanes. */
struct mha__bench_profile {
    int64_t runs; /* 0: not asked for */
    double seconds[MHA_TIME_IDLE + 1];
    double total;
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
    double
        read; /* seconds of the shortest plain read of K and V by as many threads; 0: not sampled */
    struct mha__bench_profile profile;
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

/* Bytes of what a forward must read or write at least once: inputs, output, parameters. */
double mha__bench_tensor_bytes(const struct mha__shape *shape, enum mha__bench_what what);

/* Bytes of K and V: 4 B G S (D + Dv). */
double mha__bench_kv_bytes(const struct mha__shape *shape);

/* One token against S keys is bound by reading them: then a plain read is sampled too. */
static inline bool mha__bench_reads(const struct mha__bench_options *options)
{
    return options->what == MHA__BENCH_CORE && options->shape.T == 1 && options->curve[2] == 0;
}

/* Makes the objects and the tensors, warms up, measures; on this context, or on contexts of its own
 * where it is NULL. Returns an exit status. */
int mha__bench_run(const struct mha__bench_options *options,
                   mha_context *context,
                   struct mha__bench_result *result);

/* Many shapes in one run: --curve, --what start. Measures and reports. Returns an exit status. */
int mha__bench_series(const struct mha__bench_options *options);

/* Prints the result in the form asked for. Returns an exit status. */
int mha__bench_report(const struct mha__bench_options *options,
                      const struct mha__bench_result *result);

/* ---- mha_bench_facts.c ---- */

/* What follows from times and operations. */
struct mha__bench_figures {
    double gflops, share;
    double ratio;      /* of the shortest times of the two that alternate */
    double work_share; /* of their operations */
    double kv_rate;    /* GB/s of K and V */
    double read_rate;  /* of the plain read */
};

void mha__bench_figures_of(const struct mha__bench_options *options,
                           const struct mha__bench_result *result,
                           struct mha__bench_figures *figures);

const char *mha__bench_what_name(enum mha__bench_what what);
const char *mha__bench_engine_name(int32_t engine);
const char *mha__bench_part_name(int32_t part); /* of MHA_TIME_* */

/* "AMD EPYC 7763", or the machine's kind where /proc/cpuinfo has no name for it. */
void mha__bench_cpu(char *text, size_t cap);

/* All of it as one flat object; NULL when memory is short. */
json_t *mha__bench_facts(const struct mha__bench_options *options,
                         const struct mha__bench_result *result);

/* The values of a flat object as a line of CSV, under a line of its keys where `header` says so.
 * Releases the object. Returns an exit status. */
int mha__bench_print_csv(json_t *facts, bool header);

#endif
