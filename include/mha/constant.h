/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA_CONSTANT_H
#define MHA_CONSTANT_H

#include <mha/error.h>

MHA_BEGIN_DECLS

/*
 * The named constants of these headers, for languages that cannot read C macros. They are numbered
 * 0 .. mha_constant_count() - 1 in no promised order; names and values never change.
 */

/** How many constants there are. */
MHA_API int32_t mha_constant_count(void);

/** The name of a constant ("MHA_PARAM_Q_WEIGHT"), static; NULL when index is out of range. */
MHA_API const char *mha_constant_name(int32_t index);

/**
 * Stores the value of the constant called name.
 * @retval MHA_OK
 * @retval MHA_ERROR_NULL_ARGUMENT  name or value is NULL
 * @retval MHA_ERROR_UNKNOWN_ID     there is no constant of that name; *value is untouched
 */
MHA_API int32_t mha_constant_value(const char *name, int64_t *value, mha_error *err);

MHA_END_DECLS
#endif
