/* SPDX-License-Identifier: Apache-2.0 */
#include "io/io_memory.h"
#include "io/io_safetensors.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* A header nests three deep: file, tensor, shape. The JSON parser recurses, so deeper text is
 * refused before it sees it. */
#define NESTING_LIMIT 8
#define RANK_LIMIT    64

/* Every type of the format, with its size in bits; those that can become float32 say how. */
static const struct {
    const char *name;
    int64_t bits;
    enum mha__io_type type;
} element_types[] = {
    {"F32", 32, MHA__IO_F32},     {"F16", 16, MHA__IO_F16},     {"BF16", 16, MHA__IO_BF16},
    {"F64", 64, MHA__IO_NONE},    {"BOOL", 8, MHA__IO_NONE},    {"U8", 8, MHA__IO_NONE},
    {"I8", 8, MHA__IO_NONE},      {"U16", 16, MHA__IO_NONE},    {"I16", 16, MHA__IO_NONE},
    {"U32", 32, MHA__IO_NONE},    {"I32", 32, MHA__IO_NONE},    {"U64", 64, MHA__IO_NONE},
    {"I64", 64, MHA__IO_NONE},    {"F8_E5M2", 8, MHA__IO_NONE}, {"F8_E4M3", 8, MHA__IO_NONE},
    {"F8_E8M0", 8, MHA__IO_NONE}, {"F6_E2M3", 6, MHA__IO_NONE}, {"F6_E3M2", 6, MHA__IO_NONE},
    {"F4", 4, MHA__IO_NONE},      {"C64", 64, MHA__IO_NONE},
};

static int32_t refuse(const mha_io_safetensors *file, mha_error *err, const char *what)
{
    return mha__io_error_fail(err, MHA_ERROR_FILE_FORMAT, file->source.label, "%s", what);
}

static int32_t
refuse_tensor(const mha_io_safetensors *file, const char *name, mha_error *err, const char *what)
{
    char quote[MHA__IO_QUOTE];
    return mha__io_error_fail(err, MHA_ERROR_FILE_FORMAT, file->source.label, "tensor %s: %s",
                              mha__io_error_quote(quote, name, (int64_t)strlen(name)), what);
}

/* Brackets outside strings, counted before the parser recurses over them. */
static bool nests_deeper(const char *text, int64_t length, int limit)
{
    int depth = 0;
    bool in_string = false;
    for (int64_t i = 0; i < length; i++) {
        char c = text[i];
        if (in_string) {
            i += c == '\\'; /* whatever is escaped does not end the string */
            in_string = c != '"';
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{' || c == '[') {
            if (++depth > limit) {
                return true;
            }
        } else if (c == '}' || c == ']') {
            depth--;
        }
    }
    return false;
}

/*
 * Parses twice and compares. jansson's lexer does not notice a failed allocation: it drops a byte
 * of a name or a number, or calls it a syntax error. What differs between two readings of one text
 * is that.
 */
static int32_t parse_json(
    const mha_io_safetensors *file, const char *text, int64_t length, json_t **out, mha_error *err)
{
    const size_t flags = JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL;
    json_error_t reason;
    json_t *first = json_loadb(text, (size_t)length, flags, &reason);
    json_t *second = json_loadb(text, (size_t)length, flags, &reason);
    bool same = first && second ? json_equal(first, second) : !first && !second;
    json_decref(second);
    /* without a word about the reason, too, it was an allocation */
    if (!same ||
        (!first && (json_error_code(&reason) == json_error_out_of_memory || !reason.text[0]))) {
        json_decref(first);
        return mha__io_error_memory(err, file->source.label);
    }
    if (!first) {
        char quote[MHA__IO_QUOTE];
        return mha__io_error_fail(
            err, MHA_ERROR_FILE_FORMAT, file->source.label,
            "the header is not sound JSON: %s (at byte %d of it)",
            mha__io_error_quote(quote, reason.text, (int64_t)strlen(reason.text)), reason.position);
    }
    *out = first;
    return MHA_OK;
}

static int32_t check_metadata(const mha_io_safetensors *file, json_t *metadata, mha_error *err)
{
    const char *key;
    json_t *value;
    bool sound = json_is_object(metadata);
    json_object_foreach(metadata, key, value)
    {
        sound = sound && json_is_string(value);
    }
    return sound ? MHA_OK : refuse(file, err, "__metadata__ is not an object of strings");
}

/* The rank of an entry's shape; -1 when there is no shape. */
static int64_t shape_rank(const json_t *entry)
{
    const json_t *shape = json_object_get(entry, "shape");
    return json_is_array(shape) ? (int64_t)json_array_size(shape) : -1;
}

static int32_t read_type(const mha_io_safetensors *file,
                         const json_t *entry,
                         struct mha__io_tensor *tensor,
                         int64_t *bits,
                         mha_error *err)
{
    const json_t *type = json_object_get(entry, "dtype");
    if (!json_is_string(type)) {
        return refuse_tensor(file, tensor->name, err, "dtype is missing or not a string");
    }
    for (size_t i = 0; i < sizeof element_types / sizeof element_types[0]; i++) {
        /* The length counts too: what is read may have a NUL in it. */
        if (json_string_length(type) == strlen(element_types[i].name) &&
            strcmp(element_types[i].name, json_string_value(type)) == 0) {
            tensor->type_name = element_types[i].name;
            tensor->type = element_types[i].type;
            *bits = element_types[i].bits;
            return MHA_OK;
        }
    }
    return refuse_tensor(file, tensor->name, err, "unknown dtype");
}

static int32_t read_shape(const mha_io_safetensors *file,
                          const json_t *entry,
                          int64_t *shape,
                          struct mha__io_tensor *tensor,
                          mha_error *err)
{
    const json_t *sizes = json_object_get(entry, "shape");
    int64_t product = 1; /* of the sizes that are not 0 */
    bool empty = false;
    for (int32_t axis = 0; axis < tensor->rank; axis++) {
        const json_t *size = json_array_get(sizes, (size_t)axis);
        int64_t value = json_is_integer(size) ? (int64_t)json_integer_value(size) : -1;
        if (value < 0) {
            return refuse_tensor(file, tensor->name, err, "a size is not a whole number from 0 on");
        }
        shape[axis] = value;
        empty = empty || value == 0;
        if (value > 0) {
            if (product > INT64_MAX / value) {
                return refuse_tensor(file, tensor->name, err,
                                     "the product of its sizes passes 2^63");
            }
            product *= value;
        }
    }
    tensor->shape = shape;
    tensor->count = empty ? 0 : product;
    return MHA_OK;
}

/* data_offsets [begin, end), counted from the end of the header: must be what type and shape need.
 */
static int32_t read_offsets(const mha_io_safetensors *file,
                            const json_t *entry,
                            int64_t data_offset,
                            int64_t bits,
                            struct mha__io_tensor *tensor,
                            mha_error *err)
{
    const json_t *offsets = json_object_get(entry, "data_offsets");
    const json_t *first = json_array_get(offsets, 0);
    const json_t *second = json_array_get(offsets, 1);
    if (json_array_size(offsets) != 2 || !json_is_integer(first) || !json_is_integer(second)) {
        return refuse_tensor(file, tensor->name, err, "data_offsets are not two whole numbers");
    }
    int64_t begin = (int64_t)json_integer_value(first);
    int64_t end = (int64_t)json_integer_value(second);
    char quote[MHA__IO_QUOTE];
    mha__io_error_quote(quote, tensor->name, tensor->name_length);
    if (begin < 0 || begin > end || end > file->source.size - data_offset) {
        return mha__io_error_fail(err, MHA_ERROR_FILE_FORMAT, file->source.label,
                                  "tensor %s: data_offsets [%" PRId64 ", %" PRId64
                                  "] lie outside the %" PRId64 " bytes of data",
                                  quote, begin, end, file->source.size - data_offset);
    }
    if (tensor->count > INT64_MAX / bits || tensor->count * bits % 8 != 0 ||
        tensor->count * bits / 8 != end - begin) {
        return mha__io_error_fail(err, MHA_ERROR_FILE_FORMAT, file->source.label,
                                  "tensor %s: %" PRId64
                                  " numbers of type %s do not fill the %" PRId64
                                  " bytes of its data_offsets",
                                  quote, tensor->count, tensor->type_name, end - begin);
    }
    tensor->offset = data_offset + begin;
    tensor->bytes = end - begin;
    return MHA_OK;
}

static int by_place(const void *left, const void *right)
{
    const struct mha__io_tensor *a = left;
    const struct mha__io_tensor *b = right;
    if (a->offset != b->offset) {
        return a->offset < b->offset ? -1 : 1;
    }
    if (a->bytes != b->bytes) {
        return a->bytes < b->bytes ? -1 : 1;
    }
    return strcmp(a->name, b->name);
}

/* The format forbids holes: sorted by place, each tensor begins where the one before it ends. */
static int32_t check_cover(const mha_io_safetensors *file, int64_t data_offset, mha_error *err)
{
    int64_t end = data_offset;
    for (int64_t i = 0; i < file->count; i++) {
        const struct mha__io_tensor *tensor = &file->tensors[i];
        if (tensor->offset < end) {
            return refuse_tensor(file, tensor->name, err, "its data overlap another tensor's");
        }
        if (tensor->offset > end) {
            return refuse_tensor(file, tensor->name, err,
                                 "bytes before its data belong to no tensor");
        }
        end += tensor->bytes;
    }
    if (end != file->source.size) {
        return mha__io_error_fail(err, MHA_ERROR_FILE_FORMAT, file->source.label,
                                  "the last %" PRId64 " bytes belong to no tensor",
                                  file->source.size - end);
    }
    return MHA_OK;
}

static bool is_metadata(const char *name)
{
    return strcmp(name, "__metadata__") == 0;
}

/* Counts entries, bytes of names and sizes of shapes, checks what counting needs, and allocates. */
static int32_t allocate_table(mha_io_safetensors *file, json_t *root, mha_error *err)
{
    const char *name;
    json_t *entry;
    int64_t tensors = 0;
    int64_t name_bytes = 0;
    int64_t sizes = 0;
    json_object_foreach(root, name, entry)
    {
        if (is_metadata(name)) {
            MHA__IO_TRY(check_metadata(file, entry, err));
            continue;
        }
        int64_t rank = shape_rank(entry);
        if (rank < 0) {
            return refuse_tensor(file, name, err, "shape is missing or not an array");
        }
        if (rank > RANK_LIMIT) {
            return refuse_tensor(file, name, err, "it has more than 64 dimensions");
        }
        tensors++;
        name_bytes += (int64_t)strlen(name) + 1;
        sizes += rank;
    }
    file->tensors = mha__io_memory_array(tensors, sizeof *file->tensors);
    file->names = mha__io_memory_array(name_bytes, 1);
    file->shapes = mha__io_memory_array(sizes, sizeof *file->shapes);
    if (!file->tensors || !file->names || !file->shapes) {
        return mha__io_error_memory(err, file->source.label);
    }
    return MHA_OK;
}

static int32_t
fill_table(mha_io_safetensors *file, json_t *root, int64_t data_offset, mha_error *err)
{
    const char *name;
    json_t *entry;
    char *name_store = file->names;
    int64_t *shape_store = file->shapes;
    json_object_foreach(root, name, entry)
    {
        if (is_metadata(name)) {
            continue;
        }
        struct mha__io_tensor *tensor = &file->tensors[file->count];
        int64_t bits = 0;
        tensor->name = name_store;
        tensor->name_length = (int64_t)strlen(name);
        tensor->rank = (int32_t)shape_rank(entry);
        memcpy(name_store, name, (size_t)tensor->name_length + 1);
        MHA__IO_TRY(read_type(file, entry, tensor, &bits, err));
        MHA__IO_TRY(read_shape(file, entry, shape_store, tensor, err));
        MHA__IO_TRY(read_offsets(file, entry, data_offset, bits, tensor, err));
        name_store += tensor->name_length + 1;
        shape_store += tensor->rank;
        file->count++;
    }
    if (file->count > 1) {
        qsort(file->tensors, (size_t)file->count, sizeof *file->tensors, by_place);
    }
    return check_cover(file, data_offset, err);
}

int32_t mha__io_header_parse(
    const char *text, int64_t length, int64_t data_offset, mha_io_safetensors *file, mha_error *err)
{
    if (nests_deeper(text, length, NESTING_LIMIT)) {
        return refuse(file, err, "the header nests too deep for a safetensors header");
    }
    json_t *root = NULL;
    MHA__IO_TRY(parse_json(file, text, length, &root, err));
    int32_t status = allocate_table(file, root, err);
    if (status == MHA_OK) {
        status = fill_table(file, root, data_offset, err);
    }
    json_decref(root);
    return status;
}
