/* SPDX-License-Identifier: Apache-2.0 */
#include "api/objects.h"
#include "api/run.h"
#include "api/text.h"
#include "platform/fpenv.h"
#include "platform/memory.h"
#include "platform/sizes.h"

#include <mha/mask.h>

#include <stdio.h>

/* Walks the tiles of a call as a forward does and counts what becomes of them. */

struct counts {
    int64_t tiles[3]; /* by enum mha__tile_class */
    int64_t pairs;    /* visible */
    int64_t cells;    /* of the tiles that are not skipped */
};

struct walk {
    const struct mha__rules *rules;
    int64_t H, T, S;
    int64_t queries, keys, words; /* a tile */
    struct mha__span *spans;      /* [queries] */
    uint64_t *bits;               /* [queries, words] */
};

static int64_t count_bits(const uint64_t *bits, int64_t words)
{
    int64_t sum = 0;
    for (int64_t w = 0; w < words; w++) {
        sum += __builtin_popcountll(bits[w]);
    }
    return sum;
}

/* The tiles of queries i0 … of (b, h), each `times` over. */
static void count_row_of_tiles(
    const struct walk *walk, int64_t b, int64_t h, int64_t i0, int64_t times, struct counts *counts)
{
    struct mha__row_rules row;
    mha__visibility_of_batch_row(walk->rules, b, h, walk->T, walk->S, &row);
    const int64_t rows = mha__smaller(walk->queries, walk->T - i0);
    for (int64_t r = 0; r < rows; r++) {
        walk->spans[r] = mha__visibility_span(&row, i0 + r);
    }
    for (int64_t j0 = 0; j0 < walk->S; j0 += walk->keys) {
        const int64_t columns = mha__smaller(walk->keys, walk->S - j0);
        const int64_t words = (columns + 63) / 64;
        const enum mha__tile_class class = mha__visibility_tile(
            walk->rules, walk->spans, b, h, i0, rows, j0, columns, walk->bits, words);
        counts->tiles[class] += times;
        if (class != MHA__TILE_SKIP) {
            counts->cells += times * rows * columns;
            counts->pairs +=
                times *
                (class == MHA__TILE_FULL ? rows * columns : count_bits(walk->bits, rows * words));
        }
    }
}

static bool differs_by_head(const struct mha__rules *rules)
{
    bool differs = rules->causal_heads > 0 || rules->window_heads > 0;
    for (int64_t m = 0; m < rules->booleans; m++) {
        differs = differs || rules->boolean[m].heads > 1;
    }
    return differs;
}

static void count_all(const struct walk *walk, int64_t B, struct counts *counts)
{
    const bool by_head = differs_by_head(walk->rules);
    const int64_t times = by_head ? 1 : walk->H; // heads that are alike are counted once
    for (int64_t b = 0; b < B; b++) {
        for (int64_t h = 0; h < walk->H; h += times) {
            for (int64_t i0 = 0; i0 < walk->T; i0 += walk->queries) {
                count_row_of_tiles(walk, b, h, i0, times, counts);
            }
        }
    }
}

/* part / all in tenths of a percent, rounded down; of nothing, nothing is left. */
static int32_t permille(int64_t part, int64_t all)
{
    struct mha__fpenv hosts;
    mha__fpenv_enter(&hosts);
    const int32_t share = all > 0 ? (int32_t)(1000.0 * ((double)part / (double)all)) : 0;
    mha__fpenv_leave(&hosts);
    return share;
}

int32_t mha_mask_describe(const mha_mask *mask,
                          int64_t B,
                          int64_t H,
                          int64_t T,
                          int64_t S,
                          int64_t queries,
                          int64_t keys,
                          char *buf,
                          int64_t cap,
                          int64_t *length,
                          mha_error *err)
{
    MHA_CHECK_HANDLE(err, mask, MHA__MAGIC_MASK);
    MHA_CHECK(err, B >= 0 && H >= 0 && T >= 0 && S >= 0, MHA_ERROR_SHAPE,
              "B = %lld, H = %lld, T = %lld, S = %lld: none may be negative", (long long)B,
              (long long)H, (long long)T, (long long)S);
    MHA_CHECK(err, queries >= 1 && keys >= 1 && keys % 64 == 0, MHA_ERROR_SHAPE,
              "tiles of %lld queries x %lld keys; at least 1 x 64, the keys a multiple of 64",
              (long long)queries, (long long)keys);
    int64_t all = 0;
    MHA_CHECK(err, mha__product_fits(B, H, T, &all) && mha__product_fits(all, S, 1, &all),
              MHA_ERROR_TOO_LARGE,
              "B = %lld, H = %lld, T = %lld, S = %lld: the product passes 2^63", (long long)B,
              (long long)H, (long long)T, (long long)S);
    MHA_TRY(mha__mask_fits(mask, B, H, T, S, err));

    struct counts counts = {{0, 0, 0}, 0, 0};
    if (all > 0) {
        const int64_t rows = mha__smaller(queries, T);
        const int64_t columns =
            keys <= S ? keys : (S / 64 + (S % 64 != 0)) * 64; // a larger tile is no other tile
        struct walk walk = {&mask->rules, H, T, S, rows, columns, columns / 64, NULL, NULL};
        int64_t bytes = 0;
        MHA_CHECK(err, mha__product_fits(rows, walk.words + 2, 8, &bytes), MHA_ERROR_TOO_LARGE,
                  "a tile of %lld queries x %lld keys passes 2^63 bytes", (long long)queries,
                  (long long)keys);
        walk.spans = mha__memory_allocate((size_t)bytes); // a span is two words
        MHA_CHECK(err, walk.spans, MHA_ERROR_OUT_OF_MEMORY, "no memory for a tile of %lld bytes",
                  (long long)bytes);
        walk.bits = (uint64_t *)(void *)(walk.spans + rows);
        count_all(&walk, B, &counts);
        mha__memory_release(walk.spans);
    }
    const int64_t *tiles = counts.tiles;
    const int32_t pairs_left = permille(counts.pairs, all);
    const int32_t work_left = permille(counts.cells, all);
    char text[512];
    (void)snprintf(text, sizeof text,
                   "call    B=%lld H=%lld T=%lld S=%lld\n"
                   "tiles   %lld of %lld queries x %lld keys: %lld skipped, %lld full, %lld mixed\n"
                   "pairs   %lld of %lld visible, %d.%d %%\n"
                   "work    %d.%d %% of the tiles' cells\n",
                   (long long)B, (long long)H, (long long)T, (long long)S,
                   (long long)(tiles[0] + tiles[1] + tiles[2]), (long long)queries, (long long)keys,
                   (long long)tiles[MHA__TILE_SKIP], (long long)tiles[MHA__TILE_FULL],
                   (long long)tiles[MHA__TILE_MIXED], (long long)counts.pairs, (long long)all,
                   (int)pairs_left / 10, (int)pairs_left % 10, (int)work_left / 10,
                   (int)work_left % 10);
    const int64_t full = mha__text_copy(text, buf, cap);
    if (length) {
        *length = full;
    }
    return mha__error_clear(err);
}
