/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a .npy file: they are refused with a sentence, or become an array of which every
 * number can be read. */
#include <mha/error.h>
#include <mha/io.h>

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
    if (!condition) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mha_io_npy *array = NULL;
    mha_error *err = mha_error_create();
    int32_t status = mha_io_npy_read_memory(data, (int64_t)size, &array, err);
    require((status == MHA_OK) == (array != NULL));
    if (array) {
        int64_t shape[32];
        int64_t count = 1;
        uint32_t bits = 0;
        int32_t rank = mha_io_npy_shape(array, shape, 32);
        require(rank >= 0 && rank <= 32);
        for (int32_t axis = 0; axis < rank; axis++) {
            require(shape[axis] >= 0);
            count = shape[axis] == 0 ? 0 : count;
        }
        for (int32_t axis = 0; axis < rank && count > 0; axis++) {
            count *= shape[axis];
        }
        require(count == mha_io_npy_count(array) && count <= (int64_t)size);
        const float *numbers = mha_io_npy_data(array);
        for (int64_t i = 0; i < count; i++) {
            bits ^= ((const uint32_t *)(const void *)numbers)[i];
        }
        require(bits == 0 || count > 0);
    } else {
        require(mha_error_message(err, NULL, 0) > 0);
    }
    mha_io_npy_destroy(array);
    mha_error_destroy(err);
    return 0;
}
