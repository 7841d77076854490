/* SPDX-License-Identifier: Apache-2.0 */
#include "io/io_npy.h"

#include <inttypes.h>
#include <string.h>

/* The text that is left, and where to complain. */
struct reader {
    const char *at;
    const char *end;
    const char *label;
    mha_error *err;
};

static int32_t refuse(const struct reader *reader, const char *what)
{
    return mha__io_error_fail(
        reader->err, MHA_ERROR_FILE_FORMAT, reader->label, "the .npy header %s", what);
}

static void skip_spaces(struct reader *reader)
{
    while (reader->at < reader->end && (*reader->at == ' ' || *reader->at == '\t')) {
        reader->at++;
    }
}

/* Takes text, after spaces, if it comes next. */
static bool take(struct reader *reader, const char *text)
{
    size_t length = strlen(text);
    skip_spaces(reader);
    if ((size_t)(reader->end - reader->at) < length || memcmp(reader->at, text, length) != 0) {
        return false;
    }
    reader->at += length;
    return true;
}

/* A string in single or double quotes, without escapes. */
static bool take_string(struct reader *reader, const char **text, size_t *length)
{
    skip_spaces(reader);
    if (reader->at == reader->end || (*reader->at != '\'' && *reader->at != '"')) {
        return false;
    }
    char quote = *reader->at;
    const char *first = reader->at + 1;
    const char *last = memchr(first, quote, (size_t)(reader->end - first));
    if (!last || memchr(first, '\\', (size_t)(last - first))) {
        return false;
    }
    *text = first;
    *length = (size_t)(last - first);
    reader->at = last + 1;
    return true;
}

static int32_t refuse_type(struct reader *reader, const char *text, size_t length)
{
    char quote[MHA__IO_QUOTE];
    bool objects = memchr(text, 'O', length) != NULL;
    return mha__io_error_fail(reader->err,
                              MHA_ERROR_FILE_FORMAT,
                              reader->label,
                              "holds numbers of type %s%s; f2, f4 and f8 are read",
                              mha__io_error_quote(quote, text, (int64_t)length),
                              objects ? " (Python objects, which could run code)" : "");
}

/* descr: byte order, kind, bytes; a list would be a record type. */
static int32_t read_descr(struct reader *reader, struct mha__io_npy_header *header)
{
    const char *text;
    size_t length;
    if (!take_string(reader, &text, &length)) {
        return refuse(reader,
                      "describes records or no type: plain arrays of f2, f4 or f8 are read");
    }
    if (length != 3 || (text[0] != '<' && text[0] != '>') || text[1] != 'f') {
        return refuse_type(reader, text, length);
    }
    switch (text[2]) {
    case '2':
        header->type = MHA__IO_F16;
        break;
    case '4':
        header->type = MHA__IO_F32;
        break;
    case '8':
        header->type = MHA__IO_F64;
        break;
    default:
        return refuse_type(reader, text, length);
    }
    header->big_endian = text[0] == '>';
    return MHA_OK;
}

/* A size: digits, and an L after it where Python 2 wrote it. */
static int32_t read_size(struct reader *reader, int64_t *size)
{
    int64_t value = 0;
    skip_spaces(reader);
    const char *first = reader->at;
    for (; reader->at < reader->end && *reader->at >= '0' && *reader->at <= '9'; reader->at++) {
        int64_t digit = *reader->at - '0';
        if (value > (INT64_MAX - digit) / 10) {
            return refuse(reader, "has a size beyond 2^63");
        }
        value = 10 * value + digit;
    }
    if (reader->at == first) {
        return refuse(reader, "has a shape that is not a tuple of sizes from 0 on");
    }
    take(reader, "L");
    *size = value;
    return MHA_OK;
}

/* (), (3,), (3, 4), (3, 4,) */
static int32_t read_shape(struct reader *reader, struct mha__io_npy_header *header)
{
    int64_t product = 1; /* of the sizes that are not 0 */
    bool empty = false;
    bool comma = true;
    if (!take(reader, "(")) {
        return refuse(reader, "has a shape that is not a tuple");
    }
    while (!take(reader, ")")) {
        int64_t size = 0;
        if (!comma) {
            return refuse(reader, "has a shape without its commas");
        }
        if (header->rank == MHA__IO_NPY_RANK) {
            return refuse(reader, "has more than 32 dimensions");
        }
        MHA__IO_TRY(read_size(reader, &size));
        if (size > 0 && product > INT64_MAX / size) {
            return refuse(reader, "has sizes whose product passes 2^63");
        }
        empty = empty || size == 0;
        product *= size > 0 ? size : 1;
        header->shape[header->rank++] = size;
        comma = take(reader, ",");
    }
    if (header->rank == 1 && !comma) {
        return refuse(reader, "has a number where its shape should be a tuple");
    }
    header->count = empty ? 0 : product;
    return MHA_OK;
}

static int32_t read_order(struct reader *reader, struct mha__io_npy_header *header)
{
    header->fortran_order = take(reader, "True");
    if (!header->fortran_order && !take(reader, "False")) {
        return refuse(reader, "has a fortran_order that is neither True nor False");
    }
    return MHA_OK;
}

int32_t mha__io_npy_header_parse(const char *text,
                                 int64_t length,
                                 const char *label,
                                 struct mha__io_npy_header *header,
                                 mha_error *err)
{
    static const struct {
        const char *name;
        int32_t (*read)(struct reader *reader, struct mha__io_npy_header *header);
    } keys[] = {{"descr", read_descr}, {"fortran_order", read_order}, {"shape", read_shape}};
    enum { KEYS = sizeof keys / sizeof keys[0] };
    bool seen[KEYS] = {false};
    struct reader reader = {text, text + length, label, err};
    memset(header, 0, sizeof *header);

    if (length < 1 || text[length - 1] != '\n') {
        return refuse(&reader, "does not end in a newline");
    }
    reader.end--;
    if (!take(&reader, "{")) {
        return refuse(&reader, "is not a dict");
    }
    bool comma = true;
    while (!take(&reader, "}")) {
        const char *name;
        size_t name_length;
        if (!comma || !take_string(&reader, &name, &name_length) || !take(&reader, ":")) {
            return refuse(&reader, "is not a dict of names and values");
        }
        size_t key = 0;
        while (key < KEYS && (strlen(keys[key].name) != name_length ||
                              memcmp(keys[key].name, name, name_length) != 0)) {
            key++;
        }
        if (key == KEYS || seen[key]) {
            return refuse(&reader, "has an unknown or a repeated key");
        }
        seen[key] = true;
        MHA__IO_TRY(keys[key].read(&reader, header));
        comma = take(&reader, ",");
    }
    for (size_t key = 0; key < KEYS; key++) {
        if (!seen[key]) {
            return mha__io_error_fail(
                err, MHA_ERROR_FILE_FORMAT, label, "the .npy header lacks '%s'", keys[key].name);
        }
    }
    skip_spaces(&reader);
    return reader.at == reader.end ? MHA_OK : refuse(&reader, "goes on after its dict");
}
