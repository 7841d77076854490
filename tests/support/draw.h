/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_DRAW_H
#define TESTS_DRAW_H

/* Random numbers of the tests: splitmix64, so a seed gives the same test on every machine. */
#include <stdint.h>

typedef struct draw {
    uint64_t state;
} draw;

uint64_t draw_bits(draw *d);
/* Whole numbers low .. high, both included. */
int64_t draw_int(draw *d, int64_t low, int64_t high);
/* Uniform in [low, high). */
float draw_float(draw *d, float low, float high);
/* 1 with probability p. */
int draw_chance(draw *d, double p);
void draw_fill(draw *d, float *x, int64_t count, float low, float high);
/* Bytes for a boolean mask: 0, or any of 1 .. 255 with probability p. */
void draw_booleans(draw *d, uint8_t *x, int64_t count, double p);

#endif
