/* SPDX-License-Identifier: Apache-2.0 */
#include "mha_bench.h"
#include "mha_commit.h"
#include "mha_peak.h"

#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#if defined(__clang__)
#define COMPILER "clang " __clang_version__
#elif defined(__GNUC__)
#define COMPILER "gcc " __VERSION__
#else
#define COMPILER "unknown"
#endif

void mha__bench_cpu(char *text, size_t cap)
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

const char *mha__bench_what_name(enum mha__bench_what what)
{
    static const char *const names[] = {"core", "layer", "start"};
    return names[what];
}

const char *mha__bench_engine_name(int32_t engine)
{
    return engine == MHA_ENGINE_FUSED ? "fused" : "blas";
}

const char *mha__bench_part_name(int32_t part)
{
    static const char *const names[] = {
        [MHA_TIME_PROJECTIONS] = "projections",
        [MHA_TIME_PACKING] = "packing",
        [MHA_TIME_SCORES] = "scores",
        [MHA_TIME_SOFTMAX] = "softmax",
        [MHA_TIME_VALUES] = "values",
        [MHA_TIME_OTHER] = "other",
        [MHA_TIME_IDLE] = "idle",
    };
    return names[part];
}

void mha__bench_figures_of(const struct mha__bench_options *options,
                           const struct mha__bench_result *r,
                           struct mha__bench_figures *f)
{
    const struct mha__bench_side *side = &r->side;
    const double gflops = side->flops / side->seconds_min / 1e9;
    const double kv = mha__bench_kv_bytes(&options->shape);
    *f = (struct mha__bench_figures){
        .gflops = gflops,
        .share = gflops / (r->peak * side->threads),
        .ratio = side->seconds_min / r->reference.seconds_min,
        /* JSON knows no NaN. */
        .work_share = r->reference.flops > 0.0 ? side->flops / r->reference.flops : 1.0,
        .kv_rate = kv / side->seconds_min / 1e9,
        .read_rate = r->read > 0.0 ? kv / r->read / 1e9 : 0.0,
    };
}

/* Puts what `more` has behind what object has, and releases it; NULL of either stays NULL. */
static json_t *joined(json_t *object, json_t *more)
{
    if (object != NULL && (more == NULL || json_object_update(object, more) != 0)) {
        json_decref(object);
        object = NULL;
    }
    json_decref(more);
    return object;
}

static json_t *conditions(const struct mha__bench_options *options,
                          const struct mha__bench_result *r)
{
    char cpu[256];
    char *blas = mha__tool_text(mha_runtime_blas);
    char *core = mha__tool_text(mha_runtime_blas_core);
    mha__bench_cpu(cpu, sizeof cpu);
    json_t *object = NULL;
    if (blas != NULL && core != NULL) {
        object = json_pack(
            "{s:s, s:s, s:s, s:i, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "shape",
            options->shape_text, "what", mha__bench_what_name(options->what), "layout",
            options->head_major ? "head-major" : "token-major", "threads", (int)r->side.threads,
            "engine", mha__bench_engine_name(r->engine), "algorithm", r->side.algorithm, "kernels",
            mha_runtime_kernels(), "blas", blas, "blas_core", core, "cpu", cpu, "compiler",
            COMPILER, "commit", MHA_COMMIT, "version", mha_version_string());
    }
    free(blas);
    free(core);
    return object;
}

static json_t *measured(const struct mha__bench_options *options,
                        const struct mha__bench_result *r,
                        const struct mha__bench_figures *f)
{
    const struct mha__bench_side *side = &r->side;
    return json_pack("{s:f, s:f, s:I, s:f, s:f, s:f, s:s, s:f, s:f, s:I, s:I, s:I}", "ms_min",
                     1e3 * side->seconds_min, "ms_median", 1e3 * side->seconds_median,
                     "repetitions", (json_int_t)side->repetitions, "flops", side->flops, "gflops",
                     f->gflops, "peak_gflops", r->peak, "peak_vectors", mha__peak_name(), "share",
                     f->share, "visible_share", side->visible_share, "tensor_bytes",
                     (json_int_t)mha__bench_tensor_bytes(&options->shape, options->what),
                     "workspace_bytes", (json_int_t)side->workspace_bytes, "packed_bytes",
                     (json_int_t)side->packed_bytes);
}

static json_t *compared(const struct mha__bench_options *options,
                        const struct mha__bench_result *r,
                        const struct mha__bench_figures *f)
{
    const struct mha__bench_side *other = &r->reference;
    const double least = 1e3 * other->seconds_min;
    const double median = 1e3 * other->seconds_median;
    const json_int_t repetitions = (json_int_t)other->repetitions;
    if (options->against_text != NULL) {
        return json_pack("{s:s, s:f, s:f, s:f, s:I, s:f}", "against", options->against_text,
                         "ratio", f->ratio, "against_ms_min", least, "against_ms_median", median,
                         "against_repetitions", repetitions, "work_share", f->work_share);
    }
    return json_pack("{s:s, s:f, s:f, s:f, s:I, s:f}", "with", options->with_text, "ratio",
                     f->ratio, "plain_ms_min", least, "plain_ms_median", median,
                     "plain_repetitions", repetitions, "work_share", f->work_share);
}

static json_t *reading(const struct mha__bench_options *options,
                       const struct mha__bench_result *r,
                       const struct mha__bench_figures *f)
{
    return json_pack("{s:I, s:f, s:f, s:f, s:f}", "kv_bytes",
                     (json_int_t)mha__bench_kv_bytes(&options->shape), "kv_gb_per_s", f->kv_rate,
                     "read_ms_min", 1e3 * r->read, "read_gb_per_s", f->read_rate, "read_share",
                     f->kv_rate / f->read_rate);
}

static json_t *profiled(const struct mha__bench_profile *profile)
{
    json_t *object = json_pack("{s:I}", "profile_runs", (json_int_t)profile->runs);
    for (int32_t part = 0; part <= MHA_TIME_IDLE; part++) {
        char ms[32];
        char share[32];
        snprintf(ms, sizeof ms, "%s_ms", mha__bench_part_name(part));
        snprintf(share, sizeof share, "%s_share", mha__bench_part_name(part));
        object = joined(object, json_pack("{s:f, s:f}", ms, 1e3 * profile->seconds[part], share,
                                          profile->seconds[part] / profile->total));
    }
    return object;
}

json_t *mha__bench_facts(const struct mha__bench_options *options,
                         const struct mha__bench_result *r)
{
    struct mha__bench_figures f;
    mha__bench_figures_of(options, r, &f);
    json_t *object = joined(conditions(options, r), measured(options, r, &f));
    if (mha__bench_compares(options)) {
        object = joined(object, compared(options, r, &f));
    }
    if (mha__bench_reads(options)) {
        object = joined(object, reading(options, r, &f));
    }
    if (options->profile) {
        object = joined(object, profiled(&r->profile));
    }
    return object;
}

/* A text in quotes, as RFC 4180 has it, where it needs them. */
static void print_cell(const char *text)
{
    if (strpbrk(text, ",\"\n") == NULL) {
        fputs(text, stdout);
        return;
    }
    putchar('"');
    for (; *text != '\0'; text++) {
        fputs(*text == '"' ? "\"\"" : (const char[]){*text, '\0'}, stdout);
    }
    putchar('"');
}

int mha__bench_print_csv(json_t *facts, bool header)
{
    const char *key;
    json_t *value;
    if (facts == NULL) {
        return mha__tool_fail("bench", "out of memory");
    }
    const char *comma = "";
    json_object_foreach(facts, key, value)
    {
        if (header) {
            printf("%s%s", comma, key);
            comma = ",";
        }
    }
    fputs(header ? "\n" : "", stdout);
    comma = "";
    json_object_foreach(facts, key, value)
    {
        fputs(comma, stdout);
        comma = ",";
        if (json_is_string(value)) {
            print_cell(json_string_value(value));
        } else if (json_is_integer(value)) {
            printf("%lld", (long long)json_integer_value(value));
        } else {
            printf("%.9g", json_real_value(value));
        }
    }
    putchar('\n');
    json_decref(facts);
    return fflush(stdout) == 0 ? MHA_TOOL_OK
                               : mha__tool_fail("bench", "cannot write to the standard output");
}
