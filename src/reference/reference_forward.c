/* SPDX-License-Identifier: Apache-2.0 */
#include "reference/reference_forward.h"

#include "platform/memory.h"
#include "platform/status.h"
#include "reference/reference_parts.h"

#include <string.h>

/* One block: the doubles, the floats, the bytes. NULL where memory is short. */
static void *make_room(const struct mha__problem *p, struct mha__reference_room *room)
{
    const int64_t n = room->columns = mha__reference_columns(p);
    const int64_t widest = p->H * (p->D + p->Dv);
    if (n > INT64_MAX / 64 - widest || p->T > INT64_MAX / 64 / (n + widest) ||
        n > INT64_MAX / 64 / (widest + 4)) {
        return NULL; // more bytes than there are
    }
    const int64_t head = p->T * n;
    const int64_t q = p->T * p->H * p->D;
    const int64_t k = n * p->G * p->D;
    const int64_t v = n * p->G * p->Dv;
    const int64_t o = p->T * p->H * p->Dv;
    const int64_t doubles = q + k + v + o + 3 * head + 2 * n + p->T;
    const int64_t bytes = doubles * (int64_t)sizeof(double) + head * (int64_t)sizeof(float) +
                          (head + n) * (int64_t)sizeof(bool);
    void *block = mha__memory_allocate((size_t)bytes);
    if (!block) {
        return NULL;
    }
    double *next = block;
    room->q = next;
    room->k = room->q + q;
    room->v = room->k + k;
    room->o = room->v + v;
    room->mean = room->o + o;
    room->total = room->mean + head;
    room->scores = room->total + n;
    room->weights = room->scores + head;
    room->lse = room->weights + head;
    room->mass = room->lse + p->T;
    room->tile = (float *)(room->mass + n);
    room->allowed = (bool *)(room->tile + head);
    room->taken = room->allowed + head;
    return block;
}

/* o_i = gate sum_j p_ij keep_ij / (1 - dropout) v_j: what is hidden, dropped or behind a gate of 0 is
 * not read, so it may be NaN. */
static void
sum_values(const struct mha__problem *p, int64_t b, int64_t h, struct mha__reference_room *room)
{
    const int64_t g = h / (p->H / p->G);
    const double gate = p->gates ? (double)p->gates[h] : 1;
    for (int64_t i = 0; i < p->T; i++) {
        double *o = room->o + (i * p->H + h) * p->Dv;
        memset(o, 0, (size_t)p->Dv * sizeof *o);
        for (int64_t j = 0; j < room->columns && gate != 0; j++) {
            const int64_t cell = i * room->columns + j;
            if (!room->allowed[cell] || !mha__reference_weights_kept(p, b, h, i, j)) {
                continue;
            }
            const double *v = room->v + (j * p->G + g) * p->Dv;
            const double weight = room->weights[cell] / (1 - p->dropout);
            for (int64_t d = 0; d < p->Dv; d++) {
                o[d] += gate * weight * v[d];
            }
        }
    }
}

int32_t mha__reference_forward(const struct mha__problem *p, mha_error *err)
{
    struct mha__reference_room room;
    void *block = make_room(p, &room);
    MHA_CHECK(err, block, MHA_ERROR_OUT_OF_MEMORY,
              "no memory for the reference of T = %lld queries and S = %lld keys", (long long)p->T,
              (long long)p->S);
    for (int64_t b = 0; b < p->B; b++) {
        memset(room.mean, 0, (size_t)(p->T * room.columns) * sizeof *room.mean);
        memset(room.total, 0, (size_t)room.columns * sizeof *room.total);
        mha__reference_tokens_read(p, b, &room);
        for (int64_t h = 0; h < p->H; h++) {
            mha__reference_scores(p, b, h, &room);
            mha__reference_weights(p, b, h, &room);
            sum_values(p, b, h, &room);
            mha__reference_outputs_of_head(p, b, h, &room);
        }
        mha__reference_tokens_write(p, b, &room);
        mha__reference_outputs_of_batch_row(p, b, &room);
    }
    mha__memory_release(block);
    return MHA_OK;
}
