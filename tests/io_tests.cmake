# SPDX-License-Identifier: Apache-2.0
# Tests of libmha_io. They reach inside (allocation counters), so they link the archive, whatever mha::io is.
function(mha_add_io_test name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES")
    mha_add_test(${name} SOURCES ${name}.c ${arg_SOURCES})
    target_link_libraries(${name} PRIVATE mha::io_static)
endfunction()

mha_add_io_test(test_io_convert)
mha_add_io_test(test_safetensors SOURCES io_files.c)
mha_add_io_test(test_safetensors_refused SOURCES io_files.c)
mha_add_io_test(test_io_layer SOURCES io_files.c io_layers.c)
mha_add_io_test(test_io_config SOURCES io_files.c io_layers.c)
mha_add_io_test(test_npy SOURCES io_files.c)
mha_add_io_test(test_npy_write SOURCES io_files.c)
mha_add_io_test(test_io_paths SOURCES io_files.c io_layers.c)
mha_add_io_test(test_io_brutal SOURCES io_files.c io_layers.c)
target_link_libraries(test_io_brutal PRIVATE mha::jansson)
mha_add_io_test(test_io_corpus SOURCES io_files.c)
target_compile_definitions(test_io_corpus PRIVATE
    MHA_TEST_CORPUS="${CMAKE_CURRENT_SOURCE_DIR}/fuzz/corpus")

if(MHA_BUILD_FUZZERS)
    add_subdirectory(fuzz)
endif()
