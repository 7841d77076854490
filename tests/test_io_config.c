/* SPDX-License-Identifier: Apache-2.0 */
/* mha_io_read_config: what the shapes of a layer's tensors say about it. */
#include "io_layers.h"
#include "support/expect.h"

static mha_config *
read_config(const io_draft *draft, int32_t scheme, int64_t heads, int64_t kv_heads)
{
    mha_config *cfg = NULL;
    io_bytes bytes = io_draft_bytes(draft, "p.");
    mha_io_safetensors *file = io_open(&bytes);
    SUCCEEDS(mha_io_read_config(file, scheme, "p.", heads, kv_heads, &cfg, err));
    assert_non_null(cfg);
    /* what it says fits the file */
    mha_layer *layer = NULL;
    SUCCEEDS(mha_layer_create(cfg, &layer, err));
    SUCCEEDS(mha_io_load_layer(file, scheme, "p.", layer, err));
    mha_layer_destroy(layer);
    mha_io_safetensors_close(file);
    io_bytes_free(&bytes);
    return cfg;
}

static void refuse_config(const io_draft *draft,
                          int32_t scheme,
                          int64_t heads,
                          int64_t kv_heads,
                          int32_t status,
                          const char *word)
{
    io_bytes bytes = io_draft_bytes(draft, "p.");
    mha_io_safetensors *file = io_open(&bytes);
    mha_config *cfg = (mha_config *)&bytes;
    REFUSED(status, mha_io_read_config(file, scheme, "p.", heads, kv_heads, &cfg, err), word);
    assert_null(cfg);
    mha_io_safetensors_close(file);
    io_bytes_free(&bytes);
}

static io_draft torch(int64_t rows, int64_t columns, int64_t out_rows, int64_t out_columns)
{
    io_draft draft = {0};
    io_draft_add(&draft, "in_proj_weight", rows, columns, 0);
    io_draft_add(&draft, "out_proj.weight", out_rows, out_columns, 0);
    return draft;
}

static io_draft bert(int64_t q, int64_t k, int64_t v, int64_t wide)
{
    io_draft draft = {0};
    io_draft_add(&draft, "self.query.weight", q, wide, 0);
    io_draft_add(&draft, "self.key.weight", k, wide, 0);
    io_draft_add(&draft, "self.value.weight", v, wide, 0);
    io_draft_add(&draft, "output.dense.weight", wide, q, 0);
    return draft;
}

/* ---- behaviour ---- */

static void config_of_equal_widths_has_whole_heads_and_no_bias(void **state)
{
    (void)state;
    io_draft draft = torch(36, 12, 12, 12);
    mha_config *cfg = read_config(&draft, MHA_SCHEME_TORCH, 3, 0);
    assert_int_equal(mha_config_embedding(cfg), 12);
    assert_int_equal(mha_config_heads(cfg), 3);
    assert_int_equal(mha_config_kv_heads(cfg), 3);
    assert_int_equal(mha_config_head_size(cfg), 4);
    assert_int_equal(mha_config_value_head_size(cfg), 4);
    assert_int_equal(mha_config_output_width(cfg), 12);
    for (int32_t p = 0; p < 4; p++) {
        assert_int_equal(mha_config_projection(cfg, p), 1);
        assert_int_equal(mha_config_bias(cfg, p), 0);
    }
    assert_true(mha_config_scale(cfg) == 0.5f);
    mha_config_destroy(cfg);
}

static void config_of_packed_weights_splits_grouped_heads_and_another_value_size(void **state)
{
    (void)state;
    /* H = 4, G = 2, D = 3, Dv = 5: 12 + 6 + 10 rows; the output reads 20 features and makes 9 */
    io_draft draft = torch(28, 7, 9, 20);
    io_draft_add(&draft, "in_proj_bias", 28, -1, 0);
    mha_config *cfg = read_config(&draft, MHA_SCHEME_TORCH, 4, 2);
    assert_int_equal(mha_config_kv_heads(cfg), 2);
    assert_int_equal(mha_config_head_size(cfg), 3);
    assert_int_equal(mha_config_value_head_size(cfg), 5);
    assert_int_equal(mha_config_query_width(cfg), 7);
    assert_int_equal(mha_config_output_width(cfg), 9);
    assert_int_equal(mha_config_bias(cfg, MHA_PROJECTION_Q), 1);
    assert_int_equal(mha_config_bias(cfg, MHA_PROJECTION_K), 1);
    assert_int_equal(mha_config_bias(cfg, MHA_PROJECTION_V), 1);
    assert_int_equal(mha_config_bias(cfg, MHA_PROJECTION_OUT), 0);
    mha_config_destroy(cfg);
}

static void config_of_separate_weights_has_three_input_widths(void **state)
{
    (void)state;
    io_draft draft = {0};
    io_draft_add(&draft, "q_proj_weight", 8, 5, 0);
    io_draft_add(&draft, "k_proj_weight", 8, 6, 0);
    io_draft_add(&draft, "v_proj_weight", 8, 7, 0);
    io_draft_add(&draft, "out_proj.weight", 5, 8, 0);
    mha_config *cfg = read_config(&draft, MHA_SCHEME_TORCH, 2, 2);
    assert_int_equal(mha_config_query_width(cfg), 5);
    assert_int_equal(mha_config_key_width(cfg), 6);
    assert_int_equal(mha_config_value_width(cfg), 7);
    assert_int_equal(mha_config_head_size(cfg), 4);
    mha_config_destroy(cfg);
}

static void config_of_gpt2_reads_its_weights_turned(void **state)
{
    (void)state;
    io_draft draft = {0};
    io_draft_add(&draft, "c_attn.weight", 6, 18, 0);
    io_draft_add(&draft, "c_attn.bias", 18, -1, 0);
    io_draft_add(&draft, "c_proj.weight", 6, 6, 0);
    io_draft_add(&draft, "c_proj.bias", 6, -1, 0);
    mha_config *cfg = read_config(&draft, MHA_SCHEME_GPT2, 2, 0);
    assert_int_equal(mha_config_embedding(cfg), 6);
    assert_int_equal(mha_config_head_size(cfg), 3);
    assert_int_equal(mha_config_bias(cfg, MHA_PROJECTION_OUT), 1);
    mha_config_destroy(cfg);
}

static void config_of_bert_sees_each_bias_by_itself(void **state)
{
    (void)state;
    io_draft draft = bert(6, 6, 6, 6);
    io_draft_add(&draft, "self.query.bias", 6, -1, 0);
    io_draft_add(&draft, "self.value.bias", 6, -1, 0);
    mha_config *cfg = read_config(&draft, MHA_SCHEME_BERT, 2, 0);
    assert_int_equal(mha_config_bias(cfg, MHA_PROJECTION_Q), 1);
    assert_int_equal(mha_config_bias(cfg, MHA_PROJECTION_K), 0);
    assert_int_equal(mha_config_bias(cfg, MHA_PROJECTION_V), 1);
    assert_int_equal(mha_config_bias(cfg, MHA_PROJECTION_OUT), 0);
    mha_config_destroy(cfg);
}

/* Four query heads of 2 on two key-value heads, as Llama shares them. */
static io_draft llama(void)
{
    io_draft draft = {0};
    io_draft_add(&draft, "q_proj.weight", 8, 6, 0.01f);
    io_draft_add(&draft, "k_proj.weight", 4, 6, 0.02f);
    io_draft_add(&draft, "v_proj.weight", 4, 6, 0.03f);
    io_draft_add(&draft, "o_proj.weight", 6, 8, 0.04f);
    return draft;
}

static void config_of_llama_has_rotary_positions_in_halves_and_no_bias(void **state)
{
    (void)state;
    io_draft draft = llama();
    mha_config *cfg = read_config(&draft, MHA_SCHEME_LLAMA, 4, 2);
    assert_int_equal(mha_config_kv_heads(cfg), 2);
    assert_int_equal(mha_config_head_size(cfg), 2);
    assert_int_equal(mha_config_rotary_pairing(cfg), MHA_ROTARY_HALVES);
    assert_int_equal(mha_config_rotary_size(cfg), 2);
    assert_true(mha_config_rotary_base(cfg) == 10000.0);
    for (int32_t p = MHA_PROJECTION_Q; p <= MHA_PROJECTION_OUT; p++) {
        assert_int_equal(mha_config_bias(cfg, p), 0);
    }
    mha_config_destroy(cfg);
    io_draft_add(&draft, "q_proj.bias", 8, -1, 1);
    cfg = read_config(&draft, MHA_SCHEME_LLAMA, 4, 2);
    assert_int_equal(mha_config_bias(cfg, MHA_PROJECTION_Q), 1);
    assert_int_equal(mha_config_bias(cfg, MHA_PROJECTION_K), 0);
    mha_config_destroy(cfg);
}

/* ---- refusals ---- */

static void config_with_heads_that_do_not_divide_is_refused(void **state)
{
    (void)state;
    io_draft draft = torch(36, 12, 12, 12);
    refuse_config(&draft, MHA_SCHEME_TORCH, 5, 0, MHA_ERROR_HEAD_COUNT, "5");
    refuse_config(&draft, MHA_SCHEME_TORCH, 0, 0, MHA_ERROR_HEAD_COUNT, "0");
    refuse_config(&draft, MHA_SCHEME_TORCH, -3, 0, MHA_ERROR_HEAD_COUNT, "-3");
    refuse_config(&draft, MHA_SCHEME_TORCH, 3, -1, MHA_ERROR_HEAD_COUNT, "-1");
    refuse_config(&draft, MHA_SCHEME_TORCH, 3, 2, MHA_ERROR_HEAD_COUNT, "2");
    refuse_config(&draft, MHA_SCHEME_TORCH, INT64_MAX, 0, MHA_ERROR_HEAD_COUNT, "heads");
    refuse_config(&draft, MHA_SCHEME_TORCH, 6, 1, MHA_ERROR_HEAD_COUNT, "7 heads"); /* 34 / 7 */
    draft = bert(8, 4, 4, 8);
    refuse_config(&draft, MHA_SCHEME_BERT, 4, 4, MHA_ERROR_HEAD_COUNT, "key and value");
    mha_config_destroy(read_config(&draft, MHA_SCHEME_BERT, 4, 2));
    draft = bert(6, 6, 3, 6);
    refuse_config(&draft, MHA_SCHEME_BERT, 2, 0, MHA_ERROR_HEAD_COUNT, "key and value");
}

static void config_of_odd_shapes_is_refused(void **state)
{
    (void)state;
    io_draft draft = torch(36, 12, 12, 12);
    io_draft_reshape(&draft, "in_proj_weight", 36, -1);
    refuse_config(&draft, MHA_SCHEME_TORCH, 3, 0, MHA_ERROR_SHAPE, "[36]");
    draft = torch(36, 12, 12, 12);
    io_draft_reshape(&draft, "out_proj.weight", 12, 0);
    refuse_config(&draft, MHA_SCHEME_TORCH, 3, 0, MHA_ERROR_SHAPE, "[12, 0]");
    draft = torch(6, 2, 2, 60);
    refuse_config(&draft, MHA_SCHEME_TORCH, 2, 0, MHA_ERROR_SHAPE, "too few");
    draft = torch(36, 12, 12, 12);
    io_draft_add(&draft, "out_proj.bias", 13, -1, 0);
    refuse_config(&draft, MHA_SCHEME_TORCH, 3, 0, MHA_ERROR_SHAPE, "[13]");
}

static void config_of_missing_tensors_is_refused(void **state)
{
    (void)state;
    io_draft draft = bert(6, 6, 6, 6);
    io_draft_remove(&draft, "output.dense.weight");
    refuse_config(
        &draft, MHA_SCHEME_BERT, 2, 0, MHA_ERROR_FILE_TENSOR, "\"p.output.dense.weight\"");
    draft = bert(6, 6, 6, 6);
    refuse_config(&draft, MHA_SCHEME_TORCH, 2, 0, MHA_ERROR_FILE_TENSOR, "\"p.in_proj_weight\"");
}

static void config_with_null_arguments_is_refused(void **state)
{
    (void)state;
    io_draft draft = bert(6, 6, 6, 6);
    io_bytes bytes = io_draft_bytes(&draft, "");
    mha_io_safetensors *file = io_open(&bytes);
    mha_config *cfg = (mha_config *)&bytes;
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_io_read_config(NULL, 1, "", 2, 0, &cfg, err), "file");
    assert_null(cfg);
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_io_read_config(file, 1, NULL, 2, 0, &cfg, err), "prefix");
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_io_read_config(file, 1, "", 2, 0, NULL, err), "out");
    mha_io_safetensors_close(file);
    io_bytes_free(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(config_of_equal_widths_has_whole_heads_and_no_bias),
        cmocka_unit_test(config_of_llama_has_rotary_positions_in_halves_and_no_bias),
        cmocka_unit_test(config_of_packed_weights_splits_grouped_heads_and_another_value_size),
        cmocka_unit_test(config_of_separate_weights_has_three_input_widths),
        cmocka_unit_test(config_of_gpt2_reads_its_weights_turned),
        cmocka_unit_test(config_of_bert_sees_each_bias_by_itself),
        cmocka_unit_test(config_with_heads_that_do_not_divide_is_refused),
        cmocka_unit_test(config_of_odd_shapes_is_refused),
        cmocka_unit_test(config_of_missing_tensors_is_refused),
        cmocka_unit_test(config_with_null_arguments_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
