# SPDX-License-Identifier: Apache-2.0
# What the build must know of mha::blas before it compiles a line:
#   cblas_sgemm links, and takes 32-bit integers            else configuring stops here
#   MHA_BLAS_HAS_OPENBLAS     the openblas_* functions are there
#   MHA_BLAS_GEMM_THRESHOLD   OpenBLAS's GEMM_MULTITHREAD_THRESHOLD: products up to 65536 times it stay
#                             on one thread
include(CheckCSourceCompiles)
include(CheckCSourceRuns)

if(NOT TARGET mha::blas)
    message(FATAL_ERROR "${MHA_BLAS_MISSING}")
endif()

# Answers are cached per BLAS, so that another one is asked anew.
string(MD5 mha_blas_key "${MHA_BLAS_PREFIX}|${MHA_BLAS_LIBRARIES}|${CMAKE_C_COMPILER}")
string(SUBSTRING ${mha_blas_key} 0 8 mha_blas_key)

function(mha__check_blas)
    set(CMAKE_REQUIRED_LIBRARIES mha::blas m)
    set(CMAKE_REQUIRED_QUIET ON)
    set(declare "void ${MHA_BLAS_PREFIX}cblas_sgemm(int, int, int, INT, INT, INT, float, const float *, INT,
        const float *, INT, float, float *, INT);")

    check_c_source_compiles("#define INT int
        ${declare}
        int main(void) { float x = 1.0f;
            ${MHA_BLAS_PREFIX}cblas_sgemm(101, 111, 111, 1, 1, 1, 1.0f, &x, 1, &x, 1, 0.0f, &x, 1);
            return 0; }" MHA_BLAS_LINKS_${mha_blas_key})
    if(NOT MHA_BLAS_LINKS_${mha_blas_key})
        message(FATAL_ERROR "The BLAS that was found (${MHA_BLAS_LIBRARIES}, by ${MHA_BLAS_FOUND_BY}) has "
            "no ${MHA_BLAS_PREFIX}cblas_sgemm, or does not link. libmha needs the C interface of BLAS: "
            "install OpenBLAS (Debian, Ubuntu: libopenblas-dev), or name another BLAS with "
            "MHA_BLAS_TARGET (and MHA_BLAS_PREFIX if its names have a prefix). "
            "CMakeFiles/CMakeError.log has the linker's words.")
    endif()

    # k = 2^32 + 1 and a leading dimension of 1: 64-bit integers refuse it and leave c alone, 32-bit ones
    # read the low half, k = 1, and compute 2 * 3. (Little-endian argument slots are 8 bytes wide.)
    if(NOT CMAKE_CROSSCOMPILING OR CMAKE_CROSSCOMPILING_EMULATOR)
        check_c_source_runs("#define INT long long
            ${declare}
            int main(void) { float a = 2.0f, b = 3.0f, c = 0.0f;
                ${MHA_BLAS_PREFIX}cblas_sgemm(101, 111, 111, 1, 1, (1LL << 32) + 1, 1.0f, &a, 1, &b, 1,
                    0.0f, &c, 1);
                return c == 6.0f ? 0 : 1; }" MHA_BLAS_IS_LP64_${mha_blas_key})
        if(NOT MHA_BLAS_IS_LP64_${mha_blas_key})
            message(FATAL_ERROR "The BLAS that was found (${MHA_BLAS_LIBRARIES}, by "
                "${MHA_BLAS_FOUND_BY}) takes 64-bit integers (ILP64), or cannot be run. libmha needs one "
                "with 32-bit integers (LP64): libopenblas-dev rather than libopenblas64-dev.")
        endif()
    endif()

    check_c_source_compiles("int ${MHA_BLAS_PREFIX}openblas_get_parallel(void);
        int main(void) { return ${MHA_BLAS_PREFIX}openblas_get_parallel(); }"
        MHA_BLAS_OPENBLAS_${mha_blas_key})
    if(MHA_BLAS_OPENBLAS_${mha_blas_key})
        set(MHA_BLAS_HAS_OPENBLAS 1 PARENT_SCOPE)
    else()
        set(MHA_BLAS_HAS_OPENBLAS 0 PARENT_SCOPE)
    endif()

    set(threshold 4)
    find_file(config_header openblas_config.h HINTS ${MHA_BLAS_INCLUDE_DIRS} NO_CACHE)
    if(config_header)
        file(STRINGS "${config_header}" lines REGEX "GEMM_MULTITHREAD_THRESHOLD|USE64BITINT")
        if(lines MATCHES "#define OPENBLAS_USE64BITINT")
            message(FATAL_ERROR "${config_header} belongs to an OpenBLAS with 64-bit integers (ILP64). "
                "libmha needs one with 32-bit integers (LP64).")
        endif()
        if(lines MATCHES "GEMM_MULTITHREAD_THRESHOLD ([0-9]+)")
            set(threshold ${CMAKE_MATCH_1})
        endif()
    endif()
    set(MHA_BLAS_GEMM_THRESHOLD ${threshold} PARENT_SCOPE)
endfunction()

mha__check_blas()
message(STATUS "libmha ${PROJECT_VERSION}: BLAS ${MHA_BLAS_LIBRARIES} (${MHA_BLAS_FOUND_BY})")
