/* SPDX-License-Identifier: Apache-2.0 */
#include "api/call_tensors.h"
#include "api/run.h"
#include "platform/memory.h"

#include <mha/call.h>

#include <string.h>

int32_t mha_call_create(mha_call **out, mha_error *err)
{
    MHA_CHECK_POINTER(err, out);
    *out = mha__memory_allocate_zeroed(sizeof **out);
    MHA_CHECK(err, *out, MHA_ERROR_OUT_OF_MEMORY, "no memory for a call");
    (*out)->magic = MHA__MAGIC_CALL;
    return mha__error_clear(err);
}

void mha_call_destroy(mha_call *call)
{
    if (call) {
        call->magic = 0;
        mha__memory_release(call);
    }
}

/* Fills t from shape and strides; the extent in bytes must fit 63 bits. */
static int32_t describe(struct mha__tensor *t,
                        int32_t id,
                        const void *data,
                        int32_t rank,
                        const int64_t *shape,
                        const int64_t *strides,
                        mha_error *err)
{
    const struct mha__call_tensor *known = &mha__call_tensors[id];
    const char *name = known->name;
    MHA_CHECK(err, rank >= known->least && rank <= known->most, MHA_ERROR_SHAPE,
              "%s has rank %d to %d, not %d", name, (int)known->least, (int)known->most, (int)rank);
    MHA_CHECK_POINTER(err, shape);
    t->rank = rank;
    bool empty = false;
    for (int32_t i = 0; i < rank; i++) {
        MHA_CHECK(err, shape[i] >= 0, MHA_ERROR_SHAPE, "%s: axis %d has size %lld", name, (int)i,
                  (long long)shape[i]);
        t->shape[i] = shape[i];
        empty |= shape[i] == 0;
    }
    int64_t bytes = sizeof(float);
    int64_t contiguous = 1;
    for (int32_t i = rank - 1; i >= 0; i--) {
        t->stride[i] = strides ? strides[i] : contiguous;
        MHA_CHECK(err, t->stride[i] >= 0, MHA_ERROR_SHAPE, "%s: axis %d has stride %lld", name,
                  (int)i, (long long)t->stride[i]);
        int64_t step = 0;
        MHA_CHECK(err,
                  empty || (!__builtin_mul_overflow(contiguous, shape[i], &contiguous) &&
                            mha__product_fits(shape[i] - 1, t->stride[i], sizeof(float), &step) &&
                            !__builtin_add_overflow(bytes, step, &bytes)),
                  MHA_ERROR_TOO_LARGE, "%s: the tensor passes 2^63 bytes", name);
    }
    MHA_CHECK(err, t->stride[rank - 1] == 1 || t->shape[rank - 1] <= 1, MHA_ERROR_SHAPE,
              "%s: the last axis has stride %lld, it must be contiguous (1)", name,
              (long long)t->stride[rank - 1]);
    t->stride[rank - 1] = 1;
    MHA_CHECK(err, data || empty, MHA_ERROR_NULL_ARGUMENT, "%s: data is NULL", name);
    return MHA_OK;
}

static int32_t set_tensor(mha_call *call,
                          int32_t id,
                          bool output,
                          int32_t type,
                          const void *data,
                          int32_t rank,
                          const int64_t *shape,
                          const int64_t *strides,
                          mha_error *err)
{
    MHA_CHECK_HANDLE(err, call, MHA__MAGIC_CALL);
    MHA_CHECK(err, id >= 0 && id < MHA__TENSORS && mha__call_tensors[id].output == output,
              MHA_ERROR_UNKNOWN_ID, "tensor %d is no %s", (int)id, output ? "output" : "input");
    MHA_CHECK(err, type == MHA_FLOAT32, MHA_ERROR_UNKNOWN_ID, "type %d; MHA_FLOAT32 (0) is known",
              (int)type);
    struct mha__tensor tensor = {0};
    if (data || rank != 0) {
        MHA_TRY(describe(&tensor, id, data, rank, shape, strides, err));
        MHA_CHECK(err, !output || !mha__overlap_with_itself(&tensor), MHA_ERROR_OVERLAP,
                  "%s: its strides put two elements in one place", mha__call_tensors[id].name);
        /* Only an output is ever written through this pointer. */
        memcpy(&tensor.data, &data, sizeof tensor.data);
    }
    call->tensor[id] = tensor;
    return mha__error_clear(err);
}

int32_t mha_call_set_input(mha_call *call,
                           int32_t tensor,
                           int32_t type,
                           const void *data,
                           int32_t rank,
                           const int64_t *shape,
                           const int64_t *strides,
                           mha_error *err)
{
    return set_tensor(call, tensor, false, type, data, rank, shape, strides, err);
}

int32_t mha_call_set_output(mha_call *call,
                            int32_t tensor,
                            int32_t type,
                            void *data,
                            int32_t rank,
                            const int64_t *shape,
                            const int64_t *strides,
                            mha_error *err)
{
    return set_tensor(call, tensor, true, type, data, rank, shape, strides, err);
}
