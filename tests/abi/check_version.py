#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The version is the same in the header, CMake, mha.pc, the maps and the changelog.

Usage: check_version.py SOURCE_DIR BUILD_DIR
"""
import pathlib
import re
import sys


def main(source, build):
    header = (source / "include/mha/version.h").read_text(encoding="utf-8")
    number = [re.search(rf"#define MHA_VERSION_{part} +(\d+)", header).group(1) for part in ("MAJOR", "MINOR", "PATCH")]
    version = ".".join(number)
    found = {"MHA_VERSION_STRING": re.search(r'#define MHA_VERSION_STRING +"([^"]+)"', header).group(1)}
    cache = (build / "CMakeCache.txt").read_text(encoding="utf-8")
    found["CMake"] = re.search(r"^CMAKE_PROJECT_VERSION:STATIC=(.*)$", cache, re.M).group(1)
    for name in ("mha.pc", "mha-io.pc"):
        if (build / name).is_file():
            found[name] = re.search(r"^Version: (.*)$", (build / name).read_text(encoding="utf-8"), re.M).group(1)
    changelog = source / "CHANGELOG.md"
    if changelog.is_file():
        match = re.search(r"^## \[?v?(\d+\.\d+\.\d+)", changelog.read_text(encoding="utf-8"), re.M)
        found["CHANGELOG.md, newest"] = match.group(1) if match else "no version"
    else:
        found["CHANGELOG.md"] = "missing"
    problems = [f"{where}: {text}, the header says {version}" for where, text in found.items() if text != version]
    for path, prefix in (("src/libmha.map", "MHA_"), ("src/io/libmha_io.map", "MHA_IO_")):
        nodes = re.findall(rf"^{prefix}(\d+\.\d+) \{{", (source / path).read_text(encoding="utf-8"), re.M)
        if not nodes or any(list(map(int, node.split("."))) > list(map(int, number[:2])) for node in nodes):
            problems.append(f"{path}: nodes {nodes}, none may be newer than {version}")
        if number[0] == "0" and nodes != [".".join(number[:2])]:
            problems.append(f"{path}: in 0.x there is one node, that of the minor version; found {nodes}")
    print("\n".join(problems) or f"{version} everywhere")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])))
