/* SPDX-License-Identifier: Apache-2.0 */
#include "mha_heads.h"

#include <math.h>

/* Adds what query i contributes to the sums that become means. */
static void add_row(const float *row, int64_t i, int64_t tokens, struct mha__heads_stats *sum)
{
    for (int64_t j = 0; j < tokens; j++) {
        const double p = row[j];
        const double apart = fabs((double)(i - j));
        sum->entropy -= p > 0.0 ? p * log(p) : 0.0;
        sum->distance += p * apart;
        sum->near += apart <= 2.0 ? p : 0.0;
    }
    sum->self += row[i];
    sum->previous += i > 0 ? row[i - 1] : 0.0F;
    sum->next += i < tokens - 1 ? row[i + 1] : 0.0F;
    sum->first += row[0];
    sum->last += row[tokens - 1];
}

static void find_token(const float *weights, int64_t tokens, struct mha__heads_stats *out)
{
    out->token = 0.0;
    out->token_key = -1;
    for (int64_t j = 1; j < tokens - 1; j++) {
        double mass = 0.0;
        for (int64_t i = 0; i < tokens; i++) {
            mass += weights[i * tokens + j];
        }
        if (out->token_key < 0 || mass / (double)tokens > out->token) {
            out->token = mass / (double)tokens;
            out->token_key = j;
        }
    }
}

static void find_link(const float *weights, int64_t tokens, struct mha__heads_stats *out)
{
    out->link = 0.0;
    out->link_query = -1;
    out->link_key = -1;
    for (int64_t i = 1; i < tokens - 1; i++) {
        for (int64_t j = 1; j < tokens - 1; j++) {
            const int64_t apart = i > j ? i - j : j - i;
            const double p = weights[i * tokens + j];
            if (apart >= 2 && (out->link_query < 0 || p > out->link)) {
                out->link = p;
                out->link_query = i;
                out->link_key = j;
            }
        }
    }
}

void mha__heads_measure(const float *weights, int64_t tokens, struct mha__heads_stats *out)
{
    *out = (struct mha__heads_stats){0};
    for (int64_t i = 0; i < tokens; i++) {
        add_row(weights + i * tokens, i, tokens, out);
    }
    const double rows = tokens > 0 ? (double)tokens : 1.0;
    const double neighbours = tokens > 1 ? (double)(tokens - 1) : 1.0;
    out->entropy /= rows;
    out->effective = exp(out->entropy);
    out->distance /= rows;
    out->near /= rows;
    out->self /= rows;
    out->first /= rows;
    out->last /= rows;
    out->previous /= neighbours;
    out->next /= neighbours;
    find_token(weights, tokens, out);
    find_link(weights, tokens, out);
}
