/* SPDX-License-Identifier: Apache-2.0 */
#include "expect.h"

#include <math.h>
#include <string.h>

const char *sentence_of(const mha_error *err)
{
    static char sentence[512];
    mha_error_message(err, sentence, sizeof sentence);
    return sentence;
}

void expect_success(int32_t status, const mha_error *err, const char *file, int line)
{
    if (status != MHA_OK) {
        print_error("refused: %s: \"%s\"\n", mha_status_string(status), sentence_of(err));
    }
    _assert_int_equal((LargestIntegralType)status, MHA_OK, file, line);
    _assert_int_equal((LargestIntegralType)mha_error_code(err), MHA_OK, file, line);
    _assert_string_equal(sentence_of(err), "", file, line);
}

void expect_status(int32_t status, int32_t expected, const char *file, int line)
{
    if (status != expected) {
        print_error("status %d: %s\n", (int)status, mha_status_string(status));
    }
    _assert_int_equal((LargestIntegralType)(int64_t)status, (LargestIntegralType)(int64_t)expected,
                      file, line);
}

void expect_refusal(int32_t status,
                    int32_t expected,
                    const mha_error *err,
                    const char *const *words,
                    const char *file,
                    int line)
{
    const char *sentence = sentence_of(err);
    if (status != expected) {
        print_error("the sentence: \"%s\"\n", sentence);
    }
    expect_status(status, expected, file, line);
    expect_status(mha_error_code(err), expected, file, line);
    _assert_true(strlen(sentence) > 0, "a sentence", file, line);
    for (int i = 0; words[i]; ++i) {
        if (!strstr(sentence, words[i])) {
            print_error("no \"%s\" in \"%s\"\n", words[i], sentence);
            _fail(file, line);
        }
    }
}

int same_bits(const float *a, const float *b, int64_t count)
{
    return count == 0 || memcmp(a, b, (size_t)count * sizeof *a) == 0;
}

void expect_same_bits(const float *a, const float *b, int64_t count, const char *file, int line)
{
    for (int64_t i = 0; i < count; ++i) {
        if (!same_bits(a + i, b + i, 1)) {
            print_error("number %lld: %.9g and %.9g\n", (long long)i, (double)a[i], (double)b[i]);
            _fail(file, line);
        }
    }
}

void expect_close(double got, double expected, double bound, const char *file, int line)
{
    if (!(fabs(got - expected) <= bound)) {
        print_error("%.9g, expected %.9g within %.3g\n", got, expected, bound);
        _fail(file, line);
    }
}

int all_are(const float *x, int64_t count, float value)
{
    for (int64_t i = 0; i < count; ++i) {
        if (!same_bits(x + i, &value, 1)) {
            return 0;
        }
    }
    return 1;
}
