/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA_H
#define MHA_H

/*
 * libmha: multi-head attention on CPUs.
 *
 * The interface has altitudes; start at the first and climb only as far as you need. A lower one never
 * changes meaning because of a higher one.
 *
 * 1. One call, no object: <mha/attention.h>
 *
 *        mha_attention(B, T, S, H, G, D, q, k, v, MHA_CAUSAL_NONE, out, NULL);
 *
 * 2. A layer, that is projections, heads and weights: <mha/config.h> <mha/layer.h> <mha/context.h>
 *
 *        mha_config_create(512, 8, &cfg, err);
 *        mha_layer_create(cfg, &layer, err);
 *        mha_layer_set_parameter(layer, MHA_PARAM_Q_WEIGHT, MHA_FLOAT32, w, 512 * 512, err);
 *        mha_context_create(&ctx, err);
 *        mha_layer_forward(ctx, layer, B, T, S, query, key, value, mask, out, err);
 *
 * 3. Everything, that is who may see whom, any stride, biases, weights, statistics:
 *    <mha/mask.h> <mha/call.h> <mha/forward.h>
 *
 *        mha_mask_create(&mask, err);
 *        mha_mask_set_causal(mask, 1, err);
 *        mha_call_set_input(call, MHA_TENSOR_QUERY, MHA_FLOAT32, data, 3, shape, strides, err);
 *        mha_call_set_output(call, MHA_TENSOR_WEIGHTS, MHA_FLOAT32, data, 4, shape, strides, err);
 *        mha_forward(ctx, layer, mask, call, err);
 *
 * Beside them: what a call will cost <mha/plan.h>, parts of the keys put together <mha/merge.h>, other
 * libraries' meanings <mha/preset.h>, the same in float64 to compare with <mha/reference.h>, what the
 * library found here <mha/runtime.h>, constants by name <mha/constant.h>, the version <mha/version.h>.
 *
 * Every function that can fail returns a status (0 = MHA_OK, negative = error) and takes a mha_error as
 * its last parameter, which may be NULL and receives a sentence with the numbers in it <mha/error.h>.
 * A call that fails writes nothing and leaves all objects as before. The library never exits, aborts or
 * prints, and leaves the BLAS, OpenMP, floating-point, locale and signal settings of its host alone.
 */
#include <mha/attention.h>
#include <mha/base.h>
#include <mha/call.h>
#include <mha/config.h>
#include <mha/constant.h>
#include <mha/context.h>
#include <mha/error.h>
#include <mha/forward.h>
#include <mha/layer.h>
#include <mha/mask.h>
#include <mha/merge.h>
#include <mha/plan.h>
#include <mha/preset.h>
#include <mha/reference.h>
#include <mha/runtime.h>
#include <mha/version.h>

#endif
