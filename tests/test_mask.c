/* SPDX-License-Identifier: Apache-2.0 */
#include "support/brutal.h"
#include "support/trial.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { B = 2, H = 3, T = 4, S = 5 };

/*
 * A mask and what it lets through, seen by the weights of an attention with q = 0: > 0 where
 * allowed.
 */
static mha_mask *fresh(void)
{
    mha_mask *mask = NULL;
    assert_int_equal(mha_mask_create(&mask, NULL), MHA_OK);
    assert_non_null(mask);
    return mask;
}

/* The visible cells of `mask` as [B,H,T,keys] characters '1' and '.', in static memory. */
static const char *visible_cells(const mha_mask *mask, int64_t batch, int64_t queries, int64_t keys)
{
    static char cells[512];
    trial p;
    trial_begin(&p, batch, queries, keys, H, 1, 2, 2);
    trial_tensors(&p, 1, 0);
    draw d = {1};
    trial_fill(&p, &d, 1.0f);
    tensor_flood(&p.query, 0.0f);
    mha_context *ctx = NULL;
    assert_int_equal(mha_context_create(&ctx, NULL), MHA_OK);
    mha_layer *layer = trial_layer(&p);
    mha_call *call = trial_call(&p);
    SUCCEEDS(mha_forward(ctx, layer, mask, call, err));
    int64_t count = tensor_elements(&p.weights);
    assert_true(count < (int64_t)sizeof cells);
    for (int64_t i = 0; i < count; ++i) {
        cells[i] = p.weights.data[i] > 0 ? '1' : '.';
    }
    cells[count] = '\0';
    mha_call_destroy(call);
    mha_layer_destroy(layer);
    mha_context_destroy(ctx);
    trial_end(&p);
    return cells;
}

/* All B * H blocks are these T * S cells. */
static void assert_every_block(const mha_mask *mask, const char *block)
{
    const char *cells = visible_cells(mask, B, T, S);
    for (int i = 0; i < B * H; ++i) {
        if (memcmp(cells + i * T * S, block, T * S) != 0) {
            print_error("block %d: %.20s, expected %s\n", i, cells + i * T * S, block);
            fail();
        }
    }
}

/* ---- behaviour: rules by position ---- */

static void mask_fresh_hides_nothing(void **state)
{
    (void)state;
    mha_mask *mask = fresh();
    assert_every_block(mask, "11111111111111111111");
    assert_every_block(NULL, "11111111111111111111");
    mha_mask_destroy(mask);
    mha_mask_destroy(NULL);
}

static void mask_causal_follows_its_alignment(void **state)
{
    (void)state;
    mha_mask *mask = fresh();
    SUCCEEDS(mha_mask_set_causal(mask, 1, err));
    SUCCEEDS(mha_mask_set_alignment(mask, MHA_ALIGNMENT_TOP_LEFT, err));
    assert_every_block(mask, "1....11...111..1111.");
    SUCCEEDS(mha_mask_set_alignment(mask, MHA_ALIGNMENT_BOTTOM_RIGHT, err));
    assert_every_block(mask, "11...111..1111.11111");
    SUCCEEDS(mha_mask_set_causal(mask, 0, err));
    assert_every_block(mask, "11111111111111111111");
    mha_mask_destroy(mask);
}

static void mask_offsets_are_per_batch_row_or_one_for_all(void **state)
{
    (void)state;
    mha_mask *mask = fresh();
    SUCCEEDS(mha_mask_set_causal(mask, 1, err));
    SUCCEEDS(mha_mask_set_offsets(mask, 2, (int64_t[]){-2, 3}, err));
    const char *cells = visible_cells(mask, B, T, S);
    assert_memory_equal(cells, "..........1....11...", 20);
    assert_memory_equal(cells + H * 20, "1111.111111111111111", 20);
    SUCCEEDS(mha_mask_set_offsets(mask, 1, (int64_t[]){1}, err));
    assert_every_block(mask, "11...111..1111.11111");
    /* a named alignment takes the place of the offsets */
    SUCCEEDS(mha_mask_set_alignment(mask, MHA_ALIGNMENT_TOP_LEFT, err));
    assert_every_block(mask, "1....11...111..1111.");
    mha_mask_destroy(mask);
}

static void mask_window_does_not_count_the_token_itself(void **state)
{
    (void)state;
    mha_mask *mask = fresh();
    SUCCEEDS(mha_mask_set_alignment(mask, MHA_ALIGNMENT_TOP_LEFT, err));
    SUCCEEDS(mha_mask_set_window(mask, 1, 0, err));
    assert_every_block(mask, "1....11....11....11.");
    SUCCEEDS(mha_mask_set_window(mask, 0, 2, err));
    assert_every_block(mask, "111...111...111...11");
    SUCCEEDS(mha_mask_set_window(mask, -1, 0, err)); /* no bound to the left: causal */
    assert_every_block(mask, "1....11...111..1111.");
    SUCCEEDS(mha_mask_set_window(mask, INT64_MAX, 0, err));
    assert_every_block(mask, "1....11...111..1111.");
    SUCCEEDS(mha_mask_set_window(mask, -1, -1, err));
    assert_every_block(mask, "11111111111111111111");
    SUCCEEDS(mha_mask_set_window(mask, 2, INT64_MAX, err));
    SUCCEEDS(mha_mask_set_causal(mask, 1, err));
    SUCCEEDS(mha_mask_set_alignment(mask, MHA_ALIGNMENT_BOTTOM_RIGHT, err));
    assert_every_block(mask, "11...111...111...111");
    mha_mask_destroy(mask);
}

static void mask_lengths_hide_the_keys_and_queries_behind_them(void **state)
{
    (void)state;
    mha_mask *mask = fresh();
    SUCCEEDS(mha_mask_set_key_lengths(mask, 2, (int64_t[]){2, 0}, err));
    const char *cells = visible_cells(mask, B, T, S);
    assert_memory_equal(cells, "11...11...11...11...", 20);
    assert_memory_equal(cells + H * 20, "....................", 20);
    SUCCEEDS(mha_mask_set_key_lengths(mask, 1, (int64_t[]){4}, err));
    SUCCEEDS(mha_mask_set_query_lengths(mask, 2, (int64_t[]){1, 4}, err));
    cells = visible_cells(mask, B, T, S);
    assert_memory_equal(cells, "1111................", 20);
    assert_memory_equal(cells + H * 20, "1111.1111.1111.1111.", 20);
    /* bottom right counts from the lengths of the batch row: S_b - T_b = 3 and 0 */
    SUCCEEDS(mha_mask_set_causal(mask, 1, err));
    SUCCEEDS(mha_mask_set_alignment(mask, MHA_ALIGNMENT_BOTTOM_RIGHT, err));
    cells = visible_cells(mask, B, T, S);
    assert_memory_equal(cells, "1111................", 20);
    assert_memory_equal(cells + H * 20, "1....11...111..1111.", 20);
    mha_mask_destroy(mask);
}

/* ---- behaviour: boolean masks ---- */

static void mask_any_byte_but_0_is_true_and_inverted_turns_it_round(void **state)
{
    (void)state;
    const uint8_t bytes[10] = {1, 0, 255, 0, 2, 0, 0, 0, 0, 128};
    mha_mask *mask = fresh();
    SUCCEEDS(mha_mask_add_key_mask(mask, 2, 5, bytes, NULL, 0, err));
    const char *cells = visible_cells(mask, B, T, S);
    assert_memory_equal(cells, "1.1.11.1.11.1.11.1.1", 20);
    assert_memory_equal(cells + H * 20, "....1....1....1....1", 20);
    mha_mask_destroy(mask);

    mask = fresh();
    SUCCEEDS(mha_mask_add_key_mask(mask, 2, 5, bytes, NULL, MHA_MASK_INVERTED, err));
    cells = visible_cells(mask, B, T, S);
    assert_memory_equal(cells, ".1.1..1.1..1.1..1.1.", 20);
    assert_memory_equal(cells + H * 20, "1111.1111.1111.1111.", 20);
    mha_mask_destroy(mask);
}

static void mask_several_are_anded(void **state)
{
    (void)state;
    const uint8_t keys[5] = {1, 1, 0, 1, 1};
    const uint8_t pairs[20] = {1, 1, 1, 1, 0, 0, 1, 1, 1, 1, 1, 1, 1, 0, 1, 0, 0, 0, 0, 0};
    mha_mask *mask = fresh();
    SUCCEEDS(mha_mask_add_key_mask(mask, 1, 5, keys, NULL, 0, err));
    SUCCEEDS(mha_mask_add_query_key_mask(mask, 4, 5, pairs, NULL, 0, err));
    assert_every_block(mask, "11.1..1.1111..1.....");
    SUCCEEDS(mha_mask_set_causal(mask, 1, err));
    SUCCEEDS(mha_mask_set_alignment(mask, MHA_ALIGNMENT_TOP_LEFT, err));
    assert_every_block(mask, "1.....1...11........");
    mha_mask_destroy(mask);
}

static void mask_full_is_per_batch_row_and_head_or_broadcast(void **state)
{
    (void)state;
    uint8_t bytes[H * T * S] = {0};
    bytes[0 * T * S + 3] = 1; /* head 0: query 0 sees key 3 */
    bytes[2 * T * S + 9] = 1; /* head 2: query 1 sees key 4 */
    mha_mask *mask = fresh();
    SUCCEEDS(mha_mask_add_full_mask(mask, 1, H, T, S, bytes, NULL, 0, err));
    const char *cells = visible_cells(mask, B, T, S);
    for (int b = 0; b < B; ++b) {
        assert_memory_equal(cells + b * H * 20, "...1................", 20);
        assert_memory_equal(cells + (b * H + 1) * 20, "....................", 20);
        assert_memory_equal(cells + (b * H + 2) * 20, ".........1..........", 20);
    }
    mha_mask_destroy(mask);
}

static void mask_strides_of_0_broadcast_and_others_step_over_gaps(void **state)
{
    (void)state;
    const uint8_t row[5] = {0, 1, 1, 0, 0};
    mha_mask *mask = fresh();
    SUCCEEDS(mha_mask_add_query_key_mask(mask, 4, 5, row, (int64_t[]){0, 1}, 0, err));
    assert_every_block(mask, ".11...11...11...11..");
    mha_mask_destroy(mask);

    /* every third byte, rows 16 apart */
    uint8_t gaps[4 * 16];
    memset(gaps, 0xFF, sizeof gaps);
    for (int i = 0; i < T; ++i) {
        for (int j = 0; j < S; ++j) {
            gaps[i * 16 + 3 * j] = j == i;
        }
    }
    mask = fresh();
    SUCCEEDS(mha_mask_add_query_key_mask(mask, 4, 5, gaps, (int64_t[]){16, 3}, 0, err));
    assert_every_block(mask, "1.....1.....1.....1.");
    mha_mask_destroy(mask);
}

static void mask_with_fewer_keys_than_the_call_hides_the_rest_inverted_or_not(void **state)
{
    (void)state;
    const uint8_t bytes[3] = {1, 0, 1};
    for (int32_t flags = 0; flags <= MHA_MASK_INVERTED; ++flags) {
        mha_mask *mask = fresh();
        SUCCEEDS(mha_mask_add_key_mask(mask, 1, 3, bytes, NULL, flags, err));
        assert_every_block(mask, flags ? ".1....1....1....1..." : "1.1..1.1..1.1..1.1..");
        mha_mask_destroy(mask);
    }
    mha_mask *mask = fresh();
    SUCCEEDS(mha_mask_add_key_mask(mask, 1, 0, NULL, NULL, 0, err));
    assert_every_block(mask, "....................");
    mha_mask_destroy(mask);
}

static void mask_keeps_no_pointer_of_the_caller(void **state)
{
    (void)state;
    uint8_t *bytes = malloc(5);
    int64_t *lengths = malloc(2 * sizeof *lengths), *offsets = malloc(2 * sizeof *offsets);
    memcpy(bytes, (const uint8_t[]){1, 1, 1, 0, 1}, 5);
    lengths[0] = 5;
    lengths[1] = 3;
    offsets[0] = offsets[1] = 2;
    mha_mask *mask = fresh();
    SUCCEEDS(mha_mask_add_key_mask(mask, 1, 5, bytes, NULL, 0, err));
    SUCCEEDS(mha_mask_set_key_lengths(mask, 2, lengths, err));
    SUCCEEDS(mha_mask_set_offsets(mask, 2, offsets, err));
    SUCCEEDS(mha_mask_set_causal(mask, 1, err));
    memset(bytes, 0, 5);
    memset(lengths, 0xFF, 16);
    memset(offsets, 0xFF, 16);
    free(bytes);
    free(lengths);
    free(offsets);
    const char *cells = visible_cells(mask, B, T, S);
    assert_memory_equal(cells, "111..111..111.1111.1", 20);
    assert_memory_equal(cells + H * 20, "111..111..111..111..", 20);
    mha_mask_destroy(mask);
}

static void mask_bytes_grow_by_bits_not_bytes(void **state)
{
    (void)state;
    mha_mask *mask = fresh();
    int64_t empty = mha_mask_bytes(mask);
    assert_true(empty > 0);
    uint8_t *bytes = calloc(256, 256);
    SUCCEEDS(mha_mask_add_query_key_mask(mask, 256, 256, bytes, NULL, 0, err));
    free(bytes);
    int64_t grown = mha_mask_bytes(mask) - empty;
    assert_in_range(grown, 256 * 256 / 8, 2 * 256 * 256 / 8);
    assert_int_equal(mha_mask_bytes(NULL), MHA_ERROR_NULL_ARGUMENT);
    mha_mask_destroy(mask);
}

/* ---- refusals ---- */

static void mask_setters_refuse_values_outside_their_range_and_change_nothing(void **state)
{
    (void)state;
    const uint8_t bytes[5] = {1, 1, 1, 1, 0};
    const int64_t too_far = (INT64_C(1) << 40) + 1;
    mha_mask *mask = fresh();
    SUCCEEDS(mha_mask_set_causal(mask, 1, err));
    SUCCEEDS(mha_mask_set_alignment(mask, MHA_ALIGNMENT_TOP_LEFT, err));
    SUCCEEDS(mha_mask_add_key_mask(mask, 1, 5, bytes, NULL, 0, err));

    REFUSED(MHA_ERROR_VALUE, mha_mask_set_causal(mask, 2, err), "2");
    REFUSED(MHA_ERROR_VALUE, mha_mask_set_causal(mask, -1, err), "-1");
    REFUSED(MHA_ERROR_UNKNOWN_ID, mha_mask_set_alignment(mask, 4, err), "4");
    REFUSED(MHA_ERROR_UNKNOWN_ID, mha_mask_set_alignment(mask, -1, err), "-1");
    REFUSED(MHA_ERROR_UNKNOWN_ID, mha_mask_set_alignment(mask, MHA_ALIGNMENT_EXPLICIT, err), "3");
    REFUSED(MHA_ERROR_SHAPE, mha_mask_set_offsets(mask, 0, (int64_t[]){0}, err), "0");
    REFUSED(MHA_ERROR_TOO_LARGE, mha_mask_set_offsets(mask, 1, &too_far, err), "1099511627777");
    REFUSED(MHA_ERROR_TOO_LARGE, mha_mask_set_offsets(mask, 2, (int64_t[]){0, INT64_MIN}, err), "");
    REFUSED(MHA_ERROR_SHAPE, mha_mask_set_window(mask, -2, 0, err), "-2");
    REFUSED(MHA_ERROR_SHAPE, mha_mask_set_window(mask, 0, INT64_MIN, err), "");
    REFUSED(MHA_ERROR_SHAPE, mha_mask_set_key_lengths(mask, 0, (int64_t[]){0}, err), "0");
    REFUSED(MHA_ERROR_SHAPE, mha_mask_set_key_lengths(mask, 2, (int64_t[]){1, -3}, err), "-3");
    REFUSED(MHA_ERROR_SHAPE, mha_mask_set_query_lengths(mask, -1, (int64_t[]){0}, err), "-1");
    REFUSED(MHA_ERROR_SHAPE, mha_mask_set_query_lengths(mask, 1, (int64_t[]){-4}, err), "-4");
    REFUSED(MHA_ERROR_SHAPE, mha_mask_add_key_mask(mask, 0, 5, bytes, NULL, 0, err), "0");
    REFUSED(MHA_ERROR_SHAPE, mha_mask_add_key_mask(mask, 1, -5, bytes, NULL, 0, err), "-5");
    REFUSED(MHA_ERROR_SHAPE, mha_mask_add_key_mask(mask, 1, 5, bytes, (int64_t[]){5, -1}, 0, err),
            "-1");
    REFUSED(MHA_ERROR_UNKNOWN_ID, mha_mask_add_key_mask(mask, 1, 5, bytes, NULL, 4, err), "4");
    REFUSED(MHA_ERROR_SHAPE, mha_mask_add_query_key_mask(mask, 0, 5, bytes, NULL, 0, err), "0");
    REFUSED(MHA_ERROR_SHAPE, mha_mask_add_full_mask(mask, 1, 0, 1, 5, bytes, NULL, 0, err), "0");
    REFUSED(MHA_ERROR_TOO_LARGE,
            mha_mask_add_full_mask(mask, INT64_MAX, INT64_MAX, 1, 5, bytes, (int64_t[]){0, 0, 0, 1},
                                   0, err),
            "");
    assert_every_block(mask, "1....11...111..1111.");
    mha_mask_destroy(mask);
}

static void mask_null_is_refused_everywhere(void **state)
{
    (void)state;
    const int32_t null = MHA_ERROR_NULL_ARGUMENT;
    const uint8_t byte = 1;
    const int64_t one = 1;
    mha_mask *mask = fresh();
    REFUSED(null, mha_mask_create(NULL, err), "NULL");
    REFUSED(null, mha_mask_set_causal(NULL, 1, err), "NULL");
    REFUSED(null, mha_mask_set_alignment(NULL, 1, err), "NULL");
    REFUSED(null, mha_mask_set_offsets(NULL, 1, &one, err), "NULL");
    REFUSED(null, mha_mask_set_offsets(mask, 1, NULL, err), "NULL");
    REFUSED(null, mha_mask_set_window(NULL, 1, 1, err), "NULL");
    REFUSED(null, mha_mask_set_key_lengths(NULL, 1, &one, err), "NULL");
    REFUSED(null, mha_mask_set_key_lengths(mask, 1, NULL, err), "NULL");
    REFUSED(null, mha_mask_set_query_lengths(NULL, 1, &one, err), "NULL");
    REFUSED(null, mha_mask_set_query_lengths(mask, 1, NULL, err), "NULL");
    REFUSED(null, mha_mask_add_key_mask(NULL, 1, 1, &byte, NULL, 0, err), "NULL");
    REFUSED(null, mha_mask_add_key_mask(mask, 1, 1, NULL, NULL, 0, err), "NULL");
    REFUSED(null, mha_mask_add_query_key_mask(NULL, 1, 1, &byte, NULL, 0, err), "NULL");
    REFUSED(null, mha_mask_add_query_key_mask(mask, 1, 1, NULL, NULL, 0, err), "NULL");
    REFUSED(null, mha_mask_add_full_mask(NULL, 1, 1, 1, 1, &byte, NULL, 0, err), "NULL");
    REFUSED(null, mha_mask_add_full_mask(mask, 1, 1, 1, 1, NULL, NULL, 0, err), "NULL");
    mha_mask_destroy(mask);
}

static void expect_size_refusal(mha_mask *mask, const char *mine, const char *theirs)
{
    trial p;
    trial_begin(&p, B, T, S, H, 1, 2, 2);
    trial_tensors(&p, 0, 0);
    tensor_flood(&p.output, -7.0f);
    mha_context *ctx = NULL;
    assert_int_equal(mha_context_create(&ctx, NULL), MHA_OK);
    mha_layer *layer = trial_layer(&p);
    mha_call *call = trial_call(&p);
    REFUSED(MHA_ERROR_SHAPE, mha_forward(ctx, layer, mask, call, err), mine, theirs);
    assert_true(all_are(p.output.block, p.output.count, -7.0f));
    mha_call_destroy(call);
    mha_layer_destroy(layer);
    mha_context_destroy(ctx);
    mha_mask_destroy(mask);
    trial_end(&p);
}

static void mask_of_other_sizes_than_the_call_is_refused_with_both_numbers(void **state)
{
    (void)state;
    const uint8_t bytes[128] = {0};
    mha_mask *mask = fresh();
    SUCCEEDS(mha_mask_add_key_mask(mask, 3, 5, bytes, NULL, 0, err));
    expect_size_refusal(mask, "3", "2"); /* batch rows */
    mask = fresh();
    SUCCEEDS(mha_mask_add_key_mask(mask, 1, 6, bytes, NULL, 0, err));
    expect_size_refusal(mask, "6", "5"); /* keys */
    mask = fresh();
    SUCCEEDS(mha_mask_add_query_key_mask(mask, 7, 5, bytes, NULL, 0, err));
    expect_size_refusal(mask, "7", "4"); /* queries */
    mask = fresh();
    SUCCEEDS(mha_mask_add_full_mask(mask, 1, 2, 1, 5, bytes, NULL, 0, err));
    expect_size_refusal(mask, "2", "3"); /* heads */
    mask = fresh();
    SUCCEEDS(mha_mask_set_key_lengths(mask, 1, (int64_t[]){6}, err));
    expect_size_refusal(mask, "6", "5");
    mask = fresh();
    SUCCEEDS(mha_mask_set_query_lengths(mask, 1, (int64_t[]){9}, err));
    expect_size_refusal(mask, "9", "4");
    mask = fresh();
    SUCCEEDS(mha_mask_set_causal(mask, 1, err));
    SUCCEEDS(mha_mask_set_offsets(mask, 3, (int64_t[]){0, 0, 0}, err));
    expect_size_refusal(mask, "3", "2");
}

/* ---- brutal ---- */

static void mask_without_memory_stays_as_it_was(void **state)
{
    (void)state;
    mha_mask *mask = (mha_mask *)&mask;
    BRUTAL(mha_mask_create(&mask, NULL), {
        assert_null(mask);
        mask = (mha_mask *)&mask;
    });
    assert_true(brutal_failures >= 1);
    const uint8_t first[5] = {1, 1, 1, 1, 0}, second[20] = {0};
    SUCCEEDS(mha_mask_add_key_mask(mask, 1, 5, first, NULL, 0, err));
    SUCCEEDS(mha_mask_set_key_lengths(mask, 1, (int64_t[]){3}, err));
    SUCCEEDS(mha_mask_set_query_lengths(mask, 1, (int64_t[]){4}, err));
    const char *const unchanged = "111..111..111..111..";

    /* arrays of another size than before, so that there is something to allocate */
    BRUTAL(mha_mask_set_key_lengths(mask, 2, (int64_t[]){0, 0}, NULL),
           assert_every_block(mask, unchanged));
    assert_true(brutal_failures >= 1);
    SUCCEEDS(mha_mask_set_key_lengths(mask, 1, (int64_t[]){3}, err));
    BRUTAL(mha_mask_set_query_lengths(mask, 2, (int64_t[]){0, 0}, NULL),
           assert_every_block(mask, unchanged));
    assert_true(brutal_failures >= 1);
    SUCCEEDS(mha_mask_set_query_lengths(mask, 1, (int64_t[]){4}, err));
    BRUTAL(mha_mask_set_offsets(mask, 2, (int64_t[]){-9, -9}, NULL),
           assert_every_block(mask, unchanged));
    assert_true(brutal_failures >= 1);
    BRUTAL(mha_mask_add_query_key_mask(mask, 4, 5, second, NULL, 0, NULL),
           assert_every_block(mask, unchanged));
    assert_true(brutal_failures >= 1);
    assert_every_block(mask, "....................");
    mha_mask_destroy(mask);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mask_fresh_hides_nothing),
        cmocka_unit_test(mask_causal_follows_its_alignment),
        cmocka_unit_test(mask_offsets_are_per_batch_row_or_one_for_all),
        cmocka_unit_test(mask_window_does_not_count_the_token_itself),
        cmocka_unit_test(mask_lengths_hide_the_keys_and_queries_behind_them),
        cmocka_unit_test(mask_any_byte_but_0_is_true_and_inverted_turns_it_round),
        cmocka_unit_test(mask_several_are_anded),
        cmocka_unit_test(mask_full_is_per_batch_row_and_head_or_broadcast),
        cmocka_unit_test(mask_strides_of_0_broadcast_and_others_step_over_gaps),
        cmocka_unit_test(mask_with_fewer_keys_than_the_call_hides_the_rest_inverted_or_not),
        cmocka_unit_test(mask_keeps_no_pointer_of_the_caller),
        cmocka_unit_test(mask_bytes_grow_by_bits_not_bytes),
        cmocka_unit_test(mask_setters_refuse_values_outside_their_range_and_change_nothing),
        cmocka_unit_test(mask_null_is_refused_everywhere),
        cmocka_unit_test(mask_of_other_sizes_than_the_call_is_refused_with_both_numbers),
        cmocka_unit_test(mask_without_memory_stays_as_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
