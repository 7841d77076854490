/* SPDX-License-Identifier: Apache-2.0 */
#include "api/run.h"

#include "attention/attend.h"
#include "attention/rotary.h"
#include "flow/flow_forward.h"
#include "flow/project.h"
#include "platform/blas_check.h"

/* Check, plan, make room, go. */

void mha__run_request(const mha_context *ctx,
                      const mha_layer *layer,
                      const mha_mask *mask,
                      int64_t B,
                      int64_t T,
                      int64_t S,
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
        .Eq = layer->width[MHA_PROJECTION_Q],
        .Ek = layer->width[MHA_PROJECTION_K],
        .Ev = layer->width[MHA_PROJECTION_V],
        .project_q = layer->linear[MHA_PROJECTION_Q].tiles,
        .project_k = layer->linear[MHA_PROJECTION_K].tiles,
        .project_v = layer->linear[MHA_PROJECTION_V].tiles,
        .project_out = layer->linear[MHA_PROJECTION_OUT].tiles,
        .banded = mha__visibility_is_banded(mask ? &mask->rules : NULL),
        .extra = mha__run_extra_keys(layer),
        .rotary_size = layer->rotary.size,
        .rotary_key_tables = layer->rotary.size > 0 ? 1 : 0,
        .threads = mha__context_executor(ctx).threads,
        .fused = ctx->engine == MHA_ENGINE_FUSED,
        .by_rows = mask && mask->rules.alibi,
        .panel = mha__kernels_chosen()->panel,
        .query_panel = mha__kernels_chosen()->query_panel,
        .row_panel = mha__kernels_chosen()->row_panel,
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

/* What the outputs of a problem ask of the planner. */
static void request_outputs(const struct mha__problem *p, struct mha__planner_request *request)
{
    request->gather = must_gather(p);
    request->weights = mha__attend_wants_weights(p);
    request->block = request->weights && !p->weights.data;
    request->heads_together = p->weights_mean.data != NULL;
    request->masses = p->key_mass.data || p->key_mass_total.data;
    request->scores = mha__attend_wants_scores(p) || p->score_callback;
    request->by_rows |= p->biases > 0 || p->dropout > 0.0 || p->entropy.data;
    request->top = p->top;
    request->rotary_key_tables = p->rotary_size > 0 ? mha__rotary_key_tables(p) : 0;
    if (p->one_thread) {
        request->threads = 1;
    }
}

/* The weights as the fused engine multiplies more than a few rows by them. */
static int32_t find_panels(const mha_layer *layer,
                           const struct mha__planner_plan *plan,
                           struct mha__problem *p,
                           mha_error *err)
{
    const int64_t tokens[] = {p->T, p->S, p->S, p->T};
    bool many = false;
    for (int side = 0; side < MHA__PROJECTIONS; side++) {
        many = many || (p->weight[side].tiles && p->B * tokens[side] > plan->few_rows);
    }
    if (plan->fused && many) {
        const float *panels[MHA__PROJECTIONS];
        MHA_TRY(mha__panels_find(layer, panels, err));
        for (int side = 0; side < MHA__PROJECTIONS; side++) {
            p->weight[side].panels = panels[side];
        }
    }
    return MHA_OK;
}

static int32_t run(mha_context *ctx,
                   const mha_layer *layer,
                   const mha_mask *mask,
                   const mha_call *call,
                   int32_t *lanes,
                   mha_error *err)
{
    struct mha__problem problem;
    MHA_TRY(mha__run_describe(layer, mask, call, &problem, err));
    if (problem.B == 0 || problem.T == 0) {
        return mha__error_clear(err);
    }
    MHA_TRY(mha__blas_check(0, err));

    struct mha__planner_request request;
    mha__run_request(ctx, layer, mask, problem.B, problem.T, problem.S, &request);
    request_outputs(&problem, &request);
    struct mha__means means = {.kernels = mha__kernels_chosen(),
                               .blas = request.blas,
                               .executor = mha__context_executor(ctx)};
    MHA_CHECK(err, mha__planner_make(&request, &means.plan), MHA_ERROR_TOO_LARGE,
              "B = %lld, T = %lld, S = %lld: the workspace passes 2^63 bytes", (long long)problem.B,
              (long long)problem.T, (long long)problem.S);
    MHA_TRY(find_panels(layer, &means.plan, &problem, err));
    MHA_TRY(mha__context_reserve(ctx, means.plan.bytes, err));
    means.executor.threads = (int32_t)means.plan.lanes;
    if (problem.one_thread) {
        means.executor = (struct mha__executor){.threads = 1, .profile = ctx->profile};
    }
    means.workspace = ctx->workspace;
    *lanes = means.executor.threads;
    MHA_TRY(mha__flow_forward(&problem, &means, err));
    return mha__error_clear(err);
}

int32_t mha__run(mha_context *ctx,
                 const mha_layer *layer,
                 const mha_mask *mask,
                 const mha_call *call,
                 mha_error *err)
{
    struct mha__profile *profile = ctx->profile;
    const uint64_t begin = profile ? mha__profile_ticks() : 0;
    int32_t lanes = 1;
    const int32_t status = run(ctx, layer, mask, call, &lanes, err);
    if (profile) {
        const uint64_t ticks = mha__profile_between(begin, mha__profile_ticks());
        profile->calls += ticks;
        profile->lane_calls += (uint64_t)lanes * ticks;
    }
    return status;
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
