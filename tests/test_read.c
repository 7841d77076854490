/* SPDX-License-Identifier: Apache-2.0 */
#include "mha_read.h"
#include "support/expect.h"

#include <string.h>

enum { MOST = 1000 };

static uint32_t sum_of(const float *data, int64_t count)
{
    uint32_t sum = 0;
    for (int64_t i = 0; i < count; i++) {
        uint32_t word;
        memcpy(&word, data + i, sizeof word);
        sum += word;
    }
    return sum;
}

/* The sum tells: every word of both arrays, once, whatever the number of threads and the tails. */
static void read_sample_reads_every_number_once(void **state)
{
    (void)state;
    static float a[MOST];
    static float b[MOST];
    for (int i = 0; i < MOST; i++) {
        a[i] = (float)(i * i);
        b[i] = 1.0F / (float)(i + 1);
    }
    static const int64_t counts[] = {0, 1, 63, 64, 127, 128, 129, 999, 1000};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        for (int threads = 1; threads <= 3; threads++) {
            uint32_t sum = 0;
            const double seconds = mha__read_sample(a, counts[i], b + 1, MOST - 1, threads, &sum);
            assert_true(seconds > 0.0);
            assert_int_equal(sum, (uint32_t)(sum_of(a, counts[i]) + sum_of(b + 1, MOST - 1)));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(read_sample_reads_every_number_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
