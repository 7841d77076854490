/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA__FLOW_FORWARD_H
#define MHA__FLOW_FORWARD_H

#include "attention/problem.h"

/*
 * The forward pass, everything checked, workspace in place:
 *
 *   project in  ->  attend  ->  project out
 *
 * MHA_OK, or what mha__parallel_for returns.
 */
int32_t mha__flow_forward(const struct mha__problem *problem,
                          const struct mha__means *means,
                          mha_error *err);

#endif
