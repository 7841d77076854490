/* SPDX-License-Identifier: Apache-2.0 */
#include "mha_tokens.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

/* Takes line over into tokens. */
static int append(struct mha__tokens *tokens, char *line)
{
    char **names = realloc(tokens->names, (size_t)(tokens->count + 1) * sizeof *names);
    if (names == NULL) {
        return -1;
    }
    tokens->names = names;
    tokens->names[tokens->count++] = line;
    return 0;
}

/* Drops the line end. Control characters would reach the terminal, and text that is not UTF-8 has
 * no place in JSON and HTML. */
static int check_line(char *line, size_t length)
{
    while (length > 0 && (line[length - 1] == '\n' || line[length - 1] == '\r')) {
        line[--length] = '\0';
    }
    for (size_t i = 0; i < length; i++) {
        if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f) {
            return -1;
        }
    }
    json_t *text = json_string(line);
    json_decref(text);
    return text != NULL ? 0 : -1;
}

int mha__tokens_read(const char *path, struct mha__tokens *out, char *why, size_t cap)
{
    *out = (struct mha__tokens){0, NULL};
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        snprintf(why, cap, "%s: %s", path, strerror(errno));
        return -1;
    }
    struct mha__tokens tokens = {0, NULL};
    char *line = NULL;
    size_t room = 0;
    int result = 0;
    for (ssize_t length; result == 0 && (length = getline(&line, &room, file)) >= 0;) {
        char *copy = NULL;
        if (check_line(line, (size_t)length) != 0) {
            snprintf(why, cap, "%s, line %lld: not UTF-8 text, or a control character", path,
                     (long long)tokens.count + 1);
            result = -1;
        } else if ((copy = strdup(line)) == NULL || append(&tokens, copy) != 0) {
            free(copy);
            snprintf(why, cap, "%s: out of memory", path);
            result = -1;
        }
    }
    if (result == 0 && ferror(file)) {
        snprintf(why, cap, "%s: %s", path, strerror(errno));
        result = -1;
    }
    free(line);
    fclose(file);
    if (result != 0) {
        mha__tokens_free(&tokens);
        return -1;
    }
    *out = tokens;
    return 0;
}

void mha__tokens_free(struct mha__tokens *tokens)
{
    for (int64_t i = 0; i < tokens->count; i++) {
        free(tokens->names[i]);
    }
    free(tokens->names);
    *tokens = (struct mha__tokens){0, NULL};
}

int mha__tokens_columns(const char *text)
{
    int columns = 0;
    for (; *text != '\0'; text++) {
        columns += ((unsigned char)*text & 0xC0U) != 0x80U; /* continuation bytes take none */
    }
    return columns;
}
