#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures libmha beside onnxruntime, plain C loops and untiled BLAS; writes results/<cpu>/peers.csv and prints a
# table. Needs python3 with venv, a C compiler, and the network the first time. Works from any directory.
#
# Usage: run_peers.sh [--quick] [BUILD_DIRECTORY [RESULTS_DIRECTORY [VENV_DIRECTORY]]]
#        default: build/release, benchmarks/results, build/peers-venv
#        --quick: small sizes, to see that it works; in a temporary directory
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export PYTHONDONTWRITEBYTECODE=1

quick=() results=$here/../results
if [ "${1:-}" = --quick ]; then
    shift
    quick=(--quick) results=$(mktemp -d)
fi
build=$(realpath "${1:-$here/../../build/release}")
results=${2:-$results}
venv=${3:-$here/../../build/peers-venv}
requirements=$here/peers_requirements.txt
[ -e "$build/libmha.so" ] || { echo "no $build/libmha.so: build first" >&2; exit 1; }

[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
if ! cmp -s "$requirements" "$venv/installed.txt"; then
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r "$requirements"
    cp "$requirements" "$venv/installed.txt"
fi

plain=$(mktemp -d)
trap 'rm -rf "$plain"' EXIT
flags=(-std=c11 -O3 -march=native)
read -ra blas <<<"$(pkg-config --cflags --libs openblas 2>/dev/null || echo -lopenblas)"
"${CC:-cc}" "${flags[@]}" -shared -fPIC "$here/plain_attention.c" -o "$plain/libplain.so" "${blas[@]}" -lm
export PLAIN_FLAGS="$("${CC:-cc}" --version | sed -n 1p), ${flags[*]}, the BLAS above"

"$venv/bin/python" "$here/compare_onnxruntime.py" "$build" "$results" --plain "$plain/libplain.so" "${quick[@]}"
