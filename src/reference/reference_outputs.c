/* SPDX-License-Identifier: Apache-2.0 */
#include "reference/reference_parts.h"

#include <math.h>
#include <string.h>

static float *row_of(const struct mha__rows *to, int64_t b, int64_t h, int64_t i)
{
    return to->data + b * to->stride[0] + h * to->stride[1] + i * to->stride[2];
}

/* -sum p ln p */
static double entropy_of(const double *weights, int64_t n)
{
    double sum = 0;
    for (int64_t j = 0; j < n; j++) {
        sum += weights[j] == 0 ? 0 : -weights[j] * log(weights[j]);
    }
    return sum;
}

/* The largest p; NaN in a row of NaN. */
static double largest_of(const double *weights, int64_t n)
{
    double largest = 0;
    for (int64_t j = 0; j < n; j++) {
        if (weights[j] > largest || isnan(weights[j])) {
            largest = weights[j];
        }
    }
    return largest;
}

/* The k largest weights of visible keys, falling, of equal ones the lowest key first. */
static void top_of_row(const struct mha__problem *p,
                       int64_t b,
                       int64_t h,
                       int64_t i,
                       const struct mha__reference_room *room)
{
    const double *weights = room->weights + i * room->columns;
    const bool *allowed = room->allowed + i * room->columns;
    const int64_t at = ((b * p->H + h) * p->T + i) * p->top;
    memset(room->taken, 0, (size_t)room->columns * sizeof *room->taken);
    for (int64_t n = 0; n < p->top; n++) {
        int64_t best = -1;
        for (int64_t j = 0; j < room->columns; j++) {
            if (allowed[j] && !room->taken[j] && (best < 0 || weights[j] > weights[best])) {
                best = j;
            }
        }
        if (best >= 0) {
            room->taken[best] = true;
        }
        p->top_keys[at + n] = best;
        if (p->top_weights) {
            p->top_weights[at + n] = best < 0 ? 0 : (float)weights[best];
        }
    }
}

/* The weights of a head as one tile, to memory or to the callback. */
static void show_weights(const struct mha__problem *p,
                         int64_t b,
                         int64_t h,
                         const struct mha__reference_room *room)
{
    for (int64_t n = 0; n < p->T * room->columns; n++) {
        room->tile[n] = (float)room->weights[n];
    }
    for (int64_t i = 0; i < p->T && p->weights.data; i++) {
        memcpy(row_of(&p->weights, b, h, i), room->tile + i * room->columns,
               (size_t)room->columns * sizeof(float));
    }
    if (p->weights_callback && room->columns > 0) {
        p->weights_callback(p->weights_user, b, h, 0, p->T, 0, room->columns, room->tile,
                            room->columns);
    }
}

void mha__reference_outputs_of_head(const struct mha__problem *p,
                                    int64_t b,
                                    int64_t h,
                                    struct mha__reference_room *room)
{
    const int64_t n = room->columns;
    memset(room->mass, 0, (size_t)n * sizeof *room->mass);
    for (int64_t i = 0; i < p->T; i++) {
        const double *weights = room->weights + i * n;
        for (int64_t j = 0; j < n; j++) {
            room->mass[j] += weights[j];         // sum_i p
            room->total[j] += weights[j];        // sum_h sum_i p
            room->mean[i * n + j] += weights[j]; // sum_h p, divided by H at the end
        }
        for (int64_t j = 0; j < n && p->weights_dropped.data; j++) {
            const bool kept = mha__reference_weights_kept(p, b, h, i, j);
            row_of(&p->weights_dropped, b, h, i)[j] =
                kept ? (float)(weights[j] / (1 - p->dropout)) : 0;
        }
        if (p->lse.data) {
            *row_of(&p->lse, b, h, i) = (float)room->lse[i];
        }
        if (p->entropy.data) {
            *row_of(&p->entropy, b, h, i) = (float)entropy_of(weights, n);
        }
        if (p->maximum.data) {
            *row_of(&p->maximum, b, h, i) = (float)largest_of(weights, n);
        }
        if (p->top > 0) {
            top_of_row(p, b, h, i, room);
        }
    }
    for (int64_t j = 0; j < n && p->key_mass.data; j++) {
        row_of(&p->key_mass, b, h, 0)[j] = (float)room->mass[j];
    }
    show_weights(p, b, h, room);
}

void mha__reference_outputs_of_batch_row(const struct mha__problem *p,
                                         int64_t b,
                                         const struct mha__reference_room *room)
{
    const int64_t n = room->columns;
    for (int64_t i = 0; i < p->T && p->weights_mean.data; i++) {
        for (int64_t j = 0; j < n; j++) {
            row_of(&p->weights_mean, b, 0, i)[j] = (float)(room->mean[i * n + j] / (double)p->H);
        }
    }
    for (int64_t j = 0; j < n && p->key_mass_total.data; j++) {
        row_of(&p->key_mass_total, b, 0, 0)[j] = (float)room->total[j];
    }
}
