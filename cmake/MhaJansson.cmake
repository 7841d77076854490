# SPDX-License-Identifier: Apache-2.0
# mha::jansson, the JSON library of libmha_io. By pkg-config, since not every distribution ships its
# CMake package. Used by the build and by the installed package for the static libmha_io.
if(NOT TARGET mha::jansson)
    find_package(PkgConfig QUIET)
    if(PKG_CONFIG_FOUND)
        pkg_check_modules(MHA_JANSSON QUIET jansson)
    endif()
    if(MHA_JANSSON_FOUND)
        add_library(mha::jansson INTERFACE IMPORTED GLOBAL)
        set_target_properties(mha::jansson PROPERTIES
            INTERFACE_INCLUDE_DIRECTORIES "${MHA_JANSSON_INCLUDE_DIRS}"
            INTERFACE_LINK_LIBRARIES "${MHA_JANSSON_LINK_LIBRARIES}")
    else()
        set(MHA_JANSSON_MISSING "libmha_io needs jansson and pkg-config found none (Debian, Ubuntu: \
pkg-config libjansson-dev); MHA_BUILD_IO=OFF builds without it.")
    endif()
endif()
