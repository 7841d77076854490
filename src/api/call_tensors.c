/* SPDX-License-Identifier: Apache-2.0 */
#include "api/call_tensors.h"

#define ROW(id, least, most, output) [id] = {#id, least, most, output}

const struct mha__call_tensor mha__call_tensors[MHA__TENSORS] = {
    ROW(MHA_TENSOR_QUERY, 3, 4, false),          // [B,T,Eq]  or [B,T,H,D]
    ROW(MHA_TENSOR_KEY, 3, 4, false),            // [B,S,Ek]  or [B,S,G,D]
    ROW(MHA_TENSOR_VALUE, 3, 4, false),          // [B,S,Ev]  or [B,S,G,Dv]
    ROW(MHA_TENSOR_OUTPUT, 3, 4, true),          // [B,T,Eo]  or [B,T,H,Dv]
    ROW(MHA_TENSOR_WEIGHTS, 4, 4, true),         // [B,H,T,S']
    ROW(MHA_TENSOR_LSE, 3, 3, true),             // [B,H,T]
    ROW(MHA_TENSOR_BIAS0, 4, 4, false),          // [B|1,H|1,T|1,S]
    ROW(MHA_TENSOR_BIAS1, 4, 4, false),          //
    ROW(MHA_TENSOR_BIAS2, 4, 4, false),          //
    ROW(MHA_TENSOR_BIAS3, 4, 4, false),          //
    ROW(MHA_TENSOR_WEIGHTS_MEAN, 3, 3, true),    // [B,T,S']
    ROW(MHA_TENSOR_WEIGHTS_DROPPED, 4, 4, true), // [B,H,T,S']
    ROW(MHA_TENSOR_SCORES_SCALED, 4, 4, true),   // [B,H,T,S]
    ROW(MHA_TENSOR_SCORES_CAPPED, 4, 4, true),   //
    ROW(MHA_TENSOR_SCORES_BIASED, 4, 4, true),   //
    ROW(MHA_TENSOR_ENTROPY, 3, 3, true),         // [B,H,T]
    ROW(MHA_TENSOR_MAXIMUM, 3, 3, true),         //
    ROW(MHA_TENSOR_KEY_MASS, 3, 3, true),        // [B,H,S']
    ROW(MHA_TENSOR_KEY_MASS_TOTAL, 2, 2, true),  // [B,S']
};
