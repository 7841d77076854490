/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA_PATTERN_H
#define MHA_PATTERN_H

#include "mha_heads.h"

/* The pattern that dominates a head, and in plain words. */
enum mha__pattern {
    MHA__PATTERN_PREVIOUS,
    MHA__PATTERN_NEXT,
    MHA__PATTERN_SELF,
    MHA__PATTERN_FIRST,
    MHA__PATTERN_LAST,
    MHA__PATTERN_TOKEN, /* one token in the middle draws most queries */
    MHA__PATTERN_NEAR,  /* close by, no single direction */
    MHA__PATTERN_BROAD, /* spread over most of the tokens */
    MHA__PATTERN_MIXED  /* none of these */
};

/* A short stable name ("previous"), for JSON. */
const char *mha__pattern_name(enum mha__pattern pattern);

enum mha__pattern mha__pattern_find(const struct mha__heads_stats *stats, int64_t tokens);

/* "mostly on the first token [CLS] (67 %)", cut to cap bytes. names are the T tokens. */
void mha__pattern_describe(const struct mha__heads_stats *stats,
                           int64_t tokens,
                           const char *const *names,
                           char *text,
                           size_t cap);

#endif
