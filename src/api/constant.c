/* SPDX-License-Identifier: Apache-2.0 */
#include "api/objects.h"

#include <mha/constant.h>

#include <string.h>

#define ROW(name)                                                                                  \
    {                                                                                              \
#name, name                                                                                \
    }

static const struct {
    const char *name;
    int64_t value;
} constants[] = {
    ROW(MHA_FLOAT32),
    ROW(MHA_OK),
    ROW(MHA_ERROR_NULL_ARGUMENT),
    ROW(MHA_ERROR_UNKNOWN_ID),
    ROW(MHA_ERROR_BAD_HANDLE),
    ROW(MHA_ERROR_SHAPE),
    ROW(MHA_ERROR_HEAD_COUNT),
    ROW(MHA_ERROR_OVERLAP),
    ROW(MHA_ERROR_TOO_LARGE),
    ROW(MHA_ERROR_VALUE),
    ROW(MHA_ERROR_ALIGNMENT),
    ROW(MHA_ERROR_NOT_SET),
    ROW(MHA_ERROR_OUT_OF_MEMORY),
    ROW(MHA_ERROR_BLAS),
    ROW(MHA_ERROR_EXECUTOR),
    ROW(MHA_ERROR_FILE_ACCESS),
    ROW(MHA_ERROR_FILE_FORMAT),
    ROW(MHA_ERROR_FILE_TENSOR),
    ROW(MHA_PROJECTION_Q),
    ROW(MHA_PROJECTION_K),
    ROW(MHA_PROJECTION_V),
    ROW(MHA_PROJECTION_OUT),
    ROW(MHA_ROTARY_HALVES),
    ROW(MHA_ROTARY_NEIGHBOURS),
    ROW(MHA_ALIGNMENT_UNSET),
    ROW(MHA_ALIGNMENT_TOP_LEFT),
    ROW(MHA_ALIGNMENT_BOTTOM_RIGHT),
    ROW(MHA_ALIGNMENT_EXPLICIT),
    ROW(MHA_MASK_INVERTED),
    ROW(MHA_MASK_BITS),
    ROW(MHA_ENGINE_BLAS),
    ROW(MHA_ENGINE_FUSED),
    ROW(MHA_TIME_PROJECTIONS),
    ROW(MHA_TIME_PACKING),
    ROW(MHA_TIME_SCORES),
    ROW(MHA_TIME_SOFTMAX),
    ROW(MHA_TIME_VALUES),
    ROW(MHA_TIME_OTHER),
    ROW(MHA_TIME_IDLE),
    ROW(MHA_PARAM_Q_WEIGHT),
    ROW(MHA_PARAM_Q_BIAS),
    ROW(MHA_PARAM_K_WEIGHT),
    ROW(MHA_PARAM_K_BIAS),
    ROW(MHA_PARAM_V_WEIGHT),
    ROW(MHA_PARAM_V_BIAS),
    ROW(MHA_PARAM_OUT_WEIGHT),
    ROW(MHA_PARAM_OUT_BIAS),
    ROW(MHA_PARAM_IN_PROJ_WEIGHT),
    ROW(MHA_PARAM_IN_PROJ_BIAS),
    ROW(MHA_PARAM_SINKS),
    ROW(MHA_PARAM_GATES),
    ROW(MHA_PARAM_BIAS_K),
    ROW(MHA_PARAM_BIAS_V),
    ROW(MHA_TENSOR_QUERY),
    ROW(MHA_TENSOR_KEY),
    ROW(MHA_TENSOR_VALUE),
    ROW(MHA_TENSOR_OUTPUT),
    ROW(MHA_TENSOR_WEIGHTS),
    ROW(MHA_TENSOR_LSE),
    ROW(MHA_TENSOR_BIAS0),
    ROW(MHA_TENSOR_BIAS1),
    ROW(MHA_TENSOR_BIAS2),
    ROW(MHA_TENSOR_BIAS3),
    ROW(MHA_TENSOR_WEIGHTS_MEAN),
    ROW(MHA_TENSOR_WEIGHTS_DROPPED),
    ROW(MHA_TENSOR_SCORES_SCALED),
    ROW(MHA_TENSOR_SCORES_CAPPED),
    ROW(MHA_TENSOR_SCORES_BIASED),
    ROW(MHA_TENSOR_ENTROPY),
    ROW(MHA_TENSOR_MAXIMUM),
    ROW(MHA_TENSOR_KEY_MASS),
    ROW(MHA_TENSOR_KEY_MASS_TOTAL),
    ROW(MHA_CALLBACK_CONCURRENT),
    ROW(MHA_CAUSAL_NONE),
    ROW(MHA_CAUSAL_TOP_LEFT),
    ROW(MHA_CAUSAL_BOTTOM_RIGHT),
    ROW(MHA_PLAN_WEIGHTS),
    ROW(MHA_PLAN_LSE),
    ROW(MHA_PRESET_TORCH_MHA),
    ROW(MHA_PRESET_TORCH_SDPA),
    ROW(MHA_PRESET_KERAS),
    ROW(MHA_PRESET_ONNX),
    ROW(MHA_PRESET_FLASH_ATTENTION),
    ROW(MHA_PRESET_JAX),
    ROW(MHA_VERSION_MAJOR),
    ROW(MHA_VERSION_MINOR),
    ROW(MHA_VERSION_PATCH),
    ROW(MHA_VERSION_NUMBER),
};
enum { COUNT = sizeof constants / sizeof *constants };

int32_t mha_constant_count(void)
{
    return COUNT;
}

const char *mha_constant_name(int32_t index)
{
    return index >= 0 && index < COUNT ? constants[index].name : NULL;
}

int32_t mha_constant_value(const char *name, int64_t *value, mha_error *err)
{
    MHA_CHECK_POINTER(err, name);
    MHA_CHECK_POINTER(err, value);
    for (int32_t i = 0; i < COUNT; i++) {
        if (strcmp(constants[i].name, name) == 0) {
            *value = constants[i].value;
            return mha__error_clear(err);
        }
    }
    return mha__error_format(err, MHA_ERROR_UNKNOWN_ID, "no constant is called \"%.200s\"", name);
}
