/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of few rows with a matrix that is read in place, once: part of kernels_body.h, for any width. Of the
 * including file they need, beside what stands there:
 *
 *   v_store_sums(to, a, b, c, d)   to[0 .. 3] = the sums of four vectors
 *   FEW_ROWS                       rows of few_dots that share four keys in registers, 2 to 4
 *   v_keep(x)                      a hint that x stays in its register
 *
 * What bounds them for a row or two is memory, so rows are asked for AHEAD bytes before they are used: past the
 * end of a page no CPU guesses.
 */
enum { AHEAD = 8192, LINE = 16 /* numbers */, FEW_MOST = 6 /* rows of few_product at once */ };

/* The last depth % W features. */
static inline void add_last_features(int rows,
                                     int keys,
                                     int64_t depth,
                                     const float *q,
                                     int64_t ldq,
                                     const float *k,
                                     int64_t ldk,
                                     float *s,
                                     int64_t lds)
{
    for (int r = 0; r < rows; r++) {
        for (int c = 0; c < keys; c++) {
            for (int64_t d = depth / W * W; d < depth; d++) {
                s[r * lds + c] += q[r * ldq + d] * k[c * ldk + d];
            }
        }
    }
}

/* rows x 4 sums over depth in registers; `rows` is a constant where this is inlined. Meanwhile 4 depth numbers from `next`
 * on are asked for, if it is not NULL. */
static inline __attribute__((always_inline)) void dots_block(int rows,
                                                             int64_t depth,
                                                             const float *q,
                                                             int64_t ldq,
                                                             const float *k,
                                                             int64_t ldk,
                                                             float *s,
                                                             int64_t lds,
                                                             const float *next)
{
    vec sum[FEW_ROWS][4];
    const float *key[4];
    UNROLL
    for (int c = 0; c < 4; c++) {
        key[c] = k + c * ldk;
        UNROLL
        for (int r = 0; r < rows; r++) {
            sum[r][c] = v_set1(0.0f);
        }
    }
    for (int64_t d = 0; d + W <= depth; d += W) {
        if (next) {
            UNROLL
            for (int i = 0; i < 4 * W; i += LINE) {
                __builtin_prefetch(next + i);
            }
            next += 4 * W;
        }
        UNROLL
        for (int c = 0; c < 4; c++) {
            vec x = v_load(key[c] + d);
            v_keep(x); // GCC would load it again for every row
            UNROLL
            for (int r = 0; r < rows; r++) {
                sum[r][c] = v_fma(v_load(q + r * ldq + d), x, sum[r][c]);
            }
        }
    }
    UNROLL
    for (int r = 0; r < rows; r++) {
        v_store_sums(s + r * lds, sum[r][0], sum[r][1], sum[r][2], sum[r][3]);
    }
    if (depth % W != 0) {
        add_last_features(rows, 4, depth, q, ldq, k, ldk, s, lds);
    }
}

/*
 * One row, four keys from their first feature to their last, one after the other: memory is read in its order, and while a
 * sum is waited for the next key is under way. STEP features at a time are unrolled.
 */
static void
one_row_dots(int64_t depth, const float *q, const float *k, int64_t ldk, int64_t ahead, float *s)
{
    enum { STEP = 64 };
    vec sum[4];
    UNROLL
    for (int c = 0; c < 4; c++) {
        const float *key = k + c * ldk;
        vec even = v_set1(0.0f);
        vec odd = even;
        int64_t d = 0;
        for (; d + STEP <= depth; d += STEP) {
            UNROLL
            for (int i = 0; i < STEP; i += LINE) {
                __builtin_prefetch(key + ahead + d + i);
            }
            UNROLL
            for (int i = 0; i < STEP; i += 2 * W) {
                even = v_fma(v_load(q + d + i), v_load(key + d + i), even);
                odd = v_fma(v_load(q + d + i + W), v_load(key + d + i + W), odd);
            }
        }
        mha__prefetch(key + ahead + d, depth - d);
        for (; d + W <= depth; d += W) {
            even = v_fma(v_load(q + d), v_load(key + d), even);
        }
        sum[c] = v_add(even, odd);
    }
    v_store_sums(s, sum[0], sum[1], sum[2], sum[3]);
    if (depth % W != 0) {
        add_last_features(1, 4, depth, q, depth, k, ldk, s, 4);
    }
}

/* One key after the last four. */
static void last_dots(
    int64_t rows, int64_t depth, const float *q, int64_t ldq, const float *k, float *s, int64_t lds)
{
    for (int64_t r = 0; r < rows; r++) {
        vec sums = v_set1(0.0f);
        for (int64_t d = 0; d + W <= depth; d += W) {
            sums = v_fma(v_load(q + r * ldq + d), v_load(k + d), sums);
        }
        s[r * lds] = v_sum(sums);
        add_last_features(1, 1, depth, q + r * ldq, ldq, k, 0, s + r * lds, lds);
    }
}

static void few_dots(int64_t rows,
                     int64_t keys,
                     int64_t depth,
                     const float *q,
                     int64_t ldq,
                     const float *k,
                     int64_t ldk,
                     float *s,
                     int64_t lds)
{
    const int64_t ahead = AHEAD / 4 / depth * ldk;
    int64_t c = 0;
    for (; rows == 1 && c + 4 <= keys; c += 4) {
        one_row_dots(depth, q, k + c * ldk, ldk, ahead, s + c);
    }
    for (; c + 4 <= keys; c += 4) {
        const float *four = k + c * ldk;
        const float *next = ldk == depth ? four + ahead : NULL; // one line after another
        for (int i = 0; i < 4 && !next; i++) {
            mha__prefetch(four + i * ldk + ahead, depth);
        }
        int64_t r = 0;
        for (; r + FEW_ROWS <= rows; r += FEW_ROWS, next = NULL) {
            dots_block(FEW_ROWS, depth, q + r * ldq, ldq, four, ldk, s + r * lds + c, lds, next);
        }
        for (; r + 2 <= rows && FEW_ROWS > 2; r += 2, next = NULL) {
            dots_block(2, depth, q + r * ldq, ldq, four, ldk, s + r * lds + c, lds, next);
        }
        if (r < rows) {
            dots_block(1, depth, q + r * ldq, ldq, four, ldk, s + r * lds + c, lds, next);
        }
    }
    for (; c < keys; c++) {
        last_dots(rows, depth, q, ldq, k + c * ldk, s + c, lds);
    }
}

/*
 * What is asked for, step by step, while rows of A walk down some columns of B. A CPU guesses nothing from narrow
 * columns, and memory is fastest in its order and if it always has something to do. So where rows of B follow each other
 * without a gap it is the next part, line after line; else the same columns of later rows. Beside the latter, Zen 3:
 * values of 8 queries a group, S = 8192, D = 64 1.2 times as fast, projections of 1 to 16 rows, E = 1024 1.2 to 1.7 times.
 */
struct few_ahead {
    const float *next; /* NULL: nothing */
    int64_t ld;        /* to the same columns of the next row; 0: line after line */
    bool one;          /* line after line: one a step, or as many as the columns have */
};

/* rows x (vectors W) numbers of C in registers, both constants where this is inlined: A comes by broadcast. */
static inline __attribute__((always_inline)) void few_block(int rows,
                                                            int vectors,
                                                            int64_t k,
                                                            const float *a,
                                                            int64_t lda,
                                                            const float *b,
                                                            int64_t ldb,
                                                            struct few_ahead *ahead,
                                                            bool add,
                                                            float *c,
                                                            int64_t ldc)
{
    vec sum[FEW_MOST][8];
    UNROLL
    for (int r = 0; r < rows; r++) {
        UNROLL
        for (int v = 0; v < vectors; v++) {
            sum[r][v] = v_set1(0.0f);
        }
    }
    const float *next = ahead->next;
    for (int64_t p = 0; p < k; p++) {
        const float *from = b + p * ldb;
        if (next && ahead->one) {
            __builtin_prefetch(next);
            next += LINE;
        } else if (next) {
            UNROLL
            for (int v = 0; v < vectors * W; v += LINE) {
                __builtin_prefetch(next + v);
            }
            next += ahead->ld > 0 ? ahead->ld : (vectors * W + LINE - 1) / LINE * LINE;
        }
        vec row[8];
        UNROLL
        for (int v = 0; v < vectors; v++) {
            row[v] = v_load(from + v * W);
        }
        UNROLL
        for (int r = 0; r < rows; r++) {
            const vec x = v_set1(a[r * lda + p]);
            UNROLL
            for (int v = 0; v < vectors; v++) {
                sum[r][v] = v_fma(x, row[v], sum[r][v]);
            }
        }
    }
    if (next) {
        ahead->next = ahead->ld == 0 ? next : ahead->next + vectors * W;
    }
    UNROLL
    for (int r = 0; r < rows; r++) {
        UNROLL
        for (int v = 0; v < vectors; v++) {
            float *to = c + r * ldc + v * W;
            v_store(to, add ? v_add(v_load(to), sum[r][v]) : sum[r][v]);
        }
    }
}

/* All n columns of `rows` rows, `most` vectors at a time; the last n % W ones by themselves. */
static inline __attribute__((always_inline)) void few_rows(int rows,
                                                           int most,
                                                           int64_t n,
                                                           int64_t k,
                                                           const float *a,
                                                           int64_t lda,
                                                           const float *b,
                                                           int64_t ldb,
                                                           struct few_ahead *ahead,
                                                           bool add,
                                                           float *c,
                                                           int64_t ldc)
{
    int64_t j = 0;
    // 4 vectors that are left are 2 and 2 rather than 3 and 1
    for (; j + most * W <= n && (most != 3 || (n - j) / W != 4); j += most * W) {
        few_block(rows, most, k, a, lda, b + j, ldb, ahead, add, c + j, ldc);
    }
    if (most > 4 && j + 4 * W <= n) {
        few_block(rows, 4, k, a, lda, b + j, ldb, ahead, add, c + j, ldc);
        j += 4 * W;
    }
    for (; most > 2 && j + 2 * W <= n; j += 2 * W) {
        few_block(rows, 2, k, a, lda, b + j, ldb, ahead, add, c + j, ldc);
    }
    if (j + W <= n) {
        few_block(rows, 1, k, a, lda, b + j, ldb, ahead, add, c + j, ldc);
        j += W;
    }
    if (j < n && n >= W) {
        // a whole vector that ends at the last column, of which the new columns are kept
        float last[FEW_MOST * W];
        few_block(rows, 1, k, a, lda, b + n - W, ldb, ahead, false, last, W);
        for (int r = 0; r < rows; r++) {
            for (int64_t x = j; x < n; x++) {
                const float sum = last[r * W + x - (n - W)];
                c[r * ldc + x] = add ? c[r * ldc + x] + sum : sum;
            }
        }
        return;
    }
    for (; j < n; j++) {
        for (int r = 0; r < rows; r++) {
            float sum = 0.0f;
            for (int64_t p = 0; p < k; p++) {
                sum += a[r * lda + p] * b[p * ldb + j];
            }
            c[r * ldc + j] = add ? c[r * ldc + j] + sum : sum;
        }
    }
}

/* Rows of B that stay in the first-level cache while all rows of A meet them: 16 KB, 16 at least. */
static inline int64_t few_depth(int64_t n)
{
    const int64_t rows = 16384 / 4 / n / 16 * 16;
    return rows < 16 ? 16 : rows;
}

/* Rows of A at once, of `left`. 4 rows by 3 vectors want 7 loads for 12 multiply-adds, 6 by 2 want 8, 2 by 4 want 6 for 8: so
 * 6 are taken together rather than as 4 and 2, but no more of them. */
static inline int64_t few_take(int64_t left)
{
    return left == FEW_MOST ? FEW_MOST : left >= 4 ? 4 : left >= 2 ? 2 : 1;
}

/* … and by how many vectors. */
static inline int few_vectors(int64_t rows)
{
    return rows == FEW_MOST ? 2 : rows == 4 ? 3 : rows == 2 ? 4 : 8;
}

/* How often m rows walk down a part of B, single rows not counted. */
static inline int64_t few_walks(int64_t m, int64_t n)
{
    int64_t walks = 0;
    for (int64_t i = 0, rows; i < m; i += rows) {
        rows = few_take(m - i);
        const int64_t columns = (int64_t)few_vectors(rows) * W;
        walks += rows == 1 ? 0 : (n + columns - 1) / columns;
    }
    return walks;
}

static void few_product(int64_t m,
                        int64_t n,
                        int64_t k,
                        const float *a,
                        int64_t lda,
                        const float *b,
                        int64_t ldb,
                        bool add,
                        float *c,
                        int64_t ldc)
{
    if (m == 1 && n <= 8 * W) {
        struct few_ahead ahead = {b + AHEAD / 4 / n * ldb, ldb, false};
        few_rows(1, 8, n, k, a, lda, b, ldb, &ahead, add, c, ldc);
        return;
    }
    const int64_t depth = few_depth(n);
    const bool in_order = ldb == n;
    // one line a step is most of a part, or all of it and more
    const bool one = in_order && 4 * LINE * few_walks(m, n) >= 3 * n;
    for (int64_t p = 0, part; p < k; p += part, add = true) {
        part = k - p < depth ? k - p : depth;
        const float *y = b + p * ldb;
        // the next part, while this one is met by the first rows
        struct few_ahead ahead = {y + depth * ldb, in_order ? 0 : ldb, one};
        for (int64_t i = 0, rows; i < m; i += rows) {
            const float *x = a + i * lda + p;
            float *z = c + i * ldc;
            rows = few_take(m - i);
            if (rows == FEW_MOST) {
                few_rows(FEW_MOST, few_vectors(FEW_MOST), n, part, x, lda, y, ldb, &ahead, add, z,
                         ldc);
            } else if (rows == 4) {
                few_rows(4, few_vectors(4), n, part, x, lda, y, ldb, &ahead, add, z, ldc);
            } else if (rows == 2) {
                few_rows(2, few_vectors(2), n, part, x, lda, y, ldb, &ahead, add, z, ldc);
            } else {
                few_rows(1, few_vectors(1), n, part, x, lda, y, ldb, &ahead, add, z, ldc);
            }
            if (ahead.next && (!in_order || ahead.next >= y + 2 * depth * n)) {
                ahead.next = NULL;
            }
        }
    }
}
