#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing for building and testing libmha, with apt (Debian 12 or later, Ubuntu 24.04 or
# later). Nothing that is there is touched or upgraded; with nothing missing no package tool is called.
#
# Usage: setup.sh [all]      all: also what tools/test.sh --all needs
set -euo pipefail

have_package() {
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# want COMMAND PACKAGE: the package is missing if the command is. want - PACKAGE: if it is not installed.
missing=()
want() {
    if [ "$1" = - ]; then
        have_package "$2" || missing+=("$2")
    elif ! command -v "$1" >/dev/null; then
        missing+=("$2")
    fi
}

install_missing() {
    if [ "${#missing[@]}" -eq 0 ]; then
        return 0
    fi
    if ! command -v apt-get >/dev/null; then
        echo "setup: missing, and there is no apt-get here: ${missing[*]}" >&2
        exit 1
    fi
    local root=()
    if [ "$(id -u)" -ne 0 ]; then
        if ! command -v sudo >/dev/null; then
            echo "setup: please install, as root: apt-get install ${missing[*]}" >&2
            exit 1
        fi
        echo "setup: these packages are missing and need root to be installed: ${missing[*]}"
        root=(sudo)
    fi
    echo "setup: installing ${missing[*]}"
    "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq update
    "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-upgrade \
        --no-install-recommends "${missing[@]}" >/dev/null
    missing=()
}

if ! command -v dpkg-query >/dev/null; then
    echo "setup: no dpkg here, so nothing is checked; see CONTRIBUTING.md for what is needed" >&2
    exit 0
fi

want gcc gcc
want g++ g++
want make make
want cmake cmake
want ninja ninja-build
want pkg-config pkg-config
want python3 python3
want - libc6-dev
want - libopenblas-dev
want - libcmocka-dev
want - libjansson-dev
if [ "${1:-}" = all ]; then
    want clang clang
    want meson meson
    want abidiff abigail-tools
    want luajit luajit
    want qemu-aarch64 qemu-user
    want aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu
    want dpkg-shlibdeps dpkg-dev
    want setarch util-linux
    want file file
    want - ca-certificates
    want - libc6-dev-arm64-cross
    want - libopenblas0-openmp
    want - libopenblas0-serial
    want - libblis-dev
    want - python3-venv
    python3 -c 'import cffi' 2>/dev/null || want - python3-cffi
fi
install_missing

if [ "${1:-}" = all ]; then
    # Clang's sanitizer and fuzzer runtimes are a package of its version.
    version=$(clang -dumpversion | cut -d. -f1)
    if [ ! -e "$(clang -print-file-name=libclang_rt.fuzzer-x86_64.a)" ] &&
        [ ! -e "$(clang -print-resource-dir)/lib/linux/libclang_rt.fuzzer-$(uname -m).a" ]; then
        want - "libclang-rt-$version-dev"
    fi
    install_missing
fi
