/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A real layer on a real sentence: the self-attention of the first layer of all-MiniLM-L6-v2 (E =
 * 384, 12 heads), read from a safetensors file, runs on the hidden states of a sentence. The result
 * is compared with what an independent implementation computed.
 *
 * Usage: example_03_pretrained_layer [directory of the data]
 */
#include <mha/io.h>
#include <mha/mha.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static mha_error *err;

static void check(int32_t status)
{
    char why[512];
    if (status == MHA_OK)
        return;
    mha_error_message(err, why, sizeof why);
    fprintf(stderr, "%s\n", why);
    exit(1);
}

static mha_io_npy *read_npy(const char *directory, const char *name)
{
    char path[1024];
    mha_io_npy *array;
    snprintf(path, sizeof path, "%s/%s", directory, name);
    check(mha_io_npy_read(path, &array, err));
    return array;
}

int main(int argc, char **argv)
{
    const char *directory = argc > 1 ? argv[1] : "data";
    const char *prefix = "encoder.layer.0.attention.";
    char path[1024];
    mha_io_safetensors *file;
    mha_config *cfg;
    mha_layer *layer;
    mha_context *ctx;
    int64_t shape[3] = {0};
    err = mha_error_create();

    /* widths and biases come from the file; how many heads they are cut into does not stand there
     */
    snprintf(path, sizeof path, "%s/minilm_layer0.safetensors", directory);
    check(mha_io_safetensors_open(path, &file, err));
    check(mha_io_read_config(file, MHA_SCHEME_BERT, prefix, 12, 0, &cfg, err));
    check(mha_layer_create(cfg, &layer, err));
    check(mha_io_load_layer(file, MHA_SCHEME_BERT, prefix, layer, err));
    mha_io_safetensors_close(file); /* the layer has its own copy */

    mha_io_npy *input = read_npy(directory, "animal_layer0_input.npy");
    mha_io_npy *expected = read_npy(directory, "animal_layer0_output.npy");
    int32_t rank = mha_io_npy_shape(input, shape, 3); /* [T, E] or [1, T, E] */
    int64_t tokens = shape[rank - 2], count = mha_io_npy_count(input);
    printf("%d heads of %d on %d tokens of %d features\n",
           (int)mha_config_heads(cfg),
           (int)mha_config_head_size(cfg),
           (int)tokens,
           (int)shape[rank - 1]);

    float *out = malloc((size_t)count * sizeof *out);
    if (out == NULL || mha_io_npy_count(expected) != count)
        return 1;
    const float *x = mha_io_npy_data(input);
    check(mha_context_create(&ctx, err));
    check(mha_layer_forward(ctx, layer, 1, tokens, tokens, x, x, x, NULL, out, err));

    double worst = 0.0, largest = 0.0;
    for (int64_t i = 0; i < count; ++i) {
        worst = fmax(worst, fabs((double)out[i] - (double)mha_io_npy_data(expected)[i]));
        largest = fmax(largest, fabs((double)mha_io_npy_data(expected)[i]));
    }
    printf("largest difference from the stored output: %.2e, where numbers go up to %.2f\n",
           worst,
           largest);

    free(out);
    mha_io_npy_destroy(input);
    mha_io_npy_destroy(expected);
    mha_context_destroy(ctx);
    mha_layer_destroy(layer);
    mha_config_destroy(cfg);
    mha_error_destroy(err);
    return worst <= 1e-5 * fmax(1.0, largest) ? 0
                                              : 1; /* float32 against float64 sums of 384 terms */
}
