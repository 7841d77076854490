#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The ABI of this tree against the baseline of its minor version, by libabigail; and proof that the gate opens
# and closes: a field added to an opaque struct passes, an argument that changes its type does not.
#
# Usage: check_abi.sh [--write]     --write renews the baseline (only while a minor version is in the making)
set -euo pipefail
source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
minor=$(sed -n 's/^#define MHA_VERSION_\(MAJOR\|MINOR\) *//p' "$source_dir/include/mha/version.h" | paste -sd.)
machine=$(uname -m)

compile() { # SOURCE BUILD: both libraries by gcc with debug information, which abidiff needs
    cmake -S "$1" -B "$2" -G Ninja -DCMAKE_C_COMPILER=gcc -DCMAKE_BUILD_TYPE=Debug \
        -DCMAKE_C_FLAGS_DEBUG="-g -Og" -DCMAKE_C_FLAGS="-ffile-prefix-map=$1=." \
        -DMHA_BUILD_TESTS=OFF -DMHA_BUILD_TOOLS=OFF -DMHA_BUILD_EXAMPLES=OFF -DMHA_BUILD_STATIC=OFF >"$work/log" 2>&1 &&
        cmake --build "$2" --parallel >>"$work/log" 2>&1 || {
        cat "$work/log" >&2
        exit 1
    }
}

baseline() { # LIBRARY_NAME
    echo "$source_dir/tests/abi/$1-$minor-$machine.abi"
}

compare() { # NAME LIBRARY INCLUDE [abidiff options]
    # A library without debug information is equal to anything: look first.
    readelf -S "$2" | grep '\.debug_info' >/dev/null || { echo "$2 has no debug information"; return 99; }
    abidiff --headers-dir2 "$3" --drop-private-types --fail-no-debug-info --no-added-syms \
        --suppressions "$source_dir/tests/abi/libmha.abignore" "$(baseline "$1")" "$2"
}

write() { # NAME LIBRARY
    abidw --headers-dir "$source_dir/include" --drop-private-types --no-show-locs --no-corpus-path \
        --no-comp-dir-path --out-file "$(baseline "$1")" "$2"
}

library() { # BUILD NAME
    case $2 in
    libmha) echo "$1/libmha.so" ;;
    libmha_io) echo "$1/src/io/libmha_io.so" ;;
    esac
}

# A copy that can be changed: what is compiled, nothing else.
copy_to() {
    mkdir -p "$1"
    cp -r "$source_dir"/{CMakeLists.txt,cmake,include,src,mha.pc.in,mha-io.pc.in,LICENSE} "$1"
}

compile "$source_dir" "$work/build"
for name in libmha libmha_io; do
    if [ "${1:-}" = --write ]; then
        write "$name" "$(library "$work/build" "$name")"
    fi
    if [ ! -f "$(baseline "$name")" ]; then
        echo "SKIP abidiff $name: no baseline for $machine"
        continue
    fi
    compare "$name" "$(library "$work/build" "$name")" "$source_dir/include"
    echo "PASS abidiff $name"
done
if [ ! -f "$(baseline libmha)" ]; then
    exit 0
fi

# A new field in an opaque struct is nobody's business.
copy_to "$work/field"
objects=$(grep -rlE '^struct mha_layer \{|^struct mha_layer$' "$work/field/src" | head -n 1)
sed -i -E '/^struct mha_layer( \{)?$/{n;/\{/n;s/^/    int64_t abi_self_test_field;\n/}' "$objects"
grep -q abi_self_test_field "$objects"
compile "$work/field" "$work/field-build"
compare libmha "$work/field-build/libmha.so" "$work/field/include" || {
    echo "FAIL self-test: a private field was reported"
    exit 1
}
echo "PASS self-test: a private field is nobody's business"

# An argument of another type is a break.
copy_to "$work/argument"
sed -i 's/mha_context_set_threads(mha_context \*ctx, int32_t threads/mha_context_set_threads(mha_context *ctx, int64_t threads/' \
    "$work/argument/include/mha/context.h" "$work/argument/src/api/context.c"
grep -q 'int64_t threads' "$work/argument/include/mha/context.h"
grep -q 'int64_t threads' "$work/argument/src/api/context.c"
compile "$work/argument" "$work/argument-build"
status=0
compare libmha "$work/argument-build/libmha.so" "$work/argument/include" >"$work/report" || status=$?
if [ "$status" -eq 0 ] || [ "$status" -eq 99 ]; then
    echo "FAIL self-test: a changed argument was not noticed (status $status)"
    exit 1
fi
echo "PASS self-test: a changed argument is noticed (abidiff says $status)"

# Without debug information the gate must not open.
strip -g "$work/argument-build/libmha.so" -o "$work/stripped.so"
if compare libmha "$work/stripped.so" "$work/argument/include" >/dev/null; then
    echo "FAIL self-test: a library without debug information passed"
    exit 1
fi
echo "PASS self-test: a library without debug information is refused"
