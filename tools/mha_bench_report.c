/* SPDX-License-Identifier: Apache-2.0 */
#include "mha_bench.h"
#include "mha_peak.h"

#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

/* What the report says in both forms. */
struct figures {
    char cpu[256];
    char *blas, *core;
    const char *what, *engine;
    double gflops, share;
    double ratio;      /* of the shortest times */
    double work_share; /* of the operations */
};

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

static json_t *as_json(const struct mha__bench_options *options,
                       const struct mha__bench_result *r,
                       const struct figures *f)
{
    const struct mha__bench_side *side = &r->side;
    return json_pack(
        "{s:s, s:s, s:i, s:s, s:s, s:s, s:s, s:s, s:s, s:f, s:f, s:f, s:f, s:s, s:f, s:I, s:f, s:I,"
        " s:I, s:s}",
        "shape", options->shape_text, "what", f->what, "threads", (int)side->threads, "engine",
        f->engine, "algorithm", side->algorithm, "kernels", mha_runtime_kernels(), "blas", f->blas,
        "blas_core", f->core, "cpu", f->cpu, "ms_min", 1e3 * side->seconds_min, "ms_median",
        1e3 * side->seconds_median, "gflops", f->gflops, "peak_gflops", r->peak, "peak_vectors",
        mha__peak_name(), "share", f->share, "repetitions", (json_int_t)side->repetitions,
        "visible_share", side->visible_share, "workspace_bytes", (json_int_t)side->workspace_bytes,
        "packed_bytes", (json_int_t)side->packed_bytes, "version", mha_version_string());
}

/* The fields of a comparison. Returns NULL when memory is short. */
static json_t *as_json_compared(const struct mha__bench_options *options,
                                const struct mha__bench_result *r,
                                const struct figures *f)
{
    const struct mha__bench_side *other = &r->reference;
    if (options->against_text != NULL) {
        return json_pack("{s:s, s:f, s:f, s:f, s:I}", "against", options->against_text, "ratio",
                         f->ratio, "against_ms_min", 1e3 * other->seconds_min, "against_ms_median",
                         1e3 * other->seconds_median, "against_repetitions",
                         (json_int_t)other->repetitions);
    }
    return json_pack("{s:s, s:f, s:f, s:f, s:I, s:f}", "with", options->with_text, "ratio",
                     f->ratio, "plain_ms_min", 1e3 * other->seconds_min, "plain_ms_median",
                     1e3 * other->seconds_median, "plain_repetitions",
                     (json_int_t)other->repetitions, "work_share", f->work_share);
}

static int print_json(const struct mha__bench_options *options,
                      const struct mha__bench_result *r,
                      const struct figures *f)
{
    json_t *object = as_json(options, r, f);
    if (object != NULL && mha__bench_compares(options)) {
        json_t *more = as_json_compared(options, r, f);
        if (json_object_update(object, more) != 0) {
            json_decref(object);
            object = NULL;
        }
        json_decref(more);
    }
    return mha__tool_print_json("bench", object);
}

static void print_compared(const struct mha__bench_options *options,
                           const struct mha__bench_result *r,
                           const struct figures *f)
{
    const bool shapes = options->against_text != NULL;
    printf("%s: %.3f ms (median %.3f, %lld runs)\n", shapes ? options->against_text : "plain",
           1e3 * r->reference.seconds_min, 1e3 * r->reference.seconds_median,
           (long long)r->reference.repetitions);
    if (shapes) {
        printf("ratio of the two: %.3f\n", f->ratio);
    } else {
        printf("with %s / plain: %.3f", options->with_text, f->ratio);
        if (f->work_share < 1.0) {
            printf("; share of the work %.4f, visible %.4f; ratio / share %.3f", f->work_share,
                   r->side.visible_share, f->ratio / f->work_share);
        }
        putchar('\n');
    }
}

static int print_text(const struct mha__bench_options *options,
                      const struct mha__bench_result *r,
                      const struct figures *f)
{
    const struct mha__bench_side *side = &r->side;
    printf("%s%s%s, %s, %s, %d thread%s: %.3f ms (median %.3f, %lld runs)\n", options->shape_text,
           options->with_text != NULL ? " with " : "",
           options->with_text != NULL ? options->with_text : "", f->what, f->engine,
           (int)side->threads, side->threads == 1 ? "" : "s", 1e3 * side->seconds_min,
           1e3 * side->seconds_median, (long long)side->repetitions);
    if (mha__bench_compares(options)) {
        print_compared(options, r, f);
    }
    printf("%.1f GFLOP/s, %.2f of the peak of %.1f per core (%s)\n", f->gflops, f->share, r->peak,
           mha__peak_name());
    printf("%s; %s; kernels %s; %s\n", f->cpu, side->algorithm, mha_runtime_kernels(), f->blas);
    printf("workspace %.2f MiB, of which packed keys and values %.2f; visible %.3f\n",
           (double)side->workspace_bytes / 0x1p20, (double)side->packed_bytes / 0x1p20,
           side->visible_share);
    return fflush(stdout) == 0 ? MHA_TOOL_OK : MHA_TOOL_FAILED;
}

int mha__bench_report(const struct mha__bench_options *options, const struct mha__bench_result *r)
{
    const struct mha__bench_side *side = &r->side;
    struct figures f = {
        .blas = mha__tool_text(mha_runtime_blas),
        .core = mha__tool_text(mha_runtime_blas_core),
        .what = options->what == MHA__BENCH_CORE ? "core" : "layer",
        .engine = r->engine == MHA_ENGINE_FUSED ? "fused" : "blas",
        .gflops = side->flops / side->seconds_min / 1e9,
        .ratio = side->seconds_min / r->reference.seconds_min,
        /* JSON knows no NaN. */
        .work_share = r->reference.flops > 0.0 ? side->flops / r->reference.flops : 1.0,
    };
    f.share = f.gflops / (r->peak * side->threads);
    cpu_model(f.cpu, sizeof f.cpu);
    int status;
    if (f.blas == NULL || f.core == NULL) {
        status = mha__tool_fail("bench", "out of memory");
    } else {
        status = options->json ? print_json(options, r, &f) : print_text(options, r, &f);
    }
    free(f.blas);
    free(f.core);
    return status;
}
