#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds and tests. Works from any directory.
#
# Usage: test.sh                 release build, every test (under 10 minutes from a clean clone)
#        test.sh --all           and sanitizers, BLAS variants, Clang, AArch64, ABI, consumers, fuzzers
#        test.sh --stage NAME…   some stages of --all; test.sh --stages lists them
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
jobs=$(nproc)
stages=(release asan tsan variants blis scipy coretype kernels engine outside clang abi consumers packages
    fuzz aarch64)

# Tests whose answer depends on no BLAS, kernel or build option: once, in the release stage, is enough. test_bench
# (that of `mha bench`) lets nothing run beside it, so every time more would count.
readonly fixed='^(check_|consumers|test_bench$)'
# The same, but the exports of a library on another BLAS are looked at.
readonly built_alike='^(check_(arrows|files|headers|types|version|constants)|consumers|test_bench$)'

# Tests that go through either engine in all its forms: once more under the sanitizers, with the fused one. The
# long ones take minutes under ThreadSanitizer.
readonly by_engine='^test_(cases|edges|corners|threads)$'
readonly by_engine_long='^test_(options|determinism)$'

build() { # PRESET NAME [cmake options]: configures and builds build/NAME
    local preset=$1 name=$2
    shift 2
    cmake --preset "$preset" -B "build/$name" "$@" >"build/$name-configure.log" 2>&1 || {
        cat "build/$name-configure.log"
        return 1
    }
    cmake --build "build/$name" --parallel "$jobs" >"build/$name-build.log" 2>&1 || {
        tail -n 60 "build/$name-build.log"
        return 1
    }
    # A newer compiler may know more warnings: in the plain run they are no reason to fail.
    if grep -n 'warning:' "build/$name-build.log" && [ "${strict:-0}" = 1 ]; then
        echo "warnings in build/$name-build.log"
        return 1
    fi
}

tests() { # BUILD_DIRECTORY [ctest options]
    local directory=$1
    shift
    ctest --test-dir "$directory" --parallel "$jobs" --output-on-failure --no-tests=error "$@"
}

multiarch() {
    gcc -print-multiarch
}

stage_release() {
    build release release
    tests build/release
}

stage_asan() { # AddressSanitizer, LeakSanitizer, UndefinedBehaviorSanitizer
    build asan asan
    ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1 UBSAN_OPTIONS=print_stacktrace=1 \
        tests build/asan -E '^(check_|consumers)'
    MHA_ENGINE=fused ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1 \
        tests build/asan -R "$by_engine|$by_engine_long"
}

stage_tsan() { # our code; the BLAS is not instrumented
    build tsan tsan
    local plain=()
    # Addresses beyond what older ThreadSanitizer runtimes know come from a high vm.mmap_rnd_bits.
    if setarch -R true 2>/dev/null; then
        plain=(setarch -R)
    fi
    TSAN_OPTIONS="suppressions=$root/tests/tsan.supp second_deadlock_stack=1 halt_on_error=1" \
        OPENBLAS_NUM_THREADS=1 "${plain[@]}" ctest --test-dir build/tsan --parallel "$jobs" \
        --output-on-failure --no-tests=error -E "$fixed|^test_omp\$|^test_dlopen\$"
    MHA_ENGINE=fused TSAN_OPTIONS="suppressions=$root/tests/tsan.supp second_deadlock_stack=1 halt_on_error=1" \
        OPENBLAS_NUM_THREADS=1 "${plain[@]}" ctest --test-dir build/tsan --parallel "$jobs" \
        --output-on-failure --no-tests=error -R "$by_engine"
    # Left out: libgomp's barriers are not instrumented either, and ThreadSanitizer ends the process when a
    # library that a suppression names is loaded a second time.
}

stage_variants() { # one SONAME, three builds of OpenBLAS, one and four threads of its own
    build release release
    local variant threads directory failures=0
    for variant in pthread openmp serial; do
        directory=/usr/lib/$(multiarch)/openblas-$variant
        LD_LIBRARY_PATH=$directory ldd build/release/libmha.so | grep "openblas-$variant" || {
            echo "$variant: libmha.so does not load it"
            failures=$((failures + 1))
            continue
        }
        for threads in 1 4; do
            echo "--- OpenBLAS $variant, OPENBLAS_NUM_THREADS=$threads"
            LD_LIBRARY_PATH=$directory OPENBLAS_NUM_THREADS=$threads OMP_NUM_THREADS=$threads \
                tests build/release -E "$fixed" || failures=$((failures + 1))
        done
    done
    [ "$failures" -eq 0 ]
}

stage_blis() { # another CBLAS, of which nothing is known but cblas_sgemm (test_blas_confined is about OpenBLAS)
    build release blis -DMHA_BLAS_TARGET=blis
    ldd build/blis/libmha.so | grep libblis
    tests build/blis -E "$built_alike|^test_blas_confined"
}

stage_scipy() { # a newer OpenBLAS with prefixed names
    local python=build/scipy-venv/bin/python
    [ -x "$python" ] || python3 -m venv build/scipy-venv
    "$python" -m pip install --quiet --disable-pip-version-check 'scipy-openblas32==0.3.34.*'
    local lib
    lib=$("$python" -c 'import scipy_openblas32 as s; print(s.get_lib_dir())')
    build release scipy -DMHA_BLAS_PREFIX=scipy_ "-DOpenBLAS_DIR=$lib/cmake/openblas"
    LD_LIBRARY_PATH=$lib ldd build/scipy/libmha.so | grep libscipy_openblas
    LD_LIBRARY_PATH=$lib tests build/scipy -E "$built_alike"
}

stage_coretype() { # OpenBLAS's kernels for other processors, as far as this one can run them
    build release release
    local core failures=0 cores=(Prescott Nehalem Sandybridge Haswell Zen)
    if grep -qw avx512f /proc/cpuinfo; then
        cores+=(SkylakeX)
    fi
    if grep -qw avx512_bf16 /proc/cpuinfo; then
        cores+=(Cooperlake)
    fi
    for core in "${cores[@]}"; do
        echo "--- OPENBLAS_CORETYPE=$core"
        OPENBLAS_CORETYPE=$core tests build/release -E "$fixed|^example_" || failures=$((failures + 1))
    done
    [ "$failures" -eq 0 ]
}

stage_kernels() { # the portable kernels, which define what is correct; asserts alive
    build dev dev
    MHA_KERNELS=ref tests build/dev -E "$fixed"
}

stage_engine() { # the fused engine: all products are our own
    build release release
    MHA_ENGINE=fused tests build/release -E "$fixed|^example_|^test_(io_|safetensors|npy)"
}

stage_outside() { # other people's reading: the ONNX operator's own cases; PyTorch too with MHA_WITH_TORCH=1
    build release release
    bash tests/python/run.sh build/release/libmha.so
}

stage_clang() {
    build clang clang
    tests build/clang -E "$fixed"
}

stage_abi() {
    build release release
    tests build/release -R '^check_'
    bash tests/abi/check_abi.sh
}

stage_consumers() {
    build release release
    python3 tests/consumers/run_consumers.py --source . --build build/release --full
}

stage_packages() { # Debian packages and the archive, their contents against a list
    build release packages -DCMAKE_INSTALL_PREFIX=/usr -DMHA_BUILD_TESTS=OFF -DMHA_BUILD_EXAMPLES=OFF
    bash tests/consumers/check_packages.sh build/packages
}

stage_fuzz() { # a minute a target
    build fuzz fuzz
    local target name found=0 failures=0
    for target in build/fuzz/tests/fuzz/fuzz_*; do
        if [ ! -f "$target" ] || [ ! -x "$target" ]; then
            continue
        fi
        found=$((found + 1))
        name=$(basename "$target")
        mkdir -p "build/fuzz/corpus/$name" "build/fuzz/artifacts"
        echo "--- $name"
        "$target" -max_total_time="${MHA_FUZZ_SECONDS:-60}" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
            -artifact_prefix="build/fuzz/artifacts/$name-" "build/fuzz/corpus/$name" \
            "tests/fuzz/corpus/${name#fuzz_}" 2>&1 | grep -vE '^#[0-9]+|NEW|REDUCE|pulse' || failures=$((failures + 1))
    done
    if [ "$found" -eq 0 ]; then
        echo "no fuzz target was built"
        return 1
    fi
    [ "$failures" -eq 0 ]
}

stage_aarch64() { # cross-compiled, under qemu-user
    bash tools/aarch64_sysroot.sh build/aarch64-sysroot
    export MHA_AARCH64_SYSROOT=$root/build/aarch64-sysroot/sysroot
    build release aarch64 -DCMAKE_TOOLCHAIN_FILE="$root/cmake/toolchain-aarch64.cmake"
    file -L build/aarch64/libmha.so | grep aarch64
    # An emulated CPU: OpenBLAS's kernel for any ARMv8, and its threads off.
    export OPENBLAS_NUM_THREADS=1
    # Left out: test_fork, where qemu-user itself fails (an assertion of its own) when a threaded process's
    # child makes threads; a peak, which says nothing of an emulated CPU; the second run of test_blas_confined,
    # with threads in the BLAS; and tests that start the command by its path, which only an emulated system
    # could. The command is run after them.
    tests build/aarch64 -E "$fixed|^test_(fork|peak|blas_confined_threaded|command|inspect|page)\$"
    local mha=(qemu-aarch64 -L "$MHA_AARCH64_SYSROOT" build/aarch64/tools/mha)
    "${mha[@]}" selftest
    "${mha[@]}" inspect --weights examples/data/minilm_layer0.safetensors --scheme bert \
        --prefix encoder.layer.0.attention. --heads 12 --input examples/data/animal_layer0_input.npy \
        --tokens examples/data/animal_tokens.txt --expect examples/data/animal_layer0_output.npy
}

run_stages() {
    local stage started status=0 passed=() failed=() log
    mkdir -p build
    for stage in "$@"; do
        started=$SECONDS
        echo "=== $stage"
        log=build/stage-$stage.log
        # A process of its own: `set -e` is off inside a function whose status is asked for.
        if "$BASH" "${BASH_SOURCE[0]}" --run "$stage" 2>&1 | tee "$log"; then
            passed+=("$stage")
            echo "PASS $stage ($((SECONDS - started)) s)"
        else
            failed+=("$stage")
            echo "FAIL $stage ($((SECONDS - started)) s), see $log"
            status=1
        fi
    done
    echo
    if [ "${#failed[@]}" -gt 0 ]; then
        echo "failed: ${failed[*]}"
    fi
    echo "stages: ${#passed[@]} passed, ${#failed[@]} failed in $SECONDS s"
    return "$status"
}

case ${1:-} in
"")
    bash tools/setup.sh
    mkdir -p build
    stage_release
    ;;
--all)
    bash tools/setup.sh all
    run_stages "${stages[@]}"
    ;;
--stage)
    shift
    for stage in "$@"; do
        [[ " ${stages[*]} " == *" $stage "* ]] || { echo "no stage $stage; there are: ${stages[*]}" >&2; exit 2; }
    done
    bash tools/setup.sh all
    run_stages "$@"
    ;;
--stages)
    printf '%s\n' "${stages[@]}"
    ;;
--run)
    strict=1
    "stage_$2"
    ;;
*)
    sed -n '3,7p' "${BASH_SOURCE[0]}" >&2
    exit 2
    ;;
esac
