/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA__IO_ERROR_H
#define MHA__IO_ERROR_H

/* Sentences about files: "label: what is wrong", the label being the path or "(memory)". */
#include <mha/error.h>

/* Long enough for usual paths whole; longer ones keep their beginning and end. */
#define MHA__IO_LABEL 256
/* A tensor name in a sentence, quotes and NUL included. */
#define MHA__IO_QUOTE 120
/* "[1, 2, 3]" in a sentence. */
#define MHA__IO_SHAPE 96

#define MHA__IO_TRY(expression)                                                                    \
    do {                                                                                           \
        int32_t status_ = (expression);                                                            \
        if (status_ != MHA_OK) {                                                                   \
            return status_;                                                                        \
        }                                                                                          \
    } while (0)

/* Stores "label: sentence" (label may be NULL) and returns status. */
#if defined(__GNUC__)
__attribute__((format(printf, 4, 5)))
#endif
int32_t
mha__io_error_fail(mha_error *err, int32_t status, const char *label, const char *format, ...);

int32_t mha__io_error_memory(mha_error *err, const char *label);
int32_t mha__io_error_null(mha_error *err, const char *what);
/* Success: code 0 and an empty sentence. */
int32_t mha__io_error_none(mha_error *err);

/* The path as sentences show it. */
void mha__io_error_label(char label[MHA__IO_LABEL], const char *path);
/* Text from a file, in double quotes, control characters as '?', the middle cut out when it is
 * long. */
const char *mha__io_error_quote(char quote[MHA__IO_QUOTE], const char *text, int64_t length);
const char *mha__io_error_shape(char text[MHA__IO_SHAPE], const int64_t *shape, int32_t rank);

#endif
