/* SPDX-License-Identifier: Apache-2.0 */
#include "platform/memory.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define ALIGNMENT 64u

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
    if (bytes > SIZE_MAX - ALIGNMENT) {
        return NULL;
    }
    size_t rounded = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    void *block = aligned_alloc(ALIGNMENT, rounded ? rounded : ALIGNMENT);
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
