/* SPDX-License-Identifier: Apache-2.0 */
/* mha_layer_initialize: the numbers of a seed are pinned for ever. */
#include "support/brutal.h"

#include <math.h>
#include <stdlib.h>

static mha_layer *layer_of(int64_t E, int64_t H, int64_t key_width)
{
    mha_config *cfg = NULL;
    mha_layer *layer = NULL;
    assert_int_equal(mha_config_create(E, H, &cfg, NULL), MHA_OK);
    assert_int_equal(mha_config_set_key_width(cfg, key_width, NULL), MHA_OK);
    assert_int_equal(mha_layer_create(cfg, &layer, NULL), MHA_OK);
    mha_config_destroy(cfg);
    return layer;
}

static float *read_parameter(const mha_layer *layer, int32_t id)
{
    int64_t count = mha_layer_parameter_count(layer, id);
    float *x = malloc((size_t)count * sizeof *x);
    assert_non_null(x);
    assert_int_equal(mha_layer_get_parameter(layer, id, MHA_FLOAT32, x, count, NULL), MHA_OK);
    return x;
}

/*
 * Philox4x32-10, written from the paper; key 0 and counter 0 give 6627e8d5 e169c58d bc57ac4c
 * 9b00dbd8.
 */
static uint32_t philox(uint64_t seed, uint32_t index, uint32_t stream)
{
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    uint32_t c[4] = {index / 4, 0, 0, stream};
    for (int round = 0; round < 10; ++round) {
        uint64_t p0 = UINT64_C(0xD2511F53) * c[0], p1 = UINT64_C(0xCD9E8D57) * c[2];
        uint32_t next[4] = {(uint32_t)(p1 >> 32) ^ c[1] ^ k0, (uint32_t)p1,
                            (uint32_t)(p0 >> 32) ^ c[3] ^ k1, (uint32_t)p0};
        for (int word = 0; word < 4; ++word) {
            c[word] = next[word];
        }
        k0 += UINT32_C(0x9E3779B9);
        k1 += UINT32_C(0xBB67AE85);
    }
    return c[index % 4];
}

static void philox_of_this_file_gives_the_published_words(void **state)
{
    (void)state;
    static const uint32_t known[4] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
    for (uint32_t word = 0; word < 4; ++word) {
        assert_int_equal(philox(0, word, 0), known[word]);
    }
}

static void initialize_gives_the_pinned_numbers(void **state)
{
    (void)state;
    /* E = 6, H = 2, seed 0x0123456789abcdef; computed apart from this library, in float64 */
    static const double pinned[4][6] = {
        {0.219972740, 0.271677988, -0.419317238, -0.021408083, 0.178864741, -0.178740649},
        {-0.223541426, -0.127374119, 0.134088624, -0.037136375, -0.348219605, 0.173230046},
        {-0.277271714, -0.045443709, -0.021179972, -0.209060091, -0.145637374, -0.292922592},
        {0.334868773, 0.112819277, -0.048312130, -0.272527320, -0.390016411, -0.128900014}};
    mha_layer *layer = layer_of(6, 2, 6);
    SUCCEEDS(mha_layer_initialize(layer, UINT64_C(0x0123456789abcdef), err));
    for (int32_t side = 0; side < 4; ++side) {
        float *weight = read_parameter(layer, 2 * side);
        for (int i = 0; i < 6; ++i) {
            assert_close(weight[i], pinned[side][i], 6e-8);
        }
        free(weight);
    }
    mha_layer_destroy(layer);
}

/* weight = (2 word 2^-32 - 1) bound, within two roundings to float32. */
static void expect_weight(const mha_layer *layer, int32_t id, uint64_t seed, double bound)
{
    float *weight = read_parameter(layer, id);
    int64_t count = mha_layer_parameter_count(layer, id);
    double sum = 0, largest = 0;
    for (int64_t i = 0; i < count; ++i) {
        double expected =
            (2 * (double)philox(seed, (uint32_t)i, (uint32_t)id) * 0x1p-32 - 1) * bound;
        assert_close(weight[i], expected, 0x1p-22 * bound);
        sum += (double)weight[i];
        largest = fmax(largest, fabs((double)weight[i]));
    }
    /* uniform in +-bound: mean 0 with deviation bound / sqrt(3 count), the edge nearly reached */
    assert_close(sum / (double)count, 0, 5 * bound / sqrt(3 * (double)count));
    assert_in_range((int64_t)(1000 * largest / bound), 980, 1000);
    free(weight);
}

static void initialize_uses_glorot_over_the_packed_shape_where_widths_are_equal(void **state)
{
    (void)state;
    mha_layer *layer = layer_of(32, 4, 32);
    SUCCEEDS(mha_layer_initialize(layer, 42, err));
    const double packed = sqrt(6.0 / (32 + 3 * 32));
    expect_weight(layer, MHA_PARAM_Q_WEIGHT, 42, packed);
    expect_weight(layer, MHA_PARAM_K_WEIGHT, 42, packed);
    expect_weight(layer, MHA_PARAM_V_WEIGHT, 42, packed);
    expect_weight(layer, MHA_PARAM_OUT_WEIGHT, 42, 1 / sqrt(32.0));
    mha_layer_destroy(layer);
}

static void initialize_uses_each_shape_of_its_own_where_widths_differ(void **state)
{
    (void)state;
    mha_layer *layer = layer_of(32, 4, 20);
    SUCCEEDS(mha_layer_initialize(layer, UINT64_C(0xfedcba9876543210), err));
    const uint64_t seed = UINT64_C(0xfedcba9876543210);
    expect_weight(layer, MHA_PARAM_Q_WEIGHT, seed, sqrt(6.0 / (32 + 32)));
    expect_weight(layer, MHA_PARAM_K_WEIGHT, seed, sqrt(6.0 / (20 + 32)));
    expect_weight(layer, MHA_PARAM_V_WEIGHT, seed, sqrt(6.0 / (32 + 32)));
    mha_layer_destroy(layer);
}

static void initialize_sets_biases_to_zero_and_overwrites_what_was_set(void **state)
{
    (void)state;
    mha_layer *layer = layer_of(6, 2, 6);
    float ones[6] = {1, 1, 1, 1, 1, 1};
    for (int32_t id = 1; id < 8; id += 2) {
        SUCCEEDS(mha_layer_set_parameter(layer, id, MHA_FLOAT32, ones, 6, err));
    }
    SUCCEEDS(mha_layer_initialize(layer, 7, err));
    for (int32_t id = 1; id < 8; id += 2) {
        float *bias = read_parameter(layer, id);
        assert_true(all_are(bias, 6, 0.0f));
        free(bias);
    }
    mha_layer_destroy(layer);
}

/* bias_k and bias_v [n]: normal with deviation 1/sqrt(n), by Box and Muller from words 0, 1 and 2, 3. */
static void initialize_sets_sinks_to_0_gates_to_1_and_extra_keys_as_xavier_normal(void **state)
{
    (void)state;
    enum { SIZE = 96 * 16 };
    const uint64_t seed = UINT64_C(0x0123456789abcdef);
    mha_config *cfg = NULL;
    mha_layer *layer = NULL;
    SUCCEEDS(mha_config_create(96, 96, &cfg, err));
    SUCCEEDS(mha_config_set_head_size(cfg, 16, err));
    SUCCEEDS(mha_config_set_sinks(cfg, 1, err));
    SUCCEEDS(mha_config_set_gates(cfg, 1, err));
    SUCCEEDS(mha_config_set_extra_keys(cfg, 1, 1, err));
    SUCCEEDS(mha_layer_create(cfg, &layer, err));
    SUCCEEDS(mha_layer_initialize(layer, seed, err));
    float *sinks = read_parameter(layer, MHA_PARAM_SINKS);
    float *gates = read_parameter(layer, MHA_PARAM_GATES);
    assert_true(all_are(sinks, 96, 0.0f));
    assert_true(all_are(gates, 96, 1.0f));
    for (int32_t id = MHA_PARAM_BIAS_K; id <= MHA_PARAM_BIAS_V; ++id) {
        float *x = read_parameter(layer, id);
        const double deviation = sqrt(2.0 / (SIZE + SIZE));
        double sum = 0, squares = 0, fourth = 0;
        assert_int_equal(mha_layer_parameter_count(layer, id), SIZE);
        for (uint32_t i = 0; i < SIZE; ++i) {
            const uint32_t pair = i - i % 2;
            const double u = ((double)philox(seed, pair, (uint32_t)id) + 1) * 0x1p-32;
            const double angle = 2 * acos(-1.0) * (double)philox(seed, pair + 1, (uint32_t)id) * 0x1p-32;
            const double expected = sqrt(-2 * log(u)) * (i % 2 ? sin(angle) : cos(angle)) * deviation;
            assert_close(x[i], expected, 0x1p-23 * fabs(expected) + 1e-15);
            const double z = (double)x[i] / deviation;
            sum += z;
            squares += z * z;
            fourth += z * z * z * z;
        }
        /* moments of a normal number: 0, 1, 3, with deviations 1, sqrt 2, sqrt 96 over sqrt n */
        assert_close(sum / SIZE, 0, 5 / sqrt((double)SIZE));
        assert_close(squares / SIZE, 1, 5 * sqrt(2.0 / SIZE));
        assert_close(fourth / SIZE, 3, 5 * sqrt(96.0 / SIZE));
        free(x);
    }
    free(sinks);
    free(gates);
    mha_layer_destroy(layer);
    mha_config_destroy(cfg);
}

static void initialize_same_seed_same_bits_other_seed_other_bits(void **state)
{
    (void)state;
    mha_layer *one = layer_of(6, 2, 6), *two = layer_of(6, 2, 6);
    SUCCEEDS(mha_layer_initialize(one, 1, err));
    SUCCEEDS(mha_layer_initialize(two, 1, err));
    float *a = read_parameter(one, MHA_PARAM_Q_WEIGHT),
          *b = read_parameter(two, MHA_PARAM_Q_WEIGHT);
    assert_same_bits(a, b, 36);
    free(b);
    /* the high word of the seed counts as well */
    SUCCEEDS(mha_layer_initialize(two, 1 | UINT64_C(1) << 32, err));
    b = read_parameter(two, MHA_PARAM_Q_WEIGHT);
    assert_false(same_bits(a, b, 36));
    free(a);
    free(b);
    mha_layer_destroy(one);
    mha_layer_destroy(two);
}

static void initialize_of_null_is_refused(void **state)
{
    (void)state;
    REFUSED(MHA_ERROR_NULL_ARGUMENT, mha_layer_initialize(NULL, 1, err), "NULL");
}

static void initialize_without_memory_leaves_the_layer_as_before(void **state)
{
    (void)state;
    mha_layer *layer = layer_of(6, 2, 6);
    SUCCEEDS(mha_layer_initialize(layer, 1, err));
    float *before[8];
    for (int32_t id = 0; id < 8; ++id) {
        before[id] = read_parameter(layer, id);
    }
    BRUTAL(mha_layer_initialize(layer, 2, NULL), {
        for (int32_t id = 0; id < 8; ++id) {
            float *now = read_parameter(layer, id);
            assert_same_bits(now, before[id], mha_layer_parameter_count(layer, id));
            free(now);
        }
    });
    float *now = read_parameter(layer, 0);
    assert_false(same_bits(now, before[0], 36));
    free(now);
    for (int32_t id = 0; id < 8; ++id) {
        free(before[id]);
    }
    mha_layer_destroy(layer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(philox_of_this_file_gives_the_published_words),
        cmocka_unit_test(initialize_gives_the_pinned_numbers),
        cmocka_unit_test(initialize_uses_glorot_over_the_packed_shape_where_widths_are_equal),
        cmocka_unit_test(initialize_uses_each_shape_of_its_own_where_widths_differ),
        cmocka_unit_test(initialize_sets_biases_to_zero_and_overwrites_what_was_set),
        cmocka_unit_test(initialize_sets_sinks_to_0_gates_to_1_and_extra_keys_as_xavier_normal),
        cmocka_unit_test(initialize_same_seed_same_bits_other_seed_other_bits),
        cmocka_unit_test(initialize_of_null_is_refused),
        cmocka_unit_test(initialize_without_memory_leaves_the_layer_as_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
