/* SPDX-License-Identifier: Apache-2.0 */
#include "sweep_layout.h"

/* Gaps between rows and between batch rows, in numbers. */
enum { ROW_GAP = 5, BATCH_GAP = 7 };

typedef enum layout {
    CONTIGUOUS,
    FOUR_AXES,
    PADDED,
    FUSED,      /* q, k and v side by side in each row of one buffer */
    HEAD_MAJOR, /* [B,H,T,D]; where a projection is on [T,B,E] */
    ONE_BATCH,  /* k and v the same for every batch row: stride 0 */
    ONE_TOKEN   /* all queries the same token: stride 0 */
} layout;

/* heads = 0: a projection is on, the tensor holds tokens of `width` features. */
typedef struct tokens {
    int64_t batch, count, heads, width;
} tokens;

static void lay(tensor *t, tokens x, layout l)
{
    const int64_t three[3] = {x.batch, x.count, x.width};
    const int64_t size = x.heads ? x.width / x.heads : x.width;
    const int64_t four[4] = {x.batch, x.count, x.heads, size};
    const int64_t row = x.width + ROW_GAP;
    switch (l) {
    case PADDED:
        tensor_create(t, 3, three, (int64_t[]){x.count * row + BATCH_GAP, row, 1});
        break;
    case HEAD_MAJOR:
        if (x.heads) {
            tensor_create(t, 4, four, (int64_t[]){x.width * x.count, size, size * x.count, 1});
        } else {
            tensor_create(t, 3, three, (int64_t[]){x.width, x.width * x.batch, 1});
        }
        break;
    case FOUR_AXES:
        if (x.heads) {
            tensor_create(t, 4, four, NULL);
            break;
        }
        tensor_create(t, 3, three, NULL);
        break;
    case ONE_BATCH:
        tensor_create(t, 3, three, (int64_t[]){0, x.width, 1});
        break;
    case ONE_TOKEN:
        tensor_create(t, 3, three, (int64_t[]){x.width, 0, 1});
        break;
    default:
        tensor_create(t, 3, three, NULL);
        break;
    }
}

/* The block belongs to the query; key and value are views of it. */
static void lay_fused(trial *p)
{
    const int64_t rows = p->T > p->S ? p->T : p->S;
    const int64_t row = p->Eq + p->Ek + p->Ev + ROW_GAP;
    const int64_t strides[3] = {rows * row + BATCH_GAP, row, 1};
    const int64_t whole[3] = {p->B, rows, row};
    tensor block;
    tensor_create(&block, 3, whole, strides);
    float *first = block.data;
    tensor_view(&p->query, first, 3, (int64_t[]){p->B, p->T, p->Eq}, strides);
    tensor_view(&p->key, first + p->Eq, 3, (int64_t[]){p->B, p->S, p->Ek}, strides);
    tensor_view(&p->value, first + p->Eq + p->Ek, 3, (int64_t[]){p->B, p->S, p->Ev}, strides);
    p->query.block = block.block;
    p->query.count = block.count;
}

/* Contiguous; rows with gaps; rows with gaps and the axes before the row the other way round. */
static void lay_result(trial *p, int32_t id, int level, float fill)
{
    int64_t n[4], strides[4] = {1, 1, 1, 1};
    const int32_t rank = trial_result_shape(p, id, n);
    const int64_t row = n[rank - 1] + ROW_GAP;
    strides[rank - 1] = 1;
    if (rank == 2) {
        strides[0] = row;
    } else if (rank == 3) {
        strides[1] = level == 1 ? row : row * n[0];
        strides[0] = level == 1 ? row * n[1] + BATCH_GAP : row;
    } else {
        strides[2] = level == 1 ? row : row * n[1];
        strides[1] = level == 1 ? row * n[2] : row;
        strides[0] = row * n[1] * n[2] + BATCH_GAP;
    }
    tensor_create(trial_result(p, id), rank, n, level == 0 ? NULL : strides);
    tensor_flood(trial_result(p, id), fill);
}

static void lay_results(const sweep_case *c, trial *p, float fill)
{
    const int weights = c->level[SWEEP_WEIGHTS], stages = c->level[SWEEP_STAGES];
    const int statistics = c->level[SWEEP_STATISTICS];
    /* none, the first, the second ... , all */
    const struct wish {
        int32_t id;
        int wanted;
    } wishes[TRIAL_RESULTS] = {
        {MHA_TENSOR_WEIGHTS_MEAN, weights == 1 || weights == 5},
        {MHA_TENSOR_WEIGHTS_DROPPED, weights == 2 || weights == 5},
        {MHA_TENSOR_SCORES_SCALED, stages == 1 || stages == 4},
        {MHA_TENSOR_SCORES_CAPPED, stages == 2 || stages == 4},
        {MHA_TENSOR_SCORES_BIASED, stages == 3 || stages == 4},
        {MHA_TENSOR_ENTROPY, statistics == 1 || statistics == 5},
        {MHA_TENSOR_MAXIMUM, statistics == 2 || statistics == 5},
        {MHA_TENSOR_KEY_MASS, statistics == 3 || statistics == 5},
        {MHA_TENSOR_KEY_MASS_TOTAL, statistics == 4 || statistics == 5},
    };
    for (int n = 0; n < TRIAL_RESULTS; ++n) {
        if (wishes[n].wanted) {
            lay_result(p, wishes[n].id, c->level[SWEEP_OUTPUT_LAYOUT], fill);
        }
    }
    if (weights >= 3) {
        trial_ask_stream(p, weights == 3 ? CALLBACK_PLAIN : CALLBACK_CONCURRENT);
    }
    if (c->level[SWEEP_TOP_KEYS] > 0) {
        trial_ask_top(p, c->level[SWEEP_TOP_KEYS] == 1 ? 1 : 5, c->level[SWEEP_TOP_KEYS] == 2);
    }
}

void sweep_layout(const sweep_case *c, trial *p, float output_fill)
{
    const layout l = (layout)c->level[SWEEP_INPUT_LAYOUT];
    const int32_t *on = p->projection;
    if (l == FUSED) {
        lay_fused(p);
    } else {
        lay(&p->query, (tokens){p->B, p->T, on[MHA_PROJECTION_Q] ? 0 : p->H, p->Eq},
            l == ONE_BATCH ? CONTIGUOUS : l);
        lay(&p->key, (tokens){p->B, p->S, on[MHA_PROJECTION_K] ? 0 : p->G, p->Ek},
            l == ONE_TOKEN ? CONTIGUOUS : l);
        lay(&p->value, (tokens){p->B, p->S, on[MHA_PROJECTION_V] ? 0 : p->G, p->Ev},
            l == ONE_TOKEN ? CONTIGUOUS : l);
    }
    static const layout outputs[3] = {CONTIGUOUS, PADDED, HEAD_MAJOR};
    const int level = c->level[SWEEP_OUTPUT_LAYOUT];
    /* output alone, with weights, with lse, all three, weights alone, lse alone */
    static const int wanted[6] = {1, 3, 5, 7, 2, 4};
    const int set = wanted[c->level[SWEEP_OUTPUTS]];
    if (set & 1) {
        lay(&p->output, (tokens){p->B, p->T, on[MHA_PROJECTION_OUT] ? 0 : p->H, p->Eo},
            outputs[level]);
        tensor_flood(&p->output, output_fill);
    }
    if (set & 2) {
        lay_result(p, MHA_TENSOR_WEIGHTS, level, output_fill);
    }
    if (set & 4) {
        lay_result(p, MHA_TENSOR_LSE, level, output_fill);
    }
    lay_results(c, p, output_fill);
}
