/* SPDX-License-Identifier: Apache-2.0 */
#include "io/io_memory.h"

#include <stdatomic.h>
#include <stdlib.h>

static _Atomic int64_t allocations;
static _Atomic int64_t live;
static _Atomic int64_t bytes_asked;
static _Atomic int64_t fail_at; /* the allocation number that fails; 0 = none */

void *mha__io_memory_allocate(size_t bytes)
{
    int64_t number = atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed) + 1;
    int64_t victim = number;
    if (atomic_compare_exchange_strong(&fail_at, &victim, 0) || bytes > PTRDIFF_MAX) {
        return NULL;
    }
    atomic_fetch_add_explicit(&bytes_asked, (int64_t)bytes, memory_order_relaxed);
    void *block = malloc(bytes ? bytes : 1);
    if (block) {
        atomic_fetch_add_explicit(&live, 1, memory_order_relaxed);
    }
    return block;
}

void *mha__io_memory_array(int64_t count, size_t size)
{
    if (count < 0 || (uint64_t)count > PTRDIFF_MAX / size) {
        return NULL;
    }
    return mha__io_memory_allocate((size_t)count * size);
}

void mha__io_memory_release(void *block)
{
    if (block) {
        atomic_fetch_sub_explicit(&live, 1, memory_order_relaxed);
        free(block);
    }
}

void mha__io_memory_fail_at(int64_t n)
{
    int64_t now = atomic_load_explicit(&allocations, memory_order_relaxed);
    atomic_store(&fail_at, n > 0 ? now + n : 0);
}

int64_t mha__io_memory_allocations(void)
{
    return atomic_load_explicit(&allocations, memory_order_relaxed);
}

int64_t mha__io_memory_live(void)
{
    return atomic_load_explicit(&live, memory_order_relaxed);
}

int64_t mha__io_memory_bytes(void)
{
    return atomic_load_explicit(&bytes_asked, memory_order_relaxed);
}
