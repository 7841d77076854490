/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_EXPECT_H
#define TESTS_EXPECT_H

/* cmocka and what the tests assert again and again. */
#include <mha/mha.h>

/* cmocka.h needs the others before it */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

/* The expression, which passes `err` along, succeeds and leaves code 0 and an empty sentence. */
#define SUCCEEDS(expression)                                                                       \
    do {                                                                                           \
        mha_error *err = mha_error_create();                                                       \
        expect_success((expression), err, __FILE__, __LINE__);                                     \
        mha_error_destroy(err);                                                                    \
    } while (0)

/*
 * The expression, which passes `err` along, is refused with this status and a sentence that
 * contains each of the words; and again, with the same status, when err is NULL.
 */
#define REFUSED(status, expression, ...)                                                           \
    do {                                                                                           \
        mha_error *err = mha_error_create();                                                       \
        const char *const in_sentence[] = {__VA_ARGS__, NULL};                                     \
        expect_refusal((expression), (status), err, in_sentence, __FILE__, __LINE__);              \
        mha_error_destroy(err);                                                                    \
        err = NULL;                                                                                \
        expect_status((expression), (status), __FILE__, __LINE__);                                 \
    } while (0)

void expect_success(int32_t status, const mha_error *err, const char *file, int line);
void expect_status(int32_t status, int32_t expected, const char *file, int line);
void expect_refusal(int32_t status,
                    int32_t expected,
                    const mha_error *err,
                    const char *const *words,
                    const char *file,
                    int line);

/* The sentence of err, in static memory until the next call. */
const char *sentence_of(const mha_error *err);

/* The same bits, NaN and the sign of zero included. */
int same_bits(const float *a, const float *b, int64_t count);
#define assert_same_bits(a, b, count) expect_same_bits((a), (b), (count), __FILE__, __LINE__)
void expect_same_bits(const float *a, const float *b, int64_t count, const char *file, int line);
#define assert_close(got, expected, bound)                                                         \
    expect_close((double)(got), (double)(expected), (double)(bound), __FILE__, __LINE__)
void expect_close(double got, double expected, double bound, const char *file, int line);

/* Every number of the array is this one, bit for bit (so it may be NaN). */
int all_are(const float *x, int64_t count, float value);

#endif
