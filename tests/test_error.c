/* SPDX-License-Identifier: Apache-2.0 */
#include "support/expect.h"

#include <platform/memory.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static const int32_t EVERY_STATUS[] = {
    MHA_OK,
    MHA_ERROR_NULL_ARGUMENT,
    MHA_ERROR_UNKNOWN_ID,
    MHA_ERROR_BAD_HANDLE,
    MHA_ERROR_SHAPE,
    MHA_ERROR_HEAD_COUNT,
    MHA_ERROR_OVERLAP,
    MHA_ERROR_TOO_LARGE,
    MHA_ERROR_VALUE,
    MHA_ERROR_ALIGNMENT,
    MHA_ERROR_NOT_SET,
    MHA_ERROR_OUT_OF_MEMORY,
    MHA_ERROR_BLAS,
    MHA_ERROR_EXECUTOR,
    MHA_ERROR_FILE_ACCESS,
    MHA_ERROR_FILE_FORMAT,
    MHA_ERROR_FILE_TENSOR,
};
enum { STATUSES = sizeof EVERY_STATUS / sizeof *EVERY_STATUS };

static void error_fresh_has_code_0_and_no_sentence(void **state)
{
    (void)state;
    mha_error *err = mha_error_create();
    assert_non_null(err);
    assert_int_equal(mha_error_code(err), MHA_OK);
    assert_int_equal(mha_error_message(err, NULL, 0), 0);
    char buffer[4] = "abc";
    assert_int_equal(mha_error_message(err, buffer, 4), 0);
    assert_string_equal(buffer, "");
    mha_error_destroy(err);
    mha_error_destroy(NULL);
}

static void error_set_stores_status_and_a_copy_of_the_sentence(void **state)
{
    (void)state;
    mha_error *err = mha_error_create();
    char sentence[] = "key has 3 features, the layer expects 4";
    assert_int_equal(mha_error_set(err, MHA_ERROR_SHAPE, sentence), MHA_ERROR_SHAPE);
    memset(sentence, 'x', sizeof sentence - 1);
    assert_int_equal(mha_error_code(err), MHA_ERROR_SHAPE);
    assert_string_equal(sentence_of(err), "key has 3 features, the layer expects 4");
    /* a NULL sentence: the static text of the status */
    assert_int_equal(mha_error_set(err, MHA_ERROR_VALUE, NULL), MHA_ERROR_VALUE);
    assert_string_equal(sentence_of(err), mha_status_string(MHA_ERROR_VALUE));
    assert_int_equal(mha_error_set(NULL, MHA_ERROR_VALUE, "unheard"), MHA_ERROR_VALUE);
    mha_error_destroy(err);
}

static void error_set_cuts_a_long_sentence_to_511_bytes(void **state)
{
    (void)state;
    mha_error *err = mha_error_create();
    char text[800];
    memset(text, 'm', sizeof text);
    text[799] = '\0';
    mha_error_set(err, MHA_ERROR_VALUE, text);
    assert_int_equal(mha_error_message(err, NULL, 0), 511);
    char copy[600];
    memset(copy, '#', sizeof copy);
    assert_int_equal(mha_error_message(err, copy, sizeof copy), 511);
    assert_int_equal(strlen(copy), 511);
    mha_error_destroy(err);
}

static void error_message_into_a_short_buffer_is_cut_and_terminated(void **state)
{
    (void)state;
    mha_error *err = mha_error_create();
    mha_error_set(err, MHA_ERROR_VALUE, "abcdef");
    char buffer[8] = "#######";
    assert_int_equal(mha_error_message(err, buffer, 4), 6);
    assert_string_equal(buffer, "abc");
    assert_int_equal(buffer[4], '#');
    assert_int_equal(mha_error_message(err, buffer, 1), 6);
    assert_string_equal(buffer, "");
    buffer[0] = '#';
    assert_int_equal(mha_error_message(err, buffer, 0), 6);
    assert_int_equal(buffer[0], '#');
    assert_int_equal(mha_error_message(err, buffer, 7), 6);
    assert_string_equal(buffer, "abcdef");
    mha_error_destroy(err);
}

static void error_null_has_an_empty_sentence_and_its_own_code(void **state)
{
    (void)state;
    char buffer[4] = "abc";
    assert_int_equal(mha_error_code(NULL), MHA_ERROR_NULL_ARGUMENT);
    assert_int_equal(mha_error_message(NULL, buffer, 4), 0);
    assert_string_equal(buffer, "");
    assert_int_equal(mha_error_message(NULL, NULL, 0), 0);
}

static void error_is_overwritten_by_each_call_that_gets_it_and_cleared_by_a_success(void **state)
{
    (void)state;
    mha_error *err = mha_error_create();
    mha_config *cfg = NULL;
    assert_int_equal(mha_config_create(0, 1, &cfg, err), MHA_ERROR_SHAPE);
    assert_int_equal(mha_error_code(err), MHA_ERROR_SHAPE);
    assert_int_equal(mha_config_create(4, -9, &cfg, err), MHA_ERROR_HEAD_COUNT);
    assert_non_null(strstr(sentence_of(err), "-9"));
    assert_int_equal(mha_config_create(4, 2, &cfg, err), MHA_OK);
    assert_int_equal(mha_error_code(err), MHA_OK);
    assert_string_equal(sentence_of(err), "");
    mha_config_destroy(cfg);
    mha_error_destroy(err);
}

static void error_outlives_the_object_it_speaks_of(void **state)
{
    (void)state;
    mha_error *err = mha_error_create();
    mha_config *cfg = NULL;
    assert_int_equal(mha_config_create(6, 6, &cfg, NULL), MHA_OK);
    assert_int_equal(mha_config_set_kv_heads(cfg, 4, err), MHA_ERROR_HEAD_COUNT);
    mha_config_destroy(cfg);
    assert_int_equal(mha_error_code(err), MHA_ERROR_HEAD_COUNT);
    assert_non_null(strstr(sentence_of(err), "4"));
    mha_error_destroy(err);
}

/* ---- eight threads fail at once, each reads its own sentence ---- */

enum { THREADS = 8, ROUNDS = 500 };

static void *fail_again_and_again(void *argument)
{
    int64_t number = *(const int64_t *)argument;
    char expected[24];
    snprintf(expected, sizeof expected, "%lld", (long long)number);
    mha_error *err = mha_error_create();
    mha_config *cfg = NULL;
    intptr_t wrong = err == NULL;
    for (int round = 0; round < ROUNDS; ++round) {
        char sentence[512];
        wrong |= mha_config_create(number, 1, &cfg, err) != MHA_ERROR_SHAPE;
        wrong |= mha_error_message(err, sentence, sizeof sentence) < 1;
        wrong |= strstr(sentence, expected) == NULL;
    }
    mha_error_destroy(err);
    return (void *)wrong; /* NULL = right; cmocka asserts on the main thread only */
}

static void error_of_each_thread_keeps_its_own_sentence(void **state)
{
    (void)state;
    pthread_t thread[THREADS];
    int64_t number[THREADS];
    for (int t = 0; t < THREADS; ++t) {
        number[t] = -1001 - t * 1111;
        assert_int_equal(pthread_create(&thread[t], NULL, fail_again_and_again, &number[t]), 0);
    }
    for (int t = 0; t < THREADS; ++t) {
        void *wrong = NULL;
        assert_int_equal(pthread_join(thread[t], &wrong), 0);
        assert_null(wrong);
    }
}

/* ---- the codes ---- */

static void status_codes_keep_their_numbers(void **state)
{
    (void)state;
    static const int32_t pinned[STATUSES] = {0,   -10, -11, -12, -20, -21, -22, -23, -24,
                                             -25, -32, -40, -41, -42, -50, -51, -52};
    for (int i = 0; i < STATUSES; ++i) {
        assert_int_equal(EVERY_STATUS[i], pinned[i]);
    }
}

static void status_string_is_different_for_each_status_and_never_null(void **state)
{
    (void)state;
    for (int i = 0; i < STATUSES; ++i) {
        const char *text = mha_status_string(EVERY_STATUS[i]);
        assert_non_null(text);
        assert_non_null(strstr(text, i == 0 ? "MHA_OK" : "MHA_ERROR_"));
        for (int j = 0; j < i; ++j) {
            assert_string_not_equal(text, mha_status_string(EVERY_STATUS[j]));
        }
    }
    const int32_t unknown[] = {1, -1, -13, -53, INT32_MAX, INT32_MIN};
    for (int i = 0; i < 6; ++i) {
        assert_non_null(mha_status_string(unknown[i]));
        assert_true(strlen(mha_status_string(unknown[i])) > 0);
    }
}

/* ---- brutal ---- */

static void error_create_without_memory_returns_null(void **state)
{
    (void)state;
    int64_t blocks = mha__memory_live();
    mha__memory_fail_at(1);
    assert_null(mha_error_create());
    mha__memory_fail_at(0);
    assert_int_equal(mha__memory_live(), blocks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(error_fresh_has_code_0_and_no_sentence),
        cmocka_unit_test(error_set_stores_status_and_a_copy_of_the_sentence),
        cmocka_unit_test(error_set_cuts_a_long_sentence_to_511_bytes),
        cmocka_unit_test(error_message_into_a_short_buffer_is_cut_and_terminated),
        cmocka_unit_test(error_null_has_an_empty_sentence_and_its_own_code),
        cmocka_unit_test(error_is_overwritten_by_each_call_that_gets_it_and_cleared_by_a_success),
        cmocka_unit_test(error_outlives_the_object_it_speaks_of),
        cmocka_unit_test(error_of_each_thread_keeps_its_own_sentence),
        cmocka_unit_test(status_codes_keep_their_numbers),
        cmocka_unit_test(status_string_is_different_for_each_status_and_never_null),
        cmocka_unit_test(error_create_without_memory_returns_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
