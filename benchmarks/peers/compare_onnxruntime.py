#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""libmha's two engines beside onnxruntime and, with --plain, two plain C functions: same tensors, one process,
by turns. Numbers are compared before anything is timed. Writes results/<cpu>/peers.csv and prints a table.

onnxruntime has several operators for the same; each is tried and the fastest is measured. Times are the smallest
of at least five, and of at least half a second of them. Ratios are peer / libmha: above 1 libmha is faster.

Usage: compare_onnxruntime.py BUILD_DIRECTORY RESULTS_DIRECTORY [--plain LIBRARY] [--quick] [--threads 1 2]
       exit status 1 if a peer's numbers differ
"""
import argparse
import ctypes
import os
import pathlib
import sys
import time

# What OpenBLAS reads before anything runs: set or removed, and the process started anew.
WANTED = {"OPENBLAS_NUM_THREADS": "1", "OPENBLAS_CORETYPE": None, "OPENBLAS_L2_SIZE": None,
          "MHA_KERNELS": None, "MHA_ENGINE": None, "MHA_NUM_THREADS": None}  # fmt: skip
if any(os.environ.get(name) != value for name, value in WANTED.items()):
    clean = {name: value for name, value in os.environ.items() if name not in WANTED}
    clean |= {name: value for name, value in WANTED.items() if value is not None}
    os.execve(sys.executable, [sys.executable, *sys.argv], clean)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import numpy as np
import onnx
import onnx_graphs
import onnxruntime
import result_file
import timed_library

HEADS, SIZE = 8, 64
ENGINES = ("blas", "fused")
LEAST_RUNS, LEAST_SECONDS, MOST_ROUNDS = 5, 0.5, 40
TURN_SECONDS = 0.05
# Waiting threads of the one before go on spinning for a while.
PAUSE_SECONDS = 0.03
EPSILON = 2.0**-24
COLUMNS = (
    "figure", "shape", "threads", "peer", "blas_ms_min", "fused_ms_min", "peer_ms_min", "ratio_blas", "ratio_fused",
    "blas_gflops", "fused_gflops", "peer_gflops", "runs", "difference", "bound",
)  # fmt: skip


def turn(run, seconds):
    """One turn: its caches come back in a run that is not counted, then timings."""
    time.sleep(PAUSE_SECONDS)
    begin = time.perf_counter()
    run()
    first = time.perf_counter() - begin
    if first > 4 * TURN_SECONDS:  # so long that it is a timing like any other
        seconds.append(first)
        return
    spent = 0.0
    while spent < TURN_SECONDS:
        begin = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - begin)
        spent += seconds[-1]


def by_turns(runs):
    """The timings of each function, A B C A B C …"""
    seconds = [[] for _ in runs]
    for _ in range(MOST_ROUNDS):
        for run, its in zip(runs, seconds):
            turn(run, its)
        if all(len(its) >= LEAST_RUNS and sum(its) >= LEAST_SECONDS for its in seconds):
            break
    return seconds


def fastest(runs):
    """The name of the fastest of some functions by name, from a few rounds."""
    best = {name: float("inf") for name in runs}
    for _ in range(3):
        for name, run in runs.items():
            its = []
            turn(run, its)
            best[name] = min(best[name], *its)
    return min(best, key=best.get)


def core_bound(q, k, v):
    """How far two float32 results may be apart: twice 8 * 2^-24 * (A + log2 S + 4) * max|v|, A the largest
    scale * sum |q_d k_d|."""
    scale, largest = SIZE**-0.5, 0.0
    for h in range(HEADS):
        part = slice(h * SIZE, (h + 1) * SIZE)
        largest = max(largest, float((np.abs(q[0, :, part]) @ np.abs(k[0, :, part]).T).max()) * scale)
    return 2 * 8 * EPSILON * (largest + np.log2(k.shape[1]) + 4) * float(np.abs(v).max())


class Measurement:
    def __init__(self, library, plain):
        self.library, self.plain, self.rows, self.differs = library, plain, [], False
        self.random = np.random.default_rng(1)

    def draw(self, *shape):
        return self.random.uniform(-1, 1, shape).astype(np.float32)

    def row(self, figure, shape, threads, peer, runs, outs, bound, flops):
        """runs and outs: blas, fused, peer."""
        for run, out in zip(runs, outs):
            out.fill(np.nan)
            run()
        difference = max(float(np.abs(outs[2] - out).max()) for out in outs[:2])
        if not difference <= bound:
            print(f"{figure} {shape}: {peer} differs by {difference:.3g}, {bound:.3g} is allowed", file=sys.stderr)
            self.differs = True
            return
        seconds = by_turns(runs)
        best = [min(its) for its in seconds]
        names = (*ENGINES, "peer")
        row = {"figure": figure, "shape": shape, "threads": threads, "peer": peer}
        row |= {f"{name}_ms_min": f"{1e3 * value:.4f}" for name, value in zip(names, best)}
        row |= {f"{name}_gflops": f"{flops / value / 1e9:.1f}" for name, value in zip(names, best)}
        row |= {f"ratio_{name}": f"{best[2] / value:.3f}" for name, value in zip(ENGINES, best)}
        row |= {"runs": min(map(len, seconds)), "difference": f"{difference:.2e}", "bound": f"{bound:.2e}"}
        self.rows.append(row)
        print(f"{figure} {shape}, {threads} thread(s), {peer}: {row['ratio_blas']} {row['ratio_fused']}",
              file=sys.stderr)  # fmt: skip

    def onnx_fastest(self, models, inputs, out, threads):
        runs = {}
        for name, model in models.items():
            try:
                runs[name] = onnx_graphs.runner(model, inputs, out, threads)
                runs[name]()
            except Exception as failure:  # onnxruntime has no common type for "this I cannot"
                runs.pop(name, None)
                print(f"onnxruntime without {name}: {str(failure).splitlines()[0]}", file=sys.stderr)
        name = fastest(runs)
        return f"onnxruntime: {name}", runs[name]

    def core(self, T, causal, threads, with_plain):
        q, k, v = (self.draw(1, T, HEADS * SIZE) for _ in range(3))
        outs = [np.empty_like(q) for _ in range(3)]
        shape = f"b1_t{T}_s{T}_h{HEADS}_d{SIZE}" + ("_causal" if causal else "")
        flops = 4.0 * HEADS * T * T * SIZE * (0.5 if causal else 1.0)
        ours = [
            self.library.forward(q, k, v, out, HEADS, engine, threads, causal)
            for engine, out in zip(ENGINES, outs)
        ]
        models = onnx_graphs.core_models(list(q.shape), HEADS, causal)
        peers = [self.onnx_fastest(models, {"q": q, "k": k, "v": v}, outs[2], threads)]
        if self.plain is not None and with_plain:
            scratch = np.zeros((T, T), np.float32)
            for name, what in (("loops", "plain C loops"), ("sgemm", "whole cblas_sgemm products a head")):
                peers.append((what, self.plain_run(name, q, k, v, outs[2], scratch, causal)))
        for peer, run in peers:
            figure = "causal" if causal else "core"
            self.row(figure, shape, threads, peer, [*ours, run], outs, core_bound(q, k, v), flops)

    def plain_run(self, name, q, k, v, out, scratch, causal):
        function = getattr(self.plain, f"plain_attention_{name}")
        sizes = [ctypes.c_int64(size) for size in (1, q.shape[1], HEADS, SIZE)]
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in (q, k, v, out, scratch)]
        return lambda: function(*sizes, ctypes.c_int32(causal), *pointers)

    def layer(self, T, threads):
        E = HEADS * SIZE
        x = self.draw(1, T, E)
        limit = np.float32((3.0 / E) ** 0.5)
        parameters = {f"{name}_weight": self.draw(E, E) * limit for name in ("q", "k", "v", "out")}
        parameters |= {f"{name}_bias": self.draw(E) for name in ("q", "k", "v", "out")}
        outs = [np.empty_like(x) for _ in range(3)]
        ours = [
            self.library.forward(x, x, x, out, HEADS, engine, threads, parameters=parameters)
            for engine, out in zip(ENGINES, outs)
        ]
        models = onnx_graphs.layer_models(list(x.shape), HEADS, parameters)
        peer, run = self.onnx_fastest(models, {"x": x}, outs[2], threads)
        ours[0]()
        # Rounding of three products in a row, far below a wrong bias or head.
        bound = 1e-4 * float(np.abs(outs[0]).max())
        flops = 4.0 * T * T * E + 8.0 * T * E * E
        self.row("layer", f"b1_t{T}_s{T}_h{HEADS}_d{SIZE}", threads, peer, [*ours, run], outs, bound, flops)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build")
    parser.add_argument("results")
    parser.add_argument("--plain", metavar="LIBRARY")
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    arguments = parser.parse_args()
    library = timed_library.Library(pathlib.Path(arguments.build).resolve() / "libmha.so")
    plain = ctypes.CDLL(str(pathlib.Path(arguments.plain).resolve())) if arguments.plain else None
    measurement = Measurement(library, plain)
    tokens = (128, 256) if arguments.quick else (128, 512, 1024, 2048, 4096)
    for threads in arguments.threads:
        for T in tokens:
            for causal in (False, True):
                # Loops of a second and more say nothing that shorter ones do not.
                measurement.core(T, causal, threads, with_plain=threads == 1 and T <= 1024)
        for T in tokens[1:]:
            measurement.layer(T, threads)
    more = [("peers", f"onnxruntime {onnxruntime.__version__} (graphs by onnx {onnx.__version__}, "
             "io binding, the threads of the row)")]  # fmt: skip
    if plain is not None:
        more.append(("plain", os.environ.get("PLAIN_FLAGS", "flags unknown")))
    order = {"core": 0, "causal": 1, "layer": 2}
    measurement.rows.sort(key=lambda row: (order[row["figure"]], row["peer"].split(":")[0], row["threads"]))
    path = result_file.directory(arguments.results) / "peers.csv"
    result_file.write(path, result_file.header(arguments.build, more), COLUMNS, measurement.rows)
    result_file.print_table(COLUMNS[:10] + ("peer_gflops",), measurement.rows)
    print(path)
    sys.exit(1 if measurement.differs else 0)


if __name__ == "__main__":
    main()
