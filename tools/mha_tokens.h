/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA_TOKENS_H
#define MHA_TOKENS_H

#include <stddef.h>
#include <stdint.h>

/* The lines of a text file: one token each, UTF-8, a CR before the line end dropped. */
struct mha__tokens {
    int64_t count;
    char **names;
};

/* Returns 0, or -1 with a sentence in why and *out empty. An empty last line is no token. */
int mha__tokens_read(const char *path, struct mha__tokens *out, char *why, size_t cap);

void mha__tokens_free(struct mha__tokens *tokens);

/* How many columns a terminal needs for UTF-8 text, a code point counted as one. */
int mha__tokens_columns(const char *text);

#endif
