/* SPDX-License-Identifier: Apache-2.0 */
#include "io/io_convert.h"
#include "support/draw.h"
#include "support/expect.h"

#include <math.h>
#include <string.h>

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float from16(enum mha__io_type type, unsigned pattern)
{
    const unsigned char little[2] = {(unsigned char)(pattern & 0xff),
                                     (unsigned char)(pattern >> 8)};
    const unsigned char big[2] = {little[1], little[0]};
    float a = -1.0f;
    float b = -1.0f;
    assert_int_equal(mha__io_convert_floats(type, false, little, 1, &a), -1);
    assert_int_equal(mha__io_convert_floats(type, true, big, 1, &b), -1);
    assert_int_equal(bits_of(a), bits_of(b));
    return a;
}

/* By the definition: (-1)^sign 2^(exponent - bias) (1 + fraction / 2^digits), in double. */
static double defined_value(unsigned pattern, int exponent_bits, int fraction_bits)
{
    int bias = (1 << (exponent_bits - 1)) - 1;
    int exponent = (int)(pattern >> fraction_bits) & ((1 << exponent_bits) - 1);
    double fraction = (double)(pattern & ((1u << fraction_bits) - 1));
    double sign = pattern & 0x8000 ? -1.0 : 1.0;
    if (exponent == (1 << exponent_bits) - 1) {
        return fraction > 0 ? (double)NAN : sign * (double)INFINITY;
    }
    if (exponent == 0) {
        return sign * ldexp(fraction, 1 - bias - fraction_bits);
    }
    return sign * ldexp(ldexp(1.0, fraction_bits) + fraction, exponent - bias - fraction_bits);
}

static void check_all_patterns(enum mha__io_type type, int exponent_bits, int fraction_bits)
{
    for (unsigned pattern = 0; pattern < 65536; pattern++) {
        double expected = defined_value(pattern, exponent_bits, fraction_bits);
        float got = from16(type, pattern);
        if (isnan(expected)) {
            assert_true(isnan(got));
        } else {
            assert_int_equal(bits_of(got), bits_of((float)expected));
            assert_true((double)got == expected);
        }
    }
}

/* ---- F07 ---- */

static void F07_every_f16_pattern_is_exact(void **state)
{
    (void)state;
    check_all_patterns(MHA__IO_F16, 5, 10);
}

static void F07_every_bf16_pattern_is_exact(void **state)
{
    (void)state;
    check_all_patterns(MHA__IO_BF16, 8, 7);
}

static void F07_named_f16_patterns_have_the_known_values(void **state)
{
    (void)state;
    assert_true(from16(MHA__IO_F16, 0x0001) == 5.9604645e-8f);
    assert_true(from16(MHA__IO_F16, 0x03ff) == 6.0975552e-5f);
    assert_true(from16(MHA__IO_F16, 0x0400) == 6.1035156e-5f);
    assert_true(from16(MHA__IO_F16, 0x7bff) == 65504.0f);
    assert_true(from16(MHA__IO_F16, 0x7c00) == INFINITY);
    assert_true(isnan(from16(MHA__IO_F16, 0x7c01)));
    assert_int_equal(bits_of(from16(MHA__IO_F16, 0x8000)), 0x80000000u);
}

static void F07_named_bf16_patterns_have_the_known_values(void **state)
{
    (void)state;
    assert_true(from16(MHA__IO_BF16, 0x0001) == 9.1835496e-41f);
    assert_true(from16(MHA__IO_BF16, 0x3f80) == 1.0f);
    assert_true(from16(MHA__IO_BF16, 0x7f7f) == 3.3895314e38f);
    assert_true(isnan(from16(MHA__IO_BF16, 0x7f81)));
}

static void f16_nan_keeps_its_payload_and_sign(void **state)
{
    (void)state;
    assert_int_equal(bits_of(from16(MHA__IO_F16, 0xfe01)), 0xffc02000u);
    assert_int_equal(bits_of(from16(MHA__IO_F16, 0x7c01)), 0x7f802000u);
}

/* ---- f8 ---- */

static float from_double(double x, int64_t *infinite)
{
    unsigned char little[8];
    unsigned char big[8];
    uint64_t bits;
    float a = -1.0f;
    float b = -1.0f;
    memcpy(&bits, &x, sizeof bits);
    for (int i = 0; i < 8; i++) {
        little[i] = (unsigned char)(bits >> 8 * i & 0xff);
        big[7 - i] = little[i];
    }
    *infinite = mha__io_convert_floats(MHA__IO_F64, false, little, 1, &a);
    assert_int_equal(mha__io_convert_floats(MHA__IO_F64, true, big, 1, &b), *infinite);
    assert_int_equal(bits_of(a), bits_of(b));
    return a;
}

static void check_double(double x)
{
    int64_t infinite;
    float got = from_double(x, &infinite);
    float expected = (float)x; /* the compiler's own rounding, to nearest */
    if (isnan(x)) {
        assert_true(isnan(got));
    } else {
        assert_int_equal(bits_of(got), bits_of(expected));
    }
    assert_int_equal(infinite, isfinite(x) && isinf(expected) ? 0 : -1);
}

static void f8_rounds_as_the_compiler_does(void **state)
{
    (void)state;
    draw d = {11};
    for (int i = 0; i < 200000; i++) {
        /* any bits; then exponents around float32's whole range, subnormals included */
        uint64_t bits = draw_bits(&d);
        double any;
        memcpy(&any, &bits, sizeof any);
        check_double(any);
        double mantissa = 1.0 + ldexp((double)(draw_bits(&d) >> 12), -52);
        check_double(ldexp(mantissa, (int)draw_int(&d, -153, 129)));
    }
}

static void f8_ties_go_to_even_at_every_exponent(void **state)
{
    (void)state;
    for (int exponent = -151; exponent <= 128; exponent++) {
        for (int odd = 0; odd < 4; odd++) {
            double tie = ldexp(1.0 + ldexp(2.0 * odd + 1.0, -24), exponent);
            check_double(tie);
            check_double(-tie);
            check_double(nextafter(tie, 0.0));
            check_double(nextafter(tie, (double)INFINITY));
        }
        check_double(ldexp(1.0, exponent));
        check_double(ldexp(1.5, exponent));
    }
    check_double(0.0);
    check_double(-0.0);
    check_double((double)INFINITY);
    check_double((double)NAN);
    check_double(3.4028235677973366e38); /* the tie between FLT_MAX and 2^128 */
    check_double(nextafter(3.4028235677973366e38, 0.0));
}

static void f8_beyond_float32_is_reported_by_its_index(void **state)
{
    (void)state;
    const uint64_t bits[3] = {0, 0x7e37e43c8800759c, 0xfe37e43c8800759c}; /* 0, 1e300, -1e300 */
    unsigned char bytes[24];
    float out[3];
    for (int i = 0; i < 24; i++) {
        bytes[i] = (unsigned char)(bits[i / 8] >> 8 * (i % 8) & 0xff);
    }
    assert_int_equal(mha__io_convert_floats(MHA__IO_F64, false, bytes, 3, out), 1);
    assert_true(out[1] == INFINITY && out[2] == -INFINITY);
}

/* ---- f4 ---- */

static void f4_keeps_every_bit_in_place_and_unaligned(void **state)
{
    (void)state;
    const uint32_t patterns[] = {0x7f800001, 0xffc12345, 0x80000000, 0x00000001, 0x3f800000};
    enum { COUNT = sizeof patterns / sizeof patterns[0] };
    unsigned char bytes[4 * COUNT + 1];
    float out[COUNT];
    for (unsigned i = 0; i < 4 * COUNT; i++) {
        bytes[i + 1] = (unsigned char)(patterns[i / 4] >> 8 * (i % 4) & 0xff);
    }
    mha__io_convert_floats(MHA__IO_F32, false, bytes + 1, COUNT, out);
    assert_memory_equal(out, patterns, sizeof patterns);
    memcpy(out, bytes + 1, sizeof out);
    mha__io_convert_floats(MHA__IO_F32, false, (const unsigned char *)out, COUNT, out);
    assert_memory_equal(out, patterns, sizeof patterns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(F07_every_f16_pattern_is_exact),
        cmocka_unit_test(F07_every_bf16_pattern_is_exact),
        cmocka_unit_test(F07_named_f16_patterns_have_the_known_values),
        cmocka_unit_test(F07_named_bf16_patterns_have_the_known_values),
        cmocka_unit_test(f16_nan_keeps_its_payload_and_sign),
        cmocka_unit_test(f8_rounds_as_the_compiler_does),
        cmocka_unit_test(f8_ties_go_to_even_at_every_exponent),
        cmocka_unit_test(f8_beyond_float32_is_reported_by_its_index),
        cmocka_unit_test(f4_keeps_every_bit_in_place_and_unaligned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
