/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SWEEP_LAYOUT_H
#define TESTS_SWEEP_LAYOUT_H

/* Where the tensors of a sweep's trial lie: contiguous, with gaps, fused, head-major, broadcast. */
#include "sweep.h"

void sweep_layout(const sweep_case *c, trial *p, float output_fill);

#endif
