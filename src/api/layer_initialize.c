/* SPDX-License-Identifier: Apache-2.0 */
#include "api/objects.h"
#include "platform/fpenv.h"
#include "platform/philox.h"

#include <math.h>

/* Number `index` of a parameter, uniform in [-bound, bound). */
static float uniform(uint64_t seed, int32_t parameter, int64_t index, double bound)
{
    const uint64_t block = (uint64_t)index / 4;
    const struct mha__philox counter = {
        {(uint32_t)block, (uint32_t)(block >> 32), 0, (uint32_t)parameter}};
    const double u = (double)mha__philox_at(seed, counter).word[index % 4] * 0x1p-32;
    return (float)((2.0 * u - 1.0) * bound);
}

/* tiles[n][i][o - n width] <- w[o][i] */
static void fill_weight(struct mha__linear *linear, int32_t parameter, uint64_t seed, double bound)
{
    for (int64_t o = 0; o < linear->out; o++) {
        const int64_t first = o / linear->width * linear->width;
        const int64_t columns =
            linear->out - first < linear->width ? linear->out - first : linear->width;
        float *tile = linear->tiles + first * linear->in;
        for (int64_t i = 0; i < linear->in; i++) {
            tile[i * columns + o - first] = uniform(seed, parameter, o * linear->in + i, bound);
        }
    }
    linear->weight_is_set = true;
}

int32_t mha_layer_initialize(mha_layer *layer, uint64_t seed, mha_error *err)
{
    MHA_CHECK_HANDLE(err, layer, MHA__MAGIC_LAYER);
    const struct mha__linear *q = &layer->linear[MHA_PROJECTION_Q];
    const struct mha__linear *k = &layer->linear[MHA_PROJECTION_K];
    const struct mha__linear *v = &layer->linear[MHA_PROJECTION_V];
    const bool packed = q->tiles && k->tiles && v->tiles && q->in == k->in && k->in == v->in;
    struct mha__fpenv hosts;
    mha__fpenv_enter(&hosts);
    for (int32_t side = 0; side < MHA__PROJECTIONS; side++) {
        struct mha__linear *linear = &layer->linear[side];
        if (!linear->tiles) {
            continue;
        }
        const double fan_in = (double)linear->in;
        const double fan_out = (double)(packed ? q->out + k->out + v->out : linear->out);
        const double bound =
            side == MHA_PROJECTION_OUT ? 1.0 / sqrt(fan_in) : sqrt(6.0 / (fan_in + fan_out));
        fill_weight(linear, 2 * side, seed, bound); // MHA_PARAM_*_WEIGHT
        for (int64_t o = 0; linear->bias && o < linear->out; o++) {
            linear->bias[o] = 0.0f;
        }
        linear->bias_is_set = linear->bias != NULL;
    }
    mha__fpenv_leave(&hosts);
    return mha__error_clear(err);
}
