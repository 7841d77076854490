#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the built libraries show to the linker, against files that are diffed.

Usage: check_exports.py --source DIR --shared libmha.so [--static libmha.a] --name libmha|libmha_io
                        [--blas SONAME-REGEX] [--asserts] [--write]

  symbols   nm -D --defined-only --with-symbol-versions equals tests/abi/symbols(_io); functions only
  dynamic   readelf -d, what matters of it, equals tests/abi/dynamic(_io)
  imports   nothing that exits or prints
  archive   every global of the archive begins with mha_
  map       src/libmha.map has those names, docs/symbols-in-versions too, with the same versions
--write renews the two goldens.
"""
import argparse
import difflib
import pathlib
import re
import subprocess
import sys

FORBIDDEN = set("""exit _exit _Exit quick_exit abort printf vprintf puts putchar fprintf vfprintf fputs fputc
    perror __printf_chk __vprintf_chk __fprintf_chk __vfprintf_chk stdout stderr setlocale setenv putenv
    signal sigaction raise""".split())
LOADER = re.compile(r"^ld-linux")


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def exported(shared):
    """'name version type' a line, version nodes as 'A'."""
    lines = []
    for line in run("nm", "-D", "--defined-only", "--with-symbol-versions", shared).splitlines():
        _, kind, name = line.split(maxsplit=2)
        base, _, version = name.partition("@@")
        lines.append(f"{kind} {base} {version}".rstrip())
    return sorted(lines)


def dynamic(shared, blas):
    lines = []
    for line in run("readelf", "-d", "-W", shared).splitlines():
        match = re.match(r"\s*0x\w+ \((\w+)\)\s*(.*)", line)
        if not match:
            continue
        tag, value = match.groups()
        name = re.search(r"\[(.*)\]", value)
        if tag == "NEEDED":
            if re.match(blas, name.group(1)):
                lines.append("NEEDED <blas>")
            elif not LOADER.match(name.group(1)):  # there only where thread-local storage is used
                lines.append(f"NEEDED {name.group(1)}")
        elif tag == "SONAME":
            lines.append(f"SONAME {name.group(1)}")
        elif tag == "RUNPATH" and name.group(1) == "$ORIGIN" and "libmha_io" in shared:
            pass  # libmha_io finds libmha beside itself; left out where the prefix is /usr
        elif tag in ("RPATH", "RUNPATH", "TEXTREL", "SYMBOLIC"):
            lines.append(f"{tag} {value}")
        elif tag == "FLAGS_1" and "NODELETE" in value:
            lines.append("FLAGS_1 NODELETE")
        elif tag == "FLAGS" and "TEXTREL" in value:
            lines.append("FLAGS TEXTREL")
    return sorted(lines)


def imports(shared):
    names = [line.split()[-1].split("@")[0] for line in run("nm", "-D", "--undefined-only", shared).splitlines()]
    return FORBIDDEN.intersection(names), "__assert_fail" in names


def archive_globals(static):
    """Defined globals; weak ones that the compiler makes for itself (DW.ref, __x86 thunks) are not names."""
    for line in run("nm", "--defined-only", "--extern-only", static).splitlines():
        fields = line.split()
        if len(fields) == 3 and not re.match(r"mha_|__x86\.|DW\.ref\.", fields[2]):
            yield fields[2]


def map_names(path):
    """{name: version} of a linker version script."""
    text = re.sub(r"/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.S)
    names = {}
    for node, body in re.findall(r"(MHA(?:_IO)?_[\d.]+)\s*\{(.*?)\}", text, flags=re.S):
        body = re.sub(r"\b(global|local):", "", body)
        for name in re.findall(r"(mha_\w+);", body):
            names[name] = node
        if "MHA" in node and "*" in body and not re.search(r"(^|\s)\*;", body):
            raise SystemExit(f"{path}: a pattern among the exported names of {node}")
    return names


def versions_file(path, prefix):
    names = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            name, since = line.split()
            if name.startswith("mha_io_") == (prefix == "MHA_IO"):
                names[name] = f"{prefix}_{since}"
    return names


def compare(title, golden, lines, write):
    if write:
        golden.write_text("\n".join(lines) + "\n", encoding="utf-8")
    expected = golden.read_text(encoding="utf-8").splitlines()
    difference = list(difflib.unified_diff(expected, lines, str(golden), title, lineterm="", n=0))
    return difference


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--source", type=pathlib.Path, required=True)
    parser.add_argument("--shared", required=True)
    parser.add_argument("--static")
    parser.add_argument("--name", choices=["libmha", "libmha_io"], required=True)
    parser.add_argument("--blas", default=r"libopenblas\.so")
    parser.add_argument("--asserts", action="store_true")
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    io = args.name == "libmha_io"
    suffix, prefix = ("_io", "MHA_IO") if io else ("", "MHA")
    abi = args.source / "tests/abi"
    problems = []

    symbols = exported(args.shared)
    problems += compare("nm -D", abi / f"symbols{suffix}", symbols, args.write)
    problems += [f"exported, but no function: {line}" for line in symbols
                 if line.split()[0] != "T" and not re.fullmatch(rf"A {prefix}_[\d.]+( {prefix}_[\d.]+)?", line)]
    problems += compare("readelf -d", abi / f"dynamic{suffix}", dynamic(args.shared, args.blas), args.write)

    forbidden, asserts = imports(args.shared)
    problems += [f"imports {name}" for name in sorted(forbidden)]
    if asserts and not args.asserts:
        problems.append("imports __assert_fail in a build without asserts")
    if args.static:
        problems += [f"global of the archive without the mha_ prefix: {name}" for name in archive_globals(args.static)]

    source_map = map_names(args.source / ("src/io/libmha_io.map" if io else "src/libmha.map"))
    listed = versions_file(args.source / "docs/symbols-in-versions", prefix)
    for name in sorted(source_map.keys() | listed.keys()):
        if source_map.get(name) != listed.get(name):
            problems.append(f"{name}: map {source_map.get(name)}, docs/symbols-in-versions {listed.get(name)}")
    exported_names = {line.split()[1]: line.split()[2] for line in symbols if line[0] == "T"}
    if exported_names != source_map:
        differences = sorted(set(exported_names.items()) ^ set(source_map.items()))
        problems.append(f"map and library differ in {len(differences)} names: {differences[:5]} …")

    print("\n".join(problems) or f"{args.name}: {len(exported_names)} functions, as agreed")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
