/* SPDX-License-Identifier: Apache-2.0 */
/* Loading layers: which tensor becomes which parameter, and what is refused. The layers here have
 * H = 2, G = 1, D = 3, Dv = 2, Eq = Ek = Ev = 5, Eo = 4 unless said, so that every size is another.
 */
#include "io_layers.h"
#include "support/expect.h"

#include <stdio.h>
#include <string.h>

enum { H = 2, G = 1, D = 3, DV = 2, E = 5, EO = 4 };
enum { PARAMETERS = 8 };

static mha_layer *new_layer(int biases)
{
    mha_config *cfg = NULL;
    mha_layer *layer = NULL;
    SUCCEEDS(mha_config_create(E, H, &cfg, err));
    SUCCEEDS(mha_config_set_kv_heads(cfg, G, err));
    SUCCEEDS(mha_config_set_head_size(cfg, D, err));
    SUCCEEDS(mha_config_set_value_head_size(cfg, DV, err));
    SUCCEEDS(mha_config_set_output_width(cfg, EO, err));
    for (int32_t p = 0; p < 4; p++) {
        SUCCEEDS(mha_config_set_bias(cfg, p, biases, err));
    }
    SUCCEEDS(mha_layer_create(cfg, &layer, err));
    mha_config_destroy(cfg);
    return layer;
}

static io_draft bert(int biases)
{
    io_draft draft = {0};
    io_draft_add(&draft, "self.query.weight", H * D, E, 1000);
    io_draft_add(&draft, "self.key.weight", G * D, E, 2000);
    io_draft_add(&draft, "self.value.weight", G * DV, E, 3000);
    io_draft_add(&draft, "output.dense.weight", EO, H * DV, 4000);
    io_draft_add(&draft, "output.LayerNorm.weight", EO, -1, 9000); /* nobody's business */
    if (biases) {
        io_draft_add(&draft, "self.query.bias", H * D, -1, 1500);
        io_draft_add(&draft, "self.key.bias", G * D, -1, 2500);
        io_draft_add(&draft, "self.value.bias", G * DV, -1, 3500);
        io_draft_add(&draft, "output.dense.bias", EO, -1, 4500);
    }
    return draft;
}

static io_draft torch_packed(int biases)
{
    io_draft draft = {0};
    io_draft_add(&draft, "in_proj_weight", H * D + G * D + G * DV, E, 1000);
    io_draft_add(&draft, "out_proj.weight", EO, H * DV, 4000);
    if (biases) {
        io_draft_add(&draft, "in_proj_bias", H * D + G * D + G * DV, -1, 1500);
        io_draft_add(&draft, "out_proj.bias", EO, -1, 4500);
    }
    return draft;
}

static io_draft torch_separate(void)
{
    io_draft draft = {0};
    io_draft_add(&draft, "q_proj_weight", H * D, E, 1000);
    io_draft_add(&draft, "k_proj_weight", G * D, E, 2000);
    io_draft_add(&draft, "v_proj_weight", G * DV, E, 3000);
    io_draft_add(&draft, "in_proj_bias", H * D + G * D + G * DV, -1, 1500);
    io_draft_add(&draft, "out_proj.weight", EO, H * DV, 4000);
    io_draft_add(&draft, "out_proj.bias", EO, -1, 4500);
    return draft;
}

/* Stored [in, out]. */
static io_draft gpt2(void)
{
    io_draft draft = {0};
    io_draft_add(&draft, "c_attn.weight", E, H * D + G * D + G * DV, 1000);
    io_draft_add(&draft, "c_attn.bias", H * D + G * D + G * DV, -1, 1500);
    io_draft_add(&draft, "c_proj.weight", H * DV, EO, 4000);
    io_draft_add(&draft, "c_proj.bias", EO, -1, 4500);
    io_draft_add(&draft, "bias", 8, 8, 9000); /* the causal mask that old files carry */
    return draft;
}

static mha_io_safetensors *open_draft(const io_draft *draft, const char *prefix, io_bytes *bytes)
{
    *bytes = io_draft_bytes(draft, prefix);
    return io_open(bytes);
}

/* A parameter's numbers are base, base + 1, ... */
static void check_counting(const mha_layer *layer, int32_t parameter, int64_t count, float base)
{
    float got[256];
    assert_int_equal(mha_layer_parameter_count(layer, parameter), count);
    SUCCEEDS(mha_layer_get_parameter(layer, parameter, MHA_FLOAT32, got, count, err));
    for (int64_t i = 0; i < count; i++) {
        assert_true(got[i] == base + (float)i);
    }
}

/* A weight [out, in] from columns first, first + 1, ... of a tensor [in, columns] that counts. */
static void check_turned(const mha_layer *layer,
                         int32_t parameter,
                         int64_t out,
                         int64_t in,
                         float base,
                         int64_t first,
                         int64_t columns)
{
    float got[256];
    SUCCEEDS(mha_layer_get_parameter(layer, parameter, MHA_FLOAT32, got, out * in, err));
    for (int64_t o = 0; o < out; o++) {
        for (int64_t i = 0; i < in; i++) {
            assert_true(got[o * in + i] == base + (float)(i * columns + first + o));
        }
    }
}

/* Loads from a fresh file; the expression's status and words. */
static void refuse_load(const io_draft *draft,
                        int32_t scheme,
                        mha_layer *layer,
                        int32_t status,
                        const char *word,
                        const char *other)
{
    io_bytes bytes;
    mha_io_safetensors *file = open_draft(draft, "p.", &bytes);
    REFUSED(status, mha_io_load_layer(file, scheme, "p.", layer, err), word, other, "(memory)");
    mha_io_safetensors_close(file);
    io_bytes_free(&bytes);
}

static void accept_load(const io_draft *draft, int32_t scheme, mha_layer *layer)
{
    io_bytes bytes;
    mha_io_safetensors *file = open_draft(draft, "p.", &bytes);
    SUCCEEDS(mha_io_load_layer(file, scheme, "p.", layer, err));
    mha_io_safetensors_close(file);
    io_bytes_free(&bytes);
}

/* ---- behaviour ---- */

static void load_bert_sets_every_parameter(void **state)
{
    (void)state;
    mha_layer *layer = new_layer(1);
    io_draft draft = bert(1);
    accept_load(&draft, MHA_SCHEME_BERT, layer);
    check_counting(layer, MHA_PARAM_Q_WEIGHT, H * D * E, 1000);
    check_counting(layer, MHA_PARAM_K_WEIGHT, G * D * E, 2000);
    check_counting(layer, MHA_PARAM_V_WEIGHT, G * DV * E, 3000);
    check_counting(layer, MHA_PARAM_OUT_WEIGHT, EO * H * DV, 4000);
    check_counting(layer, MHA_PARAM_Q_BIAS, H * D, 1500);
    check_counting(layer, MHA_PARAM_K_BIAS, G * D, 2500);
    check_counting(layer, MHA_PARAM_V_BIAS, G * DV, 3500);
    check_counting(layer, MHA_PARAM_OUT_BIAS, EO, 4500);
    mha_layer_destroy(layer);
}

static void L01_load_torch_packed_has_rows_q_k_v(void **state)
{
    (void)state;
    mha_layer *layer = new_layer(1);
    io_draft draft = torch_packed(1);
    accept_load(&draft, MHA_SCHEME_TORCH, layer);
    check_counting(layer, MHA_PARAM_Q_WEIGHT, H * D * E, 1000);
    check_counting(layer, MHA_PARAM_K_WEIGHT, G * D * E, 1000 + H * D * E);
    check_counting(layer, MHA_PARAM_V_WEIGHT, G * DV * E, 1000 + (H + G) * D * E);
    check_counting(layer, MHA_PARAM_OUT_WEIGHT, EO * H * DV, 4000);
    check_counting(layer, MHA_PARAM_Q_BIAS, H * D, 1500);
    check_counting(layer, MHA_PARAM_K_BIAS, G * D, 1500 + H * D);
    check_counting(layer, MHA_PARAM_V_BIAS, G * DV, 1500 + (H + G) * D);
    check_counting(layer, MHA_PARAM_OUT_BIAS, EO, 4500);
    mha_layer_destroy(layer);
}

static void load_torch_separate_weights_share_a_packed_bias(void **state)
{
    (void)state;
    mha_layer *layer = new_layer(1);
    io_draft draft = torch_separate();
    accept_load(&draft, MHA_SCHEME_TORCH, layer);
    check_counting(layer, MHA_PARAM_Q_WEIGHT, H * D * E, 1000);
    check_counting(layer, MHA_PARAM_K_WEIGHT, G * D * E, 2000);
    check_counting(layer, MHA_PARAM_V_WEIGHT, G * DV * E, 3000);
    check_counting(layer, MHA_PARAM_V_BIAS, G * DV, 1500 + (H + G) * D);
    mha_layer_destroy(layer);
}

static void L02_load_gpt2_turns_its_weights(void **state)
{
    (void)state;
    enum { PACKED = H * D + G * D + G * DV };
    mha_layer *layer = new_layer(1);
    io_draft draft = gpt2();
    accept_load(&draft, MHA_SCHEME_GPT2, layer);
    check_turned(layer, MHA_PARAM_Q_WEIGHT, H * D, E, 1000, 0, PACKED);
    check_turned(layer, MHA_PARAM_K_WEIGHT, G * D, E, 1000, H * D, PACKED);
    check_turned(layer, MHA_PARAM_V_WEIGHT, G * DV, E, 1000, (H + G) * D, PACKED);
    check_turned(layer, MHA_PARAM_OUT_WEIGHT, EO, H * DV, 4000, 0, EO);
    check_counting(layer, MHA_PARAM_K_BIAS, G * D, 1500 + H * D);
    check_counting(layer, MHA_PARAM_OUT_BIAS, EO, 4500);
    mha_layer_destroy(layer);
}

static void load_finds_the_layer_under_its_prefix(void **state)
{
    (void)state;
    static const char *const prefixes[] = {"", "encoder.layer.0.attention.", "layers.0.self_attn.",
                                           "gr\xc3\xbc\xc3\x9f."};
    io_draft draft = torch_packed(1);
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        io_bytes bytes;
        mha_layer *layer = new_layer(1);
        mha_io_safetensors *file = open_draft(&draft, prefixes[i], &bytes);
        SUCCEEDS(mha_io_load_layer(file, MHA_SCHEME_TORCH, prefixes[i], layer, err));
        check_counting(layer, MHA_PARAM_OUT_WEIGHT, EO * H * DV, 4000);
        REFUSED(MHA_ERROR_FILE_TENSOR,
                mha_io_load_layer(file, MHA_SCHEME_TORCH, "layer.1.", layer, err),
                "\"layer.1.in_proj_weight\"", "no name begins with that prefix");
        mha_layer_destroy(layer);
        mha_io_safetensors_close(file);
        io_bytes_free(&bytes);
    }
}

static void scheme_names_have_their_ids(void **state)
{
    (void)state;
    assert_int_equal(mha_io_scheme("torch"), MHA_SCHEME_TORCH);
    assert_int_equal(mha_io_scheme("bert"), MHA_SCHEME_BERT);
    assert_int_equal(mha_io_scheme("gpt2"), MHA_SCHEME_GPT2);
    assert_int_equal(mha_io_scheme("llama"), MHA_SCHEME_LLAMA);
    assert_int_equal(mha_io_scheme("Bert"), MHA_ERROR_UNKNOWN_ID);
    assert_int_equal(mha_io_scheme(""), MHA_ERROR_UNKNOWN_ID);
    assert_int_equal(mha_io_scheme(NULL), MHA_ERROR_NULL_ARGUMENT);
}

/* ---- L04 ---- */

static void L04_absent_bias_is_fine_only_if_the_layer_has_none(void **state)
{
    (void)state;
    mha_layer *with = new_layer(1);
    mha_layer *without = new_layer(0);
    io_draft draft = torch_packed(1);
    io_draft_remove(&draft, "out_proj.bias");
    refuse_load(&draft, MHA_SCHEME_TORCH, with, MHA_ERROR_FILE_TENSOR, "\"p.out_proj.bias\"",
                "no tensor");
    draft = torch_packed(1);
    io_draft_remove(&draft, "in_proj_bias");
    refuse_load(&draft, MHA_SCHEME_TORCH, with, MHA_ERROR_FILE_TENSOR, "\"p.in_proj_bias\"",
                "no tensor");
    draft = bert(1);
    io_draft_remove(&draft, "self.key.bias");
    refuse_load(&draft, MHA_SCHEME_BERT, with, MHA_ERROR_FILE_TENSOR, "\"p.self.key.bias\"",
                "no tensor");
    draft = torch_packed(0);
    accept_load(&draft, MHA_SCHEME_TORCH, without);
    draft = bert(0);
    accept_load(&draft, MHA_SCHEME_BERT, without);
    mha_layer_destroy(with);
    mha_layer_destroy(without);
}

static void L04_bias_that_the_layer_lacks_is_refused(void **state)
{
    (void)state;
    mha_layer *layer = new_layer(0);
    io_draft draft = torch_packed(1);
    refuse_load(&draft, MHA_SCHEME_TORCH, layer, MHA_ERROR_FILE_TENSOR, "\"p.in_proj_bias\"",
                "no query bias");
    draft = bert(0);
    io_draft_add(&draft, "output.dense.bias", EO, -1, 0);
    refuse_load(&draft, MHA_SCHEME_BERT, layer, MHA_ERROR_FILE_TENSOR, "\"p.output.dense.bias\"",
                "no output bias");
    mha_layer_destroy(layer);
}

static void L04_misspelt_and_missing_weights_are_named(void **state)
{
    (void)state;
    static const char *const names[] = {"self.query.weight", "self.key.weight", "self.value.weight",
                                        "output.dense.weight"};
    mha_layer *layer = new_layer(1);
    for (size_t i = 0; i < 4; i++) {
        char expected[64];
        io_draft draft = bert(1);
        io_draft_remove(&draft, names[i]);
        io_draft_add(&draft, "self.querry.weight", H * D, E, 0);
        snprintf(expected, sizeof expected, "no tensor \"p.%s\"", names[i]);
        refuse_load(&draft, MHA_SCHEME_BERT, layer, MHA_ERROR_FILE_TENSOR, expected,
                    "with that prefix");
    }
    /* a longer and a shorter name are other names */
    io_draft draft = torch_packed(1);
    io_draft_remove(&draft, "in_proj_weight");
    io_draft_add(&draft, "in_proj_weights", H * D + G * D + G * DV, E, 0);
    io_draft_add(&draft, "in_proj_weigh", H * D + G * D + G * DV, E, 0);
    refuse_load(&draft, MHA_SCHEME_TORCH, layer, MHA_ERROR_FILE_TENSOR,
                "no tensor \"p.in_proj_weight\"", "");
    draft = torch_separate();
    io_draft_remove(&draft, "k_proj_weight");
    refuse_load(&draft, MHA_SCHEME_TORCH, layer, MHA_ERROR_FILE_TENSOR, "\"p.k_proj_weight\"", "");
    draft = gpt2();
    io_draft_remove(&draft, "c_attn.weight");
    refuse_load(&draft, MHA_SCHEME_GPT2, layer, MHA_ERROR_FILE_TENSOR, "\"p.c_attn.weight\"", "");
    /* a scheme that is not the file's */
    draft = bert(1);
    refuse_load(&draft, MHA_SCHEME_TORCH, layer, MHA_ERROR_FILE_TENSOR, "\"p.in_proj_weight\"", "");
    mha_layer_destroy(layer);
}

static void L04_two_sets_of_weights_are_refused(void **state)
{
    (void)state;
    mha_layer *layer = new_layer(1);
    io_draft draft = torch_separate();
    io_draft_add(&draft, "in_proj_weight", H * D + G * D + G * DV, E, 0);
    refuse_load(&draft, MHA_SCHEME_TORCH, layer, MHA_ERROR_FILE_TENSOR, "\"p.in_proj_weight\"",
                "\"p.q_proj_weight\"");
    draft = torch_packed(1);
    io_draft_add(&draft, "v_proj_weight", G * DV, E, 0);
    refuse_load(&draft, MHA_SCHEME_TORCH, layer, MHA_ERROR_FILE_TENSOR, "\"p.in_proj_weight\"",
                "\"p.v_proj_weight\"");
    mha_layer_destroy(layer);
}

static void L04_tensors_that_would_change_the_numbers_are_refused(void **state)
{
    (void)state;
    mha_layer *layer = new_layer(1);
    io_draft draft = torch_packed(1);
    io_draft_add(&draft, "bias_k", 1, G * D, 0);
    refuse_load(&draft, MHA_SCHEME_TORCH, layer, MHA_ERROR_FILE_TENSOR, "\"p.bias_k\"",
                "cannot apply");
    draft = bert(1);
    io_draft_add(&draft, "self.distance_embedding.weight", 7, D, 0);
    refuse_load(&draft, MHA_SCHEME_BERT, layer, MHA_ERROR_FILE_TENSOR, "distance_embedding",
                "cannot apply");
    mha_layer_destroy(layer);
}

/* ---- other refusals ---- */

static void load_of_wrong_shapes_is_refused_with_both(void **state)
{
    (void)state;
    mha_layer *layer = new_layer(1);
    io_draft draft = bert(1);
    io_draft_reshape(&draft, "self.query.weight", E, H * D);
    refuse_load(&draft, MHA_SCHEME_BERT, layer, MHA_ERROR_SHAPE, "[5, 6]", "[6, 5]");
    draft = bert(1);
    io_draft_reshape(&draft, "self.query.weight", H * D * E, -1);
    refuse_load(&draft, MHA_SCHEME_BERT, layer, MHA_ERROR_SHAPE, "[30]", "[6, 5]");
    draft = bert(1);
    io_draft_reshape(&draft, "self.value.bias", 1, G * DV);
    refuse_load(&draft, MHA_SCHEME_BERT, layer, MHA_ERROR_SHAPE, "[1, 2]", "[2]");
    draft = torch_packed(1);
    io_draft_reshape(&draft, "in_proj_weight", 3 * H * D, E);
    refuse_load(&draft, MHA_SCHEME_TORCH, layer, MHA_ERROR_SHAPE, "[18, 5]", "[11, 5]");
    draft = torch_packed(1);
    io_draft_reshape(&draft, "in_proj_bias", 10, -1);
    refuse_load(&draft, MHA_SCHEME_TORCH, layer, MHA_ERROR_SHAPE, "[10]", "[11]");
    draft = gpt2();
    io_draft_reshape(&draft, "c_proj.weight", EO + 1, H * DV);
    refuse_load(&draft, MHA_SCHEME_GPT2, layer, MHA_ERROR_SHAPE, "[5, 4]", "[4, 4]");
    mha_layer_destroy(layer);
}

static void load_packed_weight_into_inputs_of_three_widths_is_refused(void **state)
{
    (void)state;
    mha_config *cfg = NULL;
    mha_layer *layer = NULL;
    SUCCEEDS(mha_config_create(4, 2, &cfg, err));
    SUCCEEDS(mha_config_set_key_width(cfg, 3, err));
    SUCCEEDS(mha_layer_create(cfg, &layer, err));
    io_draft draft = torch_packed(1);
    refuse_load(&draft, MHA_SCHEME_TORCH, layer, MHA_ERROR_SHAPE, "4, 3 and 4", "packs");
    mha_layer_destroy(layer);
    mha_config_destroy(cfg);
}

static void load_into_a_layer_without_projections_is_refused(void **state)
{
    (void)state;
    mha_config *cfg = NULL;
    mha_layer *layer = NULL;
    SUCCEEDS(mha_config_create(4, 2, &cfg, err));
    SUCCEEDS(mha_config_set_projection(cfg, MHA_PROJECTION_K, 0, err));
    SUCCEEDS(mha_layer_create(cfg, &layer, err));
    io_draft draft = torch_packed(1);
    refuse_load(&draft, MHA_SCHEME_TORCH, layer, MHA_ERROR_FILE_TENSOR, "no key projection",
                "in_proj");
    mha_layer_destroy(layer);
    mha_config_destroy(cfg);
}

static void load_by_unknown_schemes_is_refused(void **state)
{
    (void)state;
    io_bytes bytes;
    io_draft draft = bert(1);
    mha_layer *layer = new_layer(1);
    mha_config *cfg = NULL;
    mha_io_safetensors *file = open_draft(&draft, "", &bytes);
    REFUSED(MHA_ERROR_UNKNOWN_ID, mha_io_read_config(file, 4, "", H, G, &cfg, err), "4");
    REFUSED(MHA_ERROR_UNKNOWN_ID, mha_io_load_layer(file, 4, "", layer, err), "4");
    REFUSED(MHA_ERROR_UNKNOWN_ID, mha_io_load_layer(file, -1, "", layer, err), "-1");
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_io_load_layer(NULL, 1, "", layer, err), "file");
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_io_load_layer(file, 1, NULL, layer, err), "prefix");
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_io_load_layer(file, 1, "", NULL, err), "layer");
    mha_layer_destroy(layer);
    mha_io_safetensors_close(file);
    io_bytes_free(&bytes);
}

static void load_of_other_element_types_is_refused(void **state)
{
    (void)state;
    mha_layer *layer = NULL;
    mha_config *cfg = NULL;
    SUCCEEDS(mha_config_create(1, 1, &cfg, err));
    for (int32_t p = 0; p < 4; p++) {
        SUCCEEDS(mha_config_set_bias(cfg, p, 0, err));
    }
    SUCCEEDS(mha_layer_create(cfg, &layer, err));
    const double eight[2] = {1.0, 2.0};
    io_bytes bytes = io_safetensors_of(
        "{\"in_proj_weight\":{\"dtype\":\"F32\",\"shape\":[3,1],\"data_offsets\":[0,12]},"
        "\"out_proj.weight\":{\"dtype\":\"I32\",\"shape\":[1,1],\"data_offsets\":[12,16]}}",
        eight, sizeof eight);
    mha_io_safetensors *file = io_open(&bytes);
    REFUSED(MHA_ERROR_FILE_FORMAT, mha_io_load_layer(file, MHA_SCHEME_TORCH, "", layer, err), "I32",
            "\"out_proj.weight\"");
    float number;
    REFUSED(MHA_ERROR_NOT_SET,
            mha_layer_get_parameter(layer, MHA_PARAM_Q_WEIGHT, MHA_FLOAT32, &number, 1, err), "");
    mha_io_safetensors_close(file);
    io_bytes_free(&bytes);
    mha_layer_destroy(layer);
    mha_config_destroy(cfg);
}

static void failed_load_leaves_the_layer_as_before(void **state)
{
    (void)state;
    static const char *const removed[] = {"self.query.weight", "self.key.bias",
                                          "output.dense.weight"};
    mha_layer *layer = new_layer(1);
    mha_layer *untouched = new_layer(1);
    SUCCEEDS(mha_layer_initialize(layer, 7, err));
    SUCCEEDS(mha_layer_initialize(untouched, 7, err));
    for (size_t i = 0; i < 3; i++) {
        io_draft draft = bert(1);
        io_draft_remove(&draft, removed[i]);
        refuse_load(&draft, MHA_SCHEME_BERT, layer, MHA_ERROR_FILE_TENSOR, removed[i], "");
    }
    io_draft draft = bert(1);
    io_draft_reshape(&draft, "output.dense.bias", EO + 1, -1);
    refuse_load(&draft, MHA_SCHEME_BERT, layer, MHA_ERROR_SHAPE, "output.dense.bias", "");
    for (int32_t p = 0; p < PARAMETERS; p++) {
        float a[64];
        float b[64];
        int64_t count = mha_layer_parameter_count(layer, p);
        SUCCEEDS(mha_layer_get_parameter(layer, p, MHA_FLOAT32, a, count, err));
        SUCCEEDS(mha_layer_get_parameter(untouched, p, MHA_FLOAT32, b, count, err));
        assert_same_bits(a, b, count);
    }
    mha_layer_destroy(layer);
    mha_layer_destroy(untouched);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(load_bert_sets_every_parameter),
        cmocka_unit_test(L01_load_torch_packed_has_rows_q_k_v),
        cmocka_unit_test(load_torch_separate_weights_share_a_packed_bias),
        cmocka_unit_test(L02_load_gpt2_turns_its_weights),
        cmocka_unit_test(load_finds_the_layer_under_its_prefix),
        cmocka_unit_test(scheme_names_have_their_ids),
        cmocka_unit_test(L04_absent_bias_is_fine_only_if_the_layer_has_none),
        cmocka_unit_test(L04_bias_that_the_layer_lacks_is_refused),
        cmocka_unit_test(L04_misspelt_and_missing_weights_are_named),
        cmocka_unit_test(L04_two_sets_of_weights_are_refused),
        cmocka_unit_test(L04_tensors_that_would_change_the_numbers_are_refused),
        cmocka_unit_test(load_of_wrong_shapes_is_refused_with_both),
        cmocka_unit_test(load_packed_weight_into_inputs_of_three_widths_is_refused),
        cmocka_unit_test(load_into_a_layer_without_projections_is_refused),
        cmocka_unit_test(load_by_unknown_schemes_is_refused),
        cmocka_unit_test(load_of_other_element_types_is_refused),
        cmocka_unit_test(failed_load_leaves_the_layer_as_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
