#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every public header compiles alone and included twice, as C99, C11, C17 and C++98, 11, 17, 20, with gcc
and clang (where they are installed), without a warning; and the headers, preprocessed, parse in cffi and
LuaJIT (where they are installed).

Usage: check_headers.py SOURCE_DIR
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

C_FLAGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wstrict-prototypes", "-Wconversion", "-Werror"]
CXX_FLAGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wold-style-cast", "-Werror"]
C_STANDARDS = ["c99", "c11", "c17"]
CXX_STANDARDS = ["c++98", "c++11", "c++17", "c++20"]


def compile_all(include, headers, work):
    """One file a header and mode; a run of the compiler for each language, standard and compiler."""
    problems, runs = [], 0
    for suffix, compilers, standards, flags in (
        ("c", ["gcc", "clang"], C_STANDARDS, C_FLAGS),
        ("cpp", ["g++", "clang++"], CXX_STANDARDS, CXX_FLAGS),
    ):
        units = []
        for header in headers:
            for times in (1, 2):
                unit = work / f"{header.stem}_{times}.{suffix}"
                # A unit must declare something; a typedef serves C and C++ alike.
                unit.write_text(f"#include <mha/{header.name}>\n" * times + "typedef int unit_is_not_empty;\n")
                units.append(str(unit))
        for compiler in compilers:
            if not shutil.which(compiler):
                print(f"skipped: no {compiler}")
                continue
            for standard in standards:
                runs += 1
                result = subprocess.run(
                    [compiler, f"-std={standard}", *flags, "-fsyntax-only", f"-I{include}", *units],
                    capture_output=True, text=True)
                if result.returncode != 0:
                    problems.append(f"{compiler} -std={standard}:\n{result.stderr}")
    return problems, runs


def preprocessed(include, work):
    unit = work / "all.c"
    unit.write_text("#include <mha/mha.h>\n#include <mha/io.h>\n")
    text = subprocess.run(
        ["gcc", "-std=c99", "-DMHA_API=", "-DMHA_IO_API=", "-E", "-P", f"-I{include}", str(unit)],
        check=True, capture_output=True, text=True).stdout
    # What stdint.h brings is known to every FFI; ours begins at the first mha_ name.
    return "\n".join(line for line in text.splitlines() if "mha_" in line or not line.startswith("typedef"))


def parse_in_ffi(text, work):
    problems = []
    start = text.find("typedef struct mha_error")
    ours = text[start:] if start >= 0 else text
    try:
        import cffi
        try:
            cffi.FFI().cdef(ours)
        except Exception as error:
            problems.append(f"cffi: {error}")
    except ImportError:
        print("skipped: no cffi")
    if shutil.which("luajit"):
        script = work / "cdef.lua"
        script.write_text(f"require('ffi').cdef[====[\n{ours}\n]====]\n")
        result = subprocess.run(["luajit", str(script)], capture_output=True, text=True)
        if result.returncode != 0:
            problems.append(f"luajit: {result.stderr}")
    else:
        print("skipped: no luajit")
    return problems


def main(source):
    include = source / "include"
    headers = sorted((include / "mha").glob("*.h"))
    with tempfile.TemporaryDirectory() as directory:
        work = pathlib.Path(directory)
        problems, runs = compile_all(include, headers, work)
        # The checker must be able to fail: a header that needs another one first is found.
        (work / "mha").mkdir()
        (work / "mha/bad.h").write_text("int32_t mha_bad(void);\n")
        bad, _ = compile_all(work, [work / "mha/bad.h"], work)
        if len(bad) != runs or runs == 0:
            problems.append(f"self-test: a header without its includes passed, {runs} runs")
        problems += parse_in_ffi(preprocessed(include, work), work)
    print("\n".join(problems) or f"{len(headers)} headers, alone and twice, {runs} compilers and standards")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve()))
