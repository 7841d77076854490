/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_IO_LAYERS_H
#define TESTS_IO_LAYERS_H

/* Safetensors files for layer tests, tensor by tensor. */
#include "io_files.h"

enum { IO_TENSORS = 16, IO_NUMBERS = 4096 };

/* A file in the making. Every number of a tensor is base + its index, so parts can be told apart.
 */
typedef struct io_draft {
    int count;
    const char *names[IO_TENSORS];
    int64_t shapes[IO_TENSORS][2]; /* a second size of -1: a vector */
    float bases[IO_TENSORS];
} io_draft;

void io_draft_add(io_draft *draft, const char *name, int64_t rows, int64_t columns, float base);
/* Takes a tensor out again; it must be there. */
void io_draft_remove(io_draft *draft, const char *name);
/* Changes the shape of a tensor; it must be there. */
void io_draft_reshape(io_draft *draft, const char *name, int64_t rows, int64_t columns);
io_bytes io_draft_bytes(const io_draft *draft, const char *prefix);

#endif
