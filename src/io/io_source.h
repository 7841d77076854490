/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA__IO_SOURCE_H
#define MHA__IO_SOURCE_H

/*
 * Where bytes come from: a regular file, read by pread where it is needed, or memory of the
 * caller's. Files are not mapped: one that is cut while it is open gives a status, not a SIGBUS.
 */
#include "io/io_error.h"

#include <stddef.h>

struct mha__io_source {
    const unsigned char *bytes; /* the memory, or NULL: a file */
    int fd;                     /* the file, or -1 */
    int64_t size;               /* bytes, when it was opened */
    char label[MHA__IO_LABEL];  /* the path as sentences show it */
};

int32_t mha__io_source_open(struct mha__io_source *source, const char *path, mha_error *err);
void mha__io_source_memory(struct mha__io_source *source, const void *bytes, int64_t size);
void mha__io_source_close(struct mha__io_source *source);

/* offset + bytes must lie within size. FILE_ACCESS when the file is shorter by now or unreadable. */
int32_t mha__io_source_read(
    const struct mha__io_source *source, int64_t offset, void *to, int64_t bytes, mha_error *err);

/* FILE_ACCESS when the file has become shorter since it was opened. */
int32_t mha__io_source_check(const struct mha__io_source *source, mha_error *err);

/* FILE_ACCESS with the reason that errno value gives. */
int32_t
mha__io_source_refuse(const char *label, const char *what, int error_number, mha_error *err);

#endif
