#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Habits of the tree: an SPDX line in every source, at most 800 lines a file in src/ and include/, file
names that occur once.

Usage: check_files.py SOURCE_DIR
"""
import collections
import pathlib
import sys

MAX_LINES = 800
SOURCES = {".c", ".h", ".cpp", ".py", ".sh", ".cmake", ".def", ".map", ".in"}
SKIP = {".git", "build", "data", "results", "corpus", "__pycache__", ".venv"}
# Names that a tool demands, or that are one per folder by habit.
REPEATED = {"CMakeLists.txt", "README.md", "meson.build", "__init__.py", ".gitignore"}


def files(source):
    for file in sorted(source.rglob("*")):
        parts = file.relative_to(source).parts
        if file.is_file() and not SKIP.intersection(parts) and not parts[0].startswith("build"):
            yield file, pathlib.PurePath(*parts)


def problems(source):
    by_name = collections.defaultdict(list)
    for file, path in files(source):
        if path.name not in REPEATED:
            by_name[path.name].append(path)
        if file.suffix in SOURCES or file.name == "CMakeLists.txt":
            text = file.read_text(encoding="utf-8")
            if "SPDX-License-Identifier: Apache-2.0" not in "\n".join(text.splitlines()[:3]):
                yield f"{path}: no SPDX line in the first three"
            if path.parts[0] in ("src", "include") and text.count("\n") > MAX_LINES:
                yield f"{path}: {text.count(chr(10))} lines, more than {MAX_LINES}"
    for name, paths in by_name.items():
        if len(paths) > 1:
            yield f"{name} occurs {len(paths)} times: {', '.join(map(str, paths))}"


if __name__ == "__main__":
    found = list(problems(pathlib.Path(sys.argv[1]).resolve()))
    print("\n".join(found) or "files are in order")
    sys.exit(1 if found else 0)
