/* SPDX-License-Identifier: Apache-2.0 */
#include "support/brutal.h"

#include <math.h>

#define TOO_MANY (INT64_C(1) << 31) /* one above 2^31 - 1 */

static mha_config *config_of(int64_t embedding, int64_t heads)
{
    mha_config *cfg = NULL;
    assert_int_equal(mha_config_create(embedding, heads, &cfg, NULL), MHA_OK);
    assert_non_null(cfg);
    return cfg;
}

/* ---- behaviour ---- */

static void config_fresh_has_the_documented_defaults(void **state)
{
    (void)state;
    mha_config *cfg = config_of(512, 8);
    assert_int_equal(mha_config_embedding(cfg), 512);
    assert_int_equal(mha_config_heads(cfg), 8);
    assert_int_equal(mha_config_kv_heads(cfg), 8);
    assert_int_equal(mha_config_head_size(cfg), 64);
    assert_int_equal(mha_config_value_head_size(cfg), 64);
    assert_int_equal(mha_config_query_width(cfg), 512);
    assert_int_equal(mha_config_key_width(cfg), 512);
    assert_int_equal(mha_config_value_width(cfg), 512);
    assert_int_equal(mha_config_output_width(cfg), 512);
    for (int32_t side = 0; side < 4; ++side) {
        assert_int_equal(mha_config_projection(cfg, side), 1);
        assert_int_equal(mha_config_bias(cfg, side), 1);
    }
    assert_true(mha_config_scale(cfg) == 0.125f);
    assert_true(mha_config_softcap(cfg) == 0.0f);
    assert_int_equal(mha_config_rotary_size(cfg), 0);
    assert_int_equal(mha_config_rotary_pairing(cfg), MHA_ROTARY_HALVES);
    assert_true(mha_config_rotary_base(cfg) == 10000.0);
    assert_int_equal(mha_config_sinks(cfg), 0);
    assert_int_equal(mha_config_gates(cfg), 0);
    assert_int_equal(mha_config_extra_keys(cfg), 0);
    mha_config_destroy(cfg);
}

static void config_setters_change_what_they_name_and_nothing_else(void **state)
{
    (void)state;
    mha_config *cfg = config_of(48, 6);
    SUCCEEDS(mha_config_set_kv_heads(cfg, 3, err));
    SUCCEEDS(mha_config_set_head_size(cfg, 16, err));
    SUCCEEDS(mha_config_set_value_head_size(cfg, 5, err));
    SUCCEEDS(mha_config_set_query_width(cfg, 11, err));
    SUCCEEDS(mha_config_set_key_width(cfg, 12, err));
    SUCCEEDS(mha_config_set_value_width(cfg, 13, err));
    SUCCEEDS(mha_config_set_output_width(cfg, 14, err));
    SUCCEEDS(mha_config_set_projection(cfg, MHA_PROJECTION_V, 0, err));
    SUCCEEDS(mha_config_set_bias(cfg, MHA_PROJECTION_Q, 0, err));
    SUCCEEDS(mha_config_set_scale(cfg, -3.5f, err));

    assert_int_equal(mha_config_embedding(cfg), 48);
    assert_int_equal(mha_config_heads(cfg), 6);
    assert_int_equal(mha_config_kv_heads(cfg), 3);
    assert_int_equal(mha_config_head_size(cfg), 16);
    assert_int_equal(mha_config_value_head_size(cfg), 5);
    assert_int_equal(mha_config_query_width(cfg), 11);
    assert_int_equal(mha_config_key_width(cfg), 12);
    assert_int_equal(mha_config_value_width(cfg), 13);
    assert_int_equal(mha_config_output_width(cfg), 14);
    assert_int_equal(mha_config_projection(cfg, MHA_PROJECTION_Q), 1);
    assert_int_equal(mha_config_projection(cfg, MHA_PROJECTION_K), 1);
    assert_int_equal(mha_config_projection(cfg, MHA_PROJECTION_V), 0);
    assert_int_equal(mha_config_projection(cfg, MHA_PROJECTION_OUT), 1);
    assert_int_equal(mha_config_bias(cfg, MHA_PROJECTION_Q), 0);
    assert_int_equal(mha_config_bias(cfg, MHA_PROJECTION_K), 1);
    assert_int_equal(mha_config_bias(cfg, MHA_PROJECTION_V), 0);
    assert_int_equal(mha_config_bias(cfg, MHA_PROJECTION_OUT), 1);
    assert_true(mha_config_scale(cfg) == -3.5f);
    mha_config_destroy(cfg);
}

static void config_defaults_follow_what_they_depend_on(void **state)
{
    (void)state;
    mha_config *cfg = config_of(64, 4);
    SUCCEEDS(mha_config_set_head_size(cfg, 4, err));
    assert_int_equal(mha_config_value_head_size(cfg), 4);
    assert_true(mha_config_scale(cfg) == 0.5f);
    SUCCEEDS(mha_config_set_kv_heads(cfg, 2, err));
    for (int32_t side = 0; side < 4; ++side) {
        SUCCEEDS(mha_config_set_projection(cfg, side, 0, err));
    }
    SUCCEEDS(mha_config_set_value_head_size(cfg, 3, err));
    /* a projection that is off: the tensor holds the heads */
    assert_int_equal(mha_config_query_width(cfg), 4 * 4);
    assert_int_equal(mha_config_key_width(cfg), 2 * 4);
    assert_int_equal(mha_config_value_width(cfg), 2 * 3);
    assert_int_equal(mha_config_output_width(cfg), 4 * 3);
    mha_config_destroy(cfg);
}

static void config_head_size_is_zero_while_heads_do_not_divide_the_embedding(void **state)
{
    (void)state;
    mha_config *cfg = config_of(10, 3);
    assert_int_equal(mha_config_head_size(cfg), 0);
    SUCCEEDS(mha_config_set_head_size(cfg, 4, err));
    assert_int_equal(mha_config_head_size(cfg), 4);
    mha_config_destroy(cfg);
}

static void config_scale_of_zero_is_a_number_and_not_unset(void **state)
{
    (void)state;
    mha_config *cfg = config_of(4, 2);
    SUCCEEDS(mha_config_set_scale(cfg, 0.0f, err));
    assert_true(mha_config_scale(cfg) == 0.0f);
    mha_config_destroy(cfg);
}

static void config_head_scales_and_softcaps_replace_the_number_for_all_and_back(void **state)
{
    (void)state;
    mha_config *cfg = config_of(8, 2);
    float scales[2] = {-2.0f, 0.25f}, caps[2] = {30.0f, 0.0f};
    SUCCEEDS(mha_config_set_scale(cfg, 7.0f, err));
    SUCCEEDS(mha_config_set_softcap(cfg, 50.0f, err));
    assert_true(mha_config_softcap(cfg) == 50.0f);
    SUCCEEDS(mha_config_set_head_scales(cfg, 2, scales, err));
    SUCCEEDS(mha_config_set_head_softcaps(cfg, 2, caps, err));
    scales[0] = caps[0] = 99.0f; /* copied */
    assert_true(mha_config_scale(cfg) == -2.0f);
    assert_true(mha_config_softcap(cfg) == 30.0f);
    scales[0] = 3.0f;
    caps[0] = 4.0f;
    SUCCEEDS(mha_config_set_head_scales(cfg, 2, scales, err));
    SUCCEEDS(mha_config_set_head_softcaps(cfg, 2, caps, err));
    assert_true(mha_config_scale(cfg) == 3.0f);
    assert_true(mha_config_softcap(cfg) == 4.0f);
    int64_t blocks = mha__memory_live();
    SUCCEEDS(mha_config_set_scale(cfg, 5.0f, err));
    SUCCEEDS(mha_config_set_softcap(cfg, 0.0f, err));
    assert_int_equal(mha__memory_live(), blocks - 2);
    assert_true(mha_config_scale(cfg) == 5.0f);
    assert_true(mha_config_softcap(cfg) == 0.0f);
    SUCCEEDS(mha_config_set_head_scales(cfg, 2, scales, err));
    SUCCEEDS(mha_config_set_head_softcaps(cfg, 2, caps, err));
    mha_config_destroy(cfg); /* frees both */
    assert_true(mha__memory_live() < blocks - 2);
}

static void config_rotary_and_extras_are_stored(void **state)
{
    (void)state;
    mha_config *cfg = config_of(8, 2);
    SUCCEEDS(mha_config_set_rotary(cfg, MHA_ROTARY_NEIGHBOURS, 4, 500000.0, err));
    assert_int_equal(mha_config_rotary_pairing(cfg), MHA_ROTARY_NEIGHBOURS);
    assert_int_equal(mha_config_rotary_size(cfg), 4);
    assert_true(mha_config_rotary_base(cfg) == 500000.0);
    SUCCEEDS(mha_config_set_rotary(cfg, MHA_ROTARY_HALVES, 2, 0.0, err)); /* 0 = the default */
    assert_true(mha_config_rotary_base(cfg) == 10000.0);
    SUCCEEDS(mha_config_set_rotary(cfg, MHA_ROTARY_HALVES, 0, 0.0, err));
    assert_int_equal(mha_config_rotary_size(cfg), 0);
    for (int32_t on = 1; on >= 0; --on) {
        SUCCEEDS(mha_config_set_sinks(cfg, on, err));
        assert_int_equal(mha_config_sinks(cfg), on);
        assert_int_equal(mha_config_gates(cfg), 0);
        SUCCEEDS(mha_config_set_gates(cfg, on, err));
        assert_int_equal(mha_config_gates(cfg), on);
        SUCCEEDS(mha_config_set_gates(cfg, 0, err));
    }
    for (int32_t bias_kv = 0; bias_kv < 2; ++bias_kv) {
        for (int32_t zero = 0; zero < 2; ++zero) {
            SUCCEEDS(mha_config_set_extra_keys(cfg, bias_kv, zero, err));
            assert_int_equal(mha_config_extra_keys(cfg), bias_kv + zero);
        }
    }
    mha_config_destroy(cfg);
}

static void config_largest_sizes_are_accepted(void **state)
{
    (void)state;
    mha_config *cfg = config_of(INT32_MAX, 1);
    SUCCEEDS(mha_config_set_head_size(cfg, INT32_MAX, err));
    SUCCEEDS(mha_config_set_value_head_size(cfg, INT32_MAX, err));
    SUCCEEDS(mha_config_set_query_width(cfg, INT32_MAX, err));
    SUCCEEDS(mha_config_set_key_width(cfg, INT32_MAX, err));
    SUCCEEDS(mha_config_set_value_width(cfg, INT32_MAX, err));
    SUCCEEDS(mha_config_set_output_width(cfg, INT32_MAX, err));
    mha_config_destroy(cfg);
}

static void config_destroy_of_null_does_nothing(void **state)
{
    (void)state;
    mha_config_destroy(NULL);
}

/* ---- refusals ---- */

static void config_create_with_bad_sizes_is_refused_and_stores_null(void **state)
{
    (void)state;
    mha_config *cfg = (mha_config *)&cfg;
    REFUSED(MHA_ERROR_SHAPE, mha_config_create(0, 1, &cfg, err), "0");
    assert_null(cfg);
    REFUSED(MHA_ERROR_SHAPE, mha_config_create(-7, 1, &cfg, err), "-7");
    REFUSED(MHA_ERROR_SHAPE, mha_config_create(TOO_MANY, 1, &cfg, err), "2147483648");
    cfg = (mha_config *)&cfg;
    REFUSED(MHA_ERROR_HEAD_COUNT, mha_config_create(8, 0, &cfg, err), "0");
    assert_null(cfg);
    REFUSED(MHA_ERROR_HEAD_COUNT, mha_config_create(8, -1, &cfg, err), "-1");
    REFUSED(MHA_ERROR_HEAD_COUNT, mha_config_create(8, TOO_MANY, &cfg, err), "2147483648");
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_config_create(8, 1, NULL, err), "NULL");
}

static void config_kv_heads_that_do_not_divide_are_refused_with_both_numbers(void **state)
{
    (void)state;
    mha_config *cfg = config_of(24, 6);
    REFUSED(MHA_ERROR_HEAD_COUNT, mha_config_set_kv_heads(cfg, 4, err), "6", "4");
    REFUSED(MHA_ERROR_HEAD_COUNT, mha_config_set_kv_heads(cfg, 0, err), "0");
    REFUSED(MHA_ERROR_HEAD_COUNT, mha_config_set_kv_heads(cfg, -2, err), "-2");
    REFUSED(MHA_ERROR_HEAD_COUNT, mha_config_set_kv_heads(cfg, 12, err), "12", "6");
    assert_int_equal(mha_config_kv_heads(cfg), 6);
    mha_config_destroy(cfg);
}

typedef int32_t size_setter(mha_config *, int64_t, mha_error *);
typedef int64_t size_getter(const mha_config *);

static void config_sizes_outside_their_range_are_refused_and_change_nothing(void **state)
{
    (void)state;
    size_setter *const set[] = {mha_config_set_head_size,   mha_config_set_value_head_size,
                                mha_config_set_query_width, mha_config_set_key_width,
                                mha_config_set_value_width, mha_config_set_output_width};
    size_getter *const get[] = {mha_config_head_size,   mha_config_value_head_size,
                                mha_config_query_width, mha_config_key_width,
                                mha_config_value_width, mha_config_output_width};
    mha_config *cfg = config_of(30, 3);
    for (int i = 0; i < 6; ++i) {
        int64_t before = get[i](cfg);
        REFUSED(MHA_ERROR_SHAPE, set[i](cfg, 0, err), "0");
        REFUSED(MHA_ERROR_SHAPE, set[i](cfg, -5, err), "-5");
        REFUSED(MHA_ERROR_SHAPE, set[i](cfg, TOO_MANY, err), "2147483648");
        REFUSED(MHA_ERROR_NULL_ARGUMENT, set[i](NULL, 1, err), "NULL");
        assert_int_equal(get[i](cfg), before);
    }
    mha_config_destroy(cfg);
}

static void config_projection_and_bias_refuse_unknown_ids_and_values(void **state)
{
    (void)state;
    mha_config *cfg = config_of(8, 2);
    REFUSED(MHA_ERROR_UNKNOWN_ID, mha_config_set_projection(cfg, -1, 0, err), "-1");
    REFUSED(MHA_ERROR_UNKNOWN_ID, mha_config_set_projection(cfg, 4, 0, err), "4");
    REFUSED(MHA_ERROR_VALUE, mha_config_set_projection(cfg, 0, 2, err), "2");
    REFUSED(MHA_ERROR_VALUE, mha_config_set_projection(cfg, 0, -1, err), "-1");
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_config_set_projection(NULL, 0, 0, err), "NULL");
    REFUSED(MHA_ERROR_UNKNOWN_ID, mha_config_set_bias(cfg, -1, 0, err), "-1");
    REFUSED(MHA_ERROR_UNKNOWN_ID, mha_config_set_bias(cfg, 4, 0, err), "4");
    REFUSED(MHA_ERROR_VALUE, mha_config_set_bias(cfg, 0, 2, err), "2");
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_config_set_bias(NULL, 0, 0, err), "NULL");
    for (int32_t side = 0; side < 4; ++side) {
        assert_int_equal(mha_config_projection(cfg, side), 1);
        assert_int_equal(mha_config_bias(cfg, side), 1);
    }
    assert_int_equal(mha_config_projection(cfg, 4), MHA_ERROR_UNKNOWN_ID);
    assert_int_equal(mha_config_bias(cfg, -1), MHA_ERROR_UNKNOWN_ID);
    mha_config_destroy(cfg);
}

static void config_scale_that_is_no_number_is_refused(void **state)
{
    (void)state;
    mha_config *cfg = config_of(4, 1);
    REFUSED(MHA_ERROR_VALUE, mha_config_set_scale(cfg, NAN, err), "nan");
    REFUSED(MHA_ERROR_VALUE, mha_config_set_scale(cfg, INFINITY, err), "inf");
    REFUSED(MHA_ERROR_VALUE, mha_config_set_scale(cfg, -INFINITY, err), "-inf");
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_config_set_scale(NULL, 1.0f, err), "NULL");
    assert_true(mha_config_scale(cfg) == 0.5f);
    mha_config_destroy(cfg);
}

static void config_scores_refuse_what_is_no_number_and_change_nothing(void **state)
{
    (void)state;
    mha_config *cfg = config_of(12, 3);
    const float good[3] = {1, 2, 3}, bad[3] = {1, NAN, 3}, endless[3] = {1, 2, -INFINITY},
                negative[3] = {4, 5, -0.5f};
    SUCCEEDS(mha_config_set_head_scales(cfg, 3, good, err));
    SUCCEEDS(mha_config_set_head_softcaps(cfg, 3, good + 0, err));
    REFUSED(MHA_ERROR_SHAPE, mha_config_set_head_scales(cfg, 2, bad, err), "2", "H = 3");
    REFUSED(MHA_ERROR_SHAPE, mha_config_set_head_scales(cfg, -3, bad, err), "-3", "H = 3");
    REFUSED(MHA_ERROR_VALUE, mha_config_set_head_scales(cfg, 3, bad, err), "head 1", "nan");
    REFUSED(MHA_ERROR_VALUE, mha_config_set_head_scales(cfg, 3, endless, err), "head 2", "-inf");
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_config_set_head_scales(cfg, 3, NULL, err), "NULL");
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_config_set_head_scales(NULL, 3, good, err), "NULL");
    REFUSED(MHA_ERROR_SHAPE, mha_config_set_head_softcaps(cfg, 4, good, err), "4", "H = 3");
    REFUSED(MHA_ERROR_VALUE, mha_config_set_head_softcaps(cfg, 3, bad, err), "head 1", "nan");
    REFUSED(MHA_ERROR_VALUE, mha_config_set_head_softcaps(cfg, 3, negative, err), "head 2", "-0.5");
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_config_set_head_softcaps(cfg, 3, NULL, err), "NULL");
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_config_set_head_softcaps(NULL, 3, good, err), "NULL");
    REFUSED(MHA_ERROR_VALUE, mha_config_set_softcap(cfg, -1.0f, err), "-1");
    REFUSED(MHA_ERROR_VALUE, mha_config_set_softcap(cfg, NAN, err), "nan");
    REFUSED(MHA_ERROR_VALUE, mha_config_set_softcap(cfg, INFINITY, err), "inf");
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_config_set_softcap(NULL, 1.0f, err), "NULL");
    REFUSED(MHA_ERROR_VALUE, mha_config_set_scale(cfg, NAN, err), "nan");
    assert_true(mha_config_scale(cfg) == 1.0f); /* still per head */
    assert_true(mha_config_softcap(cfg) == 1.0f);
    mha_config_destroy(cfg);
}

static void config_rotary_and_extras_refuse_what_is_outside_their_range(void **state)
{
    (void)state;
    mha_config *cfg = config_of(8, 2);
    SUCCEEDS(mha_config_set_rotary(cfg, MHA_ROTARY_NEIGHBOURS, 4, 500.0, err));
    REFUSED(MHA_ERROR_UNKNOWN_ID, mha_config_set_rotary(cfg, 2, 4, 0.0, err), "2");
    REFUSED(MHA_ERROR_UNKNOWN_ID, mha_config_set_rotary(cfg, -1, 4, 0.0, err), "-1");
    REFUSED(MHA_ERROR_SHAPE, mha_config_set_rotary(cfg, 0, 3, 0.0, err), "3", "even");
    REFUSED(MHA_ERROR_SHAPE, mha_config_set_rotary(cfg, 0, -2, 0.0, err), "-2");
    REFUSED(MHA_ERROR_VALUE, mha_config_set_rotary(cfg, 0, 2, -1.0, err), "-1");
    REFUSED(MHA_ERROR_VALUE, mha_config_set_rotary(cfg, 0, 2, (double)NAN, err), "nan");
    REFUSED(MHA_ERROR_VALUE, mha_config_set_rotary(cfg, 0, 2, (double)INFINITY, err), "inf");
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_config_set_rotary(NULL, 0, 2, 0.0, err), "NULL");
    assert_int_equal(mha_config_rotary_pairing(cfg), MHA_ROTARY_NEIGHBOURS);
    assert_int_equal(mha_config_rotary_size(cfg), 4);
    assert_true(mha_config_rotary_base(cfg) == 500.0);

    SUCCEEDS(mha_config_set_extra_keys(cfg, 1, 1, err));
    REFUSED(MHA_ERROR_VALUE, mha_config_set_extra_keys(cfg, 0, 2, err), "zero = 2");
    REFUSED(MHA_ERROR_VALUE, mha_config_set_extra_keys(cfg, -1, 0, err), "bias_kv = -1");
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_config_set_extra_keys(NULL, 0, 0, err), "NULL");
    REFUSED(MHA_ERROR_VALUE, mha_config_set_sinks(cfg, 2, err), "2");
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_config_set_sinks(NULL, 1, err), "NULL");
    REFUSED(MHA_ERROR_VALUE, mha_config_set_gates(cfg, -1, err), "-1");
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_config_set_gates(NULL, 1, err), "NULL");
    assert_int_equal(mha_config_extra_keys(cfg), 2);
    assert_int_equal(mha_config_sinks(cfg), 0);
    assert_int_equal(mha_config_gates(cfg), 0);
    mha_config_destroy(cfg);
}

static void config_getters_of_null_say_so(void **state)
{
    (void)state;
    size_getter *const get[] = {
        mha_config_embedding, mha_config_heads,           mha_config_kv_heads,
        mha_config_head_size, mha_config_value_head_size, mha_config_query_width,
        mha_config_key_width, mha_config_value_width,     mha_config_output_width};
    for (int i = 0; i < 9; ++i) {
        assert_int_equal(get[i](NULL), MHA_ERROR_NULL_ARGUMENT);
    }
    assert_int_equal(mha_config_projection(NULL, 0), MHA_ERROR_NULL_ARGUMENT);
    assert_int_equal(mha_config_bias(NULL, 0), MHA_ERROR_NULL_ARGUMENT);
    assert_true(isnan(mha_config_scale(NULL)));
    assert_true(isnan(mha_config_softcap(NULL)));
    assert_true(isnan(mha_config_rotary_base(NULL)));
    assert_int_equal(mha_config_rotary_size(NULL), MHA_ERROR_NULL_ARGUMENT);
    assert_int_equal(mha_config_rotary_pairing(NULL), MHA_ERROR_NULL_ARGUMENT);
    assert_int_equal(mha_config_sinks(NULL), MHA_ERROR_NULL_ARGUMENT);
    assert_int_equal(mha_config_gates(NULL), MHA_ERROR_NULL_ARGUMENT);
    assert_int_equal(mha_config_extra_keys(NULL), MHA_ERROR_NULL_ARGUMENT);
}

/* ---- brutal ---- */

static void config_create_without_memory_stores_null_and_leaks_nothing(void **state)
{
    (void)state;
    mha_config *cfg = (mha_config *)&cfg;
    BRUTAL(mha_config_create(8, 2, &cfg, NULL), {
        assert_null(cfg);
        cfg = (mha_config *)&cfg;
    });
    assert_true(brutal_failures >= 1);
    int64_t blocks = mha__memory_live();
    mha_config_destroy(cfg);
    assert_true(mha__memory_live() < blocks);
}

static void config_head_numbers_without_memory_stay_as_they_were(void **state)
{
    (void)state;
    mha_config *cfg = config_of(8, 2);
    const float first[2] = {1, 2}, second[2] = {3, 4};
    SUCCEEDS(mha_config_set_head_scales(cfg, 2, first, err));
    SUCCEEDS(mha_config_set_head_softcaps(cfg, 2, first, err));
    BRUTAL(mha_config_set_head_scales(cfg, 2, second, NULL),
           assert_true(mha_config_scale(cfg) == 1.0f));
    assert_true(brutal_failures >= 1);
    BRUTAL(mha_config_set_head_softcaps(cfg, 2, second, NULL),
           assert_true(mha_config_softcap(cfg) == 1.0f));
    assert_true(brutal_failures >= 1);
    assert_true(mha_config_scale(cfg) == 3.0f);
    assert_true(mha_config_softcap(cfg) == 3.0f);
    mha_config_destroy(cfg);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(config_fresh_has_the_documented_defaults),
        cmocka_unit_test(config_setters_change_what_they_name_and_nothing_else),
        cmocka_unit_test(config_defaults_follow_what_they_depend_on),
        cmocka_unit_test(config_head_size_is_zero_while_heads_do_not_divide_the_embedding),
        cmocka_unit_test(config_scale_of_zero_is_a_number_and_not_unset),
        cmocka_unit_test(config_head_scales_and_softcaps_replace_the_number_for_all_and_back),
        cmocka_unit_test(config_rotary_and_extras_are_stored),
        cmocka_unit_test(config_largest_sizes_are_accepted),
        cmocka_unit_test(config_destroy_of_null_does_nothing),
        cmocka_unit_test(config_create_with_bad_sizes_is_refused_and_stores_null),
        cmocka_unit_test(config_kv_heads_that_do_not_divide_are_refused_with_both_numbers),
        cmocka_unit_test(config_sizes_outside_their_range_are_refused_and_change_nothing),
        cmocka_unit_test(config_projection_and_bias_refuse_unknown_ids_and_values),
        cmocka_unit_test(config_scale_that_is_no_number_is_refused),
        cmocka_unit_test(config_scores_refuse_what_is_no_number_and_change_nothing),
        cmocka_unit_test(config_rotary_and_extras_refuse_what_is_outside_their_range),
        cmocka_unit_test(config_getters_of_null_say_so),
        cmocka_unit_test(config_create_without_memory_stores_null_and_leaks_nothing),
        cmocka_unit_test(config_head_numbers_without_memory_stay_as_they_were),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
