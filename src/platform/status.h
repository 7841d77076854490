/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA__STATUS_H
#define MHA__STATUS_H

/*
 * How a failure travels inside the library: a status as return value, a sentence in the caller's
 * mha_error (which may be NULL). The two macros may return; they never free. A function that owns
 * something uses `goto done` instead.
 */
#include <mha/error.h>

int32_t mha__error_format(mha_error *err, int32_t status, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 3, 4)))
#endif
    ;

/* Code 0, empty sentence. */
int32_t mha__error_clear(mha_error *err);

#define MHA_CHECK(err, condition, status, ...)                                                     \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            return mha__error_format((err), (status), __VA_ARGS__);                                \
        }                                                                                          \
    } while (0)

#define MHA_TRY(expression)                                                                        \
    do {                                                                                           \
        int32_t status_of_try = (expression);                                                      \
        if (status_of_try != MHA_OK) {                                                             \
            return status_of_try;                                                                  \
        }                                                                                          \
    } while (0)

#endif
