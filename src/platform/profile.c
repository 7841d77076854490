/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "platform/profile.h"

#include <string.h>
#include <time.h>

int64_t mha__profile_nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void mha__profile_start(struct mha__profile *profile)
{
    memset(profile, 0, sizeof *profile);
    profile->start = mha__profile_ticks();
    profile->start_nanoseconds = mha__profile_nanoseconds();
}

static double seconds_of(const struct mha__profile *profile, uint64_t ticks)
{
    const uint64_t all = mha__profile_between(profile->start, mha__profile_ticks());
    const double seconds = 1e-9 * (double)(mha__profile_nanoseconds() - profile->start_nanoseconds);
    return all > 0 ? (double)ticks * (seconds / (double)all) : 0.0;
}

static uint64_t ticks_of(const struct mha__profile *profile, enum mha__profile_part part)
{
    uint64_t ticks = 0;
    for (int lane = 0; lane < MHA__PROFILE_LANES; lane++) {
        ticks += profile->lane[lane].ticks[part];
    }
    // the calling thread's checks, plans and waits between phases
    return part == MHA__PROFILE_OTHER
               ? ticks + mha__profile_between(profile->phases, profile->calls)
               : ticks;
}

double mha__profile_seconds(const struct mha__profile *profile, enum mha__profile_part part)
{
    return seconds_of(profile, ticks_of(profile, part));
}

double mha__profile_idle(const struct mha__profile *profile)
{
    uint64_t charged = 0;
    for (int part = 0; part < MHA__PROFILE_PARTS; part++) {
        charged += ticks_of(profile, (enum mha__profile_part)part);
    }
    return seconds_of(profile, mha__profile_between(charged, profile->lane_calls));
}
