# SPDX-License-Identifier: Apache-2.0
"""What is measured: the cases of each figure, and one case with its numbers drawn.

A case is attention over heads, softmax(q k^T / sqrt(D)) v, with q [B,T,H,D] and k, v [B,S,G,D] (head-major cases:
[B,G,S,D]), or a self-attention layer over x [B,T,E], E = H D, with four projections and biases.
"""
import dataclasses
import functools

import numpy as np

EPSILON = 2.0**-24
# Work beyond which the formulation is chosen at a smaller size of the same case.
CHOICE_FLOPS = 2e10
# 2 GiB: cases with more scores are not for those who hold them all.
MOST_SCORES = 2**29


@dataclasses.dataclass(frozen=True)
class Case:
    figure: str
    T: int
    S: int
    H: int = 8
    G: int = 8
    D: int = 64
    B: int = 1
    causal: bool = False
    layer: bool = False
    head_major: bool = False

    @property
    def shape(self):
        """As `mha bench` writes it."""
        groups = f"_g{self.G}" if self.G != self.H else ""
        causal = "_causal" if self.causal else ""
        return f"b{self.B}_t{self.T}_s{self.S}_h{self.H}{groups}_d{self.D}{causal}"

    @property
    def flops(self):
        attention = 4.0 * self.B * self.H * self.T * self.S * self.D * (0.5 if self.causal else 1.0)
        return attention + (8.0 * self.B * self.T * (self.H * self.D) ** 2 if self.layer else 0.0)

    @property
    def holds(self):
        """May all scores of all heads be in memory at once?"""
        return self.B * self.H * self.T * self.S <= MOST_SCORES

    @property
    def work(self):
        """(unit, amount): what the rates of a row count, operations or bytes of keys and values, in 10^9."""
        if self.T == 1:
            return "GB/s", 8e-9 * self.B * self.G * self.S * self.D
        return "GFLOP/s", 1e-9 * self.flops

    def smaller(self):
        """The same case, small enough to try every formulation of a peer."""
        case = self
        while case.flops > CHOICE_FLOPS:
            if case.B > 1:
                case = dataclasses.replace(case, B=case.B // 2)
            else:
                case = dataclasses.replace(case, T=case.T // 2, S=case.S // 2)
        return case


def _square(figure, T, **rest):
    return Case(figure, T, T, **rest)


def _layers():
    for H in (8, 12):
        for T in (128, 512, 1024, 2048, 4096):
            for B in (1, 8) if T <= 1024 else (1,):
                yield _square("layer", T, H=H, G=H, B=B, layer=True)


def _tokens():
    for heads in ({}, {"H": 32, "G": 4}, {"H": 32, "G": 4, "D": 128}):
        for S in (1024, 8192, 32768):
            yield Case("token", 1, S, head_major=True, **heads)


LONG = (128, 512, 1024, 2048, 4096, 16384)
FIGURES = {
    "core": [_square("core", T) for T in LONG],
    "causal": [_square("causal", T, causal=True) for T in LONG],
    "size": [_square("size", T, D=D) for D in (32, 80, 96, 128) for T in (512, 2048)],
    "layer": list(_layers()),
    "gqa": [_square("gqa", 2048, H=32, D=128, causal=causal) for causal in (False, True)],
    "token": list(_tokens()),
}
QUICK = {
    "core": [_square("core", T) for T in (128, 256)],
    "causal": [_square("causal", T, causal=True) for T in (128, 256)],
    "size": [_square("size", 256, D=80)],
    "layer": [_square("layer", 128, B=B, layer=True) for B in (1, 2)],
    "gqa": [_square("gqa", 128, H=32, D=128, causal=causal) for causal in (False, True)],
    "token": [Case("token", 1, 1024, H=32, G=G, head_major=True) for G in (32, 4)],
}


def empty(shape):
    """A float32 array of NaN that begins with a cache line, which numpy alone does not promise."""
    count = int(np.prod(shape))
    block = np.full(count + 16, np.nan, np.float32)
    begin = -(block.ctypes.data // 4) % 16
    return block[begin : begin + count].reshape(shape)


def aligned(array):
    """A contiguous float32 copy in such an array."""
    copy = empty(array.shape)
    copy[...] = array
    return copy


class Problem:
    """A case with its numbers, in both layouts; a layout is made when it is first asked for."""

    def __init__(self, case):
        self.case = case
        self._random = np.random.default_rng(1)
        if case.layer:
            E = case.H * case.D
            self.x = self._draw(case.B, case.T, E)
            limit = np.float32((3.0 / E) ** 0.5)
            self.weights = {part: aligned(self._draw(E, E) * limit) for part in ("q", "k", "v", "out")}  # [out, in]
            self.biases = {part: self._draw(E) for part in ("q", "k", "v", "out")}
            return
        keys = (case.B, case.G, case.S, case.D) if case.head_major else (case.B, case.S, case.G, case.D)
        self.q = self._draw(case.B, case.T, case.H, case.D)
        self.k, self.v = self._draw(*keys), self._draw(*keys)

    def _draw(self, *shape):
        return aligned(self._random.uniform(-1, 1, shape))

    @functools.cached_property
    def tokens(self):
        """q [B,T,H,D], k and v [B,S,G,D]"""
        if not self.case.head_major:
            return self.q, self.k, self.v
        return self.q, *(aligned(array.swapaxes(1, 2)) for array in (self.k, self.v))

    @functools.cached_property
    def heads(self):
        """q [B,H,T,D], k and v [B,G,S,D]"""
        keys = (self.k, self.v)
        if not self.case.head_major:
            keys = (aligned(array.swapaxes(1, 2)) for array in keys)
        return aligned(self.q.swapaxes(1, 2)), *keys

    @property
    def folded(self):
        """q [B,G,H/G T,D], k and v [B,G,S,D]: the queries of a group as if they were more tokens of one head,
        which is the same as long as every query sees every key. Only for grouped heads without a rule."""
        q, k, v = self.heads
        case = self.case
        return q.reshape(case.B, case.G, case.H // case.G * case.T, case.D), k, v

    @property
    def foldable(self):
        return not self.case.layer and self.case.G != self.case.H and not self.case.causal

    def from_heads(self, out):
        """[B,H,T,D], or folded, as [B,T,H,D]"""
        case = self.case
        return np.asarray(out).reshape(case.B, case.H, case.T, case.D).swapaxes(1, 2)

    @property
    def result_shape(self):
        case = self.case
        return (case.B, case.T, case.H * case.D) if case.layer else (case.B, case.T, case.H, case.D)

    def bound(self, ours):
        """How far two results may be apart. Attention: twice 8 * 2^-24 * (A + log2 S + 4) * max|v|, A >= scale *
        sum |q_d k_d| by Cauchy and Schwarz. A layer adds three products in a row: 1e-4 of the largest number, far
        below a wrong bias or head."""
        if self.case.layer:
            return 1e-4 * float(np.abs(ours).max())
        longest = [float(np.sqrt((array * array).sum(-1).max())) for array in (self.q, self.k)]
        largest = longest[0] * longest[1] * self.case.D**-0.5
        return 2 * 8 * EPSILON * (largest + np.log2(self.case.S) + 4) * float(np.abs(self.v).max())


class Run:
    """One forward a call, and nothing else; result() is what the last one computed, as [B,T,H,D] or [B,T,E]."""

    def __init__(self, call, result, keep=()):
        self.call, self.result = call, result
        self.keep = keep  # what call knows the address of only
