/* SPDX-License-Identifier: Apache-2.0 */
#include "tool_run.h"

#include <mha/mha.h>

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static json_t *bench(const char *shape, const char *what, const char *threads)
{
    const int status = tool_run("bench", shape, "--what", what, "--threads", threads, "--reps", "5",
                                "--json", NULL);
    assert_string_equal(tool_run_stderr(), "");
    assert_int_equal(status, 0);
    return tool_run_json();
}

static double number_at(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_number(value)) {
        fail_msg("%s is no number", key);
    }
    return json_number_value(value);
}

/* Operations of one forward as the report counts them. */
static double flops_of(const json_t *report)
{
    return number_at(report, "gflops") * number_at(report, "ms_min") * 1e6;
}

static void bench_report_has_the_promised_fields(void **state)
{
    (void)state;
    json_t *report = bench("b1_t64_s64_h2_d32", "core", "1");
    static const char *const texts[] = {"engine",  "blas",      "blas_core",
                                        "cpu",     "algorithm", "peak_vectors",
                                        "version", "compiler",  "commit"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        assert_true(json_is_string(json_object_get(report, texts[i])));
    }
    assert_string_equal(json_string_value(json_object_get(report, "shape")), "b1_t64_s64_h2_d32");
    assert_string_equal(json_string_value(json_object_get(report, "what")), "core");
    assert_string_equal(json_string_value(json_object_get(report, "kernels")),
                        mha_runtime_kernels());
    assert_int_equal(json_integer_value(json_object_get(report, "threads")), 1);
    assert_int_equal(json_integer_value(json_object_get(report, "repetitions")), 5);
    assert_true(number_at(report, "ms_min") > 0.0);
    assert_true(number_at(report, "ms_median") >= number_at(report, "ms_min"));
    assert_true(number_at(report, "workspace_bytes") >= number_at(report, "packed_bytes"));
    assert_true(number_at(report, "visible_share") == 1.0);
    assert_string_equal(json_string_value(json_object_get(report, "layout")), "token-major");
    assert_true(number_at(report, "flops") == 4.0 * 2 * 64 * 64 * 32);
    assert_true(number_at(report, "tensor_bytes") == 4.0 * 4 * 64 * 64);
    const double share = number_at(report, "gflops") / number_at(report, "peak_gflops");
    assert_true(fabs(number_at(report, "share") - share) <= 1e-6 * share);
    /* The peak is a peak: nothing computes faster than the FMA pipes. The slack is for a machine
     * that is busy while the peak is sampled and free while the forward is timed. */
    assert_true(share > 0.0 && share < 1.25);
    json_decref(report);
}

static void bench_counts_operations_as_documented(void **state)
{
    (void)state;
    static const struct {
        const char *shape, *what;
        double flops;
    } cases[] = {
        {"b2_t64_s96_h2_d32", "core", 4.0 * 2 * 2 * 64 * 96 * 32},
        {"b1_t64_s64_h2_d32_dv16", "core", 2.0 * 2 * 64 * 64 * (32 + 16)},
        {"b1_t64_s64_h2_d32_causal", "core", 0.5 * 4.0 * 2 * 64 * 64 * 32},
        /* off = 32: query i sees 33 + i keys */
        {"b1_t32_s64_h1_d32_causalbr", "core", 4.0 * 32 * (32 * 33 + 31 * 32 / 2)},
        /* each query sees itself and the one before */
        {"b1_t64_s64_h1_d32_win1_0", "core", 4.0 * 32 * 127},
        {"b1_t64_s64_h4_d32", "layer", 4.0 * 4 * 64 * 64 * 32 + 8.0 * 64 * 128 * 128},
        {"b1_t64_s64_e100_h4_g1_d32", "layer",
         4.0 * 4 * 64 * 64 * 32 + 2.0 * 64 * 100 * (128 + 32 + 32 + 128)},
        {"b1_t32_s64_h4_d32", "layer",
         4.0 * 4 * 32 * 64 * 32 + 2.0 * 128 * 128 * (32 + 64 + 64 + 32)},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        json_t *report = bench(cases[i].shape, cases[i].what, "1");
        const double got = flops_of(report);
        if (!(fabs(got / cases[i].flops - 1.0) <= 1e-6)) {
            fail_msg("%s %s: %.9g, expected %.9g", cases[i].shape, cases[i].what, got,
                     cases[i].flops);
        }
        json_decref(report);
    }
}

static void bench_gets_rid_of_a_forced_core_and_says_so(void **state)
{
    (void)state;
    json_t *plain = bench("b1_t8_s8_h1_d8", "core", "1");
    const json_t *core = json_object_get(plain, "blas_core");
    assert_int_equal(setenv("OPENBLAS_CORETYPE", "Prescott", 1), 0);
    assert_int_equal(tool_run("bench", "b1_t8_s8_h1_d8", "--reps", "5", "--json", NULL), 0);
    assert_non_null(strstr(tool_run_stderr(), "OPENBLAS_CORETYPE=Prescott unset"));
    json_t *freed = tool_run_json();
    assert_true(json_equal(core, json_object_get(freed, "blas_core")));
    assert_int_equal(tool_run("bench", "b1_t8_s8_h1_d8", "--reps", "5", "--keep-coretype", NULL),
                     0);
    assert_string_equal(tool_run_stderr(), "");
    assert_int_equal(unsetenv("OPENBLAS_CORETYPE"), 0);
    json_decref(freed);
    json_decref(plain);
}

/* --with OPTION or --against SHAPE on a small shape, on an engine. */
static json_t *
bench_compared(const char *shape, const char *engine, const char *how, const char *to)
{
    const int status = tool_run("bench", shape, "--threads", "1", "--engine", engine, how, to,
                                "--reps", "5", "--json", NULL);
    assert_string_equal(tool_run_stderr(), "");
    assert_int_equal(status, 0);
    return tool_run_json();
}

static void bench_engine_is_the_one_asked_for(void **state)
{
    (void)state;
    static const char *const engines[] = {"blas", "fused"};
    for (size_t i = 0; i < sizeof engines / sizeof engines[0]; i++) {
        json_t *report =
            bench_compared("b1_t64_s64_h2_d32", engines[i], "--against", "b1_t64_s64_h1_d64");
        assert_string_equal(json_string_value(json_object_get(report, "engine")), engines[i]);
        const char *algorithm = json_string_value(json_object_get(report, "algorithm"));
        assert_int_equal(strncmp(algorithm, engines[i], strlen(engines[i])), 0);
        json_decref(report);
    }
    assert_int_equal(setenv("MHA_ENGINE", "fused", 1), 0);
    json_t *report = bench("b1_t64_s64_h2_d32", "core", "1");
    assert_int_equal(unsetenv("MHA_ENGINE"), 0);
    assert_string_equal(json_string_value(json_object_get(report, "engine")), "fused");
    json_decref(report);
}

static void bench_with_an_option_compares_with_the_plain_shape(void **state)
{
    (void)state;
    static const struct {
        const char *option;
        double work_share, visible_share;
    } cases[] = {
        {"all-true-mask", 1.0, 1.0},
        {"bias", 1.0, 1.0},
        {"weights", 1.0, 1.0},
        {"entropy", 1.0, 1.0},
        {"mass", 1.0, 1.0},
        {"half-keys", 0.5, 0.5},
        {"causal", 0.5, 513.0 / 1024.0}, /* (T + 1) / 2T are visible, a half is what is counted */
        /* the first 255 queries see 1 .. 255 keys, the others 256 */
        {"window", (255.0 * 128.0 + 257.0 * 256.0) / (512.0 * 512.0),
         (255.0 * 128.0 + 257.0 * 256.0) / (512.0 * 512.0)},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (int fused = 0; fused < 2; fused++) {
            json_t *report = bench_compared("b1_t512_s512_h2_d32", fused == 1 ? "fused" : "blas",
                                            "--with", cases[i].option);
            assert_string_equal(json_string_value(json_object_get(report, "with")),
                                cases[i].option);
            const double ratio = number_at(report, "ms_min") / number_at(report, "plain_ms_min");
            assert_true(fabs(number_at(report, "ratio") - ratio) <= 1e-6 * ratio);
            assert_int_equal(json_integer_value(json_object_get(report, "plain_repetitions")), 5);
            if (!(fabs(number_at(report, "work_share") - cases[i].work_share) <= 1e-6) ||
                !(fabs(number_at(report, "visible_share") - cases[i].visible_share) <= 1e-6)) {
                fail_msg("%s: work share %.9g, visible share %.9g", cases[i].option,
                         number_at(report, "work_share"), number_at(report, "visible_share"));
            }
            json_decref(report);
        }
    }
}

/* A key mass is made of the weights, and they want packed keys; the entropy does not. */
static void bench_algorithm_of_one_token_is_that_of_the_call_with_its_option(void **state)
{
    (void)state;
    static const char *const options[] = {"entropy", "mass", "weights"};
    for (int i = 0; i < 3; i++) {
        json_t *report = bench_compared("b1_t1_s300_h2_d16", "blas", "--with", options[i]);
        const char *algorithm = json_string_value(json_object_get(report, "algorithm"));
        assert_int_equal(strncmp(algorithm, "direct", 6) == 0, i == 0);
        json_decref(report);
    }
}

static void bench_against_another_shape_gives_the_ratio_of_both(void **state)
{
    (void)state;
    /* A hundred times the work is slower, on whatever machine. */
    json_t *report =
        bench_compared("b1_t640_s640_h2_d32", "blas", "--against", "b1_t64_s64_h2_d32");
    assert_string_equal(json_string_value(json_object_get(report, "against")), "b1_t64_s64_h2_d32");
    const double ratio = number_at(report, "ms_min") / number_at(report, "against_ms_min");
    assert_true(fabs(number_at(report, "ratio") - ratio) <= 1e-6 * ratio);
    assert_true(ratio > 1.0);
    json_decref(report);
    assert_int_equal(tool_run("bench", "b1_t8_s8_h1_d8", "--against", "b1_t9_s9_h1_d8", NULL), 0);
    assert_non_null(strstr(tool_run_stdout(), "b1_t9_s9_h1_d8: "));
    assert_non_null(strstr(tool_run_stdout(), "ratio of the two: "));
}

static void bench_layer_counts_bytes_of_tokens_and_parameters_once(void **state)
{
    (void)state;
    json_t *report = bench("b2_t64_s64_e100_h4_g2_d32", "layer", "1");
    /* x and out [2,64,100]; Wq, Wo of 128, Wk, Wv of 64 by 100; biases of the outputs */
    assert_true(number_at(report, "tensor_bytes") ==
                4.0 * (2 * 2 * 64 * 100 + 100 * (128 + 64 + 64 + 128) + 128 + 64 + 64 + 100));
    json_decref(report);
}

static void bench_one_token_is_compared_with_a_plain_read_of_keys_and_values(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 2; threads++) {
        json_t *report = bench("b1_t1_s2048_h4_g2_d32_dv64", "core", threads == 1 ? "1" : "2");
        assert_true(number_at(report, "kv_bytes") == 4.0 * 2 * 2048 * (32 + 64));
        const double rate = number_at(report, "kv_bytes") / number_at(report, "ms_min") / 1e6;
        const double read = number_at(report, "kv_bytes") / number_at(report, "read_ms_min") / 1e6;
        assert_true(fabs(number_at(report, "kv_gb_per_s") - rate) <= 1e-6 * rate);
        assert_true(fabs(number_at(report, "read_gb_per_s") - read) <= 1e-6 * read);
        assert_true(fabs(number_at(report, "read_share") - rate / read) <= 1e-6 * rate / read);
        json_decref(report);
    }
    json_t *two = bench("b1_t2_s64_h2_d32", "core", "1");
    assert_null(json_object_get(two, "read_gb_per_s"));
    json_decref(two);
    assert_int_equal(tool_run("bench", "b1_t1_s64_h2_d32", "--reps", "3", NULL), 0);
    assert_non_null(strstr(tool_run_stdout(), "of a plain read"));
}

static void bench_layout_head_major_is_said_and_costs_no_operations(void **state)
{
    (void)state;
    assert_int_equal(tool_run("bench", "b2_t64_s96_h4_g2_d32_dv16", "--layout", "head-major",
                              "--threads", "1", "--reps", "3", "--json", NULL),
                     0);
    json_t *report = tool_run_json();
    assert_string_equal(json_string_value(json_object_get(report, "layout")), "head-major");
    assert_true(number_at(report, "flops") == 2.0 * 2 * 4 * 64 * 96 * (32 + 16));
    json_decref(report);
}

static const char *const parts[] = {"projections", "packing", "scores", "softmax",
                                    "values",      "other",   "idle"};

static void bench_profile_has_seven_parts_that_add_up(void **state)
{
    (void)state;
    for (int layer = 0; layer < 2; layer++) {
        assert_int_equal(tool_run("bench", "b1_t200_s200_h2_d32", "--profile", "--what",
                                  layer ? "layer" : "core", "--threads", "2", "--reps", "7",
                                  "--json", NULL),
                         0);
        json_t *report = tool_run_json();
        assert_int_equal(json_integer_value(json_object_get(report, "profile_runs")), 7);
        double shares = 0.0;
        double milliseconds = 0.0;
        for (int i = 0; i < 7; i++) {
            char key[32];
            snprintf(key, sizeof key, "%s_share", parts[i]);
            shares += number_at(report, key);
            snprintf(key, sizeof key, "%s_ms", parts[i]);
            milliseconds += number_at(report, key);
        }
        assert_true(fabs(shares - 1.0) <= 1e-6);
        assert_int_equal(number_at(report, "projections_share") > 0.0, layer);
        assert_true(milliseconds > 0.0);
        json_decref(report);
    }
}

static void bench_csv_has_the_facts_of_json_under_their_names(void **state)
{
    (void)state;
    json_t *report = bench("b1_t64_s64_h2_d32", "core", "1");
    assert_int_equal(
        tool_run("bench", "b1_t64_s64_h2_d32", "--threads", "1", "--reps", "5", "--csv", NULL), 0);
    const char *text = tool_run_stdout();
    const char *key;
    json_t *value;
    json_object_foreach(report, key, value)
    {
        const size_t length = strlen(key);
        assert_int_equal(strncmp(text, key, length), 0);
        text += length;
        assert_true(*text == ',' || *text == '\n');
        text++;
    }
    /* The line of values: as many cells, one of them in quotes for its comma. */
    assert_int_equal(strncmp(text, "b1_t64_s64_h2_d32,core,token-major,1,", 37), 0);
    assert_non_null(strstr(text, "tiles\""));
    size_t cells = 1;
    bool quoted = false;
    for (; *text != '\n'; text++) {
        quoted = quoted != (*text == '"');
        cells += *text == ',' && !quoted;
    }
    assert_int_equal(cells, json_object_size(report));
    assert_string_equal(text, "\n");
    json_decref(report);
}

static void bench_curve_takes_each_t_and_s_along_where_they_are_equal(void **state)
{
    (void)state;
    static const struct {
        const char *shape, *second;
    } cases[] = {{"b1_t8_s8_h2_d16_causal", "b1_t33_s33_h2_d16_causal"},
                 {"b1_t8_s100_h2_d16_win5_0", "b1_t33_s100_h2_d16_win5_0"}};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(tool_run("bench", cases[i].shape, "--curve", "1..70:32", "--threads", "1",
                                  "--reps", "3", "--json", NULL),
                         0);
        json_t *all = tool_run_json();
        assert_int_equal(json_array_size(all), 3); /* 1, 33, 65 */
        const json_t *second = json_array_get(all, 1);
        assert_string_equal(json_string_value(json_object_get(second, "shape")), cases[i].second);
        assert_int_equal(json_integer_value(json_object_get(second, "repetitions")), 3);
        json_decref(all);
    }
    assert_int_equal(tool_run("bench", "b1_t8_s8_h1_d8", "--curve", "1..3", "--csv", NULL), 0);
    int lines = 0;
    for (const char *c = tool_run_stdout(); *c != '\0'; c++) {
        lines += *c == '\n';
    }
    assert_int_equal(lines, 4); /* names, then T = 1, 2, 3 */
}

static void bench_start_is_the_smallest_call_on_one_thread_and_on_two(void **state)
{
    (void)state;
    assert_int_equal(tool_run("bench", "--what", "start", "--reps", "50", "--json", NULL), 0);
    json_t *all = tool_run_json();
    static const int threads[] = {1, 1, 2};
    assert_int_equal(json_array_size(all), 3);
    for (size_t i = 0; i < 3; i++) {
        const json_t *call = json_array_get(all, i);
        assert_string_equal(json_string_value(json_object_get(call, "what")), "start");
        assert_int_equal(json_integer_value(json_object_get(call, "threads")), threads[i]);
        assert_true(number_at(call, "ms_min") > 0.0);
    }
    json_decref(all);
    assert_int_equal(tool_run("bench", "--what", "start", "--reps", "50", NULL), 0);
    assert_non_null(strstr(tool_run_stdout(), "2 threads: "));
}

static void bench_wrong_usage_is_status_2(void **state)
{
    (void)state;
    assert_int_equal(tool_run("bench", NULL), 2);
    assert_int_equal(tool_run("bench", "b1_t8_s8_h1", NULL), 2);
    assert_non_null(strstr(tool_run_stderr(), "d is missing"));
    assert_int_equal(tool_run("bench", "b1_t8_s8_h1_d8", "b1_t8_s8_h1_d8", NULL), 2);
    assert_int_equal(tool_run("bench", "b1_t8_s8_h1_d8", "--what", "all", NULL), 2);
    assert_int_equal(tool_run("bench", "b1_t8_s8_h1_d8", "--engine", "gpu", NULL), 2);
    assert_int_equal(tool_run("bench", "b1_t8_s8_h1_d8", "--threads", "65", NULL), 2);
    assert_int_equal(tool_run("bench", "b1_t8_s8_h1_d8", "--reps", "0", NULL), 2);
    assert_int_equal(tool_run("bench", "b1_t8_s8_h1_d8", "--with", "gold", NULL), 2);
    assert_non_null(strstr(tool_run_stderr(), "gold"));
    assert_int_equal(tool_run("bench", "b1_t8_s9_h1_d8", "--with", "causal", NULL), 2);
    assert_int_equal(tool_run("bench", "b1_t8_s8_h1_d8_causal", "--with", "window", NULL), 2);
    assert_int_equal(tool_run("bench", "b1_t8_s8_h1_d8", "--against", "b1_t8_s8_h1", NULL), 2);
    assert_int_equal(
        tool_run("bench", "b1_t8_s8_h1_d8", "--against", "b1_t8_s8_h1_d8", "--with", "mass", NULL),
        2);
    static const char *const curves[] = {"",      "5",      "5..",    "..5",     "0..5",
                                         "5..4",  "1..5:",  "1..5:0", "1:5..9",  "1..5x",
                                         "-1..5", "1..1e9", "1...5",  "1..5:2:3"};
    for (size_t i = 0; i < sizeof curves / sizeof curves[0]; i++) {
        assert_int_equal(tool_run("bench", "b1_t8_s8_h1_d8", "--curve", curves[i], NULL), 2);
    }
    assert_int_equal(tool_run("bench", "b1_t8_s8_h1_d8", "--curve", "1..2", "--with", "mass", NULL),
                     2);
    assert_int_equal(tool_run("bench", "b1_t8_s8_h1_d8", "--curve", "1..2", "--profile", NULL), 2);
    assert_int_equal(tool_run("bench", "b1_t8_s8_h1_d8", "--layout", "feature-major", NULL), 2);
    assert_int_equal(
        tool_run("bench", "b1_t8_s8_h1_d8", "--layout", "head-major", "--what", "layer", NULL), 2);
    assert_int_equal(tool_run("bench", "b1_t8_s8_h1_d8", "--what", "start", NULL), 2);
    assert_int_equal(tool_run("bench", "--what", "start", "--threads", "2", NULL), 2);
    assert_int_equal(tool_run("bench", "--what", "start", "--profile", NULL), 2);
}

static void bench_shape_too_large_is_status_1_with_a_sentence(void **state)
{
    (void)state;
    assert_int_equal(tool_run("bench", "b2147483647_t2147483647_s2147483647_h1_d2147483647", NULL),
                     1);
    assert_true(strlen(tool_run_stderr()) > strlen("mha bench: \n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bench_report_has_the_promised_fields),
        cmocka_unit_test(bench_counts_operations_as_documented),
        cmocka_unit_test(bench_gets_rid_of_a_forced_core_and_says_so),
        cmocka_unit_test(bench_engine_is_the_one_asked_for),
        cmocka_unit_test(bench_with_an_option_compares_with_the_plain_shape),
        cmocka_unit_test(bench_algorithm_of_one_token_is_that_of_the_call_with_its_option),
        cmocka_unit_test(bench_against_another_shape_gives_the_ratio_of_both),
        cmocka_unit_test(bench_layer_counts_bytes_of_tokens_and_parameters_once),
        cmocka_unit_test(bench_one_token_is_compared_with_a_plain_read_of_keys_and_values),
        cmocka_unit_test(bench_layout_head_major_is_said_and_costs_no_operations),
        cmocka_unit_test(bench_profile_has_seven_parts_that_add_up),
        cmocka_unit_test(bench_csv_has_the_facts_of_json_under_their_names),
        cmocka_unit_test(bench_curve_takes_each_t_and_s_along_where_they_are_equal),
        cmocka_unit_test(bench_start_is_the_smallest_call_on_one_thread_and_on_two),
        cmocka_unit_test(bench_wrong_usage_is_status_2),
        cmocka_unit_test(bench_shape_too_large_is_status_1_with_a_sentence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
