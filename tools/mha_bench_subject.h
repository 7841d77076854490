/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA_BENCH_SUBJECT_H
#define MHA_BENCH_SUBJECT_H

#include "mha_bench.h"

/* One forward that can be repeated: the objects and the tensors of a shape and an option. */
struct mha__bench_subject {
    const struct mha__bench_options *options;
    struct mha__shape shape; /* causal and window of the option are in it */
    enum mha__bench_with with;
    mha_error *err;
    mha_config *config;
    mha_layer *layer;
    mha_context *context;
    bool context_is_lent;
    mha_mask *mask; /* NULL: all is visible */
    mha_call *call; /* NULL: query, key, value and out are all there is */
    float *query, *key, *value, *out;
    float *extra[2]; /* the tensors of the option */
};

/* Fills an empty subject, and what is known of side before a forward; context is lent to it, or NULL:
 * then it makes one. Returns an exit status; what was made has to be released in any case. */
int mha__bench_subject_make(struct mha__bench_subject *subject,
                            const struct mha__bench_options *options,
                            const struct mha__shape *shape,
                            enum mha__bench_with with,
                            mha_context *context,
                            struct mha__bench_side *side);

void mha__bench_subject_release(struct mha__bench_subject *subject);

/* One forward. Returns an exit status. */
int mha__bench_subject_forward(struct mha__bench_subject *subject);

#endif
