/* SPDX-License-Identifier: Apache-2.0 */
#include "api/objects.h"
#include "api/run.h"
#include "api/text.h"
#include "platform/fpenv.h"
#include "platform/memory.h"

#include <mha/plan.h>

#include <math.h>
#include <stdio.h>

static int64_t saturating_add(int64_t a, int64_t b, int64_t c, int64_t d)
{
    int64_t product = 0;
    int64_t sum = 0;
    return mha__product_fits(b, c, d, &product) && !__builtin_add_overflow(a, product, &sum)
               ? sum
               : INT64_MAX;
}

static int64_t
count_flops(const struct mha__planner_request *r, const mha_layer *layer, int64_t pairs)
{
    int64_t flops = saturating_add(0, 2 * pairs, r->D + r->Dv, 1);
    for (int side = 0; side < MHA__PROJECTIONS; side++) {
        const struct mha__linear *linear = &layer->linear[side];
        const bool keys = side == MHA_PROJECTION_K || side == MHA_PROJECTION_V;
        if (linear->tiles) {
            flops = saturating_add(flops, 2 * r->B * (keys ? r->S : r->T), linear->out, linear->in);
        }
    }
    return flops;
}

int32_t mha_plan_create(const mha_context *ctx,
                        const mha_layer *layer,
                        const mha_mask *mask,
                        int64_t B,
                        int64_t T,
                        int64_t S,
                        int32_t outputs,
                        mha_plan **out,
                        mha_error *err)
{
    MHA_CHECK_POINTER(err, out);
    *out = NULL;
    MHA_CHECK_HANDLE(err, ctx, MHA__MAGIC_CONTEXT);
    MHA_CHECK_HANDLE(err, layer, MHA__MAGIC_LAYER);
    MHA_CHECK(err, (outputs & ~(MHA_PLAN_WEIGHTS | MHA_PLAN_LSE)) == 0, MHA_ERROR_UNKNOWN_ID,
              "outputs %d; MHA_PLAN_WEIGHTS (1) and MHA_PLAN_LSE (2) are known", (int)outputs);
    MHA_TRY(mha__run_check_sizes(layer, B, T, S, err));
    MHA_TRY(mha__mask_fits(mask, B, layer->H, T, S, err));
    mha_plan plan = {.magic = MHA__MAGIC_PLAN};
    mha__run_request(ctx, layer, mask, B, T, S, &plan.request);
    plan.request.weights = (outputs & MHA_PLAN_WEIGHTS) != 0;
    MHA_CHECK(err, mha__planner_make(&plan.request, &plan.plan), MHA_ERROR_TOO_LARGE,
              "B = %lld, T = %lld, S = %lld: the workspace passes 2^63 bytes", (long long)B,
              (long long)T, (long long)S);
    plan.weights_bytes = outputs & MHA_PLAN_WEIGHTS
                             ? B * layer->H * T * (S + plan.request.extra) * (int64_t)sizeof(float)
                             : 0;
    const int64_t all = B * layer->H * T * S;
    const int64_t pairs = mha__visibility_pairs(mask ? &mask->rules : NULL, B, layer->H, T, S);
    plan.flops = count_flops(&plan.request, layer, pairs);
    struct mha__fpenv hosts;
    mha__fpenv_enter(&hosts);
    plan.visible_share = all > 0 ? (double)pairs / (double)all : 0.0;
    plan.visible_permille = (int32_t)(plan.visible_share * 1000.0);
    mha__fpenv_leave(&hosts);
    *out = mha__memory_allocate(sizeof **out);
    MHA_CHECK(err, *out, MHA_ERROR_OUT_OF_MEMORY, "no memory for a plan");
    **out = plan;
    return mha__error_clear(err);
}

void mha_plan_destroy(mha_plan *plan)
{
    if (plan) {
        plan->magic = 0;
        mha__memory_release(plan);
    }
}

int64_t mha_plan_workspace_bytes(const mha_plan *plan)
{
    return plan ? plan->plan.bytes : MHA_ERROR_NULL_ARGUMENT;
}

int64_t mha_plan_packed_bytes(const mha_plan *plan)
{
    return plan ? plan->plan.packed_bytes : MHA_ERROR_NULL_ARGUMENT;
}

int64_t mha_plan_weights_bytes(const mha_plan *plan)
{
    return plan ? plan->weights_bytes : MHA_ERROR_NULL_ARGUMENT;
}

int64_t mha_plan_flops(const mha_plan *plan)
{
    return plan ? plan->flops : MHA_ERROR_NULL_ARGUMENT;
}

int64_t mha_plan_tasks(const mha_plan *plan)
{
    return plan ? plan->plan.tasks : MHA_ERROR_NULL_ARGUMENT;
}

int64_t mha_plan_query_tile(const mha_plan *plan)
{
    return plan ? plan->plan.query_tile : MHA_ERROR_NULL_ARGUMENT;
}

int64_t mha_plan_key_tile(const mha_plan *plan)
{
    return plan ? plan->plan.key_tile : MHA_ERROR_NULL_ARGUMENT;
}

int32_t mha_plan_threads(const mha_plan *plan)
{
    return plan ? (int32_t)plan->plan.lanes : MHA_ERROR_NULL_ARGUMENT;
}

double mha_plan_visible_share(const mha_plan *plan)
{
    return plan ? plan->visible_share : (double)NAN;
}

const char *mha_plan_algorithm(const mha_plan *plan)
{
    return plan ? plan->plan.algorithm : NULL;
}

int64_t mha_plan_describe(const mha_plan *plan, char *buf, int64_t cap)
{
    char text[1024] = "";
    if (plan) {
        const struct mha__planner_request *r = &plan->request;
        const struct mha__planner_plan *p = &plan->plan;
        (void)snprintf(text, sizeof text,
                       "sizes      B=%lld T=%lld S=%lld H=%lld G=%lld D=%lld Dv=%lld\n"
                       "algorithm  %s\n"
                       "tiles      %lld queries x %lld keys\n"
                       "tasks      %lld on %lld threads\n"
                       "visible    %d.%d %% of the pairs, by position\n"
                       "flops      %lld\n"
                       "workspace  %lld bytes, %lld of them packed keys and values\n"
                       "weights    %lld bytes\n",
                       (long long)r->B, (long long)r->T, (long long)r->S, (long long)r->H,
                       (long long)r->G, (long long)r->D, (long long)r->Dv, p->algorithm,
                       (long long)p->query_tile, (long long)p->key_tile, (long long)p->tasks,
                       (long long)p->lanes, (int)plan->visible_permille / 10,
                       (int)plan->visible_permille % 10, (long long)plan->flops,
                       (long long)p->bytes, (long long)p->packed_bytes,
                       (long long)plan->weights_bytes);
    }
    return mha__text_copy(text, buf, cap);
}
