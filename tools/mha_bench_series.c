/* SPDX-License-Identifier: Apache-2.0 */
#include "mha_bench.h"

#include <string.h>

/*
 * Many shapes in one run, a report a line: in text the two or three figures that matter, as CSV all facts of
 * each, as JSON an array of the objects that single shapes have.
 */

enum { SHAPE_BYTES = 256 };

/* The shape with the number of part t, and of part s where both are equal, replaced by T. */
static void with_tokens(const char *text, bool keys_too, int64_t T, char *out, size_t cap)
{
    size_t used = 0;
    while (*text != '\0') {
        const size_t part = strcspn(text, "_");
        const bool named = part > 1 && strspn(text + 1, "0123456789") == part - 1;
        int length;
        if (named && (text[0] == 't' || (text[0] == 's' && keys_too))) {
            length = snprintf(out + used, cap - used, "%c%lld", text[0], (long long)T);
        } else {
            length = snprintf(out + used, cap - used, "%.*s", (int)part, text);
        }
        used += (size_t)length < cap - used ? (size_t)length : cap - used - 1;
        text += part;
        if (*text == '_' && used + 1 < cap) {
            out[used++] = *text++;
            out[used] = '\0';
        }
    }
}

static void
print_line(const struct mha__bench_options *options, const struct mha__bench_result *r, bool first)
{
    struct mha__bench_figures f;
    mha__bench_figures_of(options, r, &f);
    if (options->what == MHA__BENCH_START) {
        printf("%s, %s, %d thread%s: %.2f us (median %.2f, %lld runs)\n", options->shape_text,
               mha__bench_engine_name(r->engine), (int)r->side.threads,
               r->side.threads == 1 ? "" : "s", 1e6 * r->side.seconds_min,
               1e6 * r->side.seconds_median, (long long)r->side.repetitions);
        return;
    }
    if (first) {
        printf("%6s %10s %10s %9s %7s\n", "t", "ms", "median", "GFLOP/s", "share");
    }
    printf("%6lld %10.4f %10.4f %9.1f %7.3f\n", (long long)options->shape.T,
           1e3 * r->side.seconds_min, 1e3 * r->side.seconds_median, f.gflops, f.share);
}

/* One of them: measured, and reported or put into the array. */
static int
one(const struct mha__bench_options *options, mha_context *context, bool first, json_t *all)
{
    struct mha__bench_result result;
    const int status = mha__bench_run(options, context, &result);
    if (status != MHA_TOOL_OK) {
        return status;
    }
    if (options->form == MHA__BENCH_CSV) {
        return mha__bench_print_csv(mha__bench_facts(options, &result), first);
    }
    if (options->form == MHA__BENCH_JSON) {
        return json_array_append_new(all, mha__bench_facts(options, &result)) == 0
                   ? MHA_TOOL_OK
                   : mha__tool_fail("bench", "out of memory");
    }
    print_line(options, &result, first);
    return fflush(stdout) == 0 ? MHA_TOOL_OK : MHA_TOOL_FAILED;
}

static int curve(const struct mha__bench_options *options, mha_context *context, json_t *all)
{
    const bool keys_too = options->shape.T == options->shape.S;
    int status = MHA_TOOL_OK;
    for (int64_t T = options->curve[0]; T <= options->curve[1] && status == MHA_TOOL_OK;
         T += options->curve[2]) {
        char text[SHAPE_BYTES];
        struct mha__bench_options point = *options;
        with_tokens(options->shape_text, keys_too, T, text, sizeof text);
        point.shape_text = text;
        point.shape.T = T;
        point.shape.S = keys_too ? T : options->shape.S;
        point.brief = true;
        status = one(&point, context, T == options->curve[0], all);
    }
    return status;
}

/* The smallest call; one of two tasks, on one thread and on two. */
static int start(const struct mha__bench_options *options, mha_context *context, json_t *all)
{
    static const struct {
        const char *shape;
        int32_t threads;
    } calls[] = {{"b1_t1_s1_h1_d1", 1}, {"b1_t1_s1_h2_d1", 1}, {"b1_t1_s1_h2_d1", 2}};
    int status = MHA_TOOL_OK;
    for (int i = 0; i < 3 && status == MHA_TOOL_OK; i++) {
        char why[160];
        struct mha__bench_options call = *options;
        call.shape_text = calls[i].shape;
        call.threads = calls[i].threads;
        if (mha__shape_parse(call.shape_text, &call.shape, why, sizeof why) != 0) {
            return mha__tool_fail("bench", "%s", why);
        }
        status = one(&call, context, i == 0, all);
    }
    return status;
}

int mha__bench_series(const struct mha__bench_options *options)
{
    mha_context *context = NULL;
    const int32_t refused = mha_context_create(&context, NULL);
    if (refused != MHA_OK) {
        return mha__tool_error("bench", refused, NULL);
    }
    json_t *all = json_array();
    int status = options->what == MHA__BENCH_START ? start(options, context, all)
                                                   : curve(options, context, all);
    mha_context_destroy(context);
    if (status == MHA_TOOL_OK && options->form == MHA__BENCH_JSON) {
        return mha__tool_print_json("bench", all);
    }
    json_decref(all);
    return status;
}
