/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA__CALL_TENSORS_H
#define MHA__CALL_TENSORS_H

/* What is known of the tensors of a call before their sizes are compared. */
#include "api/objects.h"

struct mha__call_tensor {
    const char *name;
    int32_t least, most; /* ranks */
    bool output;
};

extern const struct mha__call_tensor mha__call_tensors[MHA__TENSORS];

#endif
