/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_BRUTAL_H
#define TESTS_BRUTAL_H

/*
 * Fails every allocation of an expression once: the first, the second, ... until none is left to
 * fail. Each time the status is out of memory and no block more is alive than before. The
 * expression runs once more at the end and succeeds; `after` (a statement, may be empty) then
 * follows, and also follows each failure, to show that the objects still work or to reset them.
 */
#include "expect.h"

#include <platform/memory.h>

enum { BRUTAL_LIMIT = 2000 };

#define BRUTAL(expression, after_failure)                                                          \
    do {                                                                                           \
        int64_t nth = 1;                                                                           \
        for (;; ++nth) {                                                                           \
            int64_t blocks = mha__memory_live();                                                   \
            int64_t made = mha__memory_allocations();                                              \
            mha__memory_fail_at(nth);                                                              \
            int32_t status = (expression);                                                         \
            mha__memory_fail_at(0);                                                                \
            made = mha__memory_allocations() - made;                                               \
            if (made < nth) {                                                                      \
                assert_int_equal(status, MHA_OK);                                                  \
                break;                                                                             \
            }                                                                                      \
            assert_int_equal(status, MHA_ERROR_OUT_OF_MEMORY);                                     \
            assert_int_equal(mha__memory_live(), blocks);                                          \
            assert_true(nth < BRUTAL_LIMIT);                                                       \
            after_failure;                                                                         \
        }                                                                                          \
        brutal_failures = nth - 1;                                                                 \
    } while (0)

/* How many allocations the last BRUTAL failed: a test asserts that there was at least one. */
static int64_t brutal_failures;

#endif
