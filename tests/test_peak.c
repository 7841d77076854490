/* SPDX-License-Identifier: Apache-2.0 */
#include "mha_clock.h"
#include "mha_peak.h"
#include "support/expect.h"

#include <string.h>

static volatile float seeds[MHA__PEAK_MAX_CHAINS];

static int make_seeds(void **state)
{
    (void)state;
    for (int c = 0; c < MHA__PEAK_MAX_CHAINS; c++) {
        seeds[c] = 1.0F + (float)c / 64.0F;
    }
    return 0;
}

/* A thousand steps leave each chain within a tenth of a percent of its seed, so the sum tells
 * whether every chain and every lane is there. */
static void check_sum(mha__peak_loop loop, int chains, int lanes)
{
    double expected = 0.0;
    for (int c = 0; c < chains; c++) {
        expected += (double)seeds[c] * lanes;
    }
    const double ratio = (double)loop(1000, seeds) / expected;
    assert_true(ratio > 0.998 && ratio < 1.002);
}

static void peak_loops_run_every_chain_in_every_lane(void **state)
{
    (void)state;
    check_sum(mha__peak_loop_scalar, MHA__PEAK_SCALAR_CHAINS, 1);
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        check_sum(mha__peak_loop_avx2, MHA__PEAK_AVX2_CHAINS, 8);
    }
    if (__builtin_cpu_supports("avx512f")) {
        check_sum(mha__peak_loop_avx512, MHA__PEAK_AVX512_CHAINS, 16);
    }
#elif defined(__aarch64__)
    check_sum(mha__peak_loop_neon, MHA__PEAK_NEON_CHAINS, 4);
#endif
}

/* Separate multiplies and adds on one lane are an eighth of the AVX2 peak or less; half is a bound
 * that a busy machine keeps. */
static void peak_of_vectors_is_at_least_twice_that_of_scalars(void **state)
{
    (void)state;
    if (strcmp(mha__peak_name(), "scalar") == 0) {
        skip();
    }
    const int64_t steps = 300000;
    double vectors = 0.0;
    double scalars = 0.0;
    for (int i = 0; i < 15; i++) {
        const double sample = mha__peak_sample(0.0);
        vectors = sample > vectors ? sample : vectors;
        const double begin = mha__clock_seconds();
        const volatile float sum = mha__peak_loop_scalar(steps, seeds);
        const double seconds = mha__clock_seconds() - begin;
        (void)sum;
        const double rate = 2.0 * (double)steps * MHA__PEAK_SCALAR_CHAINS / seconds / 1e9;
        scalars = rate > scalars ? rate : scalars;
    }
    print_message("peak %.1f GFLOP/s (%s), scalar %.1f\n", vectors, mha__peak_name(), scalars);
    assert_true(vectors >= 2.0 * scalars);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(peak_loops_run_every_chain_in_every_lane),
        cmocka_unit_test(peak_of_vectors_is_at_least_twice_that_of_scalars),
    };
    return cmocka_run_group_tests(tests, make_seeds, NULL);
}
