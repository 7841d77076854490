/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA__MEMORY_H
#define MHA__MEMORY_H

/* The only place that calls malloc. Every block is 64-byte aligned (a cache line, an AVX-512
 * vector). */
#include <stddef.h>
#include <stdint.h>

/* bytes = 0 gives a block that may be released but not touched. NULL when memory is short. */
void *mha__memory_allocate(size_t bytes);
void *mha__memory_allocate_zeroed(size_t bytes);
void mha__memory_release(void *block);

/* For the tests. The n-th allocation from now on fails, once (1 = the next); 0 = none does. */
void mha__memory_fail_at(int64_t n);
/* Allocations since the process started, failed ones included; and blocks not released yet. */
int64_t mha__memory_allocations(void);
int64_t mha__memory_live(void);

#endif
