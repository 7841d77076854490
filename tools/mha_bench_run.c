/* SPDX-License-Identifier: Apache-2.0 */
#include "mha_bench.h"
#include "mha_clock.h"
#include "mha_peak.h"

#include <stdlib.h>

/* Timings between two samples of the peak last about this long, in seconds. */
static const double round_seconds = 0.05;
static const double least_seconds = 0.5;
enum { LEAST_REPETITIONS = 5, MOST_REPETITIONS = 100000 };

struct bench {
    mha_error *err;
    mha_config *config;
    mha_layer *layer;
    mha_context *context;
    mha_mask *mask;
    float *query, *key, *value, *out;
};

static void release(struct bench *b)
{
    if (b->key != b->query) {
        free(b->key);
        free(b->value);
    }
    free(b->query);
    free(b->out);
    mha_mask_destroy(b->mask);
    mha_context_destroy(b->context);
    mha_layer_destroy(b->layer);
    mha_config_destroy(b->config);
    mha_error_destroy(b->err);
}

#define RUN(expr)                                                                                  \
    do {                                                                                           \
        const int32_t status_ = (expr);                                                            \
        if (status_ != MHA_OK) {                                                                   \
            return mha__tool_error("bench", status_, b->err);                                      \
        }                                                                                          \
    } while (0)

static int make_layer(const struct mha__bench_options *options, struct bench *b)
{
    const struct mha__shape *s = &options->shape;
    const bool core = options->what == MHA__BENCH_CORE;
    RUN(mha_config_create(core ? s->H * s->D : s->E, s->H, &b->config, b->err));
    RUN(mha_config_set_kv_heads(b->config, s->G, b->err));
    RUN(mha_config_set_head_size(b->config, s->D, b->err));
    RUN(mha_config_set_value_head_size(b->config, s->Dv, b->err));
    for (int32_t p = MHA_PROJECTION_Q; core && p <= MHA_PROJECTION_OUT; p++) {
        RUN(mha_config_set_projection(b->config, p, 0, b->err));
    }
    RUN(mha_layer_create(b->config, &b->layer, b->err));
    if (!core) {
        RUN(mha_layer_initialize(b->layer, 1, b->err));
    }
    RUN(mha_context_create(&b->context, b->err));
    RUN(mha_context_set_threads(b->context, options->threads, b->err));
    RUN(mha_context_set_engine(b->context, options->engine, b->err));
    return MHA_TOOL_OK;
}

static int make_mask(const struct mha__shape *s, struct bench *b)
{
    if (s->causal == MHA_CAUSAL_NONE && s->window_left < 0 && s->window_right < 0) {
        return MHA_TOOL_OK;
    }
    RUN(mha_mask_create(&b->mask, b->err));
    RUN(mha_mask_set_causal(b->mask, s->causal != MHA_CAUSAL_NONE, b->err));
    RUN(mha_mask_set_window(b->mask, s->window_left, s->window_right, b->err));
    RUN(mha_mask_set_alignment(b->mask,
                               s->causal == MHA_CAUSAL_BOTTOM_RIGHT ? MHA_ALIGNMENT_BOTTOM_RIGHT
                                                                    : MHA_ALIGNMENT_TOP_LEFT,
                               b->err));
    return MHA_TOOL_OK;
}

/* count numbers, uniform in [-1, 1): xorshift64*, Vigna 2016. NULL when memory is short. */
static float *make_tensor(int64_t count, uint64_t seed)
{
    float *data = malloc((size_t)(count > 0 ? count : 1) * sizeof *data);
    uint64_t state = seed * UINT64_C(0x9E3779B97F4A7C15) | 1U;
    for (int64_t i = 0; data != NULL && i < count; i++) {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        data[i] = (float)((state * UINT64_C(0x2545F4914F6CDD1D)) >> 40) / 0x1p23F - 1.0F;
    }
    return data;
}

static int make_tensors(const struct mha__bench_options *options, struct bench *b)
{
    const struct mha__shape *s = &options->shape;
    const bool core = options->what == MHA__BENCH_CORE;
    b->query = make_tensor(s->B * s->T * mha_config_query_width(b->config), 1);
    if (!core && s->T == s->S) {
        b->key = b->query;
        b->value = b->query;
    } else {
        b->key = make_tensor(s->B * s->S * mha_config_key_width(b->config), 2);
        b->value = make_tensor(s->B * s->S * mha_config_value_width(b->config), 3);
    }
    b->out = make_tensor(s->B * s->T * mha_config_output_width(b->config), 4);
    if (b->query == NULL || b->key == NULL || b->value == NULL || b->out == NULL) {
        return mha__tool_fail("bench", "out of memory for the tensors of %s", options->shape_text);
    }
    return MHA_TOOL_OK;
}

static int describe_plan(const struct mha__bench_options *options,
                         struct bench *b,
                         struct mha__bench_result *result)
{
    const struct mha__shape *s = &options->shape;
    mha_plan *plan = NULL;
    RUN(mha_plan_create(b->context, b->layer, b->mask, s->B, s->T, s->S, 0, &plan, b->err));
    result->threads = mha_plan_threads(plan);
    result->workspace_bytes = mha_plan_workspace_bytes(plan);
    result->packed_bytes = mha_plan_packed_bytes(plan);
    result->visible_share = mha_plan_visible_share(plan);
    result->algorithm = mha_plan_algorithm(plan);
    mha_plan_destroy(plan);

    const bool plain_causal = s->causal != MHA_CAUSAL_NONE && s->T == s->S && s->window_left < 0;
    result->flops = mha__bench_flops(s, options->what, plain_causal ? 0.5 : result->visible_share);
    return MHA_TOOL_OK;
}

static int forward(const struct mha__bench_options *options, struct bench *b)
{
    const struct mha__shape *s = &options->shape;
    RUN(mha_layer_forward(b->context, b->layer, s->B, s->T, s->S, b->query, b->key, b->value,
                          b->mask, b->out, b->err));
    return MHA_TOOL_OK;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The best of a few: whoever else uses the machine can only make a sample smaller. */
static void sample_peak(struct mha__bench_result *result)
{
    for (int i = 0; i < 4; i++) {
        const double sample = mha__peak_sample();
        result->peak = sample > result->peak ? sample : result->peak;
    }
}

/* Rounds of peak, timings, peak, until there are enough of them. */
static int measure(const struct mha__bench_options *options,
                   struct bench *b,
                   struct mha__bench_result *result,
                   double *seconds)
{
    const int64_t wanted = options->repetitions > 0 ? options->repetitions : MOST_REPETITIONS;
    double total = 0.0;
    int64_t count = 0;
    while (count < wanted) {
        if (options->repetitions == 0 && count >= LEAST_REPETITIONS && total >= least_seconds) {
            break;
        }
        sample_peak(result);
        for (double round = 0.0; count < wanted && round < round_seconds;) {
            const double begin = mha__clock_seconds();
            const int status = forward(options, b);
            if (status != MHA_TOOL_OK) {
                return status;
            }
            seconds[count] = mha__clock_seconds() - begin;
            round += seconds[count];
            total += seconds[count++];
        }
        sample_peak(result);
    }
    qsort(seconds, (size_t)count, sizeof *seconds, by_value);
    result->repetitions = count;
    result->seconds_min = seconds[0];
    result->seconds_median = 0.5 * (seconds[(count - 1) / 2] + seconds[count / 2]);
    return MHA_TOOL_OK;
}

/* Caches, clock and worker threads come up to speed. */
static int warm_up(const struct mha__bench_options *options, struct bench *b)
{
    const double begin = mha__clock_seconds();
    int status;
    do {
        status = forward(options, b);
    } while (status == MHA_TOOL_OK && mha__clock_seconds() - begin < 2.0 * round_seconds);
    return status;
}

int mha__bench_run(const struct mha__bench_options *options, struct mha__bench_result *result)
{
    struct bench b = {.err = mha_error_create()};
    const int64_t room = options->repetitions > 0 ? options->repetitions : MOST_REPETITIONS;
    double *seconds = calloc((size_t)room, sizeof *seconds);
    *result = (struct mha__bench_result){0};
    int status = seconds != NULL ? MHA_TOOL_OK : mha__tool_fail("bench", "out of memory");
    if (status == MHA_TOOL_OK) {
        status = make_layer(options, &b);
    }
    if (status == MHA_TOOL_OK) {
        status = make_mask(&options->shape, &b);
    }
    if (status == MHA_TOOL_OK) {
        status = describe_plan(options, &b, result);
    }
    if (status == MHA_TOOL_OK) {
        status = make_tensors(options, &b);
    }
    if (status == MHA_TOOL_OK) {
        status = warm_up(options, &b);
    }
    if (status == MHA_TOOL_OK) {
        status = measure(options, &b, result, seconds);
    }
    free(seconds);
    release(&b);
    return status;
}

double mha__bench_flops(const struct mha__shape *s, enum mha__bench_what what, double visible)
{
    const double batch = (double)s->B;
    const double queries = (double)s->T;
    const double keys = (double)s->S;
    const double core =
        2.0 * batch * (double)s->H * queries * keys * (double)(s->D + s->Dv) * visible;
    if (what == MHA__BENCH_CORE) {
        return core;
    }
    const double width = (double)s->E;
    return core + 2.0 * batch * width *
                      (queries * (double)(s->H * s->D) + keys * (double)(s->G * s->D) +
                       keys * (double)(s->G * s->Dv) + queries * (double)(s->H * s->Dv));
}
