# SPDX-License-Identifier: Apache-2.0
"""What people write by hand beside libmha: plain_attention.c, compiled with and without -ffast-math into the
directory PLAIN_DIRECTORY. One thread."""
import ctypes
import os
import pathlib
import types

import numpy as np
from peer_case import Run, empty

VERSION = os.environ.get("PLAIN_FLAGS", "flags unknown")
BUILDS = {"-O3 -march=native": "libplain.so", "-O3 -march=native -ffast-math": "libplain_fast.so"}
# Loops of a second and more say nothing that shorter ones do not.
MOST_TOKENS = 1024


def _run(problem, library, name):
    case = problem.case
    path = pathlib.Path(os.environ["PLAIN_DIRECTORY"]) / library
    function = getattr(ctypes.CDLL(str(path)), f"plain_attention_{name}")
    out, scratch = empty(problem.result_shape), np.zeros((case.T, case.S), np.float32)
    arrays = (*problem.tokens, out, scratch)
    sizes = [ctypes.c_int64(size) for size in (case.B, case.T, case.H, case.D)]
    arguments = (*sizes, ctypes.c_int32(case.causal), *(ctypes.c_void_p(array.ctypes.data) for array in arrays))
    return Run(lambda: function(*arguments), lambda: out, arrays)


def _peer(name):
    def formulations(problem, threads):
        case = problem.case
        if threads > 1 or case.layer or case.G != case.H or case.T != case.S or case.T > MOST_TOKENS:
            return {}
        return {
            flags: lambda problem, library=library: _run(problem, library, name)
            for flags, library in BUILDS.items()
        }

    return types.SimpleNamespace(VERSION=VERSION, formulations=formulations)


loops, sgemm = _peer("loops"), _peer("sgemm")
