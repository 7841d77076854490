/* SPDX-License-Identifier: Apache-2.0 */
#define _XOPEN_SOURCE     700
#define _FILE_OFFSET_BITS 64

#include "io/io_memory.h"
#include "io/io_npy.h"
#include "io/io_source.h"

#include <mha/io.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_LIMIT 4096
/* Room for ".", process and counter, ".tmp" */
#define SUFFIX 48
/* Numbers written at once. */
#define CHUNK 2048

/* The array begins at a multiple of this. */
#define DATA_ALIGNMENT 64

struct target {
    char path[PATH_LIMIT]; /* what gets replaced: links followed */
    char
        temporary[PATH_LIMIT + SUFFIX]; /* beside it, so that rename stays within one file system */
    char label[MHA__IO_LABEL];
    int fd;
};

static int32_t count_numbers(int32_t rank, const int64_t *shape, int64_t *count, mha_error *err)
{
    int64_t product = 1; /* of the sizes that are not 0 */
    bool empty = false;
    if (rank < 0 || rank > MHA__IO_NPY_RANK) {
        return mha__io_error_fail(
            err, MHA_ERROR_SHAPE, NULL, "rank is %" PRId32 ", from 0 to 32 are written", rank);
    }
    for (int32_t axis = 0; axis < rank; axis++) {
        if (shape[axis] < 0) {
            return mha__io_error_fail(
                err, MHA_ERROR_SHAPE, NULL, "size %" PRId32 " is %" PRId64, axis, shape[axis]);
        }
        if (shape[axis] == 0) {
            empty = true;
        } else if (product > INT64_MAX / 4 / shape[axis]) {
            return mha__io_error_fail(err,
                                      MHA_ERROR_TOO_LARGE,
                                      NULL,
                                      "the bytes of the array pass 2^63 at size %" PRId32
                                      ", %" PRId64,
                                      axis,
                                      shape[axis]);
        } else {
            product *= shape[axis];
        }
    }
    *count = empty ? 0 : product;
    return MHA_OK;
}

/* Magic, version 1.0, length and dict; returns all of its length. 32 sizes of 19 digits are below 1
 * KiB. */
static size_t format_header(char text[1024], int32_t rank, const int64_t *shape)
{
    size_t used = 10;
    used += (size_t)snprintf(
        text + used, 1024 - used, "{'descr': '<f4', 'fortran_order': False, 'shape': (");
    for (int32_t axis = 0; axis < rank; axis++) {
        const char *format = axis == 0 ? (rank == 1 ? "%" PRId64 "," : "%" PRId64) : ", %" PRId64;
        used += (size_t)snprintf(text + used, 1024 - used, format, shape[axis]);
    }
    used += (size_t)snprintf(text + used, 1024 - used, "), }");
    size_t whole = (used + 1 + DATA_ALIGNMENT - 1) / DATA_ALIGNMENT * DATA_ALIGNMENT;
    memset(text + used, ' ', whole - used);
    text[whole - 1] = '\n';
    memcpy(text, "\x93NUMPY\x01", 8); /* the string's NUL is the minor version */
    text[8] = (char)((whole - 10) & 0xff);
    text[9] = (char)((whole - 10) >> 8);
    return whole;
}

/* Follows links, and refuses what is there but is no regular file: a device must not be renamed
 * away. */
static int32_t find_target(const char *path, struct target *target, mha_error *err)
{
    struct stat facts;
    mha__io_error_label(target->label, path);
    target->fd = -1;
    if (stat(path, &facts) != 0) {
        if (errno != ENOENT || !path[0]) {
            return mha__io_source_refuse(target->label, "cannot be written", errno, err);
        }
        if (strlen(path) >= PATH_LIMIT) {
            return mha__io_source_refuse(target->label, "cannot be written", ENAMETOOLONG, err);
        }
        memcpy(target->path, path, strlen(path) + 1);
        return MHA_OK;
    }
    if (!S_ISREG(facts.st_mode)) {
        return mha__io_error_fail(err,
                                  MHA_ERROR_FILE_ACCESS,
                                  target->label,
                                  "is %s, not a regular file: it cannot be replaced",
                                  S_ISDIR(facts.st_mode) ? "a directory"
                                                         : "a device, FIFO or socket");
    }
    if (!realpath(path, target->path)) {
        return mha__io_source_refuse(target->label, "cannot be written", errno, err);
    }
    return MHA_OK;
}

/* A new file beside the target, named by process and counter. */
static int32_t open_temporary(struct target *target, mha_error *err)
{
    static _Atomic uint32_t counter;
    for (int attempt = 0; attempt < 100; attempt++) {
        uint32_t number = atomic_fetch_add(&counter, 1);
        snprintf(target->temporary,
                 sizeof target->temporary,
                 "%s.%ld-%" PRIu32 ".tmp",
                 target->path,
                 (long)getpid(),
                 number);
        target->fd = open(target->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (target->fd >= 0) {
            return MHA_OK;
        }
        if (errno != EEXIST && errno != EINTR) {
            break;
        }
    }
    return mha__io_source_refuse(target->label, "cannot be written", errno, err);
}

static int32_t
write_bytes(const struct target *target, const void *bytes, size_t length, mha_error *err)
{
    const char *from = bytes;
    while (length > 0) {
        ssize_t done = write(target->fd, from, length);
        if (done >= 0) {
            from += done;
            length -= (size_t)done;
        } else if (errno != EINTR) {
            return mha__io_source_refuse(target->label, "cannot be written", errno, err);
        }
    }
    return MHA_OK;
}

static int32_t
write_numbers(const struct target *target, const float *data, int64_t count, mha_error *err)
{
    unsigned char chunk[4 * CHUNK];
    for (int64_t done = 0; done < count; done += CHUNK) {
        size_t now = count - done < CHUNK ? (size_t)(count - done) : CHUNK;
        for (size_t i = 0; i < now; i++) {
            uint32_t bits;
            memcpy(&bits, data + done + i, sizeof bits);
            chunk[4 * i] = (unsigned char)(bits & 0xff);
            chunk[4 * i + 1] = (unsigned char)(bits >> 8 & 0xff);
            chunk[4 * i + 2] = (unsigned char)(bits >> 16 & 0xff);
            chunk[4 * i + 3] = (unsigned char)(bits >> 24);
        }
        MHA__IO_TRY(write_bytes(target, chunk, 4 * now, err));
    }
    return MHA_OK;
}

static int32_t write_file(struct target *target,
                          int32_t rank,
                          const int64_t *shape,
                          const float *data,
                          int64_t count,
                          mha_error *err)
{
    char header[1024];
    MHA__IO_TRY(open_temporary(target, err));
    int32_t status = write_bytes(target, header, format_header(header, rank, shape), err);
    if (status == MHA_OK) {
        status = write_numbers(target, data, count, err);
    }
    if (close(target->fd) != 0 && status == MHA_OK) {
        status = mha__io_source_refuse(target->label, "cannot be written", errno, err);
    }
    if (status == MHA_OK && rename(target->temporary, target->path) != 0) {
        status = mha__io_source_refuse(target->label, "cannot be replaced", errno, err);
    }
    if (status != MHA_OK) {
        unlink(target->temporary);
    }
    return status;
}

int32_t mha_io_npy_write(
    const char *path, int32_t rank, const int64_t *shape, const float *data, mha_error *err)
{
    int64_t count = 0;
    if (!path) {
        return mha__io_error_null(err, "path");
    }
    if (!shape && rank > 0) {
        return mha__io_error_null(err, "shape");
    }
    MHA__IO_TRY(count_numbers(rank, shape, &count, err));
    if (!data && count > 0) {
        return mha__io_error_null(err, "data");
    }
    struct target *target = mha__io_memory_allocate(sizeof *target);
    if (!target) {
        return mha__io_error_memory(err, NULL);
    }
    int32_t status = find_target(path, target, err);
    if (status == MHA_OK) {
        status = write_file(target, rank, shape, data, count, err);
    }
    mha__io_memory_release(target);
    return status == MHA_OK ? mha__io_error_none(err) : status;
}
