/* SPDX-License-Identifier: Apache-2.0 */
#include "case_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

json_t *case_file_load(const char *path)
{
    json_error_t error;
    json_t *cases = json_load_file(path, 0, &error);
    if (!cases) {
        fprintf(stderr, "%s, line %d: %s\n", path, error.line, error.text);
    }
    return cases;
}

static double number_of(const json_t *value)
{
    const char *word = json_string_value(value);
    if (!word) {
        return json_number_value(value);
    }
    return strcmp(word, "nan") == 0 ? (double)NAN : strcmp(word, "inf") == 0 ? HUGE_VAL : -HUGE_VAL;
}

int64_t case_file_numbers(const json_t *entry, const char *field, double **numbers)
{
    const json_t *array = json_object_get(entry, field);
    if (!json_is_array(array)) {
        return -1;
    }
    size_t count = json_array_size(array);
    *numbers = malloc((count + 1) * sizeof **numbers);
    if (!*numbers) {
        abort();
    }
    for (size_t i = 0; i < count; ++i) {
        (*numbers)[i] = number_of(json_array_get(array, i));
    }
    return (int64_t)count;
}

double case_file_tolerance(const json_t *entry, const char *of)
{
    return json_number_value(json_object_get(json_object_get(entry, "tolerance"), of));
}

static int64_t size_of(const json_t *entry, const char *field)
{
    return json_integer_value(json_object_get(entry, field));
}

/* Copies an array of exactly this many numbers, rounded to float32. */
static void copy_floats(const json_t *entry, const char *field, float *to, int64_t count)
{
    double *numbers = NULL;
    if (case_file_numbers(entry, field, &numbers) != count) {
        fprintf(stderr, "%s: %s has another size\n",
                json_string_value(json_object_get(entry, "id")), field);
        abort();
    }
    for (int64_t i = 0; i < count; ++i) {
        to[i] = (float)numbers[i];
    }
    free(numbers);
}

static int64_t copy_lengths(const json_t *entry, const char *field, int64_t *to)
{
    const json_t *array = json_object_get(entry, field);
    size_t count = json_array_size(array);
    for (size_t b = 0; b < count && b < TRIAL_BATCH; ++b) {
        to[b] = json_integer_value(json_array_get(array, b));
    }
    return (int64_t)count;
}

static void read_rules(const json_t *entry, trial *p)
{
    const char *causal = json_string_value(json_object_get(entry, "causal"));
    const json_t *window = json_object_get(entry, "window");
    p->causal = causal && strcmp(causal, "none") != 0;
    if (p->causal) {
        p->alignment =
            strcmp(causal, "top_left") == 0 ? MHA_ALIGNMENT_TOP_LEFT : MHA_ALIGNMENT_BOTTOM_RIGHT;
    }
    if (window) {
        p->left = json_integer_value(json_array_get(window, 0));
        p->right = json_integer_value(json_array_get(window, 1));
    }
    p->key_batch = copy_lengths(entry, "key_lengths", p->key_lengths);
    p->query_batch = copy_lengths(entry, "query_lengths", p->query_lengths);
    p->offset_batch = copy_lengths(entry, "past_length", p->offsets);
    if (p->offset_batch) {
        p->alignment = MHA_ALIGNMENT_EXPLICIT;
    }
}

/* {shape, data} of an additive bias [B,H,T,S], axes of size 1 broadcast. */
static void read_bias(const json_t *entry, trial *p)
{
    const json_t *bias = json_object_get(entry, "bias");
    if (!bias) {
        return;
    }
    int64_t n[4] = {1, 1, 1, 1};
    for (size_t a = 0; a < 4; ++a) {
        n[a] = json_integer_value(json_array_get(json_object_get(bias, "shape"), a));
    }
    tensor *t = trial_add_bias(p, n, NULL);
    copy_floats(bias, "data", t->data, tensor_elements(t));
}

static void read_scores(const json_t *entry, trial *p)
{
    const json_t *slopes = json_object_get(entry, "alibi_slopes");
    const json_t *rope = json_object_get(entry, "rope");
    p->softcap = (float)json_number_value(json_object_get(entry, "softcap"));
    p->alibi = slopes != NULL;
    if (json_is_array(slopes)) {
        p->slopes_are_set = 1;
        copy_floats(entry, "alibi_slopes", p->slopes, p->H);
    }
    if (json_object_get(entry, "sink")) {
        p->sinks = 1;
        p->parameter[MHA_PARAM_SINKS] = malloc((size_t)p->H * sizeof(float));
        if (!p->parameter[MHA_PARAM_SINKS]) {
            abort();
        }
        copy_floats(entry, "sink", p->parameter[MHA_PARAM_SINKS], p->H);
    }
    if (rope) {
        p->rotary_pairing =
            strcmp(json_string_value(json_object_get(rope, "pairing")), "halves") == 0
                ? MHA_ROTARY_HALVES
                : MHA_ROTARY_NEIGHBOURS;
        p->rotary_size = json_integer_value(json_object_get(rope, "size"));
        p->rotary_base = json_number_value(json_object_get(rope, "base"));
    }
}

/* Outside training there is none. */
static void read_dropout(const json_t *entry, trial *p)
{
    const json_t *keep = json_object_get(entry, "dropout_keep");
    const size_t cells = (size_t)(p->B * p->H * p->T * p->S);
    if (!json_is_true(json_object_get(entry, "training"))) {
        return;
    }
    p->dropout = json_number_value(json_object_get(entry, "dropout"));
    p->seed = 7;
    if (keep) {
        p->keep = malloc(cells + 1);
        if (!p->keep || json_array_size(keep) != cells) {
            abort();
        }
        for (size_t n = 0; n < cells; ++n) {
            p->keep[n] = (uint8_t)json_integer_value(json_array_get(keep, n));
        }
    }
}

static void read_mask(const json_t *entry, trial *p)
{
    const json_t *mask = json_object_get(entry, "bool_mask");
    if (!mask) {
        return;
    }
    const char *kind = json_string_value(json_object_get(mask, "kind"));
    const json_t *shape = json_object_get(mask, "shape");
    int64_t n[4] = {1, 1, 1, 1};
    size_t rank = json_array_size(shape);
    for (size_t a = 0; a < rank; ++a) {
        n[a] = json_integer_value(json_array_get(shape, a));
    }
    boolean_mask *m = strcmp(kind, "key") == 0 ? trial_add_mask(p, MASK_KEY, n[0], 1, 1, n[1])
                      : strcmp(kind, "query_key") == 0
                          ? trial_add_mask(p, MASK_QUERY_KEY, 1, 1, n[0], n[1])
                          : trial_add_mask(p, MASK_FULL, n[0], n[1], n[2], n[3]);
    const json_t *data = json_object_get(mask, "data");
    size_t count = json_array_size(data);
    for (size_t i = 0; i < count; ++i) {
        m->bytes[i] = (uint8_t)json_integer_value(json_array_get(data, i));
    }
    m->flags = json_is_true(json_object_get(mask, "inverted")) ? MHA_MASK_INVERTED : 0;
}

static void read_projections(const json_t *entry, trial *p)
{
    static const char *const weight[4] = {"q_weight", "k_weight", "v_weight", "out_weight"};
    static const char *const bias[4] = {"q_bias", "k_bias", "v_bias", "out_bias"};
    const int64_t width[4] = {size_of(entry, "E"), size_of(entry, "Ek"), size_of(entry, "Ev"),
                              size_of(entry, "Eo")};
    p->E = width[0];
    for (int32_t side = 0; side < 4; ++side) {
        trial_project(p, side, width[side], json_object_get(entry, bias[side]) != NULL);
    }
    for (int32_t id = 0; id <= MHA_PARAM_OUT_BIAS; ++id) {
        int64_t count = trial_parameter_count(p, id);
        p->parameter[id] = malloc((size_t)(count + 1) * sizeof(float));
        if (!p->parameter[id]) {
            abort();
        }
        if (count > 0 && id % 2 == 0) {
            copy_floats(json_object_get(entry, weight[id / 2]), "data", p->parameter[id], count);
        } else if (count > 0) {
            copy_floats(entry, bias[id / 2], p->parameter[id], count);
        }
    }
}

void case_file_trial(const json_t *entry, trial *p)
{
    int layer = strcmp(json_string_value(json_object_get(entry, "kind")), "layer") == 0;
    trial_begin(p, size_of(entry, "B"), size_of(entry, "T"), size_of(entry, "S"),
                size_of(entry, "H"), size_of(entry, "G"), size_of(entry, "D"),
                size_of(entry, "Dv"));
    if (layer) {
        read_projections(entry, p);
    }
    if (json_object_get(entry, "scale")) {
        p->scale_is_set = 1;
        p->scale = (float)json_number_value(json_object_get(entry, "scale"));
    }
    read_rules(entry, p);
    read_mask(entry, p);
    read_bias(entry, p);
    read_scores(entry, p);
    read_dropout(entry, p);
    trial_tensors(p, 1, 1);
    trial_ask(p, MHA_TENSOR_WEIGHTS_MEAN);
    trial_ask(p, MHA_TENSOR_WEIGHTS_DROPPED);
    copy_floats(entry, layer ? "query" : "q", p->query.data, tensor_elements(&p->query));
    copy_floats(entry, layer ? "key" : "k", p->key.data, tensor_elements(&p->key));
    copy_floats(entry, layer ? "value" : "v", p->value.data, tensor_elements(&p->value));
}
