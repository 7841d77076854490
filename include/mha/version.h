/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA_VERSION_H
#define MHA_VERSION_H

#include <mha/base.h>

MHA_BEGIN_DECLS

/* Semantic versioning. While the major version is 0, a minor version may break; from 1.0 on only a
 * major one. The build system reads the numbers from here. */
#define MHA_VERSION_MAJOR  0
#define MHA_VERSION_MINOR  1
#define MHA_VERSION_PATCH  0
#define MHA_VERSION_NUMBER (MHA_VERSION_MAJOR * 10000 + MHA_VERSION_MINOR * 100 + MHA_VERSION_PATCH)
#define MHA_VERSION_STRING "0.1.0" /* compile time only: ask mha_version_string() at run time */

/** major * 10000 + minor * 100 + patch of the library that is running. Bindings check it at load. */
MHA_API int32_t mha_version_number(void);

/** "major.minor.patch" of the library that is running; static. */
MHA_API const char *mha_version_string(void);

/**
 * One line about this build on this machine: version, compiler, kernels, BLAS with configuration
 * and core, tile table, default threads. Copied like mha_error_message: returns the full length
 * without the NUL, (NULL, 0) is fine.
 */
MHA_API int64_t mha_version_build_info(char *buf, int64_t cap);

MHA_END_DECLS
#endif
