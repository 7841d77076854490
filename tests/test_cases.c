/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entries of data/cases.json: faults that users of other libraries met, and the right answer.
 */
#include "support/case_file.h"
#include "support/expect.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/*
 * How many entries the options of this version reach; a change of the file or a new option changes
 * it.
 */
enum { RUN = 57, SKIPPED = 19 };

static json_t *cases;

/*
 * abs(got - expected) <= tolerance * max(1, abs(expected)); what is not finite has to be that
 * itself.
 */
static int close_enough(double got, double expected, double tolerance)
{
    if (isnan(expected)) {
        return isnan(got);
    }
    if (isinf(expected)) {
        return got == expected;
    }
    return fabs(got - expected) <= tolerance * fmax(1, fabs(expected));
}

/* Returns how many numbers are wrong; an entry without the field asserts nothing. */
static int compare(const json_t *entry, const char *field, const char *of, const tensor *got)
{
    double *expected = NULL;
    int64_t count = case_file_numbers(entry, field, &expected);
    int wrong = 0;
    if (count < 0) {
        return 0;
    }
    wrong += count != tensor_elements(got);
    for (int64_t i = 0; !wrong && i < count; ++i) {
        double x = (double)*tensor_element(got, i);
        if (!close_enough(x, expected[i], case_file_tolerance(entry, of))) {
            print_error("%s: %s[%lld] is %.9g, expected %.9g\n",
                        json_string_value(json_object_get(entry, "id")), field, (long long)i, x,
                        expected[i]);
            wrong += 1;
        }
    }
    free(expected);
    return wrong;
}

/* Mean of the weights over heads, where the entry has one. */
static int compare_mean(const json_t *entry, const trial *p)
{
    double *expected = NULL;
    int64_t count = case_file_numbers(entry, "expected_weights_mean", &expected);
    int wrong = 0;
    for (int64_t cell = 0; cell < count; ++cell) {
        int64_t b = cell / (p->T * p->S), i = cell / p->S % p->T, j = cell % p->S;
        double mean = 0;
        for (int64_t h = 0; h < p->H; ++h) {
            mean += (double)*tensor_at(&p->weights, b, h, i, j) / (double)p->H;
        }
        wrong += !close_enough(mean, expected[cell], case_file_tolerance(entry, "weights"));
    }
    free(expected);
    return wrong;
}

/* Whatever the tolerance: hidden weights and the result of rows that see nothing are exactly 0. */
static int compare_exact_zeros(const json_t *entry, const trial *p)
{
    int wrong = 0, projected = p->projection[MHA_PROJECTION_OUT];
    for (int64_t b = 0; b < p->B; ++b) {
        for (int64_t i = 0; i < p->T; ++i) {
            for (int64_t h = 0; h < p->H; ++h) {
                int seen = 0;
                for (int64_t j = 0; j < p->S; ++j) {
                    int allowed = trial_allowed(p, b, h, i, j);
                    seen |= allowed;
                    wrong += !allowed && *tensor_at(&p->weights, b, h, i, j) != 0;
                }
                for (int64_t d = 0; !seen && !projected && d < p->Dv; ++d) {
                    wrong += *tensor_feature(&p->output, b, i, h * p->Dv + d) != 0;
                }
                wrong += !seen && *tensor_at(&p->lse, b, h, i, 0) != -INFINITY;
            }
        }
    }
    if (wrong) {
        print_error("%s: something hidden is not exactly 0\n",
                    json_string_value(json_object_get(entry, "id")));
    }
    return wrong;
}

static int wrong_numbers(const json_t *entry)
{
    trial p;
    case_file_trial(entry, &p);
    SUCCEEDS(trial_forward(&p, 0, err));
    int wrong = compare(entry, "expected_output", "output", &p.output) +
                compare(entry, "expected_weights", "weights", &p.weights) +
                compare(entry, "expected_lse", "lse", &p.lse) + compare_mean(entry, &p) +
                compare_exact_zeros(entry, &p);

    /* the result is the same when it is all that is asked for */
    trial alone;
    case_file_trial(entry, &alone);
    tensor_destroy(&alone.weights);
    tensor_destroy(&alone.lse);
    SUCCEEDS(trial_forward(&alone, 0, err));
    wrong += compare(entry, "expected_output", "output", &alone.output);
    trial_end(&alone);
    trial_end(&p);
    return wrong;
}

static void cases_that_this_version_can_run_give_the_expected_numbers(void **state)
{
    (void)state;
    int run = 0, skipped = 0, failed = 0;
    size_t count = json_array_size(cases);
    for (size_t i = 0; i < count; ++i) {
        const json_t *entry = json_array_get(cases, i);
        const char *option = case_file_missing_option(entry);
        if (option) {
            print_message("skipped %s: %s\n", json_string_value(json_object_get(entry, "id")),
                          option);
            ++skipped;
        } else {
            failed += wrong_numbers(entry) != 0;
            ++run;
        }
    }
    print_message("%d run, %d skipped, %d wrong\n", run, skipped, failed);
    assert_int_equal(failed, 0);
    assert_int_equal(run, RUN);
    assert_int_equal(skipped, SKIPPED);
}

static int load(void **state)
{
    (void)state;
    cases = case_file_load(MHA_TESTS_DATA "/cases.json");
    return cases ? 0 : -1;
}

static int unload(void **state)
{
    (void)state;
    json_decref(cases);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cases_that_this_version_can_run_give_the_expected_numbers),
    };
    return cmocka_run_group_tests(tests, load, unload);
}
