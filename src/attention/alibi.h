/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA__ALIBI_H
#define MHA__ALIBI_H

/*
 * The default slopes of ALiBi (Press et al., "Train Short, Test Long", 2021), with
 * n = 2^floor(log2 H):
 *
 *   slope(h) = 2^(-8 (h + 1) / n)              h < n
 *            = 2^(-4 (2 (h - n) + 1) / n)      the others: every second slope of 2 n heads
 *
 * Computed in float64, rounded once. 0 <= h < H. The caller sees to the floating-point environment.
 */
#include <stdint.h>

float mha__alibi_default_slope(int64_t H, int64_t h);

#endif
