/* SPDX-License-Identifier: Apache-2.0 */
#include "mha_bench.h"

#include "mha_peak.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

static const char help[] =
    "Usage: mha bench SHAPE [OPTION]...\n"
    "Times one forward and compares it with the FMA peak of this machine, sampled beside the "
    "timings.\n\n"
    "  SHAPE             b1_t1024_s1024_e512_h8_g2_d64_causal: b, t, s, h and d are needed;\n"
    "                    g = h, dv = d, e = h*d unless given; causaltl, causalbr, or causal where\n"
    "                    t = s; win255_0 is a window (-1: no bound)\n"
    "  --what core       attention alone, all projections off (the default)\n"
    "  --what layer      with its four projections; query, key and value are one tensor where t = "
    "s\n"
    "  --threads N       threads to use (default: as `mha info` says)\n"
    "  --engine blas     how the products are computed\n"
    "  --reps N          timings; otherwise at least 5 and half a second of them\n"
    "  --keep-coretype   leave OPENBLAS_CORETYPE and OPENBLAS_L2_SIZE as they are\n"
    "  --json            one JSON object\n"
    "  --help            this text\n\n"
    "gflops counts 4*B*H*T*S*D for the core (causal: half) and 2*in*out a row for each projection, "
    "over\n"
    "the shortest time. share is gflops / (peak_gflops * threads); the peak is that of one core.\n"
    "Set OPENBLAS_NUM_THREADS=1 for the biggest tiles.\n";

static bool parse_count(const char *text, long long low, long long high, long long *value)
{
    char *end;
    errno = 0;
    *value = strtoll(text, &end, 10);
    return errno == 0 && end != text && *end == '\0' && *value >= low && *value <= high;
}

/* An exit status, or -1 to go on. */
static int
parse_options(int argc, char **argv, struct mha__bench_options *options, bool *keep_coretype)
{
    static const struct option table[] = {
        {"what", required_argument, NULL, 'w'},   {"threads", required_argument, NULL, 't'},
        {"engine", required_argument, NULL, 'e'}, {"reps", required_argument, NULL, 'r'},
        {"json", no_argument, NULL, 'j'},         {"keep-coretype", no_argument, NULL, 'k'},
        {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0},
    };
    long long number;
    for (int c; (c = getopt_long(argc, argv, "h", table, NULL)) != -1;) {
        switch (c) {
        case 'w':
            if (strcmp(optarg, "core") != 0 && strcmp(optarg, "layer") != 0) {
                return mha__tool_usage("bench", "--what %s: core or layer", optarg);
            }
            options->what = strcmp(optarg, "core") == 0 ? MHA__BENCH_CORE : MHA__BENCH_LAYER;
            break;
        case 't':
            if (!parse_count(optarg, 0, 64, &number)) {
                return mha__tool_usage("bench", "--threads %s: not within 0 .. 64", optarg);
            }
            options->threads = (int32_t)number;
            break;
        case 'e':
            if (strcmp(optarg, "blas") != 0) {
                return mha__tool_usage("bench", "--engine %s: blas is the one there is", optarg);
            }
            options->engine = MHA_ENGINE_BLAS;
            break;
        case 'r':
            if (!parse_count(optarg, 1, 1000000, &number)) {
                return mha__tool_usage("bench", "--reps %s: not within 1 .. 1000000", optarg);
            }
            options->repetitions = number;
            break;
        case 'j':
            options->json = true;
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
    if (argc - optind != 1) {
        return mha__tool_usage("bench", "one SHAPE is needed");
    }
    char why[160];
    options->shape_text = argv[optind];
    if (mha__shape_parse(options->shape_text, &options->shape, why, sizeof why) != 0) {
        return mha__tool_usage("bench", "%s", why);
    }
    return -1;
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

/* "AMD EPYC 7763", or the machine's kind where /proc/cpuinfo has no name for it. */
static void cpu_model(char *text, size_t cap)
{
    static const char key[] = "model name";
    struct utsname machine;
    snprintf(text, cap, "%s", uname(&machine) == 0 ? machine.machine : "unknown");
    FILE *file = fopen("/proc/cpuinfo", "r");
    char line[256];
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, key, sizeof key - 1) == 0 && colon != NULL) {
            snprintf(text, cap, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
            break;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
}

static int report(const struct mha__bench_options *options, const struct mha__bench_result *r)
{
    char cpu[256];
    cpu_model(cpu, sizeof cpu);
    char *blas = mha__tool_text(mha_runtime_blas);
    char *core = mha__tool_text(mha_runtime_blas_core);
    const char *what = options->what == MHA__BENCH_CORE ? "core" : "layer";
    const double gflops = r->flops / r->seconds_min / 1e9;
    const double share = gflops / (r->peak * r->threads);
    int status = MHA_TOOL_OK;
    if (blas == NULL || core == NULL) {
        status = mha__tool_fail("bench", "out of memory");
    } else if (options->json) {
        status = mha__tool_print_json(
            "bench",
            json_pack("{s:s, s:s, s:i, s:s, s:s, s:s, s:s, s:s, s:s, s:f, s:f, s:f, s:f, s:s, s:f,"
                      " s:I, s:f, s:I, s:I, s:s}",
                      "shape", options->shape_text, "what", what, "threads", (int)r->threads,
                      "engine", "blas", "algorithm", r->algorithm, "kernels", mha_runtime_kernels(),
                      "blas", blas, "blas_core", core, "cpu", cpu, "ms_min", 1e3 * r->seconds_min,
                      "ms_median", 1e3 * r->seconds_median, "gflops", gflops, "peak_gflops",
                      r->peak, "peak_vectors", mha__peak_name(), "share", share, "repetitions",
                      (json_int_t)r->repetitions, "visible_share", r->visible_share,
                      "workspace_bytes", (json_int_t)r->workspace_bytes, "packed_bytes",
                      (json_int_t)r->packed_bytes, "version", mha_version_string()));
    } else {
        printf("%s, %s, %d thread%s: %.3f ms (median %.3f, %lld runs)\n", options->shape_text, what,
               (int)r->threads, r->threads == 1 ? "" : "s", 1e3 * r->seconds_min,
               1e3 * r->seconds_median, (long long)r->repetitions);
        printf("%.1f GFLOP/s, %.2f of the peak of %.1f per core (%s)\n", gflops, share, r->peak,
               mha__peak_name());
        printf("%s; %s; kernels %s; %s\n", cpu, r->algorithm, mha_runtime_kernels(), blas);
        printf("workspace %.2f MiB, of which packed keys and values %.2f; visible %.3f\n",
               (double)r->workspace_bytes / 0x1p20, (double)r->packed_bytes / 0x1p20,
               r->visible_share);
        status = fflush(stdout) == 0 ? MHA_TOOL_OK : MHA_TOOL_FAILED;
    }
    free(blas);
    free(core);
    return status;
}

int mha__bench_main(int argc, char **argv)
{
    struct mha__bench_options options = {.engine = MHA_ENGINE_BLAS};
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
    struct mha__bench_result result;
    status = mha__bench_run(&options, &result);
    return status == MHA_TOOL_OK ? report(&options, &result) : status;
}
