#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From a clean clone to a picture: installs what is missing, builds, runs a layer of a pre-trained model on a
# sentence and draws what its heads look at. Works from any directory; needs no network once set up.
#
# Usage: demo.sh [SENTENCE [LAYER]]     both as the files in examples/data name them
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
sentence=${1:-animal}
layer=${2:-5}
data=examples/data
if [ ! -f "$data/${sentence}_layer${layer}_input.npy" ]; then
    echo "demo: no ${sentence}_layer${layer}_input.npy in $data; there are:" >&2
    (cd "$data" && ls -- *_input.npy) >&2
    exit 2
fi

bash tools/setup.sh
echo "demo: building (a log is in build/demo.log)"
mkdir -p build
{
    cmake --preset release -B build/demo -DMHA_BUILD_TESTS=OFF -DMHA_BUILD_EXAMPLES=OFF &&
        cmake --build build/demo --parallel
} >build/demo.log 2>&1 || {
    tail -n 40 build/demo.log >&2
    exit 1
}
mha=$(find build/demo -maxdepth 2 -type f -name mha -perm -u+x | head -n 1)

"$mha" inspect --weights "$data/minilm_layer${layer}.safetensors" --scheme bert \
    --prefix "encoder.layer.${layer}.attention." --heads 12 \
    --input "$data/${sentence}_layer${layer}_input.npy" --tokens "$data/${sentence}_tokens.txt" \
    --expect "$data/${sentence}_layer${layer}_output.npy" --html build/heads.html

echo
echo "demo: the heads of layer $layer, drawn: file://$PWD/build/heads.html"
