/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA_ERROR_H
#define MHA_ERROR_H

#include <mha/base.h>

MHA_BEGIN_DECLS

/*
 * Status codes: 0 is success, negative is an error. They come in decades with gaps, are never
 * renumbered and only appended. Every function that takes an object can return NULL_ARGUMENT and
 * BAD_HANDLE: objects begin with a word that destroy clears, and every build looks at it.
 */
#define MHA_OK 0
/* the call itself */
#define MHA_ERROR_NULL_ARGUMENT (-10) /* a pointer that is needed is NULL */
#define MHA_ERROR_UNKNOWN_ID    (-11) /* an id, type, flag or name unknown to this version */
#define MHA_ERROR_BAD_HANDLE    (-12) /* not a live object of that kind, where that can be seen */
/* sizes and values that do not fit */
#define MHA_ERROR_SHAPE      (-20) /* a size, rank or stride is negative or does not match */
#define MHA_ERROR_HEAD_COUNT (-21) /* heads that do not divide what they must divide */
#define MHA_ERROR_OVERLAP    (-22) /* an output shares memory with an input or another output */
#define MHA_ERROR_TOO_LARGE  (-23) /* a product of sizes passes 2^63, or a limit */
#define MHA_ERROR_VALUE      (-24) /* a number outside its range, or NaN where a number is needed */
#define MHA_ERROR_ALIGNMENT  (-25) /* T != S, and no alignment said where one is needed */
/* right call, wrong time */
#define MHA_ERROR_NOT_SET (-32) /* a parameter or tensor is missing; the sentence names it */
/* resources */
#define MHA_ERROR_OUT_OF_MEMORY (-40)
#define MHA_ERROR_BLAS          (-41) /* the BLAS in use computes wrong products on this CPU */
#define MHA_ERROR_EXECUTOR      (-42) /* the host's executor failed or left tasks undone */
/* files (libmha_io) */
#define MHA_ERROR_FILE_ACCESS (-50) /* cannot be opened, read or written */
#define MHA_ERROR_FILE_FORMAT (-51) /* is not what it should be, or is damaged */
#define MHA_ERROR_FILE_TENSOR (-52) /* a tensor is missing, or two sets of tensors contradict */

/**
 * The code and the sentence of a call. Owned by the caller, handed over as the last parameter of
 * every call that can fail (NULL is fine), overwritten by each such call: code 0 and an empty
 * sentence after a success. Nothing else changes it, no other thread's call, no destroyed object.
 * Threads: one at a time.
 */
typedef struct mha_error mha_error;

/**
 * A new error object, code 0. NULL when memory is short (every function takes a NULL err).
 */
MHA_API mha_error *mha_error_create(void);

/** Frees err; NULL is fine. */
MHA_API void mha_error_destroy(mha_error *err);

/**
 * The status of the last call that err was handed to.
 * @retval MHA_ERROR_NULL_ARGUMENT  err is NULL
 */
MHA_API int32_t mha_error_code(const mha_error *err);

/**
 * Copies the sentence, cut to cap - 1 bytes and NUL-terminated, into buf. Returns its full length
 * without the NUL, so (NULL, 0) asks for the length. UTF-8; at most 511 bytes.
 * NULL err: returns 0 and, with a buffer, stores "".
 */
MHA_API int64_t mha_error_message(const mha_error *err, char *buf, int64_t cap);

/**
 * Stores a status and a sentence, as a library built on this one does for its own calls: the text
 * is copied, cut to 511 bytes. Returns status, so that a function can end with it. NULL err is
 * fine; a NULL message means the static text of the status.
 */
MHA_API int32_t mha_error_set(mha_error *err, int32_t status, const char *message);

/** Static text for a status code: "MHA_ERROR_SHAPE: a size, rank or stride does not match". Never
 * NULL. */
MHA_API const char *mha_status_string(int32_t status);

MHA_END_DECLS
#endif
