/* SPDX-License-Identifier: Apache-2.0 */
#include "io/io_error.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int32_t
mha__io_error_fail(mha_error *err, int32_t status, const char *label, const char *format, ...)
{
    if (!err) {
        return status;
    }
    char sentence[1024];
    int used = label ? snprintf(sentence, sizeof sentence, "%s: ", label) : 0;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence + used, sizeof sentence - (size_t)used, format, arguments);
    va_end(arguments);
    return mha_error_set(err, status, sentence);
}

int32_t mha__io_error_memory(mha_error *err, const char *label)
{
    return mha__io_error_fail(err, MHA_ERROR_OUT_OF_MEMORY, label, "not enough memory");
}

int32_t mha__io_error_null(mha_error *err, const char *what)
{
    return mha__io_error_fail(err, MHA_ERROR_NULL_ARGUMENT, NULL, "%s is NULL", what);
}

int32_t mha__io_error_none(mha_error *err)
{
    return mha_error_set(err, MHA_OK, "");
}

static int is_continuation(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80; /* inside a UTF-8 character */
}

/* text, or its beginning and end around "..." so that at most room bytes are stored, plus the NUL.
 */
static void abbreviate(char *to, size_t room, const char *text, size_t length)
{
    if (length <= room) {
        memcpy(to, text, length);
        to[length] = '\0';
        return;
    }
    size_t head = (room - 3) / 2;
    size_t tail = length - (room - 3 - head);
    while (head > 0 && is_continuation(text[head])) {
        head--;
    }
    while (tail < length && is_continuation(text[tail])) {
        tail++;
    }
    memcpy(to, text, head);
    memcpy(to + head, "...", 3);
    memcpy(to + head + 3, text + tail, length - tail);
    to[head + 3 + length - tail] = '\0';
}

void mha__io_error_label(char label[MHA__IO_LABEL], const char *path)
{
    const char *shown = path[0] ? path : "(empty path)";
    abbreviate(label, MHA__IO_LABEL - 1, shown, strlen(shown));
}

const char *mha__io_error_quote(char quote[MHA__IO_QUOTE], const char *text, int64_t length)
{
    abbreviate(quote + 1, MHA__IO_QUOTE - 3, text, (size_t)length);
    char *end = quote + 1;
    for (size_t i = 1; i < MHA__IO_QUOTE - 1 && quote[i] && length > 0; i++) {
        if ((unsigned char)quote[i] < 0x20 || quote[i] == 0x7f) {
            quote[i] = '?';
        }
        end = quote + i + 1;
    }
    quote[0] = '"';
    end[0] = '"';
    end[1] = '\0';
    return quote;
}

const char *mha__io_error_shape(char text[MHA__IO_SHAPE], const int64_t *shape, int32_t rank)
{
    size_t used = 1;
    memcpy(text, "[", 2);
    for (int32_t axis = 0; axis < rank; axis++) {
        if (used + 32 > MHA__IO_SHAPE) {
            memcpy(text + used, ", ...", 6);
            used += 5;
            break;
        }
        used += (size_t)snprintf(
            text + used, MHA__IO_SHAPE - used, axis ? ", %" PRId64 : "%" PRId64, shape[axis]);
    }
    memcpy(text + used, "]", 2);
    return text;
}
