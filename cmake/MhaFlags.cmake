# SPDX-License-Identifier: Apache-2.0
# Flags of our own targets. Nothing here is global but MHA_SANITIZE, which is asked for by hand and must
# cover everything that is linked together.
include(CheckLinkerFlag)

if(MHA_SANITIZE)
    add_compile_options(-fsanitize=${MHA_SANITIZE} -fno-omit-frame-pointer
        -fno-sanitize-recover=all)
    add_link_options(-fsanitize=${MHA_SANITIZE})
endif()

# What the C library keeps in files of its own (empty ones in newer glibc).
set(MHA_SYSTEM_LIBRARIES pthread ${CMAKE_DL_LIBS} m)

# C11, hidden symbols, warnings, and no contraction of a*b+c outside the kernels: the same source
# then gives the same bits with every compiler. The kernels' own flags come later and win.
function(mha_compile_options target)
    set_target_properties(${target} PROPERTIES
        C_STANDARD 11 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF
        C_VISIBILITY_PRESET hidden
        POSITION_INDEPENDENT_CODE ON)
    target_compile_options(${target} PRIVATE
        -Wall -Wextra -Wpedantic -Wconversion -Wstrict-prototypes -Wmissing-prototypes
        $<$<BOOL:${MHA_WERROR}>:-Werror>
        -ffp-contract=off)
endfunction()

# A shared library of ours: only the names in its map, nothing undefined, never unmapped (it has threads
# and fork handlers), no search path in it.
function(mha_shared_options target map)
    cmake_path(ABSOLUTE_PATH map BASE_DIRECTORY "${PROJECT_SOURCE_DIR}")
    # 0.x: every minor may break, so it is part of the SONAME.
    if(PROJECT_VERSION_MAJOR EQUAL 0)
        set(soversion ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
    else()
        set(soversion ${PROJECT_VERSION_MAJOR})
    endif()
    set_target_properties(${target} PROPERTIES
        VERSION ${PROJECT_VERSION} SOVERSION ${soversion}
        BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "" INSTALL_RPATH_USE_LINK_PATH OFF
        LINK_DEPENDS "${map}")
    target_link_options(${target} PRIVATE
        -Wl,--as-needed -Wl,-z,nodelete -Wl,--exclude-libs,ALL)
    # Clang leaves its sanitizer runtime to the executable.
    if(NOT (MHA_SANITIZE AND CMAKE_C_COMPILER_ID MATCHES "Clang"))
        target_link_options(${target} PRIVATE -Wl,--no-undefined -Wl,-z,defs)
    endif()
    target_link_options(${target} PRIVATE "-Wl,--version-script=${map}")
    check_linker_flag(C -Wl,--no-undefined-version MHA_LD_HAS_NO_UNDEFINED_VERSION)
    if(MHA_LD_HAS_NO_UNDEFINED_VERSION)
        target_link_options(${target} PRIVATE -Wl,--no-undefined-version)
    endif()
endfunction()

# Sets out to shared or static: mha_SHARED_LIBS, else BUILD_SHARED_LIBS, else what is built.
function(mha_choose_kind out)
    set(kind shared)
    if(DEFINED mha_SHARED_LIBS)
        set(wanted ${mha_SHARED_LIBS})
    elseif(DEFINED BUILD_SHARED_LIBS)
        set(wanted ${BUILD_SHARED_LIBS})
    else()
        set(wanted ${MHA_BUILD_SHARED})
    endif()
    if((NOT wanted AND MHA_BUILD_STATIC) OR NOT MHA_BUILD_SHARED)
        set(kind static)
    endif()
    set(${out} ${kind} PARENT_SCOPE)
endfunction()
