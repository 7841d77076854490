#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Only types that every language can call with stand in a public signature.

Walks clang's AST of the public headers and fails on anything but int32_t, int64_t, uint64_t, float, double,
pointers to these (uint8_t and void behind a pointer too), pointers to opaque mha_ structs, const char * and
char * buffers, arrays of input tensors (const float *const *), and callback typedefs; on variadics, on struct, union and enum types with a body, on variables
and inline functions.

Usage: check_types.py SOURCE_DIR
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SCALARS = {"int32_t", "int64_t", "uint64_t", "float", "double"}
POINTED = SCALARS | {"uint8_t", "void", "char"}
CALLBACKS = {"mha_parallel_for", "mha_score_callback", "mha_weights_callback"}
INPUT_ARRAY = "const float *const *"


def ast(clang, include, text, work):
    unit = work / "unit.c"
    unit.write_text(text)
    out = subprocess.run([clang, "-std=c99", f"-I{include}", "-Xclang", "-ast-dump=json", "-fsyntax-only",
                          str(unit)], check=True, capture_output=True, text=True).stdout
    return json.loads(out)["inner"]


def allowed(kind):
    """Whether a type, as written, may stand in a signature."""
    if kind == INPUT_ARRAY:
        return True
    kind = re.sub(r"\b(const|restrict)\b", "", kind)
    kind = re.sub(r"\s+", " ", kind).strip()
    if kind in SCALARS or kind in CALLBACKS:
        return True
    base = re.fullmatch(r"([\w ]+?)\s*(\*\s*){1,2}", kind)
    if base is None:
        return False
    name = base.group(1).strip()
    stars = kind.count("*")
    if name in POINTED:
        return stars == 1
    return re.fullmatch(r"mha_\w+", name) is not None


def signature(qualified):
    """Result and parameters of a function type as clang prints it, callbacks inside parameters whole."""
    start = qualified.index("(")
    result, body = qualified[:start].strip(), qualified[start + 1:qualified.rindex(")")]
    parameters, depth, current = [], 0, ""
    for char in body:
        depth += (char == "(") - (char == ")")
        if char == "," and depth == 0:
            parameters.append(current.strip())
            current = ""
        else:
            current += char
    parameters.append(current.strip())
    return result, [p for p in parameters if p not in ("", "void")]


def check_callback(name, qualified):
    """int32_t (*)(void *, int64_t, void (*)(void *, int64_t), void *): the same rules, a level deeper."""
    match = re.fullmatch(r"([\w ]+\*?)\s*\(\*\)\((.*)\)", qualified)
    if match is None:
        yield f"{name}: a callback of unknown form: {qualified}"
        return
    result, parameters = signature(f"{match.group(1)} ({match.group(2)})")
    if result != "void" and not allowed(result):
        yield f"{name}: a callback returns {result}"
    for parameter in parameters:
        if "(*)" in parameter:
            yield from check_callback(name, parameter)
        elif not allowed(parameter):
            yield f"{name}: a callback takes {parameter}"


def problems(nodes):
    for node in nodes:
        kind, name = node["kind"], node.get("name", "")
        if kind == "FunctionDecl" and name.startswith("mha"):
            if node.get("variadic"):
                yield f"{name}: variadic"
            if node.get("inline") or any(i["kind"] == "CompoundStmt" for i in node.get("inner", [])):
                yield f"{name}: a body in a header"
            result, parameters = signature(node["type"]["qualType"])
            if result != "void" and not allowed(result):
                yield f"{name}: returns {result}"
            for parameter in parameters:
                if not allowed(parameter):
                    yield f"{name}: takes {parameter}"
            if len(parameters) == 0 and "void" not in node["type"]["qualType"][node["type"]["qualType"].index("("):]:
                yield f"{name}: no prototype"
        elif kind == "RecordDecl" and name.startswith("mha") and node.get("completeDefinition"):
            yield f"{name}: a struct or union with a body"
        elif kind == "EnumDecl":
            yield f"{name or 'an enum'}: enum types are not used"
        elif kind == "VarDecl":
            yield f"{name}: a variable"
        elif kind == "TypedefDecl" and name.startswith("mha"):
            qualified = node["type"]["qualType"]
            if "(*)" in qualified:
                if name not in CALLBACKS:
                    yield f"{name}: a callback that this check does not know"
                yield from check_callback(name, qualified)
            elif not re.fullmatch(rf"struct {name}", qualified):
                yield f"{name}: a typedef of {qualified}"


BAD = """#include <stddef.h>
#include <stdint.h>
typedef struct mha_open { int32_t a; } mha_open;
enum mha_enum { MHA_A };
typedef int mha_integer;
long mha_1(void); int32_t mha_2(size_t n); int32_t mha_3(int32_t n, ...); int32_t mha_4(_Bool b);
int32_t mha_5(enum mha_enum e); int32_t mha_6(mha_open by_value); int32_t mha_7(const float **rows);
int32_t mha_8(long double x); extern int32_t mha_9; static inline int32_t mha_10(void) { return 0; }
int32_t mha_11(void (*callback)(int32_t)); int32_t mha_12(unsigned char c); int32_t mha_13();
"""


def main(source):
    clang = next((c for c in ("clang", "clang-14", "clang-18", "clang-19") if shutil.which(c)), None)
    if clang is None:
        print("skipped: no clang")
        return 77
    with tempfile.TemporaryDirectory() as directory:
        work = pathlib.Path(directory)
        bad = " ".join(problems(ast(clang, source / "include", BAD, work)))
        missed = [i for i in range(1, 14) if f"mha_{i}:" not in bad]
        if missed or any(name not in bad for name in ("mha_open:", "mha_enum:", "mha_integer:")):
            print(f"self-test: not found: {missed}; found: {bad}")
            return 1
        nodes = ast(clang, source / "include", "#include <mha/mha.h>\n#include <mha/io.h>\n", work)
    found = list(problems(nodes))
    count = sum(n["kind"] == "FunctionDecl" and n.get("name", "").startswith("mha") for n in nodes)
    if count == 0:
        found.append("no function seen")
    print("\n".join(found) or f"{count} functions, all types allowed")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve()))
