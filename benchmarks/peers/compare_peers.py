#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""libmha's two engines beside other libraries: same tensors, same CPUs, same number of threads, by turns in one
process. Numbers are compared before anything is timed. Writes results/<cpu>/peers.csv and prints a summary.

Ratios are peer / libmha: above 1 libmha is faster.

Usage: compare_peers.py BUILD_DIRECTORY RESULTS_DIRECTORY [options]      exit status 1 if a peer's numbers differ
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import measure_peers
import peer_case
import peers_summary
import result_file

# What OpenBLAS and libmha read before anything runs.
WANTED = {"OPENBLAS_NUM_THREADS": "1"}
REMOVED = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "MHA_KERNELS", "MHA_ENGINE", "MHA_NUM_THREADS")
COLUMNS = (
    "figure", "shape", "threads", "peer", "how", "best", "blas_ms_min", "fused_ms_min", "peer_ms_min", "ratio_blas",
    "ratio_fused", "unit", "blas_rate", "fused_rate", "peer_rate", "runs", "difference", "bound",
)  # fmt: skip


def names(known):
    def parse(text):
        chosen = text.split(",")
        for name in chosen:
            if name not in known:
                raise argparse.ArgumentTypeError(f"{name} is none of {', '.join(known)}")
        return chosen

    return parse


def measured(arguments, threads, seconds):
    """(versions by peer, rows, do all agree) of a process with that many threads."""
    library = pathlib.Path(arguments.build).resolve() / "libmha.so"
    command = [sys.executable, HERE / "measure_peers.py", library, threads, seconds]
    command += [",".join(arguments.only), ",".join(arguments.peers), arguments.tokens]
    command += ["--quick"] if arguments.quick else []
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode not in (0, 1) or not done.stdout:
        sys.exit(f"measure_peers.py failed with status {done.returncode}")
    versions, *rows = map(json.loads, done.stdout.splitlines())
    return versions, rows, done.returncode == 0


def added(path, facts, rows):
    """The rows of a file of the same conditions that are not measured anew, and the new ones."""
    before, kept = result_file.read(path)
    for name, value in facts:
        if name != "date" and before.get(name, value) != value:
            sys.exit(f"{path}: other {name}: {before[name]}, now {value}")
    key = ("figure", "shape", "threads", "peer")
    new = {tuple(str(row[name]) for name in key) for row in rows}
    facts = facts + [(name, value) for name, value in before.items() if name not in dict(facts)]
    return facts, [row for row in kept if tuple(row[name] for name in key) not in new] + rows


def place(row):
    """Where a row stands in the file."""
    figure = row["figure"]
    shapes = [case.shape for cases in (peer_case.FIGURES, peer_case.QUICK) for case in cases[figure]]
    peer = list(measure_peers.PEERS).index(row["peer"])
    return list(peer_case.FIGURES).index(figure), int(row["threads"]), peer, shapes.index(row["shape"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build")
    parser.add_argument("results")
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    parser.add_argument("--only", type=names(peer_case.FIGURES), default=list(peer_case.FIGURES), metavar="FIGURES")
    parser.add_argument("--peers", type=names(measure_peers.PEERS), default=["onnxruntime", "openvino"])
    parser.add_argument("--tokens", default="all", metavar="N[,N]", help="only cases of that many keys")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--seconds", type=float, default=4.0, help="for all timings of a row together")
    parser.add_argument("--add", action="store_true", help="to the rows of an earlier run under the same conditions")
    arguments = parser.parse_args()
    seconds = 1.0 if arguments.quick else arguments.seconds
    for name in REMOVED:
        os.environ.pop(name, None)
    os.environ.update(WANTED)
    versions, rows, agree = {}, [], True
    for threads in arguments.threads:
        if threads > len(os.sched_getaffinity(0)):
            sys.exit(f"{threads} threads, but {len(os.sched_getaffinity(0))} CPUs to use")
        its_versions, its_rows, its_agree = measured(arguments, threads, seconds)
        versions |= its_versions
        rows += its_rows
        agree = agree and its_agree
    facts = result_file.header(arguments.build, [(f"peer {name}", value) for name, value in versions.items()])
    path = result_file.directory(arguments.results) / "peers.csv"
    if arguments.add and path.exists():
        facts, rows = added(path, facts, rows)
    rows.sort(key=place)
    result_file.write(path, facts, COLUMNS, rows)
    result_file.print_table(COLUMNS[:6] + COLUMNS[9:15], rows)
    print()
    peers_summary.print_summary(rows)
    print(path)
    sys.exit(0 if agree else 1)


if __name__ == "__main__":
    main()
