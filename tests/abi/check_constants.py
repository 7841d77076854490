#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The constants of the public headers, as C prints them, equal tests/abi/constants, and the functions
mha_constant_* of the shared library know every one of them with the same value, and no other.

Usage: check_constants.py SOURCE_DIR SHARED_LIBRARY [--write]
"""
import ctypes
import difflib
import pathlib
import re
import subprocess
import sys
import tempfile

# Marks for the compiler rather than values, and values of which the header says that they are for
# compile time only.
DEFINE = re.compile(r"^#define (MHA_[A-Z0-9_]+)[ \t]+(.+)$", re.M)
MARKS = re.compile(r"_H$|^MHA_(IO_)?API$|^MHA_(BEGIN|END)_DECLS$|^MHA_DEPRECATED")


def names(source):
    found = {}
    for header in sorted((source / "include/mha").glob("*.h")):
        text = header.read_text(encoding="utf-8").replace("\\\n", " ")
        for name, value in DEFINE.findall(text):
            if not MARKS.search(name) and "compile time only" not in value:
                found.setdefault(name, header.name)
    return found


def printed_by_c(source, constants):
    lines = "".join(f'    printf("{name} %lld\\n", (long long)({name}));\n' for name in constants)
    program = ('#include <mha/mha.h>\n#include <mha/io.h>\n#include <stdio.h>\n'
               f"int main(void)\n{{\n{lines}    return 0;\n}}\n")
    with tempfile.TemporaryDirectory() as directory:
        unit = pathlib.Path(directory) / "constants.c"
        unit.write_text(program)
        subprocess.run(["cc", "-std=c11", f"-I{source / 'include'}", str(unit), "-o", f"{directory}/constants"],
                       check=True)
        return subprocess.run([f"{directory}/constants"], check=True, capture_output=True, text=True).stdout


def known_to_library(path):
    library = ctypes.CDLL(path)
    library.mha_constant_name.restype = ctypes.c_char_p
    library.mha_constant_name.argtypes = [ctypes.c_int32]
    library.mha_constant_count.restype = ctypes.c_int32
    library.mha_constant_value.restype = ctypes.c_int32
    library.mha_constant_value.argtypes = [ctypes.c_char_p, ctypes.POINTER(ctypes.c_int64), ctypes.c_void_p]
    known = {}
    for index in range(library.mha_constant_count()):
        name = library.mha_constant_name(index)
        value = ctypes.c_int64()
        assert library.mha_constant_value(name, ctypes.byref(value), None) == 0, name
        known[name.decode()] = value.value
    return known


def main(source, shared, write):
    constants = names(source)
    golden = source / "tests/abi/constants"
    lines = sorted(printed_by_c(source, constants).splitlines())
    if write:
        golden.write_text("\n".join(lines) + "\n", encoding="utf-8")
    problems = list(difflib.unified_diff(golden.read_text(encoding="utf-8").splitlines(), lines,
                                         "tests/abi/constants", "printed by C", lineterm="", n=0))
    values = {line.split()[0]: int(line.split()[1]) for line in lines}
    # The io component is a library of its own; the core cannot know its constants.
    core = {name: value for name, value in values.items() if constants[name] != "io.h"}
    known = known_to_library(shared)
    for name in sorted(core.keys() | known.keys()):
        if name in values and known.get(name, values[name] if constants[name] == "io.h" else None) != values[name]:
            problems.append(f"{name}: header {values[name]}, mha_constant_value {known.get(name)}")
        if name not in values:
            problems.append(f"{name}: known to mha_constant_name, but not in a header")
    print("\n".join(problems) or f"{len(lines)} constants, header, golden and library agree")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve(), sys.argv[2], "--write" in sys.argv))
