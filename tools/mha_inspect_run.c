/* SPDX-License-Identifier: Apache-2.0 */
#include "mha_inspect.h"

#include <mha/io.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The library's objects of one run; all are released together. */
struct objects {
    mha_error *err;
    mha_io_safetensors *file;
    mha_config *config;
    mha_layer *layer;
    mha_context *context;
    mha_mask *mask;
    mha_call *call;
    mha_io_npy *input;
    mha_io_npy *expected;
};

static void release(struct objects *o)
{
    mha_io_npy_destroy(o->expected);
    mha_io_npy_destroy(o->input);
    mha_call_destroy(o->call);
    mha_mask_destroy(o->mask);
    mha_context_destroy(o->context);
    mha_layer_destroy(o->layer);
    mha_config_destroy(o->config);
    mha_io_safetensors_close(o->file);
    mha_error_destroy(o->err);
}

#define RUN(expr)                                                                                  \
    do {                                                                                           \
        const int32_t status_ = (expr);                                                            \
        if (status_ != MHA_OK) {                                                                   \
            return mha__tool_error("inspect", status_, o->err);                                    \
        }                                                                                          \
    } while (0)

static int load_layer(const struct mha__inspect_options *options, struct objects *o)
{
    const int32_t scheme = mha_io_scheme(options->scheme);
    if (scheme < 0) {
        return mha__tool_usage("inspect", "--scheme %s: bert, torch, gpt2 or llama",
                               options->scheme);
    }
    RUN(mha_io_safetensors_open(options->weights, &o->file, o->err));
    RUN(mha_io_read_config(o->file, scheme, options->prefix, options->heads, options->kv_heads,
                           &o->config, o->err));
    RUN(mha_layer_create(o->config, &o->layer, o->err));
    RUN(mha_io_load_layer(o->file, scheme, options->prefix, o->layer, o->err));
    RUN(mha_context_create(&o->context, o->err));
    RUN(mha_context_set_threads(o->context, options->threads, o->err));
    if (options->causal) {
        RUN(mha_mask_create(&o->mask, o->err));
        RUN(mha_mask_set_causal(o->mask, 1, o->err));
    }
    return MHA_TOOL_OK;
}

/* X is [T, E] or [1, T, E], and T is the number of tokens. */
static int load_sentence(const struct mha__inspect_options *options,
                         struct objects *o,
                         struct mha__inspect_result *result)
{
    char why[256];
    if (mha__tokens_read(options->tokens, &result->tokens, why, sizeof why) != 0) {
        return mha__tool_fail("inspect", "%s", why);
    }
    RUN(mha_io_npy_read(options->input, &o->input, o->err));
    int64_t shape[3] = {1, 1, 1};
    const int32_t rank = mha_io_npy_shape(o->input, shape, 3);
    if (rank != 2 && !(rank == 3 && shape[0] == 1)) {
        return mha__tool_fail("inspect", "%s: the shape must be [T, E] or [1, T, E]",
                              options->input);
    }
    const int64_t tokens = shape[rank - 2];
    const int64_t features = shape[rank - 1];
    if (tokens != result->tokens.count) {
        return mha__tool_fail("inspect", "%s has %lld rows, %s has %lld tokens", options->input,
                              (long long)tokens, options->tokens, (long long)result->tokens.count);
    }
    if (tokens == 0) {
        return mha__tool_fail("inspect", "%s: no token", options->tokens);
    }
    if (features != mha_config_query_width(o->config)) {
        return mha__tool_fail("inspect", "%s has %lld features per token, the layer expects %lld",
                              options->input, (long long)features,
                              (long long)mha_config_query_width(o->config));
    }
    result->rank = rank;
    result->heads = mha_config_heads(o->config);
    result->width = mha_config_output_width(o->config);
    return MHA_TOOL_OK;
}

static int compute(struct objects *o, struct mha__inspect_result *result)
{
    const int64_t tokens = result->tokens.count;
    const int64_t in[3] = {1, tokens, mha_config_query_width(o->config)};
    const int64_t out[3] = {1, tokens, result->width};
    const int64_t maps[4] = {1, result->heads, tokens, tokens};
    const size_t map_size = (size_t)tokens * (size_t)tokens;
    result->out = calloc((size_t)(tokens * result->width), sizeof(float));
    result->weights = calloc((size_t)result->heads * map_size, sizeof(float));
    result->stats = calloc((size_t)result->heads, sizeof *result->stats);
    if (result->out == NULL || result->weights == NULL || result->stats == NULL) {
        return mha__tool_fail("inspect", "out of memory: %lld maps of %lld x %lld weights",
                              (long long)result->heads, (long long)tokens, (long long)tokens);
    }
    const float *x = mha_io_npy_data(o->input);
    RUN(mha_call_create(&o->call, o->err));
    for (int32_t tensor = MHA_TENSOR_QUERY; tensor <= MHA_TENSOR_VALUE; tensor++) {
        RUN(mha_call_set_input(o->call, tensor, MHA_FLOAT32, x, 3, in, NULL, o->err));
    }
    RUN(mha_call_set_output(o->call, MHA_TENSOR_OUTPUT, MHA_FLOAT32, result->out, 3, out, NULL,
                            o->err));
    RUN(mha_call_set_output(o->call, MHA_TENSOR_WEIGHTS, MHA_FLOAT32, result->weights, 4, maps,
                            NULL, o->err));
    RUN(mha_forward(o->context, o->layer, o->mask, o->call, o->err));
    for (int64_t h = 0; h < result->heads; h++) {
        mha__heads_measure(result->weights + (size_t)h * map_size, tokens, &result->stats[h]);
    }
    return MHA_TOOL_OK;
}

/* NaN, on either side, is a miss: it compares as an infinite error. */
static int compare(const struct mha__inspect_options *options,
                   struct objects *o,
                   struct mha__inspect_result *result)
{
    RUN(mha_io_npy_read(options->expect, &o->expected, o->err));
    int64_t shape[3] = {1, 1, 1};
    const int32_t rank = mha_io_npy_shape(o->expected, shape, 3);
    const bool fits = (rank == 2 || (rank == 3 && shape[0] == 1)) &&
                      shape[rank - 2] == result->tokens.count && shape[rank - 1] == result->width;
    if (!fits) {
        return mha__tool_fail("inspect", "%s: the output is [%lld, %lld], this is something else",
                              options->expect, (long long)result->tokens.count,
                              (long long)result->width);
    }
    const float *expected = mha_io_npy_data(o->expected);
    result->compared = true;
    result->matched = true;
    for (int64_t i = 0; i < result->tokens.count * result->width; i++) {
        double error = fabs((double)result->out[i] - (double)expected[i]);
        error = isnan(error) ? INFINITY : error;
        if (error > result->largest_error) {
            result->largest_error = error;
            result->error_at = i;
        }
        if (error > options->tolerance * fmax(1.0, fabs((double)expected[i]))) {
            result->matched = false;
        }
    }
    return MHA_TOOL_OK;
}

static int write_output(const struct mha__inspect_options *options,
                        struct objects *o,
                        const struct mha__inspect_result *result)
{
    const int64_t shape[3] = {1, result->tokens.count, result->width};
    const int32_t rank = (int32_t)result->rank;
    RUN(mha_io_npy_write(options->output, rank, shape + (3 - rank), result->out, o->err));
    return MHA_TOOL_OK;
}

int mha__inspect_run(const struct mha__inspect_options *options, struct mha__inspect_result *result)
{
    struct objects o = {.err = mha_error_create()};
    int status = load_layer(options, &o);
    if (status == MHA_TOOL_OK) {
        status = load_sentence(options, &o, result);
    }
    if (status == MHA_TOOL_OK) {
        status = compute(&o, result);
    }
    if (status == MHA_TOOL_OK && options->expect != NULL) {
        status = compare(options, &o, result);
    }
    if (status == MHA_TOOL_OK && options->output != NULL) {
        status = write_output(options, &o, result);
    }
    release(&o);
    return status;
}

void mha__inspect_free(struct mha__inspect_result *result)
{
    mha__tokens_free(&result->tokens);
    free(result->out);
    free(result->weights);
    free(result->stats);
}
