/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA_READ_H
#define MHA_READ_H

#include <stdint.h>

/*
 * How fast this machine reads: what a call that must see every key and value once is compared with.
 * The bytes are added up in the widest vectors that the CPU has and nothing else is done; whether they
 * come from a cache or from memory is as it is for the call.
 */

/*
 * The shortest of a few passes over two arrays (counts in floats), each thread its share of both, in
 * seconds; the calling thread is one of them. *sum is that of all 32-bit words, modulo 2^32.
 * Negative when a thread cannot be started.
 */
double mha__read_sample(
    const float *a, int64_t a_count, const float *b, int64_t b_count, int threads, uint32_t *sum);

#endif
