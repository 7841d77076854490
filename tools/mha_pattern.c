/* SPDX-License-Identifier: Apache-2.0 */
#include "mha_pattern.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>

/* Shares from which a place is worth a name: alone, or beside another one. */
static const double named_share = 0.25;
static const double second_share = 0.15;
/* A head that uses this part of the tokens evenly is called broad, unless a place stands out. */
static const double broad_part = 0.55;
static const double standing_out = 0.4;

enum { PLACES = MHA__PATTERN_TOKEN + 1 };

static void shares(const struct mha__heads_stats *stats, double share[PLACES])
{
    share[MHA__PATTERN_PREVIOUS] = stats->previous;
    share[MHA__PATTERN_NEXT] = stats->next;
    share[MHA__PATTERN_SELF] = stats->self;
    share[MHA__PATTERN_FIRST] = stats->first;
    share[MHA__PATTERN_LAST] = stats->last;
    share[MHA__PATTERN_TOKEN] = stats->token;
}

/* The place with the largest share, other than `except` (-1: none is left out). */
static int largest(const double share[PLACES], int except)
{
    int best = except == 0 ? 1 : 0;
    for (int place = 0; place < PLACES; place++) {
        if (place != except && share[place] > share[best]) {
            best = place;
        }
    }
    return best;
}

const char *mha__pattern_name(enum mha__pattern pattern)
{
    static const char *const names[] = {
        [MHA__PATTERN_PREVIOUS] = "previous", [MHA__PATTERN_NEXT] = "next",
        [MHA__PATTERN_SELF] = "self",         [MHA__PATTERN_FIRST] = "first",
        [MHA__PATTERN_LAST] = "last",         [MHA__PATTERN_TOKEN] = "token",
        [MHA__PATTERN_NEAR] = "near",         [MHA__PATTERN_BROAD] = "broad",
        [MHA__PATTERN_MIXED] = "mixed",
    };
    return names[pattern];
}

enum mha__pattern mha__pattern_find(const struct mha__heads_stats *stats, int64_t tokens)
{
    double share[PLACES];
    shares(stats, share);
    const int best = largest(share, -1);
    if (share[best] >= standing_out) {
        return (enum mha__pattern)best;
    }
    if (tokens > 2 && stats->effective >= broad_part * (double)tokens) {
        return MHA__PATTERN_BROAD;
    }
    if (tokens > 5 && stats->near >= 0.5) {
        return MHA__PATTERN_NEAR;
    }
    return share[best] >= named_share ? (enum mha__pattern)best : MHA__PATTERN_MIXED;
}

/* Bytes of a name that fit a sentence, whole code points only. */
static int name_bytes(const char *name)
{
    int bytes = 0;
    while (bytes < 40 && name[bytes] != '\0') {
        bytes++;
    }
    while (bytes > 0 && ((unsigned char)name[bytes] & 0xC0U) == 0x80U) {
        bytes--;
    }
    return bytes;
}

static void place_words(int place,
                        const struct mha__heads_stats *stats,
                        int64_t tokens,
                        const char *const *names,
                        char *text,
                        size_t cap)
{
    const char *name = place == MHA__PATTERN_FIRST  ? names[0]
                       : place == MHA__PATTERN_LAST ? names[tokens - 1]
                       : stats->token_key >= 0      ? names[stats->token_key]
                                                    : "";
    const int bytes = name_bytes(name);
    switch (place) {
    case MHA__PATTERN_PREVIOUS:
        snprintf(text, cap, "the previous token");
        break;
    case MHA__PATTERN_NEXT:
        snprintf(text, cap, "the next token");
        break;
    case MHA__PATTERN_SELF:
        snprintf(text, cap, "the token itself");
        break;
    case MHA__PATTERN_FIRST:
        snprintf(text, cap, "the first token %.*s", bytes, name);
        break;
    case MHA__PATTERN_LAST:
        snprintf(text, cap, "the last token %.*s", bytes, name);
        break;
    default:
        snprintf(text, cap, "\"%.*s\"", bytes, name);
        break;
    }
}

static const char *degree(double share)
{
    return share >= 0.85 ? "almost only on" : share >= 0.5 ? "mostly on" : "often on";
}

void mha__pattern_describe(const struct mha__heads_stats *stats,
                           int64_t tokens,
                           const char *const *names,
                           char *text,
                           size_t cap)
{
    assert(tokens > 0);
    double share[PLACES];
    shares(stats, share);
    const int best = largest(share, -1);
    const int second = largest(share, best);
    const enum mha__pattern pattern = mha__pattern_find(stats, tokens);
    const double percent = 100.0 * share[best];
    char place[128];
    char beside[128];
    place_words(best, stats, tokens, names, place, sizeof place);
    place_words(second, stats, tokens, names, beside, sizeof beside);

    switch (pattern) {
    case MHA__PATTERN_BROAD:
        if (share[best] >= second_share) {
            snprintf(text, cap, "spread over about %.0f of %lld tokens, most on %s (%.0f %%)",
                     stats->effective, (long long)tokens, place, percent);
        } else {
            snprintf(text, cap, "spread over about %.0f of %lld tokens", stats->effective,
                     (long long)tokens);
        }
        break;
    case MHA__PATTERN_NEAR:
        snprintf(text, cap, "close by: %.0f %% within two tokens, most on %s (%.0f %%)",
                 100.0 * stats->near, place, percent);
        break;
    case MHA__PATTERN_MIXED:
        snprintf(text, cap, "mixed: about %.0f tokens at a time, led by %s (%.0f %%)",
                 stats->effective, place, percent);
        break;
    default:
        if (share[second] >= second_share && share[best] < 0.85) {
            snprintf(text, cap, "%s %s (%.0f %%), also on %s (%.0f %%)", degree(share[best]), place,
                     percent, beside, 100.0 * share[second]);
        } else {
            snprintf(text, cap, "%s %s (%.0f %%)", degree(share[best]), place, percent);
        }
        break;
    }
}
