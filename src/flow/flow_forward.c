/* SPDX-License-Identifier: Apache-2.0 */
#include "flow/flow_forward.h"

#include "attention/attend.h"
#include "attention/rotary.h"
#include "flow/project.h"
#include "platform/status.h"

#include <mha/config.h>

#include <string.h>

/* The projections of one phase: their tasks are counted through. */
struct phase {
    int64_t projections;
    struct mha__projection projection[3];
};

static void phase_task(void *arg, int64_t task, int64_t lane)
{
    const struct phase *phase = arg;
    for (int64_t i = 0; i < phase->projections; i++) {
        const int64_t tasks = mha__project_tasks(&phase->projection[i]);
        if (task < tasks) {
            mha__project_task(&phase->projection[i], task, lane);
            return;
        }
        task -= tasks;
    }
}

static void angles_task(void *arg, int64_t task, int64_t lane)
{
    const struct mha__projection *common = arg;
    (void)lane;
    mha__rotary_task(common->problem, common->means, task);
}

static void turn_task(void *arg, int64_t tile, int64_t lane)
{
    const struct mha__projection *common = arg;
    (void)lane;
    mha__rotary_turn_keys(common->problem, common->means, tile);
}

/* Angles for every token, then the packed keys turn; queries turn when a task loads them. */
static int32_t turn_keys(struct mha__projection *common, mha_error *err)
{
    const struct mha__problem *p = common->problem;
    const struct mha__means *means = common->means;
    MHA_TRY(
        mha__parallel_for(&means->executor, mha__rotary_tasks(p, means), angles_task, common, err));
    return mha__parallel_for(&means->executor, p->B * p->G * means->plan.key_tiles, turn_task,
                             common, err);
}

static int32_t run_phase(struct phase *phase, const struct mha__means *means, mha_error *err)
{
    int64_t tasks = 0;
    for (int64_t i = 0; i < phase->projections; i++) {
        tasks += mha__project_tasks(&phase->projection[i]);
    }
    return mha__parallel_for(&means->executor, tasks, phase_task, phase, err);
}

/* The heads of a [B, T, heads, size] block of the workspace. */
static struct mha__input heads_in(const float *data, int64_t T, int64_t heads, int64_t size)
{
    return (struct mha__input){data, T * heads * size, heads * size, size};
}

static struct mha__output heads_out(float *data, int64_t T, int64_t heads, int64_t size)
{
    return (struct mha__output){data, T * heads * size, heads * size, size};
}

int32_t
mha__flow_forward(const struct mha__problem *p, const struct mha__means *means, mha_error *err)
{
    const struct mha__planner_plan *plan = &means->plan;
    const struct mha__weight *weight = p->weight;
    const bool project_q = weight[MHA_PROJECTION_Q].tiles != NULL;
    const bool project_k = weight[MHA_PROJECTION_K].tiles != NULL;
    const bool project_v = weight[MHA_PROJECTION_V].tiles != NULL;
    const bool project_out = p->out.data && weight[MHA_PROJECTION_OUT].tiles;
    float *q_heads = mha__piece(means, plan->q_heads);
    float *o_heads = mha__piece(means, plan->o_heads);
    float *k_heads = mha__piece(means, plan->keys);
    float *v_heads = mha__piece(means, plan->values);

    // Q = x_q Wq^T + bq    K = x_k Wk^T + bk    V = x_v Wv^T + bv;  K and V end packed, or as rows where
    // the plan has them unpacked. Without an output (the weights alone are asked for) nothing needs V.
    memset(mha__piece(means, plan->nonfinite), 0, (size_t)(p->B * p->G * plan->key_tiles));
    struct mha__projection common = {.problem = p, .means = means};
    struct phase in = {.projections = p->out.data ? 3 : 2, .projection = {common, common, common}};
    struct mha__projection *q = &in.projection[0];
    struct mha__projection *k = &in.projection[1];
    struct mha__projection *v = &in.projection[2];
    q->weight = &weight[MHA_PROJECTION_Q];
    q->from = p->query;
    q->tokens = p->T;
    q->target = MHA__PROJECT_TO_ROWS;
    q->to = heads_out(q_heads, p->T, p->H, p->D);
    k->weight = &weight[MHA_PROJECTION_K];
    k->from = p->key;
    k->tokens = p->S;
    k->target = plan->unpacked ? MHA__PROJECT_TO_ROWS : MHA__PROJECT_TO_KEYS;
    k->to = heads_out(k_heads, p->S, p->G, p->D);
    v->weight = &weight[MHA_PROJECTION_V];
    v->from = p->value;
    v->tokens = p->S;
    v->target = plan->unpacked ? MHA__PROJECT_TO_ROWS : MHA__PROJECT_TO_VALUES;
    v->to = heads_out(v_heads, p->S, p->G, p->Dv);
    MHA_TRY(run_phase(&in, means, err));
    if (p->rotary_size > 0) {
        MHA_TRY(turn_keys(&common, err));
    }

    // o = concat_h softmax(scale Q_h K_g^T) V_g
    const struct mha__input queries = project_q ? heads_in(q_heads, p->T, p->H, p->D) : p->query;
    const struct mha__input keys = project_k ? heads_in(k_heads, p->S, p->G, p->D) : p->key;
    const struct mha__input values = project_v ? heads_in(v_heads, p->S, p->G, p->Dv) : p->value;
    const struct mha__output heads = project_out ? heads_out(o_heads, p->T, p->H, p->Dv) : p->out;
    MHA_TRY(mha__attend(p, means, &queries, &keys, &values, &heads, err));

    // out = o Wo^T + bo; 0 at padded queries
    if (project_out) {
        struct phase out = {.projections = 1, .projection = {common}};
        out.projection[0].weight = &weight[MHA_PROJECTION_OUT];
        out.projection[0].from = heads_in(o_heads, p->T, p->H, p->Dv);
        out.projection[0].tokens = p->T;
        out.projection[0].target = MHA__PROJECT_TO_ROWS;
        out.projection[0].to = p->out;
        out.projection[0].zero_padding = true;
        MHA_TRY(run_phase(&out, means, err));
    }
    return MHA_OK;
}
