# SPDX-License-Identifier: Apache-2.0
"""Result files: a CSV whose first lines, each beginning with "# ", say where and how it was measured."""
import csv
import datetime
import json
import os
import pathlib
import re
import shlex
import subprocess

SOURCE = pathlib.Path(__file__).resolve().parent.parent
# Flags that change code; include paths and warnings do not.
FLAG = re.compile(r"-(O|m|f|std=|DNDEBUG|g)")
# The environment that changes figures is the caller's business; these choose other kernels behind its back.
FORCED = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")


def cpu_model():
    for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return os.uname().machine


def directory(results):
    """results/<cpu model with dashes>, made if it is not there."""
    path = pathlib.Path(results) / (re.sub(r"[^A-Za-z0-9]+", "-", cpu_model()).strip("-") or "unknown")
    path.mkdir(parents=True, exist_ok=True)
    return path


def _output(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout.strip()


def _compiler(build):
    for line in (build / "CMakeCache.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("CMAKE_C_COMPILER:"):
            return _output(line.split("=", 1)[1], "--version").splitlines()[0]
    return "unknown"


def _flags(build, name):
    """The flags that one source was compiled with, as compile_commands.json has them."""
    path = build / "compile_commands.json"
    if not path.exists():
        return "unknown"
    for entry in json.loads(path.read_text(encoding="utf-8")):
        if pathlib.PurePath(entry["file"]).name == name:
            return " ".join(word for word in shlex.split(entry["command"])[1:] if FLAG.match(word))
    return "unknown"


def _commit():
    """git describe; -dirty speaks of everything but result files, which a run itself may renew."""
    git = ("git", "-C", str(SOURCE))
    try:
        name = _output(*git, "describe", "--always", "--tags")
        changed = _output(*git, "status", "--porcelain", "--untracked-files=no", "--", ":!benchmarks/results")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return name + ("-dirty" if changed else "")


def header(build, more=()):
    """The facts of this machine and this build, as (name, value); more is added behind."""
    build = pathlib.Path(build)
    environment = {name: value for name, value in os.environ.items() if name not in FORCED}
    info = json.loads(_output(str(build / "tools" / "mha"), "info", "--json", env=environment))
    kernels = info["kernels"]
    threads = f"OPENBLAS_NUM_THREADS={os.environ.get('OPENBLAS_NUM_THREADS', '')}"
    return [
        ("cpu", f"{cpu_model()}, {len(os.sched_getaffinity(0))} CPUs to use"),
        ("kernels", kernels),
        ("blas", info["blas"]),
        ("blas core", info["blas_core"]),
        ("compiler", _compiler(build)),
        ("flags", _flags(build, "attend.c")),
        ("kernel flags", _flags(build, f"kernels_{kernels}.c")),
        ("threads", f"{threads}; libmha's own are in the rows"),
        ("date", datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")),
        ("commit", _commit()),
        ("libmha", info["version"]),
        *more,
    ]


def write(path, facts, columns, rows):
    with open(path, "w", encoding="utf-8", newline="") as file:
        for name, value in facts:
            file.write(f"# {name}: {value}\n")
        writer = csv.DictWriter(file, columns, restval="", extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def read(path):
    """(facts by name, rows as dicts)"""
    with open(path, encoding="utf-8", newline="") as file:
        lines = file.read().splitlines()
    facts = dict(line[2:].split(": ", 1) for line in lines if line.startswith("# ") and ": " in line)
    return facts, list(csv.DictReader(line for line in lines if not line.startswith("#")))


def print_table(columns, rows):
    """Rows of texts under their columns, numbers to the right."""
    table = [list(columns)] + [[str(row.get(column, "")) for column in columns] for row in rows]
    widths = [max(len(line[i]) for line in table) for i in range(len(columns))]
    for line in table:
        cells = (
            cell.rjust(width) if re.match(r"[-\d.]+$", cell) else cell.ljust(width)
            for cell, width in zip(line, widths)
        )
        print("  ".join(cells).rstrip())
