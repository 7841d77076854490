/* SPDX-License-Identifier: Apache-2.0 */
/* A host that calls from inside an OpenMP parallel region: right numbers, and silence. */
#define _GNU_SOURCE
#include "support/expect.h"
#include "support/host_state.h"
#include "support/oracle.h"

#include <omp.h>
#include <stdlib.h>

enum { REGIONS = 10, THREADS = 4 };

static void build(trial *p)
{
    trial_begin(p, 1, 130, 200, 4, 2, 64, 64);
    for (int32_t side = 0; side < 4; ++side) {
        trial_project(p, side, 128, 1);
    }
    trial_tensors(p, 0, 0);
    draw d = {1};
    trial_fill(p, &d, 1.0f);
}

static void forward_inside_a_parallel_region_is_right_and_silent(void **state)
{
    (void)state;
    trial first;
    build(&first);
    SUCCEEDS(trial_forward(&first, 1, err));
    oracle r;
    oracle_run(&first, &r);
    assert_true(oracle_compare(&first, &r) <= 1);
    oracle_end(&r);

    int wrong = 0, omp_before = omp_get_max_threads();
    capture c;
    capture_begin(&c);
    for (int region = 0; region < REGIONS; ++region) {
#pragma omp parallel num_threads(THREADS) reduction(| : wrong)
        {
            trial p;
            build(&p);
            wrong |= trial_forward(&p, region % 3, NULL) != MHA_OK;
            wrong |= !same_bits(p.output.data, first.output.data, tensor_elements(&p.output));
            trial_end(&p);
        }
    }
    int64_t printed = capture_end(&c);
    assert_false(wrong);
    assert_int_equal(printed, 0);
    assert_int_equal(omp_get_max_threads(), omp_before);
    trial_end(&first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward_inside_a_parallel_region_is_right_and_silent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
