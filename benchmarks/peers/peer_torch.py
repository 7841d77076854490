# SPDX-License-Identifier: Apache-2.0
"""PyTorch on the CPU beside libmha, without gradients. It writes each result to memory of its own allocator."""
import torch
from peer_case import Run
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

torch.set_grad_enabled(False)
VERSION = f"torch {torch.__version__}"


def _kept(function, convert, keep=()):
    """A Run of a function that returns its result; the one before is freed first, so its memory is used again."""
    last = [None]

    def run():
        last[0] = None
        last[0] = function()

    return Run(run, lambda: convert(last[0].numpy()), keep)


def _attend(problem, tensors, convert, backend=None):
    case = problem.case
    q, k, v = (torch.from_numpy(array) for array in tensors)
    if tensors is problem.tokens:  # as views, without a copy
        q, k, v = (tensor.transpose(1, 2) for tensor in (q, k, v))
    options = {"is_causal": case.causal, "enable_gqa": q.shape[1] != k.shape[1]}

    def function():
        return functional.scaled_dot_product_attention(q, k, v, **options)

    def function_of_backend():
        with sdpa_kernel(backend):
            return functional.scaled_dot_product_attention(q, k, v, **options)

    return _kept(function_of_backend if backend else function, convert, tensors)


def _by_hand(problem, tensors):
    """softmax(q k^T) v with buffers of its own, for one token."""
    q, k, v = (torch.from_numpy(array) for array in tensors)
    scale, keys = problem.case.D**-0.5, k.transpose(2, 3)
    scores = torch.empty(*q.shape[:3], k.shape[2])
    weights, out = torch.empty_like(scores), torch.empty_like(q)

    def function():
        torch.matmul(q, keys, out=scores)
        scores.mul_(scale)
        torch.softmax(scores, -1, out=weights)
        return torch.matmul(weights, v, out=out)

    return _kept(function, problem.from_heads, tensors)


def _parameters(problem):
    """[3E,E] and [3E] of q, k and v together, [E,E] and [E] of out."""
    parts = [torch.from_numpy(problem.weights[part]) for part in "qkv"]
    biases = [torch.from_numpy(problem.biases[part]) for part in "qkv"]
    out = (torch.from_numpy(problem.weights["out"]), torch.from_numpy(problem.biases["out"]))
    return torch.cat(parts), torch.cat(biases), *out


def _linear_layer(problem):
    case, x = problem.case, torch.from_numpy(problem.x)
    w_in, b_in, w_out, b_out = _parameters(problem)

    def function():
        parts = functional.linear(x, w_in, b_in).view(case.B, case.T, 3, case.H, case.D)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        merged = functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(case.B, case.T, -1)
        return functional.linear(merged, w_out, b_out)

    return _kept(function, lambda out: out)


def _module(problem):
    """nn.MultiheadAttention, on its fast path: eval, no gradients, no weights asked for."""
    case, x = problem.case, torch.from_numpy(problem.x)
    module = torch.nn.MultiheadAttention(case.H * case.D, case.H, batch_first=True).eval()
    targets = (module.in_proj_weight, module.in_proj_bias, module.out_proj.weight, module.out_proj.bias)
    for target, source in zip(targets, _parameters(problem)):
        target.copy_(source)
    return _kept(lambda: module(x, x, x, need_weights=False)[0], lambda out: out)


def formulations(problem, threads):
    """{how: prepare(problem)}; prepare returns a Run."""
    torch.set_num_threads(threads)
    case = problem.case
    if case.layer:
        return {"linear, scaled_dot_product_attention, linear": _linear_layer, "nn.MultiheadAttention": _module}
    found = {
        "scaled_dot_product_attention [B,H,T,D]": lambda problem: _attend(
            problem, problem.heads, problem.from_heads
        )
    }
    if not case.head_major:
        found["scaled_dot_product_attention, views of [B,T,H,D]"] = lambda problem: _attend(
            problem, problem.tokens, lambda out: out.swapaxes(1, 2)
        )
    if problem.foldable:
        found["scaled_dot_product_attention, a group's queries as tokens"] = lambda problem: _attend(
            problem, problem.folded, problem.from_heads
        )
    if case.T == 1:
        tensors = "folded" if problem.foldable else "heads"
        found["scaled_dot_product_attention, math"] = lambda problem: _attend(
            problem, getattr(problem, tensors), problem.from_heads, SDPBackend.MATH
        )
        found["matmul, softmax, matmul"] = lambda problem: _by_hand(problem, getattr(problem, tensors))
    return found

