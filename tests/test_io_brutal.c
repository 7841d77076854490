/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation of libmha_io fails once, then every allocation of jansson. */
#include "io/io_memory.h"
#include "io_layers.h"
#include "support/brutal.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* As BRUTAL, for the allocations of libmha_io. failed counts how many there were. */
#define IO_BRUTAL(expression, failed, after_failure)                                               \
    do {                                                                                           \
        for (failed = 0;; failed++) {                                                              \
            int64_t blocks = mha__io_memory_live();                                                \
            int64_t made = mha__io_memory_allocations();                                           \
            mha__io_memory_fail_at(failed + 1);                                                    \
            int32_t status = (expression);                                                         \
            mha__io_memory_fail_at(0);                                                             \
            if (mha__io_memory_allocations() - made <= failed) {                                   \
                assert_int_equal(status, MHA_OK);                                                  \
                break;                                                                             \
            }                                                                                      \
            assert_int_equal(status, MHA_ERROR_OUT_OF_MEMORY);                                     \
            assert_int_equal(mha__io_memory_live(), blocks);                                       \
            after_failure;                                                                         \
        }                                                                                          \
        assert_true(failed > 0);                                                                   \
    } while (0)

static io_draft gpt2_draft(void)
{
    io_draft draft = {0};
    io_draft_add(&draft, "c_attn.weight", 6, 18, 0);
    io_draft_add(&draft, "c_attn.bias", 18, -1, 200);
    io_draft_add(&draft, "c_proj.weight", 6, 6, 300);
    io_draft_add(&draft, "c_proj.bias", 6, -1, 400);
    return draft;
}

static void brutal_safetensors_open(void **state)
{
    (void)state;
    io_draft draft = gpt2_draft();
    io_bytes bytes = io_draft_bytes(&draft, "");
    mha_io_safetensors *file = NULL;
    int64_t failed;
    io_write_file(io_path("brutal.safetensors"), bytes.data, (size_t)bytes.size);
    IO_BRUTAL(mha_io_safetensors_open(io_path("brutal.safetensors"), &file, NULL), failed,
              assert_null(file));
    assert_int_equal(mha_io_safetensors_count(file), 4);
    mha_io_safetensors_close(file);
    IO_BRUTAL(mha_io_safetensors_open_memory(bytes.data, bytes.size, &file, NULL), failed,
              assert_null(file));
    mha_io_safetensors_close(file);
    io_bytes_free(&bytes);
}

static void brutal_load_leaves_the_layer_as_before(void **state)
{
    (void)state;
    io_draft draft = gpt2_draft();
    io_bytes bytes = io_draft_bytes(&draft, "");
    mha_io_safetensors *file = io_open(&bytes);
    mha_config *cfg = NULL;
    mha_layer *layer = NULL;
    float before[36];
    float after[36];
    int64_t failed;
    SUCCEEDS(mha_io_read_config(file, MHA_SCHEME_GPT2, "", 2, 0, &cfg, err));
    SUCCEEDS(mha_layer_create(cfg, &layer, err));
    SUCCEEDS(mha_layer_initialize(layer, 3, err));
    SUCCEEDS(mha_layer_get_parameter(layer, MHA_PARAM_OUT_WEIGHT, MHA_FLOAT32, before, 36, err));
    IO_BRUTAL(mha_io_load_layer(file, MHA_SCHEME_GPT2, "", layer, NULL), failed, {
        SUCCEEDS(mha_layer_get_parameter(layer, MHA_PARAM_OUT_WEIGHT, MHA_FLOAT32, after, 36, err));
        assert_same_bits(before, after, 36);
    });
    SUCCEEDS(mha_layer_get_parameter(layer, MHA_PARAM_OUT_WEIGHT, MHA_FLOAT32, after, 36, err));
    assert_true(after[1] == 306.0f); /* [in, out] turned: number 6 of the tensor */
    mha_layer_destroy(layer);
    mha_config_destroy(cfg);
    mha_io_safetensors_close(file);
    io_bytes_free(&bytes);
}

static void brutal_read_config(void **state)
{
    (void)state;
    io_draft draft = gpt2_draft();
    io_bytes bytes = io_draft_bytes(&draft, "");
    mha_io_safetensors *file = io_open(&bytes);
    mha_config *cfg = NULL;
    /* the allocations here are the core's */
    BRUTAL(mha_io_read_config(file, MHA_SCHEME_GPT2, "", 2, 0, &cfg, NULL), assert_null(cfg));
    assert_true(brutal_failures > 0);
    mha_config_destroy(cfg);
    mha_io_safetensors_close(file);
    io_bytes_free(&bytes);
}

static void brutal_npy_read(void **state)
{
    (void)state;
    const float columns[6] = {1, 4, 2, 5, 3, 6};
    io_bytes bytes = io_npy_of(1, "{'descr':'<f4','fortran_order':True,'shape':(2,3)}\n", columns,
                               sizeof columns);
    mha_io_npy *array = NULL;
    int64_t failed;
    IO_BRUTAL(mha_io_npy_read_memory(bytes.data, bytes.size, &array, NULL), failed,
              assert_null(array));
    assert_true(mha_io_npy_data(array)[1] == 2.0f);
    mha_io_npy_destroy(array);
    io_bytes_free(&bytes);
}

static void brutal_npy_write_leaves_the_old_file(void **state)
{
    (void)state;
    const char *path = io_path("brutal.npy");
    const int64_t one = 1;
    const float old = 1.0f;
    const float new = 2.0f;
    mha_io_npy *array = NULL;
    int64_t failed;
    int files = io_directory_count() + 1;
    SUCCEEDS(mha_io_npy_write(path, 1, &one, &old, err));
    IO_BRUTAL(mha_io_npy_write(path, 1, &one, &new, NULL), failed, {
        SUCCEEDS(mha_io_npy_read(path, &array, err));
        assert_true(mha_io_npy_data(array)[0] == 1.0f);
        mha_io_npy_destroy(array);
        assert_int_equal(io_directory_count(), files);
    });
    SUCCEEDS(mha_io_npy_read(path, &array, err));
    assert_true(mha_io_npy_data(array)[0] == 2.0f);
    mha_io_npy_destroy(array);
}

/* ---- jansson, whose allocator this program, being the host, may choose ---- */

static int64_t json_allocations;
static int64_t json_fail_at;

static void *json_allocate(size_t bytes)
{
    return ++json_allocations == json_fail_at ? NULL : malloc(bytes);
}

static void brutal_jansson_gives_no_file_that_says_something_else(void **state)
{
    (void)state;
    io_draft draft = {0};
    /* longer than the buffer that jansson begins with */
    const char *name = "encoder.layer.0.attention.self.query.weight.of.a.model.with.long.names";
    io_draft_add(&draft, name, 2, 3, 0);
    io_bytes bytes = io_draft_bytes(&draft, "");
    int64_t failed = 0;
    json_set_alloc_funcs(json_allocate, free);
    for (;; failed++) {
        mha_io_safetensors *file = (mha_io_safetensors *)&bytes;
        int64_t blocks = mha__io_memory_live();
        json_allocations = 0;
        json_fail_at = failed + 1;
        int32_t status = mha_io_safetensors_open_memory(bytes.data, bytes.size, &file, NULL);
        json_fail_at = 0;
        if (json_allocations <= failed) {
            assert_int_equal(status, MHA_OK);
            assert_int_equal(io_index(file, name), 0);
            mha_io_safetensors_close(file);
            break;
        }
        assert_int_equal(status, MHA_ERROR_OUT_OF_MEMORY);
        assert_null(file);
        assert_int_equal(mha__io_memory_live(), blocks);
    }
    json_set_alloc_funcs(malloc, free);
    assert_true(failed > 10);
    io_bytes_free(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(brutal_safetensors_open),
        cmocka_unit_test(brutal_load_leaves_the_layer_as_before),
        cmocka_unit_test(brutal_read_config),
        cmocka_unit_test(brutal_npy_read),
        cmocka_unit_test(brutal_npy_write_leaves_the_old_file),
        cmocka_unit_test(brutal_jansson_gives_no_file_that_says_something_else),
    };
    return cmocka_run_group_tests(tests, io_directory_create, io_directory_remove);
}
