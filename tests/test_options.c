/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every pair of options at least once, against the float64 oracle; and once more with everything
 * that is hidden filled with NaN, infinity and huge numbers: the same bits.
 *
 * MHA_TEST_SEED=n draws other cases, MHA_TEST_CASE=n runs one of them alone.
 */
#include "support/expect.h"
#include "support/hidden.h"
#include "support/oracle.h"
#include "support/sweep.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { LEAST = MHA_TESTS_REDUCED ? 300 : 700, MOST = 4000 };
static const int64_t BUDGET = MHA_TESTS_REDUCED ? 8000000 : 30000000;
static const float FILL = -7.0f;

static sweep_case cases[MOST];
static int current; /* the case that runs, -1 when all are done */

static int number_from_environment(const char *name, int fallback)
{
    const char *text = getenv(name);
    return text ? atoi(text) : fallback;
}

static void compare_tensors(const tensor *a, const tensor *b)
{
    if (a->data) {
        float *x = tensor_read(a), *y = tensor_read(b);
        assert_same_bits(x, y, tensor_elements(a));
        free(x);
        free(y);
    }
}

/* Returns error / bound of the plain run. */
static double run_case(const sweep_case *c, int64_t *hidden)
{
    trial p, twin;
    sweep_trial(c, &p, FILL);
    if (sweep_status(&p) != MHA_OK) {
        REFUSED(sweep_status(&p), trial_forward(&p, sweep_threads(c), err), "alignment");
        trial_end(&p);
        return 0;
    }
    SUCCEEDS(trial_forward(&p, sweep_threads(c), err));
    oracle r;
    oracle_run(&p, &r);
    double ratio = oracle_compare(&p, &r);
    oracle_end(&r);
    assert_true(ratio <= 1);
    assert_true(hidden_gaps_untouched(&p, FILL));

    sweep_trial(c, &twin, FILL);
    *hidden += hidden_poison(&twin);
    SUCCEEDS(trial_forward(&twin, sweep_threads(c), err));
    compare_tensors(&p.output, &twin.output);
    compare_tensors(&p.weights, &twin.weights);
    compare_tensors(&p.lse, &twin.lse);
    trial_end(&p);
    trial_end(&twin);
    return ratio;
}

static void options_in_every_pair_equal_the_oracle_and_hidden_numbers_change_no_bit(void **state)
{
    (void)state;
    const uint64_t seed = (uint64_t)number_from_environment("MHA_TEST_SEED", 20240607);
    const int only = number_from_environment("MHA_TEST_CASE", -1);
    int missed = 0, refused = 0;
    int count = sweep_make(cases, LEAST, MOST, BUDGET, seed, &missed);
    int64_t hidden = 0;
    double worst = 0;
    assert_int_equal(missed, 0);
    for (int i = 0; i < count; ++i) {
        if (only >= 0 && i != only) {
            continue;
        }
        current = i;
        trial p;
        sweep_trial(&cases[i], &p, FILL);
        refused += sweep_status(&p) != MHA_OK;
        trial_end(&p);
        worst = fmax(worst, run_case(&cases[i], &hidden));
    }
    current = -1;
    print_message("seed %d: %d cases, %d of them refused for want of an alignment, %lld numbers "
                  "hidden, error at most %.2f of the bound\n",
                  (int)seed, count, refused, (long long)hidden, worst);
    if (only < 0) {
        assert_true(count >= LEAST && count < MOST);
        assert_true(count - refused > count / 2);
        assert_true(refused > 0 && hidden > 0 && worst > 0);
    }
}

static int name_the_case_that_failed(void **state)
{
    (void)state;
    if (current >= 0) {
        char text[512];
        sweep_describe(&cases[current], text, sizeof text);
        print_error("MHA_TEST_CASE=%d: %s\n", current, text);
    }
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(
            options_in_every_pair_equal_the_oracle_and_hidden_numbers_change_no_bit,
            name_the_case_that_failed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
