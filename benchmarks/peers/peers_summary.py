#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the rows of peers.csv say: for each figure and number of threads, libmha beside the best peer of each row and
beside every peer. Ratios are peer / libmha: above 1 libmha is faster; min is the row where libmha does worst.

Usage: peers_summary.py PEERS_CSV
"""
import collections
import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import result_file

COLUMNS = ("figure", "threads", "beside", "rows", "blas min", "blas mean", "fused min", "fused mean", "either mean")


def _geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def _line(figure, threads, beside, rows):
    line = {"figure": figure, "threads": threads, "beside": beside, "rows": len(rows)}
    ratios = {engine: [float(row[f"ratio_{engine}"]) for row in rows] for engine in ("blas", "fused")}
    for engine, values in ratios.items():
        line[f"{engine} min"] = f"{min(values):.2f}"
        line[f"{engine} mean"] = f"{_geometric_mean(values):.2f}"
    line["either mean"] = f"{_geometric_mean(list(map(max, *ratios.values()))):.2f}"
    return line


def print_summary(rows):
    """Rows as dicts, with numbers or texts. The means are geometric; `either` takes the faster engine of each row."""
    groups = collections.defaultdict(list)
    for row in rows:
        groups[row["figure"], str(row["threads"])].append(row)
    lines = []
    for (figure, threads), its in groups.items():
        best = [row for row in its if int(row["best"])]
        if best:
            counts = collections.Counter(row["peer"] for row in best)
            names = ", ".join(f"{name} {count}" for name, count in counts.most_common())
            lines.append(_line(figure, threads, f"the best of each row ({names})", best))
        for peer in dict.fromkeys(row["peer"] for row in its):
            lines.append(_line(figure, threads, peer, [row for row in its if row["peer"] == peer]))
    result_file.print_table(COLUMNS, lines)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__.strip().splitlines()[-1])
    print_summary(result_file.read(sys.argv[1])[1])
