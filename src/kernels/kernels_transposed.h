/* SPDX-License-Identifier: Apache-2.0
 *
 * The transposed form, queries side by side in vectors: part of kernels_body.h, for any width. Of the including
 * file they need, beside what stands there:
 *
 *   T_ROWS, T_VECTORS   keys, or features of values, by vectors of queries that fit the registers
 *
 * T_VECTORS is 3 or 4. T_ROWS x T_VECTORS sums are more than two units of four steps have in flight (8), and want T_ROWS +
 * T_VECTORS loads: 7 for 12 multiply-adds with 4 x 3, where 6 x 2 wants 8 and 64 features are no whole panels of 6.
 */

_Static_assert(T_VECTORS *W <= 64, "a query has a bit in a word of a mask");
_Static_assert(W_T % T_ROWS == 0 && 32 % T_ROWS == 0, "panels of rows divide blocks and bands");

/*
 * T_ROWS x vectors sums over `depth` in registers; `vectors` is a constant wherever this is inlined. a is a
 * panel [depth][T_ROWS], b [depth][ldb] and c [T_ROWS][ldb] whole rows of queries. c = shrink c + sum, or
 * c = sum if shrink is NULL; most[v], if it is wanted, becomes the larger of itself and all of c.
 */
static inline __attribute__((always_inline)) void transposed_block(int vectors,
                                                                   int64_t depth,
                                                                   const float *a,
                                                                   const float *b,
                                                                   int64_t ldb,
                                                                   const float *shrink,
                                                                   float *c,
                                                                   vec *most)
{
    vec sum[T_ROWS][T_VECTORS];
    UNROLL
    for (int r = 0; r < T_ROWS; r++) {
        UNROLL
        for (int v = 0; v < vectors; v++) {
            sum[r][v] = v_set1(0.0f);
        }
    }
    for (const float *end = a + depth * T_ROWS; a < end; a += T_ROWS, b += ldb) {
        vec row[T_VECTORS];
        UNROLL
        for (int v = 0; v < vectors; v++) {
            row[v] = v_load(b + v * W);
        }
        UNROLL
        for (int r = 0; r < T_ROWS; r++) {
            const vec x = v_set1(a[r]);
            UNROLL
            for (int v = 0; v < vectors; v++) {
                sum[r][v] = v_fma(x, row[v], sum[r][v]);
            }
        }
    }
    UNROLL
    for (int v = 0; v < vectors; v++) {
        UNROLL
        for (int r = 0; r < T_ROWS; r++) {
            float *to = c + r * ldb + v * W;
            v_store(to, shrink ? v_fma(v_load(shrink + v * W), v_load(to), sum[r][v]) : sum[r][v]);
            if (most) {
                most[v] = v_max(sum[r][v], most[v]);
            }
        }
    }
}

/* One of the functions below for as many vectors as n queries are: the number is a constant in each. */
#if T_VECTORS == 3
#define FOR_VECTORS(n, call) ((n) == W ? call(1) : (n) == 2 * W ? call(2) : call(3))
#elif T_VECTORS == 4
#define FOR_VECTORS(n, call)                                                                       \
    ((n) == W ? call(1) : (n) == 2 * W ? call(2) : (n) == 3 * W ? call(3) : call(4))
#endif

static inline __attribute__((always_inline)) void transposed_scores_by(
    int vectors, int64_t keys, int64_t depth, const float *k, const float *q, float *s, float *most)
{
    const int64_t n = (int64_t)vectors * W;
    vec m[T_VECTORS];
    UNROLL
    for (int v = 0; v < vectors; v++) {
        m[v] = v_load(most + v * W);
    }
    int64_t j = 0;
    for (; j + T_ROWS <= keys; j += T_ROWS) {
        transposed_block(vectors, depth, k + j * depth, q, n, NULL, s + j * n, m);
    }
    if (j < keys) {
        transposed_block(vectors, depth, k + j * depth, q, n, NULL, s + j * n, NULL);
    }
    for (; j < keys; j++) {
        for (int v = 0; v < vectors; v++) {
            m[v] = v_max(v_load(s + j * n + v * W), m[v]);
        }
    }
    UNROLL
    for (int v = 0; v < vectors; v++) {
        v_store(most + v * W, m[v]);
    }
}

static void transposed_scores(
    int64_t keys, int64_t n, int64_t depth, const float *k, const float *q, float *s, float *most)
{
#define CALL(vectors) transposed_scores_by(vectors, keys, depth, k, q, s, most)
    FOR_VECTORS(n, CALL);
#undef CALL
}

static void transposed_hide(int64_t keys, int64_t n, const uint64_t *visible, float *s, float *most)
{
    const uint32_t all = (uint32_t)((UINT64_C(1) << W) - 1);
    const vec least = v_set1(-INFINITY);
    for (int64_t i = 0; i < n; i += W) {
        vec m = v_load(most + i);
        for (int64_t j = 0; j < keys; j++) {
            float *at = s + j * n + i;
            const uint32_t bits = visible ? (uint32_t)(visible[j] >> i) & all : all;
            vec x = v_load(at);
            if (bits != all) {
                x = v_select(v_mask(bits), x, least);
                v_store(at, x);
            }
            m = v_max(x, m);
        }
        v_store(most + i, m);
    }
}

/*
 * The exponential is that of v_exp_clamped, without LOG2_E_REST: its error grows by 1.3e-8 |x|, a fifth of
 * what rounding a score of that size to float32 costs. SUM_KEYS are summed apart: the rounding of one long chain of
 * additions may lean to one side; bands begin at multiples of it, so the bits do not depend on where. One step for all vectors of a key, then the next:
 * each of them waits for the one before it, and a CPU looks only so far ahead for other work.
 */
#define EACH(step)                                                                                 \
    UNROLL                                                                                         \
    for (int v = 0; v < vectors; v++) {                                                            \
        step;                                                                                      \
    }

enum { SUM_KEYS = 32 };

static inline __attribute__((always_inline)) void transposed_softmax_by(int vectors,
                                                                        int64_t keys,
                                                                        float *s,
                                                                        const float *most,
                                                                        float *row_max,
                                                                        float *row_sum,
                                                                        float *shrink)
{
    const int64_t n = (int64_t)vectors * W;
    const vec least = v_set1(-INFINITY);
    const vec zero = v_set1(0.0f);
    vec base[T_VECTORS];
    UNROLL
    for (int v = 0; v < vectors; v++) {
        const vec old = v_load(row_max + v * W);
        const vec m = v_max(v_load(most + v * W), old);
        /* -infinity - -infinity would be NaN: a row without a finite score subtracts 0. */
        base[v] = v_select(v_less(least, m), m, zero);
        v_store(row_max + v * W, m);
        v_store(shrink + v * W, v_exp(v_select(v_less(least, old), v_sub(old, base[v]), zero)));
    }
    /* l = shrink l + sum, part by part */
    UNROLL
    for (int v = 0; v < vectors; v++) {
        float *l = row_sum + v * W;
        v_store(l, v_mul(v_load(l), v_load(shrink + v * W)));
    }
    for (int64_t j = 0; j < keys;) {
        const int64_t end = keys - j < SUM_KEYS ? keys : j + SUM_KEYS;
        vec sum[T_VECTORS];
        EACH(sum[v] = zero)
        for (; j < end; j++) {
            float *at = s + j * n;
            vec x[T_VECTORS];
            vec shifted[T_VECTORS];
            vec p[T_VECTORS];
            EACH(x[v] = v_clamp(v_sub(v_load(at + v * W), base[v])))
            EACH(shifted[v] = v_fma(x[v], v_set1(LOG2_E), v_set1(ROUNDER)))
            EACH(p[v] = v_sub(shifted[v], v_set1(ROUNDER)))
            EACH(x[v] = v_fms(x[v], v_set1(LOG2_E), p[v]))
            EACH(p[v] = v_fma(v_set1(EXP2_6), x[v], v_set1(EXP2_5)))
            EACH(p[v] = v_fma(p[v], x[v], v_set1(EXP2_4)))
            EACH(p[v] = v_fma(p[v], x[v], v_set1(EXP2_3)))
            EACH(p[v] = v_fma(p[v], x[v], v_set1(EXP2_2)))
            EACH(p[v] = v_fma(p[v], x[v], v_set1(EXP2_1)))
            EACH(p[v] = v_fma(p[v], x[v], v_set1(1.0f)))
            EACH(p[v] = v_mul(p[v], v_shift_23(shifted[v])))
            EACH(v_store(at + v * W, p[v]))
            EACH(sum[v] = v_add(sum[v], p[v]))
        }
        EACH(v_store(row_sum + v * W, v_add(v_load(row_sum + v * W), sum[v])))
    }
}

static void transposed_softmax(int64_t keys,
                               int64_t n,
                               float *s,
                               const float *most,
                               float *row_max,
                               float *row_sum,
                               float *shrink)
{
#define CALL(vectors) transposed_softmax_by(vectors, keys, s, most, row_max, row_sum, shrink)
    FOR_VECTORS(n, CALL);
#undef CALL
}

static inline __attribute__((always_inline)) void transposed_values_by(int vectors,
                                                                       int64_t keys,
                                                                       int64_t features,
                                                                       const float *v,
                                                                       int64_t stride,
                                                                       const float *p,
                                                                       const float *shrink,
                                                                       float *o)
{
    const int64_t n = (int64_t)vectors * W;
    for (int64_t d = 0; d < features; d += T_ROWS, v += stride) {
        transposed_block(vectors, keys, v, p, n, shrink, o + d * n, NULL);
    }
}

static void transposed_values(int64_t keys,
                              int64_t n,
                              int64_t features,
                              const float *v,
                              int64_t stride,
                              const float *p,
                              const float *shrink,
                              float *o)
{
#define CALL(vectors) transposed_values_by(vectors, keys, features, v, stride, p, shrink, o)
    FOR_VECTORS(n, CALL);
#undef CALL
}
