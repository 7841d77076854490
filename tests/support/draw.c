/* SPDX-License-Identifier: Apache-2.0 */
#include "draw.h"

uint64_t draw_bits(draw *d)
{
    uint64_t z = (d->state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static double unit(draw *d)
{
    return (double)(draw_bits(d) >> 11) * 0x1p-53;
}

int64_t draw_int(draw *d, int64_t low, int64_t high)
{
    uint64_t span = (uint64_t)(high - low) + 1;
    return low + (int64_t)(draw_bits(d) % span);
}

float draw_float(draw *d, float low, float high)
{
    return (float)((double)low + ((double)high - (double)low) * unit(d));
}

int draw_chance(draw *d, double p)
{
    return unit(d) < p;
}

void draw_fill(draw *d, float *x, int64_t count, float low, float high)
{
    for (int64_t i = 0; i < count; ++i) {
        x[i] = draw_float(d, low, high);
    }
}

void draw_booleans(draw *d, uint8_t *x, int64_t count, double p)
{
    for (int64_t i = 0; i < count; ++i) {
        x[i] = draw_chance(d, p) ? (uint8_t)draw_int(d, 1, 255) : 0;
    }
}
