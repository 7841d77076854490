# SPDX-License-Identifier: Apache-2.0
# Writes OUT: the commit of SOURCE as a string, "unknown" outside of git. Runs in every build and leaves the file
# alone while nothing changed.
cmake_minimum_required(VERSION 3.24)
set(commit "unknown")
find_program(GIT git)
if(GIT AND EXISTS "${SOURCE}/.git")
    execute_process(
        COMMAND "${GIT}" -C "${SOURCE}" describe --always --tags --dirty
        OUTPUT_VARIABLE described RESULT_VARIABLE refused OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(NOT refused)
        set(commit "${described}")
    endif()
endif()
file(CONFIGURE OUTPUT "${OUT}" CONTENT
    "/* SPDX-License-Identifier: Apache-2.0 */\n#define MHA_COMMIT \"@commit@\"\n" @ONLY)
