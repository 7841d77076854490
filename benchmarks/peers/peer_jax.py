# SPDX-License-Identifier: Apache-2.0
"""JAX on the CPU beside libmha: compiled functions over arrays of the device; each result is an array of its own.
Its threads are as many as CPUs the process may use when it starts."""
import os

os.environ["JAX_PLATFORMS"] = "cpu"
import jax
import jax.numpy as jnp
import numpy as np
from peer_case import Run

VERSION = f"jax {jax.__version__}"


def _compiled(function, arrays, convert):
    function = jax.jit(function)
    arrays = [jax.device_put(array) for array in arrays]
    last = [None]

    def run():
        last[0] = None
        last[0] = function(*arrays).block_until_ready()

    return Run(run, lambda: convert(np.asarray(last[0])))


def _same(out):
    return out


def _operator(problem):
    """The function of the library, over [B,T,H,D]."""
    causal = problem.case.causal

    def attend(q, k, v):
        return jax.nn.dot_product_attention(q, k, v, is_causal=causal)

    return _compiled(attend, problem.tokens, _same)


def _by_hand(problem):
    """The same as sums over indices, of [B,G,H/G,T,D] and [B,G,S,D]."""
    case = problem.case
    q, k, v = problem.heads
    hidden = np.triu(np.ones((case.T, case.S), bool), 1) if case.causal else None

    def attend(q, k, v):
        scores = jnp.einsum("bgrtd,bgsd->bgrts", q * case.D**-0.5, k)
        if hidden is not None:
            scores = jnp.where(hidden, -jnp.inf, scores)
        return jnp.einsum("bgrts,bgsd->bgrtd", jax.nn.softmax(scores), v)

    q = q.reshape(case.B, case.G, case.H // case.G, case.T, case.D)
    return _compiled(attend, (q, k, v), problem.from_heads)


def _layer(problem):
    case = problem.case
    parts = [(problem.weights[part].T, problem.biases[part]) for part in ("q", "k", "v", "out")]
    arrays = [array for pair in parts for array in pair]

    def forward(x, w_q, b_q, w_k, b_k, w_v, b_v, w_out, b_out):
        split = (case.B, case.T, case.H, case.D)
        q, k, v = ((x @ w + b).reshape(split) for w, b in ((w_q, b_q), (w_k, b_k), (w_v, b_v)))
        merged = jax.nn.dot_product_attention(q, k, v).reshape(x.shape)
        return merged @ w_out + b_out

    return _compiled(forward, (problem.x, *arrays), _same)


def formulations(problem, threads):
    """{how: prepare(problem)}; prepare returns a Run."""
    case = problem.case
    if not case.holds:  # all of these do
        return {}
    if case.layer:
        return {"dot_product_attention, matmul": _layer}
    return {"nn.dot_product_attention": _operator, "einsum, softmax, einsum": _by_hand}
