/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_IO_FILES_H
#define TESTS_IO_FILES_H

/* Files for the tests of libmha_io: made in memory, and in a directory that goes away again. */
#include "support/guard_page.h"

#include <mha/io.h>

/* Bytes that end right before a page nobody may touch: reading past the end is a crash. */
typedef struct io_bytes {
    guarded memory;
    const unsigned char *data;
    int64_t size;
} io_bytes;

io_bytes io_bytes_of(const void *data, size_t size);
/* A safetensors file: length of the header, header, data. */
io_bytes io_safetensors_of(const char *header, const void *data, size_t size);
/* The same with another number where the length of the header stands. */
io_bytes io_safetensors_lying(uint64_t length, const char *header, const void *data, size_t size);
/* A .npy file of a version with this header text, which should end in a newline. */
io_bytes io_npy_of(int version, const char *header, const void *data, size_t size);
void io_bytes_free(io_bytes *bytes);

/* Opens bytes as safetensors; failing to fails the test. */
mha_io_safetensors *io_open(const io_bytes *bytes);
/* The index of a tensor by name; -1: none. */
int64_t io_index(const mha_io_safetensors *file, const char *name);

/* A directory of its own for a test program: group setup and teardown of cmocka. */
int io_directory_create(void **state);
int io_directory_remove(void **state);
/* The path of a file in it, in static memory: eight at a time. */
const char *io_path(const char *name);
/* How many files are in it. */
int io_directory_count(void);
void io_write_file(const char *path, const void *data, size_t size);

#endif
