/* SPDX-License-Identifier: Apache-2.0 */
/* The committed files of other people's writers are read, with their numbers; the bad ones are
 * refused. Number i of every tensor or array is i/2 - 3. Made by tools/make_io_corpus.py. */
#define _XOPEN_SOURCE 700

#include "io_files.h"
#include "support/expect.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

static void check_numbers(const float *numbers, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        assert_true(numbers[i] == (float)i / 2.0f - 3.0f);
    }
}

static int32_t check_npy(const char *path, mha_error *err)
{
    mha_io_npy *array = NULL;
    int32_t status = mha_io_npy_read(path, &array, err);
    if (status == MHA_OK) {
        check_numbers(mha_io_npy_data(array), mha_io_npy_count(array));
    }
    mha_io_npy_destroy(array);
    return status;
}

static int32_t check_safetensors(const char *path, mha_error *err)
{
    mha_io_safetensors *file = NULL;
    int32_t status = mha_io_safetensors_open(path, &file, err);
    for (int64_t i = 0; status == MHA_OK && i < mha_io_safetensors_count(file); i++) {
        float numbers[64];
        int64_t shape[4];
        int64_t count = 1;
        int32_t rank = mha_io_safetensors_shape(file, i, shape, 4);
        assert_in_range(rank, 0, 4);
        for (int32_t axis = 0; axis < rank; axis++) {
            count *= shape[axis];
        }
        assert_in_range(count, 0, 64);
        SUCCEEDS(mha_io_safetensors_read(file, i, numbers, count, err));
        check_numbers(numbers, count);
    }
    mha_io_safetensors_close(file);
    return status;
}

/* Runs check over the files of a folder: good_* must succeed, bad_* be refused with a sentence. */
static void check_folder(const char *folder, int32_t (*check)(const char *, mha_error *))
{
    char path[1024];
    int good = 0;
    int bad = 0;
    snprintf(path, sizeof path, "%s/%s", MHA_TEST_CORPUS, folder);
    DIR *stream = opendir(path);
    assert_non_null(stream);
    for (struct dirent *entry = readdir(stream); entry; entry = readdir(stream)) {
        if (strncmp(entry->d_name, "good_", 5) == 0) {
            snprintf(path, sizeof path, "%s/%s/%s", MHA_TEST_CORPUS, folder, entry->d_name);
            SUCCEEDS(check(path, err));
            good++;
        } else if (strncmp(entry->d_name, "bad_", 4) == 0) {
            snprintf(path, sizeof path, "%s/%s/%s", MHA_TEST_CORPUS, folder, entry->d_name);
            REFUSED(MHA_ERROR_FILE_FORMAT, check(path, err), entry->d_name);
            bad++;
        }
    }
    closedir(stream);
    assert_in_range(good, 6, 100);
    assert_in_range(bad, 11, 100);
}

static void npy_files_of_numpy_have_their_numbers(void **state)
{
    (void)state;
    check_folder("npy", check_npy);
}

static void safetensors_files_of_other_writers_have_their_numbers(void **state)
{
    (void)state;
    check_folder("safetensors", check_safetensors);
}

static void safetensors_layers_of_other_writers_load(void **state)
{
    (void)state;
    static const struct {
        const char *file;
        const char *scheme;
        const char *prefix;
    } layers[] = {{"good_bert", "bert", "e."},
                  {"good_torch", "torch", ""},
                  {"good_gpt2", "gpt2", "h.0.attn."}};
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++) {
        char path[1024];
        float query[16];
        mha_io_safetensors *file = NULL;
        mha_config *cfg = NULL;
        mha_layer *layer = NULL;
        int32_t scheme = mha_io_scheme(layers[i].scheme);
        snprintf(
            path, sizeof path, "%s/safetensors/%s.safetensors", MHA_TEST_CORPUS, layers[i].file);
        SUCCEEDS(mha_io_safetensors_open(path, &file, err));
        SUCCEEDS(mha_io_read_config(file, scheme, layers[i].prefix, 2, 0, &cfg, err));
        SUCCEEDS(mha_layer_create(cfg, &layer, err));
        SUCCEEDS(mha_io_load_layer(file, scheme, layers[i].prefix, layer, err));
        SUCCEEDS(mha_layer_get_parameter(layer, MHA_PARAM_Q_WEIGHT, MHA_FLOAT32, query, 16, err));
        for (int o = 0; o < 4; o++) {
            for (int in = 0; in < 4; in++) { /* gpt2 stores [in, 12] */
                int place = scheme == MHA_SCHEME_GPT2 ? in * 12 + o : o * 4 + in;
                assert_true(query[o * 4 + in] == (float)place / 2.0f - 3.0f);
            }
        }
        mha_layer_destroy(layer);
        mha_config_destroy(cfg);
        mha_io_safetensors_close(file);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(npy_files_of_numpy_have_their_numbers),
        cmocka_unit_test(safetensors_files_of_other_writers_have_their_numbers),
        cmocka_unit_test(safetensors_layers_of_other_writers_load),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
