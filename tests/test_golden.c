/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data/golden.json: layers of torch.nn.MultiheadAttention, their parameters, inputs, masks and
 * results.
 */
#include "support/case_file.h"
#include "support/expect.h"
#include "support/oracle.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { LAYERS = 8 };

static json_t *golden;

/* An array of exactly this many numbers as float32; NULL: the layer has none of that name. */
static float *floats(const json_t *layer, const char *field, int64_t count)
{
    double *numbers = NULL;
    int64_t got = case_file_numbers(layer, field, &numbers);
    if (got < 0) {
        return NULL;
    }
    assert_int_equal(got, count);
    float *x = malloc((size_t)(count + 1) * sizeof *x);
    assert_non_null(x);
    for (int64_t i = 0; i < count; ++i) {
        x[i] = (float)numbers[i];
    }
    free(numbers);
    return x;
}

static int64_t size_of(const json_t *layer, const char *field)
{
    return json_integer_value(json_object_get(layer, field));
}

static void read_trial(const json_t *layer, trial *p)
{
    const int64_t E = size_of(layer, "E"), H = size_of(layer, "H");
    trial_begin(p, size_of(layer, "B"), size_of(layer, "T"), size_of(layer, "S"), H, H, E / H,
                E / H);
    const int32_t bias = json_object_get(layer, "in_proj_bias") != NULL;
    trial_project(p, MHA_PROJECTION_Q, E, bias);
    trial_project(p, MHA_PROJECTION_K, size_of(layer, "kdim"), bias);
    trial_project(p, MHA_PROJECTION_V, size_of(layer, "vdim"), bias);
    trial_project(p, MHA_PROJECTION_OUT, E, bias);
    trial_tensors(p, 1, 1);
    tensor *const inputs[3] = {&p->query, &p->key, &p->value};
    static const char *const names[3] = {"query", "key", "value"};
    for (int t = 0; t < 3; ++t) {
        float *x = floats(layer, names[t], tensor_elements(inputs[t]));
        tensor_write(inputs[t], x);
        free(x);
    }
    /* torch hides where its masks are true */
    double *mask = NULL;
    int64_t count = case_file_numbers(layer, "attn_mask", &mask);
    if (count >= 0) {
        boolean_mask *m = trial_add_mask(p, MASK_QUERY_KEY, 1, 1, p->T, p->S);
        assert_int_equal(count, p->T * p->S);
        m->flags = MHA_MASK_INVERTED;
        for (int64_t i = 0; i < count; ++i) {
            m->bytes[i] = mask[i] != 0;
        }
        free(mask);
    }
    count = case_file_numbers(layer, "key_padding_mask", &mask);
    if (count >= 0) {
        boolean_mask *m = trial_add_mask(p, MASK_KEY, p->B, 1, 1, p->S);
        assert_int_equal(count, p->B * p->S);
        m->flags = MHA_MASK_INVERTED;
        for (int64_t i = 0; i < count; ++i) {
            m->bytes[i] = mask[i] != 0;
        }
        free(mask);
    }
}

/* torch's parameters by the ids of this library; packed where torch packs them. */
static void read_parameters(const json_t *layer, const trial *p, mha_layer *into)
{
    static const struct {
        const char *name;
        int32_t id;
    } parameters[] = {
        {"in_proj_weight", MHA_PARAM_IN_PROJ_WEIGHT}, {"in_proj_bias", MHA_PARAM_IN_PROJ_BIAS},
        {"q_proj_weight", MHA_PARAM_Q_WEIGHT},        {"k_proj_weight", MHA_PARAM_K_WEIGHT},
        {"v_proj_weight", MHA_PARAM_V_WEIGHT},        {"out_proj.weight", MHA_PARAM_OUT_WEIGHT},
        {"out_proj.bias", MHA_PARAM_OUT_BIAS},
    };
    const int64_t E = p->H * p->D;
    for (size_t i = 0; i < sizeof parameters / sizeof *parameters; ++i) {
        /* in_proj_bias is packed in torch even where the weights are not */
        int64_t count = parameters[i].id == MHA_PARAM_IN_PROJ_BIAS
                            ? 3 * E
                            : mha_layer_parameter_count(into, parameters[i].id);
        float *x = floats(layer, parameters[i].name, count);
        if (x) {
            SUCCEEDS(mha_layer_set_parameter(into, parameters[i].id, MHA_FLOAT32, x, count, err));
            free(x);
        }
    }
}

/* The same parameters where the oracle looks for them. */
static void copy_parameters(const mha_layer *from, trial *p)
{
    for (int32_t id = 0; id < 8; ++id) {
        int64_t count = trial_parameter_count(p, id);
        if (count > 0) {
            p->parameter[id] = malloc((size_t)count * sizeof(float));
            assert_non_null(p->parameter[id]);
            SUCCEEDS(mha_layer_get_parameter(from, id, MHA_FLOAT32, p->parameter[id], count, err));
        }
    }
}

static mha_layer *layer_of(const trial *p)
{
    mha_config *cfg = NULL;
    mha_layer *layer = NULL;
    SUCCEEDS(mha_config_create(p->E, p->H, &cfg, err));
    SUCCEEDS(mha_config_set_key_width(cfg, p->Ek, err));
    SUCCEEDS(mha_config_set_value_width(cfg, p->Ev, err));
    for (int32_t side = 0; side < 4; ++side) {
        SUCCEEDS(mha_config_set_bias(cfg, side, p->bias[side], err));
    }
    SUCCEEDS(mha_layer_create(cfg, &layer, err));
    mha_config_destroy(cfg);
    return layer;
}

/* Mean over heads of weights [B,H,T,S] against torch's averaged ones. */
static void compare_means(const json_t *layer, const trial *p)
{
    double *expected = NULL;
    int64_t count = case_file_numbers(layer, "weights_mean", &expected);
    assert_int_equal(count, p->B * p->T * p->S);
    for (int64_t cell = 0; cell < count; ++cell) {
        int64_t b = cell / (p->T * p->S), i = cell / p->S % p->T, j = cell % p->S;
        double mean = 0;
        for (int64_t h = 0; h < p->H; ++h) {
            mean += (double)*tensor_at(&p->weights, b, h, i, j) / (double)p->H;
        }
        assert_close(mean, expected[cell], 1e-5);
    }
    free(expected);
}

/* Both the library and the oracle of these tests have to agree with torch. */
static void run_layer(const json_t *entry)
{
    trial p;
    read_trial(entry, &p);
    mha_layer *layer = layer_of(&p);
    read_parameters(entry, &p, layer);
    mha_mask *mask = trial_mask(&p);
    mha_call *call = trial_call(&p);
    mha_context *ctx = NULL;
    SUCCEEDS(mha_context_create(&ctx, err));
    SUCCEEDS(mha_forward(ctx, layer, mask, call, err));

    copy_parameters(layer, &p);
    oracle r;
    oracle_run(&p, &r);
    assert_true(oracle_compare(&p, &r) <= 1);
    const struct {
        const char *field;
        const tensor *got;
        const double *oracle, *bound;
    } outputs[2] = {{"output", &p.output, r.output, r.output_bound},
                    {"weights", &p.weights, r.weights, r.weights_bound}};
    for (int o = 0; o < 2; ++o) {
        double *expected = NULL;
        int64_t count = case_file_numbers(entry, outputs[o].field, &expected);
        assert_int_equal(count, tensor_elements(outputs[o].got));
        for (int64_t i = 0; i < count; ++i) {
            /* the library's 1/sqrt(D) is a float32, torch's here a double: 2^-25 of every score */
            assert_close(outputs[o].oracle[i], expected[i], 1e-6);
            assert_close(outputs[o].got->data[i], expected[i], outputs[o].bound[i] + 1e-6);
        }
        free(expected);
    }
    compare_means(entry, &p);
    oracle_end(&r);
    mha_context_destroy(ctx);
    mha_call_destroy(call);
    mha_mask_destroy(mask);
    mha_layer_destroy(layer);
    trial_end(&p);
}

static void layers_of_torch_give_torchs_results_and_weights(void **state)
{
    (void)state;
    const json_t *layers = json_object_get(golden, "layers");
    size_t count = json_array_size(layers);
    assert_int_equal(count, LAYERS);
    for (size_t i = 0; i < count; ++i) {
        const json_t *layer = json_array_get(layers, i);
        print_message("%s\n", json_string_value(json_object_get(layer, "name")));
        run_layer(layer);
    }
}

static int load(void **state)
{
    (void)state;
    golden = case_file_load(MHA_TESTS_DATA "/golden.json");
    return golden ? 0 : -1;
}

static int unload(void **state)
{
    (void)state;
    json_decref(golden);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_of_torch_give_torchs_results_and_weights),
    };
    return cmocka_run_group_tests(tests, load, unload);
}
