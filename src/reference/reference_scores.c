/* SPDX-License-Identifier: Apache-2.0 */
#include "reference/reference_parts.h"

#include <float.h>
#include <math.h>

/* A score beyond float32 is infinite, as it is in every forward. */
static double in_float32(double s)
{
    return fabs(s) > (double)FLT_MAX ? copysign(INFINITY, s) : s;
}

/* s0 = scale <q_i, k_j>, at every cell */
static void scale_stage(const struct mha__problem *p, int64_t h, struct mha__reference_room *room)
{
    const int64_t g = h / (p->H / p->G);
    const double scale = (double)(p->head_scales ? p->head_scales[h] : p->scale);
    for (int64_t i = 0; i < p->T; i++) {
        for (int64_t j = 0; j < room->columns; j++) {
            const double *q = room->q + (i * p->H + h) * p->D;
            const double *k = room->k + (j * p->G + g) * p->D;
            double dot = 0;
            for (int64_t d = 0; d < p->D; d++) {
                dot += q[d] * k[d];
            }
            room->scores[i * room->columns + j] = in_float32(scale * dot);
        }
    }
}

/* s1 = cap > 0 ? cap tanh(s0 / cap) : s0 */
static void cap_stage(const struct mha__problem *p, int64_t h, struct mha__reference_room *room)
{
    const double cap = (double)(p->head_softcaps ? p->head_softcaps[h] : p->softcap);
    for (int64_t n = 0; n < p->T * room->columns && cap > 0; n++) {
        room->scores[n] = cap * tanh(room->scores[n] / cap);
    }
}

/* The given slope, or n = 2^floor(log2 H): 2^(-8(h+1)/n) for h < n, else 2^(-4(2(h-n)+1)/n). */
static float slope_of(const struct mha__problem *p, int64_t h)
{
    if (p->slopes) {
        return p->slopes[h];
    }
    int64_t n = 1;
    while (2 * n <= p->H) {
        n *= 2;
    }
    const double exponent =
        h < n ? -8.0 * (double)(h + 1) / (double)n : -4.0 * (double)(2 * (h - n) + 1) / (double)n;
    return (float)exp2(exponent);
}

/* s2 = s1 + bias[b,h,i,j] ... - slope[h] |i + off[b] - j|, term after term in float32: -1e9 is a
 * number, beside which a score may round away. */
static void
bias_stage(const struct mha__problem *p, int64_t b, int64_t h, struct mha__reference_room *room)
{
    const float slope = p->alibi ? slope_of(p, h) : 0;
    for (int64_t i = 0; i < p->T && (p->alibi || p->biases > 0); i++) {
        for (int64_t j = 0; j < p->S; j++) {
            double *score = &room->scores[i * room->columns + j];
            float s = (float)*score;
            for (int64_t n = 0; n < p->biases; n++) {
                const struct mha__bias *bias = &p->bias[n];
                if (j < bias->keys) {
                    s += bias->data[b * bias->stride[0] + h * bias->stride[1] +
                                    i * bias->stride[2] + j];
                }
            }
            if (p->alibi) {
                const int64_t distance = mha__reference_mask_query_position(p, b, i) -
                                         mha__reference_mask_key_position(p, b, j);
                s -= slope * (float)(distance < 0 ? -distance : distance);
            }
            *score = (double)s;
        }
    }
}

/* s3 = callback(s2), the S keys of a head as one tile */
static void
callback_stage(const struct mha__problem *p, int64_t b, int64_t h, struct mha__reference_room *room)
{
    if (!p->score_callback || p->S == 0) {
        return;
    }
    for (int64_t i = 0; i < p->T; i++) {
        for (int64_t j = 0; j < p->S; j++) {
            room->tile[i * p->S + j] = (float)room->scores[i * room->columns + j];
        }
    }
    p->score_callback(p->score_user, b, h, 0, p->T, 0, p->S, room->tile, p->S);
    for (int64_t i = 0; i < p->T; i++) {
        for (int64_t j = 0; j < p->S; j++) {
            room->scores[i * room->columns + j] = (double)room->tile[i * p->S + j];
        }
    }
}

/* A raw stage [B,H,T,S]; masked: -infinity at hidden keys. */
static void store(const struct mha__problem *p,
                  const struct mha__rows *to,
                  int64_t b,
                  int64_t h,
                  const struct mha__reference_room *room,
                  bool masked)
{
    for (int64_t i = 0; i < p->T && to->data; i++) {
        float *row = to->data + b * to->stride[0] + h * to->stride[1] + i * to->stride[2];
        for (int64_t j = 0; j < p->S; j++) {
            const int64_t cell = i * room->columns + j;
            row[j] = masked && !room->allowed[cell] ? -INFINITY : (float)room->scores[cell];
        }
    }
}

void mha__reference_scores(const struct mha__problem *p,
                           int64_t b,
                           int64_t h,
                           struct mha__reference_room *room)
{
    for (int64_t i = 0; i < p->T; i++) {
        for (int64_t j = 0; j < room->columns; j++) {
            room->allowed[i * room->columns + j] = mha__reference_mask_allowed(p, b, h, i, j);
        }
    }
    scale_stage(p, h, room);
    store(p, &p->scores_scaled, b, h, room, false);
    cap_stage(p, h, room);
    store(p, &p->scores_capped, b, h, room, false);
    bias_stage(p, b, h, room);
    callback_stage(p, b, h, room);
    store(p, &p->scores_biased, b, h, room, true);
}
