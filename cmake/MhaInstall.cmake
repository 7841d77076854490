# SPDX-License-Identifier: Apache-2.0
# Install rules: libraries, headers, the command, the CMake package (one export set per kind, so that a
# shared consumer never hears of the BLAS) and the pkg-config files. Everything can be moved afterwards,
# unless an install directory was given as an absolute path.
include(CMakePackageConfigHelpers)

set(mha_cmake_dir "${CMAKE_INSTALL_LIBDIR}/cmake/mha")
set(MHA_INSTALL_IO OFF)
if(TARGET mha_io_shared OR TARGET mha_io_static)
    set(MHA_INSTALL_IO ON)
endif()

# ---- libraries ----
function(mha_install_kind kind core_component io_component)
    install(TARGETS mha_${kind} EXPORT mha-${kind}-targets
        ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT devel
        LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
            COMPONENT ${core_component} NAMELINK_COMPONENT devel
        INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
    if(TARGET mha_io_${kind})
        set_target_properties(mha_io_${kind} PROPERTIES EXPORT_NAME io_${kind})
        install(TARGETS mha_io_${kind} EXPORT mha-${kind}-targets
            ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT devel
            LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
                COMPONENT ${io_component} NAMELINK_COMPONENT devel
            INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
    endif()
    install(EXPORT mha-${kind}-targets NAMESPACE mha:: DESTINATION "${mha_cmake_dir}"
        COMPONENT devel)
endfunction()

if(MHA_BUILD_SHARED)
    mha_install_kind(shared runtime runtime_io)
endif()
if(MHA_BUILD_STATIC)
    mha_install_kind(static devel devel)
endif()

# ---- headers ----
set(without_io "")
if(NOT MHA_INSTALL_IO)
    set(without_io PATTERN io.h EXCLUDE)
endif()
install(DIRECTORY include/mha DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT devel
    FILES_MATCHING PATTERN "*.h" ${without_io})

# ---- the command ----
if(TARGET mha_tool)
    install(TARGETS mha_tool RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT tools)
endif()

# ---- the CMake package ----
configure_package_config_file(cmake/mha-config.cmake.in "${PROJECT_BINARY_DIR}/mha-config.cmake"
    INSTALL_DESTINATION "${mha_cmake_dir}"
    NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
# 0.x: a minor version may break. From 1.0: SameMajorVersion.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/mha-config-version.cmake"
    COMPATIBILITY SameMinorVersion)
install(FILES
    "${PROJECT_BINARY_DIR}/mha-config.cmake"
    "${PROJECT_BINARY_DIR}/mha-config-version.cmake"
    DESTINATION "${mha_cmake_dir}" COMPONENT devel)
if(MHA_BUILD_STATIC)
    install(FILES cmake/MhaBlas.cmake cmake/MhaJansson.cmake
        DESTINATION "${mha_cmake_dir}" COMPONENT devel)
endif()

# ---- pkg-config ----
# What stands behind -l for an item of a link line.
function(mha_pc_libs out)
    set(flags "")
    foreach(item IN LISTS ARGN)
        if(TARGET "${item}")
            get_target_property(type "${item}" TYPE)
            if(type STREQUAL "INTERFACE_LIBRARY")
                get_target_property(items "${item}" INTERFACE_LINK_LIBRARIES)
                mha_pc_libs(inner ${items})
                list(APPEND flags ${inner})
                continue()
            endif()
            get_target_property(item "${item}" LOCATION)
        endif()
        if(IS_ABSOLUTE "${item}")
            mha__blas_link_items(item "${item}")
        endif()
        if(IS_ABSOLUTE "${item}")
            cmake_path(GET item PARENT_PATH directory)
            cmake_path(GET item FILENAME file)
            if(file MATCHES "^lib(.+)\\.(so|a|dylib)$")
                list(APPEND flags "-L${directory}" "-l${CMAKE_MATCH_1}")
            else()
                list(APPEND flags "${item}")
            endif()
        elseif(item MATCHES "^-")
            list(APPEND flags "${item}")
        else()
            list(APPEND flags "-l${item}")
        endif()
    endforeach()
    set(${out} "${flags}" PARENT_SCOPE)
endfunction()

set(mha_pc_dir "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
set(MHA_PC_LIBDIR "\${prefix}")
cmake_path(APPEND MHA_PC_LIBDIR "${CMAKE_INSTALL_LIBDIR}")
set(MHA_PC_INCLUDEDIR "\${prefix}")
cmake_path(APPEND MHA_PC_INCLUDEDIR "${CMAKE_INSTALL_INCLUDEDIR}")
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}" OR IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}")
    set(MHA_PC_PREFIX "${CMAKE_INSTALL_PREFIX}")
else()
    file(RELATIVE_PATH up "/prefix/${mha_pc_dir}" "/prefix")
    string(REGEX REPLACE "/$" "" up "${up}")
    set(MHA_PC_PREFIX "\${pcfiledir}/${up}")
endif()

# pkg-config escapes a space in ${pcfiledir} by itself; in a path that is written out we do.
foreach(variable MHA_PC_PREFIX MHA_PC_LIBDIR MHA_PC_INCLUDEDIR)
    string(REPLACE " " "\\ " ${variable} "${${variable}}")
endforeach()

# Libs.private, not Requires.private: a package that is missing there would break --cflags of shared users.
mha_pc_libs(private ${MHA_BLAS_LIBRARIES} ${MHA_SYSTEM_LIBRARIES})
list(JOIN private " " MHA_PC_LIBS_PRIVATE)
mha_pc_libs(private_io jansson)
list(JOIN private_io " " MHA_PC_IO_LIBS_PRIVATE)
set(MHA_PC_LIBS "")
set(MHA_PC_IO_LIBS "")
if(NOT MHA_BUILD_SHARED)
    # There is only the archive: it needs its libraries always.
    set(MHA_PC_LIBS " ${MHA_PC_LIBS_PRIVATE}")
    set(MHA_PC_IO_LIBS " ${MHA_PC_IO_LIBS_PRIVATE}")
endif()
configure_file(mha.pc.in "${PROJECT_BINARY_DIR}/mha.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/mha.pc" DESTINATION "${mha_pc_dir}" COMPONENT devel)
if(MHA_INSTALL_IO)
    configure_file(mha-io.pc.in "${PROJECT_BINARY_DIR}/mha-io.pc" @ONLY)
    install(FILES "${PROJECT_BINARY_DIR}/mha-io.pc" DESTINATION "${mha_pc_dir}" COMPONENT devel)
endif()
