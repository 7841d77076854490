/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA_MASK_H
#define MHA_MASK_H

#include <mha/error.h>

MHA_BEGIN_DECLS

/**
 * Which keys a query may see. All rules hold at once:
 *
 *   allowed(b,h,i,j) = causal and window and key length and every boolean mask
 *
 * A mask keeps its own compact copy (bits, and one number per row for lengths), so the caller's
 * arrays are free after each call and one mask serves every layer of a model. A fresh mask hides
 * nothing; NULL in place of a mask means the same.
 *
 * Hiding is a selection: what is stored at a hidden key, NaN and infinity included, changes no bit
 * of any result. A query that may see no key gets zeros, weights of zero and log-sum-exp -infinity.
 *
 * Sizes are compared with the call that uses the mask: batch, head and query axes must be 1 or
 * equal to B, H and T; a key axis shorter than S hides the rest, a longer one is refused
 * (MHA_ERROR_SHAPE).
 *
 * Threads: any number of calls may use a mask at once; changing it needs it alone. Every function
 * returns MHA_OK, MHA_ERROR_NULL_ARGUMENT or what stands beside it, and on failure leaves the mask
 * as before.
 */
typedef struct mha_mask mha_mask;

/* Where the diagonal of causal and window lies: query i stands at key position i + off[b].
 *   UNSET         off = 0, legal only where T_b = S_b in every batch row
 *   BOTTOM_RIGHT  off = S_b - T_b, with the lengths of the batch row; may be negative
 *   EXPLICIT      off[b] from mha_mask_set_offsets */
#define MHA_ALIGNMENT_UNSET        0
#define MHA_ALIGNMENT_TOP_LEFT     1 /* off = 0 */
#define MHA_ALIGNMENT_BOTTOM_RIGHT 2
#define MHA_ALIGNMENT_EXPLICIT     3

/* Flags of boolean masks. INVERTED: non-zero = may NOT attend, as torch.nn.MultiheadAttention means
 * it. */
#define MHA_MASK_INVERTED 1

/** A mask that hides nothing. @retval MHA_ERROR_OUT_OF_MEMORY  *out is NULL */
MHA_API int32_t mha_mask_create(mha_mask **out, mha_error *err);

/** Frees mask; NULL is fine. */
MHA_API void mha_mask_destroy(mha_mask *mask);

/** Causal: j <= i + off (on = 1), or not (0, the default). @retval MHA_ERROR_VALUE  neither 0 nor 1
 */
MHA_API int32_t mha_mask_set_causal(mha_mask *mask, int32_t on, mha_error *err);

/**
 * The alignment shared by causal and window. It must have been said where one of them is used and
 * some T_b != S_b, or the call is refused with MHA_ERROR_ALIGNMENT.
 * @retval MHA_ERROR_UNKNOWN_ID  not UNSET, TOP_LEFT or BOTTOM_RIGHT (EXPLICIT comes by set_offsets)
 */
MHA_API int32_t mha_mask_set_alignment(mha_mask *mask, int32_t alignment, mha_error *err);

/**
 * Explicit offsets, one per batch row (batch = 1 serves all rows): query i stands at i +
 * offsets[b].
 * @retval MHA_ERROR_SHAPE          batch < 1
 * @retval MHA_ERROR_TOO_LARGE      |offset| > 2^40
 * @retval MHA_ERROR_OUT_OF_MEMORY
 */
MHA_API int32_t mha_mask_set_offsets(mha_mask *mask,
                                     int64_t batch,
                                     const int64_t *offsets,
                                     mha_error *err);

/**
 * Window: i + off - left <= j <= i + off + right; the token itself is not counted; -1 = no bound on
 * that side (the default). Others' "W tokens including the current one, causal" is left = W - 1,
 * right = 0.
 * @retval MHA_ERROR_SHAPE  a bound below -1
 */
MHA_API int32_t mha_mask_set_window(mha_mask *mask, int64_t left, int64_t right, mha_error *err);

/**
 * S_b: only the first lengths[b] keys of batch row b are real. batch must be B of the call (or 1),
 * each length 0 .. S, or the call is refused.
 * @retval MHA_ERROR_SHAPE          batch < 1 or a negative length
 * @retval MHA_ERROR_OUT_OF_MEMORY
 */
MHA_API int32_t mha_mask_set_key_lengths(mha_mask *mask,
                                         int64_t batch,
                                         const int64_t *lengths,
                                         mha_error *err);

/**
 * T_b: only the first lengths[b] queries of batch row b are real. The others are padding: their
 * final output row is exactly 0 (the output bias is not added) and their log-sum-exp -infinity.
 * @retval MHA_ERROR_SHAPE          batch < 1 or a negative length
 * @retval MHA_ERROR_OUT_OF_MEMORY
 */
MHA_API int32_t mha_mask_set_query_lengths(mha_mask *mask,
                                           int64_t batch,
                                           const int64_t *lengths,
                                           mha_error *err);

/**
 * A boolean mask over keys, allowed [batch, keys] bytes, any non-zero = may attend. strides has 2
 * entries, or is NULL for contiguous; a stride of 0 broadcasts. Masks that are added are ANDed.
 * @retval MHA_ERROR_SHAPE          a size < 1 (keys may be 0) or a negative stride
 * @retval MHA_ERROR_UNKNOWN_ID     an unknown flag
 * @retval MHA_ERROR_TOO_LARGE      the sizes overflow
 * @retval MHA_ERROR_OUT_OF_MEMORY
 */
MHA_API int32_t mha_mask_add_key_mask(mha_mask *mask,
                                      int64_t batch,
                                      int64_t keys,
                                      const uint8_t *allowed,
                                      const int64_t *strides,
                                      int32_t flags,
                                      mha_error *err);

/** The same over queries and keys, allowed [queries, keys], for every batch row and head. */
MHA_API int32_t mha_mask_add_query_key_mask(mha_mask *mask,
                                            int64_t queries,
                                            int64_t keys,
                                            const uint8_t *allowed,
                                            const int64_t *strides,
                                            int32_t flags,
                                            mha_error *err);

/** The same over everything, allowed [batch, heads, queries, keys]; the first three may be 1. */
MHA_API int32_t mha_mask_add_full_mask(mha_mask *mask,
                                       int64_t batch,
                                       int64_t heads,
                                       int64_t queries,
                                       int64_t keys,
                                       const uint8_t *allowed,
                                       const int64_t *strides,
                                       int32_t flags,
                                       mha_error *err);

/** Bytes that the mask holds; MHA_ERROR_NULL_ARGUMENT for NULL. */
MHA_API int64_t mha_mask_bytes(const mha_mask *mask);

MHA_END_DECLS
#endif
