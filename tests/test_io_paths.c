/* SPDX-License-Identifier: Apache-2.0 */
/* F10: paths, and files that change under our hands. */
#define _XOPEN_SOURCE 700

#include "io/io_memory.h"
#include "io_layers.h"
#include "support/expect.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static io_draft layer_draft(void)
{
    io_draft draft = {0};
    io_draft_add(&draft, "in_proj_weight", 36, 12, 1);
    io_draft_add(&draft, "out_proj.weight", 12, 12, 1000);
    return draft;
}

static void write_layer(const char *path)
{
    io_draft draft = layer_draft();
    io_bytes bytes = io_draft_bytes(&draft, "");
    io_write_file(path, bytes.data, (size_t)bytes.size);
    io_bytes_free(&bytes);
}

/* Both readers refuse a path as inaccessible, with a word and without leaving anything open. */
static void refuse_path(const char *path, const char *word, const char *other)
{
    mha_io_safetensors *file = (mha_io_safetensors *)&word;
    mha_io_npy *array = (mha_io_npy *)&word;
    int64_t live = mha__io_memory_live();
    int before = dup(0);
    close(before);
    REFUSED(MHA_ERROR_FILE_ACCESS, mha_io_safetensors_open(path, &file, err), word, other);
    REFUSED(MHA_ERROR_FILE_ACCESS, mha_io_npy_read(path, &array, err), word, other);
    int after = dup(0);
    close(after);
    assert_int_equal(before, after);
    assert_null(file);
    assert_null(array);
    assert_int_equal(mha__io_memory_live(), live);
}

/* ---- refusals ---- */

static void F10_missing_empty_and_directory_paths_are_refused(void **state)
{
    (void)state;
    refuse_path("", "empty path", "");
    refuse_path(io_path("no such file"), "no such file", "opened");
    refuse_path(io_path("."), "directory", io_path("."));
    refuse_path("/dev/null", "/dev/null", "not a regular file");
}

static void F10_fifo_is_refused_without_waiting_for_its_writer(void **state)
{
    (void)state;
    assert_int_equal(mkfifo(io_path("fifo"), 0600), 0);
    alarm(20); /* a reader that waits would be here for ever */
    refuse_path(io_path("fifo"), "FIFO", io_path("fifo"));
    alarm(0);
}

static void F10_unreadable_file_is_refused(void **state)
{
    (void)state;
    const char *path = io_path("secret");
    write_layer(path);
    assert_int_equal(chmod(path, 0), 0);
    uid_t user = geteuid();
    if (user == 0) { /* root may read everything: be somebody else meanwhile */
        assert_int_equal(chmod(io_path("."), 0755), 0);
        assert_int_equal(seteuid(65534), 0);
    }
    refuse_path(path, "secret", "ermission denied");
    if (user == 0) {
        assert_int_equal(seteuid(0), 0);
    }
    assert_int_equal(chmod(path, 0600), 0);
}

static void F10_path_of_5000_bytes_is_refused_with_its_ends(void **state)
{
    (void)state;
    char path[5001];
    memset(path, 'x', 5000);
    memcpy(path, "/begin", 6);
    memcpy(path + 4996, ".end", 5);
    refuse_path(path, "/beginxxx", "xxx.end");
    const int64_t one = 1;
    const float number = 1.0f;
    REFUSED(MHA_ERROR_FILE_ACCESS,
            mha_io_npy_write(path, 1, &one, &number, err),
            "/beginxxx",
            "xxx.end");
    /* cut between characters: every byte left is whole UTF-8 */
    for (int i = 0; i < 2499; i++) {
        memcpy(path + 2 * i, "\xc3\xa4", 2);
    }
    mha_error *err = mha_error_create();
    mha_io_npy *array = NULL;
    assert_int_equal(mha_io_npy_read(path, &array, err), MHA_ERROR_FILE_ACCESS);
    const char *sentence = sentence_of(err);
    for (size_t i = 0; sentence[i]; i++) {
        if ((unsigned char)sentence[i] == 0xc3) {
            assert_int_equal((unsigned char)sentence[++i], 0xa4);
        } else {
            assert_true((unsigned char)sentence[i] < 0x80);
        }
    }
    mha_error_destroy(err);
}

/* ---- behaviour ---- */

static void F10_paths_with_spaces_and_utf8_work(void **state)
{
    (void)state;
    static const char *const names[] = {
        "with two  spaces", "gr\xc3\xbc\xc3\x9f \xe2\x80\xa6 \xf0\x9f\x8c\xb1", "%s%n", "-rf"};
    const float numbers[2] = {1.0f, 2.0f};
    const int64_t two = 2;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *path = io_path(names[i]);
        mha_io_safetensors *file = NULL;
        mha_io_npy *array = NULL;
        write_layer(path);
        SUCCEEDS(mha_io_safetensors_open(path, &file, err));
        mha_io_safetensors_close(file);
        REFUSED(MHA_ERROR_FILE_FORMAT, mha_io_npy_read(path, &array, err), names[i]);
        SUCCEEDS(mha_io_npy_write(path, 1, &two, numbers, err));
        SUCCEEDS(mha_io_npy_read(path, &array, err));
        assert_same_bits(mha_io_npy_data(array), numbers, 2);
        mha_io_npy_destroy(array);
        REFUSED(MHA_ERROR_FILE_FORMAT, mha_io_safetensors_open(path, &file, err), names[i]);
    }
}

static mha_layer *load(const char *path, mha_io_safetensors **file)
{
    mha_config *cfg = NULL;
    mha_layer *layer = NULL;
    SUCCEEDS(mha_io_safetensors_open(path, file, err));
    SUCCEEDS(mha_io_read_config(*file, MHA_SCHEME_TORCH, "", 3, 0, &cfg, err));
    SUCCEEDS(mha_layer_create(cfg, &layer, err));
    SUCCEEDS(mha_io_load_layer(*file, MHA_SCHEME_TORCH, "", layer, err));
    mha_config_destroy(cfg);
    return layer;
}

static void F10_loaded_layer_outlives_its_file(void **state)
{
    (void)state;
    const char *path = io_path("gone.safetensors");
    mha_io_safetensors *file = NULL;
    mha_context *ctx = NULL;
    float x[24];
    float before[24];
    float after[24];
    for (int i = 0; i < 24; i++) {
        x[i] = (float)(i % 5) / 1000.0f;
    }
    write_layer(path);
    mha_layer *layer = load(path, &file);
    SUCCEEDS(mha_context_create(&ctx, err));
    SUCCEEDS(mha_layer_forward(ctx, layer, 1, 2, 2, x, x, x, NULL, before, err));
    assert_int_equal(truncate(path, 0), 0);
    assert_int_equal(unlink(path), 0);
    mha_io_safetensors_close(file);
    SUCCEEDS(mha_layer_forward(ctx, layer, 1, 2, 2, x, x, x, NULL, after, err));
    assert_same_bits(before, after, 24);
    mha_context_destroy(ctx);
    mha_layer_destroy(layer);
}

static void F10_deleted_file_stays_readable_while_it_is_open(void **state)
{
    (void)state;
    const char *path = io_path("deleted.safetensors");
    mha_io_safetensors *file = NULL;
    write_layer(path);
    mha_layer *layer = load(path, &file);
    assert_int_equal(unlink(path), 0);
    SUCCEEDS(mha_io_load_layer(file, MHA_SCHEME_TORCH, "", layer, err));
    mha_io_safetensors_close(file);
    mha_layer_destroy(layer);
}

static void F10_file_cut_while_open_is_refused_and_nothing_written(void **state)
{
    (void)state;
    const char *path = io_path("cut.safetensors");
    mha_io_safetensors *file = NULL;
    float numbers[144];
    float kept[144];
    write_layer(path);
    mha_layer *layer = load(path, &file);
    SUCCEEDS(mha_layer_get_parameter(layer, MHA_PARAM_OUT_WEIGHT, MHA_FLOAT32, kept, 144, err));
    for (int i = 0; i < 144; i++) {
        numbers[i] = 9.0f;
    }
    struct stat facts;
    assert_int_equal(stat(path, &facts), 0);
    assert_int_equal(truncate(path, facts.st_size - 1), 0);
    int64_t out = io_index(file, "out_proj.weight");
    REFUSED(MHA_ERROR_FILE_ACCESS,
            mha_io_safetensors_read(file, out, numbers, 144, err),
            "cut.safetensors",
            "was cut");
    assert_true(all_are(numbers, 144, 9.0f));
    REFUSED(MHA_ERROR_FILE_ACCESS,
            mha_io_load_layer(file, MHA_SCHEME_TORCH, "", layer, err),
            "cut.safetensors",
            "was cut");
    SUCCEEDS(mha_layer_get_parameter(layer, MHA_PARAM_OUT_WEIGHT, MHA_FLOAT32, numbers, 144, err));
    assert_same_bits(numbers, kept, 144);
    mha_io_safetensors_close(file);
    mha_layer_destroy(layer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(F10_missing_empty_and_directory_paths_are_refused),
        cmocka_unit_test(F10_fifo_is_refused_without_waiting_for_its_writer),
        cmocka_unit_test(F10_unreadable_file_is_refused),
        cmocka_unit_test(F10_path_of_5000_bytes_is_refused_with_its_ends),
        cmocka_unit_test(F10_paths_with_spaces_and_utf8_work),
        cmocka_unit_test(F10_loaded_layer_outlives_its_file),
        cmocka_unit_test(F10_deleted_file_stays_readable_while_it_is_open),
        cmocka_unit_test(F10_file_cut_while_open_is_refused_and_nothing_written),
    };
    return cmocka_run_group_tests(tests, io_directory_create, io_directory_remove);
}
