/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA_SHAPE_H
#define MHA_SHAPE_H

#include <stddef.h>
#include <stdint.h>

/*
 * One attention problem as a string, the same for tests and benchmarks:
 *
 *   b1_t1024_s1024_e512_h8_g2_d64_causal
 *
 * Parts in any order, each at most once: b, t, s, h, d (needed); g = h, dv = d, e = h*d unless
 * given; causaltl, causalbr, or causal where t = s; winL_R, -1 = no bound (win255_0).
 */
struct mha__shape {
    int64_t B, T, S, E, H, G, D, Dv;
    int32_t causal;       /* MHA_CAUSAL_NONE, _TOP_LEFT or _BOTTOM_RIGHT */
    int64_t window_left;  /* -1 = no bound */
    int64_t window_right; /* -1 = no bound */
};

/* Returns 0, or -1 with a sentence in why (cut to cap bytes) and *out untouched. */
int mha__shape_parse(const char *text, struct mha__shape *out, char *why, size_t cap);

#endif
