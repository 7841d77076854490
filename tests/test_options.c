/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every pair of options at least once against mha_reference_forward, within the bounds of oracle.h; and
 * once more with everything that is hidden filled with NaN, infinity and huge numbers: the same bits.
 *
 * MHA_TEST_SEED=n draws other cases, MHA_TEST_CASES=n that many at least, MHA_TEST_CASE=n runs one of them
 * alone.
 */
#include "support/expect.h"
#include "support/hidden.h"
#include "support/oracle.h"
#include "support/sweep.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST = MHA_TESTS_REDUCED ? 300 : 1400, MOST = 100000 };
static const int64_t BUDGET = MHA_TESTS_REDUCED ? 6000000 : 12000000;
static const float FILL = -7.0f;

static sweep_case cases[MOST];
static int current; /* the case that runs, -1 when all are done */

static int number_from_environment(const char *name, int fallback)
{
    const char *text = getenv(name);
    return text ? atoi(text) : fallback;
}

/* Scaled and capped scores of hidden cells are made of hidden numbers. */
static int is_compared(const trial *p, int32_t id, int64_t index)
{
    if (id != MHA_TENSOR_SCORES_SCALED && id != MHA_TENSOR_SCORES_CAPPED) {
        return 1;
    }
    const int64_t j = index % p->S, i = index / p->S % p->T, row = index / p->S / p->T;
    return trial_allowed(p, row / p->H, row % p->H, i, j);
}

static int same_tensors(trial *p, trial *twin)
{
    for (int32_t id = MHA_TENSOR_OUTPUT; id <= MHA_TENSOR_KEY_MASS_TOTAL; ++id) {
        if (id >= MHA_TENSOR_BIAS0 && id <= MHA_TENSOR_BIAS3) {
            continue;
        }
        const tensor *a = trial_result(p, id), *b = trial_result(twin, id);
        const int64_t elements = a->data ? tensor_elements(a) : 0;
        for (int64_t n = 0; n < elements; ++n) {
            if (is_compared(p, id, n) &&
                !same_bits(tensor_element(a, n), tensor_element(b, n), 1)) {
                print_error("tensor %d, number %lld: %.9g, with other hidden numbers %.9g\n",
                            (int)id, (long long)n, (double)*tensor_element(a, n),
                            (double)*tensor_element(b, n));
                return 0;
            }
        }
    }
    return 1;
}

static int same_results(trial *p, trial *twin)
{
    const size_t top = (size_t)(p->B * p->H * p->T * p->top);
    int same = same_tensors(p, twin);
    if (p->stream) {
        const tensor *a = &p->stream->weights, *b = &twin->stream->weights;
        same = same && same_bits(a->data, b->data, tensor_elements(a));
    }
    if (top > 0) {
        same = same && memcmp(p->top_keys, twin->top_keys, top * sizeof *p->top_keys) == 0 &&
               (!p->top_weights || same_bits(p->top_weights, twin->top_weights, (int64_t)top));
    }
    return same;
}

/* Returns error / bound of the plain run; infinity where something else is wrong. */
static double run_case(const sweep_case *c, int64_t *hidden)
{
    trial p, exact, twin;
    sweep_trial(c, &p, FILL);
    sweep_trial(c, &exact, FILL);
    if (sweep_status(&p) != MHA_OK) {
        REFUSED(sweep_status(&p), trial_forward(&p, sweep_threads(c), err), "alignment");
        REFUSED(sweep_status(&p), trial_reference(&exact, err), "alignment");
        trial_end(&p);
        trial_end(&exact);
        return 0;
    }
    SUCCEEDS(trial_forward(&p, sweep_threads(c), err));
    SUCCEEDS(trial_reference(&exact, err));
    oracle r;
    oracle_run(&p, &r);
    double ratio = oracle_compare_runs(&p, &exact, &r);
    int fine = oracle_top_is_right(&p, &r) && hidden_gaps_untouched(&p, FILL);
    oracle_end(&r);
    trial_end(&exact);

    sweep_trial(c, &twin, FILL);
    *hidden += hidden_poison(&twin);
    SUCCEEDS(trial_forward(&twin, sweep_threads(c), err));
    fine = same_results(&p, &twin) && fine;
    trial_end(&p);
    trial_end(&twin);
    return fine ? ratio : INFINITY;
}

static void name_case(int i)
{
    char text[1024];
    sweep_describe(&cases[i], text, sizeof text);
    print_error("MHA_TEST_CASE=%d: %s\n", i, text);
}

/* All cases, or all of them with few queries; at least this share must read keys and values in place. */
static void run_cases(int few, double in_place)
{
    const uint64_t seed = (uint64_t)number_from_environment("MHA_TEST_SEED", 20240607);
    const int only = number_from_environment("MHA_TEST_CASE", -1);
    const int least = number_from_environment("MHA_TEST_CASES", LEAST);
    int missed = 0, refused = 0, wrong = 0, direct = 0;
    int count = sweep_make(cases, least, MOST, BUDGET, seed, &missed);
    int64_t hidden = 0;
    double worst = 0;
    for (int i = 0; i < count; ++i) {
        if (few) {
            sweep_make_few(&cases[i]);
        }
        if (only >= 0 && i != only) {
            continue;
        }
        current = i;
        trial p;
        sweep_trial(&cases[i], &p, FILL);
        const int is_refused = sweep_status(&p) != MHA_OK;
        refused += is_refused;
        direct += few && !is_refused && trial_is_direct(&p);
        trial_end(&p);
        const double ratio = run_case(&cases[i], &hidden);
        if (ratio > 1) {
            ++wrong;
            name_case(i);
        } else {
            worst = fmax(worst, ratio);
        }
    }
    current = -1;
    print_message("seed %d: %d cases, %d of them refused for want of an alignment, %lld numbers "
                  "hidden, error at most %.2f of the bound, %d wrong\n",
                  (int)seed, count, refused, (long long)hidden, worst, wrong);
    assert_int_equal(missed, 0);
    assert_int_equal(wrong, 0);
    if (only < 0) {
        assert_true(count >= least && count < MOST);
        assert_true(count - refused > count * 2 / 3);
        assert_true(refused > 0 && hidden > 0 && worst > 0);
        assert_true(direct >= in_place * (count - refused));
    }
}

static void options_in_every_pair_equal_the_reference_and_hidden_numbers_change_no_bit(void **state)
{
    (void)state;
    run_cases(0, 0);
}

static void options_of_few_queries_do_so_on_keys_and_values_in_place(void **state)
{
    (void)state;
    run_cases(1, 0.5);
}

static int name_the_case_that_stopped(void **state)
{
    (void)state;
    if (current >= 0) {
        name_case(current);
    }
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(
            options_in_every_pair_equal_the_reference_and_hidden_numbers_change_no_bit,
            name_the_case_that_stopped),
        cmocka_unit_test_teardown(options_of_few_queries_do_so_on_keys_and_values_in_place,
                                  name_the_case_that_stopped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
