/* SPDX-License-Identifier: Apache-2.0 */
/* Reading sound safetensors files; what is refused is in test_safetensors_refused.c. */
#include "io_files.h"
#include "support/expect.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* 1, 2, -3 as F32; 1, -2 as F16; 0.5 as BF16, packed without alignment. */
static const unsigned char mixed_data[] = {0x00, 0x00, 0x80, 0x3f, 0x00, 0x00, 0x00, 0x40, 0x00,
                                           0x00, 0x40, 0xc0, 0x00, 0x3c, 0x00, 0xc0, 0x00, 0x3f};
#define MIXED_HEADER                                                                               \
    "{\"b\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[12,16]},"                           \
    "\"a\":{\"dtype\":\"F32\",\"shape\":[3,1],\"data_offsets\":[0,12]},"                           \
    "\"c\":{\"dtype\":\"BF16\",\"shape\":[],\"data_offsets\":[16,18]}}"

static float read_one(const mha_io_safetensors *file, const char *name)
{
    float x = NAN;
    SUCCEEDS(mha_io_safetensors_read(file, io_index(file, name), &x, 1, err));
    return x;
}

static void check_mixed(const mha_io_safetensors *file)
{
    const float a[3] = {1.0f, 2.0f, -3.0f};
    const float b[2] = {1.0f, -2.0f};
    float got[3];
    int64_t shape[4] = {-7, -7, -7, -7};
    assert_int_equal(mha_io_safetensors_count(file), 3);
    SUCCEEDS(mha_io_safetensors_read(file, io_index(file, "a"), got, 3, err));
    assert_same_bits(got, a, 3);
    SUCCEEDS(mha_io_safetensors_read(file, io_index(file, "b"), got, 2, err));
    assert_same_bits(got, b, 2);
    assert_true(read_one(file, "c") == 0.5f);
    assert_int_equal(mha_io_safetensors_shape(file, io_index(file, "a"), shape, 4), 2);
    assert_int_equal(shape[0], 3);
    assert_int_equal(shape[1], 1);
    assert_int_equal(shape[2], -7);
    assert_int_equal(mha_io_safetensors_shape(file, io_index(file, "a"), NULL, 0), 2);
    assert_int_equal(mha_io_safetensors_shape(file, io_index(file, "c"), shape, 4), 0);
}

/* ---- behaviour ---- */

static void safetensors_in_memory_gives_names_shapes_and_numbers(void **state)
{
    (void)state;
    io_bytes bytes = io_safetensors_of(MIXED_HEADER, mixed_data, sizeof mixed_data);
    mha_io_safetensors *file = io_open(&bytes);
    check_mixed(file);
    mha_io_safetensors_close(file);
    io_bytes_free(&bytes);
}

static void safetensors_in_a_file_gives_the_same(void **state)
{
    (void)state;
    io_bytes bytes = io_safetensors_of(MIXED_HEADER, mixed_data, sizeof mixed_data);
    const char *path = io_path("mixed.safetensors");
    io_write_file(path, bytes.data, (size_t)bytes.size);
    mha_io_safetensors *file = NULL;
    SUCCEEDS(mha_io_safetensors_open(path, &file, err));
    check_mixed(file);
    mha_io_safetensors_close(file);
    io_bytes_free(&bytes);
}

static void safetensors_lists_tensors_in_the_order_of_their_data(void **state)
{
    (void)state;
    io_bytes bytes = io_safetensors_of(MIXED_HEADER, mixed_data, sizeof mixed_data);
    mha_io_safetensors *file = io_open(&bytes);
    int64_t length = 0;
    assert_string_equal(mha_io_safetensors_name(file, 0, NULL), "a");
    assert_string_equal(mha_io_safetensors_name(file, 1, &length), "b");
    assert_string_equal(mha_io_safetensors_name(file, 2, NULL), "c");
    assert_int_equal(length, 1);
    mha_io_safetensors_close(file);
    io_bytes_free(&bytes);
}

static void safetensors_without_tensors_is_a_file(void **state)
{
    (void)state;
    const char *const headers[] = {"{}", "{   }", "{\"__metadata__\":{}}"};
    for (size_t i = 0; i < 3; i++) {
        io_bytes bytes = io_safetensors_of(headers[i], NULL, 0);
        mha_io_safetensors *file = io_open(&bytes);
        assert_int_equal(mha_io_safetensors_count(file), 0);
        mha_io_safetensors_close(file);
        io_bytes_free(&bytes);
    }
}

static void F05_metadata_scalars_empty_tensors_and_padding_are_accepted(void **state)
{
    (void)state;
    const float five = 5.0f;
    io_bytes bytes =
        io_safetensors_of("{\"__metadata__\":{\"format\":\"pt\",\"nul\":\"a\\u0000b\"},"
                          "\"scalar\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]},"
                          "\"none\":{\"dtype\":\"F32\",\"shape\":[0,4],\"data_offsets\":[4,4]},"
                          "\"huge but empty\":{\"dtype\":\"F32\",\"shape\":[0,4611686018427387904],"
                          "\"data_offsets\":[0,0]}}                    ",
                          &five, 4);
    mha_io_safetensors *file = io_open(&bytes);
    int64_t shape[2] = {-1, -1};
    assert_int_equal(mha_io_safetensors_count(file), 3);
    assert_true(read_one(file, "scalar") == 5.0f);
    assert_int_equal(mha_io_safetensors_shape(file, io_index(file, "none"), shape, 2), 2);
    assert_int_equal(shape[0], 0);
    assert_int_equal(shape[1], 4);
    SUCCEEDS(mha_io_safetensors_read(file, io_index(file, "none"), NULL, 0, err));
    mha_io_safetensors_close(file);
    io_bytes_free(&bytes);
}

static void F05_names_may_be_empty_quoted_and_utf8(void **state)
{
    (void)state;
    const float numbers[4] = {1.0f, 2.0f, 3.0f, 4.0f};
    io_bytes bytes = io_safetensors_of(
        "{\"\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
        "\"say \\\"x\\\"\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]},"
        "\"gr\xc3\xb6\xc3\x9f"
        "e\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[8,12]},"
        "\"\\u00e9\\n\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[12,16]}}",
        numbers, sizeof numbers);
    mha_io_safetensors *file = io_open(&bytes);
    assert_true(read_one(file, "") == 1.0f);
    assert_true(read_one(file, "say \"x\"") == 2.0f);
    assert_true(read_one(file, "gr\xc3\xb6\xc3\x9f"
                               "e") == 3.0f);
    assert_true(read_one(file, "\xc3\xa9\n") == 4.0f);
    mha_io_safetensors_close(file);
    io_bytes_free(&bytes);
}

static void F06_data_at_an_odd_address_are_the_same_numbers(void **state)
{
    (void)state;
    const float numbers[2] = {1.25f, -7.5f};
    char header[128];
    for (int padding = 0; padding < 8; padding++) {
        int used = snprintf(header, sizeof header,
                            "{\"x\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}%*s",
                            padding, "");
        assert_true(used > 0 && used < (int)sizeof header);
        io_bytes bytes = io_safetensors_of(header, numbers, sizeof numbers);
        mha_io_safetensors *file = io_open(&bytes);
        float got[2];
        SUCCEEDS(mha_io_safetensors_read(file, 0, got, 2, err));
        assert_same_bits(got, numbers, 2);
        mha_io_safetensors_close(file);
        io_bytes_free(&bytes);
    }
}

static void F06_three_bytes_before_a_tensor_are_no_obstacle(void **state)
{
    (void)state;
    unsigned char data[11] = {1, 2, 3};
    const float numbers[2] = {1.25f, -7.5f};
    memcpy(data + 3, numbers, sizeof numbers);
    io_bytes bytes =
        io_safetensors_of("{\"bytes\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]},"
                          "\"x\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[3,11]}}",
                          data, sizeof data);
    mha_io_safetensors *file = io_open(&bytes);
    float got[3] = {9.0f, 9.0f, 9.0f};
    SUCCEEDS(mha_io_safetensors_read(file, io_index(file, "x"), got, 2, err));
    assert_same_bits(got, numbers, 2);
    /* the bytes themselves are not numbers that become float32 */
    REFUSED(MHA_ERROR_FILE_FORMAT,
            mha_io_safetensors_read(file, io_index(file, "bytes"), got, 3, err), "\"bytes\"", "U8");
    assert_same_bits(got, numbers, 2);
    mha_io_safetensors_close(file);
    io_bytes_free(&bytes);
}

static void safetensors_larger_than_a_chunk_is_read_whole(void **state)
{
    (void)state;
    enum { COUNT = 10007 };
    static unsigned char data[2 * COUNT];
    static float got[COUNT];
    for (int i = 0; i < COUNT; i++) { /* F16 i mod 1999: integers below 2048 are exact in F16 */
        int value = i % 1999;
        int exponent = 0;
        while (value >> (exponent + 1)) {
            exponent++;
        }
        unsigned bits = value == 0 ? 0
                                   : (unsigned)(exponent + 15) << 10 |
                                         ((unsigned)value << (10 - exponent) & 0x3ffu);
        data[2 * i] = (unsigned char)(bits & 0xff);
        data[2 * i + 1] = (unsigned char)(bits >> 8);
    }
    io_bytes bytes = io_safetensors_of(
        "{\"x\":{\"dtype\":\"F16\",\"shape\":[10007],\"data_offsets\":[0,20014]}}", data,
        sizeof data);
    const char *path = io_path("chunks.safetensors");
    io_write_file(path, bytes.data, (size_t)bytes.size);
    mha_io_safetensors *file = NULL;
    SUCCEEDS(mha_io_safetensors_open(path, &file, err));
    SUCCEEDS(mha_io_safetensors_read(file, 0, got, COUNT, err));
    for (int i = 0; i < COUNT; i++) {
        assert_true(got[i] == (float)(i % 1999));
    }
    mha_io_safetensors_close(file);
    io_bytes_free(&bytes);
}

static void *open_and_read_often(void *argument)
{
    const char *path = argument;
    for (int round = 0; round < 50; round++) {
        mha_io_safetensors *file = NULL;
        float got[3] = {0};
        if (mha_io_safetensors_open(path, &file, NULL) != MHA_OK ||
            mha_io_safetensors_read(file, 0, got, 3, NULL) != MHA_OK || got[2] != -3.0f) {
            return argument;
        }
        mha_io_safetensors_close(file);
    }
    return NULL;
}

static void safetensors_opens_in_eight_threads_at_once(void **state)
{
    (void)state;
    enum { THREADS = 8 };
    static const char *const names[2] = {"one.safetensors", "two.safetensors"};
    char paths[2][512];
    pthread_t threads[THREADS];
    io_bytes bytes = io_safetensors_of(MIXED_HEADER, mixed_data, sizeof mixed_data);
    for (int i = 0; i < 2; i++) {
        snprintf(paths[i], sizeof paths[i], "%s", io_path(names[i]));
        io_write_file(paths[i], bytes.data, (size_t)bytes.size);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, open_and_read_often, paths[i % 2]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *failed = paths;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    io_bytes_free(&bytes);
}

static void *read_shared_often(void *argument)
{
    const mha_io_safetensors *file = argument;
    for (int round = 0; round < 200; round++) {
        float got[3] = {0};
        if (mha_io_safetensors_read(file, 0, got, 3, NULL) != MHA_OK || got[2] != -3.0f) {
            return argument;
        }
    }
    return NULL;
}

static void safetensors_opened_once_serves_many_readers(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    io_bytes bytes = io_safetensors_of(MIXED_HEADER, mixed_data, sizeof mixed_data);
    const char *path = io_path("shared.safetensors");
    mha_io_safetensors *file = NULL;
    io_write_file(path, bytes.data, (size_t)bytes.size);
    SUCCEEDS(mha_io_safetensors_open(path, &file, err));
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, read_shared_often, file), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *failed = file;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    mha_io_safetensors_close(file);
    io_bytes_free(&bytes);
}

/* ---- refusals of the calls on an open file ---- */

static void safetensors_calls_with_bad_arguments_are_refused(void **state)
{
    (void)state;
    io_bytes bytes = io_safetensors_of(MIXED_HEADER, mixed_data, sizeof mixed_data);
    mha_io_safetensors *file = io_open(&bytes);
    mha_io_safetensors *none = file;
    float got[3] = {9.0f, 9.0f, 9.0f};
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_io_safetensors_open(NULL, &none, err), "path");
    assert_null(none);
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_io_safetensors_open("x", NULL, err), "out");
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_io_safetensors_open_memory(NULL, 9, &none, err), "data");
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_io_safetensors_open_memory("x", 1, NULL, err), "out");
    REFUSED(MHA_ERROR_SHAPE, mha_io_safetensors_open_memory("x", -1, &none, err), "-1");
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_io_safetensors_read(NULL, 0, got, 3, err), "file");
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_io_safetensors_read(file, 0, NULL, 3, err), "data");
    REFUSED(MHA_ERROR_SHAPE, mha_io_safetensors_read(file, -1, got, 3, err), "-1");
    REFUSED(MHA_ERROR_SHAPE, mha_io_safetensors_read(file, 3, got, 3, err), "3");
    REFUSED(MHA_ERROR_SHAPE, mha_io_safetensors_read(file, 0, got, 2, err), "\"a\"", "3", "2");
    REFUSED(MHA_ERROR_SHAPE, mha_io_safetensors_read(file, 0, got, -3, err), "-3");
    assert_true(all_are(got, 3, 9.0f));
    assert_int_equal(mha_io_safetensors_count(NULL), MHA_ERROR_NULL_ARGUMENT);
    assert_null(mha_io_safetensors_name(NULL, 0, NULL));
    assert_null(mha_io_safetensors_name(file, -1, NULL));
    assert_null(mha_io_safetensors_name(file, 3, NULL));
    assert_int_equal(mha_io_safetensors_shape(NULL, 0, NULL, 0), MHA_ERROR_NULL_ARGUMENT);
    assert_int_equal(mha_io_safetensors_shape(file, 3, NULL, 0), MHA_ERROR_SHAPE);
    assert_int_equal(mha_io_safetensors_shape(file, -1, NULL, 0), MHA_ERROR_SHAPE);
    mha_io_safetensors_close(file);
    mha_io_safetensors_close(NULL);
    io_bytes_free(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(safetensors_in_memory_gives_names_shapes_and_numbers),
        cmocka_unit_test(safetensors_in_a_file_gives_the_same),
        cmocka_unit_test(safetensors_lists_tensors_in_the_order_of_their_data),
        cmocka_unit_test(safetensors_without_tensors_is_a_file),
        cmocka_unit_test(F05_metadata_scalars_empty_tensors_and_padding_are_accepted),
        cmocka_unit_test(F05_names_may_be_empty_quoted_and_utf8),
        cmocka_unit_test(F06_data_at_an_odd_address_are_the_same_numbers),
        cmocka_unit_test(F06_three_bytes_before_a_tensor_are_no_obstacle),
        cmocka_unit_test(safetensors_larger_than_a_chunk_is_read_whole),
        cmocka_unit_test(safetensors_opens_in_eight_threads_at_once),
        cmocka_unit_test(safetensors_opened_once_serves_many_readers),
        cmocka_unit_test(safetensors_calls_with_bad_arguments_are_refused),
    };
    return cmocka_run_group_tests(tests, io_directory_create, io_directory_remove);
}
