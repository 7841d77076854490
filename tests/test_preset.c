/* SPDX-License-Identifier: Apache-2.0 */
#include "support/expect.h"

#include <api/objects.h>

static const struct {
    int32_t id;
    const char *name;
    int32_t projections, alignment;
} KNOWN[] = {
    {MHA_PRESET_TORCH_MHA, "torch_mha", 1, MHA_ALIGNMENT_TOP_LEFT},
    {MHA_PRESET_TORCH_SDPA, "torch_sdpa", 0, MHA_ALIGNMENT_TOP_LEFT},
    {MHA_PRESET_KERAS, "keras", 1, MHA_ALIGNMENT_TOP_LEFT},
    {MHA_PRESET_ONNX, "onnx", 0, MHA_ALIGNMENT_TOP_LEFT},
    {MHA_PRESET_FLASH_ATTENTION, "flash_attention", 0, MHA_ALIGNMENT_BOTTOM_RIGHT},
    {MHA_PRESET_JAX, "jax", 0, MHA_ALIGNMENT_TOP_LEFT},
};
enum { COUNT = sizeof KNOWN / sizeof *KNOWN };

typedef struct fixture {
    mha_config *cfg;
    mha_mask *mask;
} fixture;

static void fixture_begin(fixture *f)
{
    assert_int_equal(mha_config_create(8, 2, &f->cfg, NULL), MHA_OK);
    assert_int_equal(mha_mask_create(&f->mask, NULL), MHA_OK);
}

static void fixture_end(fixture *f)
{
    mha_config_destroy(f->cfg);
    mha_mask_destroy(f->mask);
}

static void preset_names_and_ids_belong_together(void **state)
{
    (void)state;
    for (int n = 0; n < COUNT; ++n) {
        assert_int_equal(mha_preset_by_name(KNOWN[n].name), KNOWN[n].id);
    }
    assert_int_equal(mha_preset_by_name("torch"), MHA_ERROR_UNKNOWN_ID);
    assert_int_equal(mha_preset_by_name(""), MHA_ERROR_UNKNOWN_ID);
    assert_int_equal(mha_preset_by_name("JAX"), MHA_ERROR_UNKNOWN_ID);
    assert_int_equal(mha_preset_by_name(NULL), MHA_ERROR_NULL_ARGUMENT);
}

/* From a config with everything the other way round. */
static void preset_sets_projections_alignment_and_causal(void **state)
{
    (void)state;
    for (int n = 0; n < COUNT; ++n) {
        for (int32_t causal = 0; causal < 2; ++causal) {
            fixture f;
            fixture_begin(&f);
            for (int32_t side = 0; side < 4; ++side) {
                SUCCEEDS(mha_config_set_projection(f.cfg, side, !KNOWN[n].projections, err));
                SUCCEEDS(mha_config_set_bias(f.cfg, side, 0, err));
            }
            SUCCEEDS(mha_mask_set_causal(f.mask, !causal, err));
            SUCCEEDS(mha_preset_apply(KNOWN[n].id, causal, f.cfg, f.mask, err));
            for (int32_t side = 0; side < 4; ++side) {
                assert_int_equal(mha_config_projection(f.cfg, side), KNOWN[n].projections);
                assert_int_equal(mha_config_bias(f.cfg, side), KNOWN[n].projections);
            }
            assert_int_equal(f.mask->rules.alignment, KNOWN[n].alignment);
            assert_int_equal(f.mask->rules.causal, causal);
            fixture_end(&f);
        }
    }
}

/* What a preset does not speak of stays. */
static void preset_leaves_the_other_options_alone(void **state)
{
    (void)state;
    fixture f;
    fixture_begin(&f);
    SUCCEEDS(mha_config_set_scale(f.cfg, 3.0f, err));
    SUCCEEDS(mha_config_set_kv_heads(f.cfg, 1, err));
    SUCCEEDS(mha_config_set_sinks(f.cfg, 1, err));
    SUCCEEDS(mha_mask_set_window(f.mask, 5, 6, err));
    for (int n = 0; n < COUNT; ++n) {
        SUCCEEDS(mha_preset_apply(KNOWN[n].id, 1, f.cfg, f.mask, err));
    }
    assert_true(mha_config_scale(f.cfg) == 3.0f);
    assert_int_equal(mha_config_kv_heads(f.cfg), 1);
    assert_int_equal(mha_config_sinks(f.cfg), 1);
    assert_true(f.mask->rules.left == 5 && f.mask->rules.right == 6);
    fixture_end(&f);
}

static void preset_takes_a_config_or_a_mask_alone(void **state)
{
    (void)state;
    fixture f;
    fixture_begin(&f);
    SUCCEEDS(mha_preset_apply(MHA_PRESET_JAX, 1, NULL, f.mask, err));
    assert_true(f.mask->rules.causal);
    assert_int_equal(mha_config_projection(f.cfg, 0), 1);
    SUCCEEDS(mha_preset_apply(MHA_PRESET_FLASH_ATTENTION, 0, f.cfg, NULL, err));
    assert_int_equal(mha_config_projection(f.cfg, 0), 0);
    assert_true(f.mask->rules.causal);
    SUCCEEDS(mha_preset_apply(MHA_PRESET_KERAS, 0, NULL, NULL, err));
    fixture_end(&f);
}

static void preset_unknown_is_refused_and_changes_nothing(void **state)
{
    (void)state;
    fixture f;
    fixture_begin(&f);
    SUCCEEDS(mha_mask_set_alignment(f.mask, MHA_ALIGNMENT_BOTTOM_RIGHT, err));
    REFUSED(MHA_ERROR_UNKNOWN_ID, mha_preset_apply(6, 1, f.cfg, f.mask, err), "6", "5");
    REFUSED(MHA_ERROR_UNKNOWN_ID, mha_preset_apply(-1, 1, f.cfg, f.mask, err), "-1");
    REFUSED(MHA_ERROR_VALUE, mha_preset_apply(MHA_PRESET_JAX, 2, f.cfg, f.mask, err), "2");
    REFUSED(MHA_ERROR_BAD_HANDLE,
            mha_preset_apply(MHA_PRESET_JAX, 1, f.cfg, (mha_mask *)(void *)f.cfg, err), "mask");
    assert_int_equal(mha_config_projection(f.cfg, 0), 1);
    assert_int_equal(f.mask->rules.alignment, MHA_ALIGNMENT_BOTTOM_RIGHT);
    assert_false(f.mask->rules.causal);
    fixture_end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(preset_names_and_ids_belong_together),
        cmocka_unit_test(preset_sets_projections_alignment_and_causal),
        cmocka_unit_test(preset_leaves_the_other_options_alone),
        cmocka_unit_test(preset_takes_a_config_or_a_mask_alone),
        cmocka_unit_test(preset_unknown_is_refused_and_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
