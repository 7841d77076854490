/* SPDX-License-Identifier: Apache-2.0 */
#include "mha_bench.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
    "Usage: mha bench SHAPE [OPTION]...\n"
    "       mha bench --what start [OPTION]...\n"
    "Times one forward and compares it with the FMA peak of this machine, sampled beside the "
    "timings.\n\n"
    "  SHAPE             b1_t1024_s1024_e512_h8_g2_d64_causal: b, t, s, h and d are needed;\n"
    "                    g = h, dv = d, e = h*d unless given; causaltl, causalbr, or causal where\n"
    "                    t = s; win255_0 is a window (-1: no bound)\n"
    "  --what core       attention alone, all projections off (the default)\n"
    "  --what layer      with its four projections; query, key and value are one tensor where t = "
    "s\n"
    "  --what start      without a SHAPE: the smallest calls, on one thread and on two; in "
    "microseconds,\n"
    "                    what it costs to begin one\n"
    "  --with OPTION     the shape with the option and plain, by turns in one run, and the ratio "
    "of\n"
    "                    the shortest times (above 1: the option costs). OPTION is\n"
    "                      all-true-mask  a boolean mask [1,1,T,S] that hides nothing, made "
    "before\n"
    "                      bias           a float bias [1,1,T,S]\n"
    "                      weights        all weights [B,H,T,S] returned\n"
    "                      entropy        entropy and maximum of each row returned\n"
    "                      mass           the weight that each key gets returned\n"
    "                      half-keys      key lengths of half of S\n"
    "                      causal, window (255, 0)\n"
    "  --against SHAPE   both shapes by turns in one run, and the ratio first / second\n"
    "  --curve A..B[:STEP]  the shape with t = A ... B (and s, where t = s), a line each, short "
    "timings\n"
    "  --layout LAYOUT   how keys and values of the core lie: token-major [B,S,G,D] (the default), "
    "or\n"
    "                    head-major [B,G,S,D]\n"
    "  --profile         afterwards as many runs with a clock in them: where the time goes\n"
    "  --threads N       threads to use (default: as `mha info` says)\n"
    "  --engine blas|fused  how the products are computed (default: MHA_ENGINE, else blas)\n"
    "  --reps N          timings; otherwise at least 5 and half a second of them. A warm-up of a\n"
    "                    second or more is one of them\n"
    "  --keep-coretype   leave OPENBLAS_CORETYPE and OPENBLAS_L2_SIZE as they are\n"
    "  --json            one JSON object (--curve, --what start: an array of them)\n"
    "  --csv             the same facts as CSV, a line of names first\n"
    "  --help            this text\n\n"
    "gflops counts 4*B*H*T*S*D for the core (causal: half) and 2*in*out a row for each projection, "
    "over\n"
    "the shortest time. share is gflops / (peak_gflops * threads); the peak is that of one core. "
    "Where\n"
    "t = 1 the core is bound by reading 4*B*G*S*(D + Dv) bytes of keys and values, so a plain read "
    "of "
    "them by\n"
    "as many threads is timed in the same run.\n"
    "Set OPENBLAS_NUM_THREADS=1 for the biggest tiles.\n";

static bool parse_count(const char *text, long long low, long long high, long long *value)
{
    char *end;
    errno = 0;
    *value = strtoll(text, &end, 10);
    return errno == 0 && end != text && *end == '\0' && *value >= low && *value <= high;
}

static enum mha__bench_with parse_with(const char *text)
{
    static const char *const names[] = {
        [MHA__BENCH_WITH_ALL_TRUE_MASK] = "all-true-mask",
        [MHA__BENCH_WITH_BIAS] = "bias",
        [MHA__BENCH_WITH_WEIGHTS] = "weights",
        [MHA__BENCH_WITH_ENTROPY] = "entropy",
        [MHA__BENCH_WITH_MASS] = "mass",
        [MHA__BENCH_WITH_HALF_KEYS] = "half-keys",
        [MHA__BENCH_WITH_CAUSAL] = "causal",
        [MHA__BENCH_WITH_WINDOW] = "window",
    };
    for (int i = MHA__BENCH_WITH_ALL_TRUE_MASK; i <= MHA__BENCH_WITH_WINDOW; i++) {
        if (strcmp(text, names[i]) == 0) {
            return (enum mha__bench_with)i;
        }
    }
    return MHA__BENCH_WITH_NONE;
}

/* A ... B in steps: "1..300", "1..300:7". */
static bool parse_curve(const char *text, int64_t curve[3])
{
    const char *dots = strstr(text, "..");
    const char *colon = strchr(text, ':');
    char first[24];
    char last[24];
    if (dots == NULL || (colon != NULL && colon < dots)) {
        return false;
    }
    const size_t end = colon != NULL ? (size_t)(colon - text) : strlen(text);
    snprintf(first, sizeof first, "%.*s", (int)(dots - text), text);
    snprintf(last, sizeof last, "%.*s", (int)(end - (size_t)(dots + 2 - text)), dots + 2);
    long long number[3] = {0, 0, 1};
    if (!parse_count(first, 1, 1000000, &number[0]) ||
        !parse_count(last, number[0], 1000000, &number[1]) ||
        (colon != NULL && !parse_count(colon + 1, 1, 1000000, &number[2]))) {
        return false;
    }
    for (int i = 0; i < 3; i++) {
        curve[i] = number[i];
    }
    return true;
}

/* Whether the options make sense together. An exit status, or -1 to go on. */
static int check_options(const struct mha__bench_options *options)
{
    const struct mha__shape *s = &options->shape;
    const bool compares = mha__bench_compares(options);
    if (options->head_major && options->what == MHA__BENCH_LAYER) {
        return mha__tool_usage("bench", "--layout is that of the core; a layer has tokens");
    }
    if (options->curve[2] > 0 && (compares || options->profile)) {
        return mha__tool_usage("bench", "--curve goes without --with, --against and --profile");
    }
    if (options->what == MHA__BENCH_START) {
        return compares || options->profile || options->curve[2] > 0 || options->threads != 0
                   ? mha__tool_usage("bench", "--what start has calls and threads of its own")
                   : -1;
    }
    if (options->against_text != NULL && options->with != MHA__BENCH_WITH_NONE) {
        return mha__tool_usage("bench", "--with and --against are two comparisons; take one");
    }
    if (options->with == MHA__BENCH_WITH_CAUSAL || options->with == MHA__BENCH_WITH_WINDOW) {
        if (s->T != s->S) {
            return mha__tool_usage("bench", "--with %s needs t = s; otherwise see --against",
                                   options->with_text);
        }
        if (s->causal != MHA_CAUSAL_NONE || s->window_left >= 0 || s->window_right >= 0) {
            return mha__tool_usage("bench", "--with %s: the shape has causal or a window already",
                                   options->with_text);
        }
    }
    return -1;
}

/* An exit status, or -1 to go on. */
static int parse_shapes(const char *text, struct mha__bench_options *options)
{
    char why[160];
    options->shape_text = text;
    if (mha__shape_parse(text, &options->shape, why, sizeof why) != 0) {
        return mha__tool_usage("bench", "%s", why);
    }
    if (options->against_text != NULL &&
        mha__shape_parse(options->against_text, &options->against, why, sizeof why) != 0) {
        return mha__tool_usage("bench", "--against: %s", why);
    }
    return -1;
}

/* An exit status, or -1 to go on. */
static int
parse_options(int argc, char **argv, struct mha__bench_options *options, bool *keep_coretype)
{
    static const struct option table[] = {
        {"what", required_argument, NULL, 'w'},   {"threads", required_argument, NULL, 't'},
        {"engine", required_argument, NULL, 'e'}, {"reps", required_argument, NULL, 'r'},
        {"with", required_argument, NULL, 'o'},   {"against", required_argument, NULL, 'a'},
        {"curve", required_argument, NULL, 'c'},  {"layout", required_argument, NULL, 'l'},
        {"profile", no_argument, NULL, 'p'},      {"json", no_argument, NULL, 'j'},
        {"csv", no_argument, NULL, 'v'},          {"keep-coretype", no_argument, NULL, 'k'},
        {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0},
    };
    long long number;
    for (int c; (c = getopt_long(argc, argv, "h", table, NULL)) != -1;) {
        switch (c) {
        case 'w':
            for (options->what = MHA__BENCH_CORE;
                 strcmp(optarg, mha__bench_what_name(options->what)) != 0; options->what++) {
                if (options->what == MHA__BENCH_START) {
                    return mha__tool_usage("bench", "--what %s: core, layer or start", optarg);
                }
            }
            break;
        case 't':
            if (!parse_count(optarg, 0, 64, &number)) {
                return mha__tool_usage("bench", "--threads %s: not within 0 .. 64", optarg);
            }
            options->threads = (int32_t)number;
            break;
        case 'e':
            if (strcmp(optarg, "blas") != 0 && strcmp(optarg, "fused") != 0) {
                return mha__tool_usage("bench", "--engine %s: blas or fused", optarg);
            }
            options->engine = strcmp(optarg, "blas") == 0 ? MHA_ENGINE_BLAS : MHA_ENGINE_FUSED;
            break;
        case 'o':
            options->with_text = optarg;
            options->with = parse_with(optarg);
            if (options->with == MHA__BENCH_WITH_NONE) {
                return mha__tool_usage("bench", "--with %s: see --help for the options", optarg);
            }
            break;
        case 'a':
            options->against_text = optarg;
            break;
        case 'c':
            if (!parse_curve(optarg, options->curve)) {
                return mha__tool_usage("bench", "--curve %s: A..B or A..B:STEP, 1 <= A <= B",
                                       optarg);
            }
            break;
        case 'l':
            options->head_major = strcmp(optarg, "head-major") == 0;
            if (!options->head_major && strcmp(optarg, "token-major") != 0) {
                return mha__tool_usage("bench", "--layout %s: token-major or head-major", optarg);
            }
            break;
        case 'p':
            options->profile = true;
            break;
        case 'r':
            if (!parse_count(optarg, 1, 1000000, &number)) {
                return mha__tool_usage("bench", "--reps %s: not within 1 .. 1000000", optarg);
            }
            options->repetitions = number;
            break;
        case 'j':
            options->form = MHA__BENCH_JSON;
            break;
        case 'v':
            options->form = MHA__BENCH_CSV;
            break;
        case 'k':
            *keep_coretype = true;
            break;
        case 'h':
            fputs(help, stdout);
            return MHA_TOOL_OK;
        default:
            return mha__tool_usage("bench", "unknown or incomplete option");
        }
    }
    const bool start = options->what == MHA__BENCH_START;
    if (argc - optind != (start ? 0 : 1)) {
        return mha__tool_usage("bench",
                               start ? "--what start takes no SHAPE" : "one SHAPE is needed");
    }
    const int status = start ? -1 : parse_shapes(argv[optind], options);
    return status >= 0 ? status : check_options(options);
}

/* OpenBLAS reads these two before main: with one of them set, only a new process gets rid of it. */
static int restart_without_coretype(char **argv)
{
    static const char *const names[] = {"OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"};
    bool found = false;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = getenv(names[i]);
        if (value != NULL) {
            fprintf(stderr,
                    "mha bench: %s=%s unset, it may choose slower kernels "
                    "(--keep-coretype keeps it)\n",
                    names[i], value);
            unsetenv(names[i]);
            found = true;
        }
    }
    if (!found) {
        return MHA_TOOL_OK;
    }
    /* argv[-1] is the program itself: subcommands get argv from their own name on. */
    execv("/proc/self/exe", argv - 1);
    return mha__tool_fail("bench", "cannot start again: %s", strerror(errno));
}

int mha__bench_main(int argc, char **argv)
{
    struct mha__bench_options options = {.engine = -1};
    bool keep_coretype = false;
    int status = parse_options(argc, argv, &options, &keep_coretype);
    if (status >= 0) {
        return status;
    }
    if (!keep_coretype) {
        status = restart_without_coretype(argv);
        if (status > 0) {
            return status;
        }
    }
    if (options.what == MHA__BENCH_START || options.curve[2] > 0) {
        return mha__bench_series(&options);
    }
    struct mha__bench_result result;
    status = mha__bench_run(&options, NULL, &result);
    return status == MHA_TOOL_OK ? mha__bench_report(&options, &result) : status;
}
