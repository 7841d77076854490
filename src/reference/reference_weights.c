/* SPDX-License-Identifier: Apache-2.0 */
#include "platform/philox.h"
#include "reference/reference_parts.h"

#include <math.h>

/*
 * m = max over allowed j of s3, and of the sink       sum = sum exp(s3 - m) + exp(sink - m)
 * p = allowed ? exp(s3 - m) / sum : 0                 lse = m + ln sum
 *
 * Where nothing is above -infinity, m counts as 0 and the sum is 0: zeros, not 0 / 0.
 */
static void softmax_row(
    const double *scores, const bool *allowed, int64_t n, double sink, double *weights, double *lse)
{
    double m = sink;
    for (int64_t j = 0; j < n; j++) {
        if (allowed[j] && scores[j] > m) {
            m = scores[j];
        }
    }
    const double base = m == -INFINITY ? 0 : m;
    double sum = exp(sink - base);
    for (int64_t j = 0; j < n; j++) {
        weights[j] = allowed[j] ? exp(scores[j] - base) : 0;
        sum += weights[j];
    }
    for (int64_t j = 0; j < n; j++) {
        weights[j] = allowed[j] && sum != 0 ? weights[j] / sum : 0;
    }
    *lse = sum == 0 ? -INFINITY : base + log(sum);
}

void mha__reference_weights(const struct mha__problem *p,
                            int64_t b,
                            int64_t h,
                            struct mha__reference_room *room)
{
    for (int64_t i = 0; i < p->T; i++) {
        // no sink is a sink of -infinity; a padded query has none
        const bool sink = p->sinks && mha__reference_mask_real(p, b, i);
        softmax_row(room->scores + i * room->columns, room->allowed + i * room->columns,
                    room->columns, sink ? (double)p->sinks[h] : -INFINITY,
                    room->weights + i * room->columns, &room->lse[i]);
    }
}

bool mha__reference_weights_kept(
    const struct mha__problem *p, int64_t b, int64_t h, int64_t i, int64_t j)
{
    if (p->dropout == 0 || p->dropout == 1) {
        return p->dropout == 0;
    }
    if (p->keep) {
        // the caller's mask has the S keys; extra ones are kept
        return j >= p->S || p->keep[((b * p->H + h) * p->T + i) * p->S + j] != 0;
    }
    const struct mha__philox counter = {{(uint32_t)(j / 4), (uint32_t)i, (uint32_t)h, (uint32_t)b}};
    const struct mha__philox random = mha__philox_at(p->seed, counter);
    return (double)random.word[j % 4] * 0x1p-32 >= p->dropout;
}
