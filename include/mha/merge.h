/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA_MERGE_H
#define MHA_MERGE_H

#include <mha/error.h>

MHA_BEGIN_DECLS

/**
 * Merges attention over disjoint parts of the keys into attention over all of them:
 *
 *   M = max_p lse_p                 w_p = exp(lse_p - M)
 *   o = sum_p w_p o_p / sum_p w_p   lse = M + ln sum_p w_p
 *
 * out[p] is [rows, Dv] and lse[p] [rows], contiguous, rows in any common order: each pair (out,
 * lse) as one forward wrote it, before an output projection and with gates of 1. A part that is
 * empty in a row (lse -infinity) weighs 0 there; all empty gives 0 and -infinity. A sink belongs to
 * exactly one part.
 * Aliasing  merged_out may be one of the outs and merged_lse one of the lses; else no overlap.
 * Memory    none. Threads: any number of calls at once.
 * Numerics  float32, parts in their order; a part whose weight is below e^-86.5 counts as 0.
 * @retval MHA_OK
 * @retval MHA_ERROR_NULL_ARGUMENT  a pointer is NULL (merged_lse may be)
 * @retval MHA_ERROR_SHAPE          parts < 1, rows < 0 or Dv < 1
 * @retval MHA_ERROR_TOO_LARGE      rows * Dv passes 2^63 bytes
 * @retval MHA_ERROR_OVERLAP        a result shares memory with something else than the doc allows
 */
MHA_API int32_t mha_merge(int64_t parts,
                          int64_t rows,
                          int64_t Dv,
                          const float *const *out,
                          const float *const *lse,
                          float *merged_out,
                          float *merged_lse,
                          mha_error *err);

MHA_END_DECLS
#endif
