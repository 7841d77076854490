/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA_PEAK_H
#define MHA_PEAK_H

#include <stdint.h>

/*
 * The float32 FMA peak of one core: chains of multiply-add that do not wait for each other, enough
 * of them to fill the pipes (latency times how many start per cycle), few enough for the registers,
 * and nothing else in the loop.
 *
 * Each chain starts from a value of its own that the compiler cannot see: chains that begin alike
 * are the same computation, and a compiler merges them.
 */
#define MHA__PEAK_SCALAR_CHAINS 12
#define MHA__PEAK_AVX2_CHAINS                                                                      \
    12 /* 12 and two factors of 16 registers; 2 per cycle, latency 4 or 5 */
#define MHA__PEAK_AVX512_CHAINS 16 /* of 32 registers */
#define MHA__PEAK_NEON_CHAINS   16 /* of 32 registers; up to 4 per cycle, latency 4 */
#define MHA__PEAK_MAX_CHAINS    16

/* Runs `steps` multiply-adds in each chain and returns the sum of all lanes, to be used. */
typedef float (*mha__peak_loop)(int64_t steps, const volatile float *seeds);

float mha__peak_loop_scalar(int64_t steps, const volatile float *seeds);
float mha__peak_loop_avx2(int64_t steps, const volatile float *seeds);
float mha__peak_loop_avx512(int64_t steps, const volatile float *seeds);
float mha__peak_loop_neon(int64_t steps, const volatile float *seeds);

/* One sample on the calling thread, in GFLOP/s, with the widest vectors that the CPU has. It lasts `seconds`,
 * rounded up to blocks of one or two milliseconds. */
double mha__peak_sample(double seconds);

/* "avx512", "avx2", "neon" or "scalar": what the samples use. */
const char *mha__peak_name(void);

#endif
