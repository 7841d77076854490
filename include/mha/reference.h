/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA_REFERENCE_H
#define MHA_REFERENCE_H

#include <mha/call.h>
#include <mha/layer.h>

MHA_BEGIN_DECLS

/**
 * mha_forward in float64, in the plainest code of the library, one thread, no BLAS, no tiles: the
 * answer to compare with. The same layer, mask and call, every option, the same refusals; each
 * output is rounded to float32 once, at the end. Slow, and it takes O(T S) memory of its own for a
 * head. The callbacks see float32 scores and weights, a whole head as one tile.
 * @retval as mha_forward, but never MHA_ERROR_BLAS or MHA_ERROR_EXECUTOR
 */
MHA_API int32_t mha_reference_forward(const mha_layer *layer,
                                      const mha_mask *mask,
                                      mha_call *call,
                                      mha_error *err);

MHA_END_DECLS
#endif
