#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns reports of `mha bench --json` into results/<cpu>/own.csv and curve.csv and prints them. run_own.sh calls it.

Usage: own_figures.py ROWS BUILD_DIRECTORY RESULTS_DIRECTORY
       ROWS: JSON texts one after another, the name of a figure and then its report, or an array of them
"""
import itertools
import json
import pathlib
import re
import sys

import result_file

PARTS = ("projections", "packing", "scores", "softmax", "values", "other", "idle")
COLUMNS = (
    "figure", "shape", "what", "engine", "threads", "with", "against", "ms_min", "ms_median", "repetitions",
    "other_ms_min", "ratio", "work_share", "visible_share", "gflops", "peak_gflops", "share",
    "tensor_mib", "workspace_mib", "packed_mib", "algorithm", "layout", "kv_gb_per_s", "read_gb_per_s", "read_share",
    *(f"{part}_share" for part in PARTS),
)  # fmt: skip
# What is worth seeing of a figure, beside shape, engine and threads.
PRINTED = {
    "growth": ("against", "ms_min", "ratio", "growth"),
    "heads": ("what", "against", "ms_min", "ratio"),
    "memory": ("ms_min", "workspace_mib", "packed_mib"),
    "options": ("with", "ms_min", "ratio", "work_share"),
    "profile": ("what", "ms_min", *(f"{part}_share" for part in PARTS)),
    "start": ("us_min", "us_median"),
    "token": ("layout", "ms_min", "kv_gb_per_s", "read_gb_per_s", "read_share"),
}
PRINTED_ELSE = ("ms_min", "ms_median", "gflops", "share")
CURVE_COLUMNS = ("figure", "t", "engine", "threads", "ms_min", "ms_median", "repetitions", "gflops", "peak_gflops", "share")
CURVE_PRINTED = (1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256, 300)


def texts(text):
    """The JSON values of a text, one after another."""
    decoder, at = json.JSONDecoder(), 0
    while at < len(text):
        value, end = decoder.raw_decode(text, at)
        yield value
        at = end
        while at < len(text) and text[at].isspace():
            at += 1


def row(figure, report):
    other = "against" if "against" in report else "plain"
    numbers = {
        "ms_min": (report["ms_min"], 4),
        "ms_median": (report["ms_median"], 4),
        "other_ms_min": (report.get(f"{other}_ms_min"), 4),
        "ratio": (report.get("ratio"), 4),
        "work_share": (report.get("work_share"), 4),
        "visible_share": (report["visible_share"], 4),
        "gflops": (report["gflops"], 2),
        "peak_gflops": (report["peak_gflops"], 1),
        "tensor_mib": (report["tensor_bytes"] / 2**20, 4),
        "kv_gb_per_s": (report.get("kv_gb_per_s"), 2),
        "read_gb_per_s": (report.get("read_gb_per_s"), 2),
        "read_share": (report.get("read_share"), 3),
        "share": (report["share"], 4),
        "workspace_mib": (report["workspace_bytes"] / 2**20, 2),
        "packed_mib": (report["packed_bytes"] / 2**20, 2),
    }
    numbers |= {f"{part}_share": (report.get(f"{part}_share"), 4) for part in PARTS}
    result = {name: "" if value is None else f"{value:.{digits}f}" for name, (value, digits) in numbers.items()}
    for name in ("shape", "what", "engine", "threads", "repetitions", "algorithm"):
        result[name] = report[name]
    result["figure"] = figure
    result["with"] = report.get("with", "")
    result["against"] = report.get("against", "")
    # Only where it differs from what it always was: rows of older files stay the same rows.
    result["layout"] = "" if report["layout"] == "token-major" else report["layout"]
    return result


def curve_row(one):
    return one | {"t": re.search(r"_t(\d+)_", one["shape"])[1]}


def print_figure(figure, rows):
    print(f"--- {figure}")
    for one in rows:
        if figure == "growth":  # time over operations, compared with the shorter shape: 1 is as it should be
            one["growth"] = f"{float(one['ratio']) / float(one['work_share']):.3f}"
        if figure == "start":
            one |= {f"us_{name}": f"{1e3 * float(one['ms_' + name]):.2f}" for name in ("min", "median")}
    result_file.print_table(("shape", "engine", "threads", *PRINTED.get(figure, PRINTED_ELSE)), rows)


def main():
    rows_path, build, results = sys.argv[1:]
    values = list(texts(pathlib.Path(rows_path).read_text(encoding="utf-8")))
    rows = [
        row(figure, report)
        for figure, reports in zip(values[::2], values[1::2])
        for report in (reports if isinstance(reports, list) else [reports])
    ]
    rows.sort(key=lambda one: one["figure"])  # stable: within a figure as measured
    curve = [curve_row(one) for one in rows if one["figure"] == "curve"]
    rows = [one for one in rows if one["figure"] != "curve"]
    header, directory = result_file.header(build), result_file.directory(results)
    result_file.write(directory / "own.csv", header, COLUMNS, rows)
    result_file.write(directory / "curve.csv", header, CURVE_COLUMNS, curve)
    for figure, of_figure in itertools.groupby(rows, lambda one: one["figure"]):
        print_figure(figure, [dict(one) for one in of_figure])
    print("--- curve")
    result_file.print_table(CURVE_COLUMNS, [one for one in curve if int(one["t"]) in CURVE_PRINTED])
    peaks = [float(one["peak_gflops"]) for one in rows]
    print(f"peak of one core: {min(peaks)} to {max(peaks)} GFLOP/s", end="")
    print("; more than 5 % apart: the machine was not idle" if max(peaks) > 1.05 * min(peaks) else "")
    print(directory)


if __name__ == "__main__":
    main()
