/* SPDX-License-Identifier: Apache-2.0 */
/* Files that must not open: each is refused with a sentence, reads nothing past its end (a guard
 * page stands there) and asks for little memory. */
#include "io/io_memory.h"
#include "io_files.h"
#include "support/expect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MEGABYTE = 1 << 20 };

static void refuse(io_bytes bytes, const char *word)
{
    mha_io_safetensors *file = (mha_io_safetensors *)&bytes;
    int64_t asked = mha__io_memory_bytes();
    int64_t live = mha__io_memory_live();
    REFUSED(MHA_ERROR_FILE_FORMAT,
            mha_io_safetensors_open_memory(bytes.data, bytes.size, &file, err), word, "(memory)");
    assert_null(file);
    assert_true(mha__io_memory_bytes() - asked < MEGABYTE);
    assert_int_equal(mha__io_memory_live(), live);
    io_bytes_free(&bytes);
}

static void refuse_header(const char *header, size_t data_bytes, const char *word)
{
    void *data = calloc(data_bytes ? data_bytes : 1, 1);
    assert_non_null(data);
    refuse(io_safetensors_of(header, data, data_bytes), word);
    free(data);
}

/* One F32 tensor with this shape and these data_offsets. */
static void
refuse_entry(const char *shape, const char *offsets, size_t data_bytes, const char *word)
{
    char header[256];
    snprintf(header, sizeof header, "{\"x\":{\"dtype\":\"F32\",\"shape\":%s,\"data_offsets\":%s}}",
             shape, offsets);
    refuse_header(header, data_bytes, word);
}

/* ---- F01 ---- */

static void F01_header_lengths_that_lie_are_refused(void **state)
{
    (void)state;
    const char *header = "{\"x\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}";
    const uint64_t size = 8 + strlen(header) + 4;
    const uint64_t lengths[] = {0,
                                1,
                                size - 7,
                                size,
                                (uint64_t)1 << 31,
                                (uint64_t)1 << 63,
                                UINT64_MAX,
                                UINT64_MAX - 4, /* 2^64 - 5 */
                                UINT64_MAX - 7};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        refuse(io_safetensors_lying(lengths[i], header, "\0\0\0", 4), "not safetensors");
    }
    /* one byte too many and one too few cut the JSON or add to it */
    refuse(io_safetensors_lying(strlen(header) - 1, header, "\0\0\0", 4), "JSON");
    refuse(io_safetensors_lying(strlen(header) + 1, header, "\0\0\0", 4), "JSON");
}

static void F01_files_of_up_to_eight_bytes_are_refused(void **state)
{
    (void)state;
    const unsigned char bytes[10] = {2, 0, 0, 0, 0, 0, 0, 0, '{', '}'};
    for (size_t size = 0; size < 10; size++) {
        refuse(io_bytes_of(bytes, size), "not safetensors");
    }
    /* the tenth makes it whole */
    io_bytes whole = io_bytes_of(bytes, 10);
    mha_io_safetensors *file = io_open(&whole);
    mha_io_safetensors_close(file);
    io_bytes_free(&whole);
}

static void F01_header_beyond_the_limit_is_refused_before_it_is_read(void **state)
{
    (void)state;
    enum { SIZE = 101000000 }; /* mostly a hole: no disk is used */
    const char *path = io_path("giant.safetensors");
    const unsigned char length[9] = {0xc0, 0x0e, 0x05, 0x06, 0, 0, 0, 0, '{'}; /* 100994752 */
    FILE *giant = fopen(path, "wb");
    assert_non_null(giant);
    assert_int_equal(fwrite(length, 1, sizeof length, giant), sizeof length);
    assert_int_equal(fseek(giant, SIZE - 1, SEEK_SET), 0);
    assert_int_equal(fputc(' ', giant), ' ');
    assert_int_equal(fclose(giant), 0);
    int64_t asked = mha__io_memory_bytes();
    mha_io_safetensors *file = NULL;
    REFUSED(MHA_ERROR_FILE_FORMAT, mha_io_safetensors_open(path, &file, err), "100994752",
            "100000000", "giant.safetensors");
    assert_true(mha__io_memory_bytes() - asked < MEGABYTE);
}

/* ---- F02 ---- */

static void F02_data_offsets_out_of_bounds_are_refused(void **state)
{
    (void)state;
    refuse_entry("[1]", "[-4,0]", 4, "data_offsets");
    refuse_entry("[1]", "[0,-4]", 4, "data_offsets");
    refuse_entry("[1]", "[4,0]", 4, "data_offsets");
    refuse_entry("[1]", "[0,5]", 4, "data_offsets");
    refuse_entry("[2]", "[0,8]", 4, "data_offsets");
    refuse_entry("[1]", "[4,8]", 4, "data_offsets");
    refuse_entry("[1]", "[9223372036854775804,9223372036854775807]", 4, "data_offsets");
    refuse_entry("[1]", "[-9223372036854775808,9223372036854775807]", 4, "data_offsets");
}

static void F02_data_offsets_that_are_no_two_integers_are_refused(void **state)
{
    (void)state;
    refuse_entry("[1]", "[0]", 4, "data_offsets");
    refuse_entry("[1]", "[0,4,8]", 4, "data_offsets");
    refuse_entry("[1]", "[]", 4, "data_offsets");
    refuse_entry("[250]", "[0,1e3]", 1000, "data_offsets");
    refuse_entry("[1]", "[0,4.0]", 4, "data_offsets");
    refuse_entry("[1]", "[0,\"4\"]", 4, "data_offsets");
    refuse_entry("[1]", "[0,true]", 4, "data_offsets");
    refuse_entry("[1]", "[0,null]", 4, "data_offsets");
    refuse_entry("[1]", "{\"0\":0,\"1\":4}", 4, "data_offsets");
    refuse_entry("[1]", "[0,18446744073709551615]", 4, "too big integer");
    refuse_entry("[1]", "[0,4e999]", 4, "JSON");
}

static void F02_shapes_that_do_not_fill_their_bytes_are_refused(void **state)
{
    (void)state;
    refuse_entry("[1000,1000]", "[0,4]", 4, "1000000");
    refuse_entry("[1]", "[0,8]", 8, "data_offsets");
    refuse_entry("[2]", "[0,4]", 4, "data_offsets");
    refuse_entry("[0]", "[0,4]", 4, "data_offsets");
    refuse_entry("[]", "[0,0]", 0, "data_offsets");
    refuse_entry("[4294967296,4294967296]", "[0,4]", 4, "2^63");
    /* 2^62 numbers: the product fits, their bytes do not; 2^64 bytes would wrap to 0 */
    refuse_entry("[4611686018427387904]", "[0,0]", 0, "4611686018427387904");
    refuse_entry("[4611686018427387904,0,4611686018427387904]", "[0,0]", 0, "2^63");
    refuse_entry("[-1]", "[0,4]", 4, "size");
    refuse_entry("[-1,-1]", "[0,4]", 4, "size");
    refuse_entry("[1.0]", "[0,4]", 4, "size");
    refuse_entry("[\"1\"]", "[0,4]", 4, "size");
    refuse_entry("[[1]]", "[0,4]", 4, "size");
    refuse_entry("1", "[0,4]", 4, "shape");
    refuse_entry("null", "[0,4]", 4, "shape");
}

static void F02_truncated_data_are_refused_at_every_length(void **state)
{
    (void)state;
    const float numbers[2] = {1.0f, 2.0f};
    io_bytes whole = io_safetensors_of(
        "{\"x\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", numbers, 8);
    for (int64_t size = 0; size < whole.size; size++) {
        refuse(io_bytes_of(whole.data, (size_t)size), "");
    }
    io_bytes_free(&whole);
}

static void data_that_overlap_or_belong_to_nobody_are_refused(void **state)
{
    (void)state;
    refuse_header("{\"x\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
                  "\"y\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}",
                  12, "overlap");
    refuse_header("{\"x\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
                  "\"y\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
                  4, "overlap");
    refuse_header("{\"x\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", 8,
                  "no tensor");
    refuse_header("{\"x\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
                  "\"y\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[8,12]}}",
                  12, "no tensor");
    refuse_header("{\"x\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 5,
                  "last 1 bytes");
    refuse_header("{}", 3, "last 3 bytes");
}

static void types_that_are_missing_or_unknown_are_refused(void **state)
{
    (void)state;
    refuse_header("{\"x\":{\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "dtype");
    refuse_header("{\"x\":{\"dtype\":4,\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "dtype");
    refuse_header("{\"x\":{\"dtype\":\"F33\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "dtype");
    refuse_header("{\"x\":{\"dtype\":\"f32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "dtype");
    refuse_header("{\"x\":{\"dtype\":\"F32\\u0000\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
                  "dtype");
    /* half a byte is no place for one number of 4 bits */
    refuse_header("{\"x\":{\"dtype\":\"F4\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "F4");
    refuse_header("{\"x\":[]}", 0, "shape");
    refuse_header("{\"x\":null}", 0, "shape");
    refuse_header("{\"x\":{}}", 0, "shape");
}

/* ---- F05 ---- */

static void F05_deep_nesting_is_refused_before_the_parser_recurses(void **state)
{
    (void)state;
    enum { DEPTH = 100000 };
    char *header = malloc(DEPTH + 64);
    assert_non_null(header);
    memcpy(header, "{\"x\":", 5);
    memset(header + 5, '[', DEPTH);
    header[5 + DEPTH] = '\0';
    refuse_header(header, 0, "nests");
    memset(header, '[', DEPTH);
    header[DEPTH] = '\0';
    refuse_header(header, 0, "'{'");
    memset(header, '{', DEPTH);
    refuse_header(header, 0, "nests");
    /* well below what the parser itself would bear */
    refuse_header("{\"x\":[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]}", 0, "nests");
    free(header);
    /* brackets inside a string are text, and an escaped quote does not end it */
    io_bytes fine =
        io_safetensors_of("{\"__metadata__\":{\"a\":\"[[[[[[[[[[\\\"[[[[[[{{{{\"}}", NULL, 0);
    mha_io_safetensors_close(io_open(&fine));
    io_bytes_free(&fine);
}

static void F05_duplicate_names_are_refused(void **state)
{
    (void)state;
    const char *entry = "{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}";
    char header[256];
    snprintf(header, sizeof header, "{\"a\":%s,\"a\":%s}", entry, entry);
    refuse_header(header, 4, "duplicate");
    snprintf(header, sizeof header, "{\"a\":%s,\"\\u0061\":%s}", entry, entry);
    refuse_header(header, 4, "duplicate");
    refuse_header(
        "{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
        "duplicate");
    refuse_header("{\"__metadata__\":{},\"__metadata__\":{}}", 0, "duplicate");
}

static void F05_header_that_is_no_object_is_refused(void **state)
{
    (void)state;
    refuse_header("[]", 0, "'{'");
    refuse_header(" {}", 0, "'{'");
    refuse_header("\xef\xbb\xbf{}", 0, "'{'");
    refuse_header("\"{}\"", 0, "'{'");
    refuse_header("null", 0, "'{'");
    refuse_header("{", 0, "not safetensors"); /* shorter than any object */
    refuse_header("{{", 0, "JSON");
    refuse_header("{}{}", 0, "JSON");
    refuse_header("{},", 0, "JSON");
    refuse_header("{\"x\":nan}", 0, "JSON");
    refuse_header("{'x':1}", 0, "JSON");
    refuse_header("{\"x\":1,}", 0, "JSON");
    refuse_header("{\"\xff\":1}", 0, "JSON");
}

static void F05_names_with_a_nul_are_refused_rather_than_cut(void **state)
{
    (void)state;
    refuse_header("{\"a\\u0000b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
                  "NUL");
    refuse_header("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
                  "\"a\\u0000\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}",
                  8, "NUL");
}

static void F05_metadata_other_than_strings_are_refused(void **state)
{
    (void)state;
    refuse_header("{\"__metadata__\":[]}", 0, "__metadata__");
    refuse_header("{\"__metadata__\":null}", 0, "__metadata__");
    refuse_header("{\"__metadata__\":{\"a\":1}}", 0, "__metadata__");
    refuse_header("{\"__metadata__\":{\"a\":{\"b\":\"c\"}}}", 0, "__metadata__");
}

static void sentences_show_no_control_characters_of_the_file(void **state)
{
    (void)state;
    io_bytes bytes = io_safetensors_of(
        "{\"\\u001b[31mred\\n\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,8]}}",
        "1234567", 8);
    mha_io_safetensors *file = NULL;
    mha_error *err = mha_error_create();
    assert_int_equal(mha_io_safetensors_open_memory(bytes.data, bytes.size, &file, err),
                     MHA_ERROR_FILE_FORMAT);
    assert_non_null(strstr(sentence_of(err), "?[31mred?"));
    assert_null(strchr(sentence_of(err), '\x1b'));
    assert_null(strchr(sentence_of(err), '\n'));
    mha_error_destroy(err);
    io_bytes_free(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(F01_header_lengths_that_lie_are_refused),
        cmocka_unit_test(F01_files_of_up_to_eight_bytes_are_refused),
        cmocka_unit_test(F01_header_beyond_the_limit_is_refused_before_it_is_read),
        cmocka_unit_test(F02_data_offsets_out_of_bounds_are_refused),
        cmocka_unit_test(F02_data_offsets_that_are_no_two_integers_are_refused),
        cmocka_unit_test(F02_shapes_that_do_not_fill_their_bytes_are_refused),
        cmocka_unit_test(F02_truncated_data_are_refused_at_every_length),
        cmocka_unit_test(data_that_overlap_or_belong_to_nobody_are_refused),
        cmocka_unit_test(types_that_are_missing_or_unknown_are_refused),
        cmocka_unit_test(F05_deep_nesting_is_refused_before_the_parser_recurses),
        cmocka_unit_test(F05_duplicate_names_are_refused),
        cmocka_unit_test(F05_header_that_is_no_object_is_refused),
        cmocka_unit_test(F05_names_with_a_nul_are_refused_rather_than_cut),
        cmocka_unit_test(F05_metadata_other_than_strings_are_refused),
        cmocka_unit_test(sentences_show_no_control_characters_of_the_file),
    };
    return cmocka_run_group_tests(tests, io_directory_create, io_directory_remove);
}
