/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_KERNEL_SETS_H
#define TESTS_KERNEL_SETS_H

/*
 * The kernel sets that can be tried here: those that the CPU can run, the plain one first, and the source of
 * the AVX-512 set on emulated instructions (avx512_emulated.h). NULL past the last.
 */
#include <kernels/kernels.h>

const struct mha__kernels *kernel_set(int i);

/* Runs a test for each set, in the environment that kernels run in. */
void for_each_kernel_set(void (*test)(const struct mha__kernels *set,
                                      const struct mha__kernels *ref));

#endif
