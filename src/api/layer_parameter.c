/* SPDX-License-Identifier: Apache-2.0 */
#include "api/objects.h"
#include "api/run.h"
#include "kernels/kernels.h"

#include <string.h>

/* The parameters of a layer: names, sizes, and their way into and out of the stored tiles. */

static const char *const names[] = {
    "MHA_PARAM_Q_WEIGHT",     "MHA_PARAM_Q_BIAS",   "MHA_PARAM_K_WEIGHT",
    "MHA_PARAM_K_BIAS",       "MHA_PARAM_V_WEIGHT", "MHA_PARAM_V_BIAS",
    "MHA_PARAM_OUT_WEIGHT",   "MHA_PARAM_OUT_BIAS", "MHA_PARAM_IN_PROJ_WEIGHT",
    "MHA_PARAM_IN_PROJ_BIAS", "MHA_PARAM_SINKS",    "MHA_PARAM_GATES",
    "MHA_PARAM_BIAS_K",       "MHA_PARAM_BIAS_V",
};
enum { KNOWN = sizeof names / sizeof *names, INPUT_SIDES = 3 };

static bool is_known(int32_t parameter)
{
    return parameter >= 0 && parameter < KNOWN;
}

/* Of the parameters of projections, whose ids alternate. */
static bool is_weight(int32_t parameter)
{
    return parameter % 2 == 0;
}

static bool is_vector(int32_t parameter)
{
    return parameter >= MHA__FIRST_VECTOR;
}

/* The projections a parameter covers: first .. first+n-1, n = 0 if this layer does not have it. */
static int32_t sides_of(const mha_layer *layer, int32_t parameter, int32_t *first)
{
    const bool packed = parameter >= MHA_PARAM_IN_PROJ_WEIGHT;
    *first = packed ? 0 : parameter / 2;
    const int32_t n = packed ? INPUT_SIDES : 1;
    for (int32_t side = *first; side < *first + n; side++) {
        const struct mha__linear *linear = &layer->linear[side];
        if (!linear->tiles || (!is_weight(parameter) && !linear->bias) ||
            (packed && is_weight(parameter) && linear->in != layer->linear[0].in)) {
            return 0;
        }
    }
    return n;
}

int32_t
mha_layer_parameter_shape(const mha_layer *layer, int32_t parameter, int64_t *shape, int32_t cap)
{
    if (!layer) {
        return MHA_ERROR_NULL_ARGUMENT;
    }
    if (!is_known(parameter)) {
        return MHA_ERROR_UNKNOWN_ID;
    }
    if (is_vector(parameter)) {
        const struct mha__vector *vector = &layer->vector[parameter - MHA__FIRST_VECTOR];
        if (vector->data && shape && cap > 0) {
            shape[0] = vector->count;
        }
        return vector->data ? 1 : 0;
    }
    int32_t first = 0;
    const int32_t n = sides_of(layer, parameter, &first);
    if (n == 0) {
        return 0;
    }
    int64_t out = 0;
    for (int32_t side = first; side < first + n; side++) {
        out += layer->linear[side].out;
    }
    if (shape && cap > 0) {
        shape[0] = out;
    }
    if (shape && cap > 1 && is_weight(parameter)) {
        shape[1] = layer->linear[first].in;
    }
    return is_weight(parameter) ? 2 : 1;
}

int64_t mha_layer_parameter_count(const mha_layer *layer, int32_t parameter)
{
    int64_t shape[2] = {0, 1};
    const int32_t rank = mha_layer_parameter_shape(layer, parameter, shape, 2);
    return rank < 0 ? rank : shape[0] * shape[1];
}

static int32_t check_access(const mha_layer *layer,
                            int32_t parameter,
                            int32_t type,
                            const void *data,
                            int64_t count,
                            mha_error *err)
{
    MHA_CHECK_HANDLE(err, layer, MHA__MAGIC_LAYER);
    MHA_CHECK(err, is_known(parameter), MHA_ERROR_UNKNOWN_ID, "parameter %d; 0 to %d are known",
              (int)parameter, KNOWN - 1);
    MHA_CHECK(err, type == MHA_FLOAT32, MHA_ERROR_UNKNOWN_ID, "type %d; MHA_FLOAT32 (0) is known",
              (int)type);
    const int64_t expected = mha_layer_parameter_count(layer, parameter);
    MHA_CHECK(err, expected > 0, MHA_ERROR_UNKNOWN_ID, "this layer has no %s", names[parameter]);
    MHA_CHECK_POINTER(err, data);
    MHA_CHECK(err, count == expected, MHA_ERROR_SHAPE, "%s has %lld numbers, not %lld",
              names[parameter], (long long)expected, (long long)count);
    return MHA_OK;
}

/* Tile n of a weight [out, in] holds outputs n * width … as columns: tiles[n][i][o]. */
static void pack_weight(struct mha__linear *linear, const float *rows)
{
    for (int64_t o = 0, columns; o < linear->out; o += columns) {
        columns = linear->out - o < linear->width ? linear->out - o : linear->width;
        mha__kernels_chosen()->transpose(linear->tiles + o * linear->in, columns,
                                         rows + o * linear->in, linear->in, columns, linear->in);
    }
    linear->weight_is_set = true;
}

static void unpack_weight(const struct mha__linear *linear, float *rows)
{
    for (int64_t o = 0, columns; o < linear->out; o += columns) {
        columns = linear->out - o < linear->width ? linear->out - o : linear->width;
        mha__kernels_chosen()->transpose(rows + o * linear->in, linear->in,
                                         linear->tiles + o * linear->in, columns, linear->in,
                                         columns);
    }
}

int32_t mha_layer_set_parameter(mha_layer *layer,
                                int32_t parameter,
                                int32_t type,
                                const void *data,
                                int64_t count,
                                mha_error *err)
{
    MHA_TRY(check_access(layer, parameter, type, data, count, err));
    if (is_vector(parameter)) {
        struct mha__vector *vector = &layer->vector[parameter - MHA__FIRST_VECTOR];
        memcpy(vector->data, data, (size_t)count * sizeof(float));
        vector->is_set = true;
        return mha__error_clear(err);
    }
    if (is_weight(parameter)) {
        mha__panels_drop(layer);
    }
    const float *from = data;
    int32_t first = 0;
    const int32_t n = sides_of(layer, parameter, &first);
    for (int32_t side = first; side < first + n; side++) {
        struct mha__linear *linear = &layer->linear[side];
        if (is_weight(parameter)) {
            pack_weight(linear, from);
            from += linear->out * linear->in;
        } else {
            memcpy(linear->bias, from, (size_t)linear->out * sizeof *from);
            linear->bias_is_set = true;
            from += linear->out;
        }
    }
    return mha__error_clear(err);
}

int32_t mha_layer_get_parameter(const mha_layer *layer,
                                int32_t parameter,
                                int32_t type,
                                void *data,
                                int64_t count,
                                mha_error *err)
{
    MHA_TRY(check_access(layer, parameter, type, data, count, err));
    if (is_vector(parameter)) {
        const struct mha__vector *vector = &layer->vector[parameter - MHA__FIRST_VECTOR];
        MHA_CHECK(err, vector->is_set, MHA_ERROR_NOT_SET, "%s was never set", names[parameter]);
        memcpy(data, vector->data, (size_t)count * sizeof(float));
        return mha__error_clear(err);
    }
    float *to = data;
    int32_t first = 0;
    const int32_t n = sides_of(layer, parameter, &first);
    for (int32_t side = first; side < first + n; side++) {
        const struct mha__linear *linear = &layer->linear[side];
        MHA_CHECK(err, is_weight(parameter) ? linear->weight_is_set : linear->bias_is_set,
                  MHA_ERROR_NOT_SET, "%s was never set", names[2 * side + !is_weight(parameter)]);
    }
    for (int32_t side = first; side < first + n; side++) {
        const struct mha__linear *linear = &layer->linear[side];
        if (is_weight(parameter)) {
            unpack_weight(linear, to);
            to += linear->out * linear->in;
        } else {
            memcpy(to, linear->bias, (size_t)linear->out * sizeof *to);
            to += linear->out;
        }
    }
    return mha__error_clear(err);
}

int32_t mha__parameter_all_set(const mha_layer *layer, mha_error *err)
{
    for (int32_t side = 0; side < MHA__PROJECTIONS; side++) {
        const struct mha__linear *linear = &layer->linear[side];
        MHA_CHECK(err, !linear->tiles || linear->weight_is_set, MHA_ERROR_NOT_SET,
                  "%s was never set", names[2 * side]);
        MHA_CHECK(err, !linear->bias || linear->bias_is_set, MHA_ERROR_NOT_SET, "%s was never set",
                  names[2 * side + 1]);
    }
    for (int32_t i = 0; i < MHA__VECTORS; i++) {
        MHA_CHECK(err, !layer->vector[i].data || layer->vector[i].is_set, MHA_ERROR_NOT_SET,
                  "%s was never set", names[MHA__FIRST_VECTOR + i]);
    }
    return MHA_OK;
}
