/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA_CLOCK_H
#define MHA_CLOCK_H

#include <time.h>

/* Seconds on a clock that never goes back. */
static inline double mha__clock_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#endif
