/* SPDX-License-Identifier: Apache-2.0 */
#include "mha_inspect.h"
#include "mha_pattern.h"

#include <math.h>
#include <string.h>

static const char *const *token_names(const struct mha__inspect_result *result)
{
    return (const char *const *)result->tokens.names;
}

static void print_verdict(const struct mha__inspect_options *options,
                          const struct mha__inspect_result *result)
{
    printf(
        "\nexpected   %s: %s, largest error %.3g at token %lld (%s), feature %lld; tolerance %g\n",
        options->expect, result->matched ? "matched" : "MISSED", result->largest_error,
        (long long)(result->error_at / result->width),
        result->tokens.names[result->error_at / result->width],
        (long long)(result->error_at % result->width), options->tolerance);
}

int mha__inspect_print(const struct mha__inspect_options *options,
                       const struct mha__inspect_result *result)
{
    const int64_t tokens = result->tokens.count;
    printf("layer      %s (%s, %lld heads)\n", options->prefix, options->scheme,
           (long long)result->heads);
    printf("tokens     %lld:", (long long)tokens);
    for (int64_t i = 0; i < tokens; i++) {
        printf(" %s", result->tokens.names[i]);
    }
    printf("\n\n"
           "      entropy  effective  mean       share of the weight on            \n"
           "head     nats     tokens  distance   self   prev   next  first   last  looks\n");
    for (int64_t h = 0; h < result->heads; h++) {
        const struct mha__heads_stats *s = &result->stats[h];
        char words[512];
        mha__pattern_describe(s, tokens, token_names(result), words, sizeof words);
        printf("%4lld  %7.2f  %9.1f  %8.1f  %5.2f  %5.2f  %5.2f  %5.2f  %5.2f  %s\n", (long long)h,
               s->entropy, s->effective, s->distance, s->self, s->previous, s->next, s->first,
               s->last, words);
    }
    if (result->compared) {
        print_verdict(options, result);
    }
    if (options->html != NULL) {
        printf("%spage       %s\n", result->compared ? "" : "\n", options->html);
    }
    return fflush(stdout) == 0 ? MHA_TOOL_OK : MHA_TOOL_FAILED;
}

/* JSON has no NaN and no infinity: null stands for them. */
static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *link_json(const struct mha__heads_stats *s)
{
    if (s->link_query < 0) {
        return json_null();
    }
    return json_pack("{s:I, s:I, s:o}", "from", (json_int_t)s->link_query, "to",
                     (json_int_t)s->link_key, "share", number(s->link));
}

static json_t *head_json(const struct mha__inspect_result *result, int64_t h)
{
    const struct mha__heads_stats *s = &result->stats[h];
    const int64_t tokens = result->tokens.count;
    char words[512];
    mha__pattern_describe(s, tokens, token_names(result), words, sizeof words);
    return json_pack("{s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s, s:I, s:s, s:o}", "head",
                     (json_int_t)h, "entropy_nats", number(s->entropy), "effective_tokens",
                     number(s->effective), "mean_distance", number(s->distance), "self",
                     number(s->self), "previous", number(s->previous), "next", number(s->next),
                     "first", number(s->first), "last", number(s->last), "pattern",
                     mha__pattern_name(mha__pattern_find(s, tokens)), "token",
                     (json_int_t)s->token_key, "looks", words, "link", link_json(s));
}

static json_t *map_json(const float *weights, int64_t count)
{
    json_t *map = json_array();
    for (int64_t i = 0; i < count; i++) {
        const double p = weights[i];
        json_array_append_new(map, json_integer(isfinite(p) ? (json_int_t)lround(p * 1e4) : -1));
    }
    return map;
}

static json_t *expect_json(const struct mha__inspect_options *options,
                           const struct mha__inspect_result *result)
{
    if (!result->compared) {
        return json_null();
    }
    return json_pack("{s:s, s:b, s:o, s:I, s:I, s:f}", "file", options->expect, "matched",
                     (int)result->matched, "largest_error", number(result->largest_error), "token",
                     (json_int_t)(result->error_at / result->width), "feature",
                     (json_int_t)(result->error_at % result->width), "tolerance",
                     options->tolerance);
}

json_t *mha__inspect_json(const struct mha__inspect_options *options,
                          const struct mha__inspect_result *result,
                          bool with_maps)
{
    const int64_t tokens = result->tokens.count;
    json_t *names = json_array();
    json_t *heads = json_array();
    for (int64_t i = 0; i < tokens; i++) {
        json_array_append_new(names, json_string(result->tokens.names[i]));
    }
    for (int64_t h = 0; h < result->heads; h++) {
        json_t *head = head_json(result, h);
        if (with_maps) {
            json_object_set_new(head, "map",
                                map_json(result->weights + h * tokens * tokens, tokens * tokens));
        }
        json_array_append_new(heads, head);
    }
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:b, s:o, s:o, s:o}", "version",
                     mha_version_string(), "kernels", mha_runtime_kernels(), "weights",
                     options->weights, "scheme", options->scheme, "prefix", options->prefix,
                     "causal", (int)options->causal, "tokens", names, "heads", heads, "expect",
                     expect_json(options, result));
}
