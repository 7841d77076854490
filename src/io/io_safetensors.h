/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA__IO_SAFETENSORS_H
#define MHA__IO_SAFETENSORS_H

/*
 * A safetensors file, checked:
 *
 *   0          8               8 + n                                  size
 *   | n, LE64  | JSON header   | data of the tensors, without holes   |
 *
 * Once opened, every tensor's bytes lie within the file, in the order of the array below.
 */
#include "io/io_convert.h"
#include "io/io_source.h"

#include <mha/io.h>

struct mha__io_tensor {
    const char *name; /* NUL-terminated, no NUL in it */
    int64_t name_length;
    const char *type_name; /* "F32", static */
    enum mha__io_type type;
    int32_t rank;
    const int64_t *shape;
    int64_t count;  /* the product of shape */
    int64_t offset; /* of its first byte in the file */
    int64_t bytes;
};

struct mha_io_safetensors {
    struct mha__io_source source;
    int64_t count;
    struct mha__io_tensor *tensors;
    char *names;     /* all names, one after another */
    int64_t *shapes; /* all shapes, one after another */
};

/* Fills file from the JSON text of its header; the data are the file's bytes from data_offset on. */
int32_t mha__io_header_parse(const char *text,
                             int64_t length,
                             int64_t data_offset,
                             mha_io_safetensors *file,
                             mha_error *err);

#endif
