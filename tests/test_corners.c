/* SPDX-License-Identifier: Apache-2.0 */
/* Corners where options meet what is not finite, each other, or the caller's own calls. */
#include "support/expect.h"

#include <mha/mha.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { T = 70, S = 90, D = 8, QUERIES = T * D, KEYS = S * D };

/* One head of D features, no projection. */
typedef struct world {
    mha_config *cfg;
    mha_layer *layer;
    mha_context *ctx;
    mha_call *call;
    float q[QUERIES], k[KEYS], v[KEYS], out[QUERIES];
} world;

static world *world_begin(int sinks)
{
    world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    for (int i = 0; i < QUERIES; i++) {
        w->q[i] = (float)(i * 37 % 41) / 20 - 1;
    }
    for (int i = 0; i < KEYS; i++) {
        w->k[i] = (float)(i * 29 % 43) / 20 - 1;
        w->v[i] = (float)(i * 31 % 47) / 20 - 1;
    }
    SUCCEEDS(mha_config_create(D, 1, &w->cfg, err));
    for (int32_t p = MHA_PROJECTION_Q; p <= MHA_PROJECTION_OUT; p++) {
        SUCCEEDS(mha_config_set_projection(w->cfg, p, 0, err));
    }
    SUCCEEDS(mha_config_set_sinks(w->cfg, sinks, err));
    SUCCEEDS(mha_layer_create(w->cfg, &w->layer, err));
    SUCCEEDS(mha_context_create(&w->ctx, err));
    SUCCEEDS(mha_call_create(&w->call, err));
    const int64_t queries[] = {1, T, D};
    const int64_t keys[] = {1, S, D};
    SUCCEEDS(mha_call_set_input(w->call, MHA_TENSOR_QUERY, 0, w->q, 3, queries, NULL, err));
    SUCCEEDS(mha_call_set_input(w->call, MHA_TENSOR_KEY, 0, w->k, 3, keys, NULL, err));
    SUCCEEDS(mha_call_set_input(w->call, MHA_TENSOR_VALUE, 0, w->v, 3, keys, NULL, err));
    SUCCEEDS(mha_call_set_output(w->call, MHA_TENSOR_OUTPUT, 0, w->out, 3, queries, NULL, err));
    return w;
}

static void world_end(world *w)
{
    mha_call_destroy(w->call);
    mha_context_destroy(w->ctx);
    mha_layer_destroy(w->layer);
    mha_config_destroy(w->cfg);
    free(w);
}

static void dropout_of_one_gives_zeros_whatever_stands_in_the_values(void **state)
{
    (void)state;
    static uint8_t keep[T * S];
    world *w = world_begin(0);
    memset(keep, 1, sizeof keep);
    w->v[3] = NAN;
    w->v[20] = INFINITY;
    w->q[5] = NAN;
    SUCCEEDS(mha_call_set_dropout(w->call, 1.0, 7, err));
    for (int given = 0; given < 2; given++) {
        SUCCEEDS(mha_call_set_dropout_mask(w->call, given ? keep : NULL, 1, 1, T, S, err));
        memset(w->out, 0xff, sizeof w->out);
        SUCCEEDS(mha_forward(w->ctx, w->layer, NULL, w->call, err));
        for (int i = 0; i < QUERIES; i++) {
            assert_true(w->out[i] == 0.0f);
        }
    }
    world_end(w);
}

static void what_a_call_reads_may_not_lie_in_what_it_writes(void **state)
{
    (void)state;
    world *w = world_begin(0);
    SUCCEEDS(mha_call_set_dropout(w->call, 0.5, 7, err));
    SUCCEEDS(mha_call_set_dropout_mask(w->call, (uint8_t *)w->out, 1, 1, T, S, err));
    REFUSED(MHA_ERROR_OVERLAP, mha_forward(w->ctx, w->layer, NULL, w->call, err), "dropout mask");
    world_end(w);
}

static void mask_strides_beyond_64_bits_are_refused(void **state)
{
    (void)state;
    mha_mask *mask = NULL;
    uint8_t byte = 1;
    SUCCEEDS(mha_mask_create(&mask, err));
    REFUSED(MHA_ERROR_TOO_LARGE,
            mha_mask_add_key_mask(mask, 4, 1, &byte, (int64_t[]){INT64_MAX / 2, 1}, 0, err),
            "stride");
    mha_mask_destroy(mask);
}

/* A bias of -infinity in one row makes its tile a mixed one for all: no other row's bits move. */
static void hidden_cells_of_one_row_move_no_bit_of_another(void **state)
{
    (void)state;
    static float bias[T * S];
    world *w = world_begin(0);
    float before[QUERIES];
    const int64_t shape[] = {1, 1, T, S};
    SUCCEEDS(mha_call_set_input(w->call, MHA_TENSOR_BIAS0, 0, bias, 4, shape, NULL, err));
    for (int32_t engine = MHA_ENGINE_BLAS; engine <= MHA_ENGINE_FUSED; engine++) {
        SUCCEEDS(mha_context_set_engine(w->ctx, engine, err));
        bias[0] = 0.0f;
        SUCCEEDS(mha_forward(w->ctx, w->layer, NULL, w->call, err));
        memcpy(before, w->out, sizeof before);
        bias[0] = -INFINITY;
        SUCCEEDS(mha_forward(w->ctx, w->layer, NULL, w->call, err));
        assert_memory_equal(before + D, w->out + D, sizeof before - D * sizeof *before);
        assert_true(memcmp(before, w->out, D * sizeof *before) != 0);
    }
    world_end(w);
}

static void a_nan_sink_leaves_hidden_weights_zero(void **state)
{
    (void)state;
    static float weights[T * S];
    world *w = world_begin(1);
    mha_mask *mask = NULL;
    const float sink = NAN;
    const int64_t shape[] = {1, 1, T, S};
    SUCCEEDS(mha_layer_set_parameter(w->layer, MHA_PARAM_SINKS, 0, &sink, 1, err));
    SUCCEEDS(mha_call_set_output(w->call, MHA_TENSOR_WEIGHTS, 0, weights, 4, shape, NULL, err));
    SUCCEEDS(mha_mask_create(&mask, err));
    SUCCEEDS(mha_mask_set_causal(mask, 1, err));
    SUCCEEDS(mha_mask_set_alignment(mask, MHA_ALIGNMENT_TOP_LEFT, err));
    SUCCEEDS(mha_forward(w->ctx, w->layer, mask, w->call, err));
    for (int i = 0; i < T; i++) {
        for (int j = 0; j < S; j++) {
            const float x = weights[i * S + j];
            assert_true(j > i ? x == 0.0f : isnan(x));
        }
    }
    mha_mask_destroy(mask);
    world_end(w);
}

/* Rows without a key, alone in their tile or beside rows with one: T = 70 queries of which every third sees none. */
static void a_row_that_sees_no_key_is_zero_beside_a_nan_sink(void **state)
{
    (void)state;
    for (int by_rows = 0; by_rows < 2; by_rows++) {
        static uint8_t visible[T * S];
        static float entropy[T];
        world *w = world_begin(1);
        mha_mask *mask = NULL;
        const float sink = NAN;
        const int64_t rows[] = {1, 1, T};
        for (int i = 0; i < T; i++) {
            memset(visible + i * S, i % 3 != 0 && i < 48, S);
        }
        SUCCEEDS(mha_layer_set_parameter(w->layer, MHA_PARAM_SINKS, 0, &sink, 1, err));
        SUCCEEDS(mha_mask_create(&mask, err));
        SUCCEEDS(mha_mask_add_query_key_mask(mask, T, S, visible, NULL, 0, err));
        if (by_rows) { // an option that the fused engine's transposed form does not have
            SUCCEEDS(
                mha_call_set_output(w->call, MHA_TENSOR_ENTROPY, 0, entropy, 3, rows, NULL, err));
        }
        SUCCEEDS(mha_forward(w->ctx, w->layer, mask, w->call, err));
        for (int n = 0; n < QUERIES; n++) {
            const int sees = visible[n / D * S];
            assert_true(sees ? isnan(w->out[n]) : w->out[n] == 0.0f);
        }
        mha_mask_destroy(mask);
        world_end(w);
    }
}

/* A callback may use the library: its thread keeps the place in the BLAS that it has. */
static void call_again(void *user,
                       int64_t b,
                       int64_t h,
                       int64_t i0,
                       int64_t ni,
                       int64_t j0,
                       int64_t nj,
                       const float *weights,
                       int64_t ld)
{
    (void)b, (void)h, (void)i0, (void)ni, (void)j0, (void)nj, (void)weights, (void)ld;
    const float q[2] = {0, 0};
    const float k[4] = {1, 2, 3, 4};
    float out[2] = {-1, -1};
    int *calls = user;
    if (mha_attention(1, 1, 2, 1, 1, 2, q, k, k, MHA_CAUSAL_NONE, out, NULL) == MHA_OK &&
        out[0] == 2.0f && out[1] == 3.0f) {
        ++*calls;
    }
}

static void a_callback_may_call_the_library(void **state)
{
    (void)state;
    world *w = world_begin(0);
    int calls = 0;
    SUCCEEDS(mha_call_set_weights_callback(w->call, call_again, &calls, 0, err));
    SUCCEEDS(mha_forward(w->ctx, w->layer, NULL, w->call, err));
    assert_true(calls >= 1);
    world_end(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dropout_of_one_gives_zeros_whatever_stands_in_the_values),
        cmocka_unit_test(what_a_call_reads_may_not_lie_in_what_it_writes),
        cmocka_unit_test(mask_strides_beyond_64_bits_are_refused),
        cmocka_unit_test(hidden_cells_of_one_row_move_no_bit_of_another),
        cmocka_unit_test(a_nan_sink_leaves_hidden_weights_zero),
        cmocka_unit_test(a_row_that_sees_no_key_is_zero_beside_a_nan_sink),
        cmocka_unit_test(a_callback_may_call_the_library),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
