/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA__CPU_H
#define MHA__CPU_H

/* What this CPU can do, and how much of it this process may use. */
#include <stdbool.h>
#include <stdint.h>

struct mha__cpu {
    bool avx2;   /* AVX2 and FMA, registers saved by the system */
    bool avx512; /* AVX-512 F, DQ, BW, VL */
    bool neon;
};

const struct mha__cpu *mha__cpu_features(void);

/* min(CPUs of the affinity mask, asked anew; cgroup CPU quota rounded up, read once), at least 1. */
int32_t mha__cpu_usable(void);

#endif
