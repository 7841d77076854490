# SPDX-License-Identifier: Apache-2.0
# Cross-compiling for 64-bit ARM with Debian's or Ubuntu's gcc-aarch64-linux-gnu; what is built runs under
# qemu-user. MHA_AARCH64_SYSROOT is a directory filled by tools/aarch64_sysroot.sh (its sysroot/).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(MHA_AARCH64_SYSROOT "$ENV{MHA_AARCH64_SYSROOT}" CACHE PATH "Root of arm64 libraries")
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES MHA_AARCH64_SYSROOT)

set(CMAKE_SYSROOT "${MHA_AARCH64_SYSROOT}")
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH "${MHA_AARCH64_SYSROOT}")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(CMAKE_CROSSCOMPILING_EMULATOR "qemu-aarch64;-L;${MHA_AARCH64_SYSROOT}")

# pkg-config reads the sysroot's files alone and puts the sysroot before their paths.
set(ENV{PKG_CONFIG_LIBDIR}
    "${MHA_AARCH64_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${MHA_AARCH64_SYSROOT}/usr/share/pkgconfig")
set(ENV{PKG_CONFIG_SYSROOT_DIR} "${MHA_AARCH64_SYSROOT}")
