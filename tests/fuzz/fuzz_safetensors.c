/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a safetensors file: they open or are refused; what opened is read, and loaded as a
 * layer by every scheme. The first tensor's name up to its last part serves as prefix, so that the
 * fuzzer finds layers.
 */
#include <mha/io.h>
#include <mha/mha.h>

#include <stdlib.h>
#include <string.h>

/* A size that memory would not hold is no finding. */
#define NUMBERS_LIMIT    1000000
#define PARAMETERS_LIMIT 1000000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
    if (!condition) {
        abort();
    }
}

static void read_all(const mha_io_safetensors *file)
{
    for (int64_t i = 0; i < mha_io_safetensors_count(file); i++) {
        int64_t length = -1;
        int64_t shape[64];
        int64_t count = 1;
        const char *name = mha_io_safetensors_name(file, i, &length);
        int32_t rank = mha_io_safetensors_shape(file, i, shape, 64);
        require(name && strlen(name) == (size_t)length && rank >= 0 && rank <= 64);
        for (int32_t axis = 0; axis < rank; axis++) {
            require(shape[axis] >= 0);
            count = shape[axis] == 0 ? 0 : count > NUMBERS_LIMIT ? count : count * shape[axis];
            if (count == 0) {
                break;
            }
        }
        if (count <= NUMBERS_LIMIT) {
            float *numbers = malloc((size_t)(count ? count : 1) * sizeof *numbers);
            int32_t status = mha_io_safetensors_read(file, i, numbers, count, NULL);
            require(status == MHA_OK || status == MHA_ERROR_FILE_FORMAT);
            free(numbers);
        }
    }
}

static void load(const mha_io_safetensors *file,
                 int32_t scheme,
                 const char *prefix,
                 int64_t heads,
                 mha_error *err)
{
    mha_config *cfg = NULL;
    mha_layer *layer = NULL;
    int32_t status = mha_io_read_config(file, scheme, prefix, heads, 0, &cfg, err);
    require((status == MHA_OK) == (cfg != NULL));
    if (!cfg) {
        return;
    }
    int64_t rows = mha_config_heads(cfg) * mha_config_head_size(cfg);
    if (rows < PARAMETERS_LIMIT && mha_config_query_width(cfg) < PARAMETERS_LIMIT &&
        mha_layer_create(cfg, &layer, err) == MHA_OK) {
        /* what the config says fits the file; only the type of the numbers may still be wrong */
        status = mha_io_load_layer(file, scheme, prefix, layer, err);
        require(status == MHA_OK || status == MHA_ERROR_FILE_FORMAT);
        mha_layer_destroy(layer);
    }
    mha_config_destroy(cfg);
}

/* "encoder.layer.0.attention.self.query.weight" has four prefixes worth a trial; the dots tell. */
static void load_by_every_scheme(const mha_io_safetensors *file, mha_error *err)
{
    char prefix[256] = "";
    int64_t length = 0;
    const char *name = mha_io_safetensors_name(file, 0, &length);
    if (!name || length >= (int64_t)sizeof prefix) {
        return;
    }
    for (int64_t end = 0; end <= length; end++) {
        if (end == 0 || name[end - 1] == '.') {
            memcpy(prefix, name, (size_t)end);
            prefix[end] = '\0';
            for (int32_t scheme = MHA_SCHEME_TORCH; scheme <= MHA_SCHEME_LLAMA; scheme++) {
                load(file, scheme, prefix, 1, err);
                load(file, scheme, prefix, 2, err);
            }
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mha_io_safetensors *file = NULL;
    mha_error *err = mha_error_create();
    int32_t status = mha_io_safetensors_open_memory(data, (int64_t)size, &file, err);
    require((status == MHA_OK) == (file != NULL));
    require(status == MHA_OK || mha_error_message(err, NULL, 0) > 0);
    if (file) {
        read_all(file);
        load_by_every_scheme(file, err);
    }
    mha_io_safetensors_close(file);
    mha_error_destroy(err);
    return 0;
}
