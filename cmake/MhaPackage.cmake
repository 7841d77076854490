# SPDX-License-Identifier: Apache-2.0
# CPack: libmha<SOVERSION>, libmha-io<SOVERSION>, libmha-dev and mha-tools as Debian packages, and TGZ.
# For packages that follow the distribution's layout configure with -DCMAKE_INSTALL_PREFIX=/usr: only then
# does GNUInstallDirs choose the multiarch library directory.
if(NOT PROJECT_IS_TOP_LEVEL)
    return()
endif()

set(mha_soversion ${PROJECT_VERSION_MAJOR})
if(PROJECT_VERSION_MAJOR EQUAL 0)
    set(mha_soversion ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
endif()

set(CPACK_GENERATOR "DEB;TGZ")
set(CPACK_PACKAGE_NAME mha)
set(CPACK_PACKAGE_VENDOR "libmha")
set(CPACK_PACKAGE_CONTACT "The libmha authors <libmha@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGING_INSTALL_PREFIX "${CMAKE_INSTALL_PREFIX}")

set(CPACK_COMPONENTS_ALL "")
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_ARCHIVE_COMPONENT_INSTALL OFF)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${PROJECT_BINARY_DIR}" "${PROJECT_BINARY_DIR}/src/io")

# One Debian package for a component.
macro(mha_debian_package component package section summary)
    string(TOUPPER ${component} upper)
    list(APPEND CPACK_COMPONENTS_ALL ${component})
    set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${package})
    set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${section})
    set(CPACK_COMPONENT_${upper}_DESCRIPTION "${summary}")
    install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DATAROOTDIR}/doc/${package}" RENAME copyright
        COMPONENT ${component} EXCLUDE_FROM_ALL)
endmacro()

set(needed "")
if(MHA_BUILD_SHARED)
    mha_debian_package(runtime libmha${mha_soversion} libs
        "multi-head attention on CPUs, shared library
 Attention layers, forward, over OpenBLAS, behind a stable C interface.")
    set(needed "libmha${mha_soversion} (= ${PROJECT_VERSION})")
    if(TARGET mha_io_shared)
        mha_debian_package(runtime_io libmha-io${mha_soversion} libs
            "multi-head attention on CPUs, file formats
 Reads weights from safetensors files and arrays from npy files for libmha.")
        set(CPACK_DEBIAN_RUNTIME_IO_PACKAGE_DEPENDS "${needed}")
        string(APPEND needed ", libmha-io${mha_soversion} (= ${PROJECT_VERSION})")
    endif()
endif()
mha_debian_package(devel libmha-dev libdevel
    "multi-head attention on CPUs, development files
 Headers, static libraries, CMake package and pkg-config files of libmha.")
set(CPACK_DEBIAN_DEVEL_PACKAGE_DEPENDS "${needed}")
set(CPACK_DEBIAN_DEVEL_PACKAGE_SUGGESTS "libopenblas-dev, libjansson-dev")
set(CPACK_DEBIAN_DEVEL_PACKAGE_SHLIBDEPS OFF)
if(TARGET mha_tool)
    mha_debian_package(tools mha-tools science
        "multi-head attention on CPUs, command line
 The mha command: what a layer attends to, self-test, benchmark.")
    set(CPACK_DEBIAN_TOOLS_PACKAGE_DEPENDS "${needed}")
endif()
include(CPack)
