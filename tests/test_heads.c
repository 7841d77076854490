/* SPDX-License-Identifier: Apache-2.0 */
#include "mha_pattern.h"
#include "support/expect.h"

#include <math.h>
#include <string.h>

enum { T = 10 };

static const char *const names[T] = {
    "[CLS]", "the", "keys", "are", "not", "on", "the", "table", ".", "[SEP]",
};

/* Statistics are sums of float32 weights that are not exact in binary. */
static const double slack = 1e-6;

static void near_to(double got, double expected)
{
    if (!(fabs(got - expected) <= slack * fmax(1.0, fabs(expected)))) {
        fail_msg("%.9g, expected %.9g", got, expected);
    }
}

/* Every query looks at one key, named by `key`. */
static void one_key_each(float *weights, int64_t (*key)(int64_t i))
{
    memset(weights, 0, T * T * sizeof *weights);
    for (int64_t i = 0; i < T; i++) {
        weights[i * T + key(i)] = 1.0F;
    }
}

static int64_t previous_key(int64_t i)
{
    return i > 0 ? i - 1 : 0;
}

static int64_t next_key(int64_t i)
{
    return i < T - 1 ? i + 1 : i;
}

static int64_t own_key(int64_t i)
{
    return i;
}

static int64_t first_key(int64_t i)
{
    (void)i;
    return 0;
}

static int64_t last_key(int64_t i)
{
    (void)i;
    return T - 1;
}

static int64_t fourth_key(int64_t i)
{
    (void)i;
    return 4;
}

static void heads_uniform_weights_have_the_entropy_of_all_tokens(void **state)
{
    (void)state;
    float weights[T * T];
    for (int i = 0; i < T * T; i++) {
        weights[i] = 0.1F;
    }
    struct mha__heads_stats s;
    mha__heads_measure(weights, T, &s);
    near_to(s.entropy, log(10.0));
    near_to(s.effective, 10.0);
    near_to(s.distance, 3.3); /* (T^2 - 1) / (3 T) */
    near_to(s.self, 0.1);
    near_to(s.previous, 0.1);
    near_to(s.next, 0.1);
    near_to(s.first, 0.1);
    near_to(s.last, 0.1);
    near_to(s.near, 0.44); /* 3 + 4 + 6 * 5 + 4 + 3 of 100 pairs */
    assert_int_equal(mha__pattern_find(&s, T), MHA__PATTERN_BROAD);
}

static void heads_single_keys_are_measured_exactly(void **state)
{
    (void)state;
    float weights[T * T];
    struct mha__heads_stats s;
    one_key_each(weights, previous_key);
    mha__heads_measure(weights, T, &s);
    near_to(s.entropy, 0.0);
    near_to(s.effective, 1.0);
    near_to(s.distance, 0.9);
    near_to(s.previous, 1.0); /* the mean leaves out the first row, which has no previous token */
    near_to(s.first, 0.2);
    near_to(s.self, 0.1);
    near_to(s.next, 0.0);
    near_to(s.near, 1.0);

    one_key_each(weights, next_key);
    mha__heads_measure(weights, T, &s);
    near_to(s.next, 1.0);
    near_to(s.last, 0.2);
}

static void heads_two_rows_are_averaged_and_weights_of_zero_add_no_entropy(void **state)
{
    (void)state;
    const float weights[4] = {0.25F, 0.75F, 1.0F, 0.0F};
    struct mha__heads_stats s;
    mha__heads_measure(weights, 2, &s);
    near_to(s.entropy, 0.5 * (0.25 * log(4.0) + 0.75 * log(4.0 / 3.0)));
    near_to(s.distance, 0.875);
    near_to(s.self, 0.125);
    near_to(s.previous, 1.0);
    near_to(s.next, 0.75);
    near_to(s.first, 0.625);
    near_to(s.last, 0.375);
    assert_int_equal(s.token_key, -1);
    assert_int_equal(s.link_query, -1);
}

static void heads_link_is_the_strongest_pair_of_distant_words(void **state)
{
    (void)state;
    float weights[T * T];
    one_key_each(weights, own_key);
    weights[1 * T + 0] = 0.9F; /* the first token is no word */
    weights[3 * T + 2] = 0.8F; /* next to each other */
    weights[5 * T + 2] = 0.7F; /* this one */
    weights[7 * T + 1] = 0.6F;
    weights[8 * T + T - 1] = 0.95F; /* nor is the last */
    struct mha__heads_stats s;
    mha__heads_measure(weights, T, &s);
    assert_int_equal(s.link_query, 5);
    assert_int_equal(s.link_key, 2);
    near_to(s.link, 0.7F);
}

static void pattern_names_the_place_that_dominates(void **state)
{
    (void)state;
    static const struct {
        int64_t (*key)(int64_t i);
        enum mha__pattern pattern;
        const char *words;
    } cases[] = {
        {previous_key, MHA__PATTERN_PREVIOUS, "almost only on the previous token (100 %)"},
        {next_key, MHA__PATTERN_NEXT, "almost only on the next token (100 %)"},
        {own_key, MHA__PATTERN_SELF, "almost only on the token itself (100 %)"},
        {first_key, MHA__PATTERN_FIRST, "almost only on the first token [CLS] (100 %)"},
        {last_key, MHA__PATTERN_LAST, "almost only on the last token [SEP] (100 %)"},
        {fourth_key, MHA__PATTERN_TOKEN, "almost only on \"not\" (100 %)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        float weights[T * T];
        char words[512];
        struct mha__heads_stats s;
        one_key_each(weights, cases[i].key);
        mha__heads_measure(weights, T, &s);
        assert_int_equal(mha__pattern_find(&s, T), cases[i].pattern);
        mha__pattern_describe(&s, T, names, words, sizeof words);
        assert_string_equal(words, cases[i].words);
    }
}

static void pattern_names_a_second_place_beside_the_first(void **state)
{
    (void)state;
    float weights[T * T];
    memset(weights, 0, sizeof weights);
    for (int i = 0; i < T; i++) {
        weights[i * T] += 0.6F;
        weights[i * T + 4] += 0.3F;
        weights[i * T + 7] += 0.1F;
    }
    char words[512];
    struct mha__heads_stats s;
    mha__heads_measure(weights, T, &s);
    mha__pattern_describe(&s, T, names, words, sizeof words);
    assert_string_equal(words, "mostly on the first token [CLS] (60 %), also on \"not\" (30 %)");
}

static void pattern_cuts_long_names_at_a_code_point(void **state)
{
    (void)state;
    /* 39 bytes of one, then two-byte letters: a cut at 40 would split the first of them. */
    const char *const long_names[3] = {
        "a", "123456789012345678901234567890123456789\xc3\xa9\xc3\xa9", "c"};
    const float weights[9] = {0, 1, 0, 0, 1, 0, 0, 1, 0};
    char words[512];
    struct mha__heads_stats s;
    mha__heads_measure(weights, 3, &s);
    mha__pattern_describe(&s, 3, long_names, words, sizeof words);
    assert_null(strchr(words, '\xc3'));
    assert_non_null(strstr(words, "123456789012345678901234567890123456789"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads_uniform_weights_have_the_entropy_of_all_tokens),
        cmocka_unit_test(heads_single_keys_are_measured_exactly),
        cmocka_unit_test(heads_two_rows_are_averaged_and_weights_of_zero_add_no_entropy),
        cmocka_unit_test(heads_link_is_the_strongest_pair_of_distant_words),
        cmocka_unit_test(pattern_names_the_place_that_dominates),
        cmocka_unit_test(pattern_names_a_second_place_beside_the_first),
        cmocka_unit_test(pattern_cuts_long_names_at_a_code_point),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
