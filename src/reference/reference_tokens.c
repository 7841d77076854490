/* SPDX-License-Identifier: Apache-2.0 */
#include "reference/reference_parts.h"

#include <mha/config.h>

#include <math.h>

/* W[o, e] lies at [e * step]: weights are stored as tiles of `width` outputs, the last one narrower. */
static const float *weight_row(const struct mha__weight *w, int64_t o, int64_t *step)
{
    const int64_t first = o / w->width * w->width;
    *step = w->out - first < w->width ? w->out - first : w->width;
    return w->tiles + first * w->in + (o - first);
}

/* y[t, :] = W x[t, :] + bias over the heads of one batch row; without a weight y = x. */
static void read_side(const struct mha__weight *w,
                      const struct mha__input *x,
                      int64_t b,
                      int64_t tokens,
                      int64_t heads,
                      int64_t size,
                      double *y)
{
    for (int64_t t = 0; t < tokens; t++) {
        const float *row = x->data + b * x->batch + t * x->token;
        for (int64_t o = 0; o < heads * size; o++) {
            double sum = 0;
            if (w->tiles) {
                int64_t step = 0;
                const float *weight = weight_row(w, o, &step);
                for (int64_t e = 0; e < w->in; e++) {
                    sum += (double)weight[e * step] * (double)row[e];
                }
                sum += w->bias ? (double)w->bias[o] : 0;
            } else {
                sum = (double)row[o / size * x->head + o % size];
            }
            y[t * heads * size + o] = sum;
        }
    }
}

/* Pair n of the first rotary_size features turns by position * base^(-2n / rotary_size). */
static void
turn(const struct mha__problem *p, double *x, int64_t heads, int64_t token, int64_t position)
{
    const int64_t half = p->rotary_size / 2;
    const bool halves = p->rotary_pairing == MHA_ROTARY_HALVES;
    for (int64_t n = 0; n < half; n++) {
        const double angle =
            (double)position * pow(p->rotary_base, -2.0 * (double)n / (double)p->rotary_size);
        const int64_t one = halves ? n : 2 * n;
        const int64_t two = halves ? n + half : 2 * n + 1;
        for (int64_t h = 0; h < heads; h++) {
            double *head = x + (token * heads + h) * p->D;
            const double a = head[one];
            const double c = head[two];
            head[one] = a * cos(angle) - c * sin(angle);
            head[two] = a * sin(angle) + c * cos(angle);
        }
    }
}

static void turn_all(const struct mha__problem *p, int64_t b, struct mha__reference_room *room)
{
    const int64_t row = p->ids_batch == 1 ? 0 : b;
    for (int64_t i = 0; i < p->T; i++) {
        turn(p, room->q, p->H, i,
             p->query_ids ? p->query_ids[row * p->T + i]
                          : mha__reference_mask_query_position(p, b, i));
    }
    for (int64_t j = 0; j < p->S; j++) {
        turn(p, room->k, p->G, j,
             p->key_ids ? p->key_ids[row * p->S + j] : mha__reference_mask_key_position(p, b, j));
    }
}

/* K' = [K; bias_k; 0] */
static void append(double *x, int64_t at, int64_t n, const float *extra)
{
    for (int64_t i = 0; i < n; i++) {
        x[at + i] = extra ? (double)extra[i] : 0;
    }
}

void mha__reference_tokens_read(const struct mha__problem *p,
                                int64_t b,
                                struct mha__reference_room *room)
{
    // Q = x_q Wq^T + bq    K = x_k Wk^T + bk    V = x_v Wv^T + bv
    read_side(&p->weight[MHA_PROJECTION_Q], &p->query, b, p->T, p->H, p->D, room->q);
    read_side(&p->weight[MHA_PROJECTION_K], &p->key, b, p->S, p->G, p->D, room->k);
    read_side(&p->weight[MHA_PROJECTION_V], &p->value, b, p->S, p->G, p->Dv, room->v);
    if (p->rotary_size > 0) {
        turn_all(p, b, room);
    }
    for (int64_t n = 0; n < p->extra; n++) {
        append(room->k, (p->S + n) * p->G * p->D, p->G * p->D, p->extra_key[n]);
        append(room->v, (p->S + n) * p->G * p->Dv, p->G * p->Dv, p->extra_value[n]);
    }
}

void mha__reference_tokens_write(const struct mha__problem *p,
                                 int64_t b,
                                 const struct mha__reference_room *room)
{
    const struct mha__weight *w = &p->weight[MHA_PROJECTION_OUT];
    const int64_t features = p->H * p->Dv;
    for (int64_t i = 0; i < p->T && p->out.data; i++) {
        const double *o = room->o + i * features;
        float *row = p->out.data + b * p->out.batch + i * p->out.token;
        // out = concat_h(o) Wo^T + bo; 0 at padded queries
        const bool real = mha__reference_mask_real(p, b, i);
        for (int64_t c = 0; c < features && !w->tiles; c++) {
            row[c / p->Dv * p->out.head + c % p->Dv] = real ? (float)o[c] : 0;
        }
        for (int64_t e = 0; e < p->Eo && w->tiles; e++) {
            double sum = 0;
            int64_t step = 0;
            const float *weight = weight_row(w, e, &step);
            for (int64_t c = 0; c < features; c++) {
                sum += (double)weight[c * step] * o[c];
            }
            sum += w->bias ? (double)w->bias[e] : 0;
            row[e] = real ? (float)sum : 0;
        }
    }
}
