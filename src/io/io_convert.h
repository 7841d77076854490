/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA__IO_CONVERT_H
#define MHA__IO_CONVERT_H

/*
 * Stored numbers to float32. All by integers, byte by byte: any alignment, any byte order of the
 * host, and no part in its rounding mode or flush-to-zero setting.
 */
#include <stdbool.h>
#include <stdint.h>

/* Stored types that can become float32. */
enum mha__io_type { MHA__IO_NONE, MHA__IO_F32, MHA__IO_F16, MHA__IO_BF16, MHA__IO_F64 };

/* Bytes of one number; 0 for MHA__IO_NONE. */
int64_t mha__io_convert_bytes(enum mha__io_type type);

/*
 * count numbers from bytes to out. F32, F16, BF16: exact, NaNs keep their payload. F64: to nearest,
 * ties to even. bytes may be out itself where type is F32. Returns the index of the first finite
 * F64 whose float32 would be infinite, or -1: there is none.
 */
int64_t mha__io_convert_floats(
    enum mha__io_type type, bool big_endian, const unsigned char *bytes, int64_t count, float *out);

#endif
