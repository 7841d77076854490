/* SPDX-License-Identifier: Apache-2.0 */
#include "mha_shape.h"

#include <mha/attention.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Sizes stay below 2^31, as a BLAS wants them; so h * d fits 64 bits. */
static const int64_t size_limit = INT32_MAX;

struct size_part {
    const char *letter;
    int64_t smallest;
    int64_t value; /* -1: not seen */
};

enum { PART_B, PART_T, PART_S, PART_H, PART_D, PART_G, PART_DV, PART_E, PART_COUNT };

struct parser {
    const char *at;
    struct size_part sizes[PART_COUNT];
    int32_t causal;
    bool causal_plain; /* "causal" alone: needs t = s */
    bool window_seen;
    int64_t window[2];
    char *why;
    size_t cap;
};

static int refuse(struct parser *parser, const char *what, const char *detail)
{
    snprintf(parser->why, parser->cap, "shape: %s%s", what, detail);
    return -1;
}

/* A decimal number at parser->at, which moves behind it. */
static bool take_number(struct parser *parser, int64_t *value)
{
    const char *start = parser->at;
    int64_t number = 0;
    while (*parser->at >= '0' && *parser->at <= '9') {
        number = 10 * number + (*parser->at - '0');
        if (number > size_limit) {
            return false;
        }
        parser->at++;
    }
    *value = number;
    return parser->at > start;
}

static bool take_word(struct parser *parser, const char *word)
{
    const size_t length = strlen(word);
    if (strncmp(parser->at, word, length) != 0) {
        return false;
    }
    const char next = parser->at[length];
    if (next != '\0' && next != '_') {
        return false;
    }
    parser->at += length;
    return true;
}

static int parse_causal(struct parser *parser)
{
    if (parser->causal != MHA_CAUSAL_NONE) {
        return refuse(parser, "causal twice", "");
    }
    if (take_word(parser, "causaltl")) {
        parser->causal = MHA_CAUSAL_TOP_LEFT;
    } else if (take_word(parser, "causalbr")) {
        parser->causal = MHA_CAUSAL_BOTTOM_RIGHT;
    } else if (take_word(parser, "causal")) {
        parser->causal = MHA_CAUSAL_TOP_LEFT;
        parser->causal_plain = true;
    } else {
        return refuse(parser, "causal, causaltl or causalbr expected at ", parser->at);
    }
    return 0;
}

static int parse_window(struct parser *parser)
{
    if (parser->window_seen) {
        return refuse(parser, "win twice", "");
    }
    const char *start = parser->at;
    parser->at += strlen("win");
    for (int side = 0; side < 2; side++) {
        if (strncmp(parser->at, "-1", 2) == 0) {
            parser->window[side] = -1;
            parser->at += 2;
        } else if (!take_number(parser, &parser->window[side])) {
            return refuse(parser, "a window is winL_R, not ", start);
        }
        if (side == 0 && *parser->at++ != '_') {
            return refuse(parser, "a window is winL_R, not ", start);
        }
    }
    parser->window_seen = true;
    return 0;
}

static int parse_size(struct parser *parser)
{
    const char *start = parser->at;
    size_t letters = 0;
    while (start[letters] >= 'a' && start[letters] <= 'z') {
        letters++;
    }
    for (int i = 0; i < PART_COUNT; i++) {
        struct size_part *part = &parser->sizes[i];
        if (strlen(part->letter) != letters || strncmp(part->letter, start, letters) != 0) {
            continue;
        }
        if (part->value >= 0) {
            return refuse(parser, part->letter, " twice");
        }
        parser->at += letters;
        if (!take_number(parser, &part->value) || part->value < part->smallest) {
            return refuse(parser, "a number out of range at ", start);
        }
        return 0;
    }
    return refuse(parser, "unknown part ", start);
}

static int parse_part(struct parser *parser)
{
    if (strncmp(parser->at, "causal", strlen("causal")) == 0) {
        return parse_causal(parser);
    }
    if (strncmp(parser->at, "win", strlen("win")) == 0) {
        return parse_window(parser);
    }
    return parse_size(parser);
}

/* Defaults, and what belongs together. */
static int finish(struct parser *parser, struct mha__shape *out)
{
    for (int i = PART_B; i <= PART_D; i++) {
        if (parser->sizes[i].value < 0) {
            return refuse(parser, parser->sizes[i].letter, " is missing");
        }
    }
    struct size_part *sizes = parser->sizes;
    if (sizes[PART_G].value < 0) {
        sizes[PART_G].value = sizes[PART_H].value;
    }
    if (sizes[PART_DV].value < 0) {
        sizes[PART_DV].value = sizes[PART_D].value;
    }
    if (sizes[PART_E].value < 0) {
        sizes[PART_E].value = sizes[PART_H].value * sizes[PART_D].value;
    }
    if (sizes[PART_E].value > size_limit) {
        return refuse(parser, "h * d passes 2^31 - 1", "");
    }
    if (sizes[PART_H].value % sizes[PART_G].value != 0) {
        return refuse(parser, "g does not divide h", "");
    }
    if (parser->causal_plain && sizes[PART_T].value != sizes[PART_S].value) {
        return refuse(parser, "causal needs t = s; otherwise say causaltl or causalbr", "");
    }
    *out = (struct mha__shape){
        .B = sizes[PART_B].value,
        .T = sizes[PART_T].value,
        .S = sizes[PART_S].value,
        .E = sizes[PART_E].value,
        .H = sizes[PART_H].value,
        .G = sizes[PART_G].value,
        .D = sizes[PART_D].value,
        .Dv = sizes[PART_DV].value,
        .causal = parser->causal,
        .window_left = parser->window[0],
        .window_right = parser->window[1],
    };
    return 0;
}

int mha__shape_parse(const char *text, struct mha__shape *out, char *why, size_t cap)
{
    struct parser parser = {
        .at = text,
        .sizes = {[PART_B] = {"b", 0, -1},
                  [PART_T] = {"t", 0, -1},
                  [PART_S] = {"s", 0, -1},
                  [PART_H] = {"h", 1, -1},
                  [PART_D] = {"d", 1, -1},
                  [PART_G] = {"g", 1, -1},
                  [PART_DV] = {"dv", 1, -1},
                  [PART_E] = {"e", 1, -1}},
        .causal = MHA_CAUSAL_NONE,
        .window = {-1, -1},
        .why = why,
        .cap = cap,
    };
    for (;;) {
        if (parse_part(&parser) != 0) {
            return -1;
        }
        if (*parser.at == '\0') {
            return finish(&parser, out);
        }
        if (*parser.at != '_') {
            return refuse(&parser, "'_' expected at ", parser.at);
        }
        parser.at++;
    }
}
