/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA_BASE_H
#define MHA_BASE_H

/*
 * What every other header needs: the export mark, the fixed-width types, the deprecation mark.
 *
 * One alphabet, everywhere in this library:
 *   B       batch rows                      T / S   query tokens / key tokens
 *   E       features per token              H / G   query heads / key-value heads, G divides H
 *   D / Dv  size of one head for q and k / for v
 * Query head h reads key-value head h / (H/G). Tensors are row-major, float32, last axis
 * contiguous. Strides are counted in elements.
 */
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define MHA_BEGIN_DECLS extern "C" {
#define MHA_END_DECLS   }
#else
#define MHA_BEGIN_DECLS
#define MHA_END_DECLS
#endif

#ifndef MHA_API
#if defined(_WIN32) && !defined(MHA_STATIC)
#define MHA_API __declspec(dllimport)
#elif defined(__GNUC__)
#define MHA_API __attribute__((visibility("default")))
#else
#define MHA_API
#endif
#endif

#ifndef MHA_DEPRECATED
#if defined(MHA_DISABLE_DEPRECATION_WARNINGS) || !defined(__GNUC__)
#define MHA_DEPRECATED(use)
#else
#define MHA_DEPRECATED(use) __attribute__((deprecated(use)))
#endif
#endif

/* Element type of a tensor that is passed by id. More types may follow; numbers never change. */
#define MHA_FLOAT32 0

#endif
