/* SPDX-License-Identifier: Apache-2.0 */
#include "flow/project.h"

#include "attention/pack.h"
#include "kernels/product.h"
#include "platform/sizes.h"

#include <string.h>

/* Rows r0 .. r0+rows-1 of all B * tokens rows, outputs n0 .. n0+columns-1; y [rows, columns] with ld, and
 * the bias that is not in it yet, or NULL. */
struct tile {
    int64_t r0, rows;
    int64_t n0, columns;
    float *y;
    int64_t ld;
    const float *bias;
};

/* One packing task of a tensor that holds heads: one key tile of one key-value head. */
static int64_t packing_tasks(const struct mha__projection *p)
{
    return p->problem->B * p->problem->G * p->means->plan.key_tiles;
}

/* Columns of a task: a tile of the weight, or an even part of it; few rows read whole rows of a tile. */
static int64_t task_columns(const struct mha__projection *p)
{
    const struct mha__planner_plan *plan = &p->means->plan;
    const int64_t width = p->weight->width;
    const bool few = p->problem->B * p->tokens <= plan->few_rows;
    return few ? width : mha__smaller(width, plan->columns);
}

int64_t mha__project_tasks(const struct mha__projection *p)
{
    if (!p->weight->tiles) {
        return p->target == MHA__PROJECT_TO_ROWS ? 0 : packing_tasks(p);
    }
    return mha__tiles_of(p->problem->B * p->tokens, p->means->plan.row_tile) *
           mha__tiles_of(p->weight->out, task_columns(p));
}

int64_t
mha__project_row_distance(const struct mha__input *x, int64_t B, int64_t tokens, int64_t features)
{
    const int64_t distance = tokens == 1 ? x->batch : x->token;
    const bool even = B == 1 || tokens == 1 || x->batch == tokens * x->token;
    return B * tokens == 1                                         ? features
           : even && distance >= features && distance <= INT32_MAX ? distance
                                                                   : 0;
}

/* The input rows of a tile as a matrix with one distance between rows; copied where the tensor has
 * none. */
static const float *
input_rows(const struct mha__projection *p, const struct tile *tile, int64_t lane, int64_t *ld)
{
    const struct mha__input *x = &p->from;
    *ld = mha__project_row_distance(x, p->problem->B, p->tokens, p->weight->in);
    if (*ld > 0) {
        return x->data + tile->r0 * *ld;
    }
    float *rows = (void *)(mha__lane(p->means, lane) + p->means->plan.lane.gathered);
    for (int64_t r = 0; r < tile->rows; r++) {
        const int64_t row = tile->r0 + r;
        memcpy(rows + r * p->weight->in,
               x->data + row / p->tokens * x->batch + row % p->tokens * x->token,
               (size_t)p->weight->in * sizeof *rows);
    }
    *ld = p->weight->in;
    return rows;
}

static void store_rows(const struct mha__projection *p, const struct tile *tile)
{
    struct mha__row_rules rules = {.queries = p->tokens};
    int64_t rules_of = -1;
    for (int64_t r = 0; r < tile->rows; r++) {
        const int64_t b = (tile->r0 + r) / p->tokens;
        const int64_t t = (tile->r0 + r) % p->tokens;
        if (p->zero_padding && b != rules_of) {
            mha__visibility_of_batch_row(p->problem->rules, b, 0, p->problem->T, p->problem->S,
                                         &rules);
            rules_of = b;
        }
        float *row = p->to.data + b * p->to.batch + t * p->to.token + tile->n0;
        const float *y = tile->y + r * tile->ld;
        if (t >= rules.queries) {
            memset(row, 0, (size_t)tile->columns * sizeof *row);
        } else if (row != y || tile->bias) {
            p->means->kernels->biased_copy(row, y, tile->bias, tile->columns);
        }
    }
}

/* Cuts a tile at batch rows, key tiles and heads, and packs the pieces. */
static void store_packed(const struct mha__projection *p, const struct tile *tile)
{
    const bool keys = p->target == MHA__PROJECT_TO_KEYS;
    const int64_t head = keys ? p->problem->D : p->problem->Dv;
    const int64_t width = p->means->plan.key_tile;
    for (int64_t r = 0; tile->bias && r < tile->rows; r++) {
        float *row = tile->y + r * tile->ld;
        p->means->kernels->biased_copy(row, row, tile->bias, tile->columns);
    }
    for (int64_t r = 0, nj; r < tile->rows; r += nj) {
        const int64_t b = (tile->r0 + r) / p->tokens;
        const int64_t j = (tile->r0 + r) % p->tokens;
        nj = mha__smaller(tile->rows - r, mha__smaller(width - j % width, p->tokens - j));
        for (int64_t c = 0, nd; c < tile->columns; c += nd) {
            const int64_t g = (tile->n0 + c) / head;
            const int64_t d = (tile->n0 + c) % head;
            nd = mha__smaller(tile->columns - c, head - d);
            (keys ? mha__pack_keys : mha__pack_values)(p->problem, p->means, b, g, j, nj, d, nd,
                                                       tile->y + r * tile->ld + c, tile->ld);
        }
    }
}

static void pack_heads(const struct mha__projection *p, int64_t task)
{
    const struct mha__planner_plan *plan = &p->means->plan;
    const int64_t j = task % plan->key_tiles * plan->key_tile;
    const int64_t g = task / plan->key_tiles % p->problem->G;
    const int64_t b = task / plan->key_tiles / p->problem->G;
    const float *from = p->from.data + b * p->from.batch + j * p->from.token + g * p->from.head;
    const bool keys = p->target == MHA__PROJECT_TO_KEYS;
    (keys ? mha__pack_keys : mha__pack_values)(
        p->problem, p->means, b, g, j, mha__smaller(plan->key_tile, p->tokens - j), 0,
        keys ? p->problem->D : p->problem->Dv, from, p->from.token);
}

/*
 * Chooses where a tile is computed: in its destination if that is plain rows at one distance and whole panels
 * of them, else in scratch memory.
 */
static void place(const struct mha__projection *p, struct tile *tile, int64_t lane)
{
    const int64_t panel = p->means->kernels->panel;
    const struct mha__input to = {p->to.data, p->to.batch, p->to.token, p->to.head};
    const int64_t ld = mha__project_row_distance(&to, p->problem->B, p->tokens, p->weight->out);
    if (p->target == MHA__PROJECT_TO_ROWS && ld > 0 && tile->columns % panel == 0) {
        tile->y = p->to.data + tile->r0 * ld + tile->n0;
        tile->ld = ld;
    } else {
        tile->y = (void *)(mha__lane(p->means, lane) + p->means->plan.lane.product);
        tile->ld = mha__tiles_of(tile->columns, panel) * panel;
    }
}

/*
 * Y = X W^T + b by our own kernel, over parts of the inputs, so that a panel stays near. The bias
 * is what the sums of the first part are added to.
 */
static void
panel_products(const struct mha__projection *p, struct tile *tile, const float *x, int64_t ldx)
{
    const struct mha__kernels *kernels = p->means->kernels;
    float bias[MHA__WEIGHT_TILE_MOST]; // whole panels of it
    if (tile->bias) {
        memset(bias, 0, sizeof bias);
        memcpy(bias, tile->bias, (size_t)tile->columns * sizeof *bias);
    }
    const int64_t in = p->weight->in;
    const int64_t part = mha__tiles_of(in, mha__tiles_of(in, p->means->plan.k_block));
    const float *panels = p->weight->panels + tile->n0 * in;
    for (int64_t k = 0; k < in; k += part) {
        // Y += X[:, k] W[:, k]^T
        const float *start = k > 0 ? tile->y : tile->bias ? bias : NULL;
        kernels->panel_product(tile->rows, tile->columns, mha__smaller(part, in - k), x + k, ldx,
                               panels + k * kernels->panel, in * kernels->panel, start,
                               k > 0 ? tile->ld : 0, tile->y, tile->ld);
    }
    tile->bias = NULL;
}

/* The same by the BLAS, or for few rows by a kernel that reads W where it lies, transposed, [in][columns]. */
static void plain_products(const struct mha__projection *p,
                           const struct tile *tile,
                           const float *x,
                           int64_t ldx)
{
    const struct mha__weight *w = p->weight;
    const int64_t first = tile->n0 / w->width * w->width; // the columns of its weight tile
    const int64_t columns = mha__smaller(w->width, w->out - first);
    const float *weight = w->tiles + first * w->in + (tile->n0 - first);
    for (int64_t k = 0, nk; k < p->weight->in; k += nk) {
        nk = mha__smaller(p->means->plan.k_block, p->weight->in - k);
        // Y += X[:, k] W[:, k]^T
        mha__product_nn(p->means->kernels, &p->means->blas, p->means->plan.few_rows, tile->rows,
                        tile->columns, nk, x + k, ldx, weight + k * columns, columns,
                        k > 0 ? 1.0f : 0.0f, tile->y, tile->ld);
    }
}

void mha__project_task(const struct mha__projection *p, int64_t task, int64_t lane)
{
    struct mha__profile_lane *clock = mha__profile_lane(p->means->executor.profile, lane);
    mha__profile_to(clock, MHA__PROFILE_PACKING);
    if (!p->weight->tiles) {
        pack_heads(p, task);
        mha__profile_to(clock, MHA__PROFILE_OTHER);
        return;
    }
    const struct mha__weight *w = p->weight;
    const struct mha__planner_plan *plan = &p->means->plan;
    const int64_t width = task_columns(p);
    const int64_t columns = mha__tiles_of(w->out, width);
    struct tile tile = {.r0 = task / columns * plan->row_tile, .n0 = task % columns * width};
    tile.rows = mha__smaller(plan->row_tile, p->problem->B * p->tokens - tile.r0);
    tile.columns = mha__smaller(width, w->out - tile.n0);
    tile.bias = w->bias ? w->bias + tile.n0 : NULL;
    place(p, &tile, lane);
    int64_t ldx = 0;
    const float *x = input_rows(p, &tile, lane, &ldx);
    mha__profile_to(clock, MHA__PROFILE_PROJECTIONS);
    if (plan->fused && tile.rows > plan->few_rows) {
        panel_products(p, &tile, x, ldx);
    } else {
        plain_products(p, &tile, x, ldx);
    }
    mha__profile_to(clock, MHA__PROFILE_PACKING);
    if (p->target == MHA__PROJECT_TO_ROWS) {
        store_rows(p, &tile);
    } else {
        store_packed(p, &tile);
    }
    mha__profile_to(clock, MHA__PROFILE_OTHER);
}
