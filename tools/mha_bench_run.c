/* SPDX-License-Identifier: Apache-2.0 */
#include "mha_bench_subject.h"
#include "mha_clock.h"
#include "mha_peak.h"
#include "mha_read.h"

#include <stdlib.h>

/*
 * round: timings of one subject before the other's turn, and between two samples of the peak, last about
 * this long, in seconds: long enough that most of them find the caches as they left them. least: all of
 * them together. A point of a curve has many neighbours, so its timings are short.
 */
struct pace {
    double round, least;
};
static const struct pace usual_pace = {0.05, 0.5};
static const struct pace brief_pace = {0.01, 0.02};
/* A warm-up that lasts this long is a timing like any other: caches and clock are up to speed
 * within a small part of it. */
static const double long_warm_up = 1.0;
enum { LEAST_REPETITIONS = 5, MOST_REPETITIONS = 100000, TURNS = 4 };

struct timings {
    struct mha__bench_subject subject;
    struct mha__bench_side *side;
    struct pace pace;
    double *seconds; /* [room] */
    int64_t room, count;
    int64_t turn; /* the most timings before the other's turn */
    double total;
};

static bool enough(const struct timings *t)
{
    if (t->subject.options->repetitions > 0) {
        return t->count >= t->subject.options->repetitions;
    }
    return t->count >= t->room || (t->count >= LEAST_REPETITIONS && t->total >= t->pace.least);
}

static int forward_timed(struct timings *t)
{
    const double begin = mha__clock_seconds();
    const int status = mha__bench_subject_forward(&t->subject);
    t->seconds[t->count] = mha__clock_seconds() - begin;
    t->total += t->seconds[t->count++];
    return status;
}

/* Caches, clock and worker threads come up to speed. */
static int warm_up(struct timings *t)
{
    double spent = 0.0;
    int status;
    do {
        t->count = 0;
        t->total = 0.0;
        status = forward_timed(t);
        spent += t->seconds[0];
    } while (status == MHA_TOOL_OK && spent < 2.0 * t->pace.round);
    if (t->seconds[0] < long_warm_up) {
        t->count = 0;
        t->total = 0.0;
    }
    return status;
}

/*
 * The best of a few: whoever else uses the machine can only make a sample smaller. As long as a call: a clock
 * that is higher for a millisecond is of no use to calls that last longer.
 */
static void sample_peak(const struct timings *t, struct mha__bench_result *result)
{
    static const double longest = 0.03;
    const double call = t->seconds[0] < longest ? t->seconds[0] : longest;
    for (int i = 0; i < 4; i++) {
        const double sample = mha__peak_sample(call);
        result->peak = sample > result->peak ? sample : result->peak;
    }
}

/* As the call gets them, by as many threads as it uses. */
static int sample_read(const struct mha__bench_subject *b, struct mha__bench_result *result)
{
    const struct mha__shape *s = &b->shape;
    uint32_t sum;
    const double seconds = mha__read_sample(b->key, s->B * s->S * s->G * s->D, b->value,
                                            s->B * s->S * s->G * s->Dv, result->side.threads, &sum);
    if (seconds < 0.0) {
        return mha__tool_fail("bench", "cannot start %d threads", (int)result->side.threads);
    }
    result->read = result->read == 0.0 || seconds < result->read ? seconds : result->read;
    return MHA_TOOL_OK;
}

/* Rounds of peak, timings of each subject in turn, peak, until there are enough of them. */
static int measure(struct timings *timings, int subjects, struct mha__bench_result *result)
{
    bool all_done = false;
    do {
        all_done = true;
        sample_peak(timings, result);
        for (int i = 0; i < subjects; i++) {
            struct timings *t = &timings[i];
            const double begin = t->total;
            const int64_t stop = t->count + t->turn;
            while (t->total - begin < t->pace.round && t->count < t->room && t->count < stop) {
                const int status = forward_timed(t);
                if (status != MHA_TOOL_OK) {
                    return status;
                }
            }
            if (i == 0 && mha__bench_reads(t->subject.options)) {
                const int status = sample_read(&t->subject, result);
                if (status != MHA_TOOL_OK) {
                    return status;
                }
            }
            all_done = all_done && enough(t);
        }
        sample_peak(timings, result);
    } while (!all_done);
    return MHA_TOOL_OK;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

static void summarise(struct timings *t)
{
    qsort(t->seconds, (size_t)t->count, sizeof *t->seconds, by_value);
    t->side->repetitions = t->count;
    t->side->seconds_min = t->seconds[0];
    t->side->seconds_median = 0.5 * (t->seconds[(t->count - 1) / 2] + t->seconds[t->count / 2]);
    /* What the options beside the plan's took is in there too. */
    t->side->workspace_bytes = mha_context_bytes(t->subject.context);
}

/* Runs with a clock in them; none of them is among the timings. */
static int profile(struct mha__bench_subject *b, struct mha__bench_profile *profile)
{
    const int64_t wished = b->options->repetitions;
    int32_t refused = mha_context_set_profiling(b->context, 1, b->err);
    const double begin = mha__clock_seconds();
    int status = MHA_TOOL_OK;
    do {
        status = status == MHA_TOOL_OK ? mha__bench_subject_forward(b) : status;
        profile->runs++;
    } while (status == MHA_TOOL_OK &&
             (wished > 0 ? profile->runs < wished
                         : profile->runs < LEAST_REPETITIONS ||
                               mha__clock_seconds() - begin < usual_pace.least));
    for (int32_t part = 0; refused == MHA_OK && part <= MHA_TIME_IDLE; part++) {
        refused = mha_context_profile(b->context, part, &profile->seconds[part], b->err);
        profile->seconds[part] /= (double)profile->runs;
        profile->total += profile->seconds[part];
    }
    if (refused == MHA_OK) {
        refused = mha_context_set_profiling(b->context, 0, b->err);
    }
    return status == MHA_TOOL_OK && refused != MHA_OK ? mha__tool_error("bench", refused, b->err)
                                                      : status;
}

int mha__bench_run(const struct mha__bench_options *options,
                   mha_context *context,
                   struct mha__bench_result *result)
{
    *result = (struct mha__bench_result){0};
    const int subjects = mha__bench_compares(options) ? 2 : 1;
    const struct mha__shape *shapes[] = {
        &options->shape, options->against_text != NULL ? &options->against : &options->shape};
    const enum mha__bench_with with[] = {options->with, MHA__BENCH_WITH_NONE};
    struct timings timings[2] = {{.side = &result->side}, {.side = &result->reference}};
    int status = MHA_TOOL_OK;
    for (int i = 0; i < subjects && status == MHA_TOOL_OK; i++) {
        struct timings *t = &timings[i];
        t->pace = options->brief ? brief_pace : usual_pace;
        t->room = options->repetitions > 0 ? options->repetitions : MOST_REPETITIONS;
        t->turn = (t->room + TURNS - 1) / TURNS;
        t->seconds = calloc((size_t)t->room, sizeof *t->seconds);
        status =
            mha__bench_subject_make(&t->subject, options, shapes[i], with[i], context, t->side);
        if (status == MHA_TOOL_OK && t->seconds == NULL) {
            status = mha__tool_fail("bench", "out of memory");
        }
    }
    for (int i = 0; i < subjects && status == MHA_TOOL_OK; i++) {
        status = warm_up(&timings[i]);
    }
    if (status == MHA_TOOL_OK) {
        status = measure(timings, subjects, result);
    }
    if (status == MHA_TOOL_OK) {
        result->engine = mha_context_engine(timings[0].subject.context);
        for (int i = 0; i < subjects; i++) {
            summarise(&timings[i]);
        }
    }
    if (status == MHA_TOOL_OK && options->profile) {
        status = profile(&timings[0].subject, &result->profile);
    }
    for (int i = 0; i < subjects; i++) {
        free(timings[i].seconds);
        mha__bench_subject_release(&timings[i].subject);
    }
    return status;
}
