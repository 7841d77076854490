# SPDX-License-Identifier: Apache-2.0
# The files of libmha, folder by folder from the bottom up, and what a few of them need to be compiled.
# (src/io has a list of its own: it is a component beside the core.)
set(MHA_CORE_SOURCES
    src/platform/memory.c
    src/platform/fpenv.c
    src/platform/cpu.c
    src/platform/blas_check.c
    src/platform/profile.c
    src/platform/pool.c
    src/platform/parallel.c
    src/kernels/kernels.c
    src/kernels/kernels_ref.c
    src/kernels/product.c
    src/attention/planner.c
    src/attention/visibility.c
    src/attention/alibi.c
    src/attention/pack.c
    src/attention/attend.c
    src/attention/attend_tile.c
    src/attention/attend_transposed.c
    src/attention/attend_direct.c
    src/attention/attend_scores.c
    src/attention/attend_rows.c
    src/attention/attend_weights.c
    src/attention/dropout.c
    src/attention/rotary.c
    src/flow/project.c
    src/flow/flow_forward.c
    src/reference/reference_mask.c
    src/reference/reference_tokens.c
    src/reference/reference_scores.c
    src/reference/reference_weights.c
    src/reference/reference_outputs.c
    src/reference/reference_forward.c
    src/api/error.c
    src/api/version.c
    src/api/constant.c
    src/api/runtime.c
    src/api/selftest.c
    src/api/config.c
    src/api/config_scores.c
    src/api/config_extras.c
    src/api/layer.c
    src/api/layer_panels.c
    src/api/layer_parameter.c
    src/api/layer_initialize.c
    src/api/layer_prune.c
    src/api/context.c
    src/api/context_profile.c
    src/api/mask.c
    src/api/mask_parts.c
    src/api/mask_boolean.c
    src/api/mask_ranges.c
    src/api/mask_segments.c
    src/api/mask_alibi.c
    src/api/mask_fits.c
    src/api/mask_describe.c
    src/api/overlap.c
    src/api/call.c
    src/api/call_tensors.c
    src/api/call_options.c
    src/api/describe.c
    src/api/run.c
    src/api/forward.c
    src/api/reference.c
    src/api/attention.c
    src/api/merge.c
    src/api/preset.c
    src/api/plan.c)

# Compiled twice: the shared library finds the openblas_* functions as weak symbols at run time, the
# static one only if they were there when it was configured.
set(MHA_BLAS_SOURCE src/platform/blas.c)

# Kernel files: the only ones with instruction-set flags. FMA contraction is on in them (and off
# everywhere else, so that the same source gives the same bits with every compiler).
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
    list(APPEND MHA_CORE_SOURCES src/kernels/kernels_avx2.c src/kernels/kernels_avx512.c)
    set_source_files_properties(src/kernels/kernels_avx2.c PROPERTIES
        COMPILE_OPTIONS "-mavx2;-mfma;-ffp-contract=fast")
    set_source_files_properties(src/kernels/kernels_avx512.c PROPERTIES
        COMPILE_OPTIONS "-mavx512f;-mavx512dq;-mavx512bw;-mavx512vl;-mavx2;-mfma;-ffp-contract=fast")
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64|ARM64)$")
    list(APPEND MHA_CORE_SOURCES src/kernels/kernels_neon.c)
    set_source_files_properties(src/kernels/kernels_neon.c PROPERTIES
        COMPILE_OPTIONS "-ffp-contract=fast")
endif()

# Clang moves floating-point operations out of the stretches that guard the host's flags, unless it is told
# that flags are seen. GCC does not. (Only the doors compute anything between such guards.)
if(CMAKE_C_COMPILER_ID STREQUAL "Clang" AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
    set(mha_doors ${MHA_CORE_SOURCES})
    list(FILTER mha_doors INCLUDE REGEX "^src/api/")
    set_property(SOURCE ${mha_doors} APPEND PROPERTY COMPILE_OPTIONS -ffp-exception-behavior=strict)
endif()
