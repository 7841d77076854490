/* SPDX-License-Identifier: Apache-2.0 */
#include "mha_bench.h"
#include "mha_peak.h"

#include <stdlib.h>

static void print_compared(const struct mha__bench_options *options,
                           const struct mha__bench_result *r,
                           const struct mha__bench_figures *f)
{
    const bool shapes = options->against_text != NULL;
    printf("%s: %.3f ms (median %.3f, %lld runs)\n", shapes ? options->against_text : "plain",
           1e3 * r->reference.seconds_min, 1e3 * r->reference.seconds_median,
           (long long)r->reference.repetitions);
    if (shapes) {
        printf("ratio of the two: %.3f; of their operations %.3f\n", f->ratio, f->work_share);
    } else {
        printf("with %s / plain: %.3f", options->with_text, f->ratio);
        if (f->work_share < 1.0) {
            printf("; share of the work %.4f, visible %.4f; ratio / share %.3f", f->work_share,
                   r->side.visible_share, f->ratio / f->work_share);
        }
        putchar('\n');
    }
}

static void print_profile(const struct mha__bench_profile *profile, int32_t threads)
{
    printf("where the time goes, over %d lane%s, in %lld more runs:\n", (int)threads,
           threads == 1 ? "" : "s", (long long)profile->runs);
    for (int32_t part = 0; part <= MHA_TIME_IDLE; part++) {
        printf("  %-11s %9.3f ms  %5.1f %%\n", mha__bench_part_name(part),
               1e3 * profile->seconds[part], 100.0 * profile->seconds[part] / profile->total);
    }
}

static int print_text(const struct mha__bench_options *options, const struct mha__bench_result *r)
{
    const struct mha__bench_side *side = &r->side;
    struct mha__bench_figures f;
    char cpu[256];
    char *blas = mha__tool_text(mha_runtime_blas);
    if (blas == NULL) {
        return mha__tool_fail("bench", "out of memory");
    }
    mha__bench_figures_of(options, r, &f);
    mha__bench_cpu(cpu, sizeof cpu);
    printf("%s%s%s, %s%s, %s, %d thread%s: %.3f ms (median %.3f, %lld runs)\n", options->shape_text,
           options->with_text != NULL ? " with " : "",
           options->with_text != NULL ? options->with_text : "",
           mha__bench_what_name(options->what), options->head_major ? ", head-major" : "",
           mha__bench_engine_name(r->engine), (int)side->threads, side->threads == 1 ? "" : "s",
           1e3 * side->seconds_min, 1e3 * side->seconds_median, (long long)side->repetitions);
    if (mha__bench_compares(options)) {
        print_compared(options, r, &f);
    }
    printf("%.1f GFLOP/s, %.2f of the peak of %.1f per core (%s)\n", f.gflops, f.share, r->peak,
           mha__peak_name());
    if (mha__bench_reads(options)) {
        printf("keys and values %.2f MiB at %.1f GB/s, %.2f of a plain read (%.1f GB/s)\n",
               mha__bench_kv_bytes(&options->shape) / 0x1p20, f.kv_rate, f.kv_rate / f.read_rate,
               f.read_rate);
    }
    if (options->profile) {
        print_profile(&r->profile, side->threads);
    }
    printf("%s; %s; kernels %s; %s\n", cpu, side->algorithm, mha_runtime_kernels(), blas);
    printf("workspace %.2f MiB, of which packed keys and values %.2f; visible %.3f\n",
           (double)side->workspace_bytes / 0x1p20, (double)side->packed_bytes / 0x1p20,
           side->visible_share);
    free(blas);
    return fflush(stdout) == 0 ? MHA_TOOL_OK : MHA_TOOL_FAILED;
}

int mha__bench_report(const struct mha__bench_options *options, const struct mha__bench_result *r)
{
    switch (options->form) {
    case MHA__BENCH_JSON:
        return mha__tool_print_json("bench", mha__bench_facts(options, r));
    case MHA__BENCH_CSV:
        return mha__bench_print_csv(mha__bench_facts(options, r), true);
    default:
        return print_text(options, r);
    }
}
