/* SPDX-License-Identifier: Apache-2.0 */
#include "io/io_scheme.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* torch.nn.MultiheadAttention: one packed weight where q, k and v are equally wide, else three; the
 * bias is packed in both. */
static const struct mha__io_scheme torch_names = {
    .packed_weight = "in_proj_weight",
    .packed_bias = "in_proj_bias",
    .weight = {"q_proj_weight", "k_proj_weight", "v_proj_weight", "out_proj.weight"},
    .bias = {NULL, NULL, NULL, "out_proj.bias"},
    .refused = {"bias_k", "bias_v"},
};

static const struct mha__io_scheme bert_names = {
    .weight = {"self.query.weight", "self.key.weight", "self.value.weight", "output.dense.weight"},
    .bias = {"self.query.bias", "self.key.bias", "self.value.bias", "output.dense.bias"},
    .refused = {"self.distance_embedding.weight"},
};

/* GPT-2's Conv1D stores [in, out]. (Its "bias" beside c_attn is a causal mask, not a parameter.) */
static const struct mha__io_scheme gpt2_names = {
    .packed_weight = "c_attn.weight",
    .packed_bias = "c_attn.bias",
    .weight = {NULL, NULL, NULL, "c_proj.weight"},
    .bias = {NULL, NULL, NULL, "c_proj.bias"},
    .transposed = true,
};

/* Llama and its kin: rotary positions in halves; most have no biases. (q_norm, k_norm: Qwen 3.) */
static const struct mha__io_scheme llama_names = {
    .weight = {"q_proj.weight", "k_proj.weight", "v_proj.weight", "o_proj.weight"},
    .bias = {"q_proj.bias", "k_proj.bias", "v_proj.bias", "o_proj.bias"},
    .refused = {"q_norm.weight", "k_norm.weight"},
    .rotary = true,
};

int32_t mha_io_scheme(const char *name)
{
    static const struct {
        const char *name;
        int32_t scheme;
    } schemes[] = {
        {"torch", MHA_SCHEME_TORCH},
        {"bert", MHA_SCHEME_BERT},
        {"gpt2", MHA_SCHEME_GPT2},
        {"llama", MHA_SCHEME_LLAMA},
    };
    if (!name) {
        return MHA_ERROR_NULL_ARGUMENT;
    }
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        if (strcmp(schemes[i].name, name) == 0) {
            return schemes[i].scheme;
        }
    }
    return MHA_ERROR_UNKNOWN_ID;
}

/* The tensor called prefix + name. Lengths are compared too. */
static int64_t find_tensor(const mha_io_safetensors *file, const char *prefix, const char *name)
{
    size_t first = strlen(prefix);
    size_t second = name ? strlen(name) : 0;
    for (int64_t i = 0; name && i < file->count; i++) {
        const struct mha__io_tensor *tensor = &file->tensors[i];
        if ((uint64_t)tensor->name_length == first + second &&
            memcmp(tensor->name, prefix, first) == 0 &&
            memcmp(tensor->name + first, name, second) == 0) {
            return i;
        }
    }
    return -1;
}

static const char *
quote_name(char quote[MHA__IO_QUOTE], const mha_io_safetensors *file, int64_t index)
{
    const struct mha__io_tensor *tensor = &file->tensors[index];
    return mha__io_error_quote(quote, tensor->name, tensor->name_length);
}

/* The first of the single tensors that would say the same as the packed one; -1: none. */
static int64_t single_input(const int64_t single[MHA__IO_PROJECTIONS])
{
    for (int32_t p = 0; p < MHA_PROJECTION_OUT; p++) {
        if (single[p] >= 0) {
            return single[p];
        }
    }
    return -1;
}

static int32_t
check_found(const mha_io_safetensors *file, const struct mha__io_found *found, mha_error *err)
{
    char one[MHA__IO_QUOTE];
    char other[MHA__IO_QUOTE];
    int64_t single = single_input(found->weight);
    if (found->packed_weight >= 0 && single >= 0) {
        return mha__io_error_fail(err,
                                  MHA_ERROR_FILE_TENSOR,
                                  file->source.label,
                                  "has both %s and %s: which one counts is unclear",
                                  quote_name(one, file, found->packed_weight),
                                  quote_name(other, file, single));
    }
    for (size_t i = 0; i < sizeof found->scheme->refused / sizeof found->scheme->refused[0]; i++) {
        int64_t tensor = find_tensor(file, found->prefix, found->scheme->refused[i]);
        if (tensor >= 0) {
            return mha__io_error_fail(err,
                                      MHA_ERROR_FILE_TENSOR,
                                      file->source.label,
                                      "has %s, which this version cannot apply",
                                      quote_name(one, file, tensor));
        }
    }
    return MHA_OK;
}

int32_t mha__io_scheme_find(const mha_io_safetensors *file,
                            int32_t scheme,
                            const char *prefix,
                            struct mha__io_found *found,
                            mha_error *err)
{
    switch (scheme) {
    case MHA_SCHEME_TORCH:
        found->scheme = &torch_names;
        break;
    case MHA_SCHEME_BERT:
        found->scheme = &bert_names;
        break;
    case MHA_SCHEME_GPT2:
        found->scheme = &gpt2_names;
        break;
    case MHA_SCHEME_LLAMA:
        found->scheme = &llama_names;
        break;
    default:
        return mha__io_error_fail(
            err, MHA_ERROR_UNKNOWN_ID, NULL, "%" PRId32 " is not a scheme", scheme);
    }
    found->prefix = prefix;
    found->packed_weight = find_tensor(file, prefix, found->scheme->packed_weight);
    found->packed_bias = find_tensor(file, prefix, found->scheme->packed_bias);
    for (int32_t p = 0; p < MHA__IO_PROJECTIONS; p++) {
        found->weight[p] = find_tensor(file, prefix, found->scheme->weight[p]);
        found->bias[p] = find_tensor(file, prefix, found->scheme->bias[p]);
    }
    return check_found(file, found, err);
}

int64_t mha__io_scheme_weight(const struct mha__io_found *found, int32_t projection)
{
    bool packed = projection != MHA_PROJECTION_OUT && found->packed_weight >= 0;
    return packed ? found->packed_weight : found->weight[projection];
}

int64_t mha__io_scheme_bias(const struct mha__io_found *found, int32_t projection)
{
    bool packed = projection != MHA_PROJECTION_OUT && found->packed_bias >= 0;
    return packed ? found->packed_bias : found->bias[projection];
}

/* What a file that lacks a name has instead: names under the prefix, or its first name. */
static void
describe_others(char *text, size_t room, const mha_io_safetensors *file, const char *prefix)
{
    size_t prefix_length = strlen(prefix);
    size_t used = 0;
    int64_t shown = 0;
    int64_t more = 0;
    char quote[MHA__IO_QUOTE];
    text[0] = '\0';
    for (int64_t i = 0; i < file->count; i++) {
        const struct mha__io_tensor *tensor = &file->tensors[i];
        if ((uint64_t)tensor->name_length < prefix_length ||
            memcmp(tensor->name, prefix, prefix_length) != 0) {
            continue;
        }
        quote_name(quote, file, i);
        if (shown < 3 && used + strlen(quote) + 32 < room) {
            used += (size_t)snprintf(text + used,
                                     room - used,
                                     "%s%s",
                                     shown ? ", " : "; with that prefix it has ",
                                     quote);
            shown++;
        } else {
            more++;
        }
    }
    if (more > 0) {
        snprintf(text + used, room - used, " and %" PRId64 " more", more);
    } else if (shown == 0 && file->count > 0) {
        snprintf(text,
                 room,
                 "; no name begins with that prefix, the first one is %s",
                 quote_name(quote, file, 0));
    }
}

int32_t mha__io_scheme_missing(const mha_io_safetensors *file,
                               const struct mha__io_found *found,
                               int32_t projection,
                               bool is_bias,
                               mha_error *err)
{
    const struct mha__io_scheme *scheme = found->scheme;
    const char *single = (is_bias ? scheme->bias : scheme->weight)[projection];
    const char *packed = is_bias ? scheme->packed_bias : scheme->packed_weight;
    /* Where some single weights are there, the packed one is not what is missing. */
    bool use_packed = projection != MHA_PROJECTION_OUT && packed &&
                      (!single || single_input(is_bias ? found->bias : found->weight) < 0);
    const char *name = use_packed ? packed : single;
    char full[512];
    char quote[MHA__IO_QUOTE];
    char others[320];
    int written = snprintf(full, sizeof full, "%s%s", found->prefix, name);
    size_t length = written < (int)sizeof full ? (size_t)written : sizeof full - 1;
    describe_others(others, sizeof others, file, found->prefix);
    return mha__io_error_fail(err,
                              MHA_ERROR_FILE_TENSOR,
                              file->source.label,
                              "no tensor %s%s",
                              mha__io_error_quote(quote, full, (int64_t)length),
                              others);
}
