/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of a mask that are told per head, per token or per sequence, seen by the spans and tiles
 * that a forward takes from them: what the setters keep, and what they refuse.
 */
#include "support/brutal.h"
#include "support/draw.h"

#include <api/objects.h>
#include <api/run.h>
#include <stdlib.h>
#include <string.h>

enum { T = 4, S = 5, MOST = 4096 };

static mha_mask *fresh(void)
{
    mha_mask *mask = NULL;
    assert_int_equal(mha_mask_create(&mask, NULL), MHA_OK);
    assert_non_null(mask);
    return mask;
}

/* The cells [queries, keys] of (b, h) as '1' and '.', in static memory. */
static const char *
cells_of(const mha_mask *mask, int64_t b, int64_t h, int64_t queries, int64_t keys)
{
    static char cells[MOST + 1];
    uint64_t bits[MOST / 64 + 1];
    const int64_t words = keys / 64 + 1;
    struct mha__row_rules row;
    assert_true(queries * keys <= MOST);
    mha__visibility_of_batch_row(&mask->rules, b, h, queries, keys, &row);
    for (int64_t i = 0; i < queries; ++i) {
        struct mha__span span = mha__visibility_span(&row, i);
        enum mha__tile_class tile =
            mha__visibility_tile(&mask->rules, &span, b, h, i, 1, 0, keys, bits, words);
        for (int64_t j = 0; j < keys; ++j) {
            int visible = tile == MHA__TILE_FULL ||
                          (tile == MHA__TILE_MIXED && (bits[j / 64] >> (j % 64) & 1));
            cells[i * keys + j] = visible ? '1' : '.';
        }
    }
    cells[queries * keys] = '\0';
    return cells;
}

static void expect_cells(const mha_mask *mask, int64_t b, int64_t h, const char *expected)
{
    assert_string_equal(cells_of(mask, b, h, T, S), expected);
}

/* ---- per head ---- */

static void rules_causal_per_head_and_for_all_replace_each_other(void **state)
{
    (void)state;
    mha_mask *mask = fresh();
    int32_t on[2] = {1, 0};
    SUCCEEDS(mha_mask_set_alignment(mask, MHA_ALIGNMENT_TOP_LEFT, err));
    SUCCEEDS(mha_mask_set_head_causal(mask, 2, on, err));
    on[1] = 1; /* copied */
    expect_cells(mask, 0, 0, "1....11...111..1111.");
    expect_cells(mask, 0, 1, "11111111111111111111");
    int64_t blocks = mha__memory_live();
    SUCCEEDS(mha_mask_set_causal(mask, 1, err));
    assert_int_equal(mha__memory_live(), blocks - 1);
    expect_cells(mask, 0, 1, "1....11...111..1111.");
    on[0] = 0;
    SUCCEEDS(mha_mask_set_head_causal(mask, 2, on, err));
    expect_cells(mask, 0, 0, "11111111111111111111");
    SUCCEEDS(mha_mask_set_causal(mask, 0, err));
    expect_cells(mask, 0, 1, "11111111111111111111");
    mha_mask_destroy(mask);
}

static void rules_windows_per_head_and_for_all_replace_each_other(void **state)
{
    (void)state;
    mha_mask *mask = fresh();
    SUCCEEDS(mha_mask_set_alignment(mask, MHA_ALIGNMENT_TOP_LEFT, err));
    SUCCEEDS(mha_mask_set_window(mask, 0, 0, err));
    SUCCEEDS(
        mha_mask_set_head_windows(mask, 3, (int64_t[]){1, -1, -1}, (int64_t[]){0, -1, 0}, err));
    expect_cells(mask, 0, 0, "1....11....11....11.");
    expect_cells(mask, 0, 1, "11111111111111111111");
    expect_cells(mask, 0, 2, "1....11...111..1111.");
    SUCCEEDS(mha_mask_set_window(mask, 0, 2, err));
    for (int64_t h = 0; h < 3; ++h) {
        expect_cells(mask, 0, h, "111...111...111...11");
    }
    mha_mask_destroy(mask);
}

/* ---- per token ---- */

static void rules_ranges_are_per_query_and_batch_row(void **state)
{
    (void)state;
    mha_mask *mask = fresh();
    int64_t lo[8] = {0, 1, 2, 4, 3, 0, 0, 9}, hi[8] = {2, 4, 2, 99, 1, 5, 0, 9};
    SUCCEEDS(mha_mask_set_ranges(mask, 2, 4, lo, hi, err));
    memset(lo, 0, sizeof lo);
    expect_cells(mask, 0, 0, "11....111..........1");
    expect_cells(mask, 1, 7, ".....11111..........");
    SUCCEEDS(mha_mask_set_ranges(mask, 1, 4, lo, hi, err));
    expect_cells(mask, 5, 0, "11...1111.11...11111");
    mha_mask_destroy(mask);
}

static void rules_segments_let_equal_ids_see_each_other(void **state)
{
    (void)state;
    mha_mask *mask = fresh();
    int64_t query[8] = {7, 7, -3, 4, 1, 2, 1, 2}, key[10] = {-3, 7, 7, 7, 5, 1, 2, 1, 1, 2};
    SUCCEEDS(mha_mask_set_segments(mask, 2, 4, query, 5, key, err));
    const struct mha__segments *s = &mask->rules.segments;
    assert_true(s->scattered); /* the second batch row */
    memset(query, 0, sizeof query);
    memset(key, 0, sizeof key);
    expect_cells(mask, 0, 0, ".111..111.1.........");
    expect_cells(mask, 1, 0, "1.11..1..11.11..1..1");
    assert_memory_equal(s->first, ((int64_t[]){1, 1, 0, 0, 0, 1, 0, 1}), 8 * sizeof(int64_t));
    assert_memory_equal(s->end, ((int64_t[]){4, 4, 1, 0, 4, 5, 4, 5}), 8 * sizeof(int64_t));
    SUCCEEDS(mha_mask_set_segments(mask, 1, 4, (int64_t[]){0, 0, 1, 1}, 5,
                                   (int64_t[]){0, 0, 0, 1, 1}, err));
    assert_false(s->scattered);
    expect_cells(mask, 0, 0, "111..111.....11...11");
    mha_mask_destroy(mask);
}

/* Against the definition, for ids in few or many runs, in order or not, extreme values among them. */
static void rules_segments_of_any_ids_are_as_defined(void **state)
{
    (void)state;
    draw d = {4};
    for (int n = 0; n < 600; ++n) {
        const int64_t queries = draw_int(&d, 0, 20), keys = draw_int(&d, 0, 150);
        const int64_t kinds = draw_int(&d, 1, 1 + draw_int(&d, 0, 40));
        const double stay = draw_chance(&d, 0.5) ? 0.9 : 0.2;
        int64_t query[20], key[150];
        int in_order = draw_chance(&d, 0.3);
        for (int64_t j = 0; j < keys; ++j) {
            key[j] = j > 0 && draw_chance(&d, stay) ? key[j - 1]
                     : in_order                     ? j
                                                    : draw_int(&d, 0, kinds);
        }
        for (int64_t j = 0; j < keys; ++j) {
            key[j] = key[j] == 3 ? INT64_MIN : key[j] == 5 ? INT64_MAX : key[j];
        }
        for (int64_t i = 0; i < queries; ++i) {
            query[i] = keys > 0 && draw_chance(&d, 0.8) ? key[draw_int(&d, 0, keys - 1)] : 1000;
        }
        mha_mask *mask = fresh();
        SUCCEEDS(mha_mask_set_segments(mask, 1, queries, query, keys, key, err));
        const struct mha__segments *s = &mask->rules.segments;
        bool scattered = false;
        for (int64_t j = 0; j < keys; ++j) {
            for (int64_t later = j + 2; later < keys; ++later) {
                scattered = scattered || (key[j] == key[later] && key[j] != key[later - 1]);
            }
        }
        assert_int_equal(s->scattered, scattered);
        const char *cells = queries * keys > 0 ? cells_of(mask, 0, 0, queries, keys) : "";
        for (int64_t i = 0; i < queries; ++i) {
            int64_t first = 0, end = 0;
            for (int64_t j = keys - 1; j >= 0; --j) {
                if (key[j] == query[i]) {
                    first = j;
                    end = end ? end : j + 1;
                }
                assert_int_equal(cells[i * keys + j], key[j] == query[i] ? '1' : '.');
            }
            assert_int_equal(s->first[i], first);
            assert_int_equal(s->end[i], end);
        }
        mha_mask_destroy(mask);
    }
}

/* ---- packed ---- */

static void
rules_packed_sequences_do_not_see_each_other_and_count_from_their_own_start(void **state)
{
    (void)state;
    mha_mask *mask = fresh();
    int64_t query[4] = {0, 1, 1, 3}, key[4] = {0, 2, 2, 4};
    SUCCEEDS(mha_mask_set_packed(mask, 3, query, key, err));
    memset(query, 0xFF, sizeof query);
    memset(key, 0xFF, sizeof key);
    expect_cells(mask, 0, 0, "11.....11...11......"); /* query 3 and key 4 are padding */
    SUCCEEDS(mha_mask_set_causal(mask, 1, err));
    SUCCEEDS(mha_mask_set_alignment(mask, MHA_ALIGNMENT_TOP_LEFT, err));
    expect_cells(mask, 0, 0, "1......1....11......");
    SUCCEEDS(mha_mask_set_alignment(mask, MHA_ALIGNMENT_BOTTOM_RIGHT, err));
    expect_cells(mask, 0, 0, "11.....1....11......");
    SUCCEEDS(mha_mask_set_offsets(mask, 3, (int64_t[]){0, 0, -1}, err));
    expect_cells(mask, 0, 0, "1...........1.......");
    mha_mask_destroy(mask);
}

/* ---- boolean masks as bits ---- */

static void rules_bits_say_the_same_as_bytes(void **state)
{
    (void)state;
    draw d = {9};
    const int64_t sizes[] = {1, 7, 8, 9, 63, 64, 65, 71, 128, 131};
    for (int n = 0; n < 10; ++n) {
        for (int32_t inverted = 0; inverted <= MHA_MASK_INVERTED; ++inverted) {
            for (int gap = 0; gap < 2; ++gap) {
                enum { BATCH = 2, HEADS = 2, QUERIES = 3 };
                const int64_t keys = sizes[n], row = (keys + 7) / 8 + 3 * gap;
                const int64_t rows = BATCH * HEADS * QUERIES;
                uint8_t *bytes = malloc((size_t)(rows * keys));
                /* the last row ends where its bits do: reading on is seen by a sanitizer */
                const size_t length = (size_t)((rows - 1) * row + (keys + 7) / 8);
                uint8_t *bits = malloc(length);
                memset(bits, 0xFF, length); /* bits behind the last key are 1 */
                draw_booleans(&d, bytes, rows * keys, 0.5);
                for (int64_t r = 0; r < rows; ++r) {
                    for (int64_t j = 0; j < keys; ++j) {
                        uint8_t bit = (uint8_t)(1 << (j % 8));
                        uint8_t *at = &bits[r * row + j / 8];
                        *at = (uint8_t)(bytes[r * keys + j] ? *at | bit : *at & ~bit);
                    }
                }
                const int64_t strides[4] = {HEADS * QUERIES * row, QUERIES * row, row, -99};
                mha_mask *a = fresh(), *b = fresh();
                SUCCEEDS(mha_mask_add_full_mask(a, BATCH, HEADS, QUERIES, keys, bytes, NULL,
                                                inverted, err));
                SUCCEEDS(mha_mask_add_full_mask(b, BATCH, HEADS, QUERIES, keys, bits,
                                                gap ? strides : NULL, inverted | MHA_MASK_BITS,
                                                err));
                const struct mha__boolean *x = a->rules.boolean, *y = b->rules.boolean;
                assert_int_equal(x->words, y->words);
                assert_memory_equal(x->bits, y->bits, (size_t)(rows * x->words * 8));
                mha_mask_destroy(a);
                mha_mask_destroy(b);
                free(bytes);
                free(bits);
            }
        }
    }
}

static void rules_bits_over_keys_and_over_queries_and_keys(void **state)
{
    (void)state;
    mha_mask *mask = fresh();
    SUCCEEDS(
        mha_mask_add_key_mask(mask, 2, 5, (const uint8_t[]){0x1b, 0xf4}, NULL, MHA_MASK_BITS, err));
    expect_cells(mask, 0, 0, "11.1111.1111.1111.11");
    expect_cells(mask, 1, 0, "..1.1..1.1..1.1..1.1");
    SUCCEEDS(mha_mask_add_query_key_mask(mask, 4, 5, (const uint8_t[]){1, 2, 4, 8}, NULL,
                                         MHA_MASK_BITS | MHA_MASK_INVERTED, err));
    expect_cells(mask, 0, 0, ".1.111..1111.1111..1");
    mha_mask_destroy(mask);
    mask = fresh(); /* a stride of 0 broadcasts one row */
    SUCCEEDS(mha_mask_add_query_key_mask(mask, 4, 5, (const uint8_t[]){0x16}, (int64_t[]){0, 0},
                                         MHA_MASK_BITS, err));
    expect_cells(mask, 0, 0, ".11.1.11.1.11.1.11.1");
    mha_mask_destroy(mask);
}

/* ---- bytes ---- */

static void rules_bytes_count_every_array(void **state)
{
    (void)state;
    const int64_t x[8] = {0};
    const int32_t on[8] = {0};
    mha_mask *mask = fresh();
    int64_t bytes = mha_mask_bytes(mask);
#define GROWS(call, by)                                                                            \
    do {                                                                                           \
        SUCCEEDS(call);                                                                            \
        assert_int_equal(mha_mask_bytes(mask), bytes + (by));                                      \
        bytes += (by);                                                                             \
    } while (0)
    GROWS(mha_mask_set_head_causal(mask, 8, on, err), 8 * (int64_t)sizeof(bool));
    GROWS(mha_mask_set_head_windows(mask, 8, x, x, err), 2 * 8 * 8);
    GROWS(mha_mask_set_ranges(mask, 2, 4, x, x, err), 2 * 8 * 8);
    GROWS(mha_mask_set_segments(mask, 2, 4, x, 3, x, err), (3 * 8 + 6) * 8);
    GROWS(mha_mask_set_packed(mask, 7, x, x, err), 2 * 8 * 8);
    GROWS(mha_mask_set_causal(mask, 0, err), -8 * (int64_t)sizeof(bool));
    GROWS(mha_mask_set_window(mask, 0, 0, err), -2 * 8 * 8);
#undef GROWS
    mha_mask_destroy(mask);
}

/* ---- refusals ---- */

static void rules_setters_refuse_values_outside_their_range_and_change_nothing(void **state)
{
    (void)state;
    const int64_t x[5] = {0, 1, 1, 2, 3}, y[5] = {0, 2, 2, 4, 5}, falling[3] = {0, 2, 1},
                  late[2] = {1, 2}, negative[4] = {0, 0, -6, 0};
    const int32_t on[2] = {1, 0}, two[2] = {0, 2};
    const int32_t null = MHA_ERROR_NULL_ARGUMENT, shape = MHA_ERROR_SHAPE;
    mha_mask *mask = fresh();
    SUCCEEDS(mha_mask_set_alignment(mask, MHA_ALIGNMENT_TOP_LEFT, err));
    SUCCEEDS(mha_mask_set_head_causal(mask, 2, on, err));
    SUCCEEDS(mha_mask_set_ranges(mask, 1, 4, x, (int64_t[]){2, 5, 3, 5}, err));
    SUCCEEDS(mha_mask_set_segments(mask, 1, 4, (int64_t[]){1, 1, 1, 1}, 5,
                                   (int64_t[]){1, 1, 1, 1, 2}, err));
    const char *const unchanged = "1.....1....11....11.";
    expect_cells(mask, 0, 0, unchanged);

    REFUSED(null, mha_mask_set_head_causal(NULL, 2, on, err), "NULL");
    REFUSED(null, mha_mask_set_head_causal(mask, 2, NULL, err), "NULL");
    REFUSED(shape, mha_mask_set_head_causal(mask, 0, on, err), "0 heads");
    REFUSED(MHA_ERROR_VALUE, mha_mask_set_head_causal(mask, 2, two, err), "2", "head 1");
    REFUSED(null, mha_mask_set_head_windows(NULL, 2, x, y, err), "NULL");
    REFUSED(null, mha_mask_set_head_windows(mask, 2, NULL, y, err), "left");
    REFUSED(null, mha_mask_set_head_windows(mask, 2, x, NULL, err), "right");
    REFUSED(shape, mha_mask_set_head_windows(mask, -2, x, y, err), "-2 heads");
    REFUSED(shape, mha_mask_set_head_windows(mask, 4, x, negative, err), "-6", "head 2");
    REFUSED(null, mha_mask_set_ranges(NULL, 1, 4, x, y, err), "NULL");
    REFUSED(null, mha_mask_set_ranges(mask, 1, 4, NULL, y, err), "lo");
    REFUSED(null, mha_mask_set_ranges(mask, 1, 4, x, NULL, err), "hi");
    REFUSED(shape, mha_mask_set_ranges(mask, 0, 4, x, y, err), "0 batch rows");
    REFUSED(shape, mha_mask_set_ranges(mask, 1, -4, x, y, err), "-4");
    REFUSED(shape, mha_mask_set_ranges(mask, 2, 2, x, negative, err), "-6", "query 0", "row 1");
    REFUSED(shape, mha_mask_set_ranges(mask, 1, 4, negative, y, err), "-6", "query 2", "row 0");
    REFUSED(MHA_ERROR_TOO_LARGE, mha_mask_set_ranges(mask, 2, INT64_MAX / 9, x, y, err), "2");
    REFUSED(null, mha_mask_set_segments(NULL, 1, 4, x, 5, y, err), "NULL");
    REFUSED(null, mha_mask_set_segments(mask, 1, 4, NULL, 5, y, err), "query_ids");
    REFUSED(null, mha_mask_set_segments(mask, 1, 4, x, 5, NULL, err), "key_ids");
    REFUSED(shape, mha_mask_set_segments(mask, 0, 4, x, 5, y, err), "0 batch rows");
    REFUSED(shape, mha_mask_set_segments(mask, 1, -4, x, 5, y, err), "-4");
    REFUSED(shape, mha_mask_set_segments(mask, 1, 4, x, -5, y, err), "-5");
    REFUSED(MHA_ERROR_TOO_LARGE, mha_mask_set_segments(mask, 1, 4, x, INT64_MAX / 9, y, err), "");
    REFUSED(null, mha_mask_set_packed(NULL, 4, x, y, err), "NULL");
    REFUSED(null, mha_mask_set_packed(mask, 4, NULL, y, err), "query_offsets");
    REFUSED(null, mha_mask_set_packed(mask, 4, x, NULL, err), "key_offsets");
    REFUSED(shape, mha_mask_set_packed(mask, 0, x, y, err), "0 packed");
    REFUSED(shape, mha_mask_set_packed(mask, 1, late, y, err), "query offsets", "begin at 1");
    REFUSED(shape, mha_mask_set_packed(mask, 2, x, falling, err), "key offsets", "from 2 to 1");
    expect_cells(mask, 0, 0, unchanged);
    expect_cells(mask, 0, 1, "11....111..11....11.");
    mha_mask_destroy(mask);
}

static void expect_unfit(mha_mask *mask, int64_t B, int64_t H, const char *mine, const char *theirs)
{
    REFUSED(MHA_ERROR_SHAPE, mha__mask_fits(mask, B, H, T, S, err), mine, theirs);
    mha_mask_destroy(mask);
}

static void rules_of_other_sizes_than_the_call_are_refused_with_both_numbers(void **state)
{
    (void)state;
    const int64_t x[30] = {0};
    const int32_t on[3] = {0};
    mha_mask *mask = fresh();
    SUCCEEDS(mha_mask_set_head_causal(mask, 3, on, err));
    SUCCEEDS(mha__mask_fits(mask, 1, 3, T, S, err));
    expect_unfit(mask, 1, 2, "3 heads", "H = 2");
    mask = fresh();
    SUCCEEDS(mha_mask_set_head_windows(mask, 1, (int64_t[]){-1}, (int64_t[]){-1}, err));
    SUCCEEDS(mha__mask_fits(mask, 1, 1, T, S, err));
    expect_unfit(mask, 1, 2, "windows of 1", "H = 2"); /* one head does not stand for all */
    mask = fresh();
    SUCCEEDS(mha_mask_set_alignment(mask, MHA_ALIGNMENT_TOP_LEFT, err));
    SUCCEEDS(mha_mask_set_alibi(mask, 3, (float[]){1, 2, 3}, err));
    SUCCEEDS(mha__mask_fits(mask, 1, 3, T, S, err));
    expect_unfit(mask, 1, 4, "slopes of 3", "H = 4");
    mask = fresh();
    SUCCEEDS(mha_mask_set_ranges(mask, 2, T, x, x, err));
    SUCCEEDS(mha__mask_fits(mask, 2, 1, T, S, err));
    expect_unfit(mask, 3, 1, "ranges of 2", "B = 3");
    mask = fresh();
    SUCCEEDS(mha_mask_set_ranges(mask, 1, 5, x, x, err));
    expect_unfit(mask, 1, 1, "5 tokens", "4");
    mask = fresh();
    SUCCEEDS(mha_mask_set_segments(mask, 2, T, x, S, x, err));
    SUCCEEDS(mha__mask_fits(mask, 2, 1, T, S, err));
    expect_unfit(mask, 1, 1, "segments of 2", "B = 1");
    mask = fresh();
    SUCCEEDS(mha_mask_set_segments(mask, 1, 3, x, S, x, err));
    expect_unfit(mask, 1, 1, "query segments of 3", "4");
    mask = fresh();
    SUCCEEDS(mha_mask_set_segments(mask, 1, T, x, 4, x, err));
    expect_unfit(mask, 1, 1, "key segments of 4", "5");
}

static mha_mask *packed(void)
{
    mha_mask *mask = fresh();
    SUCCEEDS(mha_mask_set_packed(mask, 2, (int64_t[]){0, 2, 4}, (int64_t[]){0, 2, 5}, err));
    return mask;
}

static void rules_packed_needs_one_batch_row_room_and_no_lengths(void **state)
{
    (void)state;
    mha_mask *mask = packed();
    SUCCEEDS(mha__mask_fits(mask, 1, 1, T, S, err));
    REFUSED(MHA_ERROR_SHAPE, mha__mask_fits(mask, 2, 1, T, S, err), "2 sequences", "B = 2");
    REFUSED(MHA_ERROR_SHAPE, mha__mask_fits(mask, 1, 1, 3, S, err), "query 4", "T = 3");
    REFUSED(MHA_ERROR_SHAPE, mha__mask_fits(mask, 1, 1, T, 4, err), "key 5", "S = 4");
    SUCCEEDS(mha_mask_set_offsets(mask, 2, (int64_t[]){0, 1}, err));
    SUCCEEDS(mha__mask_fits(mask, 1, 1, T, S, err));
    SUCCEEDS(mha_mask_set_offsets(mask, 1, (int64_t[]){1}, err));
    SUCCEEDS(mha__mask_fits(mask, 1, 1, T, S, err));
    SUCCEEDS(mha_mask_set_offsets(mask, 3, (int64_t[]){0, 1, 2}, err));
    REFUSED(MHA_ERROR_SHAPE, mha__mask_fits(mask, 1, 1, T, S, err), "3 sequences", "packs 2");
    mha_mask_destroy(mask);
    mask = packed();
    SUCCEEDS(mha_mask_set_key_lengths(mask, 1, (int64_t[]){5}, err));
    expect_unfit(mask, 1, 1, "2 sequences", "lengths");
    mask = packed();
    SUCCEEDS(mha_mask_set_query_lengths(mask, 1, (int64_t[]){4}, err));
    expect_unfit(mask, 1, 1, "2 sequences", "lengths");
}

static void rules_around_the_diagonal_need_an_alignment_where_sizes_differ(void **state)
{
    (void)state;
    const int32_t alignment = MHA_ERROR_ALIGNMENT;
    for (int rule = 0; rule < 5; ++rule) {
        mha_mask *mask = fresh();
        switch (rule) {
        case 0:
            SUCCEEDS(mha_mask_set_causal(mask, 1, err));
            break;
        case 1:
            SUCCEEDS(mha_mask_set_head_causal(mask, 2, (int32_t[]){0, 1}, err));
            break;
        case 2:
            SUCCEEDS(mha_mask_set_window(mask, -1, 3, err));
            break;
        case 3:
            SUCCEEDS(
                mha_mask_set_head_windows(mask, 2, (int64_t[]){-1, 4}, (int64_t[]){-1, -1}, err));
            break;
        default:
            SUCCEEDS(mha_mask_set_alibi(mask, 2, NULL, err));
        }
        SUCCEEDS(mha__mask_fits(mask, 2, 2, 4, 4, err));
        REFUSED(alignment, mha__mask_fits(mask, 2, 2, 4, 5, err), "4 queries", "5 keys", "row 0");
        SUCCEEDS(mha_mask_set_key_lengths(mask, 2, (int64_t[]){4, 3}, err));
        REFUSED(alignment, mha__mask_fits(mask, 2, 2, 4, 5, err), "4 queries", "3 keys", "row 1");
        SUCCEEDS(mha_mask_set_key_lengths(mask, 1, (int64_t[]){4}, err));
        SUCCEEDS(mha__mask_fits(mask, 2, 2, 4, 5, err));
        SUCCEEDS(mha_mask_set_key_lengths(mask, 1, (int64_t[]){3}, err));
        for (int32_t said = MHA_ALIGNMENT_TOP_LEFT; said <= MHA_ALIGNMENT_BOTTOM_RIGHT; ++said) {
            SUCCEEDS(mha_mask_set_alignment(mask, said, err));
            SUCCEEDS(mha__mask_fits(mask, 2, 2, 4, 5, err));
        }
        mha_mask_destroy(mask);
    }
    /* rules that switch nothing on need none */
    mha_mask *mask = fresh();
    SUCCEEDS(mha_mask_set_head_causal(mask, 2, (int32_t[]){0, 0}, err));
    SUCCEEDS(mha_mask_set_head_windows(mask, 2, (int64_t[]){-1, -1}, (int64_t[]){-1, -1}, err));
    SUCCEEDS(mha__mask_fits(mask, 1, 2, 4, 5, err));
    /* rotary positions do, with a mask or without one */
    REFUSED(alignment, mha__mask_aligned(NULL, "rotary", 1, 4, 5, err), "rotary", "4", "5");
    REFUSED(alignment, mha__mask_aligned(mask, "rotary", 1, 4, 5, err), "rotary", "4", "5");
    SUCCEEDS(mha__mask_aligned(NULL, "rotary", 1, 5, 5, err));
    SUCCEEDS(mha__mask_aligned(NULL, "rotary", 0, 4, 5, err));
    mha_mask_destroy(mask);

    mask = packed(); /* sequences of 2 x 2 and 2 x 3 */
    SUCCEEDS(mha__mask_fits(mask, 1, 1, T, S, err));
    SUCCEEDS(mha_mask_set_causal(mask, 1, err));
    REFUSED(alignment, mha__mask_fits(mask, 1, 1, T, S, err), "2 queries", "3 keys", "sequence 1");
    SUCCEEDS(mha_mask_set_packed(mask, 2, (int64_t[]){0, 2, 4}, (int64_t[]){0, 2, 4}, err));
    SUCCEEDS(mha__mask_fits(mask, 1, 1, T, S, err)); /* T != S, but each sequence is square */
    mha_mask_destroy(mask);
}

/* ---- describe ---- */

static void expect_text(const mha_mask *mask, int64_t B, int64_t H, int64_t n, const char *expected)
{
    char text[512];
    int64_t length = -1;
    SUCCEEDS(mha_mask_describe(mask, B, H, n, n, 64, 64, text, sizeof text, &length, err));
    assert_string_equal(text, expected);
    assert_int_equal(length, strlen(expected));
}

static void rules_describe_counts_tiles_pairs_and_work(void **state)
{
    (void)state;
    mha_mask *mask = fresh();
    expect_text(mask, 1, 1, 256,
                "call    B=1 H=1 T=256 S=256\n"
                "tiles   16 of 64 queries x 64 keys: 0 skipped, 16 full, 0 mixed\n"
                "pairs   65536 of 65536 visible, 100.0 %\n"
                "work    100.0 % of the tiles' cells\n");
    SUCCEEDS(mha_mask_set_causal(mask, 1, err)); /* 256 * 257 / 2 pairs, 10 of 16 tiles */
    expect_text(mask, 1, 1, 256,
                "call    B=1 H=1 T=256 S=256\n"
                "tiles   16 of 64 queries x 64 keys: 6 skipped, 6 full, 4 mixed\n"
                "pairs   32896 of 65536 visible, 50.1 %\n"
                "work    62.5 % of the tiles' cells\n");
    expect_text(mask, 2, 3, 256,
                "call    B=2 H=3 T=256 S=256\n"
                "tiles   96 of 64 queries x 64 keys: 36 skipped, 36 full, 24 mixed\n"
                "pairs   197376 of 393216 visible, 50.1 %\n"
                "work    62.5 % of the tiles' cells\n");
    SUCCEEDS(mha_mask_set_head_causal(mask, 2, (int32_t[]){0, 1}, err));
    expect_text(mask, 1, 2, 256,
                "call    B=1 H=2 T=256 S=256\n"
                "tiles   32 of 64 queries x 64 keys: 6 skipped, 22 full, 4 mixed\n"
                "pairs   98432 of 131072 visible, 75.0 %\n"
                "work    81.2 % of the tiles' cells\n");
    SUCCEEDS(mha_mask_set_causal(mask, 0, err));
    SUCCEEDS(mha_mask_set_key_lengths(mask, 2, (int64_t[]){0, 65}, err));
    expect_text(mask, 2, 1, 130, /* tiles of 64, 64, 2 on both sides; one column of keys more */
                "call    B=2 H=1 T=130 S=130\n"
                "tiles   18 of 64 queries x 64 keys: 12 skipped, 3 full, 3 mixed\n"
                "pairs   8450 of 33800 visible, 25.0 %\n"
                "work    49.2 % of the tiles' cells\n");
    mha_mask_destroy(mask);
    mask = fresh();
    expect_text(mask, 0, 1, 130,
                "call    B=0 H=1 T=130 S=130\n"
                "tiles   0 of 64 queries x 64 keys: 0 skipped, 0 full, 0 mixed\n"
                "pairs   0 of 0 visible, 0.0 %\n"
                "work    0.0 % of the tiles' cells\n");
    mha_mask_destroy(mask);
}

static void rules_describe_sees_boolean_masks_per_head_and_cuts_the_text(void **state)
{
    (void)state;
    uint8_t bytes[2 * 100] = {0};
    memset(bytes + 100, 1, 70); /* head 1 sees 70 keys, head 0 none */
    mha_mask *mask = fresh();
    SUCCEEDS(mha_mask_add_full_mask(mask, 1, 2, 1, 100, bytes, NULL, 0, err));
    expect_text(mask, 1, 2, 100,
                "call    B=1 H=2 T=100 S=100\n"
                "tiles   8 of 64 queries x 64 keys: 4 skipped, 2 full, 2 mixed\n"
                "pairs   7000 of 20000 visible, 35.0 %\n"
                "work    50.0 % of the tiles' cells\n");
    char text[8] = "";
    int64_t length = 0;
    SUCCEEDS(mha_mask_describe(mask, 1, 2, 100, 100, 1000, 6400, text, 5, &length, err));
    assert_string_equal(text, "call");
    assert_true(length > 100);
    SUCCEEDS(mha_mask_describe(mask, 1, 2, 100, 100, 1000, 6400, NULL, 0, NULL, err));
    mha_mask_destroy(mask);
}

static void rules_describe_refuses_bad_sizes_and_writes_nothing(void **state)
{
    (void)state;
    mha_mask *mask = fresh();
    char text[8] = "before";
    int64_t length = -7;
#define DESCRIBE(mask, B, H, T, S, queries, keys)                                                  \
    mha_mask_describe(mask, B, H, T, S, queries, keys, text, 8, &length, err)
    const int32_t shape = MHA_ERROR_SHAPE;
    REFUSED(MHA_ERROR_NULL_ARGUMENT, DESCRIBE(NULL, 1, 1, 4, 4, 64, 64), "NULL");
    REFUSED(shape, DESCRIBE(mask, -1, 1, 4, 4, 64, 64), "B = -1");
    REFUSED(shape, DESCRIBE(mask, 1, -1, 4, 4, 64, 64), "H = -1");
    REFUSED(shape, DESCRIBE(mask, 1, 1, -4, 4, 64, 64), "T = -4");
    REFUSED(shape, DESCRIBE(mask, 1, 1, 4, -4, 64, 64), "S = -4");
    REFUSED(shape, DESCRIBE(mask, 1, 1, 4, 4, 0, 64), "0 queries");
    REFUSED(shape, DESCRIBE(mask, 1, 1, 4, 4, 64, 0), "0 keys");
    REFUSED(shape, DESCRIBE(mask, 1, 1, 4, 4, 64, 96), "96 keys");
    REFUSED(MHA_ERROR_TOO_LARGE, DESCRIBE(mask, INT64_MAX, 2, 4, 4, 64, 64), "H = 2");
    SUCCEEDS(mha_mask_set_causal(mask, 1, err));
    REFUSED(MHA_ERROR_ALIGNMENT, DESCRIBE(mask, 1, 1, 4, 5, 64, 64), "4", "5");
    SUCCEEDS(mha_mask_set_key_lengths(mask, 3, (int64_t[]){1, 1, 1}, err));
    REFUSED(shape, DESCRIBE(mask, 2, 1, 4, 4, 64, 64), "3", "2");
#undef DESCRIBE
    assert_string_equal(text, "before");
    assert_int_equal(length, -7);
    mha_mask_destroy(mask);
}

/* ---- brutal ---- */

static void rules_without_memory_stay_as_they_were(void **state)
{
    (void)state;
    mha_mask *mask = fresh();
    const int64_t lo[4] = {0, 0, 1, 1}, hi[4] = {4, 4, 5, 5}, zero[5] = {0},
                  one[5] = {1, 1, 1, 1, 1};
    SUCCEEDS(mha_mask_set_alignment(mask, MHA_ALIGNMENT_TOP_LEFT, err));
    SUCCEEDS(mha_mask_set_head_causal(mask, 1, (int32_t[]){1}, err));
    SUCCEEDS(mha_mask_set_head_windows(mask, 1, (int64_t[]){2}, (int64_t[]){-1}, err));
    SUCCEEDS(mha_mask_set_ranges(mask, 1, 4, lo, hi, err));
    SUCCEEDS(mha_mask_set_segments(mask, 1, 4, zero, 5, zero, err));
    const char *const unchanged = "1....11....11...111.";
    expect_cells(mask, 0, 0, unchanged);
#define UNCHANGED(call, allocations)                                                               \
    do {                                                                                           \
        BRUTAL(call, expect_cells(mask, 0, 0, unchanged));                                         \
        assert_int_equal(brutal_failures, allocations);                                            \
        assert_string_not_equal(cells_of(mask, 0, 0, T, S), unchanged);                            \
    } while (0)
    UNCHANGED(mha_mask_set_head_causal(mask, 1, (int32_t[]){0}, NULL), 1);
    SUCCEEDS(mha_mask_set_head_causal(mask, 1, (int32_t[]){1}, err));
    UNCHANGED(mha_mask_set_head_windows(mask, 1, (int64_t[]){0}, (int64_t[]){0}, NULL), 2);
    SUCCEEDS(mha_mask_set_head_windows(mask, 1, (int64_t[]){2}, (int64_t[]){-1}, err));
    UNCHANGED(mha_mask_set_ranges(mask, 1, 4, zero, zero, NULL), 2);
    SUCCEEDS(mha_mask_set_ranges(mask, 1, 4, lo, hi, err));
    UNCHANGED(mha_mask_set_segments(mask, 1, 4, zero, 5, one, NULL), 5);
    SUCCEEDS(mha_mask_set_segments(mask, 1, 4, zero, 5, zero, err));
    BRUTAL(mha_mask_add_key_mask(mask, 1, 5, (const uint8_t[]){0}, NULL, MHA_MASK_BITS, NULL),
           expect_cells(mask, 0, 0, unchanged));
    assert_int_equal(brutal_failures, 2);
    expect_cells(mask, 0, 0, "....................");
    mha_mask_destroy(mask);

    mask = packed();
    BRUTAL(mha_mask_set_packed(mask, 1, (int64_t[]){0, 4}, (int64_t[]){0, 5}, NULL),
           expect_cells(mask, 0, 0, "11...11.....111..111"));
    assert_int_equal(brutal_failures, 2);
    expect_cells(mask, 0, 0, "11111111111111111111");
    char text[8] = "before";
    BRUTAL(mha_mask_describe(mask, 1, 1, T, S, 64, 64, text, 8, NULL, NULL),
           assert_string_equal(text, "before"));
    assert_int_equal(brutal_failures, 1);
    mha_mask_destroy(mask);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_causal_per_head_and_for_all_replace_each_other),
        cmocka_unit_test(rules_windows_per_head_and_for_all_replace_each_other),
        cmocka_unit_test(rules_ranges_are_per_query_and_batch_row),
        cmocka_unit_test(rules_segments_let_equal_ids_see_each_other),
        cmocka_unit_test(rules_segments_of_any_ids_are_as_defined),
        cmocka_unit_test(
            rules_packed_sequences_do_not_see_each_other_and_count_from_their_own_start),
        cmocka_unit_test(rules_bits_say_the_same_as_bytes),
        cmocka_unit_test(rules_bits_over_keys_and_over_queries_and_keys),
        cmocka_unit_test(rules_bytes_count_every_array),
        cmocka_unit_test(rules_setters_refuse_values_outside_their_range_and_change_nothing),
        cmocka_unit_test(rules_of_other_sizes_than_the_call_are_refused_with_both_numbers),
        cmocka_unit_test(rules_packed_needs_one_batch_row_room_and_no_lengths),
        cmocka_unit_test(rules_around_the_diagonal_need_an_alignment_where_sizes_differ),
        cmocka_unit_test(rules_describe_counts_tiles_pairs_and_work),
        cmocka_unit_test(rules_describe_sees_boolean_masks_per_head_and_cuts_the_text),
        cmocka_unit_test(rules_describe_refuses_bad_sizes_and_writes_nothing),
        cmocka_unit_test(rules_without_memory_stay_as_they_were),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
