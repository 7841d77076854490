#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares two result files of one machine: new time / old time of each row that both have.

Below 1 the new one is faster. Gains of a few per cent need several runs of both, by turns.

Usage: compare.py OLD.csv NEW.csv [--slower PERCENT]
       exit status 1 if PERCENT is given and a row got slower by more
"""
import argparse
import math
import sys

import result_file

KEYS = ("figure", "shape", "t", "what", "engine", "threads", "with", "against", "layout", "peer")
# Conditions that make a comparison worthless where they differ.
CONDITIONS = ("cpu", "kernels", "blas", "blas core", "compiler", "flags", "threads")


def times(rows):
    """{(key, column): ms} of every column that holds a shortest time."""
    return {
        (tuple(row.get(name, "") for name in KEYS), column): float(text)
        for row in rows
        for column, text in row.items()
        if column in ("ms_min", "blas_ms_min", "fused_ms_min") and text
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--slower", type=float, metavar="PERCENT")
    arguments = parser.parse_args()
    (old_facts, old_rows), (new_facts, new_rows) = (result_file.read(p) for p in (arguments.old, arguments.new))
    for name in CONDITIONS:
        if old_facts.get(name) != new_facts.get(name):
            print(f"{name} differs: {old_facts.get(name)} | {new_facts.get(name)}")
    print(f"old {old_facts.get('commit')} of {old_facts.get('date')}, new {new_facts.get('commit')} of "
          f"{new_facts.get('date')}")  # fmt: skip
    old, new = times(old_rows), times(new_rows)
    both = [key for key in old if key in new]
    if not both:
        sys.exit("no row is in both files")
    table, by_figure = [], {}
    for key in both:
        names, column = key
        ratio = new[key] / old[key]
        by_figure.setdefault(names[0], []).append(ratio)
        row = {name: value for name, value in zip(KEYS, names)}
        row |= {"time": column, "old": f"{old[key]:.3f}", "new": f"{new[key]:.3f}", "new/old": f"{ratio:.3f}"}
        table.append(row)
    shown = [name for name in KEYS if any(row[name] for row in table)]
    result_file.print_table((*shown, "time", "old", "new", "new/old"), table)
    for figure, ratios in by_figure.items():
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"{figure}: geometric mean {mean:.3f}, from {min(ratios):.3f} to {max(ratios):.3f}, {len(ratios)} rows")
    print(f"rows in one file only: {len(old) - len(both)} old, {len(new) - len(both)} new")
    worst = max(max(ratios) for ratios in by_figure.values())
    sys.exit(1 if arguments.slower is not None and worst > 1 + arguments.slower / 100 else 0)


if __name__ == "__main__":
    main()
