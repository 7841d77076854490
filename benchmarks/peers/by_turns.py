# SPDX-License-Identifier: Apache-2.0
"""Timing of several functions by turns, A B C A B C …, so that whatever else happens on the machine meets all."""
import time

TURN_SECONDS = 0.05
# Waiting threads of the one before go on spinning for a while.
PAUSE_SECONDS = 0.03
LEAST_ROUNDS, MOST_ROUNDS = 3, 40
# A round that takes longer than this is the only one.
LONG_ROUND_SECONDS = 15.0


def turn(run, seconds):
    """One turn: its caches come back in a run that is not counted, then timings. Appends them to seconds."""
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


def by_turns(runs, total_seconds):
    """The timings of each function; together they take about total_seconds, in equal parts."""
    seconds = [[] for _ in runs]
    spent = [0.0] * len(runs)
    begin = time.perf_counter()
    for done in range(MOST_ROUNDS):
        for i, (run, its) in enumerate(zip(runs, seconds)):
            if done >= LEAST_ROUNDS and spent[i] >= total_seconds / len(runs):
                continue
            start = time.perf_counter()
            turn(run, its)
            spent[i] += time.perf_counter() - start
        if min(spent) >= total_seconds / len(runs) or time.perf_counter() - begin > LONG_ROUND_SECONDS:
            break
    return seconds


def fastest(runs):
    """The name of the fastest of some functions by name: a turn each, then two more of those within 1.5 of the best."""
    if len(runs) == 1:
        return next(iter(runs))
    best, names = {name: float("inf") for name in runs}, list(runs)
    for _ in range(3):
        for name in names:
            its = []
            turn(runs[name], its)
            best[name] = min(best[name], *its)
        names = [name for name in names if best[name] <= 1.5 * min(best.values())]
    return min(best, key=best.get)
