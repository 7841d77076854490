/* SPDX-License-Identifier: Apache-2.0 */
#include "tool_run.h"

#include <mha/io.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const sentences[] = {"animal", "keys", "sister", "senators"};

struct demo {
    char weights[512], prefix[64], input[512], tokens[512], output[512], maps[512];
};

static struct demo demo_of(const char *sentence, int layer)
{
    struct demo d;
    snprintf(d.weights, sizeof d.weights, MHA_DATA_PATH "/minilm_layer%d.safetensors", layer);
    snprintf(d.prefix, sizeof d.prefix, "encoder.layer.%d.attention.", layer);
    snprintf(d.input, sizeof d.input, MHA_DATA_PATH "/%s_layer%d_input.npy", sentence, layer);
    snprintf(d.tokens, sizeof d.tokens, MHA_DATA_PATH "/%s_tokens.txt", sentence);
    snprintf(d.output, sizeof d.output, MHA_DATA_PATH "/%s_layer%d_output.npy", sentence, layer);
    snprintf(d.maps, sizeof d.maps, MHA_DATA_PATH "/%s_layer%d_weights.npy", sentence, layer);
    return d;
}

/* `mha inspect` over the demo data, with up to four words more. */
static int inspect(const struct demo *d, const char *a, const char *b, const char *c, const char *e)
{
    return tool_run("inspect", "--weights", d->weights, "--scheme", "bert", "--prefix", d->prefix,
                    "--heads", "12", "--input", d->input, "--tokens", d->tokens, a, b, c, e, NULL);
}

static double number_at(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_number(value)) {
        fail_msg("%s is no number", key);
    }
    return json_number_value(value);
}

/* 1e-5 of the largest output feature, about 10: float32 against float64 over 384 terms. */
static void inspect_agrees_with_the_independent_answer_on_both_layers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof sentences / sizeof sentences[0]; i++) {
        for (int layer = 0; layer <= 5; layer += 5) {
            const struct demo d = demo_of(sentences[i], layer);
            const int status = inspect(&d, "--expect", d.output, "--json", NULL);
            assert_string_equal(tool_run_stderr(), "");
            json_t *report = tool_run_json();
            const json_t *expect = json_object_get(report, "expect");
            const double error = number_at(expect, "largest_error");
            print_message("%s, layer %d: largest error %.2e\n", sentences[i], layer, error);
            assert_true(json_is_true(json_object_get(expect, "matched")));
            assert_true(error > 0.0 && error <= 1e-5);
            assert_int_equal(status, 0);
            json_decref(report);
        }
    }
}

/* The numbers of a head from the stored weights, in the plainest way. */
static void expect_head(const json_t *head, const float *p, int64_t tokens)
{
    double entropy = 0.0;
    double distance = 0.0;
    double diagonal[3] = {0.0, 0.0, 0.0}; /* previous, self, next */
    double ends[2] = {0.0, 0.0};
    for (int64_t i = 0; i < tokens; i++) {
        for (int64_t j = 0; j < tokens; j++) {
            const double w = p[i * tokens + j];
            entropy -= w > 0.0 ? w * log(w) : 0.0;
            distance += w * fabs((double)(i - j));
            if (j - i >= -1 && j - i <= 1) {
                diagonal[j - i + 1] += w;
            }
            ends[0] += j == 0 ? w : 0.0;
            ends[1] += j == tokens - 1 ? w : 0.0;
        }
    }
    const double rows = (double)tokens;
    const struct {
        const char *key;
        double value;
    } wanted[] = {
        {"entropy_nats", entropy / rows},   {"effective_tokens", exp(entropy / rows)},
        {"mean_distance", distance / rows}, {"previous", diagonal[0] / (rows - 1.0)},
        {"self", diagonal[1] / rows},       {"next", diagonal[2] / (rows - 1.0)},
        {"first", ends[0] / rows},          {"last", ends[1] / rows},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        const double got = number_at(head, wanted[i].key);
        if (!(fabs(got - wanted[i].value) <= 1e-4)) {
            fail_msg("%s: %g, expected %g", wanted[i].key, got, wanted[i].value);
        }
    }
}

static void inspect_json_numbers_are_those_of_the_stored_weights(void **state)
{
    (void)state;
    const struct demo d = demo_of("keys", 5);
    mha_io_npy *maps = NULL;
    int64_t shape[3];
    assert_int_equal(mha_io_npy_read(d.maps, &maps, NULL), MHA_OK);
    assert_int_equal(mha_io_npy_shape(maps, shape, 3), 3);
    assert_int_equal(inspect(&d, "--json", NULL, NULL, NULL), 0);
    json_t *report = tool_run_json();
    const json_t *heads = json_object_get(report, "heads");
    assert_int_equal(json_array_size(heads), 12);
    for (size_t h = 0; h < 12; h++) {
        const float *p = mha_io_npy_data(maps) + (int64_t)h * shape[1] * shape[2];
        expect_head(json_array_get(heads, h), p, shape[1]);
    }
    assert_true(json_is_null(json_object_get(report, "expect")));
    json_decref(report);
    mha_io_npy_destroy(maps);
}

static void inspect_table_has_a_row_per_head_and_plain_words(void **state)
{
    (void)state;
    const struct demo d = demo_of("sister", 0);
    assert_int_equal(inspect(&d, NULL, NULL, NULL, NULL), 0);
    const char *out = tool_run_stdout();
    assert_non_null(strstr(out, "\n   0 "));
    assert_non_null(strstr(out, "\n  11 "));
    assert_null(strstr(out, "\n  12 "));
    /* Head 2 of the first layer is known to look back one token. */
    assert_non_null(strstr(out, "almost only on the previous token (100 %)"));
}

static void inspect_wrong_expectation_is_a_miss_and_status_1(void **state)
{
    (void)state;
    const struct demo d = demo_of("keys", 5);
    const struct demo other = demo_of("sister", 5); /* as many tokens */
    assert_int_equal(inspect(&d, "--expect", other.output, NULL, NULL), 1);
    assert_non_null(strstr(tool_run_stdout(), "MISSED"));
    assert_int_equal(inspect(&d, "--expect", other.output, "--tolerance", "1000"), 0);
    assert_int_equal(inspect(&d, "--expect", d.output, "--tolerance", "0"), 1);
    const struct demo shorter = demo_of("animal", 5);
    assert_int_equal(inspect(&d, "--expect", shorter.output, NULL, NULL), 1);
    assert_non_null(strstr(tool_run_stderr(), "[17, 384]"));
}

static void inspect_expected_nan_is_a_miss(void **state)
{
    (void)state;
    const struct demo d = demo_of("keys", 0);
    mha_io_npy *stored = NULL;
    int64_t shape[2];
    assert_int_equal(mha_io_npy_read(d.output, &stored, NULL), MHA_OK);
    assert_int_equal(mha_io_npy_shape(stored, shape, 2), 2);
    float *poisoned = malloc((size_t)mha_io_npy_count(stored) * sizeof *poisoned);
    memcpy(poisoned, mha_io_npy_data(stored), (size_t)mha_io_npy_count(stored) * sizeof *poisoned);
    poisoned[1000] = NAN;
    const char *path = tool_run_file("nan.npy");
    assert_int_equal(mha_io_npy_write(path, 2, shape, poisoned, NULL), MHA_OK);
    assert_int_equal(inspect(&d, "--expect", path, "--tolerance", "1000"), 1);
    free(poisoned);
    mha_io_npy_destroy(stored);
}

static void inspect_output_matches_itself_without_tolerance(void **state)
{
    (void)state;
    const struct demo d = demo_of("senators", 5);
    const char *path = tool_run_file("output.npy");
    assert_int_equal(inspect(&d, "--output", path, NULL, NULL), 0);
    assert_int_equal(inspect(&d, "--expect", path, "--tolerance", "0"), 0);
    mha_io_npy *out = NULL;
    int64_t shape[3];
    assert_int_equal(mha_io_npy_read(path, &out, NULL), MHA_OK);
    assert_int_equal(mha_io_npy_shape(out, shape, 3), 2);
    assert_int_equal(shape[0], 13);
    assert_int_equal(shape[1], 384);
    mha_io_npy_destroy(out);
}

static void inspect_causal_hides_later_tokens(void **state)
{
    (void)state;
    const struct demo d = demo_of("senators", 5);
    assert_int_equal(inspect(&d, "--causal", "--json", NULL, NULL), 0);
    json_t *report = tool_run_json();
    size_t h;
    json_t *head;
    json_array_foreach(json_object_get(report, "heads"), h, head)
    {
        assert_true(number_at(head, "next") == 0.0);
        assert_true(number_at(head, "first") > 1.0 / 13.0); /* the first row sees nothing else */
    }
    json_decref(report);
}

static void inspect_missing_or_bad_options_are_status_2(void **state)
{
    (void)state;
    const struct demo d = demo_of("keys", 0);
    assert_int_equal(tool_run("inspect", NULL), 2);
    assert_non_null(strstr(tool_run_stderr(), "--weights is missing"));
    assert_int_equal(inspect(&d, "--heads", "0", NULL, NULL), 2);
    assert_int_equal(inspect(&d, "--heads", "12x", NULL, NULL), 2);
    assert_int_equal(inspect(&d, "--threads", "65", NULL, NULL), 2);
    assert_int_equal(inspect(&d, "--tolerance", "-1", NULL, NULL), 2);
    assert_int_equal(inspect(&d, "--tolerance", "nan", NULL, NULL), 2);
    assert_int_equal(inspect(&d, "--scheme", "mpnet", NULL, NULL), 2);
    assert_int_equal(inspect(&d, "--html", NULL, NULL, NULL), 2);
    assert_int_equal(inspect(&d, "stray", NULL, NULL, NULL), 2);
}

static void inspect_files_that_do_not_fit_are_status_1_with_a_sentence(void **state)
{
    (void)state;
    const struct demo d = demo_of("keys", 0);
    const struct demo other = demo_of("animal", 0);
    assert_int_equal(inspect(&d, "--weights", "/nonexistent", NULL, NULL), 1);
    assert_non_null(strstr(tool_run_stderr(), "/nonexistent"));
    assert_int_equal(inspect(&d, "--prefix", "encoder.layer.9.", NULL, NULL), 1);
    assert_int_equal(inspect(&d, "--scheme", "llama", NULL, NULL), 1);
    assert_int_equal(inspect(&d, "--heads", "7", NULL, NULL), 1);
    assert_int_equal(inspect(&d, "--tokens", other.tokens, NULL, NULL), 1);
    assert_non_null(strstr(tool_run_stderr(), "17 rows"));
    assert_non_null(strstr(tool_run_stderr(), "15 tokens"));
    assert_int_equal(inspect(&d, "--input", d.maps, NULL, NULL), 1);
    assert_int_equal(inspect(&d, "--html", "/nonexistent/page.html", NULL, NULL), 1);
    assert_int_equal(inspect(&d, "--output", "/nonexistent/out.npy", NULL, NULL), 1);
}

static void inspect_tokens_that_are_not_text_are_refused(void **state)
{
    (void)state;
    const struct demo d = demo_of("keys", 0);
    static const struct {
        const char *text;
        size_t size;
    } cases[] = {
        {"a\nb\xff\xfe\nc\n", 7},
        {"a\nb\0c\n", 6},
        {"a\n\x1b[31mred\n", 10},
        {"a\n\xc3\nc\n", 6},
    };
    const char *path = tool_run_file("tokens.txt");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tool_run_write(path, cases[i].text, cases[i].size);
        assert_int_equal(inspect(&d, "--tokens", path, NULL, NULL), 1);
        assert_non_null(strstr(tool_run_stderr(), "line 2"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inspect_agrees_with_the_independent_answer_on_both_layers),
        cmocka_unit_test(inspect_json_numbers_are_those_of_the_stored_weights),
        cmocka_unit_test(inspect_table_has_a_row_per_head_and_plain_words),
        cmocka_unit_test(inspect_wrong_expectation_is_a_miss_and_status_1),
        cmocka_unit_test(inspect_expected_nan_is_a_miss),
        cmocka_unit_test(inspect_output_matches_itself_without_tolerance),
        cmocka_unit_test(inspect_causal_hides_later_tokens),
        cmocka_unit_test(inspect_missing_or_bad_options_are_status_2),
        cmocka_unit_test(inspect_files_that_do_not_fit_are_status_1_with_a_sentence),
        cmocka_unit_test(inspect_tokens_that_are_not_text_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
