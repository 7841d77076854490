/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA__FPENV_H
#define MHA__FPENV_H

/*
 * The floating-point environment of a task: round to nearest, exceptions masked, denormals are zero
 * (as inputs and as results), whatever the host has set; the host's control word and sticky flags
 * are put back afterwards.
 */
#include <stdint.h>

struct mha__fpenv {
    uint64_t control;
    uint64_t status;
};

void mha__fpenv_enter(struct mha__fpenv *saved);
void mha__fpenv_leave(const struct mha__fpenv *saved);

#endif
