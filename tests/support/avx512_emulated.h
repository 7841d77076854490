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
EMULATE_2(emulated_div, x / y)
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

static inline emulated_512i emulated_set1_int(int32_t x)
{
    emulated_512i r;
    for (int i = 0; i < 16; i++) {
        r.lane[i] = x;
    }
    return r;
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

static inline emulated_mask16 emulated_compare(emulated_512 a, emulated_512 b, int predicate)
{
    unsigned m = 0;
    for (int i = 0; i < 16; i++) {
        const int hit = predicate == _CMP_LT_OQ ? a.lane[i] < b.lane[i] : a.lane[i] == b.lane[i];
        m |= (unsigned)hit << i;
    }
    return (emulated_mask16)m;
}

static inline emulated_512i emulated_as_int(emulated_512 x)
{
    union {
        emulated_512 f;
        emulated_512i i;
    } u = {.f = x};
    return u.i;
}

static inline emulated_512i emulated_and(emulated_512i a, emulated_512i b)
{
    for (int i = 0; i < 16; i++) {
        a.lane[i] &= b.lane[i];
    }
    return a;
}

static inline emulated_512i emulated_or(emulated_512i a, emulated_512i b)
{
    for (int i = 0; i < 16; i++) {
        a.lane[i] |= b.lane[i];
    }
    return a;
}

static inline emulated_512 emulated_abs(emulated_512 x)
{
    for (int i = 0; i < 16; i++) {
        x.lane[i] = fabsf(x.lane[i]);
    }
    return x;
}

/* Of every four numbers of a and of b the first two by turns, or the last two. */
static inline emulated_512 emulated_unpack(emulated_512 a, emulated_512 b, int last)
{
    emulated_512 r;
    for (int i = 0; i < 16; i += 4) {
        for (int half = 0; half < 2; half++) {
            r.lane[i + 2 * half] = a.lane[i + 2 * last + half];
            r.lane[i + 2 * half + 1] = b.lane[i + 2 * last + half];
        }
    }
    return r;
}

static inline emulated_512 emulated_unpacklo(emulated_512 a, emulated_512 b)
{
    return emulated_unpack(a, b, 0);
}

static inline emulated_512 emulated_unpackhi(emulated_512 a, emulated_512 b)
{
    return emulated_unpack(a, b, 1);
}

/* Of every four numbers two of a, then two of b, each picked by two bits of `pick`. */
static inline emulated_512 emulated_shuffle(emulated_512 a, emulated_512 b, int pick)
{
    emulated_512 r;
    for (int i = 0; i < 16; i += 4) {
        for (int n = 0; n < 4; n++) {
            r.lane[i + n] = (n < 2 ? a : b).lane[i + (pick >> (2 * n) & 3)];
        }
    }
    return r;
}

static inline __m256 emulated_half(emulated_512 x, int half)
{
    return _mm256_loadu_ps(x.lane + 8 * half);
}

static inline __m256 emulated_first_half(emulated_512 x)
{
    return emulated_half(x, 0);
}

/* Halves to halves, as compilers expand the reductions. */
static inline float emulated_reduce_add(emulated_512 x)
{
    for (int half = 8; half > 0; half /= 2) {
        for (int i = 0; i < half; i++) {
            x.lane[i] += x.lane[i + half];
        }
    }
    return x.lane[0];
}

static inline float emulated_reduce_max(emulated_512 x)
{
    for (int i = 1; i < 16; i++) {
        x.lane[0] = x.lane[i] > x.lane[0] ? x.lane[i] : x.lane[0];
    }
    return x.lane[0];
}

/* Some are macros of the real header, depending on compiler and optimisation. */
#undef _mm512_set1_ps
#undef _mm512_loadu_ps
#undef _mm512_storeu_ps
#undef _mm512_add_ps
#undef _mm512_sub_ps
#undef _mm512_mul_ps
#undef _mm512_div_ps
#undef _mm512_abs_ps
#undef _mm512_max_ps
#undef _mm512_fmadd_ps
#undef _mm512_fmsub_ps
#undef _mm512_reduce_max_ps
#undef _mm512_reduce_add_ps
#undef _mm512_set1_epi32
#undef _mm512_and_epi32
#undef _mm512_or_epi32
#undef _mm512_slli_epi32
#undef _mm512_castsi512_ps
#undef _mm512_castps_si512
#undef _mm512_mask_blend_ps
#undef _mm512_setzero_ps
#undef _mm512_cmp_ps_mask
#undef _mm512_unpacklo_ps
#undef _mm512_unpackhi_ps
#undef _mm512_shuffle_ps
#undef _mm512_castps512_ps256
#undef _mm512_extractf32x8_ps

#define __m512               emulated_512
#define __m512i              emulated_512i
#define __mmask16            emulated_mask16
#define _mm512_set1_ps       emulated_set1
#define _mm512_loadu_ps      emulated_load
#define _mm512_storeu_ps     emulated_store
#define _mm512_add_ps        emulated_add
#define _mm512_sub_ps        emulated_sub
#define _mm512_mul_ps        emulated_mul
#define _mm512_div_ps        emulated_div
#define _mm512_abs_ps        emulated_abs
#define _mm512_max_ps        emulated_max
#define _mm512_fmadd_ps      emulated_fmadd
#define _mm512_fmsub_ps      emulated_fmsub
#define _mm512_reduce_max_ps emulated_reduce_max
#define _mm512_reduce_add_ps emulated_reduce_add
#define _mm512_set1_epi32    emulated_set1_int
#define _mm512_and_epi32     emulated_and
#define _mm512_or_epi32      emulated_or
#define _mm512_slli_epi32    emulated_shift_left
#define _mm512_castsi512_ps  emulated_as_float
#define _mm512_castps_si512  emulated_as_int
#define _mm512_mask_blend_ps emulated_blend
#define _mm512_setzero_ps()  emulated_set1(0.0f)
#define _mm512_cmp_ps_mask   emulated_compare /* _CMP_LT_OQ and _CMP_EQ_OQ are used */

#define _mm512_unpacklo_ps     emulated_unpacklo
#define _mm512_unpackhi_ps     emulated_unpackhi
#define _mm512_shuffle_ps      emulated_shuffle
#define _mm512_castps512_ps256 emulated_first_half
#define _mm512_extractf32x8_ps emulated_half
#define v_keep(x)              ((void)(x))

/* A name of its own, beside the set that the library holds. */
#define mha__kernels_avx512 emulated_kernels_avx512

#endif
