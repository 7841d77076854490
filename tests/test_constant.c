/* SPDX-License-Identifier: Apache-2.0 */
#include "support/expect.h"

#include <string.h>

/*
 * Every named constant of the headers, by hand: names and values never change, they are only added
 * to.
 */
static const struct {
    const char *name;
    int64_t value;
} PINNED[] = {
    {"MHA_OK", 0},
    {"MHA_ERROR_NULL_ARGUMENT", -10},
    {"MHA_ERROR_UNKNOWN_ID", -11},
    {"MHA_ERROR_BAD_HANDLE", -12},
    {"MHA_ERROR_SHAPE", -20},
    {"MHA_ERROR_HEAD_COUNT", -21},
    {"MHA_ERROR_OVERLAP", -22},
    {"MHA_ERROR_TOO_LARGE", -23},
    {"MHA_ERROR_VALUE", -24},
    {"MHA_ERROR_ALIGNMENT", -25},
    {"MHA_ERROR_NOT_SET", -32},
    {"MHA_ERROR_OUT_OF_MEMORY", -40},
    {"MHA_ERROR_BLAS", -41},
    {"MHA_ERROR_EXECUTOR", -42},
    {"MHA_ERROR_FILE_ACCESS", -50},
    {"MHA_ERROR_FILE_FORMAT", -51},
    {"MHA_ERROR_FILE_TENSOR", -52},
    {"MHA_FLOAT32", 0},
    {"MHA_CAUSAL_NONE", 0},
    {"MHA_CAUSAL_TOP_LEFT", 1},
    {"MHA_CAUSAL_BOTTOM_RIGHT", 2},
    {"MHA_PROJECTION_Q", 0},
    {"MHA_PROJECTION_K", 1},
    {"MHA_PROJECTION_V", 2},
    {"MHA_PROJECTION_OUT", 3},
    {"MHA_PARAM_Q_WEIGHT", 0},
    {"MHA_PARAM_Q_BIAS", 1},
    {"MHA_PARAM_K_WEIGHT", 2},
    {"MHA_PARAM_K_BIAS", 3},
    {"MHA_PARAM_V_WEIGHT", 4},
    {"MHA_PARAM_V_BIAS", 5},
    {"MHA_PARAM_OUT_WEIGHT", 6},
    {"MHA_PARAM_OUT_BIAS", 7},
    {"MHA_PARAM_IN_PROJ_WEIGHT", 8},
    {"MHA_PARAM_IN_PROJ_BIAS", 9},
    {"MHA_ALIGNMENT_UNSET", 0},
    {"MHA_ALIGNMENT_TOP_LEFT", 1},
    {"MHA_ALIGNMENT_BOTTOM_RIGHT", 2},
    {"MHA_ALIGNMENT_EXPLICIT", 3},
    {"MHA_MASK_INVERTED", 1},
    {"MHA_TENSOR_QUERY", 0},
    {"MHA_TENSOR_KEY", 1},
    {"MHA_TENSOR_VALUE", 2},
    {"MHA_TENSOR_OUTPUT", 3},
    {"MHA_TENSOR_WEIGHTS", 4},
    {"MHA_TENSOR_LSE", 5},
    {"MHA_ENGINE_BLAS", 0},
    {"MHA_ENGINE_FUSED", 1},
    {"MHA_PLAN_WEIGHTS", 1},
    {"MHA_PLAN_LSE", 2},
    {"MHA_ROTARY_HALVES", 0},
    {"MHA_ROTARY_NEIGHBOURS", 1},
    {"MHA_PARAM_SINKS", 10},
    {"MHA_PARAM_GATES", 11},
    {"MHA_PARAM_BIAS_K", 12},
    {"MHA_PARAM_BIAS_V", 13},
    {"MHA_MASK_BITS", 2},
    {"MHA_TENSOR_BIAS0", 6},
    {"MHA_TENSOR_BIAS1", 7},
    {"MHA_TENSOR_BIAS2", 8},
    {"MHA_TENSOR_BIAS3", 9},
    {"MHA_TENSOR_WEIGHTS_MEAN", 10},
    {"MHA_TENSOR_WEIGHTS_DROPPED", 11},
    {"MHA_TENSOR_SCORES_SCALED", 12},
    {"MHA_TENSOR_SCORES_CAPPED", 13},
    {"MHA_TENSOR_SCORES_BIASED", 14},
    {"MHA_TENSOR_ENTROPY", 15},
    {"MHA_TENSOR_MAXIMUM", 16},
    {"MHA_TENSOR_KEY_MASS", 17},
    {"MHA_TENSOR_KEY_MASS_TOTAL", 18},
    {"MHA_CALLBACK_CONCURRENT", 1},
    {"MHA_PRESET_TORCH_MHA", 0},
    {"MHA_PRESET_TORCH_SDPA", 1},
    {"MHA_PRESET_KERAS", 2},
    {"MHA_PRESET_ONNX", 3},
    {"MHA_PRESET_FLASH_ATTENTION", 4},
    {"MHA_PRESET_JAX", 5},
};
enum { PINNED_COUNT = sizeof PINNED / sizeof *PINNED };

static void constant_value_knows_every_pinned_name(void **state)
{
    (void)state;
    for (int i = 0; i < PINNED_COUNT; ++i) {
        int64_t value = 777;
        if (mha_constant_value(PINNED[i].name, &value, NULL) != MHA_OK) {
            print_error("%s is not known\n", PINNED[i].name);
        }
        SUCCEEDS(mha_constant_value(PINNED[i].name, &value, err));
        assert_int_equal(value, PINNED[i].value);
    }
}

static void constant_names_are_unique_and_each_has_its_value(void **state)
{
    (void)state;
    int32_t count = mha_constant_count();
    assert_true(count >= PINNED_COUNT);
    for (int32_t i = 0; i < count; ++i) {
        const char *name = mha_constant_name(i);
        assert_non_null(name);
        assert_int_equal(strncmp(name, "MHA_", 4), 0);
        int64_t value = 0;
        SUCCEEDS(mha_constant_value(name, &value, err));
        for (int32_t j = 0; j < i; ++j) {
            assert_string_not_equal(name, mha_constant_name(j));
        }
    }
}

static void constant_name_outside_the_range_is_null(void **state)
{
    (void)state;
    assert_null(mha_constant_name(-1));
    assert_null(mha_constant_name(mha_constant_count()));
    assert_null(mha_constant_name(INT32_MAX));
    assert_null(mha_constant_name(INT32_MIN));
}

static void constant_value_of_an_unknown_name_is_refused_and_stores_nothing(void **state)
{
    (void)state;
    int64_t value = 42;
    REFUSED(MHA_ERROR_UNKNOWN_ID, mha_constant_value("MHA_NOT_ONE", &value, err), "MHA_NOT_ONE");
    REFUSED(MHA_ERROR_UNKNOWN_ID, mha_constant_value("", &value, err), "constant");
    REFUSED(MHA_ERROR_UNKNOWN_ID, mha_constant_value("mha_ok", &value, err), "mha_ok");
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_constant_value(NULL, &value, err), "NULL");
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_constant_value("MHA_OK", NULL, err), "NULL");
    assert_int_equal(value, 42);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constant_value_knows_every_pinned_name),
        cmocka_unit_test(constant_names_are_unique_and_each_has_its_value),
        cmocka_unit_test(constant_name_outside_the_range_is_null),
        cmocka_unit_test(constant_value_of_an_unknown_name_is_refused_and_stores_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
