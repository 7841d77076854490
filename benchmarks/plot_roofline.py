#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws own.csv under the roofs of its machine: operations a second over operations a byte of the tensors.

The level roof is the best FMA peak of one core among the rows, the slopes are the plain reads beside the
one-token rows: the largest set of keys, which comes from memory, and the smallest, which a cache holds. Rows
of one thread only. The same file gives the same bytes.

Usage: plot_roofline.py OWN.csv [ROOFLINE.svg]     default: roofline.svg beside the CSV
       python3 -m venv build/plot-venv && build/plot-venv/bin/pip install -r benchmarks/plot_requirements.txt
"""
import pathlib
import re
import sys

import matplotlib
import result_file

matplotlib.use("svg")
matplotlib.rcParams.update(
    {"svg.hashsalt": "libmha", "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 9}
)

import matplotlib.pyplot as plt  # noqa: E402

# Colours that people with any colour vision tell apart (Okabe and Ito).
FIGURES = {
    "core": ("#0072B2", "core, T = 128 to 16384"),
    "causal": ("#56B4E9", "core, causal"),
    "sizes": ("#CC79A7", "core, D = 32 to 128"),
    "layer": ("#009E73", "layer, E = 512"),
    "token": ("#D55E00", "one token against S keys"),
}
MARKERS = {"blas": "o", "fused": "^"}


def points(rows):
    """(figure, engine, operations a byte, GFLOP/s, row) of one thread."""
    for row in rows:
        if row["figure"] in FIGURES and row["threads"] == "1" and row.get("tensor_mib"):
            gflops = float(row["gflops"])
            operations = gflops * 1e6 * float(row["ms_min"])
            yield row["figure"], row["engine"], operations / (float(row["tensor_mib"]) * 2**20), gflops, row


def reads(rows):
    """(GB/s, MiB) of the plain reads by one thread, fewest bytes first; the best of each size."""
    best = {}
    for row in rows:
        if row["threads"] == "1" and row.get("read_gb_per_s"):
            mib = round(float(row["kv_gb_per_s"]) * 1e6 * float(row["ms_min"]) / 2**20)
            best[mib] = max(best.get(mib, 0.0), float(row["read_gb_per_s"]))
    return [(best[mib], mib) for mib in sorted(best)]


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    source = pathlib.Path(sys.argv[1])
    target = pathlib.Path(sys.argv[2]) if len(sys.argv) == 3 else source.with_name("roofline.svg")
    facts, rows = result_file.read(source)
    of_rows, slopes = list(points(rows)), reads(rows)
    if not of_rows or not slopes:
        sys.exit(f"{source}: no rows of one thread with bytes, or no one-token rows: renew it by run_own.sh")
    peak = max(float(row["peak_gflops"]) for row in rows)
    left = min(x for _, _, x, _, _ in of_rows) / 2
    right = max(x for _, _, x, _, _ in of_rows) * 2
    lowest = min(y for _, _, _, y, _ in of_rows) / 2

    figure, axes = plt.subplots(figsize=(7.2, 4.6), layout="constrained")
    roofs = [(*slopes[-1], "-")] + ([(*slopes[0], "--")] if len(slopes) > 1 else [])
    for rate, mib, style in roofs:
        axes.plot([left, peak / rate], [left * rate, peak], style, color="black", linewidth=1)
        axes.annotate(f"plain read of {mib} MiB: {rate:.1f} GB/s", (left * 1.1, left * 1.1 * rate),
                      xytext=(4, -10 if style == "-" else 6), textcoords="offset points", fontsize=8)  # fmt: skip
    axes.plot([peak / slopes[0][0], right], [peak, peak], "-", color="black", linewidth=1)
    axes.annotate(f"FMA peak of one core: {peak:.1f} GFLOP/s", (right, peak), xytext=(-4, 5),
                  textcoords="offset points", ha="right", fontsize=8)  # fmt: skip
    for name, (colour, label) in FIGURES.items():
        for engine, marker in MARKERS.items():
            mine = [(x, y) for figure_, engine_, x, y, _ in of_rows if (figure_, engine_) == (name, engine)]
            if mine:
                axes.plot(*zip(*mine), marker, color=colour, markersize=5, alpha=0.85, linestyle="none",
                          label=f"{label} ({engine})")  # fmt: skip
    axes.set(xscale="log", yscale="log", xlim=(left, right), ylim=(lowest, peak * 1.8),
             xlabel="operations a byte of inputs, output and parameters", ylabel="GFLOP/s, one thread")  # fmt: skip
    axes.grid(True, which="major", linewidth=0.3)
    axes.legend(fontsize=7, loc="lower right")
    cpu = re.sub(r", \d+ CPUs to use$", "", facts.get("cpu", "unknown CPU"))
    axes.set_title(f"libmha {facts.get('libmha', '')} ({facts.get('commit', '')}) on {cpu}", fontsize=9)
    figure.savefig(target, format="svg", metadata={"Date": None, "Creator": None})
    print(target)


if __name__ == "__main__":
    main()
