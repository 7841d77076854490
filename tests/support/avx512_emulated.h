/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_AVX512_EMULATED_H
#define TESTS_AVX512_EMULATED_H

/*
 * The AVX-512 intrinsics that the kernel set uses, written out in C. Compiled before kernels_avx512.c it
 * lets a CPU without AVX-512 run that very source: its logic is tested everywhere, only the instructions
 * themselves need the CPU. One that is missing here is a compile error, never a silent hole.
 */
#include <immintrin.h>
#include <math.h>
#include <stdint.h>

typedef struct {
    float lane[16];
} emulated_512;

typedef struct {
    int32_t lane[16];
} emulated_512i;

typedef uint16_t emulated_mask16;

#define EMULATE_2(name, expression)                                                                \
    static inline emulated_512 name(emulated_512 a, emulated_512 b)                                \
    {                                                                                              \
        emulated_512 r;                                                                            \
        for (int i = 0; i < 16; i++) {                                                             \
            const float x = a.lane[i];                                                             \
            const float y = b.lane[i];                                                             \
            r.lane[i] = (expression);                                                              \
        }                                                                                          \
        return r;                                                                                  \
    }

EMULATE_2(emulated_add, x + y)
EMULATE_2(emulated_sub, x - y)
EMULATE_2(emulated_mul, x *y)
EMULATE_2(emulated_max, x > y ? x : y) /* the second where one is NaN, as the instruction does */

static inline emulated_512 emulated_set1(float x)
{
    emulated_512 r;
    for (int i = 0; i < 16; i++) {
        r.lane[i] = x;
    }
    return r;
}

static inline emulated_512 emulated_load(const float *p)
{
    emulated_512 r;
    for (int i = 0; i < 16; i++) {
        r.lane[i] = p[i];
    }
    return r;
}

static inline void emulated_store(float *p, emulated_512 x)
{
    for (int i = 0; i < 16; i++) {
        p[i] = x.lane[i];
    }
}

static inline emulated_512 emulated_fmadd(emulated_512 a, emulated_512 b, emulated_512 c)
{
    for (int i = 0; i < 16; i++) {
        c.lane[i] = fmaf(a.lane[i], b.lane[i], c.lane[i]);
    }
    return c;
}

static inline emulated_512 emulated_fmsub(emulated_512 a, emulated_512 b, emulated_512 c)
{
    for (int i = 0; i < 16; i++) {
        c.lane[i] = fmaf(a.lane[i], b.lane[i], -c.lane[i]);
    }
    return c;
}

static inline emulated_512 emulated_round(emulated_512 x)
{
    for (int i = 0; i < 16; i++) {
        x.lane[i] = nearbyintf(x.lane[i]);
    }
    return x;
}

/* NaN and what does not fit become INT32_MIN, as the instruction has it. */
static inline emulated_512i emulated_to_int(emulated_512 x)
{
    emulated_512i r;
    for (int i = 0; i < 16; i++) {
        const float y = nearbyintf(x.lane[i]);
        r.lane[i] = y >= -0x1p31f && y < 0x1p31f ? (int32_t)y : INT32_MIN;
    }
    return r;
}

static inline emulated_512i emulated_set1_int(int32_t x)
{
    emulated_512i r;
    for (int i = 0; i < 16; i++) {
        r.lane[i] = x;
    }
    return r;
}

static inline emulated_512i emulated_add_int(emulated_512i a, emulated_512i b)
{
    for (int i = 0; i < 16; i++) {
        a.lane[i] = (int32_t)((uint32_t)a.lane[i] + (uint32_t)b.lane[i]);
    }
    return a;
}

static inline emulated_512i emulated_shift_left(emulated_512i x, unsigned bits)
{
    for (int i = 0; i < 16; i++) {
        x.lane[i] = (int32_t)((uint32_t)x.lane[i] << bits);
    }
    return x;
}

static inline emulated_512 emulated_as_float(emulated_512i x)
{
    union {
        emulated_512i i;
        emulated_512 f;
    } u = {.i = x};
    return u.f;
}

static inline emulated_512 emulated_blend(emulated_mask16 m, emulated_512 a, emulated_512 b)
{
    for (int i = 0; i < 16; i++) {
        a.lane[i] = (m >> i & 1) ? b.lane[i] : a.lane[i];
    }
    return a;
}

static inline emulated_mask16 emulated_equal(emulated_512 a, emulated_512 b)
{
    unsigned m = 0;
    for (int i = 0; i < 16; i++) {
        m |= (unsigned)(a.lane[i] == b.lane[i]) << i;
    }
    return (emulated_mask16)m;
}

#define __m512                              emulated_512
#define __m512i                             emulated_512i
#define __mmask16                           emulated_mask16
#define _mm512_set1_ps                      emulated_set1
#define _mm512_loadu_ps                     emulated_load
#define _mm512_storeu_ps                    emulated_store
#define _mm512_add_ps                       emulated_add
#define _mm512_sub_ps                       emulated_sub
#define _mm512_mul_ps                       emulated_mul
#define _mm512_max_ps                       emulated_max
#define _mm512_fmadd_ps                     emulated_fmadd
#define _mm512_fmsub_ps                     emulated_fmsub
#define _mm512_roundscale_ps(x, mode)       emulated_round(x)
#define _mm512_cvtps_epi32                  emulated_to_int
#define _mm512_set1_epi32                   emulated_set1_int
#define _mm512_add_epi32                    emulated_add_int
#define _mm512_slli_epi32                   emulated_shift_left
#define _mm512_castsi512_ps                 emulated_as_float
#define _mm512_mask_blend_ps                emulated_blend
#define _mm512_setzero_ps()                 emulated_set1(0.0f)
#define _mm512_cmp_ps_mask(a, b, predicate) emulated_equal(a, b) /* only _CMP_EQ_OQ is used */

/* A name of its own, beside the set that the library holds. */
#define mha__kernels_avx512 emulated_kernels_avx512

#endif
