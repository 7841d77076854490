/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA__PHILOX_H
#define MHA__PHILOX_H

/*
 * Philox4x32-10: J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011. Four words
 * for each counter, independent of all others: no state, so any order and any number of threads.
 */
#include <stdint.h>

struct mha__philox {
    uint32_t word[4];
};

static inline struct mha__philox mha__philox_at(uint64_t seed, struct mha__philox counter)
{
    uint32_t k0 = (uint32_t)seed;
    uint32_t k1 = (uint32_t)(seed >> 32);
    struct mha__philox x = counter;
    for (int round = 0; round < 10; round++) {
        const uint64_t a = (uint64_t)0xd2511f53u * x.word[0];
        const uint64_t b = (uint64_t)0xcd9e8d57u * x.word[2];
        x = (struct mha__philox){{(uint32_t)(b >> 32) ^ x.word[1] ^ k0, (uint32_t)b,
                                  (uint32_t)(a >> 32) ^ x.word[3] ^ k1, (uint32_t)a}};
        k0 += 0x9e3779b9u;
        k1 += 0xbb67ae85u;
    }
    return x;
}

#endif
