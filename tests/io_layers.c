/* SPDX-License-Identifier: Apache-2.0 */
#include "io_layers.h"

#include "support/expect.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void io_draft_add(io_draft *draft, const char *name, int64_t rows, int64_t columns, float base)
{
    assert_true(draft->count < IO_TENSORS);
    int at = draft->count++;
    draft->names[at] = name;
    draft->shapes[at][0] = rows;
    draft->shapes[at][1] = columns;
    draft->bases[at] = base;
}

static int find(const io_draft *draft, const char *name)
{
    int at = 0;
    while (at < draft->count && strcmp(draft->names[at], name) != 0) {
        at++;
    }
    assert_true(at < draft->count);
    return at;
}

void io_draft_remove(io_draft *draft, const char *name)
{
    int at = find(draft, name);
    int last = --draft->count;
    draft->names[at] = draft->names[last];
    memcpy(draft->shapes[at], draft->shapes[last], sizeof draft->shapes[at]);
    draft->bases[at] = draft->bases[last];
}

void io_draft_reshape(io_draft *draft, const char *name, int64_t rows, int64_t columns)
{
    int at = find(draft, name);
    draft->shapes[at][0] = rows;
    draft->shapes[at][1] = columns;
}

io_bytes io_draft_bytes(const io_draft *draft, const char *prefix)
{
    float *numbers = malloc(IO_NUMBERS * sizeof *numbers);
    char header[4096] = "{";
    size_t used = 1;
    int64_t total = 0;
    assert_non_null(numbers);
    for (int t = 0; t < draft->count; t++) {
        int64_t rows = draft->shapes[t][0];
        int64_t columns = draft->shapes[t][1];
        int64_t count = columns < 0 ? rows : rows * columns;
        char second[32] = "";
        if (columns >= 0) {
            snprintf(second, sizeof second, ",%" PRId64, columns);
        }
        used += (size_t)snprintf(header + used,
                                 sizeof header - used,
                                 "%s\"%s%s\":{\"dtype\":\"F32\",\"shape\":[%" PRId64
                                 "%s],\"data_offsets\":[%" PRId64 ",%" PRId64 "]}",
                                 t ? "," : "",
                                 prefix,
                                 draft->names[t],
                                 rows,
                                 second,
                                 4 * total,
                                 4 * (total + count));
        assert_true(used < sizeof header - 1 && total + count <= IO_NUMBERS);
        for (int64_t i = 0; i < count; i++) {
            numbers[total + i] = draft->bases[t] + (float)i;
        }
        total += count;
    }
    memcpy(header + used, "}", 2);
    io_bytes bytes = io_safetensors_of(header, numbers, (size_t)total * sizeof *numbers);
    free(numbers);
    return bytes;
}
