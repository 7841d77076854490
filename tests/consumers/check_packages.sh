#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the Debian packages and the archive of a build configured with CMAKE_INSTALL_PREFIX=/usr, compares
# their contents with a list, and builds and runs a consumer against them (unpacked, not installed).
#
# Usage: check_packages.sh BUILD_DIRECTORY [--write]
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

for generator in DEB TGZ; do
    cpack -G "$generator" --config "$build/CPackConfig.cmake" -B "$work/out" >"cpack-$generator.log" 2>&1 || {
        cat "cpack-$generator.log" >&2
        exit 1
    }
done
triplet=$(gcc -print-multiarch)
version=$(sed -n 's/^CPACK_PACKAGE_VERSION "*\([^")]*\).*/\1/p; s/^set(CPACK_PACKAGE_VERSION "\(.*\)")/\1/p' \
    "$build/CPackConfig.cmake" | head -n 1)

# Contents, with what depends on machine and version replaced.
for package in out/*.deb; do
    name=$(dpkg-deb -f "$package" Package)
    dpkg-deb -c "$package" | awk -v name="$name" '$1 !~ /^d/ { sub(/^\./, "", $6); print name ": " $6 }'
done | sed "s#/$triplet/#/TRIPLET/#; s#\.so\.$version#.so.VERSION#" | LC_ALL=C sort >contents
if [ "${2:-}" = --write ]; then
    cp contents "$here/packages"
fi
diff -u "$here/packages" contents
for package in out/*.deb; do
    echo "$(dpkg-deb -f "$package" Package): depends on $(dpkg-deb -f "$package" Depends)"
done | tee depends
grep -q '^libmha[0-9.]*: .*openblas' depends
grep -q '^libmha-io[0-9.]*: .*libmha[0-9]' depends
grep -q '^libmha-dev: .*libmha[0-9.]* (= ' depends
for package in out/*.deb; do
    dpkg-deb -x "$package" root
done
if command -v lintian >/dev/null; then
    lintian --no-tag-display-limit out/*.deb || true
fi

cmake -S "$here/find_package" -B consumer -DCMAKE_PREFIX_PATH="$work/root/usr" -DCONSUMER_IO=ON >configure.log
cmake --build consumer >build.log
LD_LIBRARY_PATH=$work/root/usr/lib/$triplet ctest --test-dir consumer --no-tests=error --output-on-failure
mkdir unpacked
tar -xzf out/*.tar.gz -C unpacked --strip-components 1
test -n "$(find unpacked -name libmha.so)"
echo "packages: as listed"
