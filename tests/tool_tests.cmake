# SPDX-License-Identifier: Apache-2.0
# Tests of the command `mha`: its parts by themselves, and the command as a user runs it.
function(mha_add_tool_test name)
    mha_add_test(${name} SOURCES ${name}.c ${ARGN})
    target_compile_definitions(${name} PRIVATE _GNU_SOURCE)
    target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/tools")
endfunction()

mha_add_tool_test(test_shape "${PROJECT_SOURCE_DIR}/tools/mha_shape.c")
mha_add_tool_test(test_heads
    "${PROJECT_SOURCE_DIR}/tools/mha_heads.c" "${PROJECT_SOURCE_DIR}/tools/mha_pattern.c")
mha_add_tool_test(test_read "${PROJECT_SOURCE_DIR}/tools/mha_read.c")

if(TARGET mha_tool)
    mha_add_tool_test(test_peak)
    target_link_libraries(test_peak PRIVATE mha_peak)

    # These start the command, and read its JSON and its files.
    foreach(name IN ITEMS test_command test_inspect test_page test_bench)
        mha_add_tool_test(${name} tool_run.c)
        # The archive: the tests have the core as one already.
        target_link_libraries(${name} PRIVATE mha_io_static mha::jansson)
        target_compile_definitions(${name} PRIVATE
            MHA_TOOL_PATH="$<TARGET_FILE:mha_tool>"
            MHA_DATA_PATH="${PROJECT_SOURCE_DIR}/examples/data")
        add_dependencies(${name} mha_tool)
    endforeach()
    set_tests_properties(test_bench PROPERTIES RUN_SERIAL TRUE)
endif()
