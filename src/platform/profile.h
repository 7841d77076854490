/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA__PROFILE_H
#define MHA__PROFILE_H

/*
 * Where the time of a call goes. Each lane has a clock that charges every tick between its begin and
 * its end to one part; whoever starts another kind of work says so with mha__profile_to. NULL for a
 * lane is "off" everywhere: then the cost is a comparison.
 *
 *   idle = lanes * duration of the calls - all that was charged
 */
#include <stddef.h>
#include <stdint.h>

enum mha__profile_part {
    MHA__PROFILE_PROJECTIONS, /* products with the weights of a layer */
    MHA__PROFILE_PACKING,     /* copies: keys, values, queries in; output out */
    MHA__PROFILE_SCORES,      /* Q K^T and the stages after it */
    MHA__PROFILE_SOFTMAX,
    MHA__PROFILE_VALUES, /* P V */
    MHA__PROFILE_OTHER,
    MHA__PROFILE_PARTS
};

enum { MHA__PROFILE_LANES = 64 };

/* Two cache lines, since CPUs fetch them in pairs: no two lanes write to one. */
struct mha__profile_lane {
    _Alignas(64) uint64_t ticks[MHA__PROFILE_PARTS];
    uint64_t since;
    enum mha__profile_part part;
    char apart[128 - 8 * (MHA__PROFILE_PARTS + 2)];
};

struct mha__profile {
    struct mha__profile_lane lane[MHA__PROFILE_LANES];
    uint64_t calls;      /* duration of all calls */
    uint64_t phases;     /* of that, within mha__parallel_for */
    uint64_t lane_calls; /* lanes * duration, summed over the calls */
    uint64_t start;      /* when profiling was set */
    int64_t start_nanoseconds;
};

int64_t mha__profile_nanoseconds(void);

/* A counter of even pace, the same on all CPUs; how many a second is found out while it runs. */
static inline uint64_t mha__profile_ticks(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    return (uint64_t)mha__profile_nanoseconds();
#endif
}

/* 0 where a thread moved to a CPU whose counter is a little behind. */
static inline uint64_t mha__profile_between(uint64_t begin, uint64_t end)
{
    return end > begin ? end - begin : 0;
}

static inline struct mha__profile_lane *mha__profile_lane(struct mha__profile *profile,
                                                          int64_t lane)
{
    return profile ? &profile->lane[lane] : NULL;
}

/* What follows belongs to `part`. */
static inline void mha__profile_to(struct mha__profile_lane *lane, enum mha__profile_part part)
{
    if (lane) {
        const uint64_t now = mha__profile_ticks();
        lane->ticks[lane->part] += mha__profile_between(lane->since, now);
        lane->since = now;
        lane->part = part;
    }
}

/* The lane's clock runs from begin to end; it begins with OTHER. */
static inline void mha__profile_begin(struct mha__profile_lane *lane)
{
    if (lane) {
        lane->since = mha__profile_ticks();
        lane->part = MHA__PROFILE_OTHER;
    }
}

static inline void mha__profile_end(struct mha__profile_lane *lane)
{
    mha__profile_to(lane, MHA__PROFILE_OTHER);
}

/* All at zero, from now on. */
void mha__profile_start(struct mha__profile *profile);

/* Seconds of a part since the start, summed over lanes. OTHER has what calls do outside their tasks. */
double mha__profile_seconds(const struct mha__profile *profile, enum mha__profile_part part);

/* The seconds that lanes waited. */
double mha__profile_idle(const struct mha__profile *profile);

#endif
