/* SPDX-License-Identifier: Apache-2.0 */
#include "api/run.h"

#include "flow/flow_forward.h"
#include "flow/project.h"
#include "platform/blas_check.h"

static const char *const tensor_names[MHA__TENSORS] = {
    "MHA_TENSOR_QUERY",  "MHA_TENSOR_KEY",     "MHA_TENSOR_VALUE",
    "MHA_TENSOR_OUTPUT", "MHA_TENSOR_WEIGHTS", "MHA_TENSOR_LSE",
};

struct sizes {
    int64_t B, T, S;
};

int32_t
mha__run_check_sizes(const mha_layer *layer, int64_t B, int64_t T, int64_t S, mha_error *err)
{
    MHA_CHECK(err, B >= 0 && T >= 0 && S >= 0, MHA_ERROR_SHAPE,
              "B = %lld, T = %lld, S = %lld: none may be negative", (long long)B, (long long)T,
              (long long)S);
    /* Factors of 64: room for rounding up to tiles, bytes, several buffers. */
    const int64_t widest = layer->H * (layer->D + layer->Dv);
    int64_t rows = 0;
    int64_t unused = 0;
    bool fits = mha__product_fits(B, T > S ? T : S, 64, &rows) &&
                mha__product_fits(rows, widest, 1, &unused) &&
                mha__product_fits(rows / 64, layer->H, 64, &unused);
    for (int i = 0; i < MHA__PROJECTIONS; i++) {
        fits = fits && mha__product_fits(rows, layer->width[i], 1, &unused);
    }
    int64_t pairs = 0;
    fits = fits && mha__product_fits(B, layer->H, T, &pairs) &&
           mha__product_fits(pairs, S, sizeof(float), &pairs);
    MHA_CHECK(
        err, fits, MHA_ERROR_TOO_LARGE,
        "B = %lld, T = %lld, S = %lld with H = %lld, D = %lld, Dv = %lld: a product passes 2^63",
        (long long)B, (long long)T, (long long)S, (long long)layer->H, (long long)layer->D,
        (long long)layer->Dv);
    return MHA_OK;
}

static bool is_set(const mha_call *call, int32_t tensor)
{
    return call->tensor[tensor].rank > 0;
}

/* tensor is [sizes[0], sizes[1], heads * head] or, where heads are allowed, [.., .., heads, head].
 */
static int32_t check_features(const mha_call *call,
                              int32_t id,
                              int64_t batch,
                              int64_t tokens,
                              int64_t features,
                              bool holds_heads,
                              int64_t heads,
                              int64_t head,
                              mha_error *err)
{
    const struct mha__tensor *t = &call->tensor[id];
    MHA_CHECK(err, t->shape[0] == batch && t->shape[1] == tokens, MHA_ERROR_SHAPE,
              "%s is [%lld, %lld, …], the call has %lld batch rows and %lld tokens there",
              tensor_names[id], (long long)t->shape[0], (long long)t->shape[1], (long long)batch,
              (long long)tokens);
    if (t->rank == 3) {
        MHA_CHECK(err, t->shape[2] == features, MHA_ERROR_SHAPE,
                  "%s has %lld features per token, the layer expects %lld", tensor_names[id],
                  (long long)t->shape[2], (long long)features);
        return MHA_OK;
    }
    MHA_CHECK(err, holds_heads, MHA_ERROR_SHAPE,
              "%s has rank 4, but the layer projects it: [B, tokens, %lld] is expected",
              tensor_names[id], (long long)features);
    MHA_CHECK(err, t->shape[2] == heads && t->shape[3] == head, MHA_ERROR_SHAPE,
              "%s has %lld heads of %lld features, the layer expects %lld of %lld",
              tensor_names[id], (long long)t->shape[2], (long long)t->shape[3], (long long)heads,
              (long long)head);
    return MHA_OK;
}

static int32_t
check_shapes(const mha_layer *layer, const mha_call *call, struct sizes *sizes, mha_error *err)
{
    for (int32_t id = 0; id < MHA__INPUTS; id++) {
        MHA_CHECK(err, is_set(call, id), MHA_ERROR_NOT_SET, "%s is not set", tensor_names[id]);
    }
    MHA_CHECK(err,
              is_set(call, MHA_TENSOR_OUTPUT) || is_set(call, MHA_TENSOR_WEIGHTS) ||
                  is_set(call, MHA_TENSOR_LSE),
              MHA_ERROR_NOT_SET,
              "no output is set: MHA_TENSOR_OUTPUT, MHA_TENSOR_WEIGHTS or MHA_TENSOR_LSE");
    const int64_t B = sizes->B = call->tensor[MHA_TENSOR_QUERY].shape[0];
    const int64_t T = sizes->T = call->tensor[MHA_TENSOR_QUERY].shape[1];
    const int64_t S = sizes->S = call->tensor[MHA_TENSOR_KEY].shape[1];
    const struct mha__linear *linear = layer->linear;
    const int64_t *width = layer->width;
    MHA_TRY(check_features(call, MHA_TENSOR_QUERY, B, T, width[0], !linear[0].tiles, layer->H,
                           layer->D, err));
    MHA_TRY(check_features(call, MHA_TENSOR_KEY, B, S, width[1], !linear[1].tiles, layer->G,
                           layer->D, err));
    MHA_TRY(check_features(call, MHA_TENSOR_VALUE, B, S, width[2], !linear[2].tiles, layer->G,
                           layer->Dv, err));
    if (is_set(call, MHA_TENSOR_OUTPUT)) {
        MHA_TRY(check_features(call, MHA_TENSOR_OUTPUT, B, T, width[3], !linear[3].tiles, layer->H,
                               layer->Dv, err));
    }
    const struct mha__tensor *w = &call->tensor[MHA_TENSOR_WEIGHTS];
    MHA_CHECK(err,
              !w->rank || (w->shape[0] == B && w->shape[1] == layer->H && w->shape[2] == T &&
                           w->shape[3] == S),
              MHA_ERROR_SHAPE,
              "MHA_TENSOR_WEIGHTS is [%lld, %lld, %lld, %lld], expected [B, H, T, S] = [%lld, "
              "%lld, %lld, %lld]",
              (long long)w->shape[0], (long long)w->shape[1], (long long)w->shape[2],
              (long long)w->shape[3], (long long)B, (long long)layer->H, (long long)T,
              (long long)S);
    const struct mha__tensor *l = &call->tensor[MHA_TENSOR_LSE];
    MHA_CHECK(err, !l->rank || (l->shape[0] == B && l->shape[1] == layer->H && l->shape[2] == T),
              MHA_ERROR_SHAPE,
              "MHA_TENSOR_LSE is [%lld, %lld, %lld], expected [B, H, T] = [%lld, %lld, %lld]",
              (long long)l->shape[0], (long long)l->shape[1], (long long)l->shape[2], (long long)B,
              (long long)layer->H, (long long)T);
    return MHA_OK;
}

static int32_t check_overlap(const mha_call *call, mha_error *err)
{
    for (int32_t out = MHA__INPUTS; out < MHA__TENSORS; out++) {
        for (int32_t other = 0; other < out; other++) {
            MHA_CHECK(err, !mha__overlap(&call->tensor[out], &call->tensor[other]),
                      MHA_ERROR_OVERLAP, "%s shares memory with %s", tensor_names[out],
                      tensor_names[other]);
        }
    }
    return MHA_OK;
}

/* The strides of batch rows, tokens and heads; heads of a [B, tokens, features] tensor lie side by
 * side. */
static struct mha__input input_of(const struct mha__tensor *t, int64_t head)
{
    return (struct mha__input){t->data, t->stride[0], t->stride[1],
                               t->rank == 4 ? t->stride[2] : head};
}

static struct mha__weight weight_of(const struct mha__linear *linear)
{
    return (struct mha__weight){linear->out, linear->in, linear->width, linear->tiles,
                                linear->bias};
}

static void describe_problem(const mha_layer *layer,
                             const mha_mask *mask,
                             const mha_call *call,
                             const struct sizes *sizes,
                             struct mha__problem *p)
{
    *p = (struct mha__problem){
        .B = sizes->B,
        .T = sizes->T,
        .S = sizes->S,
        .H = layer->H,
        .G = layer->G,
        .D = layer->D,
        .Dv = layer->Dv,
        .Eq = layer->width[0],
        .Ek = layer->width[1],
        .Ev = layer->width[2],
        .Eo = layer->width[3],
        .scale = layer->scale,
        .query = input_of(&call->tensor[MHA_TENSOR_QUERY], layer->D),
        .key = input_of(&call->tensor[MHA_TENSOR_KEY], layer->D),
        .value = input_of(&call->tensor[MHA_TENSOR_VALUE], layer->Dv),
        .rules = mask ? &mask->rules : NULL,
    };
    for (int side = 0; side < MHA__PROJECTIONS; side++) {
        p->weight[side] = weight_of(&layer->linear[side]);
    }
    const struct mha__tensor *out = &call->tensor[MHA_TENSOR_OUTPUT];
    const struct mha__input strides = input_of(out, layer->Dv);
    p->out = (struct mha__output){out->data, strides.batch, strides.token, strides.head};
    p->weights = call->tensor[MHA_TENSOR_WEIGHTS].data;
    p->lse = call->tensor[MHA_TENSOR_LSE].data;
    for (int i = 0; i < 3; i++) {
        p->weights_stride[i] = call->tensor[MHA_TENSOR_WEIGHTS].stride[i];
        p->lse_stride[i] = call->tensor[MHA_TENSOR_LSE].stride[i];
    }
}

void mha__run_request(const mha_context *ctx,
                      const mha_layer *layer,
                      const mha_mask *mask,
                      int64_t B,
                      int64_t T,
                      int64_t S,
                      bool weights,
                      struct mha__planner_request *request)
{
    *request = (struct mha__planner_request){
        .B = B,
        .T = T,
        .S = S,
        .H = layer->H,
        .G = layer->G,
        .D = layer->D,
        .Dv = layer->Dv,
        .Eq = layer->width[0],
        .Ek = layer->width[1],
        .Ev = layer->width[2],
        .Eo = layer->width[3],
        .project_q = layer->linear[0].tiles,
        .project_k = layer->linear[1].tiles,
        .project_v = layer->linear[2].tiles,
        .project_out = layer->linear[3].tiles,
        .banded = mha__visibility_is_banded(mask ? &mask->rules : NULL),
        .weights = weights,
        .threads = mha__context_executor(ctx).threads,
    };
    mha__blas_ask(&request->blas);
}

/* Whether the rows of some projected input do not lie at one distance. */
static bool must_gather(const struct mha__problem *p)
{
    const struct mha__input *input[] = {&p->query, &p->key, &p->value};
    const int64_t tokens[] = {p->T, p->S, p->S};
    for (int side = 0; side < MHA__INPUTS; side++) {
        const struct mha__weight *w = &p->weight[side];
        if (w->tiles && tokens[side] > 0 &&
            mha__project_row_distance(input[side], p->B, tokens[side], w->in) == 0) {
            return true;
        }
    }
    return false;
}

int32_t mha__run(mha_context *ctx,
                 const mha_layer *layer,
                 const mha_mask *mask,
                 const mha_call *call,
                 mha_error *err)
{
    struct sizes sizes = {0, 0, 0};
    MHA_TRY(check_shapes(layer, call, &sizes, err));
    MHA_TRY(mha__run_check_sizes(layer, sizes.B, sizes.T, sizes.S, err));
    MHA_TRY(mha__mask_fits(mask, sizes.B, layer->H, sizes.T, sizes.S, err));
    MHA_TRY(check_overlap(call, err));
    MHA_TRY(mha__parameter_all_set(layer, err));
    if (sizes.B == 0 || sizes.T == 0) {
        return mha__error_clear(err);
    }
    MHA_TRY(mha__blas_check(0, err));

    struct mha__problem problem;
    describe_problem(layer, mask, call, &sizes, &problem);
    struct mha__planner_request request;
    mha__run_request(ctx, layer, mask, sizes.B, sizes.T, sizes.S, problem.weights != NULL,
                     &request);
    request.gather = must_gather(&problem);
    struct mha__means means = {.kernels = mha__kernels_chosen(),
                               .blas = request.blas,
                               .executor = mha__context_executor(ctx)};
    MHA_CHECK(err, mha__planner_make(&request, &means.plan), MHA_ERROR_TOO_LARGE,
              "B = %lld, T = %lld, S = %lld: the workspace passes 2^63 bytes", (long long)sizes.B,
              (long long)sizes.T, (long long)sizes.S);
    MHA_TRY(mha__context_reserve(ctx, means.plan.bytes, err));
    means.executor.threads = (int32_t)means.plan.lanes;
    means.workspace = ctx->workspace;
    MHA_TRY(mha__flow_forward(&problem, &means, err));
    return mha__error_clear(err);
}

int32_t mha__run_contiguous(mha_context *ctx,
                            const mha_layer *layer,
                            int64_t B,
                            int64_t T,
                            int64_t S,
                            const float *query,
                            const float *key,
                            const float *value,
                            const mha_mask *mask,
                            float *out,
                            mha_error *err)
{
    MHA_TRY(mha__run_check_sizes(layer, B, T, S, err));
    mha_call call = {.magic = MHA__MAGIC_CALL};
    const int64_t tokens[] = {T, S, S, T};
    const float *const inputs[] = {query, key, value};
    for (int32_t id = 0; id <= MHA_TENSOR_OUTPUT; id++) {
        const int64_t shape[] = {B, tokens[id], layer->width[id]};
        MHA_TRY(id < MHA__INPUTS
                    ? mha_call_set_input(&call, id, MHA_FLOAT32, inputs[id], 3, shape, NULL, err)
                    : mha_call_set_output(&call, id, MHA_FLOAT32, out, 3, shape, NULL, err));
    }
    return mha__run(ctx, layer, mask, &call, err);
}
