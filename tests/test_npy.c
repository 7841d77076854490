/* SPDX-License-Identifier: Apache-2.0 */
/* Reading .npy arrays, and the ones that must not be read (F08). */
#include "io/io_memory.h"
#include "io_files.h"
#include "support/expect.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* 1 .. 6 as '<f4' */
static const unsigned char one_to_six[24] = {0, 0, 0x80, 0x3f, 0, 0, 0x00, 0x40, 0, 0, 0x40, 0x40,
                                             0, 0, 0x80, 0x40, 0, 0, 0xa0, 0x40, 0, 0, 0xc0, 0x40};

static mha_io_npy *read_npy(io_bytes bytes)
{
    mha_io_npy *array = NULL;
    SUCCEEDS(mha_io_npy_read_memory(bytes.data, bytes.size, &array, err));
    assert_non_null(array);
    io_bytes_free(&bytes);
    return array;
}

static void refuse(io_bytes bytes, const char *word)
{
    mha_io_npy *array = (mha_io_npy *)&bytes;
    int64_t asked = mha__io_memory_bytes();
    int64_t live = mha__io_memory_live();
    REFUSED(MHA_ERROR_FILE_FORMAT,
            mha_io_npy_read_memory(bytes.data, bytes.size, &array, err),
            word,
            "(memory)");
    assert_null(array);
    assert_true(mha__io_memory_bytes() - asked < 1 << 20);
    assert_int_equal(mha__io_memory_live(), live);
    io_bytes_free(&bytes);
}

static void refuse_header(const char *header, const char *word)
{
    refuse(io_npy_of(1, header, one_to_six, sizeof one_to_six), word);
}

static void refuse_shape(const char *shape, const char *word)
{
    char header[512];
    snprintf(header, sizeof header, "{'descr':'<f4','fortran_order':False,'shape':%s}\n", shape);
    refuse_header(header, word);
}

static void check_two_by_three(mha_io_npy *array)
{
    int64_t shape[3] = {-7, -7, -7};
    assert_int_equal(mha_io_npy_shape(array, shape, 3), 2);
    assert_int_equal(shape[0], 2);
    assert_int_equal(shape[1], 3);
    assert_int_equal(shape[2], -7);
    assert_int_equal(mha_io_npy_count(array), 6);
    for (int i = 0; i < 6; i++) {
        assert_true(mha_io_npy_data(array)[i] == (float)(i + 1));
    }
    mha_io_npy_destroy(array);
}

/* ---- behaviour ---- */

static void F08_versions_one_two_and_three_are_read(void **state)
{
    (void)state;
    for (int version = 1; version <= 3; version++) {
        check_two_by_three(read_npy(
            io_npy_of(version,
                      "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }          \n",
                      one_to_six,
                      sizeof one_to_six)));
    }
}

static void npy_headers_may_be_written_in_other_ways(void **state)
{
    (void)state;
    static const char *const headers[] = {
        "{'descr':'<f4','fortran_order':False,'shape':(2,3)}\n",
        "{\"shape\": (2, 3,), \"descr\": \"<f4\", \"fortran_order\": False}\n",
        "  { 'fortran_order' : False , 'shape' : ( 2 , 3 ) , 'descr' : '<f4' , }   \n",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2L, 3L), }\n",
    };
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++) {
        check_two_by_three(read_npy(io_npy_of(1, headers[i], one_to_six, sizeof one_to_six)));
    }
}

static void F08_fortran_order_gives_the_same_matrix(void **state)
{
    (void)state;
    const float columns[6] = {1, 4, 2, 5, 3, 6};
    check_two_by_three(read_npy(io_npy_of(
        1, "{'descr':'<f4','fortran_order':True,'shape':(2,3)}\n", columns, sizeof columns)));
}

static void fortran_order_of_four_axes_is_turned_as_its_definition_says(void **state)
{
    (void)state;
    enum { A = 2, B = 3, C = 4, D = 5, COUNT = A * B * C * D };
    float stored[COUNT];
    for (int i = 0; i < COUNT; i++) {
        stored[i] = (float)i;
    }
    mha_io_npy *array = read_npy(io_npy_of(
        1, "{'descr':'<f4','fortran_order':True,'shape':(2,3,4,5)}\n", stored, sizeof stored));
    const float *data = mha_io_npy_data(array);
    for (int a = 0; a < A; a++) {
        for (int b = 0; b < B; b++) {
            for (int c = 0; c < C; c++) {
                for (int d = 0; d < D; d++) {
                    float expected = stored[a + A * (b + B * (c + C * d))];
                    assert_true(data[((a * B + b) * C + c) * D + d] == expected);
                }
            }
        }
    }
    mha_io_npy_destroy(array);
}

static void F08_big_endian_and_other_widths_are_converted(void **state)
{
    (void)state;
    const unsigned char big4[8] = {0x3f, 0x80, 0, 0, 0xc0, 0x40, 0, 0};
    const unsigned char big2[4] = {0x3c, 0x00, 0xc2, 0x00};
    const unsigned char little2[4] = {0x00, 0x3c, 0x00, 0xc2};
    const unsigned char big8[16] = {0x3f, 0xf0, 0, 0, 0, 0, 0, 0, 0xc0, 0x08, 0, 0, 0, 0, 0, 0};
    const unsigned char little8[16] = {0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0, 0, 0, 0, 0, 0, 0x08, 0xc0};
    const struct {
        const char *descr;
        const unsigned char *data;
        size_t size;
    } dialects[] = {{">f4", big4, 8},
                    {">f2", big2, 4},
                    {"<f2", little2, 4},
                    {">f8", big8, 16},
                    {"<f8", little8, 16}};
    for (size_t i = 0; i < sizeof dialects / sizeof dialects[0]; i++) {
        char header[128];
        snprintf(header,
                 sizeof header,
                 "{'descr':'%s','fortran_order':False,'shape':(2,)}\n",
                 dialects[i].descr);
        mha_io_npy *array = read_npy(io_npy_of(1, header, dialects[i].data, dialects[i].size));
        assert_true(mha_io_npy_data(array)[0] == 1.0f && mha_io_npy_data(array)[1] == -3.0f);
        mha_io_npy_destroy(array);
    }
}

static void F08_scalars_vectors_and_empty_arrays_are_read(void **state)
{
    (void)state;
    int64_t shape[2] = {-7, -7};
    mha_io_npy *array =
        read_npy(io_npy_of(1, "{'descr':'<f4','fortran_order':False,'shape':()}\n", one_to_six, 4));
    assert_int_equal(mha_io_npy_shape(array, shape, 2), 0);
    assert_int_equal(mha_io_npy_count(array), 1);
    assert_true(mha_io_npy_data(array)[0] == 1.0f);
    mha_io_npy_destroy(array);

    array = read_npy(
        io_npy_of(1, "{'descr':'<f4','fortran_order':True,'shape':(3,)}\n", one_to_six, 12));
    assert_int_equal(mha_io_npy_shape(array, shape, 2), 1);
    assert_int_equal(shape[0], 3);
    assert_true(mha_io_npy_data(array)[2] == 3.0f);
    mha_io_npy_destroy(array);

    array =
        read_npy(io_npy_of(1, "{'descr':'<f4','fortran_order':True,'shape':(4, 0)}\n", NULL, 0));
    assert_int_equal(mha_io_npy_shape(array, NULL, 0), 2);
    assert_int_equal(mha_io_npy_count(array), 0);
    assert_non_null(mha_io_npy_data(array));
    mha_io_npy_destroy(array);
}

static void npy_larger_than_a_chunk_is_read_whole(void **state)
{
    (void)state;
    enum { COUNT = 5000 };
    static double stored[COUNT];
    for (int i = 0; i < COUNT; i++) {
        stored[i] = i * 0.25;
    }
    mha_io_npy *array = read_npy(io_npy_of(
        2, "{'descr':'<f8','fortran_order':False,'shape':(5000,)}\n", stored, sizeof stored));
    for (int i = 0; i < COUNT; i++) {
        assert_true(mha_io_npy_data(array)[i] == (float)i * 0.25f);
    }
    mha_io_npy_destroy(array);
}

/* ---- refusals ---- */

static void F08_header_without_its_newline_is_refused(void **state)
{
    (void)state;
    refuse_header("{'descr':'<f4','fortran_order':False,'shape':(2,3)}", "newline");
    refuse_header("", "newline");
    refuse_header("\n", "dict");
}

static void F08_missing_unknown_and_repeated_keys_are_refused(void **state)
{
    (void)state;
    refuse_header("{'fortran_order':False,'shape':(2,3)}\n", "'descr'");
    refuse_header("{'descr':'<f4','shape':(2,3)}\n", "'fortran_order'");
    refuse_header("{'descr':'<f4','fortran_order':False}\n", "'shape'");
    refuse_header("{}\n", "'descr'");
    refuse_header("{'descr':'<f4','fortran_order':False,'shape':(2,3),'x':1}\n", "key");
    refuse_header("{'descr':'<f4','descr':'<f4','fortran_order':False,'shape':(2,3)}\n", "key");
    refuse_header("{'descr':'<f4','fortran_order':False,'shape':(2,3),'shape':(2,3)}\n", "key");
    refuse_header("{'Descr':'<f4','fortran_order':False,'shape':(2,3)}\n", "key");
}

static void npy_header_that_is_no_dict_is_refused(void **state)
{
    (void)state;
    refuse_header("('<f4',False,(2,3))\n", "dict");
    refuse_header("{'descr':'<f4' 'fortran_order':False,'shape':(2,3)}\n", "dict");
    refuse_header("{'descr':'<f4','fortran_order':False,'shape':(2,3)\n", "dict");
    refuse_header("{'descr'='<f4','fortran_order':False,'shape':(2,3)}\n", "dict");
    refuse_header("{'descr':'<f4','fortran_order':False,'shape':(2,3)}x\n", "after");
    refuse_header("{'descr':'<f4','fortran_order':False,'shape':(2,3)}{}\n", "after");
    refuse_header("{'descr\\x':'<f4','fortran_order':False,'shape':(2,3)}\n", "dict");
    refuse_header("{'descr':'<f4\n", "");
    refuse_header("{'descr':'<f4','fortran_order':0,'shape':(2,3)}\n", "fortran_order");
    refuse_header("{'descr':'<f4','fortran_order':'False','shape':(2,3)}\n", "fortran_order");
}

static void F08_other_element_types_are_refused(void **state)
{
    (void)state;
    static const char *const types[] = {"|O",
                                        "O",
                                        "<i4",
                                        "<u4",
                                        "|u1",
                                        "|b1",
                                        "<c8",
                                        "<f16",
                                        "|V4",
                                        "<U1",
                                        "=f4",
                                        "|f4",
                                        "f4",
                                        "<f",
                                        "",
                                        "<F4"};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        char header[128];
        snprintf(header,
                 sizeof header,
                 "{'descr':'%s','fortran_order':False,'shape':(2,3)}\n",
                 types[i]);
        refuse_header(header, types[i]);
    }
    refuse_header("{'descr':'|O','fortran_order':False,'shape':(2,3)}\n", "objects");
    refuse_header("{'descr':[('a','<f4')],'fortran_order':False,'shape':(2,3)}\n", "records");
}

static void F08_shapes_that_are_no_tuple_of_sizes_are_refused(void **state)
{
    (void)state;
    refuse_shape("(6)", "tuple");
    refuse_shape("6", "tuple");
    refuse_shape("[2,3]", "tuple");
    refuse_shape("(-2,-3)", "tuple");
    refuse_shape("(2,-3)", "tuple");
    refuse_shape("(2.0,3)", "commas");
    refuse_shape("(2 3)", "commas");
    refuse_shape("(,)", "tuple");
    refuse_shape("(2,,3)", "tuple");
    refuse_shape("(2,3", "");
    refuse_shape("(0x6,)", "commas");
    refuse_shape("('2',3)", "tuple");
}

static void F08_sizes_that_the_file_does_not_hold_are_refused(void **state)
{
    (void)state;
    refuse_shape("(8589934592,)", "8589934592"); /* 2^33 */
    refuse_shape("(7,)", "24 bytes");
    refuse_shape("(5,)", "24 bytes");
    refuse_shape("()", "24 bytes");
    refuse_shape("(0,)", "24 bytes");
    refuse_shape("(9223372036854775807,)", "24 bytes");
    refuse_shape("(4611686018427387904,)", "24 bytes"); /* 2^62: its bytes wrap to 0 */
    refuse_shape("(9223372036854775808,)", "2^63");
    refuse_shape("(99999999999999999999999,)", "2^63");
    refuse_shape("(4294967296,4294967296)", "2^63");
    refuse_shape("(4294967296,0,4294967296)", "2^63");
    refuse_shape("(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,6)", "32");
    mha_io_npy_destroy(
        read_npy(io_npy_of(1,
                           "{'descr':'<f4','fortran_order':True,'shape':(1,1,1,1,1,"
                           "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,6)}\n",
                           one_to_six,
                           24)));
}

static void F08_files_cut_anywhere_are_refused(void **state)
{
    (void)state;
    for (int version = 1; version <= 2; version++) {
        io_bytes whole = io_npy_of(version,
                                   "{'descr':'<f4','fortran_order':False,'shape':(2,3)}\n",
                                   one_to_six,
                                   sizeof one_to_six);
        for (int64_t size = 0; size < whole.size; size++) {
            refuse(io_bytes_of(whole.data, (size_t)size), "");
        }
        io_bytes_free(&whole);
    }
}

static void npy_magic_version_and_header_length_are_checked(void **state)
{
    (void)state;
    const char *header = "{'descr':'<f4','fortran_order':False,'shape':(2,3)}\n";
    static const struct {
        int place;
        unsigned char value;
        const char *word;
    } damages[] = {{0, 0x92, "not a .npy"},
                   {5, 'y', "not a .npy"},
                   {6, 0, "version 0.0"},
                   {6, 4, "version 4.0"},
                   {7, 1, "version 2.1"},
                   {9, 1, "cannot be in a file"},
                   {11, 0xff, "cannot be in a file"},
                   {8, 0, "newline"}};
    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        io_bytes bytes = io_npy_of(2, header, one_to_six, sizeof one_to_six);
        ((unsigned char *)bytes.memory.data)[damages[i].place] = damages[i].value;
        refuse(bytes, damages[i].word);
    }
}

static void npy_header_beyond_the_limit_is_refused(void **state)
{
    (void)state;
    enum { LENGTH = 70000 };
    static char header[LENGTH + 1];
    memset(header, ' ', LENGTH);
    memcpy(header, "{'descr':'<f4','fortran_order':False,'shape':(2,3)}", 51);
    header[LENGTH - 1] = '\n';
    refuse(io_npy_of(2, header, one_to_six, sizeof one_to_six), "70000");
}

static void f8_beyond_float32_is_refused_by_its_index(void **state)
{
    (void)state;
    static double numbers[3000];
    numbers[2999] = -1e39;
    refuse(
        io_npy_of(
            1, "{'descr':'<f8','fortran_order':False,'shape':(3000,)}\n", numbers, sizeof numbers),
        "number 2999");
    numbers[2999] = (double)INFINITY; /* which float32 has */
    mha_io_npy *array = read_npy(io_npy_of(
        1, "{'descr':'<f8','fortran_order':False,'shape':(3000,)}\n", numbers, sizeof numbers));
    assert_true(mha_io_npy_data(array)[2999] == INFINITY);
    mha_io_npy_destroy(array);
}

static void npy_calls_with_bad_arguments_are_refused(void **state)
{
    (void)state;
    mha_io_npy *array = (mha_io_npy *)&state;
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_io_npy_read(NULL, &array, err), "path");
    assert_null(array);
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_io_npy_read("x", NULL, err), "out");
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_io_npy_read_memory(NULL, 1, &array, err), "bytes");
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_io_npy_read_memory("x", 1, NULL, err), "out");
    REFUSED(MHA_ERROR_SHAPE, mha_io_npy_read_memory("x", -1, &array, err), "-1");
    REFUSED(MHA_ERROR_FILE_FORMAT, mha_io_npy_read_memory(NULL, 0, &array, err), "not a .npy");
    assert_int_equal(mha_io_npy_shape(NULL, NULL, 0), MHA_ERROR_NULL_ARGUMENT);
    assert_int_equal(mha_io_npy_count(NULL), MHA_ERROR_NULL_ARGUMENT);
    assert_null(mha_io_npy_data(NULL));
    mha_io_npy_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(F08_versions_one_two_and_three_are_read),
        cmocka_unit_test(npy_headers_may_be_written_in_other_ways),
        cmocka_unit_test(F08_fortran_order_gives_the_same_matrix),
        cmocka_unit_test(fortran_order_of_four_axes_is_turned_as_its_definition_says),
        cmocka_unit_test(F08_big_endian_and_other_widths_are_converted),
        cmocka_unit_test(F08_scalars_vectors_and_empty_arrays_are_read),
        cmocka_unit_test(npy_larger_than_a_chunk_is_read_whole),
        cmocka_unit_test(F08_header_without_its_newline_is_refused),
        cmocka_unit_test(F08_missing_unknown_and_repeated_keys_are_refused),
        cmocka_unit_test(npy_header_that_is_no_dict_is_refused),
        cmocka_unit_test(F08_other_element_types_are_refused),
        cmocka_unit_test(F08_shapes_that_are_no_tuple_of_sizes_are_refused),
        cmocka_unit_test(F08_sizes_that_the_file_does_not_hold_are_refused),
        cmocka_unit_test(F08_files_cut_anywhere_are_refused),
        cmocka_unit_test(npy_magic_version_and_header_length_are_checked),
        cmocka_unit_test(npy_header_beyond_the_limit_is_refused),
        cmocka_unit_test(f8_beyond_float32_is_refused_by_its_index),
        cmocka_unit_test(npy_calls_with_bad_arguments_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
