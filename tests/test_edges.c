/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Edges that other libraries were caught at; names begin with the kind of data/cases.json they
 * belong to.
 */
#define _GNU_SOURCE
#include "support/expect.h"
#include "support/guard_page.h"
#include "support/oracle.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static void expect_oracle(trial *p)
{
    SUCCEEDS(trial_forward(p, 0, err));
    oracle r;
    oracle_run(p, &r);
    assert_true(oracle_compare(p, &r) <= 1);
    oracle_end(&r);
}

/* ---- A: empty sizes, padding ---- */

static void A05_empty_sizes_succeed_and_write_only_what_exists(void **state)
{
    (void)state;
    for (int empty = 1; empty < 8; ++empty) {
        for (int32_t projected = 0; projected < 2; ++projected) {
            trial p;
            trial_begin(&p, empty & 1 ? 0 : 2, empty & 2 ? 0 : 3, empty & 4 ? 0 : 4, 2, 1, 4, 4);
            for (int32_t side = 0; projected && side < 4; ++side) {
                trial_project(&p, side, 5, 1);
            }
            trial_tensors(&p, 1, 1);
            draw d = {1};
            trial_fill(&p, &d, 1.0f);
            tensor_flood(&p.output, -7.0f);
            tensor_flood(&p.weights, -7.0f);
            expect_oracle(&p); /* S = 0: rows are bo or 0, lse -infinity */
            int64_t written = tensor_elements(&p.output);
            assert_true(all_are(p.output.data + written, p.output.count - written, -7.0f));
            if (written > 0) {
                assert_false(all_are(p.output.data, 1, -7.0f));
            }
            assert_int_equal(tensor_elements(&p.weights), 0);
            assert_true(all_are(p.weights.block, p.weights.count, -7.0f));
            trial_end(&p);
        }
    }
}

static void A05_empty_tensors_may_be_null(void **state)
{
    (void)state;
    mha_context *ctx = NULL;
    mha_config *cfg = NULL;
    mha_layer *layer = NULL;
    SUCCEEDS(mha_context_create(&ctx, err));
    SUCCEEDS(mha_config_create(4, 2, &cfg, err));
    SUCCEEDS(mha_layer_create(cfg, &layer, err));
    SUCCEEDS(mha_layer_initialize(layer, 1, err));
    float bias[4] = {1, -2, 3, -4}, x[8] = {0}, out[8];
    SUCCEEDS(mha_layer_set_parameter(layer, MHA_PARAM_OUT_BIAS, MHA_FLOAT32, bias, 4, err));
    SUCCEEDS(mha_layer_forward(ctx, layer, 0, 3, 3, NULL, NULL, NULL, NULL, NULL, err));
    SUCCEEDS(mha_layer_forward(ctx, layer, 2, 0, 3, NULL, x, x, NULL, NULL, err));
    SUCCEEDS(mha_layer_forward(ctx, layer, 1, 2, 0, x, NULL, NULL, NULL, out, err));
    assert_same_bits(out, bias, 4);
    assert_same_bits(out + 4, bias, 4);
    mha_layer_destroy(layer);
    mha_config_destroy(cfg);
    mha_context_destroy(ctx);
}

static void A06_a_row_that_sees_nothing_is_the_output_bias_exactly(void **state)
{
    (void)state;
    trial p;
    trial_begin(&p, 1, 3, 70, 2, 2, 8, 8);
    for (int32_t side = 0; side < 4; ++side) {
        trial_project(&p, side, 33, 1);
    }
    boolean_mask *m = trial_add_mask(&p, MASK_QUERY_KEY, 1, 1, 3, 70);
    memset(m->bytes + 70, 1, 70); /* only query 1 sees anything */
    trial_tensors(&p, 1, 1);
    draw d = {2};
    trial_fill(&p, &d, 1.0f);
    tensor_flood(&p.query, 0.5f);
    for (int64_t e = 0; e < 33; ++e) {
        *tensor_feature(&p.query, 0, 0, e) = NAN; /* decided by `allowed`, never by the scores */
    }
    SUCCEEDS(trial_forward(&p, 0, err));
    const float *bo = p.parameter[MHA_PARAM_OUT_BIAS];
    assert_same_bits(tensor_feature(&p.output, 0, 0, 0), bo, 33);
    assert_same_bits(tensor_feature(&p.output, 0, 2, 0), bo, 33);
    assert_false(same_bits(tensor_feature(&p.output, 0, 1, 0), bo, 33));
    trial_end(&p);
}

static const int64_t A08_LENGTHS[4] = {5, 3, 1, 0};

static void A08_trial(trial *p, int32_t projected)
{
    trial_begin(p, 4, 5, 5, 2, 2, 8, 8);
    for (int32_t side = 0; projected && side < 4; ++side) {
        trial_project(p, side, 16, 1);
    }
    p->key_batch = p->query_batch = 4;
    memcpy(p->key_lengths, A08_LENGTHS, sizeof A08_LENGTHS);
    memcpy(p->query_lengths, A08_LENGTHS, sizeof A08_LENGTHS);
    trial_tensors(p, 1, 1);
    draw d = {3};
    trial_fill(p, &d, 1.0f);
}

static void A08_padding_changes_nothing_in_the_valid_rows_and_is_zero_itself(void **state)
{
    (void)state;
    for (int32_t projected = 0; projected < 2; ++projected) {
        trial p;
        A08_trial(&p, projected);
        expect_oracle(&p);
        for (int64_t b = 0; b < 4; ++b) {
            const int64_t n = A08_LENGTHS[b];
            assert_true(all_are(tensor_feature(&p.output, b, n, 0), (5 - n) * p.Eo, 0.0f));
            for (int64_t h = 0; h < 2; ++h) {
                assert_true(all_are(tensor_at(&p.lse, b, h, n, 0), 5 - n, -INFINITY));
            }
            /* the sequence alone, at its own length */
            trial alone;
            trial_begin(&alone, 1, n, n, 2, 2, 8, 8);
            for (int32_t side = 0; projected && side < 4; ++side) {
                trial_project(&alone, side, 16, 1);
            }
            trial_tensors(&alone, 0, 0);
            draw d = {3};
            trial_fill(&alone, &d, 1.0f); /* the same parameters: they are drawn first */
            const tensor *const from[3] = {&p.query, &p.key, &p.value};
            tensor *const to[3] = {&alone.query, &alone.key, &alone.value};
            for (int t = 0; t < 3; ++t) {
                memcpy(to[t]->data, tensor_feature(from[t], b, 0, 0),
                       (size_t)tensor_elements(to[t]) * sizeof(float));
            }
            SUCCEEDS(trial_forward(&alone, 0, err));
            for (int64_t i = 0; i < n * p.Eo; ++i) {
                assert_close(alone.output.data[i], tensor_feature(&p.output, b, 0, 0)[i], 1e-6);
            }
            trial_end(&alone);
        }
        trial_end(&p);
    }
}

/* ---- M, N, W: masks, numbers, weights ---- */

static void M14_one_head_that_sees_nothing_is_zero_with_and_without_weights(void **state)
{
    (void)state;
    for (int weights = 0; weights < 2; ++weights) {
        trial p;
        trial_begin(&p, 1, 5, 5, 3, 3, 4, 4);
        trial_project(&p, MHA_PROJECTION_OUT, 7, 1);
        boolean_mask *m = trial_add_mask(&p, MASK_FULL, 1, 3, 5, 5);
        memset(m->bytes, 1, 2 * 25);
        trial_tensors(&p, weights, weights);
        draw d = {4};
        trial_fill(&p, &d, 1.0f);
        tensor_flood(&p.query, 0.0f);
        expect_oracle(&p);
        trial_end(&p);
    }
}

static void N01_equal_scores_of_any_size_give_the_mean(void **state)
{
    (void)state;
    static const float sizes[] = {89.0f, 1e4f, 1e30f, 3e38f, -3e38f};
    for (int i = 0; i < 5; ++i) {
        for (int64_t S = 2; S < 200; S += 99) {
            trial p;
            trial_begin(&p, 1, 1, S, 1, 1, 1, 1);
            trial_tensors(&p, 1, 0);
            p.query.data[0] = sizes[i];
            for (int64_t j = 0; j < S; ++j) {
                p.key.data[j] = 1;
                p.value.data[j] = j % 2 ? 3.0f : 1.0f;
            }
            SUCCEEDS(trial_forward(&p, 0, err));
            double mean = (double)(S / 2 * 3 + (S + 1) / 2) / (double)S;
            assert_close(p.output.data[0], mean, 1e-6 * sqrt((double)S));
            trial_end(&p);
        }
    }
}

/* Where the sum of |scale q k| is finite, so is the score: neither scale q nor q k alone overflows. */
static void N01_a_finite_score_is_reached_without_overflow_on_the_way(void **state)
{
    (void)state;
    static const float numbers[][3] = {{4.0f, 1.5e38f, 2e-38f},
                                       {-8.0f, 2e-38f, 1.5e38f},
                                       {1e-20f, 1e30f, 1e28f},
                                       {0.0f, 1e30f, 1e5f}};
    for (int i = 0; i < 4; ++i) {
        trial p;
        trial_begin(&p, 1, 3, 70, 1, 1, 2, 1);
        p.scale_is_set = 1;
        p.scale = numbers[i][0];
        trial_tensors(&p, 1, 1);
        for (int64_t j = 0; j < 70; ++j) {
            p.value.data[j] = (float)(j % 2);
            p.key.data[2 * j] = numbers[i][2];
            p.key.data[2 * j + 1] = 0;
        }
        for (int64_t r = 0; r < 3; ++r) {
            p.query.data[2 * r] = numbers[i][1];
            p.query.data[2 * r + 1] = 0;
        }
        SUCCEEDS(trial_forward(&p, 0, err));
        const double score = (double)numbers[i][0] * (double)numbers[i][1] * (double)numbers[i][2];
        for (int64_t r = 0; r < 3; ++r) {
            assert_close(p.output.data[r], 0.5, 1e-5);
            assert_close(p.lse.data[r], score + log(70), 1e-6 * (fabs(score) + 10));
        }
        trial_end(&p);
    }
}

static void N03_an_infinite_score_is_nan_in_its_row_only(void **state)
{
    (void)state;
    for (int both = 0; both < 2; ++both) {
        trial p;
        trial_begin(&p, 2, 2, 2, 1, 1, 1, 1);
        trial_tensors(&p, 0, 0);
        const float q[4] = {1e30f, 0, 0, 1}, k[4] = {1e30f, both ? 1e30f : 0, 0, 0};
        const float v[4] = {1, 3, 1, 3};
        memcpy(p.query.data, q, sizeof q);
        memcpy(p.key.data, k, sizeof k);
        memcpy(p.value.data, v, sizeof v);
        SUCCEEDS(trial_forward(&p, 0, err));
        assert_true(isnan(p.output.data[0]));
        for (int i = 1; i < 4; ++i) {
            assert_close(p.output.data[i], 2, 1e-6);
        }
        trial_end(&p);
    }
}

static void N03_scores_of_minus_infinity_give_zeros_not_nan(void **state)
{
    (void)state;
    /*
     * every allowed score is -infinity: zeros, as where nothing is allowed; one finite score: that
     * key
     */
    for (int finite = 0; finite < 2; ++finite) {
        trial p;
        trial_begin(&p, 1, 1, 3, 1, 1, 1, 1);
        trial_tensors(&p, 0, 0);
        p.query.data[0] = -1e30f;
        for (int j = 0; j < 3; ++j) {
            p.key.data[j] = 1e30f;
            p.value.data[j] = (float)j + 4.0f;
        }
        p.key.data[1] = finite ? 0.0f : 1e30f;
        SUCCEEDS(trial_forward(&p, 0, err));
        assert_true(p.output.data[0] == (finite ? 5.0f : 0.0f));
        trial_end(&p);
    }
}

static void W02_weights_and_result_keep_the_words_behind_their_buffers(void **state)
{
    (void)state;
    trial p;
    trial_begin(&p, 2, 33, 67, 2, 2, 9, 9);
    trial_tensors(&p, 1, 1);
    draw d = {5};
    trial_fill(&p, &d, 1.0f);
    tensor *const outputs[3] = {&p.output, &p.weights, &p.lse};
    guarded pages[3];
    for (int at_end = 0; at_end < 2; ++at_end) {
        float *kept[3];
        for (int t = 0; t < 3; ++t) {
            int64_t elements = tensor_elements(outputs[t]);
            kept[t] = outputs[t]->data;
            outputs[t]->data = guarded_create(&pages[t], (size_t)elements * sizeof(float), at_end);
        }
        expect_oracle(&p);
        for (int t = 0; t < 3; ++t) {
            outputs[t]->data = kept[t];
            guarded_destroy(&pages[t]);
        }
    }
    trial_end(&p);
}

/* ---- S: head sizes, alignment, refusals ---- */

/* Inputs that end at an unmapped page, NaN right behind every row. */
static void S02_any_head_size_reads_nothing_beside_its_rows(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1, 2, 3, 5, 7, 13, 31, 33, 37, 65, 127};
    for (int s = 0; s < 11; ++s) {
        for (int at_end = 0; at_end < 2; ++at_end) {
            const int64_t D = sizes[s], T = 5, S = 70, H = 13;
            trial p;
            trial_begin(&p, 1, T, S, H, H, D, D);
            const int64_t tokens[3] = {T, S, S};
            tensor *const inputs[3] = {&p.query, &p.key, &p.value};
            guarded pages[3];
            draw d = {6};
            for (int t = 0; t < 3; ++t) {
                const int64_t row = H * D + 1, numbers = tokens[t] * row - 1;
                float *data = guarded_create(&pages[t], (size_t)numbers * sizeof *data, at_end);
                for (int64_t i = 0; i < numbers; ++i) {
                    data[i] = i % row == row - 1 ? NAN : draw_float(&d, -1, 1);
                }
                tensor_view(inputs[t], data, 3, (int64_t[]){1, tokens[t], H * D},
                            (int64_t[]){numbers, row, 1});
            }
            tensor_create(&p.output, 3, (int64_t[]){1, T, H * D},
                          (int64_t[]){T * (H * D + 1), H * D + 1, 1});
            tensor_flood(&p.output, -7.0f);
            expect_oracle(&p);
            for (int64_t i = 0; i < T - 1; ++i) {
                assert_true(p.output.block[i * (H * D + 1) + H * D] == -7.0f);
            }
            for (int t = 0; t < 3; ++t) {
                guarded_destroy(&pages[t]);
            }
            trial_end(&p);
        }
    }
}

/* Every tensor 4 s bytes, the mask s bytes off its natural place. */
static void S03_every_alignment_gives_the_same_bits(void **state)
{
    (void)state;
    float *first = NULL;
    for (int64_t s = 0; s < 16; ++s) {
        trial p;
        trial_begin(&p, 1, 37, 70, 2, 1, 20, 12);
        tensor room[4];
        tensor *const tensors[4] = {&p.query, &p.key, &p.value, &p.output};
        const int64_t shape[4][3] = {{1, 37, p.Eq}, {1, 70, p.Ek}, {1, 70, p.Ev}, {1, 37, p.Eo}};
        for (int t = 0; t < 4; ++t) {
            tensor_create(&room[t], 1, (int64_t[]){shape[t][1] * shape[t][2] + 16}, NULL);
            tensor_view(tensors[t], room[t].data + s, 3, shape[t], NULL);
        }
        uint8_t *bytes = calloc(37 * 70 + 16, 1);
        draw d = {7};
        draw_booleans(&d, bytes + s, 37 * 70, 0.7);
        trial_fill(&p, &d, 1.0f);
        mha_mask *mask = NULL;
        mha_context *ctx = NULL;
        SUCCEEDS(mha_context_create(&ctx, err));
        SUCCEEDS(mha_mask_create(&mask, err));
        SUCCEEDS(mha_mask_add_query_key_mask(mask, 37, 70, bytes + s, NULL, 0, err));
        mha_layer *layer = trial_layer(&p);
        mha_call *call = trial_call(&p);
        SUCCEEDS(mha_forward(ctx, layer, mask, call, err));
        if (first) {
            assert_same_bits(p.output.data, first, 37 * p.Eo);
        } else {
            first = tensor_read(&p.output);
        }
        mha_call_destroy(call);
        mha_layer_destroy(layer);
        mha_mask_destroy(mask);
        mha_context_destroy(ctx);
        for (int t = 0; t < 4; ++t) {
            tensor_destroy(&room[t]);
        }
        free(bytes);
        trial_end(&p);
    }
    free(first);
}

static void S05_E_that_H_does_not_divide_needs_a_head_size(void **state)
{
    (void)state;
    static const int64_t bad[2][2] = {{10, 3}, {2, 4}};
    static const char *const words[2][2] = {{"10", "3"}, {"2", "4"}};
    for (int i = 0; i < 2; ++i) {
        mha_config *cfg = NULL;
        mha_layer *layer = (mha_layer *)&layer;
        SUCCEEDS(mha_config_create(bad[i][0], bad[i][1], &cfg, err));
        REFUSED(MHA_ERROR_HEAD_COUNT, mha_layer_create(cfg, &layer, err), words[i][0], words[i][1]);
        assert_null(layer);
        mha_config_destroy(cfg);
    }
    trial p; /* 12 features between the projections */
    trial_begin(&p, 1, 4, 6, 3, 3, 4, 4);
    p.E = 10;
    for (int32_t side = 0; side < 4; ++side) {
        trial_project(&p, side, 10, 1);
    }
    trial_tensors(&p, 1, 1);
    draw d = {8};
    trial_fill(&p, &d, 1.0f);
    expect_oracle(&p);
    trial_end(&p);
}

static void S07_query_heads_read_their_key_value_head_in_blocks(void **state)
{
    (void)state;
    trial p;
    trial_begin(&p, 1, 3, 2, 6, 3, 2, 1);
    trial_tensors(&p, 0, 0);
    draw d = {9};
    trial_fill(&p, &d, 1.0f);
    for (int64_t j = 0; j < 2; ++j) {
        for (int64_t g = 0; g < 3; ++g) {
            *tensor_feature(&p.value, 0, j, g) = 10.0f * (float)(g + 1);
        }
    }
    SUCCEEDS(trial_forward(&p, 0, err));
    for (int64_t i = 0; i < 3; ++i) {
        for (int64_t h = 0; h < 6; ++h) {
            assert_close(*tensor_feature(&p.output, 0, i, h), 10.0 * (double)(h / 2 + 1), 1e-5);
        }
    }
    trial_end(&p);
}

/* ---- B, R, P: stale memory, sizes, stack, denormals ---- */

static void B11_a_call_with_nan_leaves_nothing_behind_in_the_context(void **state)
{
    (void)state;
    for (int64_t n = 1; n <= 33; ++n) {
        trial clean, dirty;
        trial *const both[2] = {&clean, &dirty};
        for (int t = 0; t < 2; ++t) {
            trial_begin(both[t], 1, n, n + 2, 2, 1, n, n % 5 + 1);
            for (int32_t side = 0; n % 2 && side < 4; ++side) {
                trial_project(both[t], side, n, 1);
            }
            trial_tensors(both[t], 1, 1); /* outputs start as NaN */
            draw d = {10};
            trial_fill(both[t], &d, 1.0f);
        }
        tensor_flood(&dirty.query, NAN);
        tensor_flood(&dirty.key, NAN);
        tensor_flood(&dirty.value, NAN);
        SUCCEEDS(trial_forward(&clean, 0, err));
        float *fresh = tensor_read(&clean.output);
        tensor_flood(&clean.output, NAN);
        mha_context *ctx = NULL;
        SUCCEEDS(mha_context_create(&ctx, err));
        mha_layer *layer = trial_layer(&clean);
        for (int t = 1; t >= 0; --t) {
            mha_call *call = trial_call(both[t]);
            SUCCEEDS(mha_forward(ctx, layer, NULL, call, err));
            mha_call_destroy(call);
        }
        assert_same_bits(clean.output.data, fresh, tensor_elements(&clean.output));
        free(fresh);
        mha_layer_destroy(layer);
        mha_context_destroy(ctx);
        trial_end(&clean);
        trial_end(&dirty);
    }
}

static void R01_sizes_of_2_31_minus_1_are_refused_never_wrapped(void **state)
{
    (void)state;
    const int64_t most = INT32_MAX;
    float x[4] = {0}, out[4] = {-7, -7, -7, -7};
    REFUSED(MHA_ERROR_TOO_LARGE,
            mha_attention(most, most, most, 1, 1, 1, x, x + 1, x + 2, 0, out, err), "2147483647");
    REFUSED(MHA_ERROR_TOO_LARGE,
            mha_attention(most, most, 1, 1, 1, most, x, x + 1, x + 2, 0, out, err), "2147483647");
    REFUSED(MHA_ERROR_TOO_LARGE,
            mha_attention(1, 1, 1, most, most, most, x, x + 1, x + 2, 0, out, err), "2147483647");
    /* 2^32 wraps to 0 in 32 bits */
    mha_context *ctx = NULL;
    mha_config *cfg = NULL;
    mha_layer *layer = NULL;
    SUCCEEDS(mha_context_create(&ctx, err));
    SUCCEEDS(mha_config_create(most, 1, &cfg, err));
    SUCCEEDS(mha_config_set_head_size(cfg, most, err));
    for (int32_t side = 0; side < 4; ++side) {
        SUCCEEDS(mha_config_set_projection(cfg, side, 0, err));
    }
    SUCCEEDS(mha_layer_create(cfg, &layer, err));
    mha_plan *plan = (mha_plan *)&plan;
    REFUSED(MHA_ERROR_TOO_LARGE, mha_plan_create(ctx, layer, NULL, most, most, most, 3, &plan, err),
            "2147483647");
    assert_null(plan);
    assert_true(all_are(out, 4, -7.0f));
    mha_layer_destroy(layer);
    mha_config_destroy(cfg);
    mha_context_destroy(ctx);
}

/* q = 0 and v_j = j: row i of a causal attention is i / 2. */
static void *R03_in_a_small_stack(void *argument)
{
    static const int64_t sizes[] = {8191, 8192, 8193, 20000};
    intptr_t wrong = 0;
    for (int s = 0; s < (MHA_TESTS_REDUCED ? 1 : 4); ++s) {
        const int64_t T = sizes[s];
        float *q = calloc((size_t)T, sizeof *q), *v = calloc((size_t)T, sizeof *v);
        float *out = calloc((size_t)T, sizeof *out);
        if (!q || !v || !out) {
            return (void *)1;
        }
        for (int64_t j = 0; j < T; ++j) {
            v[j] = (float)j;
        }
        wrong |= mha_attention(1, T, T, 1, 1, 1, q, q, v, MHA_CAUSAL_TOP_LEFT, out, argument) != 0;
        for (int64_t i = 0; i < T; ++i) {
            double expected = (double)i / 2;
            /* c eps (log2 S + 4) max|v|, section "Numerics" of the header with A = 0 */
            wrong |= !(fabs((double)out[i] - expected) <=
                       8 * 0x1p-24 * (log2((double)T) + 4) * (double)T);
        }
        free(q);
        free(v);
        free(out);
    }
    return (void *)wrong;
}

static void R03_long_sequences_fit_a_stack_of_128_KiB(void **state)
{
    (void)state;
    pthread_attr_t attributes;
    pthread_t thread;
    void *wrong = NULL;
    mha_error *err = mha_error_create();
    assert_int_equal(pthread_attr_init(&attributes), 0);
    assert_int_equal(pthread_attr_setstacksize(&attributes, 128 * 1024), 0);
    int created = pthread_create(&thread, &attributes, R03_in_a_small_stack, err);
    if (created == EINVAL) { /* a BLAS whose thread-local data, taken from the stack, exceed that */
        assert_int_equal(pthread_attr_setstacksize(&attributes, 384 * 1024), 0);
        created = pthread_create(&thread, &attributes, R03_in_a_small_stack, err);
    }
    assert_int_equal(created, 0);
    assert_int_equal(pthread_join(thread, &wrong), 0);
    assert_string_equal(sentence_of(err), "");
    assert_null(wrong);
    pthread_attr_destroy(&attributes);
    mha_error_destroy(err);
}

static void P03_denormal_numbers_count_as_zero_or_as_themselves(void **state)
{
    (void)state;
    trial p;
    trial_begin(&p, 1, 9, 70, 2, 2, 16, 16);
    trial_tensors(&p, 1, 1);
    draw d = {11};
    trial_fill(&p, &d, 1.0f);
    tensor_flood(&p.value, 1e-40f);
    SUCCEEDS(trial_forward(&p, 0, err));
    for (int64_t i = 0; i < tensor_elements(&p.output); ++i) {
        float x = p.output.data[i];
        assert_true(x == 0 || fabsf(x - 1e-40f) < 1e-43f);
    }
    tensor_flood(&p.query, 1e-40f); /* scores of 0: the mean */
    draw_fill(&d, p.value.data, p.value.count, -1, 1);
    expect_oracle(&p);
    trial_end(&p);
}

/* ---- C: lifetime ---- */

static void C02_objects_after_a_failed_call_give_the_bits_of_one_that_never_failed(void **state)
{
    (void)state;
    trial p;
    trial_begin(&p, 1, 20, 20, 2, 2, 8, 8);
    for (int32_t side = 0; side < 4; ++side) {
        trial_project(&p, side, 16, 1);
    }
    p.causal = 1;
    trial_tensors(&p, 0, 0);
    draw d = {12};
    trial_fill(&p, &d, 1.0f);
    SUCCEEDS(trial_forward(&p, 0, err));
    float *expected = tensor_read(&p.output);

    mha_context *ctx = NULL;
    SUCCEEDS(mha_context_create(&ctx, err));
    mha_layer *layer = trial_layer(&p);
    mha_mask *mask = trial_mask(&p);
    mha_call *call = trial_call(&p);
    float x[16] = {0};
    REFUSED(MHA_ERROR_SHAPE,
            mha_layer_set_parameter(layer, MHA_PARAM_Q_BIAS, MHA_FLOAT32, x, 15, err), "15", "16");
    REFUSED(MHA_ERROR_SHAPE, mha_mask_set_window(mask, -9, 0, err), "-9");
    REFUSED(MHA_ERROR_VALUE, mha_context_set_threads(ctx, 1000, err), "1000");
    REFUSED(MHA_ERROR_SHAPE,
            mha_call_set_input(call, MHA_TENSOR_KEY, MHA_FLOAT32, x, 3, (int64_t[]){1, -1, 16},
                               NULL, err),
            "-1");
    REFUSED(MHA_ERROR_ALIGNMENT,
            mha_layer_forward(ctx, layer, 1, 19, 20, p.query.data, p.key.data, p.value.data, mask,
                              p.output.data, err),
            "19", "20");
    tensor_flood(&p.output, -7.0f);
    SUCCEEDS(mha_forward(ctx, layer, mask, call, err));
    assert_same_bits(p.output.data, expected, tensor_elements(&p.output));
    free(expected);
    mha_call_destroy(call);
    mha_mask_destroy(mask);
    mha_layer_destroy(layer);
    mha_context_destroy(ctx);
    trial_end(&p);
}

/* The inputs of the flat calls are the caller's again at once: nobody reads them later. */
static void C02_objects_keep_no_pointer_of_the_flat_calls(void **state)
{
    (void)state;
    const size_t numbers = 16 * 16;
    guarded page;
    float *x = guarded_create(&page, numbers * sizeof *x, 1), out[2][16 * 16];
    draw d = {13};
    mha_config *cfg = NULL;
    mha_layer *layer = NULL;
    mha_context *ctx = NULL;
    SUCCEEDS(mha_config_create(16, 2, &cfg, err));
    SUCCEEDS(mha_layer_create(cfg, &layer, err));
    SUCCEEDS(mha_context_create(&ctx, err));
    for (int32_t id = 0; id < 8; ++id) {
        draw_fill(&d, x, (int64_t)numbers, -1, 1);
        SUCCEEDS(mha_layer_set_parameter(layer, id, MHA_FLOAT32, x,
                                         mha_layer_parameter_count(layer, id), err));
        guarded_lock(&page);
        assert_true(mha_layer_bytes(layer) > 0);
        guarded_unlock(&page);
    }
    float y[16 * 16];
    draw_fill(&d, y, 256, -1, 1);
    for (int run = 0; run < 2; ++run) {
        memcpy(x, y, sizeof y);
        SUCCEEDS(mha_layer_forward(ctx, layer, 1, 16, 16, x, x, x, NULL, out[run], err));
        guarded_lock(&page);
        assert_true(mha_context_bytes(ctx) > 0);
        guarded_unlock(&page);
    }
    assert_same_bits(out[0], out[1], 256);
    guarded_lock(&page);
    SUCCEEDS(mha_layer_forward(ctx, layer, 1, 16, 16, y, y, y, NULL, out[1], err));
    assert_same_bits(out[0], out[1], 256);
    mha_context_destroy(ctx);
    mha_layer_destroy(layer);
    mha_config_destroy(cfg);
    guarded_destroy(&page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(A05_empty_sizes_succeed_and_write_only_what_exists),
        cmocka_unit_test(A05_empty_tensors_may_be_null),
        cmocka_unit_test(A06_a_row_that_sees_nothing_is_the_output_bias_exactly),
        cmocka_unit_test(A08_padding_changes_nothing_in_the_valid_rows_and_is_zero_itself),
        cmocka_unit_test(M14_one_head_that_sees_nothing_is_zero_with_and_without_weights),
        cmocka_unit_test(N01_equal_scores_of_any_size_give_the_mean),
        cmocka_unit_test(N01_a_finite_score_is_reached_without_overflow_on_the_way),
        cmocka_unit_test(N03_an_infinite_score_is_nan_in_its_row_only),
        cmocka_unit_test(N03_scores_of_minus_infinity_give_zeros_not_nan),
        cmocka_unit_test(W02_weights_and_result_keep_the_words_behind_their_buffers),
        cmocka_unit_test(S02_any_head_size_reads_nothing_beside_its_rows),
        cmocka_unit_test(S03_every_alignment_gives_the_same_bits),
        cmocka_unit_test(S05_E_that_H_does_not_divide_needs_a_head_size),
        cmocka_unit_test(S07_query_heads_read_their_key_value_head_in_blocks),
        cmocka_unit_test(B11_a_call_with_nan_leaves_nothing_behind_in_the_context),
        cmocka_unit_test(R01_sizes_of_2_31_minus_1_are_refused_never_wrapped),
        cmocka_unit_test(R03_long_sequences_fit_a_stack_of_128_KiB),
        cmocka_unit_test(P03_denormal_numbers_count_as_zero_or_as_themselves),
        cmocka_unit_test(C02_objects_after_a_failed_call_give_the_bits_of_one_that_never_failed),
        cmocka_unit_test(C02_objects_keep_no_pointer_of_the_flat_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
