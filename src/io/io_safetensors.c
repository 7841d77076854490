/* SPDX-License-Identifier: Apache-2.0 */
#include "io/io_safetensors.h"

#include "io/io_memory.h"

#include <inttypes.h>
#include <string.h>

/* As the format's reference implementation has it. */
#define HEADER_LIMIT ((uint64_t)100000000)
/* Bytes converted at once; on the stack, so that reading needs no memory. A multiple of 8. */
#define CHUNK 8192

static int32_t refuse_length(const mha_io_safetensors *file, uint64_t length, mha_error *err)
{
    return mha__io_error_fail(err,
                              MHA_ERROR_FILE_FORMAT,
                              file->source.label,
                              "not safetensors: a header of %" PRIu64
                              " bytes cannot be in a file of %" PRId64,
                              length,
                              file->source.size);
}

/* Every length is checked against the size of the file and the limit before memory is asked for. */
static int32_t read_header(mha_io_safetensors *file, mha_error *err)
{
    unsigned char start[9];
    uint64_t length = 0;
    if (file->source.size < (int64_t)sizeof start) {
        return mha__io_error_fail(err,
                                  MHA_ERROR_FILE_FORMAT,
                                  file->source.label,
                                  "not safetensors: only %" PRId64 " bytes",
                                  file->source.size);
    }
    MHA__IO_TRY(mha__io_source_read(&file->source, 0, start, sizeof start, err));
    for (int i = 7; i >= 0; i--) {
        length = length << 8 | start[i];
    }
    if (length < 2 || length > (uint64_t)file->source.size - 8) {
        return refuse_length(file, length, err);
    }
    if (length > HEADER_LIMIT) {
        return mha__io_error_fail(err,
                                  MHA_ERROR_FILE_FORMAT,
                                  file->source.label,
                                  "a header of %" PRIu64 " bytes; at most %" PRIu64 " are read",
                                  length,
                                  HEADER_LIMIT);
    }
    if (start[8] != '{') {
        return mha__io_error_fail(err,
                                  MHA_ERROR_FILE_FORMAT,
                                  file->source.label,
                                  "not safetensors: the header does not begin with '{'");
    }
    char *text = mha__io_memory_allocate((size_t)length);
    if (!text) {
        return mha__io_error_memory(err, file->source.label);
    }
    int32_t status = mha__io_source_read(&file->source, 8, text, (int64_t)length, err);
    if (status == MHA_OK) {
        int64_t data_offset = 8 + (int64_t)length;
        status = mha__io_header_parse(text, (int64_t)length, data_offset, file, err);
    }
    mha__io_memory_release(text);
    return status;
}

static mha_io_safetensors *new_file(void)
{
    mha_io_safetensors *file = mha__io_memory_allocate(sizeof *file);
    if (file) {
        memset(file, 0, sizeof *file);
        file->source.fd = -1;
    }
    return file;
}

/* Hands file over once its header is sound, or closes it. */
static int32_t finish(mha_io_safetensors *file, mha_io_safetensors **out, mha_error *err)
{
    int32_t status = read_header(file, err);
    if (status != MHA_OK) {
        mha_io_safetensors_close(file);
        return status;
    }
    *out = file;
    return mha__io_error_none(err);
}

int32_t mha_io_safetensors_open(const char *path, mha_io_safetensors **out, mha_error *err)
{
    if (!out) {
        return mha__io_error_null(err, "out");
    }
    *out = NULL;
    if (!path) {
        return mha__io_error_null(err, "path");
    }
    mha_io_safetensors *file = new_file();
    if (!file) {
        return mha__io_error_memory(err, NULL);
    }
    int32_t status = mha__io_source_open(&file->source, path, err);
    if (status != MHA_OK) {
        mha_io_safetensors_close(file);
        return status;
    }
    return finish(file, out, err);
}

int32_t mha_io_safetensors_open_memory(const void *data,
                                       int64_t size,
                                       mha_io_safetensors **out,
                                       mha_error *err)
{
    if (!out) {
        return mha__io_error_null(err, "out");
    }
    *out = NULL;
    if (size < 0) {
        return mha__io_error_fail(err, MHA_ERROR_SHAPE, NULL, "size is %" PRId64, size);
    }
    if (!data && size > 0) {
        return mha__io_error_null(err, "data");
    }
    mha_io_safetensors *file = new_file();
    if (!file) {
        return mha__io_error_memory(err, NULL);
    }
    mha__io_source_memory(&file->source, data, size);
    return finish(file, out, err);
}

void mha_io_safetensors_close(mha_io_safetensors *file)
{
    if (file) {
        mha__io_source_close(&file->source);
        mha__io_memory_release(file->tensors);
        mha__io_memory_release(file->names);
        mha__io_memory_release(file->shapes);
        mha__io_memory_release(file);
    }
}

int64_t mha_io_safetensors_count(const mha_io_safetensors *file)
{
    return file ? file->count : MHA_ERROR_NULL_ARGUMENT;
}

const char *mha_io_safetensors_name(const mha_io_safetensors *file, int64_t index, int64_t *length)
{
    if (!file || index < 0 || index >= file->count) {
        return NULL;
    }
    if (length) {
        *length = file->tensors[index].name_length;
    }
    return file->tensors[index].name;
}

int32_t
mha_io_safetensors_shape(const mha_io_safetensors *file, int64_t index, int64_t *shape, int32_t cap)
{
    if (!file) {
        return MHA_ERROR_NULL_ARGUMENT;
    }
    if (index < 0 || index >= file->count) {
        return MHA_ERROR_SHAPE;
    }
    const struct mha__io_tensor *tensor = &file->tensors[index];
    for (int32_t axis = 0; shape && axis < tensor->rank && axis < cap; axis++) {
        shape[axis] = tensor->shape[axis];
    }
    return tensor->rank;
}

static int32_t convert(const mha_io_safetensors *file,
                       const struct mha__io_tensor *tensor,
                       float *data,
                       mha_error *err)
{
    if (tensor->type == MHA__IO_F32) {
        MHA__IO_TRY(mha__io_source_read(&file->source, tensor->offset, data, tensor->bytes, err));
        const unsigned char *bytes = (const unsigned char *)data;
        mha__io_convert_floats(MHA__IO_F32, false, bytes, tensor->count, data);
        return MHA_OK;
    }
    unsigned char chunk[CHUNK];
    int64_t at_once = CHUNK / mha__io_convert_bytes(tensor->type);
    for (int64_t done = 0; done < tensor->count; done += at_once) {
        int64_t left = tensor->count - done;
        int64_t now = left < at_once ? left : at_once;
        int64_t width = mha__io_convert_bytes(tensor->type);
        int64_t place = tensor->offset + done * width;
        MHA__IO_TRY(mha__io_source_read(&file->source, place, chunk, now * width, err));
        mha__io_convert_floats(tensor->type, false, chunk, now, data + done);
    }
    return MHA_OK;
}

int32_t mha_io_safetensors_read(
    const mha_io_safetensors *file, int64_t index, float *data, int64_t count, mha_error *err)
{
    if (!file) {
        return mha__io_error_null(err, "file");
    }
    const char *label = file->source.label;
    if (index < 0 || index >= file->count) {
        return mha__io_error_fail(err,
                                  MHA_ERROR_SHAPE,
                                  label,
                                  "no tensor %" PRId64 ": there are %" PRId64,
                                  index,
                                  file->count);
    }
    const struct mha__io_tensor *tensor = &file->tensors[index];
    char quote[MHA__IO_QUOTE];
    mha__io_error_quote(quote, tensor->name, tensor->name_length);
    if (count != tensor->count) {
        return mha__io_error_fail(err,
                                  MHA_ERROR_SHAPE,
                                  label,
                                  "tensor %s has %" PRId64 " numbers, not %" PRId64,
                                  quote,
                                  tensor->count,
                                  count);
    }
    if (!data && count > 0) {
        return mha__io_error_null(err, "data");
    }
    if (tensor->type == MHA__IO_NONE) {
        return mha__io_error_fail(err,
                                  MHA_ERROR_FILE_FORMAT,
                                  label,
                                  "tensor %s is of type %s; F32, F16 and BF16 are read",
                                  quote,
                                  tensor->type_name);
    }
    /* Before the first number is written: a failed call should leave data alone. */
    MHA__IO_TRY(mha__io_source_check(&file->source, err));
    MHA__IO_TRY(convert(file, tensor, data, err));
    return mha__io_error_none(err);
}
