/* SPDX-License-Identifier: Apache-2.0 */
/* mha_attention, the one call without objects. */
#include "support/brutal.h"
#include "support/oracle.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

static int32_t attention(const trial *p, int32_t causal, mha_error *err)
{
    return mha_attention(p->B, p->T, p->S, p->H, p->G, p->D, p->query.data, p->key.data,
                         p->value.data, causal, p->output.data, err);
}

static void fill(trial *p, int64_t B, int64_t T, int64_t S, int64_t H, int64_t G, int64_t D)
{
    trial_begin(p, B, T, S, H, G, D, D);
    trial_tensors(p, 0, 0);
    draw d = {(uint64_t)(T * 100 + S)};
    trial_fill(p, &d, 1.0f);
}

static void attention_equals_the_oracle_for_each_kind_of_causal(void **state)
{
    (void)state;
    static const int64_t sizes[][2] = {{1, 1}, {7, 7}, {5, 12}, {12, 5}, {1, 40}, {70, 66}};
    for (int i = 0; i < 6; ++i) {
        for (int32_t causal = 0; causal < 3; ++causal) {
            trial p;
            fill(&p, 2, sizes[i][0], sizes[i][1], 4, 2, 9);
            p.causal = causal != MHA_CAUSAL_NONE;
            p.alignment =
                causal == MHA_CAUSAL_TOP_LEFT ? MHA_ALIGNMENT_TOP_LEFT : MHA_ALIGNMENT_BOTTOM_RIGHT;
            SUCCEEDS(attention(&p, causal, err));
            oracle r;
            oracle_run(&p, &r);
            assert_true(oracle_compare(&p, &r) <= 1);
            oracle_end(&r);
            trial_end(&p);
        }
    }
}

static void attention_and_a_layer_without_projections_give_the_same_bits(void **state)
{
    (void)state;
    trial p;
    fill(&p, 2, 33, 33, 4, 4, 16);
    SUCCEEDS(attention(&p, MHA_CAUSAL_NONE, err));
    float *flat = tensor_read(&p.output);
    SUCCEEDS(trial_forward(&p, 0, err));
    assert_same_bits(p.output.data, flat, p.output.count);
    free(flat);
    trial_end(&p);
}

static void attention_over_one_buffer_as_q_k_and_v(void **state)
{
    (void)state;
    trial p;
    fill(&p, 1, 20, 20, 2, 2, 8);
    tensor_destroy(&p.key);
    tensor_destroy(&p.value);
    tensor_view(&p.key, p.query.data, 3, p.query.shape, NULL);
    tensor_view(&p.value, p.query.data, 3, p.query.shape, NULL);
    SUCCEEDS(attention(&p, MHA_CAUSAL_NONE, err));
    oracle r;
    oracle_run(&p, &r);
    assert_true(oracle_compare(&p, &r) <= 1);
    oracle_end(&r);
    trial_end(&p);
}

static void attention_without_keys_is_zero_and_without_queries_writes_nothing(void **state)
{
    (void)state;
    float q[4] = {1, 2, 3, 4}, out[4] = {-7, -7, -7, -7};
    SUCCEEDS(mha_attention(1, 2, 0, 1, 1, 2, q, NULL, NULL, 0, out, err));
    assert_true(all_are(out, 4, 0.0f));
    out[0] = -7;
    SUCCEEDS(mha_attention(0, 2, 2, 1, 1, 2, NULL, NULL, NULL, 0, NULL, err));
    SUCCEEDS(mha_attention(1, 0, 2, 1, 1, 2, NULL, q, q, 0, NULL, err));
    SUCCEEDS(mha_attention(0, 0, 0, 1, 1, 2, NULL, NULL, NULL, 2, NULL, err));
    assert_true(out[0] == -7.0f);
}

static void attention_with_bad_arguments_is_refused_and_writes_nothing(void **state)
{
    (void)state;
    float x[64] = {0}, out[8] = {-7, -7, -7, -7, -7, -7, -7, -7};
    const int64_t huge = INT64_C(1) << 40;
    const int32_t null = MHA_ERROR_NULL_ARGUMENT;
    REFUSED(null, mha_attention(1, 2, 2, 1, 1, 4, NULL, x, x, 0, out, err), "QUERY");
    REFUSED(null, mha_attention(1, 2, 2, 1, 1, 4, x, NULL, x, 0, out, err), "KEY");
    REFUSED(null, mha_attention(1, 2, 2, 1, 1, 4, x, x, NULL, 0, out, err), "VALUE");
    REFUSED(null, mha_attention(1, 2, 2, 1, 1, 4, x, x, x, 0, NULL, err), "OUTPUT");
    REFUSED(MHA_ERROR_UNKNOWN_ID, mha_attention(1, 2, 2, 1, 1, 4, x, x, x, 3, out, err), "3");
    REFUSED(MHA_ERROR_UNKNOWN_ID, mha_attention(1, 2, 2, 1, 1, 4, x, x, x, -1, out, err), "-1");
    REFUSED(MHA_ERROR_SHAPE, mha_attention(-1, 2, 2, 1, 1, 4, x, x, x, 0, out, err), "-1");
    REFUSED(MHA_ERROR_SHAPE, mha_attention(1, -2, 2, 1, 1, 4, x, x, x, 0, out, err), "-2");
    REFUSED(MHA_ERROR_SHAPE, mha_attention(1, 2, -3, 1, 1, 4, x, x, x, 0, out, err), "-3");
    REFUSED(MHA_ERROR_SHAPE, mha_attention(1, 2, 2, 1, 1, 0, x, x, x, 0, out, err), "0");
    REFUSED(MHA_ERROR_HEAD_COUNT, mha_attention(1, 2, 2, 0, 1, 4, x, x, x, 0, out, err), "0");
    REFUSED(MHA_ERROR_HEAD_COUNT, mha_attention(1, 2, 2, 1, 0, 4, x, x, x, 0, out, err), "0");
    REFUSED(MHA_ERROR_HEAD_COUNT, mha_attention(1, 2, 2, 6, 4, 4, x, x, x, 0, out, err), "6", "4");
    REFUSED(MHA_ERROR_TOO_LARGE, mha_attention(huge, huge, 2, 1, 1, 4, x, x, x, 0, out, err), "");
    REFUSED(MHA_ERROR_TOO_LARGE, mha_attention(1, 2, INT64_MAX, 1, 1, 4, x, x, x, 0, out, err), "");
    REFUSED(MHA_ERROR_TOO_LARGE, mha_attention(1, 2, 2, 65536, 1, 65536, x, x, x, 0, out, err), "");
    REFUSED(MHA_ERROR_OVERLAP, mha_attention(1, 2, 2, 1, 1, 4, x, x + 8, x + 16, 0, x + 7, err),
            "OUTPUT");
    REFUSED(MHA_ERROR_OVERLAP, mha_attention(1, 2, 2, 1, 1, 4, x, x + 8, x + 16, 0, x + 23, err),
            "OUTPUT");
    assert_true(all_are(out, 8, -7.0f));
    /* side by side is no overlap */
    SUCCEEDS(mha_attention(1, 2, 2, 1, 1, 4, x, x + 8, x + 16, 0, x + 24, err));
}

/* ---- any number of calls at once ---- */

enum { THREADS = 6, ROUNDS = 20 };

static void *attend_again_and_again(void *argument)
{
    uint64_t seed = *(const uint64_t *)argument;
    trial p;
    fill(&p, 1, 17 + (int64_t)seed * 13, 40, 4, 2, 16);
    intptr_t wrong = attention(&p, MHA_CAUSAL_BOTTOM_RIGHT, NULL) != MHA_OK;
    float *first = tensor_read(&p.output);
    for (int round = 0; round < ROUNDS; ++round) {
        tensor_flood(&p.output, NAN);
        wrong |= attention(&p, MHA_CAUSAL_BOTTOM_RIGHT, NULL) != MHA_OK;
        wrong |= !same_bits(p.output.data, first, tensor_elements(&p.output));
    }
    oracle r;
    p.causal = 1;
    p.alignment = MHA_ALIGNMENT_BOTTOM_RIGHT;
    oracle_run(&p, &r);
    wrong |= !(oracle_compare(&p, &r) <= 1);
    oracle_end(&r);
    free(first);
    trial_end(&p);
    return (void *)wrong;
}

static void attention_from_many_threads_at_once_gives_each_its_own_result(void **state)
{
    (void)state;
    pthread_t thread[THREADS];
    uint64_t seed[THREADS];
    for (int t = 0; t < THREADS; ++t) {
        seed[t] = (uint64_t)t;
        assert_int_equal(pthread_create(&thread[t], NULL, attend_again_and_again, &seed[t]), 0);
    }
    for (int t = 0; t < THREADS; ++t) {
        void *wrong = NULL;
        assert_int_equal(pthread_join(thread[t], &wrong), 0);
        assert_null(wrong);
    }
}

/* ---- brutal ---- */

static void attention_without_memory_writes_nothing_and_leaks_nothing(void **state)
{
    (void)state;
    trial p;
    fill(&p, 2, 150, 150, 4, 4, 24); /* larger than all before: the hidden context has to grow */
    tensor_flood(&p.output, -7.0f);
    BRUTAL(attention(&p, MHA_CAUSAL_NONE, NULL),
           assert_true(all_are(p.output.block, p.output.count, -7.0f)));
    oracle r;
    oracle_run(&p, &r);
    assert_true(oracle_compare(&p, &r) <= 1);
    oracle_end(&r);
    trial_end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention_equals_the_oracle_for_each_kind_of_causal),
        cmocka_unit_test(attention_and_a_layer_without_projections_give_the_same_bits),
        cmocka_unit_test(attention_over_one_buffer_as_q_k_and_v),
        cmocka_unit_test(attention_without_keys_is_zero_and_without_queries_writes_nothing),
        cmocka_unit_test(attention_with_bad_arguments_is_refused_and_writes_nothing),
        cmocka_unit_test(attention_from_many_threads_at_once_gives_each_its_own_result),
        cmocka_unit_test(attention_without_memory_writes_nothing_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
