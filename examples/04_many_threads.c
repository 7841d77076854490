/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One layer, many threads: the layer is shared and read-only, each thread has a context of its own.
 * All get the same bits as a single caller does, whatever number of threads libmha itself uses.
 */
#include <mha/mha.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CALLERS = 4, B = 2, T = 48, E = 256, H = 8, NUMBERS = B * T * E };

struct caller {
    const mha_layer *layer;
    const float *tokens;
    int32_t threads; /* of libmha, inside this caller's call */
    int32_t status;
    float out[NUMBERS];
};

static void *run(void *argument)
{
    struct caller *self = argument;
    mha_context *ctx = NULL;
    self->status = mha_context_create(&ctx, NULL);
    if (self->status == MHA_OK)
        self->status = mha_context_set_threads(ctx, self->threads, NULL);
    if (self->status == MHA_OK)
        self->status = mha_layer_forward(ctx,
                                         self->layer,
                                         B,
                                         T,
                                         T,
                                         self->tokens,
                                         self->tokens,
                                         self->tokens,
                                         NULL,
                                         self->out,
                                         NULL);
    mha_context_destroy(ctx);
    return NULL;
}

int main(void)
{
    static float tokens[NUMBERS];
    static struct caller alone, callers[CALLERS];
    pthread_t threads[CALLERS];
    mha_config *cfg = NULL;
    mha_layer *layer = NULL;
    int failures = 0;

    for (int i = 0; i < NUMBERS; ++i)
        tokens[i] = (float)(i * 7919 % 1000) / 500.0f - 1.0f;
    if (mha_config_create(E, H, &cfg, NULL) != MHA_OK ||
        mha_layer_create(cfg, &layer, NULL) != MHA_OK ||
        mha_layer_initialize(layer, 4, NULL) != MHA_OK) {
        fprintf(stderr, "no layer\n");
        return 1;
    }

    alone = (struct caller){.layer = layer, .tokens = tokens, .threads = 1};
    run(&alone);
    printf("one caller, one thread: %s\n", mha_status_string(alone.status));

    for (int i = 0; i < CALLERS; ++i) {
        callers[i] = (struct caller){.layer = layer, .tokens = tokens, .threads = i + 1};
        if (pthread_create(&threads[i], NULL, run, &callers[i]) != 0)
            return 1;
    }
    for (int i = 0; i < CALLERS; ++i) {
        pthread_join(threads[i], NULL);
        int same =
            callers[i].status == MHA_OK && memcmp(callers[i].out, alone.out, sizeof alone.out) == 0;
        printf("caller %d with %d thread%s: %s\n",
               i,
               i + 1,
               i == 0 ? "" : "s",
               same ? "the same bits" : "DIFFERENT");
        failures += !same;
    }

    mha_layer_destroy(layer);
    mha_config_destroy(cfg);
    return failures == 0 && alone.status == MHA_OK ? 0 : 1;
}
