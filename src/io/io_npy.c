/* SPDX-License-Identifier: Apache-2.0 */
#include "io/io_npy.h"

#include "io/io_memory.h"
#include "io/io_source.h"

#include <mha/io.h>

#include <inttypes.h>
#include <string.h>

/* NumPy itself refuses headers beyond 10000 bytes. */
#define HEADER_LIMIT 65535
/* Bytes converted at once; a multiple of every type's width. */
#define CHUNK 8192

struct mha_io_npy {
    int32_t rank;
    int64_t shape[MHA__IO_NPY_RANK];
    int64_t count;
    float *data; /* row-major */
};

/* Finds and reads the header; *data_offset is where the numbers begin. */
static int32_t read_header(const struct mha__io_source *source,
                           struct mha__io_npy_header *header,
                           int64_t *data_offset,
                           mha_error *err)
{
    unsigned char start[12] = {0};
    int64_t available = source->size < 12 ? source->size : 12;
    MHA__IO_TRY(mha__io_source_read(source, 0, start, available, err));
    if (available < 10 || memcmp(start, "\x93NUMPY", 6) != 0) {
        return mha__io_error_fail(err, MHA_ERROR_FILE_FORMAT, source->label, "not a .npy file");
    }
    if (start[6] < 1 || start[6] > 3 || start[7] != 0) {
        return mha__io_error_fail(err,
                                  MHA_ERROR_FILE_FORMAT,
                                  source->label,
                                  ".npy version %d.%d; 1.0, 2.0 and 3.0 are read",
                                  start[6],
                                  start[7]);
    }
    int64_t text_offset = start[6] == 1 ? 10 : 12;
    int64_t length = start[8] | start[9] << 8;
    if (text_offset == 12) {
        length |= (int64_t)start[10] << 16 | (int64_t)start[11] << 24;
    }
    if (text_offset > source->size || length > source->size - text_offset) {
        return mha__io_error_fail(err,
                                  MHA_ERROR_FILE_FORMAT,
                                  source->label,
                                  "a .npy header of %" PRId64
                                  " bytes cannot be in a file of %" PRId64,
                                  length,
                                  source->size);
    }
    if (length > HEADER_LIMIT) {
        return mha__io_error_fail(err,
                                  MHA_ERROR_FILE_FORMAT,
                                  source->label,
                                  "a .npy header of %" PRId64 " bytes; at most %d are read",
                                  length,
                                  HEADER_LIMIT);
    }
    char *text = mha__io_memory_allocate((size_t)length);
    if (!text) {
        return mha__io_error_memory(err, source->label);
    }
    int32_t status = mha__io_source_read(source, text_offset, text, length, err);
    if (status == MHA_OK) {
        status = mha__io_npy_header_parse(text, length, source->label, header, err);
    }
    mha__io_memory_release(text);
    *data_offset = text_offset + length;
    return status;
}

/* The file must be exactly as long as its header says: before memory is asked for on its word. */
static int32_t check_size(const struct mha__io_source *source,
                          const struct mha__io_npy_header *header,
                          int64_t data_offset,
                          mha_error *err)
{
    int64_t width = mha__io_convert_bytes(header->type);
    int64_t bytes = source->size - data_offset;
    if (header->count > INT64_MAX / width || header->count * width != bytes) {
        return mha__io_error_fail(err,
                                  MHA_ERROR_FILE_FORMAT,
                                  source->label,
                                  "the header says %" PRId64 " numbers of %" PRId64
                                  " bytes, the file has %" PRId64 " bytes of data",
                                  header->count,
                                  width,
                                  bytes);
    }
    return MHA_OK;
}

/* The numbers in the order of the file. */
static int32_t read_numbers(const struct mha__io_source *source,
                            const struct mha__io_npy_header *header,
                            int64_t data_offset,
                            float *data,
                            mha_error *err)
{
    unsigned char chunk[CHUNK];
    int64_t width = mha__io_convert_bytes(header->type);
    for (int64_t done = 0; done < header->count; done += CHUNK / width) {
        int64_t left = header->count - done;
        int64_t now = left < CHUNK / width ? left : CHUNK / width;
        int64_t place = data_offset + done * width;
        MHA__IO_TRY(mha__io_source_read(source, place, chunk, now * width, err));
        int64_t infinite =
            mha__io_convert_floats(header->type, header->big_endian, chunk, now, data + done);
        if (infinite >= 0) {
            return mha__io_error_fail(err,
                                      MHA_ERROR_FILE_FORMAT,
                                      source->label,
                                      "number %" PRId64 " of the file lies beyond float32",
                                      done + infinite);
        }
    }
    return MHA_OK;
}

/* from has the first axis fastest, to the last one: to[i0,..,in] = from[i0 + n0 (i1 + n1 (..))]. */
static void turn(const struct mha__io_npy_header *header, const float *from, float *to)
{
    int64_t index[MHA__IO_NPY_RANK] = {0};
    int64_t stride[MHA__IO_NPY_RANK] = {1};
    int64_t place = 0;
    for (int32_t axis = 1; axis < header->rank; axis++) {
        stride[axis] = stride[axis - 1] * header->shape[axis - 1];
    }
    for (int64_t i = 0; i < header->count; i++) {
        to[i] = from[place];
        for (int32_t axis = header->rank - 1; axis >= 0; axis--) {
            place += stride[axis];
            if (++index[axis] < header->shape[axis]) {
                break;
            }
            place -= stride[axis] * header->shape[axis];
            index[axis] = 0;
        }
    }
}

static int32_t read_array(const struct mha__io_source *source, mha_io_npy *array, mha_error *err)
{
    struct mha__io_npy_header header;
    int64_t data_offset = 0;
    MHA__IO_TRY(read_header(source, &header, &data_offset, err));
    MHA__IO_TRY(check_size(source, &header, data_offset, err));

    array->rank = header.rank;
    array->count = header.count;
    memcpy(array->shape, header.shape, sizeof array->shape);
    array->data = mha__io_memory_array(header.count, sizeof(float));
    if (!array->data) {
        return mha__io_error_memory(err, source->label);
    }
    if (!header.fortran_order || header.rank < 2) {
        return read_numbers(source, &header, data_offset, array->data, err);
    }
    float *columns = mha__io_memory_array(header.count, sizeof(float));
    if (!columns) {
        return mha__io_error_memory(err, source->label);
    }
    int32_t status = read_numbers(source, &header, data_offset, columns, err);
    if (status == MHA_OK) {
        turn(&header, columns, array->data);
    }
    mha__io_memory_release(columns);
    return status;
}

static int32_t read_source(const struct mha__io_source *source, mha_io_npy **out, mha_error *err)
{
    mha_io_npy *array = mha__io_memory_allocate(sizeof *array);
    if (!array) {
        return mha__io_error_memory(err, source->label);
    }
    memset(array, 0, sizeof *array);
    int32_t status = read_array(source, array, err);
    if (status != MHA_OK) {
        mha_io_npy_destroy(array);
        return status;
    }
    *out = array;
    return mha__io_error_none(err);
}

int32_t mha_io_npy_read(const char *path, mha_io_npy **out, mha_error *err)
{
    if (!out) {
        return mha__io_error_null(err, "out");
    }
    *out = NULL;
    if (!path) {
        return mha__io_error_null(err, "path");
    }
    struct mha__io_source source;
    MHA__IO_TRY(mha__io_source_open(&source, path, err));
    int32_t status = read_source(&source, out, err);
    mha__io_source_close(&source);
    return status;
}

int32_t mha_io_npy_read_memory(const void *bytes, int64_t size, mha_io_npy **out, mha_error *err)
{
    if (!out) {
        return mha__io_error_null(err, "out");
    }
    *out = NULL;
    if (size < 0) {
        return mha__io_error_fail(err, MHA_ERROR_SHAPE, NULL, "size is %" PRId64, size);
    }
    if (!bytes && size > 0) {
        return mha__io_error_null(err, "bytes");
    }
    struct mha__io_source source;
    mha__io_source_memory(&source, bytes, size);
    return read_source(&source, out, err);
}

void mha_io_npy_destroy(mha_io_npy *array)
{
    if (array) {
        mha__io_memory_release(array->data);
        mha__io_memory_release(array);
    }
}

int32_t mha_io_npy_shape(const mha_io_npy *array, int64_t *shape, int32_t cap)
{
    if (!array) {
        return MHA_ERROR_NULL_ARGUMENT;
    }
    for (int32_t axis = 0; shape && axis < array->rank && axis < cap; axis++) {
        shape[axis] = array->shape[axis];
    }
    return array->rank;
}

int64_t mha_io_npy_count(const mha_io_npy *array)
{
    return array ? array->count : MHA_ERROR_NULL_ARGUMENT;
}

const float *mha_io_npy_data(const mha_io_npy *array)
{
    return array ? array->data : NULL;
}
