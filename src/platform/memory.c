/* SPDX-License-Identifier: Apache-2.0 */
#define _DEFAULT_SOURCE /* madvise */
#include "platform/memory.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ALIGNMENT 64u

/*
 * Blocks of some pages of 2 MiB ask for such pages: a tile of packed keys then lies in one piece of physical
 * memory, so it meets no other tile in the second-level cache, and one entry of the TLB finds it.
 */
enum { HUGE_PAGE = 2 << 20, HUGE_BLOCK = 2 * HUGE_PAGE };

static _Atomic int64_t allocations;
static _Atomic int64_t live;
static _Atomic int64_t fail_at; /* the allocation number that fails; 0 = none */

void *mha__memory_allocate(size_t bytes)
{
    int64_t number = atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed) + 1;
    int64_t victim = number;
    if (atomic_compare_exchange_strong(&fail_at, &victim, 0)) {
        return NULL;
    }
    const size_t alignment = bytes < HUGE_BLOCK ? ALIGNMENT : HUGE_PAGE;
    if (bytes > SIZE_MAX - alignment) {
        return NULL;
    }
    const size_t rounded = (bytes + alignment - 1) / alignment * alignment;
    void *block = aligned_alloc(alignment, rounded ? rounded : alignment);
#ifdef MADV_HUGEPAGE
    if (block && alignment == HUGE_PAGE) {
        (void)madvise(block, rounded, MADV_HUGEPAGE); // a wish: without it all works as before
    }
#endif
    if (block) {
        atomic_fetch_add_explicit(&live, 1, memory_order_relaxed);
    }
    return block;
}

void *mha__memory_allocate_zeroed(size_t bytes)
{
    void *block = mha__memory_allocate(bytes);
    if (block) {
        memset(block, 0, bytes);
    }
    return block;
}

void mha__memory_release(void *block)
{
    if (block) {
        atomic_fetch_sub_explicit(&live, 1, memory_order_relaxed);
        free(block);
    }
}

void mha__memory_fail_at(int64_t n)
{
    int64_t now = atomic_load_explicit(&allocations, memory_order_relaxed);
    atomic_store(&fail_at, n > 0 ? now + n : 0);
}

int64_t mha__memory_allocations(void)
{
    return atomic_load_explicit(&allocations, memory_order_relaxed);
}

int64_t mha__memory_live(void)
{
    return atomic_load_explicit(&live, memory_order_relaxed);
}
