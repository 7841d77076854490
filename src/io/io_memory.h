/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA__IO_MEMORY_H
#define MHA__IO_MEMORY_H

/* The only place of libmha_io that calls malloc (jansson brings its own). */
#include <stddef.h>
#include <stdint.h>

/* bytes = 0 gives a block that may be released but not touched. NULL when memory is short. */
void *mha__io_memory_allocate(size_t bytes);
/* count * size bytes; NULL when that overflows too. */
void *mha__io_memory_array(int64_t count, size_t size);
void mha__io_memory_release(void *block);

/* For the tests. The n-th allocation from now on fails, once (1 = the next); 0 = none does. */
void mha__io_memory_fail_at(int64_t n);
/* Allocations since the process started, failed ones included; blocks not released yet; and the
 * bytes asked for since the process started. */
int64_t mha__io_memory_allocations(void);
int64_t mha__io_memory_live(void);
int64_t mha__io_memory_bytes(void);

#endif
