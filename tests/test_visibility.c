/* SPDX-License-Identifier: Apache-2.0 */
/* From rules to spans and tiles, against the rules asked cell by cell. */
#include "support/draw.h"
#include "support/expect.h"

#include <mha/mask.h>

#include <attention/visibility.h>
#include <string.h>

enum { B = 3, H = 2, MOST = 150, MOST_WORDS = 3 };

/* Rules with all their arrays, drawn at random; T and S up to MOST. */
typedef struct world {
    struct mha__rules rules;
    int64_t T, S;
    int64_t offsets[B], key_lengths[B], query_lengths[B];
    struct mha__boolean boolean[2];
    uint64_t bits[2][B * H * MOST * MOST_WORDS];
} world;

static void draw_boolean(world *w, int number, draw *d)
{
    struct mha__boolean *m = &w->boolean[number];
    m->batch = draw_chance(d, 0.5) ? B : 1;
    m->heads = draw_chance(d, 0.5) ? H : 1;
    m->queries = draw_chance(d, 0.5) ? w->T : 1;
    m->keys = draw_chance(d, 0.3) ? draw_int(d, 0, w->S) : w->S;
    m->words = (m->keys + 63) / 64;
    m->bits = w->bits[number];
    memset(w->bits[number], 0, sizeof w->bits[number]);
    const double share = draw_chance(d, 0.3) ? 1.0 : draw_chance(d, 0.5) ? 0.9 : 0.02;
    for (int64_t row = 0; row < m->batch * m->heads * m->queries; ++row) {
        for (int64_t j = 0; j < m->keys; ++j) {
            if (draw_chance(d, share)) {
                m->bits[row * m->words + j / 64] |= UINT64_C(1) << (j % 64);
            }
        }
    }
}

static int64_t *maybe(draw *d, int64_t *array, int64_t *batch)
{
    *batch = draw_chance(d, 0.5) ? 0 : draw_chance(d, 0.5) ? 1 : B;
    return *batch ? array : NULL;
}

static void draw_world(world *w, draw *d)
{
    memset(&w->rules, 0, sizeof w->rules);
    w->T = draw_int(d, 1, MOST);
    w->S = draw_int(d, 0, MOST);
    struct mha__rules *r = &w->rules;
    r->causal = draw_chance(d, 0.5);
    r->alignment = (int32_t)draw_int(d, 1, 3);
    r->left = draw_chance(d, 0.5) ? -1 : draw_int(d, 0, 80);
    r->right = draw_chance(d, 0.5) ? -1 : draw_int(d, 0, 80);
    if (draw_chance(d, 0.1)) {
        r->left = INT64_MAX;
        r->right = INT64_MAX;
    }
    r->key_lengths = maybe(d, w->key_lengths, &r->key_batch);
    r->query_lengths = maybe(d, w->query_lengths, &r->query_batch);
    for (int b = 0; b < B; ++b) {
        w->offsets[b] = draw_int(d, -MOST - 20, MOST + 20);
        w->key_lengths[b] = draw_int(d, 0, w->S);
        w->query_lengths[b] = draw_int(d, 0, w->T);
    }
    if (draw_chance(d, 0.05)) {
        w->offsets[0] = -(INT64_C(1) << 40);
        w->offsets[1] = INT64_C(1) << 40;
    }
    if (r->alignment == MHA_ALIGNMENT_EXPLICIT) {
        r->offset_batch = draw_chance(d, 0.5) ? 1 : B;
        r->offsets = w->offsets;
    }
    r->booleans = draw_int(d, 0, 2);
    r->boolean = w->boolean;
    for (int m = 0; m < r->booleans; ++m) {
        draw_boolean(w, m, d);
    }
}

static int64_t entry(const int64_t *array, int64_t batch, int64_t b, int64_t fallback)
{
    return batch == 0 ? fallback : array[batch == 1 ? 0 : b];
}

/* The rules by position, straight from the sentences of <mha/mask.h>. */
static int seen_by_position(const world *w, int64_t b, int64_t i, int64_t j)
{
    const struct mha__rules *r = &w->rules;
    const int64_t keys = entry(r->key_lengths, r->key_batch, b, w->S);
    const int64_t queries = entry(r->query_lengths, r->query_batch, b, w->T);
    const int64_t off = r->alignment == MHA_ALIGNMENT_BOTTOM_RIGHT ? keys - queries
                        : r->alignment == MHA_ALIGNMENT_EXPLICIT
                            ? entry(r->offsets, r->offset_batch, b, 0)
                            : 0;
    return i < queries && j < keys && (!r->causal || j <= i + off) &&
           (r->left < 0 || r->left == INT64_MAX || j >= i + off - r->left) &&
           (r->right < 0 || r->right == INT64_MAX || j <= i + off + r->right);
}

static int seen(const world *w, int64_t b, int64_t h, int64_t i, int64_t j)
{
    int yes = seen_by_position(w, b, i, j);
    for (int64_t n = 0; yes && n < w->rules.booleans; ++n) {
        const struct mha__boolean *m = &w->boolean[n];
        int64_t row = ((m->batch == 1 ? 0 : b) * m->heads + (m->heads == 1 ? 0 : h)) * m->queries +
                      (m->queries == 1 ? 0 : i);
        yes = j < m->keys && (m->bits[row * m->words + j / 64] >> (j % 64) & 1);
    }
    return yes;
}

static world w;

static void check_tile(int64_t b, int64_t h, int64_t i0, int64_t rows, int64_t j0, int64_t columns)
{
    struct mha__row_rules row;
    struct mha__span spans[MOST];
    uint64_t bits[MOST * MOST_WORDS];
    memset(bits, 0xA5, sizeof bits);
    mha__visibility_of_batch_row(&w.rules, b, 0, w.T, w.S, &row);
    for (int64_t r = 0; r < rows; ++r) {
        spans[r] = mha__visibility_span(&row, i0 + r);
    }
    enum mha__tile_class class =
        mha__visibility_tile(&w.rules, spans, b, h, i0, rows, j0, columns, bits, MOST_WORDS);
    int64_t visible = 0;
    for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = 0; c < columns; ++c) {
            int expected = seen(&w, b, h, i0 + r, j0 + c);
            visible += expected;
            if (class == MHA__TILE_MIXED) {
                assert_int_equal(bits[r * MOST_WORDS + c / 64] >> (c % 64) & 1, expected);
            }
        }
    }
    if (class == MHA__TILE_SKIP) {
        assert_int_equal(visible, 0);
    } else if (class == MHA__TILE_FULL) {
        assert_int_equal(visible, rows * columns);
    }
}

static void tiles_of_random_rules_show_exactly_the_allowed_cells(void **state)
{
    (void)state;
    draw d = {1};
    for (int round = 0; round < (MHA_TESTS_REDUCED ? 300 : 3000); ++round) {
        draw_world(&w, &d);
        for (int tile = 0; tile < 6 && w.S > 0; ++tile) {
            int64_t i0 = draw_int(&d, 0, w.T - 1);
            int64_t j0 = draw_int(&d, 0, (w.S - 1) / 64) * 64;
            check_tile(draw_int(&d, 0, B - 1), draw_int(&d, 0, H - 1), i0,
                       draw_int(&d, 1, w.T - i0), j0, draw_int(&d, 1, w.S - j0));
        }
    }
}

static void
spans_of_random_rules_hold_every_visible_key_and_are_no_wider_than_the_rules(void **state)
{
    (void)state;
    draw d = {2};
    for (int round = 0; round < (MHA_TESTS_REDUCED ? 100 : 1000); ++round) {
        draw_world(&w, &d);
        for (int64_t b = 0; b < B; ++b) {
            struct mha__row_rules row;
            mha__visibility_of_batch_row(&w.rules, b, 0, w.T, w.S, &row);
            for (int64_t i = 0; i < w.T; ++i) {
                struct mha__span s = mha__visibility_span(&row, i);
                assert_true(s.lo <= s.hi);
                for (int64_t j = 0; j < w.S; ++j) {
                    int inside = j >= s.lo && j < s.hi;
                    if (seen(&w, b, 0, i, j)) {
                        assert_true(inside);
                    }
                    if (inside) {
                        assert_true(seen_by_position(&w, b, i, j));
                    }
                }
            }
        }
    }
}

static void pairs_are_the_cells_that_rules_by_position_leave(void **state)
{
    (void)state;
    draw d = {3};
    for (int round = 0; round < (MHA_TESTS_REDUCED ? 100 : 1000); ++round) {
        draw_world(&w, &d);
        int64_t pairs = 0, keys = w.S; /* a boolean mask with a shorter key axis is a length, too */
        for (int64_t m = 0; m < w.rules.booleans; ++m) {
            keys = w.boolean[m].keys < keys ? w.boolean[m].keys : keys;
        }
        for (int64_t b = 0; b < B; ++b) {
            for (int64_t i = 0; i < w.T; ++i) {
                for (int64_t j = 0; j < keys; ++j) {
                    pairs += seen_by_position(&w, b, i, j);
                }
            }
        }
        assert_int_equal(mha__visibility_pairs(&w.rules, B, 3, w.T, w.S), 3 * pairs);
    }
    assert_int_equal(mha__visibility_pairs(NULL, 4, 2, 5, 6), 240);
    assert_int_equal(mha__visibility_pairs(NULL, 4, 2, 5, 0), 0);
}

static void no_rules_show_everything(void **state)
{
    (void)state;
    struct mha__row_rules row;
    uint64_t bits[2];
    mha__visibility_of_batch_row(NULL, 0, 0, 5, 100, &row);
    struct mha__span spans[1] = {mha__visibility_span(&row, 4)};
    assert_int_equal(spans[0].lo, 0);
    assert_int_equal(spans[0].hi, 100);
    assert_int_equal(mha__visibility_tile(NULL, spans, 0, 0, 4, 1, 0, 100, bits, 2),
                     MHA__TILE_FULL);
    assert_false(mha__visibility_is_banded(NULL));
}

static void causal_and_windows_are_banded_lengths_and_booleans_alone_are_not(void **state)
{
    (void)state;
    struct mha__rules r = {.left = -1, .right = -1};
    assert_false(mha__visibility_is_banded(&r));
    r.causal = true;
    assert_true(mha__visibility_is_banded(&r));
    r.causal = false;
    r.left = 3;
    assert_true(mha__visibility_is_banded(&r));
    r.left = -1;
    r.right = 0;
    assert_true(mha__visibility_is_banded(&r));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiles_of_random_rules_show_exactly_the_allowed_cells),
        cmocka_unit_test(
            spans_of_random_rules_hold_every_visible_key_and_are_no_wider_than_the_rules),
        cmocka_unit_test(pairs_are_the_cells_that_rules_by_position_leave),
        cmocka_unit_test(no_rules_show_everything),
        cmocka_unit_test(causal_and_windows_are_banded_lengths_and_booleans_alone_are_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
