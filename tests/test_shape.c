/* SPDX-License-Identifier: Apache-2.0 */
#include "mha_shape.h"
#include "support/expect.h"

#include <string.h>

static struct mha__shape parsed(const char *text)
{
    struct mha__shape shape;
    char why[160] = "";
    if (mha__shape_parse(text, &shape, why, sizeof why) != 0) {
        fail_msg("%s: %s", text, why);
    }
    return shape;
}

static void shape_full_string_sets_every_part(void **state)
{
    (void)state;
    const struct mha__shape s = parsed("b3_t1024_s77_e500_h8_g2_d64_dv48_causalbr_win255_0");
    assert_int_equal(s.B, 3);
    assert_int_equal(s.T, 1024);
    assert_int_equal(s.S, 77);
    assert_int_equal(s.E, 500);
    assert_int_equal(s.H, 8);
    assert_int_equal(s.G, 2);
    assert_int_equal(s.D, 64);
    assert_int_equal(s.Dv, 48);
    assert_int_equal(s.causal, MHA_CAUSAL_BOTTOM_RIGHT);
    assert_int_equal(s.window_left, 255);
    assert_int_equal(s.window_right, 0);
}

static void shape_short_string_takes_the_defaults(void **state)
{
    (void)state;
    const struct mha__shape s = parsed("b1_t5_s6_h4_d16");
    assert_int_equal(s.G, 4);
    assert_int_equal(s.Dv, 16);
    assert_int_equal(s.E, 64);
    assert_int_equal(s.causal, MHA_CAUSAL_NONE);
    assert_int_equal(s.window_left, -1);
    assert_int_equal(s.window_right, -1);
}

static void shape_parts_may_stand_in_any_order(void **state)
{
    (void)state;
    const struct mha__shape s = parsed("causal_d8_win-1_3_h2_s4_t4_b0");
    assert_int_equal(s.B, 0);
    assert_int_equal(s.causal, MHA_CAUSAL_TOP_LEFT);
    assert_int_equal(s.window_left, -1);
    assert_int_equal(s.window_right, 3);
    assert_int_equal(parsed("b1_t2_s4_h1_d1_causaltl").causal, MHA_CAUSAL_TOP_LEFT);
}

static void shape_bad_strings_are_refused_and_touch_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *why; /* part of the sentence */
    } cases[] = {
        {"", "unknown part"},
        {"b1_t2_s2_h1", "d is missing"},
        {"t2_s2_h1_d1", "b is missing"},
        {"b1_t2_s2_h1_d1_", "unknown part"},
        {"b1__t2_s2_h1_d1", "unknown part"},
        {"b1_t2_s2_h1_d1_q7", "unknown part q7"},
        {"b1_t2_s2_h1_d1_d1", "d twice"},
        {"b1_t2_s2_h0_d1", "out of range"},
        {"b1_t_s2_h1_d1", "out of range"},
        {"b1_t-2_s2_h1_d1", "out of range"},
        {"b1_t2_s2_h1_d2147483648", "out of range"},
        {"b1_t2_s2_h1_d99999999999999999999", "out of range"},
        {"b1_t2_s2_h65536_d65536", "h * d"},
        {"b1_t2_s2_h6_g4_d1", "g does not divide h"},
        {"b1_t2_s3_h1_d1_causal", "t = s"},
        {"b1_t2_s2_h1_d1_causal_causal", "causal twice"},
        {"b1_t2_s2_h1_d1_causalxy", "expected"},
        {"b1_t2_s2_h1_d1_win3", "winL_R"},
        {"b1_t2_s2_h1_d1_win3_", "winL_R"},
        {"b1_t2_s2_h1_d1_win-2_3", "winL_R"},
        {"b1_t2_s2_h1_d1_win1_1_win1_1", "win twice"},
        {"b1x_t2_s2_h1_d1", "'_' expected"},
        {"B1_t2_s2_h1_d1", "unknown part"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct mha__shape shape;
        struct mha__shape before;
        char why[160] = "";
        memset(&shape, 0x5a, sizeof shape);
        memcpy(&before, &shape, sizeof shape);
        if (mha__shape_parse(cases[i].text, &shape, why, sizeof why) != -1) {
            fail_msg("'%s' was taken", cases[i].text);
        }
        if (strstr(why, cases[i].why) == NULL) {
            fail_msg("'%s': %s", cases[i].text, why);
        }
        assert_memory_equal(&shape, &before, sizeof shape);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shape_full_string_sets_every_part),
        cmocka_unit_test(shape_short_string_takes_the_defaults),
        cmocka_unit_test(shape_parts_may_stand_in_any_order),
        cmocka_unit_test(shape_bad_strings_are_refused_and_touch_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
