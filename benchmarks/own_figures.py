#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns reports of `mha bench --json` into results/<cpu>/own.csv and prints them. run_own.sh calls it.

Usage: own_figures.py ROWS BUILD_DIRECTORY RESULTS_DIRECTORY
       ROWS: JSON texts one after another, the name of a figure and then its report
"""
import json
import pathlib
import sys

import result_file

COLUMNS = (
    "figure", "shape", "what", "engine", "threads", "with", "against", "ms_min", "ms_median", "repetitions",
    "other_ms_min", "ratio", "work_share", "visible_share", "gflops", "peak_gflops", "share",
    "workspace_mib", "packed_mib", "algorithm",
)  # fmt: skip
PRINTED = (
    "figure", "shape", "what", "engine", "threads", "with", "against", "ms_min", "gflops", "share", "ratio",
    "work_share", "workspace_mib",
)  # fmt: skip


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
        "share": (report["share"], 3),
        "workspace_mib": (report["workspace_bytes"] / 2**20, 2),
        "packed_mib": (report["packed_bytes"] / 2**20, 2),
    }
    result = {name: "" if value is None else f"{value:.{digits}f}" for name, (value, digits) in numbers.items()}
    for name in ("shape", "what", "engine", "threads", "repetitions", "algorithm"):
        result[name] = report[name]
    result["figure"] = figure
    result["with"] = report.get("with", "")
    result["against"] = report.get("against", "")
    return result


def main():
    rows_path, build, results = sys.argv[1:]
    values = list(texts(pathlib.Path(rows_path).read_text(encoding="utf-8")))
    rows = [row(figure, report) for figure, report in zip(values[::2], values[1::2])]
    rows.sort(key=lambda one: one["figure"])  # stable: within a figure as measured
    path = result_file.directory(results) / "own.csv"
    result_file.write(path, result_file.header(build), COLUMNS, rows)
    result_file.print_table(PRINTED, rows)
    peaks = [float(one["peak_gflops"]) for one in rows]
    print(f"peak of one core: {min(peaks)} to {max(peaks)} GFLOP/s", end="")
    print("; more than 5 % apart: the machine was not idle" if max(peaks) > 1.05 * min(peaks) else "")
    print(path)


if __name__ == "__main__":
    main()
