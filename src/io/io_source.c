/* SPDX-License-Identifier: Apache-2.0 */
#define _XOPEN_SOURCE     700
#define _FILE_OFFSET_BITS 64

#include "io/io_source.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Linux reads at most 0x7ffff000 bytes a call. */
#define READ_AT_ONCE ((int64_t)1 << 30)

int32_t mha__io_source_refuse(const char *label, const char *what, int error_number, mha_error *err)
{
    char reason[128];
    if (strerror_r(error_number, reason, sizeof reason) != 0) {
        memcpy(reason, "unknown error", sizeof "unknown error");
    }
    return mha__io_error_fail(
        err, MHA_ERROR_FILE_ACCESS, label, "%s: %s (errno %d)", what, reason, error_number);
}

int32_t mha__io_source_open(struct mha__io_source *source, const char *path, mha_error *err)
{
    source->bytes = NULL;
    source->size = 0;
    mha__io_error_label(source->label, path);
    /* O_NONBLOCK: opening a FIFO must not wait for its writer. */
    do {
        source->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    } while (source->fd < 0 && errno == EINTR);
    if (source->fd < 0) {
        return mha__io_source_refuse(source->label, "cannot be opened", errno, err);
    }
    struct stat facts;
    int32_t status = MHA_OK;
    if (fstat(source->fd, &facts) != 0) {
        status = mha__io_source_refuse(source->label, "cannot be examined", errno, err);
    } else if (!S_ISREG(facts.st_mode)) {
        status = mha__io_error_fail(err,
                                    MHA_ERROR_FILE_ACCESS,
                                    source->label,
                                    "is %s, not a regular file",
                                    S_ISDIR(facts.st_mode)    ? "a directory"
                                    : S_ISFIFO(facts.st_mode) ? "a FIFO"
                                                              : "a device or socket");
    }
    if (status != MHA_OK) {
        mha__io_source_close(source);
        return status;
    }
    source->size = (int64_t)facts.st_size;
    return MHA_OK;
}

void mha__io_source_memory(struct mha__io_source *source, const void *bytes, int64_t size)
{
    static const unsigned char nothing[1];
    source->bytes = bytes ? bytes : nothing;
    source->fd = -1;
    source->size = size;
    memcpy(source->label, "(memory)", sizeof "(memory)");
}

void mha__io_source_close(struct mha__io_source *source)
{
    if (source->fd >= 0) {
        close(source->fd);
    }
    source->fd = -1;
}

static int32_t refuse_cut(const struct mha__io_source *source, int64_t now, mha_error *err)
{
    return mha__io_error_fail(err,
                              MHA_ERROR_FILE_ACCESS,
                              source->label,
                              "was cut while it was open: %" PRId64 " bytes, then %" PRId64,
                              source->size,
                              now);
}

int32_t mha__io_source_read(
    const struct mha__io_source *source, int64_t offset, void *to, int64_t bytes, mha_error *err)
{
    if (source->bytes) {
        if (bytes > 0) {
            memcpy(to, source->bytes + offset, (size_t)bytes);
        }
        return MHA_OK;
    }
    char *target = to;
    while (bytes > 0) {
        int64_t wanted = bytes < READ_AT_ONCE ? bytes : READ_AT_ONCE;
        ssize_t got = pread(source->fd, target, (size_t)wanted, (off_t)offset);
        if (got == 0) {
            return refuse_cut(source, offset, err);
        }
        if (got > 0) {
            target += got;
            offset += got;
            bytes -= got;
        } else if (errno != EINTR) {
            return mha__io_source_refuse(source->label, "cannot be read", errno, err);
        }
    }
    return MHA_OK;
}

int32_t mha__io_source_check(const struct mha__io_source *source, mha_error *err)
{
    struct stat facts;
    if (source->bytes) {
        return MHA_OK;
    }
    if (fstat(source->fd, &facts) != 0) {
        return mha__io_source_refuse(source->label, "cannot be examined", errno, err);
    }
    if ((int64_t)facts.st_size < source->size) {
        return refuse_cut(source, (int64_t)facts.st_size, err);
    }
    return MHA_OK;
}
