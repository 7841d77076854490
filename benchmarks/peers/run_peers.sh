#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures libmha beside onnxruntime, openvino, plain C loops and untiled BLAS, and on request torch and jax, by
# turns in one run; writes results/<cpu>/peers.csv and prints tables. Needs python3 with venv, a C compiler, and the
# network the first time. Works from any directory.
#
# Usage: run_peers.sh [options] [BUILD_DIRECTORY [RESULTS_DIRECTORY [VENV_DIRECTORY]]]
#        default: build/release, benchmarks/results, build/peers-venv
#        --torch, --jax      these too; torch may bring gigabytes
#        --peers A,B         of onnxruntime, openvino, torch, jax, loops, sgemm, in place of the default
#        --only A,B          figures: core, causal, size, layer, gqa, token
#        --tokens N[,N]      only cases of that many keys
#        --threads N[,N]     1,2 otherwise
#        --seconds N         for all timings of a row, 4 otherwise; a row of long runs takes longer
#        --add               to the rows of an earlier run under the same conditions, in place of writing the file anew
#        --quick             small sizes, to see that it works
#        With --quick, or --only or --peers without --add, the results go to a temporary directory unless one is given.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export PYTHONDONTWRITEBYTECODE=1

peers=onnxruntime,openvino,loops,sgemm options=() partial=0 add=0
while [[ ${1:-} == --* ]]; do
    case $1 in
        --torch | --jax) peers+=,${1#--} ;;
        --peers) peers=$2 partial=1; shift ;;
        --only) options+=(--only "$2") partial=1; shift ;;
        --tokens) options+=(--tokens "$2") partial=1; shift ;;
        --threads) options+=(--threads ${2//,/ }); shift ;;
        --seconds) options+=(--seconds "$2"); shift ;;
        --add) options+=(--add) add=1 ;;
        --quick) options+=(--quick) partial=2 ;;
        *) echo "unknown option $1" >&2; exit 2 ;;
    esac
    shift
done
build=$(realpath "${1:-$here/../../build/release}")
results=${2:-$here/../results}
if [ $# -lt 2 ] && { [ $partial = 2 ] || [ $((partial - add)) = 1 ]; }; then
    results=$(mktemp -d)
fi
venv=${3:-$here/../../build/peers-venv}
[ -e "$build/libmha.so" ] || { echo "no $build/libmha.so: build first" >&2; exit 1; }

install() { # LIST: pinned packages, once for each content of the list
    local done_list=$venv/installed_$1.txt
    cmp -s "$here/$1.txt" "$done_list" && return
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r "$here/$1.txt"
    cp "$here/$1.txt" "$done_list"
}
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
install peers_requirements
case ,$peers, in *,torch,*) install peers_requirements_torch ;; esac
case ,$peers, in *,jax,*) install peers_requirements_jax ;; esac

PLAIN_DIRECTORY=$(mktemp -d)
trap 'rm -rf "$PLAIN_DIRECTORY"' EXIT
read -ra include <<<"$(pkg-config --cflags openblas 2>/dev/null || true)"
read -ra blas <<<"$(pkg-config --libs openblas 2>/dev/null || echo -lopenblas)"
plain() { # NAME FLAGS: linked without the flags, as -ffast-math there would change the host's floating-point modes
    "${CC:-cc}" -std=c11 "${@:2}" -fPIC -c "$here/plain_attention.c" -o "$PLAIN_DIRECTORY/$1.o" \
        "${include[@]}"
    "${CC:-cc}" -shared "$PLAIN_DIRECTORY/$1.o" -o "$PLAIN_DIRECTORY/lib$1.so" "${blas[@]}" -lm
}
plain plain -O3 -march=native
plain plain_fast -O3 -march=native -ffast-math
PLAIN_FLAGS="$("${CC:-cc}" --version | sed -n 1p), -std=c11, the BLAS above"
export PLAIN_DIRECTORY PLAIN_FLAGS

"$venv/bin/python" "$here/compare_peers.py" "$build" "$results" --peers "$peers" "${options[@]}"
