/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/pack.h"

#include "platform/sizes.h"

#include <stdatomic.h>

float *mha__pack_key_tile(
    const struct mha__problem *p, const struct mha__means *m, int64_t b, int64_t g, int64_t tile)
{
    float *keys = mha__piece(m, m->plan.keys);
    return keys + mha__pack_tile_number(p, m, b, g, tile) * p->D * m->plan.key_tile;
}

float *mha__pack_value_tile(
    const struct mha__problem *p, const struct mha__means *m, int64_t b, int64_t g, int64_t tile)
{
    float *values = mha__piece(m, m->plan.values);
    return values +
           mha__pack_tile_number(p, m, b, g, tile) * m->plan.value_keys * m->plan.values_ld;
}

/* Several tasks may note one tile (column tiles of a projection): so the byte is atomic. */
static _Atomic unsigned char *note_of(
    const struct mha__problem *p, const struct mha__means *m, int64_t b, int64_t g, int64_t tile)
{
    _Atomic unsigned char *notes = mha__piece(m, m->plan.nonfinite);
    return notes + mha__pack_tile_number(p, m, b, g, tile);
}

void mha__pack_note(
    const struct mha__problem *p, const struct mha__means *m, int64_t b, int64_t g, int64_t tile)
{
    atomic_store_explicit(note_of(p, m, b, g, tile), 1, memory_order_relaxed);
}

enum { AT_ONCE = 16 /* keys; as many after them are asked for */ };

void mha__pack_keys(const struct mha__problem *problem,
                    const struct mha__means *means,
                    int64_t b,
                    int64_t g,
                    int64_t j0,
                    int64_t nj,
                    int64_t d0,
                    int64_t nd,
                    const float *from,
                    int64_t ld)
{
    const struct mha__planner_plan *plan = &means->plan;
    float *tile = mha__pack_key_tile(problem, means, b, g, j0 / plan->key_tile);
    int64_t c = j0 % plan->key_tile;
    const int64_t width = plan->key_panel;
    for (int64_t done = 0, n; done < nj; done += n, c += n) {
        n = mha__smaller(nj - done, AT_ONCE);
        const bool panels = plan->transposed && c % width == 0 && n >= width;
        n = panels ? n / width * width : mha__smaller(n, width - c % width);
        for (int64_t j = done + n; j < mha__smaller(done + n + AT_ONCE, nj); j++) {
            mha__prefetch(from + j * ld, nd);
        }
        // tile[d][c] = k[c][d], a panel at a time, or several
        float *to = tile + mha__pack_key_at(problem, plan, c, d0);
        if (panels) {
            means->kernels->transpose_panels(to, width * problem->D, from + done * ld, ld, n, nd);
        } else {
            means->kernels->transpose(to, width, from + done * ld, ld, n, nd);
        }
    }
}

void mha__pack_values(const struct mha__problem *problem,
                      const struct mha__means *means,
                      int64_t b,
                      int64_t g,
                      int64_t j0,
                      int64_t nj,
                      int64_t d0,
                      int64_t nd,
                      const float *from,
                      int64_t ld)
{
    const struct mha__planner_plan *plan = &means->plan;
    float *tile = mha__pack_value_tile(problem, means, b, g, j0 / plan->key_tile);
    const int64_t c = j0 % plan->key_tile;
    const int64_t stride = plan->value_keys * plan->value_panel;
    bool finite = true;
    for (int64_t d = 0, n; d < nd; d += n) {
        // a piece may begin within a panel, and then ends with it
        const int64_t within = (d0 + d) % plan->value_panel;
        n = within == 0 ? nd - d : mha__smaller(nd - d, plan->value_panel - within);
        finite &= means->kernels->panel_copy(tile + mha__pack_value_at(plan, c, d0 + d),
                                             plan->value_panel, stride, from + d, ld, nj, n);
    }
    if (!finite) {
        mha__pack_note(problem, means, b, g, j0 / plan->key_tile);
    }
}

bool mha__pack_is_noted(
    const struct mha__problem *p, const struct mha__means *m, int64_t b, int64_t g, int64_t tile)
{
    return atomic_load_explicit(note_of(p, m, b, g, tile), memory_order_relaxed) != 0;
}
