/* SPDX-License-Identifier: Apache-2.0 */
#include "api/run.h"
#include "platform/fpenv.h"
#include "platform/philox.h"

#include <math.h>

#define TWO_PI 6.283185307179586476925286766559

/* The four words of numbers index / 4 * 4 … of a parameter. */
static struct mha__philox words_of(uint64_t seed, int32_t parameter, int64_t index)
{
    const uint64_t block = (uint64_t)index / 4;
    const struct mha__philox counter = {
        {(uint32_t)block, (uint32_t)(block >> 32), 0, (uint32_t)parameter}};
    return mha__philox_at(seed, counter);
}

/* Number `index` of a parameter, uniform in [-bound, bound). */
static float uniform(uint64_t seed, int32_t parameter, int64_t index, double bound)
{
    const double u = (double)words_of(seed, parameter, index).word[index % 4] * 0x1p-32;
    return (float)((2.0 * u - 1.0) * bound);
}

/*
 * Number `index` of a parameter, normal with mean 0 (Box and Muller 1958): words 0, 1 of a block
 * give its numbers 0, 1 and words 2, 3 the other two, with u in (0, 1] and t in [0, 1):
 *   n = sqrt(-2 ln u) cos(2 pi t)  and  sqrt(-2 ln u) sin(2 pi t)
 */
static float normal(uint64_t seed, int32_t parameter, int64_t index, double deviation)
{
    const struct mha__philox x = words_of(seed, parameter, index);
    const int64_t pair = index % 4 / 2 * 2;
    const double u = ((double)x.word[pair] + 1.0) * 0x1p-32;
    const double t = (double)x.word[pair + 1] * 0x1p-32;
    const double radius = sqrt(-2.0 * log(u));
    const double turn = index % 2 == 0 ? cos(TWO_PI * t) : sin(TWO_PI * t);
    return (float)(radius * turn * deviation);
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

/*
 * Sinks 0 and gates 1. bias_k and bias_v by xavier_normal_ of a tensor [1, 1, n], whose fan_in and
 * fan_out are both n there: deviation sqrt(2 / (n + n)).
 */
static void fill_vectors(mha_layer *layer, uint64_t seed)
{
    for (int32_t v = 0; v < MHA__VECTORS; v++) {
        struct mha__vector *vector = &layer->vector[v];
        const int32_t parameter = MHA__FIRST_VECTOR + v;
        const double deviation = vector->data ? sqrt(1.0 / (double)vector->count) : 0.0;
        for (int64_t i = 0; i < vector->count; i++) {
            vector->data[i] = parameter == MHA_PARAM_SINKS ? 0.0f
                              : parameter == MHA_PARAM_GATES
                                  ? 1.0f
                                  : normal(seed, parameter, i, deviation);
        }
        vector->is_set = vector->data != NULL;
    }
}

int32_t mha_layer_initialize(mha_layer *layer, uint64_t seed, mha_error *err)
{
    MHA_CHECK_HANDLE(err, layer, MHA__MAGIC_LAYER);
    const struct mha__linear *q = &layer->linear[MHA_PROJECTION_Q];
    const struct mha__linear *k = &layer->linear[MHA_PROJECTION_K];
    const struct mha__linear *v = &layer->linear[MHA_PROJECTION_V];
    const bool packed = q->tiles && k->tiles && v->tiles && q->in == k->in && k->in == v->in;
    mha__panels_drop(layer);
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
    fill_vectors(layer, seed);
    mha__fpenv_leave(&hosts);
    return mha__error_clear(err);
}
