#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures libmha's own figures with `mha bench` and writes them to results/<cpu>/own.csv; prints a table.
# A few minutes on an idle machine. Works from any directory.
#
# Usage: run_own.sh [--quick] [BUILD_DIRECTORY [RESULTS_DIRECTORY]]   default: build/release, benchmarks/results
#        --quick: small sizes and few timings, to see that it works; worthless figures, in a temporary directory
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export PYTHONDONTWRITEBYTECODE=1

tokens=(128 512 1024 2048 4096) layer_tokens=(512 1024 2048 4096) options_tokens=1024 share_tokens=8192 long_tokens=16384
memory_tokens=32768 quick=() results=$here/results
if [ "${1:-}" = --quick ]; then
    shift
    tokens=(128) layer_tokens=(128) options_tokens=128 share_tokens=256 long_tokens=256 memory_tokens=512 quick=(--reps 3)
    results=$(mktemp -d)
fi
build=$(realpath "${1:-$here/../build/release}")
results=${2:-$results}
mha=$build/tools/mha
[ -x "$mha" ] || { echo "no $mha: build first (cmake --preset release && cmake --build --preset release)" >&2; exit 1; }

# One thread of its own for OpenBLAS: libmha then takes its biggest tiles.
export OPENBLAS_NUM_THREADS=1
# These two choose slower kernels; OpenBLAS reads them at the start of a process.
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE MHA_KERNELS MHA_ENGINE MHA_NUM_THREADS

rows=$(mktemp)
trap 'rm -f "$rows"' EXIT
bench() { # FIGURE SHAPE [options]: one report, behind the name of its figure
    echo "$*" >&2
    printf '"%s"\n' "$1" >>"$rows"
    "$mha" bench "${@:2}" "${quick[@]}" --json >>"$rows"
}
square() { # TOKENS [suffix]: the shape with 8 heads of 64
    echo "b1_t$1_s$1_h8_d64${2:-}"
}

for engine in blas fused; do
    for T in "${tokens[@]}"; do
        bench core "$(square "$T")" --threads 1 --engine "$engine"
        bench causal "$(square "$T" _causal)" --threads 1 --engine "$engine"
    done
    # A few timings of many seconds; the warm-up is one of them.
    bench core "$(square "$long_tokens")" --threads 1 --engine "$engine" --reps 2
    bench causal "$(square "$long_tokens" _causal)" --threads 1 --engine "$engine" --reps 2
    for T in "${layer_tokens[@]}"; do
        for threads in 1 2; do
            bench layer "$(square "$T")" --what layer --threads "$threads" --engine "$engine"
        done
    done
    # The same number of operations in eight heads and in one.
    T=$options_tokens
    for what in core layer; do
        bench heads "$(square "$T")" --against "b1_t${T}_s${T}_h1_d512" --what "$what" --threads 1 \
            --engine "$engine"
    done
    for option in all-true-mask bias weights entropy mass; do
        bench options "$(square "$T")" --with "$option" --threads 1 --engine "$engine"
    done
    # What hides most of the keys is worth its share of the time where there are many.
    for option in half-keys causal window; do
        bench options "$(square "$share_tokens")" --with "$option" --threads 1 --engine "$engine" --reps 2
    done
done
# Workspace is what counts here: the one forward is half a minute or more.
bench memory "$(square "$memory_tokens")" --threads 1 --engine blas --reps 1

python3 "$here/own_figures.py" "$rows" "$build" "$results"
