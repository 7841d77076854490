#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures libmha's own figures with `mha bench` and writes them to results/<cpu>/own.csv and curve.csv, what the
# kernels reach by themselves to limits.txt; prints tables, and draws roofline.svg where build/plot-venv is (see
# plot_roofline.py). A quarter of an hour on an idle machine. Works from any directory.
#
# Usage: run_own.sh [--quick] [BUILD_DIRECTORY [RESULTS_DIRECTORY]]   default: build/release, benchmarks/results
#        --quick: small sizes and few timings, to see that it works; worthless figures, in a temporary directory
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export PYTHONDONTWRITEBYTECODE=1

tokens=(128 512 1024 2048 4096) layer_tokens=(512 1024 2048 4096) options_tokens=1024 share_tokens=8192 long_tokens=16384
memory_tokens=32768 growth_tokens=(2048 4096 8192 16384) stored=(1024 32768) curve=1..300
quick=() short=(--reps 2) results=$here/results
if [ "${1:-}" = --quick ]; then
    shift
    tokens=(128) layer_tokens=(128) options_tokens=128 share_tokens=256 long_tokens=256 memory_tokens=512
    growth_tokens=(256) stored=(128) curve=1..300:100 quick=(--reps 3)
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

rows=$(mktemp) printed=$(mktemp)
trap 'rm -f "$rows" "$printed"' EXIT
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
    # Other sizes of a head.
    for D in 32 80 96 128; do
        bench sizes "b1_t${options_tokens}_s${options_tokens}_h8_d$D" --threads 1 --engine "$engine"
    done
    # The time of T tokens grows as T^2, and no faster.
    for T in "${growth_tokens[@]}"; do
        turns=()
        [ "$T" -lt 16384 ] || turns=("${short[@]}")
        bench growth "$(square "$T")" --against "$(square "$options_tokens")" --threads 1 --engine "$engine" "${turns[@]}"
    done
    for what in core layer; do
        for threads in 1 2; do
            bench profile "$(square "$options_tokens")" --what "$what" --threads "$threads" --engine "$engine" --profile
        done
    done
    # One token against keys that fit into a cache, and that do not; all heads apart, and groups of eight.
    for S in "${stored[@]}"; do
        for heads in h8 h32_g4; do
            for layout in token-major head-major; do
                for threads in 1 2; do
                    bench token "b1_t1_s${S}_${heads}_d64" --layout "$layout" --threads "$threads" --engine "$engine"
                done
            done
        done
    done
    bench curve "b1_t1_s1_h8_d64" --curve "$curve" --threads 1 --engine "$engine"
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
# What it costs to begin a call.
bench start --what start --engine blas
# Workspace is what counts here: the one forward is half a minute or more.
bench memory "$(square "$memory_tokens")" --threads 1 --engine blas --reps 1

python3 "$here/own_figures.py" "$rows" "$build" "$results" | tee "$printed"
limits=$build/benchmarks/kernel_limits # built with the tests
if [ -x "$limits" ]; then
    directory=$(tail -n 1 "$printed")
    { grep '^#' "$directory/own.csv"; "$limits"; } | tee "$directory/limits.txt"
fi
plot=$here/../build/plot-venv/bin/python
if [ -x "$plot" ]; then
    "$plot" "$here/plot_roofline.py" "$(tail -n 1 "$printed")/own.csv"
fi
