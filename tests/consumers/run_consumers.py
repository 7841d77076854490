#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Strangers' projects against the installed library.

Usage: run_consumers.py --source DIR --build DIR [--work DIR] [--full] [--only TEXT]

Installs an existing Release build (no rebuild) and consumes it: find_package in C and C++, shared and static,
pkg-config shared and static, mha::io, a prefix with a space, a moved prefix, requests that must fail.
--full adds what has to be configured anew: sub-project, FetchContent, ExternalProject, only-shared and
only-static installs, an absolute libdir, DESTDIR, source and build directories with a space, Meson, name
clashes, a BLAS without CBLAS.
"""
import argparse
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile

CASES = []


def case(full=False, needs=()):
    def register(function):
        CASES.append((function, full, needs))
        return function
    return register


class Failure(Exception):
    pass


def run(*command, env=None, cwd=None, fail=False):
    """Runs a command; its output is shown only if it does not end as it should."""
    merged = dict(os.environ, **(env or {}))
    result = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            text=True, env=merged, cwd=cwd)
    if (result.returncode != 0) != fail:
        raise Failure(f"$ {shlex.join(map(str, command))}\nended with {result.returncode}\n{result.stdout}")
    return result.stdout


def demand(condition, text):
    if not condition:
        raise Failure(text)


class Bench:
    """Directories and the steps that several cases share."""

    def __init__(self, source, build, work):
        self.source, self.build, self.work = source, build, work
        self.projects = source / "tests/consumers"
        self.counter = 0

    def fresh(self, name):
        self.counter += 1
        return self.work / f"{self.counter:02d} {name}"

    def install(self, name, build=None, env=None):
        """An install of build in a prefix with a space in its name."""
        prefix = self.fresh(name) / "a b" / "p"
        run("cmake", "--install", build or self.build, "--prefix", prefix, env=env)
        return prefix

    def configure(self, name, *options, source=None):
        """Another build of libmha alone, without tests."""
        build = self.fresh(name)
        run("cmake", "-S", source or self.source, "-B", build, "-G", "Ninja", "-DMHA_BUILD_TESTS=OFF",
            "-DMHA_BUILD_TOOLS=OFF", "-DMHA_BUILD_EXAMPLES=OFF", *options)
        run("cmake", "--build", build, "-j2")
        return build

    def consume(self, prefix, *options, **definitions):
        """The find_package project, configured, built and run."""
        build = self.fresh("consumer")
        defines = [f"-D{key}={value}" for key, value in definitions.items()]
        text = run("cmake", "-S", self.projects / "find_package", "-B", build, "-G", "Ninja",
                   f"-DCMAKE_PREFIX_PATH={prefix}", *defines, *options)
        run("cmake", "--build", build)
        run("ctest", "--test-dir", build, "--no-tests=error", "--output-on-failure")
        return build, text

    def refuse(self, prefix, expected, **definitions):
        build = self.fresh("refused")
        defines = [f"-D{key}={value}" for key, value in definitions.items()]
        text = run("cmake", "-S", self.projects / "find_package", "-B", build, "-G", "Ninja",
                   f"-DCMAKE_PREFIX_PATH={prefix}", *defines, fail=True)
        words = " ".join(text.split())
        demand(expected in words, f"refused, but without saying {expected!r}:\n{text}")

    def pkg_config(self, prefix, *arguments, only=False):
        directory = next(prefix.rglob("mha.pc")).parent
        variable = "PKG_CONFIG_LIBDIR" if only else "PKG_CONFIG_PATH"
        return run("pkg-config", *arguments, env={variable: str(directory)}).strip()

    def shell(self, prefix, command):
        """A shell line as a user types it, with pkg-config pointed at the prefix and a place to write."""
        work = self.fresh("shell")
        work.mkdir(parents=True)
        directory = next(prefix.rglob("mha.pc")).parent
        return run("bash", "-ec", command, cwd=work, env={
            "PKG_CONFIG_PATH": str(directory), "LD_LIBRARY_PATH": str(directory.parent),
            "S": str(self.projects)})


def needed(program):
    return [line.split("[")[1].rstrip("]") for line in run("readelf", "-d", program).splitlines() if "(NEEDED)" in line]


WARN = "-Wall -Wextra -Wpedantic -Wconversion -Werror"


@case()
def find_package_shared(bench):
    prefix = bench.install("shared")
    build, text = bench.consume(prefix, CONSUMER_LANGUAGES="C;CXX", CONSUMER_IO="ON")
    demand("is mha::shared" in text, f"mha::mha is not the shared library by default:\n{text}")
    names = needed(build / "consumer_c")
    demand(any(n.startswith("libmha.so.0.") for n in names), f"consumer needs {names}")
    demand(not any("blas" in n for n in names), f"a shared consumer links the BLAS itself: {names}")


@case()
def find_package_static(bench):
    prefix = bench.install("static")
    build, text = bench.consume(prefix, CONSUMER_LANGUAGES="C;CXX", CONSUMER_COMPONENTS="static;io", CONSUMER_IO="ON")
    demand("is mha::static" in text, text)
    demand(not any("libmha" in n for n in needed(build / "consumer_c")), "a static consumer needs libmha.so")
    bench.consume(prefix, CONSUMER_LANGUAGES="C", mha_SHARED_LIBS="OFF")
    bench.consume(prefix, CONSUMER_LANGUAGES="C", BUILD_SHARED_LIBS="OFF")


@case()
def find_package_one_language(bench):
    prefix = bench.install("one language")
    for kind in ("shared", "static"):
        bench.consume(prefix, CONSUMER_LANGUAGES="C", CONSUMER_COMPONENTS=kind)
        bench.consume(prefix, CONSUMER_LANGUAGES="CXX", CONSUMER_COMPONENTS=kind)
    bench.consume(prefix, CONSUMER_LANGUAGES="C", CONSUMER_TARGET="mha::shared")
    bench.consume(prefix, CONSUMER_LANGUAGES="C", CONSUMER_TARGET="mha::static", CONSUMER_COMPONENTS="static")


@case()
def find_package_refusals(bench):
    prefix = bench.install("refusals")
    bench.refuse(prefix, "compatible with requested version", CONSUMER_VERSION="99")
    bench.refuse(prefix, "compatible with requested version", CONSUMER_VERSION="0.0")
    bench.refuse(prefix, "no component nosuch", CONSUMER_COMPONENTS="nosuch")


@case()
def moved_prefix(bench):
    prefix = bench.install("moved")
    target = bench.fresh("elsewhere") / "deeper" / "new place"
    target.parent.mkdir(parents=True)
    shutil.move(str(prefix), str(target))
    hunt_paths(bench, target, [str(prefix), str(bench.build), str(bench.source)])
    bench.consume(target, CONSUMER_LANGUAGES="C", CONSUMER_IO="ON")
    bench.consume(target, CONSUMER_LANGUAGES="C", CONSUMER_COMPONENTS="static")
    bench.shell(target, f'eval cc -std=c99 {WARN} "$S/consumer_main.c" -o t $(pkg-config --cflags --libs mha); ./t')


def hunt_paths(bench, prefix, unwanted):
    """No installed file may mention a build, source, staging or former directory."""
    for file in prefix.rglob("*"):
        if file.is_file():
            content = file.read_bytes()
            for path in unwanted:
                demand(path.encode() not in content, f"{file} mentions {path}")


@case()
def pkg_config(bench):
    prefix = bench.install("pkg-config")
    # eval: the prefix has a space, pkg-config escapes it once
    bench.shell(prefix, f'eval cc -std=c99 {WARN} "$S/consumer_main.c" -o t $(pkg-config --cflags --libs mha); ./t')
    bench.shell(prefix, f'eval c++ -std=c++17 {WARN} "$S/consumer_cpp.cpp" -o t $(pkg-config --cflags --libs mha); ./t')
    bench.shell(prefix, f'eval cc -std=c99 {WARN} "$S/consumer_io.c" -o t $(pkg-config --cflags --libs mha-io); ./t')
    # for shared users nothing else has to be installed
    bench.pkg_config(prefix, "--exists", "mha", only=True)
    bench.pkg_config(prefix, "--cflags", "--libs", "mha", only=True)
    shared = bench.pkg_config(prefix, "--libs", "mha")
    demand("blas" not in shared, f"shared users get the BLAS: {shared}")
    static = bench.pkg_config(prefix, "--static", "--libs", "mha")
    for flag in ("-lpthread", "-lm"):
        demand(flag in static.split(), f"{flag} is missing: {static}")
    for variable in ("libdir", "includedir"):
        value = bench.pkg_config(prefix, f"--variable={variable}", "mha")
        demand(os.path.isabs(value.replace("\\ ", " ")) and os.path.isdir(value.replace("\\ ", " ")), f"{variable} {value}")
    version = bench.pkg_config(prefix, "--modversion", "mha")
    demand(version.count(".") == 2, version)


@case()
def pkg_config_static(bench):
    prefix = bench.install("pkg-config static")
    next(prefix.rglob("libmha.so")).unlink()  # the linker would prefer it
    next(prefix.rglob("libmha_io.so")).unlink()
    flags = "$(pkg-config --static --cflags --libs mha)"
    for order in (f'{flags} "$S/consumer_main.c"', f'"$S/consumer_main.c" {flags}'):
        # before the source only without --as-needed: an archive there is searched too early
        if order.startswith("$"):
            order = f"-Wl,--no-as-needed -Wl,--undefined=mha_attention {order} $(pkg-config --static --libs mha)"
        bench.shell(prefix, f'eval cc -std=c99 {order} -o t; ./t')
    bench.shell(prefix, f'eval cc -std=c99 "$S/consumer_main.c" -Wl,--as-needed {flags} -o t; ./t')
    bench.shell(prefix, f'eval cc -std=c99 "$S/consumer_io.c" $(pkg-config --static --cflags --libs mha-io) -o t; ./t')


@case()
def name_clashes(bench):
    """A host with common helper names, all of which abort: none of ours may be taken over by them."""
    prefix = bench.install("clashes")
    names = "softmax attention transpose parse_header xmalloc min debug log_error pack project plan forward".split()
    host = bench.fresh("host") / "clash.c"
    host.parent.mkdir(parents=True)
    host.write_text("/* SPDX-License-Identifier: Apache-2.0 */\n#include <stdlib.h>\n" + "".join(
        f"void {name}(void);\nvoid {name}(void)\n{{\n    abort();\n}}\n" for name in names))
    line = f'eval cc -std=c99 -rdynamic "$S/consumer_main.c" {shlex.quote(shlex.quote(str(host)))} -o t'
    bench.shell(prefix, f"{line} $(pkg-config --cflags --libs mha); ./t")
    next(prefix.rglob("libmha.so")).unlink()
    bench.shell(prefix, f"{line} $(pkg-config --static --cflags --libs mha); ./t")


@case(full=True)
def only_shared(bench):
    build = bench.configure("only shared", "-DMHA_BUILD_STATIC=OFF")
    prefix = bench.install("only shared", build)
    demand(not list(prefix.rglob("*.a")), "an archive was installed")
    bench.consume(prefix, CONSUMER_LANGUAGES="C")
    bench.consume(prefix, CONSUMER_LANGUAGES="C", BUILD_SHARED_LIBS="OFF")  # a wish that cannot be met
    bench.refuse(prefix, "installed without its component static", CONSUMER_COMPONENTS="static")
    bench.refuse(prefix, "no static libmha is installed", mha_SHARED_LIBS="OFF")


@case(full=True)
def only_static(bench):
    build = bench.configure("only static", "-DMHA_BUILD_SHARED=OFF")
    prefix = bench.install("only static", build)
    demand(not list(prefix.rglob("*.so*")), "a shared library was installed")
    bench.consume(prefix, CONSUMER_LANGUAGES="C;CXX", CONSUMER_IO="ON")
    bench.refuse(prefix, "installed without its component shared", CONSUMER_COMPONENTS="shared")
    # without --static: there is nothing but the archive, so its libraries stand in Libs
    bench.shell(prefix, 'eval cc -std=c99 "$S/consumer_main.c" -o t $(pkg-config --cflags --libs mha); ./t')
    bench.shell(prefix, 'eval cc -std=c99 "$S/consumer_io.c" -o t $(pkg-config --cflags --libs mha-io); ./t')


@case(full=True)
def without_io(bench):
    build = bench.configure("without io", "-DMHA_BUILD_IO=OFF")
    prefix = bench.install("without io", build)
    demand(not list(prefix.rglob("io.h")) and not list(prefix.rglob("mha-io.pc")), "parts of io were installed")
    bench.consume(prefix, CONSUMER_LANGUAGES="C")
    bench.refuse(prefix, "installed without its component io", CONSUMER_COMPONENTS="io")


@case(full=True)
def library_directories(bench):
    for libdir in ("lib", "lib64", "lib/x86_64-linux-gnu"):
        build = bench.configure(f"libdir {libdir.replace('/', '-')}", f"-DCMAKE_INSTALL_LIBDIR={libdir}", "-DMHA_BUILD_IO=OFF")
        prefix = bench.install("libdir", build)
        demand((prefix / libdir / "libmha.so").exists(), f"no library in {libdir}")
        # CMake does not search lib64 on Debian by itself.
        bench.consume(prefix, CONSUMER_LANGUAGES="C", mha_DIR=prefix / libdir / "cmake/mha")
        bench.shell(prefix, 'eval cc "$S/consumer_main.c" -o t $(pkg-config --cflags --libs mha); ./t')


@case(full=True)
def absolute_libdir_and_destdir(bench):
    root = bench.fresh("absolute")
    staging = bench.fresh("staging")
    libdir = root / "far away" / "lib"
    build = bench.configure("absolute libdir", f"-DCMAKE_INSTALL_LIBDIR={libdir}", f"-DCMAKE_INSTALL_PREFIX={root}/prefix")
    run("cmake", "--install", build, env={"DESTDIR": str(staging)})
    staged = pathlib.Path(f"{staging}{libdir}")
    demand((staged / "libmha.so").exists(), f"DESTDIR: nothing in {staged}")
    demand(not libdir.exists(), "DESTDIR was not obeyed")
    hunt_paths(bench, staging, [str(staging), str(build)])
    shutil.copytree(f"{staging}{root}", root, symlinks=True, dirs_exist_ok=True)  # what a package manager does
    shutil.rmtree(build)
    shutil.rmtree(staging)
    bench.consume(libdir / "cmake/mha", CONSUMER_LANGUAGES="C", mha_DIR=libdir / "cmake/mha")
    bench.consume(libdir / "cmake/mha", CONSUMER_LANGUAGES="C", mha_DIR=libdir / "cmake/mha", CONSUMER_COMPONENTS="static")
    bench.shell(libdir, 'eval cc "$S/consumer_main.c" -o t $(pkg-config --cflags --libs mha); ./t')


@case(full=True)
def directories_with_a_space(bench):
    source = bench.fresh("source") / "my source"
    shutil.copytree(bench.source, source, ignore=shutil.ignore_patterns("build*", ".git", "data", "corpus"))
    build = bench.configure("my build", source=source)
    prefix = bench.install("spaces", build)
    shutil.rmtree(source)
    shutil.rmtree(build)
    bench.consume(prefix, CONSUMER_LANGUAGES="C", CONSUMER_IO="ON")


def subproject(bench, way, *options):
    build = bench.fresh(way)
    run("cmake", "-S", bench.projects / "subproject", "-B", build, "-G", "Ninja", f"-DCONSUMER_WAY={way}",
        f"-DMHA_SOURCE_DIR_GIVEN={bench.source}", *options)
    run("cmake", "--build", build, "-j2")
    run("ctest", "--test-dir", build, "--no-tests=error", "--output-on-failure")
    return build


@case(full=True)
def add_subdirectory(bench):
    build = subproject(bench, "add_subdirectory")
    prefix = bench.fresh("nothing")
    run("cmake", "--install", build, "--prefix", prefix)
    demand(not prefix.exists() or not any(prefix.rglob("*")), "a sub-project installs without being asked")
    subproject(bench, "add_subdirectory", "-DBUILD_SHARED_LIBS=OFF", "-DMHA_BUILD_SHARED=OFF")


@case(full=True)
def fetch_content(bench):
    subproject(bench, "FetchContent")


@case(full=True)
def external_project(bench):
    build = bench.fresh("external")
    run("cmake", "-S", bench.projects / "external", "-B", build, "-G", "Ninja", f"-DMHA_SOURCE_DIR_GIVEN={bench.source}")
    run("cmake", "--build", build)


@case(full=True, needs=("meson",))
def meson(bench):
    prefix = bench.install("meson")
    source = bench.fresh("meson source")
    source.mkdir(parents=True)
    for file in ("meson/meson.build", "consumer_main.c", "consumer_cpp.cpp"):
        shutil.copy(bench.projects / file, source)
    directory = next(prefix.rglob("mha.pc")).parent
    for kind in ("shared", "static"):
        env = {"PKG_CONFIG_PATH": str(directory), "LD_LIBRARY_PATH": str(directory.parent)}
        run("meson", "setup", source / kind, source, f"-Ddefault_library={kind}", env=env)
        run("meson", "test", "-C", source / kind, env=env)


@case(full=True)
def blas_without_cblas(bench):
    """Configure itself says what is missing: no BLAS, one without the C interface, one with 64-bit integers."""
    work = bench.fresh("poor blas")
    work.mkdir(parents=True)
    (work / "fortran.c").write_text("/* SPDX-License-Identifier: Apache-2.0 */\nvoid sgemm_(void);\nvoid sgemm_(void)\n{\n}\n")
    (work / "ilp64.c").write_text(
        "/* SPDX-License-Identifier: Apache-2.0 */\n"
        "void cblas_sgemm(int o, int a, int b, long long m, long long n, long long k, float x, const float *A,\n"
        "                 long long lda, const float *B, long long ldb, float y, float *C, long long ldc);\n"
        "void cblas_sgemm(int o, int a, int b, long long m, long long n, long long k, float x, const float *A,\n"
        "                 long long lda, const float *B, long long ldb, float y, float *C, long long ldc)\n"
        "{\n    (void)o, (void)a, (void)b, (void)m, (void)n, (void)y, (void)ldb, (void)ldc;\n"
        "    if (lda >= k)\n        C[0] = x * A[0] * B[0];\n}\n")
    for name in ("fortran", "ilp64"):
        run("cc", "-shared", "-fPIC", work / f"{name}.c", "-o", work / f"lib{name}.so")

    def refused(name, expected, *options):
        text = run("cmake", "-S", bench.source, "-B", bench.fresh(name), "-G", "Ninja", *options, fail=True)
        words = " ".join(text.split())
        demand(expected in words, f"{name}: not said: {expected!r}\n{text}")

    refused("fortran", "has no cblas_sgemm", f"-DMHA_BLAS_TARGET={work / 'libfortran.so'}")
    refused("ilp64", "64-bit integers (ILP64)", f"-DMHA_BLAS_TARGET={work / 'libilp64.so'}")
    refused("prefix", "set OpenBLAS_DIR", "-DMHA_BLAS_PREFIX=nosuch_", "-DCMAKE_DISABLE_FIND_PACKAGE_OpenBLAS=ON")
    refused("none", "found none", "-DCMAKE_DISABLE_FIND_PACKAGE_PkgConfig=ON",
            "-DCMAKE_DISABLE_FIND_PACKAGE_OpenBLAS=ON", "-DCMAKE_DISABLE_FIND_PACKAGE_BLAS=ON")


@case(full=True)
def ways_to_the_blas(bench):
    """The four ways lead to the same library: by name, pkg-config, CMake package, FindBLAS."""
    for options, word in (
        (["-DMHA_BLAS_TARGET=openblas"], "MHA_BLAS_TARGET"),
        ([], "pkg-config openblas"),
        (["-DCMAKE_DISABLE_FIND_PACKAGE_PkgConfig=ON", "-DMHA_BUILD_IO=OFF"], "CMake package of OpenBLAS"),
        (["-DBLA_VENDOR=OpenBLAS"], "FindBLAS"),
    ):
        text = run("cmake", "-S", bench.source, "-B", bench.fresh("way"), "-G", "Ninja", "-DMHA_BUILD_TESTS=OFF",
                   "-DMHA_BUILD_TOOLS=OFF", "-DMHA_BUILD_EXAMPLES=OFF", *options)
        demand(word in text, f"{options}: not by {word}:\n{text}")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--source", type=pathlib.Path, required=True)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    work = pathlib.Path(tempfile.mkdtemp(prefix="mha consumers ", dir=args.work))
    bench = Bench(args.source.resolve(), args.build.resolve(), work)
    passed, failed, skipped = [], [], []
    try:
        for function, full, needs in CASES:
            name = function.__name__
            if (full and not args.full) or args.only not in name:
                continue
            missing = [program for program in needs if not shutil.which(program)]
            if missing:
                skipped.append(name)
                print(f"SKIP {name}: no {missing[0]}", flush=True)
                continue
            try:
                function(bench)
                passed.append(name)
                print(f"PASS {name}", flush=True)
            except (Failure, OSError, StopIteration) as error:
                failed.append(name)
                print(f"FAIL {name}: {error!s}", flush=True)
    finally:
        shutil.rmtree(work)
    print(f"consumers: {len(passed)} passed, {len(failed)} failed, {len(skipped)} skipped {' '.join(failed)}".rstrip())
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
