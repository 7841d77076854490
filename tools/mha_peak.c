/* SPDX-License-Identifier: Apache-2.0 */
#include "mha_peak.h"

#include "mha_clock.h"

struct peak {
    const char *name;
    mha__peak_loop loop;
    int chains;
    int lanes;
};

static struct peak widest(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f")) {
        return (struct peak){"avx512", mha__peak_loop_avx512, MHA__PEAK_AVX512_CHAINS, 16};
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        return (struct peak){"avx2", mha__peak_loop_avx2, MHA__PEAK_AVX2_CHAINS, 8};
    }
#elif defined(__aarch64__)
    return (struct peak){"neon", mha__peak_loop_neon, MHA__PEAK_NEON_CHAINS, 4};
#endif
    return (struct peak){"scalar", mha__peak_loop_scalar, MHA__PEAK_SCALAR_CHAINS, 1};
}

double mha__peak_sample(double seconds)
{
    static volatile float seeds[MHA__PEAK_MAX_CHAINS];
    static volatile float sink;
    static const double block = 1e-3; /* seconds */
    static int64_t steps = 20000;     /* from the first sample on so many last a block */
    const struct peak peak = widest();
    for (int c = 0; c < MHA__PEAK_MAX_CHAINS; c++) {
        seeds[c] = 1.0F + (float)c / 64.0F;
    }
    double spent = 0.0;
    int64_t blocks = 0;
    while (blocks == 0 || spent < seconds) {
        const double begin = mha__clock_seconds();
        sink = peak.loop(steps, seeds);
        const double lasted = mha__clock_seconds() - begin;
        if (blocks == 0 && lasted < block) {
            steps *= 2;
        } else {
            spent += lasted;
            blocks++;
        }
    }
    (void)sink;
    return 2.0 * (double)(blocks * steps) * peak.chains * peak.lanes / spent / 1e9;
}

const char *mha__peak_name(void)
{
    return widest().name;
}
