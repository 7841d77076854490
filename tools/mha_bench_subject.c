/* SPDX-License-Identifier: Apache-2.0 */
#include "mha_bench_subject.h"

#include <stdlib.h>
#include <string.h>

/* Query i of --with window sees itself and the 255 keys before. */
enum { WINDOW_LEFT = 255 };

#define RUN(expr)                                                                                  \
    do {                                                                                           \
        const int32_t status_ = (expr);                                                            \
        if (status_ != MHA_OK) {                                                                   \
            return mha__tool_error("bench", status_, b->err);                                      \
        }                                                                                          \
    } while (0)

void mha__bench_subject_release(struct mha__bench_subject *b)
{
    if (b->key != b->query) {
        free(b->key);
        free(b->value);
    }
    free(b->query);
    free(b->out);
    free(b->extra[0]);
    free(b->extra[1]);
    mha_call_destroy(b->call);
    mha_mask_destroy(b->mask);
    if (!b->context_is_lent) {
        mha_context_destroy(b->context);
    }
    mha_layer_destroy(b->layer);
    mha_config_destroy(b->config);
    mha_error_destroy(b->err);
}

static int make_layer(struct mha__bench_subject *b)
{
    const struct mha__shape *s = &b->shape;
    const bool core = b->options->what != MHA__BENCH_LAYER;
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
    if (!b->context_is_lent) {
        RUN(mha_context_create(&b->context, b->err));
    }
    RUN(mha_context_set_threads(b->context, b->options->threads, b->err));
    if (b->options->engine >= 0) {
        RUN(mha_context_set_engine(b->context, b->options->engine, b->err));
    }
    return MHA_TOOL_OK;
}

/* allowed [1,1,T,S], all true. The mask keeps bits of its own. */
static int add_all_true(struct mha__bench_subject *b)
{
    const struct mha__shape *s = &b->shape;
    const size_t pairs = (size_t)(s->T * s->S);
    uint8_t *allowed = malloc(pairs > 0 ? pairs : 1);
    if (allowed == NULL) {
        return mha__tool_fail("bench", "out of memory for a mask of %zu bytes", pairs);
    }
    memset(allowed, 1, pairs);
    const int32_t status =
        mha_mask_add_full_mask(b->mask, 1, 1, s->T, s->S, allowed, NULL, 0, b->err);
    free(allowed);
    RUN(status);
    return MHA_TOOL_OK;
}

static int make_mask(struct mha__bench_subject *b)
{
    const struct mha__shape *s = &b->shape;
    const bool by_position =
        s->causal != MHA_CAUSAL_NONE || s->window_left >= 0 || s->window_right >= 0;
    if (!by_position && b->with != MHA__BENCH_WITH_ALL_TRUE_MASK &&
        b->with != MHA__BENCH_WITH_HALF_KEYS) {
        return MHA_TOOL_OK;
    }
    RUN(mha_mask_create(&b->mask, b->err));
    if (by_position) {
        RUN(mha_mask_set_causal(b->mask, s->causal != MHA_CAUSAL_NONE, b->err));
        RUN(mha_mask_set_window(b->mask, s->window_left, s->window_right, b->err));
        RUN(mha_mask_set_alignment(b->mask,
                                   s->causal == MHA_CAUSAL_BOTTOM_RIGHT ? MHA_ALIGNMENT_BOTTOM_RIGHT
                                                                        : MHA_ALIGNMENT_TOP_LEFT,
                                   b->err));
    }
    if (b->with == MHA__BENCH_WITH_HALF_KEYS) {
        RUN(mha_mask_set_key_lengths(b->mask, 1, &(int64_t){s->S / 2}, b->err));
    }
    return b->with == MHA__BENCH_WITH_ALL_TRUE_MASK ? add_all_true(b) : MHA_TOOL_OK;
}

/* count numbers, uniform in [-1, 1): xorshift64*, Vigna 2016. NULL when memory is short. */
static float *make_tensor(int64_t count, uint64_t seed)
{
    if (count > PTRDIFF_MAX / (int64_t)sizeof(float)) {
        return NULL;
    }
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

static int make_tensors(struct mha__bench_subject *b)
{
    const struct mha__shape *s = &b->shape;
    const bool core = b->options->what != MHA__BENCH_LAYER;
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
        return mha__tool_fail("bench", "out of memory for the tensors of %s",
                              b->options->shape_text);
    }
    return MHA_TOOL_OK;
}

/* Makes extra[index], contiguous, and sets it as `tensor` of the call. */
static int set_extra(
    struct mha__bench_subject *b, int index, int32_t tensor, int32_t rank, const int64_t *shape)
{
    int64_t count = 1;
    for (int32_t axis = 0; axis < rank; axis++) {
        count *= shape[axis];
    }
    b->extra[index] = make_tensor(count, 5 + (uint64_t)index);
    if (b->extra[index] == NULL) {
        return mha__tool_fail("bench", "out of memory for %lld numbers of --with %s",
                              (long long)count, b->options->with_text);
    }
    RUN(tensor == MHA_TENSOR_BIAS0
            ? mha_call_set_input(b->call, tensor, MHA_FLOAT32, b->extra[index], rank, shape, NULL,
                                 b->err)
            : mha_call_set_output(b->call, tensor, MHA_FLOAT32, b->extra[index], rank, shape, NULL,
                                  b->err));
    return MHA_TOOL_OK;
}

static int make_extras(struct mha__bench_subject *b)
{
    const struct mha__shape *s = &b->shape;
    switch (b->with) {
    case MHA__BENCH_WITH_BIAS:
        return set_extra(b, 0, MHA_TENSOR_BIAS0, 4, (const int64_t[]){1, 1, s->T, s->S});
    case MHA__BENCH_WITH_WEIGHTS:
        return set_extra(b, 0, MHA_TENSOR_WEIGHTS, 4, (const int64_t[]){s->B, s->H, s->T, s->S});
    case MHA__BENCH_WITH_ENTROPY: {
        const int64_t rows[] = {s->B, s->H, s->T};
        const int status = set_extra(b, 0, MHA_TENSOR_ENTROPY, 3, rows);
        return status == MHA_TOOL_OK ? set_extra(b, 1, MHA_TENSOR_MAXIMUM, 3, rows) : status;
    }
    case MHA__BENCH_WITH_MASS:
        return set_extra(b, 0, MHA_TENSOR_KEY_MASS, 3, (const int64_t[]){s->B, s->H, s->S});
    default:
        return MHA_TOOL_OK;
    }
}

/* Keys or values: [B,S,width], or heads of `size` that lie [B,G,S,size]. A status of the library. */
static int32_t set_keys(
    struct mha__bench_subject *b, int32_t tensor, const float *data, int64_t width, int64_t size)
{
    const struct mha__shape *s = &b->shape;
    if (!b->options->head_major) {
        return mha_call_set_input(b->call, tensor, MHA_FLOAT32, data, 3,
                                  (const int64_t[]){s->B, s->S, width}, NULL, b->err);
    }
    return mha_call_set_input(b->call, tensor, MHA_FLOAT32, data, 4,
                              (const int64_t[]){s->B, s->S, s->G, size},
                              (const int64_t[]){s->G * s->S * size, size, s->S * size, 1}, b->err);
}

/* The call, for an option or a layout that mha_layer_forward has no parameter for. */
static int make_call(struct mha__bench_subject *b)
{
    const struct mha__shape *s = &b->shape;
    if (b->with != MHA__BENCH_WITH_BIAS && b->with != MHA__BENCH_WITH_WEIGHTS &&
        b->with != MHA__BENCH_WITH_ENTROPY && b->with != MHA__BENCH_WITH_MASS &&
        !b->options->head_major) {
        return MHA_TOOL_OK;
    }
    RUN(mha_call_create(&b->call, b->err));
    RUN(mha_call_set_input(b->call, MHA_TENSOR_QUERY, MHA_FLOAT32, b->query, 3,
                           (const int64_t[]){s->B, s->T, mha_config_query_width(b->config)}, NULL,
                           b->err));
    RUN(set_keys(b, MHA_TENSOR_KEY, b->key, mha_config_key_width(b->config), s->D));
    RUN(set_keys(b, MHA_TENSOR_VALUE, b->value, mha_config_value_width(b->config), s->Dv));
    RUN(mha_call_set_output(b->call, MHA_TENSOR_OUTPUT, MHA_FLOAT32, b->out, 3,
                            (const int64_t[]){s->B, s->T, mha_config_output_width(b->config)}, NULL,
                            b->err));
    return make_extras(b);
}

static int describe_plan(struct mha__bench_subject *b, struct mha__bench_side *side)
{
    const struct mha__shape *s = &b->shape;
    /* A key mass is made of the weights, so few queries are packed for it too. */
    const bool weights = b->with == MHA__BENCH_WITH_WEIGHTS || b->with == MHA__BENCH_WITH_MASS;
    const int32_t outputs = weights ? MHA_PLAN_WEIGHTS : 0;
    mha_plan *plan = NULL;
    RUN(mha_plan_create(b->context, b->layer, b->mask, s->B, s->T, s->S, outputs, &plan, b->err));
    side->threads = mha_plan_threads(plan);
    side->workspace_bytes = mha_plan_workspace_bytes(plan);
    side->packed_bytes = mha_plan_packed_bytes(plan);
    side->visible_share = mha_plan_visible_share(plan);
    side->algorithm = mha_plan_algorithm(plan);
    mha_plan_destroy(plan);

    const bool plain_causal = s->causal != MHA_CAUSAL_NONE && s->T == s->S && s->window_left < 0 &&
                              b->with != MHA__BENCH_WITH_HALF_KEYS;
    side->flops = mha__bench_flops(s, b->options->what, plain_causal ? 0.5 : side->visible_share);
    return MHA_TOOL_OK;
}

int mha__bench_subject_make(struct mha__bench_subject *b,
                            const struct mha__bench_options *options,
                            const struct mha__shape *shape,
                            enum mha__bench_with with,
                            mha_context *context,
                            struct mha__bench_side *side)
{
    *b = (struct mha__bench_subject){.options = options,
                                     .shape = *shape,
                                     .with = with,
                                     .err = mha_error_create(),
                                     .context = context,
                                     .context_is_lent = context != NULL};
    if (with == MHA__BENCH_WITH_CAUSAL) {
        b->shape.causal = MHA_CAUSAL_TOP_LEFT;
    } else if (with == MHA__BENCH_WITH_WINDOW) {
        b->shape.window_left = WINDOW_LEFT;
        b->shape.window_right = 0;
    }
    int status = make_layer(b);
    if (status == MHA_TOOL_OK) {
        status = make_mask(b);
    }
    if (status == MHA_TOOL_OK) {
        status = describe_plan(b, side);
    }
    if (status == MHA_TOOL_OK) {
        status = make_tensors(b);
    }
    return status == MHA_TOOL_OK ? make_call(b) : status;
}

int mha__bench_subject_forward(struct mha__bench_subject *b)
{
    const struct mha__shape *s = &b->shape;
    if (b->call != NULL) {
        RUN(mha_forward(b->context, b->layer, b->mask, b->call, b->err));
    } else {
        RUN(mha_layer_forward(b->context, b->layer, s->B, s->T, s->S, b->query, b->key, b->value,
                              b->mask, b->out, b->err));
    }
    return MHA_TOOL_OK;
}

double mha__bench_flops(const struct mha__shape *s, enum mha__bench_what what, double visible)
{
    const double batch = (double)s->B;
    const double queries = (double)s->T;
    const double keys = (double)s->S;
    const double core =
        2.0 * batch * (double)s->H * queries * keys * (double)(s->D + s->Dv) * visible;
    if (what != MHA__BENCH_LAYER) {
        return core;
    }
    const double width = (double)s->E;
    return core + 2.0 * batch * width *
                      (queries * (double)(s->H * s->D) + keys * (double)(s->G * s->D) +
                       keys * (double)(s->G * s->Dv) + queries * (double)(s->H * s->Dv));
}

double mha__bench_tensor_bytes(const struct mha__shape *s, enum mha__bench_what what)
{
    const double queries = (double)(s->B * s->T);
    const double keys = (double)(s->B * s->S);
    if (what != MHA__BENCH_LAYER) {
        return 4.0 * queries * (double)(s->H * (s->D + s->Dv)) + mha__bench_kv_bytes(s);
    }
    const double width = (double)s->E;
    const double inputs = s->T == s->S ? queries : queries + 2.0 * keys;
    const double heads = (double)(s->H * s->D + s->G * s->D + s->G * s->Dv + s->H * s->Dv);
    const double biases = (double)(s->H * s->D + s->G * s->D + s->G * s->Dv) + width;
    return 4.0 * (width * (inputs + queries + heads) + biases);
}

double mha__bench_kv_bytes(const struct mha__shape *s)
{
    return 4.0 * (double)(s->B * s->S) * (double)(s->G * (s->D + s->Dv));
}
