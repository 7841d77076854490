/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_GUARD_PAGE_H
#define TESTS_GUARD_PAGE_H

/* Memory between two pages that nobody may touch. */
#include <stddef.h>

typedef struct guarded {
    void *data; /* `bytes` long; its last byte is the last before the guard */
    size_t bytes;
    void *map;
    size_t map_bytes;
} guarded;

/* at_end 1: ends at the following guard page; 0: starts right behind the preceding one. */
void *guarded_create(guarded *g, size_t bytes, int at_end);
/* Makes all of it unreadable, or readable and writable again. */
void guarded_lock(guarded *g);
void guarded_unlock(guarded *g);
void guarded_destroy(guarded *g);

#endif
