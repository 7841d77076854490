/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/planner.h"

#include "attention/attend.h"
#include "platform/sizes.h"

/*
 * The workspace, one block of 64-byte aligned pieces:
 *
 *   | q_heads | o_heads | keys | values | nonfinite | partials | arrived | masses | query_angles | key_angles |
 *   | lane 0 | …
 *
 * and in a lane, by turns:
 *
 *   | queries | scores | out | query_panels | out_panels | slots | keys | values | rows | spans | visible | heads | maxima | block |
 *   | product | gathered |
 *
 * q_heads and o_heads exist where the layer has that projection. Where D = Dv they are one: a task reads
 * its queries before it writes its output in their place, and no other task reads them. If direct, all chunks
 * of keys read them, and the last one to be done writes. partials and arrived exist where there are several
 * chunks, heads if direct; the pieces from masses on, maxima and block where an option asks
 * for them.
 */

static int64_t clamp(int64_t x, int64_t low, int64_t high)
{
    return mha__larger(low, mha__smaller(x, high));
}

/*
 * Tiles of QK^T and P V, queries x keys.
 *
 * PACKED, free      every call packs both operands, so big tiles pay the packing off: 256 x 256 is 5 to 8 %
 *                   ahead of 128 x 256 and 64 x 512 at T = 1024 and 4096 (Zen 3, OpenBLAS 0.3.21, D = 64).
 *                   Banded too, in bands of 64 rows where the diagonal passes: 3 to 5 % ahead of 128 rows.
 * PACKED, confined  m n k <= 262144: 64 x 64 at D = 64.
 * SMALL             copy-free up to m n k = 10^6: 96 x 128 at D = 64, 96 x 64 at D = 128; banded 32 rows.
 * SMALL, confined   32 x 128 at D = 64 is exactly 262144.
 * weights kept      in a lane: 128 rows at most. 64 cost a packing BLAS 2 to 12 % more at T = 1024 and 4096 (key
 *                   mass, Zen 3; the more the busier the host), 256 gain 0 to 3 % for twice the memory.
 * fused             no packing a call and no limit. A tile of keys and values, the queries and their output
 *                   stay in the second-level cache: 320 KiB at D = 64. Scores, 24 queries x 256 keys, stay in the
 *                   first from the product to the softmax to the product. By rows they are a band, its rows a
 *                   multiple of what panel_product takes at once (6, 8, 12). The same up to D = 128: by rows 4 to
 *                   5 % ahead of half of each at D = 80, 96 and 128 (Zen 3). AVX-512's 48 queries take 128
 *                   keys for the same reason. Not measured: larger D, other vectors than AVX2's.
 * kept by a lane    2048 keys at D = 64. Packed by the lane that needs them rather than all before: 4 to 9 % ahead at
 *                   T = 128 to 1024 on Zen 3, with one thread and two; beyond it level.
 */
enum {
    FUSED_KEYS = 256,
    FUSED_SCORES = 6144, /* numbers of a band of them */
    FUSED_QUERIES = 384,
    FUSED_PAD = 4,       /* keys: see pack.h */
    FUSED_KEPT = 262144, /* numbers of keys and values that a lane packs itself and keeps, 1 MiB */
    FUSED_BAND = 24,
    FUSED_MIXED_BAND =
        12, /* where rows see different keys: 2 to 3 % ahead of 24 at T = 128 to 512, causal */
    BAND = 64,
    FUSED_ROWS = 192,   /* projections: rows a task */
    FUSED_COLUMNS = 64, /* … and columns: as fast as 256 on one thread, and several end together */
    FUSED_PANEL = 12288, /* … and the most numbers of a panel of weights at a time */
    BLOCK_QUERIES = 128, /* 128 rows of weights in a lane: 512 S bytes */
    STEP = 24            /* queries: a multiple of all that panel_product takes at once */
};

/*
 * Direct: few queries read keys and values in place. Packing all of K and V costs as much as attending some
 * tens of rows, and the products of few rows are no work for a BLAS. Time of the packed path over that of
 * the direct one, one thread, Zen 3, S = 1024, D = 64:
 *
 *   H = G = 8      T = 1    4    16   32   40   48
 *   blas           3.7  2.7  1.7  1.3  1.3  1.2
 *   fused          3.3  1.8  1.2  1.1  1.0  0.9
 *   H = 32, G = 4  T = 1    2    4    8    12
 *   blas           2.5  4.6  2.0  1.6  1.3
 *   fused          2.8  1.8  1.3  1.1  0.9
 *
 * D = 128 gains more (1.3 and 1.1 at 48). It ends at 40 rows, or at 8 queries of any group, since the packed
 * path reads K and V again for every head of it. With 512-bit vectors (a panel of 32 columns) the packed
 * products gain more than these: half of that or less, not measured. A chunk of keys for a task: enough
 * tasks for many threads, but two tiles at least, so that there is little to merge.
 */
enum {
    DIRECT_ROWS = 40,
    DIRECT_QUERIES = 8,
    DIRECT_ROWS_WIDE = 16,
    DIRECT_QUERIES_WIDE = 4,
    DIRECT_MOST_ROWS = 512, /* scratch memory: [rows, keys] scores */
    DIRECT_SCORES = 16384,  /* rows * keys of a tile, in the second-level cache beside K and V */
    DIRECT_KEYS = 256,
    SPLIT_TILES = 2,
    SPLIT_TASKS = 64
};

static bool is_direct(const struct mha__planner_request *r)
{
    const bool wide = r->panel > 16;
    const int64_t heads = r->H / r->G;
    const int64_t queries =
        mha__smaller(wide ? DIRECT_QUERIES_WIDE : DIRECT_QUERIES, DIRECT_MOST_ROWS / heads);
    const int64_t most = mha__larger((wide ? DIRECT_ROWS_WIDE : DIRECT_ROWS) / heads, queries);
    return r->T <= most && !r->weights && !r->scores && r->rotary_key_tables == 0;
}

static void choose_direct(const struct mha__planner_request *r, struct mha__planner_plan *plan)
{
    plan->direct = plan->unpacked = true;
    plan->algorithm = "direct, keys and values in place";
    plan->query_tile = mha__larger(r->T, 1);
    plan->rows = plan->score_rows = plan->query_tile * (r->H / r->G);
    const int64_t keys = clamp(DIRECT_SCORES / plan->rows / 64 * 64, 64, DIRECT_KEYS);
    plan->key_tile = mha__larger(mha__tiles_of(mha__smaller(r->S, keys), 64), 1) * 64;
    const int64_t tiles = mha__larger(mha__tiles_of(r->S, plan->key_tile), 1);
    const int64_t splits = clamp(SPLIT_TASKS / mha__larger(r->B * r->G, 1), 1,
                                 mha__tiles_of(tiles, SPLIT_TILES * DIRECT_KEYS / plan->key_tile));
    plan->split_tiles = mha__tiles_of(tiles, splits);
    plan->key_splits = mha__tiles_of(tiles, plan->split_tiles);
    plan->tasks = r->B * r->G * plan->key_splits;
}

static void choose_tiles(const struct mha__planner_request *r, struct mha__planner_plan *plan)
{
    const int64_t depth = mha__larger(r->D, r->Dv);
    int64_t queries;
    int64_t keys;
    if (r->fused) {
        plan->transposed = !r->weights && !r->scores && !r->by_rows && r->extra == 0;
        const int64_t band = plan->transposed ? r->query_panel : FUSED_BAND;
        keys = clamp(FUSED_SCORES / band / 64 * 64, 64, depth <= 128 ? FUSED_KEYS : FUSED_KEYS / 2);
        queries = depth <= 128 ? FUSED_QUERIES : FUSED_QUERIES / 2;
        plan->algorithm = plan->transposed ? "fused, transposed" : "fused, by rows";
    } else if (r->blas.family == MHA__BLAS_SMALL) {
        keys = depth <= 64 ? 128 : 64;
        queries = clamp(r->blas.small_max / (keys * depth) / 16 * 16, 16, r->banded ? 32 : 96);
        plan->algorithm =
            r->blas.confined ? "blas, confined copy-free tiles" : "blas, copy-free tiles";
    } else if (r->blas.confined) {
        keys = depth <= 32 ? 128 : 64;
        queries = clamp(r->blas.limit / (keys * depth) / 8 * 8, 8, r->banded ? 64 : 128);
        plan->algorithm = "blas, confined packed tiles";
    } else {
        keys = 256;
        queries = 256;
        plan->algorithm = "blas, packed tiles";
    }
    /* Enough tasks for some threads, by the shape alone. */
    while (queries > 32 && r->B * r->H < 8 && r->B * r->H * mha__tiles_of(r->T, queries) < 8) {
        queries /= 2;
    }
    plan->band = r->fused ? FUSED_MIXED_BAND : BAND;
    if (r->block) {
        queries = mha__smaller(queries, BLOCK_QUERIES); // a lane keeps [queries, S] weights
    }
    /* Tiles of one size, in steps that suit the products, rather than a small one at the end. */
    const int64_t T = mha__larger(r->T, 1);
    const int64_t step = plan->transposed ? r->query_panel : STEP;
    queries = mha__smaller(queries,
                           mha__tiles_of(mha__tiles_of(T, mha__tiles_of(T, queries)), step) * step);
    plan->query_tile = plan->rows = mha__smaller(queries, T);
    plan->key_tile =
        mha__smaller(keys, mha__larger(mha__tiles_of(mha__smaller(r->S, keys), 64), 1) * 64);
    plan->alike_band = r->fused ? FUSED_BAND : plan->query_tile;
    plan->score_rows = r->scores ? plan->query_tile : mha__larger(plan->alike_band, plan->band);
    plan->score_rows = mha__smaller(plan->score_rows, plan->query_tile);
    if (plan->transposed) {
        plan->score_rows = r->query_panel;
        plan->rows = mha__tiles_of(plan->query_tile, step) * step;
    }
}

int64_t mha__planner_weight_tile(const struct mha__blas_state *blas)
{
    /* SMALL wants tiles that are contiguous and copy-free; PACKED wants wide ones. */
    return blas->family == MHA__BLAS_SMALL ? 64 : MHA__WEIGHT_TILE_MOST;
}

/*
 * Few rows: a BLAS packs the whole weight for them. Time of a layer of M tokens by sgemm over that by few_product, one
 * thread, Zen 3, OpenBLAS 0.3.21, E x E weights in tiles of 256 columns:
 *
 *   M         2    4    8    16   24   32   48   64
 *   E = 512   2.0  1.8  1.9  1.3  1.2  1.2  1.0  1.0
 *   E = 1024  1.9  1.7  1.9  1.4  1.3  1.2  1.1  0.9
 *   E = 2048  2.1  1.6  2.2  1.4  1.2  1.2  1.0  0.8
 *
 * The fused engine's own products over panels are level at 16 and 1.15 times as fast at 24. Copy-free kernels do not
 * pack; their crossover is not measured.
 */
enum { FEW_ROWS_PACKED = 40, FEW_ROWS_FUSED = 16, FEW_ROWS_SMALL = 4 };

static void choose_projection(const struct mha__planner_request *r, struct mha__planner_plan *plan)
{
    plan->columns = MHA__WEIGHT_TILE_MOST;
    if (r->fused) {
        plan->few_rows = FEW_ROWS_FUSED;
        plan->row_tile = FUSED_ROWS;
        if (!r->gather) { // every task copies its rows
            plan->columns = FUSED_COLUMNS;
        }
        plan->k_block = FUSED_PANEL / r->panel;
    } else if (r->blas.family == MHA__BLAS_SMALL) {
        plan->few_rows = FEW_ROWS_SMALL;
        plan->row_tile = 64;
        plan->k_block = r->blas.confined ? 64 : 128;
    } else {
        plan->few_rows = FEW_ROWS_PACKED;
        plan->row_tile = 128;
        plan->k_block =
            INT64_MAX; /* the BLAS blocks better than we do; confined: mha__blas_gemm_nn */
    }
}

/* Adds a piece of a*b*c elements of `size` bytes to a block; false when it overflows. */
static bool reserve(int64_t *bytes, int64_t *offset, int64_t a, int64_t b, int64_t c, int64_t size)
{
    int64_t piece = 0;
    *offset = *bytes;
    if (__builtin_mul_overflow(a, b, &piece) || __builtin_mul_overflow(piece, c, &piece) ||
        __builtin_mul_overflow(piece, size, &piece) || __builtin_add_overflow(piece, 63, &piece) ||
        __builtin_add_overflow(*bytes, piece / 64 * 64, bytes)) {
        return false;
    }
    return true;
}

static bool lay_out_lane(const struct mha__planner_request *r, struct mha__planner_plan *plan)
{
    struct mha__planner_lane *lane = &plan->lane;
    const int64_t f = sizeof(float);
    int64_t attention = 0;
    bool fits =
        reserve(&attention, &lane->queries,
                plan->transposed && r->rotary_size == 0 ? 0 : plan->rows, r->D, 1, f) &&
        reserve(&attention, &lane->scores, plan->score_rows, plan->score_ld, 1, f) &&
        reserve(&attention, &lane->out, plan->transposed ? 0 : plan->rows, plan->values_ld, 1, f) &&
        reserve(&attention, &lane->query_panels, plan->transposed ? plan->rows : 0, r->D, 1, f) &&
        reserve(&attention, &lane->out_panels, plan->transposed ? plan->rows : 0, plan->values_ld,
                1, f) &&
        reserve(&attention, &lane->slots, plan->key_slots, 1, 1, sizeof(int64_t)) &&
        reserve(&attention, &lane->keys, plan->key_slots, plan->key_tile, r->D, f) &&
        reserve(&attention, &lane->values, mha__larger(plan->key_slots, 1), plan->value_keys,
                plan->values_ld, f) &&
        reserve(&attention, &lane->rows, plan->rows, 5, 1, f) &&
        reserve(&attention, &lane->spans, plan->rows, 1, 1, sizeof(struct mha__span)) &&
        reserve(&attention, &lane->visible, plan->rows, plan->key_tile / 64, 1, 8) &&
        reserve(&attention, &lane->heads, plan->direct ? r->H / r->G : 0, 1, 1,
                sizeof(struct mha__attend_head)) &&
        reserve(&attention, &lane->maxima, r->weights ? plan->key_tiles + 1 : 0, plan->query_tile,
                1, f) &&
        reserve(&attention, &lane->block, plan->query_tile, plan->block_ld, 1, f);
    int64_t top =
        0; // behind the block: the weights of the top keys of a row where nobody wants them
    fits = fits && reserve(&attention, &top, r->top, 1, 1, f);
    int64_t widest = mha__larger(mha__larger(r->Eq, r->Ek), mha__larger(r->Ev, r->H * r->Dv));
    bool projects = r->project_q || r->project_k || r->project_v || r->project_out;
    int64_t projection = 0;
    fits = fits &&
           reserve(&projection, &lane->product, projects ? plan->row_tile : 0,
                   mha__planner_weight_tile(&r->blas), 1, f) &&
           reserve(&projection, &lane->gathered, r->gather ? plan->row_tile : 0, widest, 1, f);
    lane->bytes = mha__larger(attention, projection);
    return fits;
}

bool mha__planner_make(const struct mha__planner_request *r, struct mha__planner_plan *plan)
{
    *plan = (struct mha__planner_plan){0};
    choose_projection(r, plan);
    if (is_direct(r)) {
        choose_direct(r, plan);
    } else {
        choose_tiles(r, plan);
    }
    plan->query_tiles = mha__tiles_of(r->T, plan->query_tile);
    plan->key_tiles = mha__tiles_of(r->S, plan->key_tile);
    if (plan->transposed && r->rotary_size == 0 && r->S <= FUSED_KEPT / (r->D + r->Dv)) {
        plan->unpacked = true;
        plan->key_slots = mha__larger(plan->key_tiles, 1);
    }
    plan->score_ld = plan->key_tile;
    plan->fused = r->fused;
    const bool panels = r->fused && !plan->direct;
    const int64_t panel = plan->transposed ? r->row_panel : r->panel;
    plan->key_panel = panels ? panel : plan->key_tile;
    plan->value_panel = panels ? panel : r->Dv;
    plan->values_ld = mha__tiles_of(r->Dv, plan->value_panel) * plan->value_panel;
    plan->value_keys = plan->key_tile + (plan->transposed ? FUSED_PAD : 0);
    plan->block_ld = r->block ? mha__tiles_of(r->S + r->extra, 16) * 16 : 0;
    plan->heads_together = r->heads_together;
    if (!plan->direct && __builtin_mul_overflow(r->B * (r->heads_together ? 1 : r->H),
                                                plan->query_tiles, &plan->tasks)) {
        return false;
    }
    const int64_t f = sizeof(float);
    int64_t bytes = 0;
    bool fits = reserve(&bytes, &plan->q_heads, r->project_q ? r->B * r->T : 0, r->H, r->D, f);
    if (r->project_q && r->D == r->Dv) {
        plan->o_heads = plan->q_heads;
    } else {
        fits = fits &&
               reserve(&bytes, &plan->o_heads, r->project_out ? r->B * r->T : 0, r->H, r->Dv, f);
    }
    const int64_t before = bytes;
    int64_t padded = 0;
    int64_t padded_values = 0;
    fits = fits && !__builtin_mul_overflow(plan->key_tiles, plan->key_tile, &padded) &&
           !__builtin_mul_overflow(plan->key_tiles, plan->value_keys, &padded_values) &&
           reserve(&bytes, &plan->keys, plan->unpacked && !r->project_k ? 0 : r->B * r->G,
                   plan->unpacked ? r->S : padded, r->D, f) &&
           reserve(&bytes, &plan->values, plan->unpacked && !r->project_v ? 0 : r->B * r->G,
                   plan->unpacked ? r->S : padded_values, plan->unpacked ? r->Dv : plan->values_ld,
                   f) &&
           reserve(&bytes, &plan->nonfinite, r->B * r->G, plan->key_tiles, 1, 1);
    plan->packed_bytes = bytes - before;
    const bool split = plan->key_splits > 1;
    fits = fits &&
           reserve(&bytes, &plan->partials, split ? plan->tasks : 0, plan->rows,
                   plan->values_ld + 3, f) &&
           reserve(&bytes, &plan->arrived, split ? r->B * r->G : 0, 1, 1, sizeof(int32_t)) &&
           reserve(&bytes, &plan->masses, r->masses ? r->B * r->H : 0, plan->query_tiles,
                   r->S + r->extra, f) &&
           reserve(&bytes, &plan->query_angles, r->rotary_size > 0 ? r->B : 0, r->T, r->rotary_size,
                   f) &&
           reserve(&bytes, &plan->key_angles, r->rotary_size > 0 ? r->rotary_key_tables : 0, padded,
                   r->rotary_size, f);
    /* As many lanes as some phase may have tasks, or nearly; no lane has more than one at a time. */
    int64_t most =
        mha__larger(plan->tasks, mha__larger(mha__tiles_of(r->B * r->T, plan->row_tile),
                                             mha__tiles_of(r->B * r->S, plan->row_tile)) *
                                     64);
    plan->lanes = clamp(r->threads, 1, mha__larger(most, 1));
    fits = fits && lay_out_lane(r, plan) &&
           reserve(&bytes, &plan->lane0, plan->lanes, plan->lane.bytes, 1, 1);
    plan->bytes = bytes;
    return fits;
}
