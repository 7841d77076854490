/* SPDX-License-Identifier: Apache-2.0 */
#include "io/io_convert.h"

#include <string.h>

int64_t mha__io_convert_bytes(enum mha__io_type type)
{
    switch (type) {
    case MHA__IO_F16:
    case MHA__IO_BF16:
        return 2;
    case MHA__IO_F32:
        return 4;
    case MHA__IO_F64:
        return 8;
    case MHA__IO_NONE:
        break;
    }
    return 0;
}

static uint32_t load16(const unsigned char *p, bool big)
{
    return big ? (uint32_t)p[0] << 8 | p[1] : (uint32_t)p[1] << 8 | p[0];
}

static uint32_t load32(const unsigned char *p, bool big)
{
    return big ? load16(p, big) << 16 | load16(p + 2, big)
               : load16(p + 2, big) << 16 | load16(p, big);
}

static uint64_t load64(const unsigned char *p, bool big)
{
    uint64_t first = load32(p, big);
    uint64_t second = load32(p + 4, big);
    return big ? first << 32 | second : second << 32 | first;
}

/* binary16: 1 sign, 5 exponent (bias 15), 10 fraction. binary32: 1, 8 (bias 127), 23. */
static uint32_t widen_f16(uint32_t half)
{
    uint32_t sign = (half & 0x8000u) << 16;
    uint32_t exponent = half >> 10 & 0x1fu;
    uint32_t fraction = half & 0x3ffu;
    if (exponent == 0x1f) {
        return sign | 0x7f800000u | fraction << 13;
    }
    if (exponent > 0) {
        return sign | (exponent + 127 - 15) << 23 | fraction << 13;
    }
    if (fraction == 0) {
        return sign;
    }
    /* fraction * 2^-24 = 1.xxx * 2^(-14 - shifts): every binary16 subnormal is normal in binary32.
     */
    exponent = 127 - 14;
    while (!(fraction & 0x400u)) {
        fraction <<= 1;
        exponent--;
    }
    return sign | exponent << 23 | (fraction & 0x3ffu) << 13;
}

/* binary64: 1 sign, 11 exponent (bias 1023), 52 fraction. 0x7f800000 for finite: out of range. */
static uint32_t narrow_f64(uint64_t bits)
{
    uint32_t sign = (uint32_t)(bits >> 32) & 0x80000000u;
    int32_t exponent = (int32_t)(bits >> 52 & 0x7ff);
    uint64_t fraction = bits & (((uint64_t)1 << 52) - 1);
    if (exponent == 0x7ff) {
        uint32_t quiet = fraction ? 0x00400000u | (uint32_t)(fraction >> 29) : 0;
        return sign | 0x7f800000u | quiet;
    }
    int32_t power = exponent - 1023;
    if (power > 127) {
        return sign | 0x7f800000u;
    }
    /* fraction bits to drop: 52 - 23, and one more for each power below the smallest normal 2^-126
     */
    int32_t shift = power >= -126 ? 29 : 29 - 126 - power;
    if (shift > 53) {
        return sign; /* less than half of the smallest subnormal, 2^-149 */
    }
    uint64_t whole = fraction | (uint64_t)1 << 52;
    uint64_t kept = whole >> shift;
    uint64_t rest = whole & (((uint64_t)1 << shift) - 1);
    uint64_t half = (uint64_t)1 << (shift - 1);
    kept += rest > half || (rest == half && (kept & 1));
    /* A carry out of the fraction flows into the exponent, which is what it should do. */
    uint32_t magnitude = (uint32_t)kept;
    if (power >= -126) {
        magnitude += (uint32_t)(power + 126) << 23;
    }
    return sign | magnitude;
}

static void store(float *to, uint32_t bits)
{
    memcpy(to, &bits, sizeof bits); /* no float in between: a signalling NaN stays one */
}

int64_t mha__io_convert_floats(
    enum mha__io_type type, bool big_endian, const unsigned char *bytes, int64_t count, float *out)
{
    int64_t infinite = -1;
    switch (type) {
    case MHA__IO_F32:
        for (int64_t i = 0; i < count; i++) {
            store(out + i, load32(bytes + 4 * i, big_endian));
        }
        break;
    case MHA__IO_F16:
        for (int64_t i = 0; i < count; i++) {
            store(out + i, widen_f16(load16(bytes + 2 * i, big_endian)));
        }
        break;
    case MHA__IO_BF16: /* the upper half of binary32 */
        for (int64_t i = 0; i < count; i++) {
            store(out + i, load16(bytes + 2 * i, big_endian) << 16);
        }
        break;
    case MHA__IO_F64:
        for (int64_t i = 0; i < count; i++) {
            uint64_t bits = load64(bytes + 8 * i, big_endian);
            uint32_t narrow = narrow_f64(bits);
            bool was_finite = (bits >> 52 & 0x7ff) != 0x7ff;
            if (infinite < 0 && was_finite && (narrow & 0x7fffffffu) == 0x7f800000u) {
                infinite = i;
            }
            store(out + i, narrow);
        }
        break;
    case MHA__IO_NONE:
        break;
    }
    return infinite;
}
