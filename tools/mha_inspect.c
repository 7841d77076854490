/* SPDX-License-Identifier: Apache-2.0 */
#include "mha_inspect.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>

static const double default_tolerance = 1e-5;

static const char help[] =
    "Usage: mha inspect --weights FILE --scheme NAME --prefix TEXT --heads N --input X.npy\n"
    "                   --tokens TOKENS.txt [OPTION]...\n"
    "Runs one pre-trained attention layer on one sentence and says what its heads look at.\n\n"
    "  --weights FILE   the weights, .safetensors\n"
    "  --scheme NAME    how the tensors are named: bert, torch, gpt2 or llama\n"
    "  --prefix TEXT    what stands before those names (encoder.layer.0.attention.)\n"
    "  --heads N        number of heads\n"
    "  --input X.npy    what enters the layer, [T, E] or [1, T, E]\n"
    "  --tokens FILE    the T tokens, one a line\n\n"
    "  --kv-heads N     number of key-value heads, where queries share them (llama)\n"
    "  --html FILE      write a page with a heat map of every head\n"
    "  --output FILE    write the layer's output as .npy, in the shape of the input\n"
    "  --expect Y.npy   compare the output with this one; a miss is exit status 1\n"
    "  --tolerance X    largest |got - expected| / max(1, |expected|) (1e-5)\n"
    "  --causal         no token sees a later one (gpt2, llama)\n"
    "  --threads N      threads to use (default: as `mha info` says)\n"
    "  --json           one JSON object instead of the table\n"
    "  --help           this text\n\n"
    "The output is that of the attention alone: for bert after the dense of attention.output, "
    "before\n"
    "the residual and LayerNorm.\n";

static bool parse_integer(const char *text, int64_t low, int64_t high, int64_t *value)
{
    char *end;
    errno = 0;
    const long long number = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || number < low || number > high) {
        return false;
    }
    *value = number;
    return true;
}

static bool parse_tolerance(const char *text, double *value)
{
    char *end;
    const double number = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(number) || number < 0.0) {
        return false;
    }
    *value = number;
    return true;
}

static const char *missing_option(const struct mha__inspect_options *options)
{
    return options->weights == NULL  ? "--weights"
           : options->scheme == NULL ? "--scheme"
           : options->prefix == NULL ? "--prefix"
           : options->heads == 0     ? "--heads"
           : options->input == NULL  ? "--input"
           : options->tokens == NULL ? "--tokens"
                                     : NULL;
}

/* An exit status, or -1 to go on. */
static int parse_options(int argc, char **argv, struct mha__inspect_options *options)
{
    static const struct option table[] = {
        {"weights", required_argument, NULL, 'w'},
        {"scheme", required_argument, NULL, 's'},
        {"prefix", required_argument, NULL, 'p'},
        {"heads", required_argument, NULL, 'n'},
        {"kv-heads", required_argument, NULL, 'g'},
        {"input", required_argument, NULL, 'i'},
        {"tokens", required_argument, NULL, 't'},
        {"html", required_argument, NULL, 'm'},
        {"output", required_argument, NULL, 'o'},
        {"expect", required_argument, NULL, 'e'},
        {"tolerance", required_argument, NULL, 'r'},
        {"threads", required_argument, NULL, 'k'},
        {"causal", no_argument, NULL, 'c'},
        {"json", no_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int64_t threads = 0;
    for (int c; (c = getopt_long(argc, argv, "h", table, NULL)) != -1;) {
        switch (c) {
        case 'w':
            options->weights = optarg;
            break;
        case 's':
            options->scheme = optarg;
            break;
        case 'p':
            options->prefix = optarg;
            break;
        case 'i':
            options->input = optarg;
            break;
        case 't':
            options->tokens = optarg;
            break;
        case 'm':
            options->html = optarg;
            break;
        case 'o':
            options->output = optarg;
            break;
        case 'e':
            options->expect = optarg;
            break;
        case 'c':
            options->causal = true;
            break;
        case 'j':
            options->json = true;
            break;
        case 'n':
            if (!parse_integer(optarg, 1, INT32_MAX, &options->heads)) {
                return mha__tool_usage("inspect", "--heads %s: not a number of heads", optarg);
            }
            break;
        case 'g':
            if (!parse_integer(optarg, 1, INT32_MAX, &options->kv_heads)) {
                return mha__tool_usage("inspect", "--kv-heads %s: not a number of heads", optarg);
            }
            break;
        case 'k':
            if (!parse_integer(optarg, 0, 64, &threads)) {
                return mha__tool_usage("inspect", "--threads %s: not within 0 .. 64", optarg);
            }
            break;
        case 'r':
            if (!parse_tolerance(optarg, &options->tolerance)) {
                return mha__tool_usage("inspect", "--tolerance %s: not a number >= 0", optarg);
            }
            break;
        case 'h':
            fputs(help, stdout);
            return MHA_TOOL_OK;
        default:
            return mha__tool_usage("inspect", "unknown or incomplete option");
        }
    }
    options->threads = (int32_t)threads;
    if (optind < argc) {
        return mha__tool_usage("inspect", "unexpected argument '%s'", argv[optind]);
    }
    const char *missing = missing_option(options);
    if (missing != NULL) {
        return mha__tool_usage("inspect", "%s is missing", missing);
    }
    return -1;
}

int mha__inspect_main(int argc, char **argv)
{
    struct mha__inspect_options options = {.tolerance = default_tolerance};
    int status = parse_options(argc, argv, &options);
    if (status >= 0) {
        return status;
    }
    struct mha__inspect_result result = {.tokens = {0, NULL}};
    status = mha__inspect_run(&options, &result);
    if (status == MHA_TOOL_OK && options.html != NULL) {
        status = mha__page_write(&options, &result);
    }
    if (status == MHA_TOOL_OK) {
        status = options.json
                     ? mha__tool_print_json("inspect", mha__inspect_json(&options, &result, false))
                     : mha__inspect_print(&options, &result);
    }
    if (status == MHA_TOOL_OK && result.compared && !result.matched) {
        status = MHA_TOOL_FAILED;
    }
    mha__inspect_free(&result);
    return status;
}
