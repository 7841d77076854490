/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "guard_page.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static size_t page(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static void protect(guarded *g, int rights)
{
    if (mprotect((char *)g->map + page(), g->map_bytes - 2 * page(), rights) != 0) {
        abort();
    }
}

void *guarded_create(guarded *g, size_t bytes, int at_end)
{
    size_t inside = (bytes + page() - 1) / page() * page();
    g->bytes = bytes;
    g->map_bytes = inside + 2 * page();
    g->map = mmap(NULL, g->map_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (g->map == MAP_FAILED) {
        abort();
    }
    if (inside) {
        protect(g, PROT_READ | PROT_WRITE);
    }
    g->data = (char *)g->map + page() + (at_end ? inside - bytes : 0);
    return g->data;
}

void guarded_lock(guarded *g)
{
    protect(g, PROT_NONE);
}

void guarded_unlock(guarded *g)
{
    protect(g, PROT_READ | PROT_WRITE);
}

void guarded_destroy(guarded *g)
{
    munmap(g->map, g->map_bytes);
}
