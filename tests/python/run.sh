#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# libmha beside other people's attention: the ONNX operator's own tests and, with MHA_WITH_TORCH=1, PyTorch.
# Prints what passed and failed; exit status 1 if anything failed. Works from any directory.
#
# Usage: run.sh LIBRARY [VENV_DIRECTORY]     default: build/python-venv; torch needs several GB there
#        MHA_TORCH_PYTHON=/path/to/python    an interpreter that has torch and numpy, in place of installing them
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
library=$(realpath "${1:?Usage: run.sh LIBRARY [VENV_DIRECTORY]}")
venv=${2:-$here/../../build/python-venv}
export PYTHONDONTWRITEBYTECODE=1

# Installs a list of pinned packages into a venv, once for each content of the list.
install() { # VENV REQUIREMENTS
    [ -x "$1/bin/python" ] || python3 -m venv "$1"
    cmp -s "$2" "$1/installed.txt" && return
    "$1/bin/python" -m pip install --quiet --disable-pip-version-check -r "$2"
    cp "$2" "$1/installed.txt"
}

passed=0 failed=0
compare() { # PYTHON SCRIPT [options]: adds what the script's last line "NAME: N passed, N failed" says
    local log status=0 last
    log=$(mktemp)
    "$1" "$here/$2" "$library" "${@:3}" 2>&1 | tee "$log" || status=$?
    last=$(sed -nE 's/^.*: ([0-9]+) passed, ([0-9]+) failed$/\1 \2/p' "$log" | tail -n 1)
    rm -f "$log"
    if [ -z "$last" ]; then # it broke before it could count
        last="0 1"
    elif [ "$status" -ne 0 ] && [ "${last#* }" -eq 0 ]; then
        last="${last% *} 1"
    fi
    passed=$((passed + ${last% *})) failed=$((failed + ${last#* }))
}

install "$venv" "$here/requirements.txt"
compare "$venv/bin/python" onnx_attention.py
compare "$venv/bin/python" onnx_attention.py --reference
if [ "${MHA_WITH_TORCH:-0}" = 1 ]; then
    if [ -z "${MHA_TORCH_PYTHON:-}" ]; then
        install "$venv-torch" "$here/requirements-torch.txt"
        MHA_TORCH_PYTHON=$venv-torch/bin/python
    fi
    compare "$MHA_TORCH_PYTHON" torch_side_by_side.py
else
    echo "torch_side_by_side: not asked for (MHA_WITH_TORCH=1)"
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
