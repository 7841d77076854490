/* SPDX-License-Identifier: Apache-2.0 */
/* The plan as pure logic: tiles, tasks and offsets of all sizes, no arithmetic done. */
#include "support/draw.h"
#include "support/expect.h"

#include <attention/planner.h>
#include <string.h>

/* The BLAS as it may be found: packed or copy-free kernels, free or confined. */
static struct mha__blas_state blas_state(int family, int confined)
{
    const int64_t limit = confined ? 262144 : INT64_MAX;
    const int64_t small = family == MHA__BLAS_SMALL && !confined ? 1000000 : limit;
    return (struct mha__blas_state){
        .limit = limit, .small_max = small, .family = family, .confined = confined != 0};
}

static struct mha__planner_request draw_request(draw *d, int64_t most)
{
    struct mha__planner_request r = {
        .B = draw_int(d, 1, 5),
        .T = draw_int(d, 1, most),
        .S = draw_int(d, 0, most),
        .G = draw_int(d, 1, 4),
        .D = draw_int(d, 1, 300),
        .Dv = draw_int(d, 1, 300),
        .project_q = draw_chance(d, 0.5),
        .project_k = draw_chance(d, 0.5),
        .project_v = draw_chance(d, 0.5),
        .project_out = draw_chance(d, 0.5),
        .gather = draw_chance(d, 0.3),
        .banded = draw_chance(d, 0.5),
        .weights = draw_chance(d, 0.5),
        .scores = draw_chance(d, 0.2),
        .by_rows = draw_chance(d, 0.3),
        .rotary_size = draw_chance(d, 0.2) ? 4 : 0,
        .fused = draw_chance(d, 0.5),
        .panel = draw_chance(d, 0.5) ? 16 : 32,
        .query_panel = 8 * draw_int(d, 1, 8),
        .row_panel = draw_chance(d, 0.5) ? 4 : 8,
        .threads = draw_int(d, 1, 64),
        .blas = blas_state((int)draw_int(d, 0, 1), (int)draw_int(d, 0, 1)),
    };
    r.H = r.G * draw_int(d, 1, 4);
    r.Eq = r.project_q ? draw_int(d, 1, 900) : r.H * r.D;
    r.Ek = r.project_k ? draw_int(d, 1, 900) : r.G * r.D;
    r.Ev = r.project_v ? draw_int(d, 1, 900) : r.G * r.Dv;
    return r;
}

static int64_t ceil_div(int64_t n, int64_t by)
{
    return (n + by - 1) / by;
}

/* A piece of `bytes` at `offset` lies in 0 .. end, on a cache line. */
static void assert_piece(int64_t offset, int64_t bytes, int64_t end)
{
    assert_int_equal(offset % 64, 0);
    assert_true(offset >= 0 && bytes >= 0 && offset + bytes <= end);
}

static void plans_of_any_size_have_tiles_that_cover_it_and_pieces_that_fit(void **state)
{
    (void)state;
    draw d = {1};
    const int64_t f = sizeof(float);
    for (int i = 0; i < 20000; ++i) {
        struct mha__planner_request r = draw_request(&d, i % 4 ? 600 : 100000);
        struct mha__planner_plan p;
        assert_true(mha__planner_make(&r, &p));
        assert_true(p.query_tile >= 1 && p.query_tile <= r.T);
        assert_true(p.key_tile >= 64 && p.key_tile % 64 == 0);
        assert_int_equal(p.query_tiles, ceil_div(r.T, p.query_tile));
        assert_int_equal(p.key_tiles, ceil_div(r.S, p.key_tile));
        assert_int_equal(p.tasks, p.direct ? r.B * r.G * p.key_splits : r.B * r.H * p.query_tiles);
        assert_int_equal(p.rows, p.direct ? r.T * (r.H / r.G)
                                 : p.transposed
                                     ? ceil_div(p.query_tile, r.query_panel) * r.query_panel
                                     : p.query_tile);
        if (p.transposed) {
            assert_true(r.fused && !p.direct && !r.weights && !r.scores && !r.by_rows);
            assert_true(p.rows / r.query_panel <= 64); // a bit each
            assert_true(p.key_panel == r.row_panel && p.value_panel == r.row_panel);
            assert_true(p.key_tile == 64 ||
                        p.key_tile * r.query_panel * f <= 24576); // first-level cache
        }
        assert_true(p.score_ld >= p.key_tile && p.score_ld % 16 == 0);
        assert_in_range(p.lanes, 1, r.threads);
        assert_true(p.columns >= 64 && MHA__WEIGHT_TILE_MOST % p.columns == 0);

        if (r.project_q) {
            assert_piece(p.q_heads, f * r.B * r.T * r.H * r.D, p.bytes);
        }
        if (r.project_out) {
            assert_piece(p.o_heads, f * r.B * r.T * r.H * r.Dv, p.bytes);
        }
        assert_true(p.unpacked == (p.direct || p.key_slots > 0));
        if (p.unpacked) {
            assert_piece(p.keys, r.project_k ? f * r.B * r.G * r.S * r.D : 0, p.values);
            assert_piece(p.values, r.project_v ? f * r.B * r.G * r.S * r.Dv : 0, p.nonfinite);
        } else {
            assert_piece(p.keys, f * r.B * r.G * p.key_tiles * p.key_tile * r.D, p.values);
            assert_piece(p.values, f * r.B * r.G * p.key_tiles * p.value_keys * p.values_ld,
                         p.nonfinite);
        }
        assert_true(p.values_ld >= r.Dv);
        if (p.direct) {
            assert_false(r.weights || r.scores);
            assert_true(p.key_splits >= 1 && p.key_splits * p.split_tiles >= p.key_tiles);
            assert_true(p.key_splits == 1 || (p.key_splits - 1) * p.split_tiles < p.key_tiles);
        }
        if (p.key_splits > 1) {
            assert_piece(p.partials, f * p.tasks * p.rows * (p.values_ld + 3), p.arrived);
            assert_piece(p.arrived, 4 * r.B * r.G, p.lane0);
        }
        assert_piece(p.nonfinite, r.B * r.G * p.key_tiles, p.lane0);
        assert_piece(p.lane0, p.lanes * p.lane.bytes, p.bytes);
        assert_true(p.packed_bytes >= p.nonfinite + r.B * r.G * p.key_tiles - p.keys);
        assert_int_equal(p.lane.bytes % 64, 0);

        const struct mha__planner_lane *l = &p.lane;
        const int64_t turned = p.transposed ? p.rows : 0;
        assert_piece(l->queries, f * (p.transposed && r.rotary_size == 0 ? 0 : p.rows) * r.D,
                     l->scores);
        assert_piece(l->scores, f * p.score_rows * p.score_ld, l->out);
        assert_piece(l->out, f * (p.rows - turned) * p.values_ld, l->query_panels);
        assert_piece(l->query_panels, f * turned * r.D, l->out_panels);
        assert_piece(l->out_panels, f * turned * p.values_ld, l->slots);
        assert_true(p.key_slots == 0 || (p.transposed && p.key_slots >= p.key_tiles));
        assert_piece(l->slots, 8 * p.key_slots, l->keys);
        assert_piece(l->keys, f * p.key_slots * p.key_tile * r.D, l->values);
        assert_piece(l->values,
                     f * (p.key_slots > 1 ? p.key_slots : 1) * p.value_keys * p.values_ld, l->rows);
        assert_piece(l->visible, 8 * p.rows * p.key_tile / 64, l->heads);
        assert_piece(l->maxima, r.weights ? f * p.key_tiles * p.query_tile : 0, l->bytes);
        if (r.project_q || r.project_k || r.project_v || r.project_out) {
            assert_piece(l->product, f * p.row_tile * mha__planner_weight_tile(&r.blas), l->bytes);
        }
    }
}

static void plans_do_not_depend_on_the_number_of_threads_but_for_the_lanes(void **state)
{
    (void)state;
    draw d = {2};
    for (int i = 0; i < 2000; ++i) {
        struct mha__planner_request r = draw_request(&d, 3000);
        struct mha__planner_plan one, many;
        r.threads = 1;
        assert_true(mha__planner_make(&r, &one));
        r.threads = draw_int(&d, 2, 64);
        assert_true(mha__planner_make(&r, &many));
        assert_int_equal(one.query_tile, many.query_tile);
        assert_int_equal(one.key_tile, many.key_tile);
        assert_int_equal(one.tasks, many.tasks);
        assert_int_equal(one.direct, many.direct);
        assert_int_equal(one.key_splits, many.key_splits);
        assert_int_equal(one.row_tile, many.row_tile);
        assert_int_equal(one.k_block, many.k_block);
        assert_int_equal(one.packed_bytes, many.packed_bytes);
        assert_int_equal(one.lane.bytes, many.lane.bytes);
        assert_int_equal(one.lane0, many.lane0);
        assert_string_equal(one.algorithm, many.algorithm);
        assert_int_equal(one.lanes, 1);
    }
}

static void tiles_of_a_confined_blas_stay_below_what_it_threads_at_usual_head_sizes(void **state)
{
    (void)state;
    for (int family = 0; family < 2; ++family) {
        for (int64_t D = 8; D <= 128; D += 8) {
            struct mha__planner_request r = {.B = 1, .T = 4096, .S = 4096, .H = 8, .G = 8};
            struct mha__planner_plan p;
            r.D = r.Dv = D;
            r.Eq = r.Ek = r.Ev = 8 * D;
            r.threads = 1;
            r.blas = blas_state(family, 1);
            assert_true(mha__planner_make(&r, &p));
            assert_true(p.query_tile * p.key_tile * D <= 262144);
            assert_non_null(strstr(p.algorithm, "confined"));
            r.blas = blas_state(family, 0);
            assert_true(mha__planner_make(&r, &p));
            assert_null(strstr(p.algorithm, "confined"));
        }
    }
}

static void workspace_of_a_long_sequence_grows_with_its_length_not_its_square(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; ++kind) {
        int64_t before = 0;
        for (int64_t T = 8192; T <= 262144; T *= 2) {
            struct mha__planner_request r = {.B = 1, .T = T, .S = T, .H = 8, .G = 8};
            struct mha__planner_plan p;
            r.D = r.Dv = 64;
            r.Eq = r.Ek = r.Ev = 512;
            r.threads = 2;
            r.blas = blas_state(kind % 2, kind / 2);
            assert_true(mha__planner_make(&r, &p));
            assert_true(p.bytes - p.packed_bytes < INT64_C(64) << 20);
            assert_true(before == 0 || p.bytes <= before * 2 + (1 << 20));
            before = p.bytes;
        }
    }
}

static void sizes_that_overflow_are_no_plan(void **state)
{
    (void)state;
    const int64_t huge = INT64_C(1) << 61;
    struct mha__planner_request r = {.B = 1, .T = 1, .S = huge, .H = 1, .G = 1, .D = 64, .Dv = 64};
    struct mha__planner_plan p;
    r.Eq = r.Ek = r.Ev = 64;
    r.threads = 1;
    r.blas = blas_state(0, 0);
    r.project_k = true;
    assert_false(mha__planner_make(&r, &p));
    r.S = 1;
    r.T = huge;
    r.project_q = true;
    assert_false(mha__planner_make(&r, &p));
    r.T = 1;
    assert_true(mha__planner_make(&r, &p));
}

static struct mha__planner_plan plan_of(struct mha__planner_request r)
{
    struct mha__planner_plan p;
    r.D = r.Dv = 64;
    r.Eq = r.Ek = r.Ev = 64;
    r.threads = 1;
    r.panel = r.panel > 0 ? r.panel : 16;
    r.query_panel = 24;
    r.row_panel = 4;
    assert_true(mha__planner_make(&r, &p));
    return p;
}

/* By the queries that share a key, with either engine, unless an option needs packed keys or whole rows. */
static void few_queries_take_keys_and_values_in_place(void **state)
{
    (void)state;
    for (int fused = 0; fused < 2; ++fused) {
        const struct mha__planner_request few = {
            .B = 1, .T = 1, .S = 5000, .H = 8, .G = 8, .blas = blas_state(0, 0), .fused = fused};
        struct mha__planner_request r = few;
        const struct mha__planner_plan p = plan_of(r);
        assert_true(p.direct);
        assert_non_null(strstr(p.algorithm, "direct"));
        assert_true(p.packed_bytes < 4096);
        r.T = 40;
        assert_true(plan_of(r).direct);
        r.T = 41;
        assert_false(plan_of(r).direct);
        r.H = 64;
        r.T = 8;
        assert_true(plan_of(r).direct);
        r.T = 9;
        assert_false(plan_of(r).direct);
        r.H = 8 * 600; // too many rows for a tile of scores
        r.T = 1;
        assert_false(plan_of(r).direct);
        r = few;
        r.panel = 32;
        r.T = 16;
        assert_true(plan_of(r).direct);
        r.T = 17;
        assert_false(plan_of(r).direct);
        for (int option = 0; option < 3; ++option) {
            r = few;
            r.weights = option == 0;
            r.scores = option == 1;
            r.rotary_size = option == 2 ? 8 : 0;
            r.rotary_key_tables = option == 2;
            assert_false(plan_of(r).direct);
        }
    }
}

/* One head has work for many threads; a short call is not cut. */
static void keys_of_a_long_call_are_cut_into_chunks_by_the_shape(void **state)
{
    (void)state;
    struct mha__planner_request r = {.B = 1, .T = 1, .S = 65536, .H = 1, .G = 1};
    r.blas = blas_state(0, 0);
    struct mha__planner_plan p = plan_of(r);
    assert_in_range(p.key_splits, 32, 64);
    assert_int_equal(p.tasks, p.key_splits);
    r.S = 512;
    assert_int_equal(plan_of(r).key_splits, 1);
    r.S = 513;
    assert_int_equal(plan_of(r).key_splits, 2);
    r.S = 65536;
    r.B = 64;
    assert_int_equal(plan_of(r).key_splits, 1);
    r.S = 0;
    assert_int_equal(plan_of(r).key_splits, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_of_any_size_have_tiles_that_cover_it_and_pieces_that_fit),
        cmocka_unit_test(plans_do_not_depend_on_the_number_of_threads_but_for_the_lanes),
        cmocka_unit_test(tiles_of_a_confined_blas_stay_below_what_it_threads_at_usual_head_sizes),
        cmocka_unit_test(workspace_of_a_long_sequence_grows_with_its_length_not_its_square),
        cmocka_unit_test(sizes_that_overflow_are_no_plan),
        cmocka_unit_test(few_queries_take_keys_and_values_in_place),
        cmocka_unit_test(keys_of_a_long_call_are_cut_into_chunks_by_the_shape),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
