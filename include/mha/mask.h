/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA_MASK_H
#define MHA_MASK_H

#include <mha/error.h>

MHA_BEGIN_DECLS

/**
 * Which keys a query may see. All rules hold at once:
 *
 *   allowed(b,h,i,j) = causal and window and range and key length and segment and sequence
 *                      and every boolean mask and no bias is -infinity
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

/* Where the diagonal of causal, window, ALiBi and rotary positions lies: query i stands at key
 * position i + off[b]. */
#define MHA_ALIGNMENT_UNSET        0 /* off = 0, legal only where T_b = S_b in every batch row */
#define MHA_ALIGNMENT_TOP_LEFT     1 /* off = 0 */
#define MHA_ALIGNMENT_BOTTOM_RIGHT 2 /* off = S_b - T_b of the batch row; may be negative */
#define MHA_ALIGNMENT_EXPLICIT     3 /* off[b] from mha_mask_set_offsets */

/* Flags of boolean masks.
 *   INVERTED  non-zero = may NOT attend, as torch.nn.MultiheadAttention means it
 *   BITS      packed bits, least significant first, each row beginning on a byte; strides, if given,
 *             count bytes and the last one is not used */
#define MHA_MASK_INVERTED 1
#define MHA_MASK_BITS     2

/** A mask that hides nothing. @retval MHA_ERROR_OUT_OF_MEMORY  *out is NULL */
MHA_API int32_t mha_mask_create(mha_mask **out, mha_error *err);

/** Frees mask; NULL is fine. */
MHA_API void mha_mask_destroy(mha_mask *mask);

/** Causal: j <= i + off (on = 1), or not (0, the default). @retval MHA_ERROR_VALUE  neither 0 nor 1 */
MHA_API int32_t mha_mask_set_causal(mha_mask *mask, int32_t on, mha_error *err);

/**
 * The alignment shared by causal, window, ALiBi and rotary positions. It must have been said where
 * one of them is used and some T_b != S_b, or the call is refused with MHA_ERROR_ALIGNMENT.
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
 * flags is a sum of MHA_MASK_*.
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

/**
 * Causal per query head (local and global heads in one layer): on [heads], 0 or 1, heads = H of the
 * call. Replaces mha_mask_set_causal, which replaces this.
 * @retval MHA_ERROR_SHAPE          heads < 1
 * @retval MHA_ERROR_VALUE          neither 0 nor 1
 * @retval MHA_ERROR_OUT_OF_MEMORY
 */
MHA_API int32_t mha_mask_set_head_causal(mha_mask *mask,
                                         int64_t heads,
                                         const int32_t *on,
                                         mha_error *err);

/**
 * Window per query head, left and right [heads]; replaces mha_mask_set_window, which replaces this.
 * @retval MHA_ERROR_SHAPE          heads < 1 or a bound below -1
 * @retval MHA_ERROR_OUT_OF_MEMORY
 */
MHA_API int32_t mha_mask_set_head_windows(
    mha_mask *mask, int64_t heads, const int64_t *left, const int64_t *right, mha_error *err);

/**
 * Ranges: query i of batch row b sees keys lo <= j < hi only. lo and hi are [batch, queries], batch
 * = B or 1, queries = T. Prefix, document and chunk masks in O(T) memory.
 * @retval MHA_ERROR_NULL_ARGUMENT  lo or hi is NULL and queries is not 0
 * @retval MHA_ERROR_SHAPE          batch < 1, queries < 0 or a negative bound
 * @retval MHA_ERROR_TOO_LARGE      batch * queries passes 2^63 bytes
 * @retval MHA_ERROR_OUT_OF_MEMORY
 */
MHA_API int32_t mha_mask_set_ranges(mha_mask *mask,
                                    int64_t batch,
                                    int64_t queries,
                                    const int64_t *lo,
                                    const int64_t *hi,
                                    mha_error *err);

/**
 * Segments: a query and a key see each other only if their ids are equal. query_ids [batch,
 * queries], key_ids [batch, keys]; batch = B or 1, queries = T, keys = S. O(T + S) memory; ids in
 * runs are fastest.
 * @retval MHA_ERROR_NULL_ARGUMENT  ids are NULL and their size is not 0
 * @retval MHA_ERROR_SHAPE          batch < 1 or a negative size
 * @retval MHA_ERROR_TOO_LARGE      batch * queries or batch * keys passes 2^63 bytes
 * @retval MHA_ERROR_OUT_OF_MEMORY
 */
MHA_API int32_t mha_mask_set_segments(mha_mask *mask,
                                      int64_t batch,
                                      int64_t queries,
                                      const int64_t *query_ids,
                                      int64_t keys,
                                      const int64_t *key_ids,
                                      mha_error *err);

/**
 * A packed (ragged) batch: n sequences one after another in one batch row of T and S tokens.
 * Sequence s has queries query_offsets[s] .. query_offsets[s+1]-1 and the keys key_offsets[s] .. ;
 * both [n + 1], beginning at 0 and never falling; tokens past the last offset are padding.
 * Sequences do not see each other; alignment, offsets (n or 1 of them), causal, window, ALiBi and
 * rotary positions count within a sequence. The call must have B = 1. Not together with lengths.
 * @retval MHA_ERROR_SHAPE          n < 1, or offsets that do not begin at 0 or fall
 * @retval MHA_ERROR_OUT_OF_MEMORY
 */
MHA_API int32_t mha_mask_set_packed(mha_mask *mask,
                                    int64_t n,
                                    const int64_t *query_offsets,
                                    const int64_t *key_offsets,
                                    mha_error *err);

/**
 * ALiBi (Press et al. 2021): slope[h] * |i + off - j| is taken from each score. slopes [heads],
 * heads = H; NULL = the default: n = 2^floor(log2 H), slope(h) = 2^(-8(h+1)/n) for h < n, else
 * 2^(-4(2(h-n)+1)/n). heads 0 switches it off, the default. Uses the alignment, which must be said
 * where T != S.
 * @retval MHA_ERROR_SHAPE          heads < 0
 * @retval MHA_ERROR_VALUE          a slope is NaN or infinite
 * @retval MHA_ERROR_OUT_OF_MEMORY
 */
MHA_API int32_t mha_mask_set_alibi(mha_mask *mask,
                                   int64_t heads,
                                   const float *slopes,
                                   mha_error *err);

/**
 * What the mask does to a call of B, H, T, S on tiles of `queries` x `keys`, as text: how many
 * tiles are skipped, full and mixed, and what share of the pairs and of the tiles' work is left.
 * Copied like mha_error_message into buf; *length (may be NULL) is the full length.
 * @retval MHA_ERROR_SHAPE          negative sizes, tiles < 1, keys not a multiple of 64, or the mask
 *                                  has other sizes
 * @retval MHA_ERROR_ALIGNMENT      as in a forward
 * @retval MHA_ERROR_TOO_LARGE      B * H * T * S or a tile passes 2^63
 * @retval MHA_ERROR_OUT_OF_MEMORY
 */
MHA_API int32_t mha_mask_describe(const mha_mask *mask,
                                  int64_t B,
                                  int64_t H,
                                  int64_t T,
                                  int64_t S,
                                  int64_t queries,
                                  int64_t keys,
                                  char *buf,
                                  int64_t cap,
                                  int64_t *length,
                                  mha_error *err);

/** Bytes that the mask holds; MHA_ERROR_NULL_ARGUMENT for NULL. */
MHA_API int64_t mha_mask_bytes(const mha_mask *mask);

MHA_END_DECLS
#endif
