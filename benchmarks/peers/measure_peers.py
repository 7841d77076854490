#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One process of compare_peers.py: every case of some figures with one number of threads on as many CPUs, libmha's two
engines and the peers by turns. Prints one JSON object a line: the versions, then a row for each case and peer.

Each peer has several ways to say the same. All of them are compared with libmha's numbers, and the fastest is measured.

Usage: measure_peers.py LIBRARY THREADS SECONDS FIGURES PEERS TOKENS|all [--quick]
       exit status 1 if a peer's numbers differ
"""
import importlib
import json
import os
import sys

import by_turns
import numpy as np
import peer_case
import timed_library

ENGINES = ("blas", "fused")
PEERS = {
    "onnxruntime": "peer_onnxruntime",
    "openvino": "peer_openvino",
    "torch": "peer_torch",
    "jax": "peer_jax",
    "loops": "peer_plain.loops",
    "sgemm": "peer_plain.sgemm",
}
# Written by hand, or no library of its own: never the best peer.
BY_HAND = ("loops", "sgemm")


def say(text):
    print(text, file=sys.stderr, flush=True)


def load(name):
    module, _, member = PEERS[name].partition(".")
    module = importlib.import_module(module)
    return getattr(module, member) if member else module


class Measurement:
    def __init__(self, library, threads, seconds, peers):
        self.library, self.threads, self.seconds, self.differs = library, threads, seconds, False
        self.peers = {name: load(name) for name in peers}

    def agrees(self, name, problem, run, ours):
        """(difference, bound) of one run, None if it is too much."""
        run.call()
        difference, bound = float(np.abs(run.result() - ours).max()), problem.bound(ours)
        if difference <= bound:
            return difference, bound
        say(f"{problem.case.shape}: {name} differs by {difference:.3g}, {bound:.3g} is allowed")
        self.differs = True
        return None

    def ours(self, problem):
        """Both engines, each run once and compared."""
        runs = {engine: self.library.forward(problem, engine, self.threads) for engine in ENGINES}
        runs["blas"].call()
        self.agrees("libmha fused", problem, runs["fused"], runs["blas"].result())
        return runs

    def ways(self, name, problem, ours, only=None):
        """{how: (run, difference, bound)} of what a peer can do and does right."""
        found = {}
        for how, prepare in self.peers[name].formulations(problem, self.threads).items():
            if only is not None and how not in only:
                continue
            try:
                run = prepare(problem)
                numbers = self.agrees(f"{name}, {how},", problem, run, ours.result())
            except Exception as failure:  # the peers have no common type for "this I cannot"
                say(f"{problem.case.shape}: {name} without {how}: {' '.join(str(failure).split())[:160]}")
                continue
            if numbers is not None:
                found[how] = (run, *numbers)
        return found

    def fastest(self, problem, ours, only=None):
        """{peer: (how, run, difference, bound)}, each by its fastest way, or of those in only[peer]."""
        chosen = {}
        for name in self.peers:
            found = self.ways(name, problem, ours, only and only[name])
            if found:
                how = by_turns.fastest({how: run.call for how, (run, *_) in found.items()})
                chosen[name] = (how, *found[how])
        return chosen

    def chosen_smaller(self, problem, ours):
        """The same for a case that is too long to try every way: they are tried at a smaller size."""
        small = peer_case.Problem(problem.case.smaller())
        possible = {name: set(peer.formulations(problem, self.threads)) for name, peer in self.peers.items()}
        best = self.fastest(small, self.ours(small)["blas"], possible)
        return self.fastest(problem, ours, {name: best[name][:1] if name in best else () for name in self.peers})

    def rows(self, case):
        problem = peer_case.Problem(case)
        ours = self.ours(problem)
        choose = self.fastest if case.smaller() == case else self.chosen_smaller
        peers = choose(problem, ours["blas"])
        runs = [run.call for run in ours.values()] + [run.call for _, run, *_ in peers.values()]
        seconds = by_turns.by_turns(runs, self.seconds)
        best = dict(zip([*ENGINES, *peers], map(min, seconds)))
        runs = dict(zip(best, map(len, seconds)))
        first = min((name for name in peers if name not in BY_HAND), key=best.get, default=None)
        unit, amount = case.work
        for name, (how, _, difference, bound) in peers.items():
            row = {"figure": case.figure, "shape": case.shape, "threads": self.threads, "peer": name, "how": how}
            row["best"] = int(name == first)
            for column, key in ((*((engine, engine) for engine in ENGINES), ("peer", name))):
                row[f"{column}_ms_min"] = f"{1e3 * best[key]:.4f}"
                row[f"{column}_rate"] = f"{amount / best[key]:.1f}"
            row |= {f"ratio_{engine}": f"{best[name] / best[engine]:.3f}" for engine in ENGINES}
            row |= {"unit": unit, "runs": min(runs[key] for key in (*ENGINES, name))}
            row |= {"difference": f"{difference:.2e}", "bound": f"{bound:.2e}"}
            say(f"{case.figure} {case.shape}, {self.threads} thread(s), {name}, {how}: "
                f"{row['ratio_blas']} {row['ratio_fused']}" + (" best" if row["best"] else ""))  # fmt: skip
            yield row


def main():
    library, threads, seconds, figures, peers, tokens, *rest = sys.argv[1:]
    threads = int(threads)
    # Before any peer starts its threads; the last CPUs, as interrupts like the first.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-threads:])
    measurement = Measurement(timed_library.Library(library), threads, float(seconds), peers.split(","))
    print(json.dumps({name: peer.VERSION for name, peer in measurement.peers.items()}), flush=True)
    cases = peer_case.QUICK if "--quick" in rest else peer_case.FIGURES
    for figure in figures.split(","):
        for case in cases[figure]:
            if tokens == "all" or str(case.S) in tokens.split(","):
                for row in measurement.rows(case):
                    print(json.dumps(row), flush=True)
    sys.exit(1 if measurement.differs else 0)


if __name__ == "__main__":
    main()
