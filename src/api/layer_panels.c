/* SPDX-License-Identifier: Apache-2.0 */
#include "api/run.h"
#include "platform/fpenv.h"
#include "platform/memory.h"
#include "platform/sizes.h"

/*
 * The weights of a layer once more, as panel_product reads them (see struct mha__weight). The tiles are for a
 * BLAS, which wants them wide; a panel of a tile lies in lines far apart, and copying it in every call costs
 * 10 to 20 % of the product. So the first call of the fused engine (of more than a few rows) makes panels of
 * all weights, one block, and the layer keeps them until a weight changes. Of calls that are first at once each makes its own, one wins,
 * the others throw theirs away.
 */

/* Numbers of a side, [panels][in][panel]. */
static int64_t numbers_of(const struct mha__linear *linear)
{
    const int64_t panel = mha__kernels_chosen()->panel;
    return linear->tiles ? mha__tiles_of(linear->out, panel) * panel * linear->in : 0;
}

static void fill(const struct mha__linear *linear, float *panels)
{
    const struct mha__kernels *kernels = mha__kernels_chosen();
    const int64_t in = linear->in;
    for (int64_t o = 0, columns; linear->tiles && o < linear->out; o += columns) {
        columns = mha__smaller(linear->width, linear->out - o);
        (void)kernels->panel_copy(panels + o * in, kernels->panel, in * kernels->panel,
                                  linear->tiles + o * in, columns, in, columns);
    }
}

static int64_t all_numbers(const mha_layer *layer)
{
    int64_t numbers = 0;
    for (int32_t side = 0; side < MHA__PROJECTIONS; side++) {
        numbers += numbers_of(&layer->linear[side]);
    }
    return numbers;
}

static float *make(const mha_layer *layer)
{
    const int64_t numbers = all_numbers(layer);
    float *panels = mha__memory_allocate_zeroed((size_t)numbers * sizeof *panels);
    float *at = panels;
    struct mha__fpenv hosts;
    mha__fpenv_enter(&hosts); // panel_copy looks for what is not finite, which raises flags
    for (int32_t side = 0; panels && side < MHA__PROJECTIONS; side++) {
        fill(&layer->linear[side], at);
        at += numbers_of(&layer->linear[side]);
    }
    mha__fpenv_leave(&hosts);
    return panels;
}

int32_t
mha__panels_find(const mha_layer *layer, const float *sides[MHA__PROJECTIONS], mha_error *err)
{
    // a layer is const to its calls: they read the same numbers before and after
    _Atomic(float *) *kept = &((mha_layer *)layer)->panels;
    float *panels = atomic_load_explicit(kept, memory_order_acquire);
    if (!panels) {
        float *mine = make(layer);
        MHA_CHECK(err, mine, MHA_ERROR_OUT_OF_MEMORY,
                  "no memory for %lld bytes, the weights in panels for the fused engine",
                  (long long)mha__panels_bytes(layer));
        if (atomic_compare_exchange_strong_explicit(kept, &panels, mine, memory_order_acq_rel,
                                                    memory_order_acquire)) {
            panels = mine;
        } else {
            mha__memory_release(mine);
        }
    }
    for (int32_t side = 0; side < MHA__PROJECTIONS; side++) {
        sides[side] = layer->linear[side].tiles ? panels : NULL;
        panels += numbers_of(&layer->linear[side]);
    }
    return MHA_OK;
}

int64_t mha__panels_bytes(const mha_layer *layer)
{
    return all_numbers(layer) * (int64_t)sizeof(float);
}

void mha__panels_drop(mha_layer *layer)
{
    mha__memory_release(atomic_exchange_explicit(&layer->panels, NULL, memory_order_acq_rel));
}
