/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA__REFERENCE_FORWARD_H
#define MHA__REFERENCE_FORWARD_H

/*
 * The forward pass in float64, as the formulas stand on paper: one thread, one head after the
 * other, one number after the other. It shares the checked problem with src/flow and nothing of how
 * src/flow solves it, so that each may judge the other. Every output is rounded to float32 once.
 */
#include "attention/problem.h"

#include <mha/error.h>

/* MHA_ERROR_OUT_OF_MEMORY, before anything is written. */
int32_t mha__reference_forward(const struct mha__problem *p, mha_error *err);

#endif
