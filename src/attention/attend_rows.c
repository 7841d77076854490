/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/attend.h"
#include "attention/dropout.h"
#include "attention/pack.h"

#include <math.h>
#include <string.h>

/*
 * Rows whose keys have all been seen: (m, l) are over the keys alone. A sink joins now:
 *
 *   M = max(m, sink)    L = l exp(m - M) + exp(sink - M)    weight = exp(s - m) exp(m - M) / L
 *   lse = M + ln L
 */

static float *out_row(const struct mha__attend_task *t, int64_t r)
{
    return t->out.data + t->b * t->out.batch + (t->i0 + r) * t->out.token + t->h * t->out.head;
}

static void close_row(const struct mha__attend_task *t, int64_t r)
{
    const struct mha__problem *p = t->problem;
    const bool real = t->i0 + r < t->row_rules.queries;
    const float sink = p->sinks && real ? p->sinks[t->h] : -INFINITY;
    const float m = t->row_max[r];
    const float l = t->row_sum[r];
    if (sink == -INFINITY) {
        t->row_factor[r] = l == 0.0f ? 0.0f : 1.0f / l;
        if (p->lse.data) {
            *mha__attend_row(t, &p->lse, r) = m + logf(l); // -infinity + log 0 = -infinity
        }
        return;
    }
    const float M = m > sink ? m : sink;
    const float keys = m == -INFINITY ? 0.0f : expf(m - M);
    const float L = l * keys + expf(sink - M);
    t->row_factor[r] = keys / L;
    if (p->lse.data) {
        *mha__attend_row(t, &p->lse, r) = M + logf(L);
    }
}

/* Feature d of column c of a tile of values, packed or in place. */
static float value_of(const struct mha__attend_task *t, int64_t tile, int64_t c, int64_t d)
{
    const struct mha__planner_plan *plan = &t->means->plan;
    if (plan->unpacked) {
        return mha__attend_given(t, &t->values, tile * plan->key_tile + c)[d];
    }
    return mha__pack_value_tile(t->problem, t->means, t->b, t->g,
                                tile)[mha__pack_value_at(plan, c, d)];
}

/* o_i += gate v_j for what is not finite in v_j, in the rows that may see key j: p is above 0 there, and
 * p * infinity is infinity, p * NaN is NaN. A dropped weight selects 0. */
static void add_nonfinite_values(const struct mha__attend_task *t, int64_t tile)
{
    const struct mha__problem *p = t->problem;
    const struct mha__attend_band band = mha__attend_band(t, tile, 0, t->rows);
    const enum mha__tile_class class = mha__attend_classify(t, tile, &band);
    for (int64_t c = band.first; class != MHA__TILE_SKIP && c < band.end; c++) {
        const int64_t j = tile * t->means->plan.key_tile + c;
        for (int64_t d = 0; d < p->Dv; d++) {
            const float v = value_of(t, tile, c, d);
            for (int64_t r = 0; !isfinite(v) && r < t->rows; r++) {
                if (mha__attend_sees(t, class, r, c) && t->row_max[r] != -INFINITY &&
                    (p->dropout == 0.0 || mha__dropout_keeps(p, t->b, t->h, t->i0 + r, j))) {
                    out_row(t, r)[d] += t->gate * v;
                }
            }
        }
    }
}

float mha__attend_factor(const struct mha__attend_task *t, int64_t r)
{
    return t->row_sum[r] == 0.0f ? 0.0f : t->row_factor[r];
}

static void store_rows(const struct mha__attend_task *t)
{
    const struct mha__problem *p = t->problem;
    const float kept = p->dropout > 0.0 ? mha__dropout_factor(p) : 1.0f;
    for (int64_t r = 0; r < t->rows; r++) {
        if (r + MHA__ROWS_AHEAD < t->rows) {
            mha__prefetch_to_write(out_row(t, r + MHA__ROWS_AHEAD), p->Dv);
        }
        if (t->gate == 0.0f || p->dropout >= 1.0 || t->row_sum[r] == 0.0f) {
            memset(out_row(t, r), 0, (size_t)p->Dv * sizeof(float)); // selected, NaN or not
            continue;
        }
        // o_i = gate / (1 - dropout) o_i / l_i; a row that saw no finite score gives exact zeros
        t->means->kernels->scaled_copy(out_row(t, r), t->o + r * t->means->plan.values_ld, p->Dv,
                                       t->row_factor[r] * kept * t->gate);
    }
}

static void finish_output(const struct mha__attend_task *t)
{
    const struct mha__problem *p = t->problem;
    if (t->means->plan.transposed) {
        mha__attend_store_transposed(t);
    } else {
        store_rows(t);
    }
    for (int64_t tile = 0; t->gate != 0.0f && p->dropout < 1.0 && tile < t->means->plan.key_tiles;
         tile++) {
        if (mha__pack_is_noted(p, t->means, t->b, t->g, tile)) {
            add_nonfinite_values(t, tile);
        }
    }
}

/*
 * -sum p ln p with p = f e, e = exp(s - m), f = row_factor:
 *   = -f (sum e ln e + l ln f)
 */
static float entropy_of(const struct mha__attend_task *t, int64_t r)
{
    const float f = t->row_factor[r];
    if (f == 0.0f) {
        return 0.0f;
    }
    const float entropy = -f * (t->p_ln_p[r] + logf(f) * t->row_sum[r]);
    return entropy < 0.0f ? 0.0f : entropy; // one key: rounding may leave -1e-7
}

void mha__attend_finish_rows(const struct mha__attend_task *t)
{
    const struct mha__problem *p = t->problem;
    for (int64_t r = 0; r < t->rows; r++) {
        close_row(t, r);
    }
    if (p->out.data) {
        mha__profile_to(t->clock, MHA__PROFILE_PACKING);
        finish_output(t);
        mha__profile_to(t->clock, MHA__PROFILE_OTHER);
    }
    for (int64_t r = 0; p->entropy.data && r < t->rows; r++) {
        *mha__attend_row(t, &p->entropy, r) = entropy_of(t, r);
    }
    for (int64_t r = 0; p->maximum.data && r < t->rows; r++) {
        // the largest e is exp(0)
        *mha__attend_row(t, &p->maximum, r) = t->row_sum[r] == 0.0f ? 0.0f : t->row_factor[r];
    }
    if (mha__attend_wants_weights(p)) {
        mha__attend_finish_weights(t);
    }
}
