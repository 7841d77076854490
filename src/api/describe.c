/* SPDX-License-Identifier: Apache-2.0 */
#include "api/call_tensors.h"
#include "api/run.h"

#include <string.h>

/* From the objects of a call to one plain problem, everything checked on the way. */

struct sizes {
    int64_t B, T, S, extra;
};

int32_t
mha__run_check_sizes(const mha_layer *layer, int64_t B, int64_t T, int64_t S, mha_error *err)
{
    MHA_CHECK(err, B >= 0 && T >= 0 && S >= 0, MHA_ERROR_SHAPE,
              "B = %lld, T = %lld, S = %lld: none may be negative", (long long)B, (long long)T,
              (long long)S);
    /* Factors of 64: room for rounding up to tiles, bytes, several buffers. */
    const int64_t widest = layer->H * (layer->D + layer->Dv);
    int64_t rows = 0;
    int64_t unused = 0;
    bool fits = mha__product_fits(B, T > S ? T : S, 64, &rows) &&
                mha__product_fits(rows, widest, 1, &unused) &&
                mha__product_fits(rows / 64, layer->H, 64, &unused);
    for (int i = 0; i < MHA__PROJECTIONS; i++) {
        fits = fits && mha__product_fits(rows, layer->width[i], 1, &unused);
    }
    int64_t pairs = 0;
    fits = fits && mha__product_fits(B, layer->H, T, &pairs) && S < INT64_MAX - 2 &&
           mha__product_fits(pairs, S + 2, sizeof(float), &pairs);
    MHA_CHECK(
        err, fits, MHA_ERROR_TOO_LARGE,
        "B = %lld, T = %lld, S = %lld with H = %lld, D = %lld, Dv = %lld: a product passes 2^63",
        (long long)B, (long long)T, (long long)S, (long long)layer->H, (long long)layer->D,
        (long long)layer->Dv);
    return MHA_OK;
}

int64_t mha__run_extra_keys(const mha_layer *layer)
{
    return (layer->vector[MHA_PARAM_BIAS_K - MHA__FIRST_VECTOR].data != NULL) + layer->zero_key;
}

static bool is_set(const mha_call *call, int32_t tensor)
{
    return call->tensor[tensor].rank > 0;
}

/* [batch, tokens, features] or, where the tensor holds heads, [batch, tokens, heads, head]. */
static int32_t check_features(const mha_call *call,
                              int32_t id,
                              int64_t batch,
                              int64_t tokens,
                              int64_t features,
                              bool holds_heads,
                              int64_t heads,
                              int64_t head,
                              mha_error *err)
{
    const struct mha__tensor *t = &call->tensor[id];
    const char *name = mha__call_tensors[id].name;
    MHA_CHECK(err, t->shape[0] == batch && t->shape[1] == tokens, MHA_ERROR_SHAPE,
              "%s is [%lld, %lld, …], the call has %lld batch rows and %lld tokens there", name,
              (long long)t->shape[0], (long long)t->shape[1], (long long)batch, (long long)tokens);
    if (t->rank == 3) {
        MHA_CHECK(err, t->shape[2] == features, MHA_ERROR_SHAPE,
                  "%s has %lld features per token, the layer expects %lld", name,
                  (long long)t->shape[2], (long long)features);
        return MHA_OK;
    }
    MHA_CHECK(err, holds_heads, MHA_ERROR_SHAPE,
              "%s has rank 4, but the layer projects it: [B, tokens, %lld] is expected", name,
              (long long)features);
    MHA_CHECK(err, t->shape[2] == heads && t->shape[3] == head, MHA_ERROR_SHAPE,
              "%s has %lld heads of %lld features, the layer expects %lld of %lld", name,
              (long long)t->shape[2], (long long)t->shape[3], (long long)heads, (long long)head);
    return MHA_OK;
}

/* An output whose shape is known: `expected` holds as many sizes as its rank. */
static int32_t
check_shape(const mha_call *call, int32_t id, const int64_t *expected, mha_error *err)
{
    const struct mha__tensor *t = &call->tensor[id];
    for (int32_t i = 0; i < t->rank; i++) {
        MHA_CHECK(err, t->shape[i] == expected[i], MHA_ERROR_SHAPE,
                  "%s: axis %d has size %lld, expected %lld", mha__call_tensors[id].name, (int)i,
                  (long long)t->shape[i], (long long)expected[i]);
    }
    return MHA_OK;
}

static int32_t
check_inputs(const mha_layer *layer, const mha_call *call, struct sizes *sizes, mha_error *err)
{
    for (int32_t id = 0; id < MHA__INPUTS; id++) {
        MHA_CHECK(err, is_set(call, id), MHA_ERROR_NOT_SET, "%s is not set",
                  mha__call_tensors[id].name);
    }
    const int64_t B = sizes->B = call->tensor[MHA_TENSOR_QUERY].shape[0];
    const int64_t T = sizes->T = call->tensor[MHA_TENSOR_QUERY].shape[1];
    const int64_t S = sizes->S = call->tensor[MHA_TENSOR_KEY].shape[1];
    sizes->extra = mha__run_extra_keys(layer);
    const struct mha__linear *linear = layer->linear;
    const int64_t *width = layer->width;
    MHA_TRY(check_features(call, MHA_TENSOR_QUERY, B, T, width[0], !linear[0].tiles, layer->H,
                           layer->D, err));
    MHA_TRY(check_features(call, MHA_TENSOR_KEY, B, S, width[1], !linear[1].tiles, layer->G,
                           layer->D, err));
    MHA_TRY(check_features(call, MHA_TENSOR_VALUE, B, S, width[2], !linear[2].tiles, layer->G,
                           layer->Dv, err));
    for (int32_t id = MHA_TENSOR_BIAS0; id <= MHA_TENSOR_BIAS3; id++) {
        const int64_t *shape = call->tensor[id].shape;
        MHA_CHECK(err,
                  !is_set(call, id) || ((shape[0] == 1 || shape[0] == B) &&
                                        (shape[1] == 1 || shape[1] == layer->H) &&
                                        (shape[2] == 1 || shape[2] == T) && shape[3] <= S),
                  MHA_ERROR_SHAPE,
                  "%s [%lld, %lld, %lld, %lld] does not fit B = %lld, H = %lld, T = %lld, S = %lld",
                  mha__call_tensors[id].name, (long long)shape[0], (long long)shape[1],
                  (long long)shape[2], (long long)shape[3], (long long)B, (long long)layer->H,
                  (long long)T, (long long)S);
    }
    return MHA_OK;
}

static int32_t check_outputs(const mha_layer *layer,
                             const mha_call *call,
                             const struct sizes *sizes,
                             mha_error *err)
{
    const int64_t B = sizes->B;
    const int64_t T = sizes->T;
    const int64_t S = sizes->S;
    const int64_t H = layer->H;
    const int64_t all = S + sizes->extra;
    bool some = call->top > 0 || call->weights_callback;
    for (int32_t id = 0; id < MHA__TENSORS; id++) {
        some = some || (mha__call_tensors[id].output && is_set(call, id));
    }
    MHA_CHECK(err, some, MHA_ERROR_NOT_SET, "no output is set");
    if (is_set(call, MHA_TENSOR_OUTPUT)) {
        MHA_TRY(check_features(call, MHA_TENSOR_OUTPUT, B, T, layer->width[3],
                               !layer->linear[3].tiles, H, layer->Dv, err));
    }
    const int64_t weights[] = {B, H, T, all};
    const int64_t scores[] = {B, H, T, S};
    const int64_t mean[] = {B, T, all};
    const int64_t mass[] = {B, H, all};
    const int64_t total[] = {B, all};
    const struct {
        int32_t id;
        const int64_t *expected;
    } outputs[] = {
        {MHA_TENSOR_WEIGHTS, weights},      {MHA_TENSOR_WEIGHTS_DROPPED, weights},
        {MHA_TENSOR_SCORES_SCALED, scores}, {MHA_TENSOR_SCORES_CAPPED, scores},
        {MHA_TENSOR_SCORES_BIASED, scores}, {MHA_TENSOR_LSE, weights},
        {MHA_TENSOR_ENTROPY, weights},      {MHA_TENSOR_MAXIMUM, weights},
        {MHA_TENSOR_WEIGHTS_MEAN, mean},    {MHA_TENSOR_KEY_MASS, mass},
        {MHA_TENSOR_KEY_MASS_TOTAL, total},
    };
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++) {
        MHA_TRY(check_shape(call, outputs[i].id, outputs[i].expected, err));
    }
    MHA_CHECK(err,
              call->top == 0 ||
                  (call->top_shape[0] == B && call->top_shape[1] == H && call->top_shape[2] == T),
              MHA_ERROR_SHAPE,
              "the top keys are for [%lld, %lld, %lld], the call has [%lld, %lld, %lld]",
              (long long)call->top_shape[0], (long long)call->top_shape[1],
              (long long)call->top_shape[2], (long long)B, (long long)H, (long long)T);
    return MHA_OK;
}

static int32_t check_options(const mha_layer *layer,
                             const mha_mask *mask,
                             const mha_call *call,
                             const struct sizes *sizes,
                             mha_error *err)
{
    const int64_t *keep = call->keep_shape;
    MHA_CHECK(err,
              !call->keep || (keep[0] == sizes->B && keep[1] == layer->H && keep[2] == sizes->T &&
                              keep[3] == sizes->S),
              MHA_ERROR_SHAPE, "the dropout mask is [%lld, %lld, %lld, %lld]", (long long)keep[0],
              (long long)keep[1], (long long)keep[2], (long long)keep[3]);
    MHA_CHECK(err,
              !call->query_ids || ((call->ids_batch == 1 || call->ids_batch == sizes->B) &&
                                   call->ids_T == sizes->T && call->ids_S == sizes->S),
              MHA_ERROR_SHAPE, "positions are for %lld batch rows, %lld queries, %lld keys",
              (long long)call->ids_batch, (long long)call->ids_T, (long long)call->ids_S);
    if (layer->rotary.size > 0 && !call->query_ids) {
        MHA_TRY(mha__mask_aligned(mask, "rotary positions", sizes->B, sizes->T, sizes->S, err));
    }
    return MHA_OK;
}

/* The memory of a call that is no tensor: top keys and weights, the dropout mask, positions. */
static int32_t as_rows(struct mha__tensor *t, const void *data, int64_t bytes)
{
    *t = (struct mha__tensor){.rank = data && bytes > 0 ? 1 : 0,
                              .shape = {bytes / (int64_t)sizeof(float) + (bytes % 4 != 0)},
                              .stride = {1}};
    memcpy(&t->data, &data, sizeof t->data);
    return t->rank;
}

static int32_t check_overlap(const mha_call *call, mha_error *err)
{
    for (int32_t out = 0; out < MHA__TENSORS; out++) {
        for (int32_t other = 0; mha__call_tensors[out].output && other < MHA__TENSORS; other++) {
            const bool twice = mha__call_tensors[other].output && other >= out;
            MHA_CHECK(err, twice || !mha__overlap(&call->tensor[out], &call->tensor[other]),
                      MHA_ERROR_OVERLAP, "%s shares memory with %s", mha__call_tensors[out].name,
                      mha__call_tensors[other].name);
        }
    }
    const int64_t rows = call->top_shape[0] * call->top_shape[1] * call->top_shape[2] * call->top;
    struct mha__tensor top[2];
    (void)as_rows(&top[0], call->top > 0 ? call->top_keys : NULL, rows * (int64_t)sizeof(int64_t));
    (void)as_rows(&top[1], call->top > 0 ? call->top_weights : NULL, rows * (int64_t)sizeof(float));
    MHA_CHECK(err, !mha__overlap(&top[0], &top[1]), MHA_ERROR_OVERLAP,
              "the top keys share memory with their weights");
    for (int i = 0; i < 2; i++) {
        for (int32_t id = 0; id < MHA__TENSORS; id++) {
            MHA_CHECK(err, !mha__overlap(&top[i], &call->tensor[id]), MHA_ERROR_OVERLAP,
                      "the top keys share memory with %s", mha__call_tensors[id].name);
        }
    }
    const int64_t *keep = call->keep_shape;
    struct mha__tensor read[3];
    (void)as_rows(&read[0], call->keep, keep[0] * keep[1] * keep[2] * keep[3]);
    (void)as_rows(&read[1], call->query_ids, call->ids_batch * call->ids_T * 8);
    (void)as_rows(&read[2], call->key_ids, call->ids_batch * call->ids_S * 8);
    for (int i = 0; i < 3; i++) {
        for (int32_t id = 0; id < MHA__TENSORS; id++) {
            MHA_CHECK(err,
                      !mha__call_tensors[id].output || !mha__overlap(&read[i], &call->tensor[id]),
                      MHA_ERROR_OVERLAP, "%s shares memory with the %s", mha__call_tensors[id].name,
                      i == 0 ? "dropout mask" : "positions");
        }
        MHA_CHECK(err, !mha__overlap(&read[i], &top[0]) && !mha__overlap(&read[i], &top[1]),
                  MHA_ERROR_OVERLAP, "the top keys share memory with the %s",
                  i == 0 ? "dropout mask" : "positions");
    }
    return MHA_OK;
}

/* The strides of batch rows, tokens and heads; heads of [B, tokens, features] lie side by side. */
static struct mha__input input_of(const struct mha__tensor *t, int64_t head)
{
    return (struct mha__input){t->data, t->stride[0], t->stride[1],
                               t->rank == 4 ? t->stride[2] : head};
}

/* [B,H,T,…]; [B,T,…] has its rows at stride[2] too, [B,H,…] and [B,…] use the first ones. */
static struct mha__rows rows_of(const mha_call *call, int32_t id)
{
    const struct mha__tensor *t = &call->tensor[id];
    struct mha__rows rows = {t->data, {t->stride[0], t->stride[1], t->stride[2]}};
    if (id == MHA_TENSOR_WEIGHTS_MEAN) {
        rows.stride[1] = 0;
        rows.stride[2] = t->stride[1];
    }
    return rows;
}

static void describe_biases(const mha_call *call, struct mha__problem *p)
{
    for (int32_t id = MHA_TENSOR_BIAS0; id <= MHA_TENSOR_BIAS3; id++) {
        const struct mha__tensor *t = &call->tensor[id];
        if (t->rank > 0) {
            struct mha__bias *bias = &p->bias[p->biases++];
            bias->data = t->data;
            bias->keys = t->shape[3];
            for (int i = 0; i < 3; i++) {
                bias->stride[i] = t->shape[i] == 1 ? 0 : t->stride[i];
            }
        }
    }
}

static void describe_layer(const mha_layer *layer, struct mha__problem *p)
{
    p->H = layer->H;
    p->G = layer->G;
    p->D = layer->D;
    p->Dv = layer->Dv;
    p->Eq = layer->width[MHA_PROJECTION_Q];
    p->Ek = layer->width[MHA_PROJECTION_K];
    p->Ev = layer->width[MHA_PROJECTION_V];
    p->Eo = layer->width[MHA_PROJECTION_OUT];
    for (int side = 0; side < MHA__PROJECTIONS; side++) {
        const struct mha__linear *linear = &layer->linear[side];
        p->weight[side] = (struct mha__weight){.out = linear->out,
                                               .in = linear->in,
                                               .width = linear->width,
                                               .tiles = linear->tiles,
                                               .bias = linear->bias};
    }
    p->scale = layer->scale;
    p->softcap = layer->softcap;
    p->head_scales = layer->head_scales;
    p->head_softcaps = layer->head_softcaps;
    p->sinks = layer->vector[MHA_PARAM_SINKS - MHA__FIRST_VECTOR].data;
    p->gates = layer->vector[MHA_PARAM_GATES - MHA__FIRST_VECTOR].data;
    p->rotary_pairing = layer->rotary.pairing;
    p->rotary_size = layer->rotary.size;
    p->rotary_base = layer->rotary.base;
    const float *key = layer->vector[MHA_PARAM_BIAS_K - MHA__FIRST_VECTOR].data;
    if (key) {
        p->extra_key[p->extra] = key;
        p->extra_value[p->extra] = layer->vector[MHA_PARAM_BIAS_V - MHA__FIRST_VECTOR].data;
        p->extra++;
    }
    p->extra += layer->zero_key; // NULL: a key and a value of zeros
}

static void describe_outputs(const mha_layer *layer, const mha_call *call, struct mha__problem *p)
{
    const struct mha__tensor *out = &call->tensor[MHA_TENSOR_OUTPUT];
    const struct mha__input strides = input_of(out, layer->Dv);
    p->out = (struct mha__output){out->data, strides.batch, strides.token, strides.head};
    p->weights = rows_of(call, MHA_TENSOR_WEIGHTS);
    p->weights_dropped = rows_of(call, MHA_TENSOR_WEIGHTS_DROPPED);
    p->scores_scaled = rows_of(call, MHA_TENSOR_SCORES_SCALED);
    p->scores_capped = rows_of(call, MHA_TENSOR_SCORES_CAPPED);
    p->scores_biased = rows_of(call, MHA_TENSOR_SCORES_BIASED);
    p->lse = rows_of(call, MHA_TENSOR_LSE);
    p->entropy = rows_of(call, MHA_TENSOR_ENTROPY);
    p->maximum = rows_of(call, MHA_TENSOR_MAXIMUM);
    p->weights_mean = rows_of(call, MHA_TENSOR_WEIGHTS_MEAN);
    p->key_mass = rows_of(call, MHA_TENSOR_KEY_MASS);
    p->key_mass_total = rows_of(call, MHA_TENSOR_KEY_MASS_TOTAL);
    p->top = call->top;
    p->top_keys = call->top_keys;
    p->top_weights = call->top_weights;
    p->score_callback = call->score_callback;
    p->score_user = call->score_user;
    p->weights_callback = call->weights_callback;
    p->weights_user = call->weights_user;
    p->one_thread = (call->score_callback && !(call->score_flags & MHA_CALLBACK_CONCURRENT)) ||
                    (call->weights_callback && !(call->weights_flags & MHA_CALLBACK_CONCURRENT));
}

int32_t mha__run_describe(const mha_layer *layer,
                          const mha_mask *mask,
                          const mha_call *call,
                          struct mha__problem *p,
                          mha_error *err)
{
    struct sizes sizes = {0, 0, 0, 0};
    MHA_TRY(check_inputs(layer, call, &sizes, err));
    MHA_TRY(mha__run_check_sizes(layer, sizes.B, sizes.T, sizes.S, err));
    MHA_TRY(check_outputs(layer, call, &sizes, err));
    MHA_TRY(mha__mask_fits(mask, sizes.B, layer->H, sizes.T, sizes.S, err));
    MHA_TRY(check_options(layer, mask, call, &sizes, err));
    MHA_TRY(check_overlap(call, err));
    MHA_TRY(mha__parameter_all_set(layer, err));

    *p = (struct mha__problem){.B = sizes.B, .T = sizes.T, .S = sizes.S};
    describe_layer(layer, p);
    p->query = input_of(&call->tensor[MHA_TENSOR_QUERY], layer->D);
    p->key = input_of(&call->tensor[MHA_TENSOR_KEY], layer->D);
    p->value = input_of(&call->tensor[MHA_TENSOR_VALUE], layer->Dv);
    p->rules = mask ? &mask->rules : NULL;
    p->alibi = mask && mask->rules.alibi;
    p->slopes = p->alibi ? mask->rules.slopes : NULL;
    describe_biases(call, p);
    p->ids_batch = call->ids_batch;
    p->query_ids = call->query_ids;
    p->key_ids = call->key_ids;
    p->dropout = call->dropout;
    p->seed = call->seed;
    p->keep = call->dropout > 0.0 ? call->keep : NULL;
    describe_outputs(layer, call, p);
    return MHA_OK;
}
