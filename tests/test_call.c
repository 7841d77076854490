/* SPDX-License-Identifier: Apache-2.0 */
#include "support/brutal.h"
#include "support/guard_page.h"
#include "support/trial.h"

#include <api/objects.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { B = 2, T = 3, S = 4, H = 2, D = 4, E = H * D };

static mha_call *fresh(void)
{
    mha_call *call = NULL;
    assert_int_equal(mha_call_create(&call, NULL), MHA_OK);
    assert_non_null(call);
    return call;
}

/* Plain attention of the sizes above. */
typedef struct fixture {
    trial p;
    mha_context *ctx;
    mha_layer *layer;
} fixture;

static void fixture_begin(fixture *f)
{
    trial_begin(&f->p, B, T, S, H, H, D, D);
    trial_tensors(&f->p, 1, 1);
    draw d = {11};
    trial_fill(&f->p, &d, 1.0f);
    assert_int_equal(mha_context_create(&f->ctx, NULL), MHA_OK);
    f->layer = trial_layer(&f->p);
}

static void fixture_end(fixture *f)
{
    mha_layer_destroy(f->layer);
    mha_context_destroy(f->ctx);
    trial_end(&f->p);
}

static int32_t set_input(mha_call *call, int32_t id, const tensor *t, mha_error *err)
{
    return mha_call_set_input(call, id, MHA_FLOAT32, t->data, t->rank, t->shape, t->strides, err);
}

static int32_t set_output(mha_call *call, int32_t id, const tensor *t, mha_error *err)
{
    return mha_call_set_output(call, id, MHA_FLOAT32, t->data, t->rank, t->shape, t->strides, err);
}

/* ---- behaviour ---- */

static void call_may_be_used_again_with_some_tensors_set_anew(void **state)
{
    (void)state;
    fixture f;
    fixture_begin(&f);
    mha_call *call = trial_call(&f.p);
    SUCCEEDS(mha_forward(f.ctx, f.layer, NULL, call, err));
    float *first = tensor_read(&f.p.output);

    tensor other;
    tensor_create(&other, 3, f.p.query.shape, NULL);
    draw d = {12};
    draw_fill(&d, other.data, other.count, -1, 1);
    SUCCEEDS(set_input(call, MHA_TENSOR_QUERY, &other, err));
    SUCCEEDS(mha_forward(f.ctx, f.layer, NULL, call, err));
    assert_false(same_bits(f.p.output.data, first, f.p.output.count));
    SUCCEEDS(set_input(call, MHA_TENSOR_QUERY, &f.p.query, err));
    SUCCEEDS(mha_forward(f.ctx, f.layer, NULL, call, err));
    assert_same_bits(f.p.output.data, first, f.p.output.count);

    free(first);
    tensor_destroy(&other);
    mha_call_destroy(call);
    fixture_end(&f);
}

static void call_null_data_of_rank_0_takes_a_tensor_out_again(void **state)
{
    (void)state;
    fixture f;
    fixture_begin(&f);
    mha_call *call = trial_call(&f.p);
    SUCCEEDS(mha_call_set_output(call, MHA_TENSOR_WEIGHTS, MHA_FLOAT32, NULL, 0, NULL, NULL, err));
    tensor_flood(&f.p.weights, -7.0f);
    SUCCEEDS(mha_forward(f.ctx, f.layer, NULL, call, err));
    assert_true(all_are(f.p.weights.block, f.p.weights.count, -7.0f));

    SUCCEEDS(mha_call_set_input(call, MHA_TENSOR_VALUE, MHA_FLOAT32, NULL, 0, NULL, NULL, err));
    REFUSED(MHA_ERROR_NOT_SET, mha_forward(f.ctx, f.layer, NULL, call, err), "VALUE");
    mha_call_destroy(call);
    fixture_end(&f);
}

static void call_copies_shape_and_strides_and_reads_no_data_before_the_forward(void **state)
{
    (void)state;
    fixture f;
    fixture_begin(&f);
    guarded page;
    float *data = guarded_create(&page, (size_t)f.p.query.count * sizeof *data, 1);
    memcpy(data, f.p.query.data, (size_t)(B * T * E) * sizeof *data);
    mha_call *call = trial_call(&f.p);
    SUCCEEDS(mha_forward(f.ctx, f.layer, NULL, call, err));
    float *expected = tensor_read(&f.p.output);

    int64_t *shape = malloc(3 * sizeof *shape), *strides = malloc(3 * sizeof *strides);
    memcpy(shape, f.p.query.shape, 3 * sizeof *shape);
    memcpy(strides, f.p.query.strides, 3 * sizeof *strides);
    guarded_lock(&page); /* whoever touches the data now ends the program */
    SUCCEEDS(mha_call_set_input(call, MHA_TENSOR_QUERY, MHA_FLOAT32, data, 3, shape, strides, err));
    memset(shape, 0xFF, 3 * sizeof *shape);
    memset(strides, 0xFF, 3 * sizeof *strides);
    free(shape);
    free(strides);
    guarded_unlock(&page);
    SUCCEEDS(mha_forward(f.ctx, f.layer, NULL, call, err));
    assert_same_bits(f.p.output.data, expected, f.p.output.count);

    guarded_lock(&page);
    mha_call_destroy(call);
    guarded_destroy(&page);
    free(expected);
    fixture_end(&f);
}

static void call_heads_may_be_given_with_three_or_four_axes(void **state)
{
    (void)state;
    fixture f;
    fixture_begin(&f);
    mha_call *call = trial_call(&f.p);
    SUCCEEDS(mha_forward(f.ctx, f.layer, NULL, call, err));
    float *expected = tensor_read(&f.p.output);
    const int64_t tq[4] = {B, T, H, D}, tk[4] = {B, S, H, D};
    SUCCEEDS(
        mha_call_set_input(call, MHA_TENSOR_QUERY, MHA_FLOAT32, f.p.query.data, 4, tq, NULL, err));
    SUCCEEDS(mha_call_set_input(call, MHA_TENSOR_KEY, MHA_FLOAT32, f.p.key.data, 4, tk, NULL, err));
    SUCCEEDS(
        mha_call_set_input(call, MHA_TENSOR_VALUE, MHA_FLOAT32, f.p.value.data, 4, tk, NULL, err));
    SUCCEEDS(mha_call_set_output(call, MHA_TENSOR_OUTPUT, MHA_FLOAT32, f.p.output.data, 4, tq, NULL,
                                 err));
    SUCCEEDS(mha_forward(f.ctx, f.layer, NULL, call, err));
    assert_same_bits(f.p.output.data, expected, f.p.output.count);
    free(expected);
    mha_call_destroy(call);
    fixture_end(&f);
}

static void call_last_axis_of_size_1_may_have_any_stride(void **state)
{
    (void)state;
    mha_call *call = fresh();
    float x[64] = {0};
    SUCCEEDS(mha_call_set_input(call, MHA_TENSOR_QUERY, MHA_FLOAT32, x, 3, (int64_t[]){1, 4, 1},
                                (int64_t[]){16, 4, 9}, err));
    mha_call_destroy(call);
}

/* ---- refusals ---- */

static void call_input_with_bad_arguments_is_refused(void **state)
{
    (void)state;
    mha_call *call = fresh();
    float x[64] = {0};
    const int64_t shape[4] = {2, 3, 2, 4};
    const int32_t f32 = MHA_FLOAT32;
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_call_set_input(NULL, 0, f32, x, 3, shape, NULL, err),
            "NULL");
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_call_set_input(call, 0, f32, x, 3, NULL, NULL, err),
            "NULL");
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_call_set_input(call, 0, f32, NULL, 3, shape, NULL, err),
            "NULL");
    REFUSED(MHA_ERROR_UNKNOWN_ID, mha_call_set_input(call, 3, f32, x, 3, shape, NULL, err), "3");
    REFUSED(MHA_ERROR_UNKNOWN_ID, mha_call_set_input(call, -1, f32, x, 3, shape, NULL, err), "-1");
    REFUSED(MHA_ERROR_UNKNOWN_ID, mha_call_set_input(call, 0, 1, x, 3, shape, NULL, err), "1");
    REFUSED(MHA_ERROR_SHAPE, mha_call_set_input(call, 0, f32, x, 2, shape, NULL, err), "2");
    REFUSED(MHA_ERROR_SHAPE, mha_call_set_input(call, 0, f32, x, 5, shape, NULL, err), "5");
    REFUSED(MHA_ERROR_SHAPE, mha_call_set_input(call, 0, f32, x, -1, shape, NULL, err), "-1");
    REFUSED(MHA_ERROR_SHAPE,
            mha_call_set_input(call, 0, f32, x, 3, (int64_t[]){2, -3, 4}, NULL, err), "-3");
    REFUSED(MHA_ERROR_SHAPE,
            mha_call_set_input(call, 0, f32, x, 3, shape, (int64_t[]){8, -4, 1}, err), "-4");
    REFUSED(MHA_ERROR_SHAPE,
            mha_call_set_input(call, 0, f32, x, 3, shape, (int64_t[]){12, 4, 2}, err), "2");
    REFUSED(MHA_ERROR_TOO_LARGE,
            mha_call_set_input(call, 0, f32, x, 3,
                               (int64_t[]){INT64_C(1) << 31, INT64_C(1) << 31, 2}, NULL, err),
            "");
    REFUSED(MHA_ERROR_TOO_LARGE,
            mha_call_set_input(call, 0, f32, x, 3, (int64_t[]){3, 1, 2},
                               (int64_t[]){INT64_MAX / 2, 1, 1}, err),
            "");
    mha_call_destroy(call);
}

static void call_output_with_bad_arguments_is_refused(void **state)
{
    (void)state;
    mha_call *call = fresh();
    float x[64] = {0};
    const int64_t shape[4] = {2, 3, 2, 4};
    const int32_t f32 = MHA_FLOAT32, out = MHA_TENSOR_OUTPUT;
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_call_set_output(NULL, out, f32, x, 3, shape, NULL, err),
            "NULL");
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_call_set_output(call, out, f32, x, 3, NULL, NULL, err),
            "NULL");
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_call_set_output(call, out, f32, NULL, 3, shape, NULL, err),
            "NULL");
    REFUSED(MHA_ERROR_UNKNOWN_ID,
            mha_call_set_output(call, MHA_TENSOR_KEY, f32, x, 3, shape, NULL, err), "1");
    REFUSED(MHA_ERROR_UNKNOWN_ID,
            mha_call_set_output(call, MHA_TENSOR_BIAS0, f32, x, 4, shape, NULL, err), "6");
    REFUSED(MHA_ERROR_UNKNOWN_ID, mha_call_set_output(call, 19, f32, x, 3, shape, NULL, err), "19");
    REFUSED(MHA_ERROR_UNKNOWN_ID, mha_call_set_output(call, out, -3, x, 3, shape, NULL, err), "-3");
    REFUSED(MHA_ERROR_SHAPE,
            mha_call_set_output(call, MHA_TENSOR_WEIGHTS, f32, x, 3, shape, NULL, err), "3");
    REFUSED(MHA_ERROR_SHAPE, mha_call_set_output(call, MHA_TENSOR_LSE, f32, x, 4, shape, NULL, err),
            "4");
    /* strides that let two elements share memory */
    REFUSED(MHA_ERROR_OVERLAP,
            mha_call_set_output(call, out, f32, x, 3, shape, (int64_t[]){0, 2, 1}, err), "");
    REFUSED(MHA_ERROR_OVERLAP,
            mha_call_set_output(call, out, f32, x, 3, shape, (int64_t[]){2, 2, 1}, err), "");
    REFUSED(
        MHA_ERROR_OVERLAP,
        mha_call_set_output(call, out, f32, x, 3, (int64_t[]){2, 3, 4}, (int64_t[]){12, 3, 1}, err),
        "");
    mha_call_destroy(call);
}

/* Every tensor by its own rank and side: another rank or the other setter is refused. */
static void call_tensors_have_their_ranks_and_sides(void **state)
{
    (void)state;
    static const struct {
        int32_t id, least, most, output;
    } known[] = {{MHA_TENSOR_QUERY, 3, 4, 0},         {MHA_TENSOR_KEY, 3, 4, 0},
                 {MHA_TENSOR_VALUE, 3, 4, 0},         {MHA_TENSOR_OUTPUT, 3, 4, 1},
                 {MHA_TENSOR_WEIGHTS, 4, 4, 1},       {MHA_TENSOR_LSE, 3, 3, 1},
                 {MHA_TENSOR_BIAS0, 4, 4, 0},         {MHA_TENSOR_BIAS1, 4, 4, 0},
                 {MHA_TENSOR_BIAS2, 4, 4, 0},         {MHA_TENSOR_BIAS3, 4, 4, 0},
                 {MHA_TENSOR_WEIGHTS_MEAN, 3, 3, 1},  {MHA_TENSOR_WEIGHTS_DROPPED, 4, 4, 1},
                 {MHA_TENSOR_SCORES_SCALED, 4, 4, 1}, {MHA_TENSOR_SCORES_CAPPED, 4, 4, 1},
                 {MHA_TENSOR_SCORES_BIASED, 4, 4, 1}, {MHA_TENSOR_ENTROPY, 3, 3, 1},
                 {MHA_TENSOR_MAXIMUM, 3, 3, 1},       {MHA_TENSOR_KEY_MASS, 3, 3, 1},
                 {MHA_TENSOR_KEY_MASS_TOTAL, 2, 2, 1}};
    mha_call *call = fresh();
    float x[64] = {0};
    const int64_t shape[5] = {2, 2, 2, 2, 2};
    for (size_t n = 0; n < sizeof known / sizeof *known; ++n) {
        const int32_t id = known[n].id;
        for (int32_t rank = 1; rank <= 5; ++rank) {
            if (rank >= known[n].least && rank <= known[n].most) {
                SUCCEEDS(
                    known[n].output
                        ? mha_call_set_output(call, id, MHA_FLOAT32, x, rank, shape, NULL, err)
                        : mha_call_set_input(call, id, MHA_FLOAT32, x, rank, shape, NULL, err));
                assert_int_equal(call->tensor[id].rank, rank);
            } else {
                REFUSED(MHA_ERROR_SHAPE,
                        known[n].output
                            ? mha_call_set_output(call, id, MHA_FLOAT32, x, rank, shape, NULL, err)
                            : mha_call_set_input(call, id, MHA_FLOAT32, x, rank, shape, NULL, err),
                        "MHA_TENSOR_");
            }
        }
        REFUSED(
            MHA_ERROR_UNKNOWN_ID,
            known[n].output
                ? mha_call_set_input(call, id, MHA_FLOAT32, x, known[n].most, shape, NULL, err)
                : mha_call_set_output(call, id, MHA_FLOAT32, x, known[n].most, shape, NULL, err),
            "tensor");
    }
    mha_call_destroy(call);
}

/* ---- options ---- */

static void call_dropout_takes_0_to_1_and_a_mask(void **state)
{
    (void)state;
    mha_call *call = fresh();
    uint8_t keep[4] = {1, 0, 1, 0};
    SUCCEEDS(mha_call_set_dropout(call, 1.0, UINT64_C(0xffffffffffffffff), err));
    SUCCEEDS(mha_call_set_dropout(call, 0.25, 7, err));
    SUCCEEDS(mha_call_set_dropout_mask(call, keep, 1, 1, 2, 2, err));
    REFUSED(MHA_ERROR_VALUE, mha_call_set_dropout(call, -0.125, 1, err), "-0.125");
    REFUSED(MHA_ERROR_VALUE, mha_call_set_dropout(call, 1.5, 1, err), "1.5");
    REFUSED(MHA_ERROR_VALUE, mha_call_set_dropout(call, (double)NAN, 1, err), "nan");
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_call_set_dropout(NULL, 0.5, 1, err), "NULL");
    REFUSED(MHA_ERROR_SHAPE, mha_call_set_dropout_mask(call, keep, 1, 1, -2, 2, err), "-2");
    REFUSED(MHA_ERROR_TOO_LARGE, mha_call_set_dropout_mask(call, keep, INT64_MAX, 2, 1, 1, err),
            "9223372036854775807");
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_call_set_dropout_mask(NULL, keep, 1, 1, 1, 1, err),
            "NULL");
    assert_true(call->dropout == 0.25 && call->seed == 7);
    assert_ptr_equal(call->keep, keep);
    assert_memory_equal(call->keep_shape, ((int64_t[]){1, 1, 2, 2}), sizeof call->keep_shape);
    SUCCEEDS(mha_call_set_dropout_mask(call, NULL, 0, 0, 0, 0, err));
    assert_null(call->keep);
    mha_call_destroy(call);
}

static void call_positions_come_in_pairs(void **state)
{
    (void)state;
    mha_call *call = fresh();
    const int64_t ids[8] = {0};
    SUCCEEDS(mha_call_set_positions(call, 2, 3, ids, 4, ids + 1, err));
    REFUSED(MHA_ERROR_SHAPE, mha_call_set_positions(call, 0, 3, ids, 4, ids, err), "0");
    REFUSED(MHA_ERROR_SHAPE, mha_call_set_positions(call, 1, -3, ids, 4, ids, err), "-3");
    REFUSED(MHA_ERROR_SHAPE, mha_call_set_positions(call, 1, 3, ids, -4, ids, err), "-4");
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_call_set_positions(call, 1, 3, NULL, 4, ids, err),
            "query");
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_call_set_positions(call, 1, 3, ids, 4, NULL, err), "key");
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_call_set_positions(NULL, 1, 3, ids, 4, ids, err), "NULL");
    REFUSED(MHA_ERROR_TOO_LARGE, mha_call_set_positions(call, 2, INT64_MAX, ids, 4, ids, err), "2");
    assert_ptr_equal(call->query_ids, ids);
    assert_ptr_equal(call->key_ids, ids + 1);
    assert_true(call->ids_batch == 2 && call->ids_T == 3 && call->ids_S == 4);
    SUCCEEDS(mha_call_set_positions(call, 0, 0, NULL, 0, NULL, err));
    assert_null(call->query_ids);
    assert_null(call->key_ids);
    mha_call_destroy(call);
}

static void on_scores(void *user,
                      int64_t b,
                      int64_t h,
                      int64_t i0,
                      int64_t ni,
                      int64_t j0,
                      int64_t nj,
                      float *scores,
                      int64_t ld)
{
    (void)user, (void)b, (void)h, (void)i0, (void)ni, (void)j0, (void)nj, (void)scores, (void)ld;
}

static void on_weights(void *user,
                       int64_t b,
                       int64_t h,
                       int64_t i0,
                       int64_t ni,
                       int64_t j0,
                       int64_t nj,
                       const float *weights,
                       int64_t ld)
{
    (void)user, (void)b, (void)h, (void)i0, (void)ni, (void)j0, (void)nj, (void)weights, (void)ld;
}

static void call_callbacks_are_kept_with_their_flags_and_removed_by_null(void **state)
{
    (void)state;
    mha_call *call = fresh();
    int user = 0;
    SUCCEEDS(mha_call_set_score_callback(call, on_scores, &user, MHA_CALLBACK_CONCURRENT, err));
    SUCCEEDS(mha_call_set_weights_callback(call, on_weights, &user, 0, err));
    REFUSED(MHA_ERROR_UNKNOWN_ID, mha_call_set_score_callback(call, NULL, NULL, 2, err), "2");
    REFUSED(MHA_ERROR_UNKNOWN_ID, mha_call_set_weights_callback(call, NULL, NULL, -1, err), "-1");
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_call_set_score_callback(NULL, on_scores, NULL, 0, err),
            "NULL");
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_call_set_weights_callback(NULL, on_weights, NULL, 0, err),
            "NULL");
    assert_true(call->score_callback == on_scores && call->weights_callback == on_weights);
    assert_ptr_equal(call->score_user, &user);
    assert_ptr_equal(call->weights_user, &user);
    assert_int_equal(call->score_flags, MHA_CALLBACK_CONCURRENT);
    assert_int_equal(call->weights_flags, 0);
    SUCCEEDS(mha_call_set_score_callback(call, NULL, &user, 1, err));
    SUCCEEDS(mha_call_set_weights_callback(call, NULL, &user, 1, err));
    assert_true(!call->score_callback && !call->weights_callback);
    assert_int_equal(call->score_flags, 0);
    mha_call_destroy(call);
}

static void call_top_keys_are_kept_and_removed_by_0(void **state)
{
    (void)state;
    mha_call *call = fresh();
    int64_t keys[12];
    float weights[12];
    SUCCEEDS(mha_call_set_top_keys(call, 1, 2, 3, 2, keys, weights, err));
    REFUSED(MHA_ERROR_SHAPE, mha_call_set_top_keys(call, 1, 2, 3, -2, keys, weights, err), "-2");
    REFUSED(MHA_ERROR_SHAPE, mha_call_set_top_keys(call, 1, -2, 3, 2, keys, weights, err), "-2");
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_call_set_top_keys(call, 1, 2, 3, 2, NULL, weights, err),
            "NULL");
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_call_set_top_keys(NULL, 1, 2, 3, 2, keys, weights, err),
            "NULL");
    REFUSED(MHA_ERROR_TOO_LARGE,
            mha_call_set_top_keys(call, INT64_MAX / 8, 1, 1, 2, keys, NULL, err), "2");
    assert_ptr_equal(call->top_keys, keys);
    assert_ptr_equal(call->top_weights, weights);
    assert_int_equal(call->top, 2);
    assert_memory_equal(call->top_shape, ((int64_t[]){1, 2, 3}), sizeof call->top_shape);
    SUCCEEDS(mha_call_set_top_keys(call, 0, 2, 3, 2, NULL, NULL, err)); /* an empty call */
    SUCCEEDS(mha_call_set_top_keys(call, 1, 2, 3, 1, keys, NULL, err)); /* no weights wanted */
    assert_null(call->top_weights);
    SUCCEEDS(mha_call_set_top_keys(call, 1, 2, 3, 0, keys, weights, err));
    assert_int_equal(call->top, 0);
    assert_null(call->top_keys);
    mha_call_destroy(call);
}

static void call_create_of_null_is_refused_and_destroy_of_null_does_nothing(void **state)
{
    (void)state;
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_call_create(NULL, err), "NULL");
    mha_call_destroy(NULL);
}

static void call_refused_setter_leaves_the_call_as_before(void **state)
{
    (void)state;
    fixture f;
    fixture_begin(&f);
    mha_call *call = trial_call(&f.p);
    SUCCEEDS(mha_forward(f.ctx, f.layer, NULL, call, err));
    float *expected = tensor_read(&f.p.output);
    float x[4] = {0};
    REFUSED(MHA_ERROR_SHAPE,
            mha_call_set_input(call, MHA_TENSOR_QUERY, MHA_FLOAT32, x, 3, (int64_t[]){1, -1, 4},
                               NULL, err),
            "-1");
    REFUSED(MHA_ERROR_OVERLAP,
            mha_call_set_output(call, MHA_TENSOR_OUTPUT, MHA_FLOAT32, x, 3, (int64_t[]){2, 1, 4},
                                (int64_t[]){0, 4, 1}, err),
            "");
    tensor_flood(&f.p.output, 0.0f);
    SUCCEEDS(mha_forward(f.ctx, f.layer, NULL, call, err));
    assert_same_bits(f.p.output.data, expected, f.p.output.count);
    free(expected);
    mha_call_destroy(call);
    fixture_end(&f);
}

/* ---- brutal ---- */

static void call_without_memory_stays_as_it_was(void **state)
{
    (void)state;
    mha_call *call = (mha_call *)&call;
    BRUTAL(mha_call_create(&call, NULL), {
        assert_null(call);
        call = (mha_call *)&call;
    });
    assert_true(brutal_failures >= 1);
    fixture f;
    fixture_begin(&f);
    BRUTAL(set_input(call, MHA_TENSOR_QUERY, &f.p.query, NULL), {});
    BRUTAL(set_input(call, MHA_TENSOR_KEY, &f.p.key, NULL), {});
    BRUTAL(set_input(call, MHA_TENSOR_VALUE, &f.p.value, NULL), {});
    BRUTAL(set_output(call, MHA_TENSOR_OUTPUT, &f.p.output, NULL), {});
    SUCCEEDS(mha_forward(f.ctx, f.layer, NULL, call, err));
    fixture_end(&f);
    mha_call_destroy(call);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(call_may_be_used_again_with_some_tensors_set_anew),
        cmocka_unit_test(call_null_data_of_rank_0_takes_a_tensor_out_again),
        cmocka_unit_test(call_copies_shape_and_strides_and_reads_no_data_before_the_forward),
        cmocka_unit_test(call_heads_may_be_given_with_three_or_four_axes),
        cmocka_unit_test(call_last_axis_of_size_1_may_have_any_stride),
        cmocka_unit_test(call_input_with_bad_arguments_is_refused),
        cmocka_unit_test(call_output_with_bad_arguments_is_refused),
        cmocka_unit_test(call_tensors_have_their_ranks_and_sides),
        cmocka_unit_test(call_dropout_takes_0_to_1_and_a_mask),
        cmocka_unit_test(call_positions_come_in_pairs),
        cmocka_unit_test(call_callbacks_are_kept_with_their_flags_and_removed_by_null),
        cmocka_unit_test(call_top_keys_are_kept_and_removed_by_0),
        cmocka_unit_test(call_create_of_null_is_refused_and_destroy_of_null_does_nothing),
        cmocka_unit_test(call_refused_setter_leaves_the_call_as_before),
        cmocka_unit_test(call_without_memory_stays_as_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
