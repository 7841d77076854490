#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fetches OpenBLAS, cmocka, jansson and the C library for arm64 into a directory, for cross-compiling and for
# qemu-user. apt works in a root of its own there: the machine's packages and architectures stay as they are.
#
# Usage: aarch64_sysroot.sh DIRECTORY
set -euo pipefail
root=$(realpath -m "$1")
sysroot=$root/sysroot
if [ -e "$root/complete" ]; then
    exit 0
fi
mkdir -p "$root"/{lists/partial,cache/archives/partial,state,sources} "$sysroot"
: >"$root/status"

# The distribution's own sources. Ubuntu keeps its ports on another host.
for file in /etc/apt/sources.list /etc/apt/sources.list.d/*; do
    [ -f "$file" ] || continue
    if grep -qE 'debian-archive-keyring|ubuntu-archive-keyring|debian\.org|ubuntu\.com' "$file"; then
        sed -E -e 's#//([a-z]+\.)?(archive|security)\.ubuntu\.com/ubuntu/?#//ports.ubuntu.com/ubuntu-ports/#' \
            -e 's/^Architectures:.*/Architectures: arm64/' "$file" >"$root/sources/$(basename "$file")"
    fi
done

apt_private() {
    apt-get -qq -o Dir::State="$root/state" -o Dir::State::lists="$root/lists" \
        -o Dir::State::status="$root/status" -o Dir::Cache="$root/cache" \
        -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$root/sources" \
        -o Dir::Etc::preferences=/dev/null -o Dir::Etc::preferencesparts=/dev/null \
        -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User=root \
        -o APT::Install-Recommends=false -o Debug::NoLocking=true "$@"
}
apt_private update
apt_private --yes --download-only install libopenblas-dev libcmocka-dev libjansson-dev libc6-dev libgomp1
for package in "$root"/cache/archives/*.deb; do
    dpkg -x "$package" "$sysroot"
done

# What the packages' installation scripts would have linked.
lib=$sysroot/usr/lib/aarch64-linux-gnu
for file in "$lib"/openblas-pthread/libopenblas.so*; do
    ln -sf "openblas-pthread/$(basename "$file")" "$lib/$(basename "$file")"
done
mkdir -p "$lib/pkgconfig"
ln -sf ../openblas-pthread/pkgconfig/openblas.pc "$lib/pkgconfig/openblas.pc"
# Merged /usr: the packages rely on /lib being a link.
if [ -d "$sysroot/lib" ] && [ ! -L "$sysroot/lib" ]; then
    cp -a "$sysroot/lib/." "$sysroot/usr/lib/"
    rm -r "${sysroot:?}/lib"
fi
ln -sfn usr/lib "$sysroot/lib"
rm -rf "$root/cache" "$root/lists" "$root/state"
touch "$root/complete"
