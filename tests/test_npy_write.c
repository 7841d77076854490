/* SPDX-License-Identifier: Apache-2.0 */
#define _XOPEN_SOURCE 700

#include "io_files.h"
#include "support/expect.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void
check_file(const char *path, int32_t rank, const int64_t *shape, const float *data, int64_t count)
{
    mha_io_npy *array = NULL;
    int64_t got[32];
    SUCCEEDS(mha_io_npy_read(path, &array, err));
    assert_int_equal(mha_io_npy_shape(array, got, 32), rank);
    for (int32_t axis = 0; axis < rank; axis++) {
        assert_int_equal(got[axis], shape[axis]);
    }
    assert_int_equal(mha_io_npy_count(array), count);
    assert_same_bits(mha_io_npy_data(array), data, count);
    mha_io_npy_destroy(array);
}

static size_t slurp(const char *path, unsigned char *to, size_t room)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t size = fread(to, 1, room, file);
    fclose(file);
    return size;
}

/* ---- behaviour ---- */

static void written_file_is_byte_for_byte_what_numpy_writes(void **state)
{
    (void)state;
    const float data[2] = {1.0f, -2.0f};
    const int64_t shape[2] = {2, 1};
    const char *path = io_path("bytes.npy");
    unsigned char got[256];
    char expected[129];
    SUCCEEDS(mha_io_npy_write(path, 2, shape, data, err));
    assert_int_equal(slurp(path, got, sizeof got), 128 + 8);
    snprintf(expected,
             sizeof expected,
             "%-117s\n",
             "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }");
    assert_memory_equal(got, "\x93NUMPY\x01\x00\x76\x00", 10);
    assert_memory_equal(got + 10, expected, 118);
    assert_memory_equal(got + 128, "\0\0\x80\x3f\0\0\0\xc0", 8);
    assert_int_equal(unlink(path), 0);
}

static void written_arrays_come_back_with_every_bit(void **state)
{
    (void)state;
    static float data[6000];
    for (int i = 0; i < 6000; i++) {
        data[i] = (float)i / 7.0f;
    }
    const uint32_t odd[3] = {
        0x7f800001, 0xffc12345, 0x00000001}; /* NaNs with payloads, a subnormal */
    memcpy(data, odd, sizeof odd);
    data[3] = -0.0f;
    data[4] = -INFINITY;
    const struct {
        int32_t rank;
        int64_t shape[4];
        int64_t count;
    } cases[] = {{0, {0}, 1},
                 {1, {5}, 5},
                 {1, {0}, 0},
                 {2, {3, 4}, 12},
                 {3, {2, 0, 9}, 0},
                 {4, {2, 3, 10, 100}, 6000},
                 {2, {0, INT64_MAX / 4}, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *path = io_path("round.npy");
        const float *numbers = cases[i].count ? data : NULL;
        SUCCEEDS(mha_io_npy_write(
            path, cases[i].rank, cases[i].rank ? cases[i].shape : NULL, numbers, err));
        check_file(path, cases[i].rank, cases[i].shape, data, cases[i].count);
    }
    assert_int_equal(unlink(io_path("round.npy")), 0);
}

static void written_header_of_the_largest_rank_is_read_again(void **state)
{
    (void)state;
    int64_t shape[32];
    for (int i = 0; i < 32; i++) {
        shape[i] = i == 0 ? 0 : 1;
    }
    shape[31] = INT64_MAX / 4;
    SUCCEEDS(mha_io_npy_write(io_path("rank.npy"), 32, shape, NULL, err));
    check_file(io_path("rank.npy"), 32, shape, NULL, 0);
    assert_int_equal(unlink(io_path("rank.npy")), 0);
}

static void written_file_replaces_another_and_leaves_nothing_beside_it(void **state)
{
    (void)state;
    const float first[1] = {1.0f};
    const float second[2] = {2.0f, 3.0f};
    const int64_t one = 1;
    const int64_t two = 2;
    const char *path = io_path("replaced.npy");
    SUCCEEDS(mha_io_npy_write(path, 1, &one, first, err));
    SUCCEEDS(mha_io_npy_write(path, 1, &two, second, err));
    check_file(path, 1, &two, second, 2);
    assert_int_equal(io_directory_count(), 1);
    assert_int_equal(unlink(path), 0);
}

static void written_link_stays_a_link_to_the_replaced_file(void **state)
{
    (void)state;
    const float data[1] = {4.0f};
    const int64_t one = 1;
    struct stat facts;
    io_write_file(io_path("target.npy"), "old", 3);
    assert_int_equal(symlink(io_path("target.npy"), io_path("link.npy")), 0);
    SUCCEEDS(mha_io_npy_write(io_path("link.npy"), 1, &one, data, err));
    assert_int_equal(lstat(io_path("link.npy"), &facts), 0);
    assert_true(S_ISLNK(facts.st_mode));
    check_file(io_path("target.npy"), 1, &one, data, 1);
    assert_int_equal(unlink(io_path("link.npy")), 0);
    assert_int_equal(unlink(io_path("target.npy")), 0);
}

static void written_file_has_the_permissions_that_the_process_gives(void **state)
{
    (void)state;
    const int64_t none = 0;
    struct stat facts;
    mode_t before = umask(027);
    int32_t status = mha_io_npy_write(io_path("mode.npy"), 1, &none, NULL, NULL);
    umask(before);
    assert_int_equal(status, MHA_OK);
    assert_int_equal(stat(io_path("mode.npy"), &facts), 0);
    assert_int_equal(facts.st_mode & 0777, 0640);
    assert_int_equal(unlink(io_path("mode.npy")), 0);
}

/* ---- refusals ---- */

static void write_with_bad_arguments_is_refused(void **state)
{
    (void)state;
    const float data[1] = {1.0f};
    const int64_t one = 1;
    const int64_t negative[2] = {2, -3};
    const int64_t huge[2] = {INT64_C(1) << 31, INT64_C(1) << 31};
    const char *path = io_path("never.npy");
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_io_npy_write(NULL, 1, &one, data, err), "path");
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_io_npy_write(path, 1, NULL, data, err), "shape");
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_io_npy_write(path, 1, &one, NULL, err), "data");
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_io_npy_write(path, 0, NULL, NULL, err), "data");
    REFUSED(MHA_ERROR_SHAPE, mha_io_npy_write(path, -1, &one, data, err), "-1");
    REFUSED(MHA_ERROR_SHAPE, mha_io_npy_write(path, 33, &one, data, err), "33", "32");
    REFUSED(MHA_ERROR_SHAPE, mha_io_npy_write(path, 2, negative, data, err), "-3");
    REFUSED(MHA_ERROR_TOO_LARGE, mha_io_npy_write(path, 2, huge, data, err), "2147483648");
    assert_int_equal(io_directory_count(), 0);
}

static void write_to_what_is_no_file_is_refused_and_leaves_it(void **state)
{
    (void)state;
    const float data[1] = {1.0f};
    const int64_t one = 1;
    struct stat facts;
    assert_int_equal(mkfifo(io_path("fifo"), 0600), 0);
    assert_int_equal(mkdir(io_path("folder"), 0700), 0);
    REFUSED(MHA_ERROR_FILE_ACCESS,
            mha_io_npy_write(io_path("fifo"), 1, &one, data, err),
            "FIFO",
            "fifo");
    REFUSED(MHA_ERROR_FILE_ACCESS,
            mha_io_npy_write(io_path("folder"), 1, &one, data, err),
            "directory");
    REFUSED(MHA_ERROR_FILE_ACCESS, mha_io_npy_write("/dev/null", 1, &one, data, err), "device");
    assert_int_equal(stat("/dev/null", &facts), 0);
    assert_true(S_ISCHR(facts.st_mode));
    REFUSED(MHA_ERROR_FILE_ACCESS, mha_io_npy_write("", 1, &one, data, err), "empty path");
    REFUSED(MHA_ERROR_FILE_ACCESS,
            mha_io_npy_write(io_path("nowhere/x.npy"), 1, &one, data, err),
            "nowhere/x.npy");
    assert_int_equal(io_directory_count(), 2);
    assert_int_equal(unlink(io_path("fifo")), 0);
    assert_int_equal(rmdir(io_path("folder")), 0);
}

static void write_that_runs_out_of_room_leaves_the_old_file(void **state)
{
    (void)state;
    enum { COUNT = 100000 };
    static float data[COUNT];
    const int64_t count = COUNT;
    const char *path = io_path("limited.npy");
    int result = -1;
    unsigned char got[8];
    io_write_file(path, "old", 3);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) { /* files may have 64 KiB here; without the signal, write fails with EFBIG */
        const struct rlimit room = {65536, 65536};
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &room);
        _exit(mha_io_npy_write(path, 1, &count, data, NULL) == MHA_ERROR_FILE_ACCESS ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(result, 0);
    assert_int_equal(slurp(path, got, sizeof got), 3);
    assert_int_equal(io_directory_count(), 1);
    assert_int_equal(unlink(path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(written_file_is_byte_for_byte_what_numpy_writes),
        cmocka_unit_test(written_arrays_come_back_with_every_bit),
        cmocka_unit_test(written_header_of_the_largest_rank_is_read_again),
        cmocka_unit_test(written_file_replaces_another_and_leaves_nothing_beside_it),
        cmocka_unit_test(written_link_stays_a_link_to_the_replaced_file),
        cmocka_unit_test(written_file_has_the_permissions_that_the_process_gives),
        cmocka_unit_test(write_with_bad_arguments_is_refused),
        cmocka_unit_test(write_to_what_is_no_file_is_refused_and_leaves_it),
        cmocka_unit_test(write_that_runs_out_of_room_leaves_the_old_file),
    };
    return cmocka_run_group_tests(tests, io_directory_create, io_directory_remove);
}
