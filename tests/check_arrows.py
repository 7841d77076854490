#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Includes point down only: api > flow, reference > attention > kernels > platform; io knows public
headers only.

Usage: check_arrows.py SOURCE_DIR
"""
import pathlib
import re
import sys
import tempfile

RANK = {"api": 4, "flow": 3, "reference": 3, "attention": 2, "kernels": 1, "platform": 0}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def target_folder(source, file, name):
    """The folder of src/ that an include names, by path or beside the file; None outside src/."""
    for candidate in (source / "src" / name, file.parent / name):
        if candidate.is_file():
            return candidate.resolve().relative_to((source / "src").resolve()).parts[0]
    return None


def violations(source):
    for file in sorted((source / "src").rglob("*.[ch]")):
        folder = file.relative_to(source / "src").parts[0]
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            where = f"{file.relative_to(source)}:{number}"
            name = match.group(2)
            if match.group(1) == '"' and "/" in name and name.split("/")[0] == "..":
                yield f"{where}: include by the folder's name, not by '..'"
                continue
            target = target_folder(source, file, name) if match.group(1) == '"' else None
            if target is None:
                if match.group(1) == '"':
                    yield f"{where}: no file {name} in src/"
                elif name in ("cblas.h", "openblas_config.h", "blis.h"):
                    yield f"{where}: headers of a BLAS are not used"
                elif name == "mha/io.h" and folder != "io":
                    yield f"{where}: the core knows no file format"
                continue
            if folder == "io" or target == "io":
                if folder != target:
                    yield f"{where}: io and the core meet in public headers only"
            elif folder not in RANK or target not in RANK:
                yield f"{where}: folder without a place in the order: {folder} or {target}"
            elif RANK[target] > RANK[folder]:
                yield f"{where}: {folder} may not include from {target}"
    for file in sorted((source / "include").rglob("*.h")):
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            match = INCLUDE.match(line)
            if match and not re.fullmatch(r"mha/\w+\.h|stdint\.h|stddef\.h", match.group(2)):
                yield f"{file.relative_to(source)}:{number}: public headers need stdint.h and stddef.h only"


def self_test():
    """An arrow up, one out of io and a BLAS header are found; arrows down are not."""
    with tempfile.TemporaryDirectory() as directory:
        source = pathlib.Path(directory)
        for folder in [*RANK, "io"]:
            (source / "src" / folder).mkdir(parents=True)
            (source / "src" / folder / f"{folder}.h").write_text("")
        (source / "include").mkdir()
        (source / "src/platform/a.c").write_text('#include "kernels/kernels.h"\n')
        (source / "src/io/b.c").write_text('#include "platform/platform.h"\n')
        (source / "src/flow/c.c").write_text("#include <cblas.h>\n")
        (source / "src/flow/d.c").write_text('#include "flow.h"\n#include "platform/platform.h"\n')
        found = [line.split(":")[0] for line in violations(source)]
        assert found == ["src/flow/c.c", "src/io/b.c", "src/platform/a.c"], found


if __name__ == "__main__":
    self_test()
    problems = list(violations(pathlib.Path(sys.argv[1])))
    print("\n".join(problems) or "all arrows point down")
    sys.exit(1 if problems else 0)
