# SPDX-License-Identifier: Apache-2.0
"""onnxruntime beside libmha: graphs of onnx_graphs.py in sessions bound to arrays, so that nothing is copied."""
import dataclasses

import numpy as np
import onnx
import onnx_graphs
import onnxruntime
from peer_case import Run, empty

VERSION = f"onnxruntime {onnxruntime.__version__} (graphs by onnx {onnx.__version__}, io binding)"


def _session(model, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def _bound(model, inputs, outputs, result, threads):
    """A Run of a graph from the arrays `inputs` into the arrays `outputs`, by name."""
    session = _session(model, threads)
    binding = session.io_binding()
    for bind, arrays in ((binding.bind_input, inputs), (binding.bind_output, outputs)):
        for name, array in arrays.items():
            bind(name, "cpu", 0, array.dtype.type, array.shape, array.ctypes.data)
    return Run(lambda: session.run_with_iobinding(binding), result, (inputs, outputs))


def _tokens(problem, make, threads, head_major_keys=False):
    """q [B,T,H*D], k and v [B,S,G*D] or [B,G,S,D]."""
    case = problem.case
    q, k, v = problem.tokens
    inputs = {"q": q.reshape(case.B, case.T, -1)}
    if head_major_keys:
        inputs |= dict(zip("kv", problem.heads[1:]))
    else:
        inputs |= {"k": k.reshape(case.B, case.S, -1), "v": v.reshape(case.B, case.S, -1)}
    out = empty(inputs["q"].shape)
    model = onnx_graphs.core(make, inputs, out, case)
    return _bound(model, inputs, {"out": out}, lambda: out.reshape(problem.result_shape), threads)


def _heads(problem, tensors, threads):
    """q [B,H,T,D], k and v [B,G,S,D]."""
    inputs = dict(zip("qkv", tensors))
    out = empty(inputs["q"].shape)
    model = onnx_graphs.core(onnx_graphs.attention_of_heads, inputs, out, problem.case)
    return _bound(model, inputs, {"out": out}, lambda: problem.from_heads(out), threads)


def _folded_tokens(problem, threads):
    """MultiHeadAttention of G heads with H/G T queries: q [B,H/G T,G*D]."""
    q, k, v = problem.folded
    B, G, T, D = q.shape
    folded = dataclasses.replace(problem.case, H=G, T=T)
    inputs = {"q": np.ascontiguousarray(q.swapaxes(1, 2)).reshape(B, T, G * D), "k": k, "v": v}
    out = empty(inputs["q"].shape)
    model = onnx_graphs.core(onnx_graphs.multi_head_attention, inputs, out, folded)

    def result():
        return problem.from_heads(out.reshape(B, T, G, D).swapaxes(1, 2))

    return _bound(model, inputs, {"out": out}, result, threads)


def _grouped(problem, threads):
    """GroupQueryAttention, which is causal. One token: the last of S is appended to a cache that holds the others,
    past and present in one buffer; all of T: a first prompt."""
    case = problem.case
    q, k, v = problem.tokens
    new = slice(case.S - case.T, case.S)
    inputs = {"q": q.reshape(case.B, case.T, -1)}
    for name, array in zip("kv", (k, v)):
        inputs[name] = np.ascontiguousarray(array[:, new]).reshape(case.B, case.T, -1)
    lengths = {"last": np.full(case.B, case.S - 1, np.int32), "total": np.array([case.S], np.int32)}
    out = empty(inputs["q"].shape)
    outputs = {"out": out}
    if case.T == case.S:
        past = {}
        outputs |= {f"present_{name}": empty((case.B, case.G, case.S, case.D)) for name in "kv"}
    else:
        past = {f"past_{name}": array for name, array in zip("kv", problem.heads[1:])}
        outputs |= {f"present_{name}": past[f"past_{name}"] for name in "kv"}
    model = onnx_graphs.grouped(inputs, past, lengths, outputs, case)
    inputs |= past | lengths
    return _bound(model, inputs, outputs, lambda: out.reshape(problem.result_shape), threads)


def _layer(problem, make, threads):
    inputs, out = {"x": problem.x}, empty(problem.result_shape)
    model = onnx_graphs.layer(make, problem)
    return _bound(model, inputs, {"y": out}, lambda: out, threads)


def formulations(problem, threads):
    """{how: prepare(problem)}; prepare returns a Run."""
    case = problem.case
    if case.layer:
        return {
            how: lambda problem, make=make: _layer(problem, make, threads)
            for how, make in onnx_graphs.LAYERS.items()
        }
    found = {}
    if case.holds:  # Attention holds all scores, MultiHeadAttention under a causal rule
        found["Attention [B,T,H*D]"] = lambda problem: _tokens(problem, onnx_graphs.attention_of_tokens, threads)
        found["Attention [B,H,T,D]"] = lambda problem: _heads(problem, problem.heads, threads)
    if case.G == case.H and (case.holds or not case.causal):
        found["MultiHeadAttention"] = lambda problem: _tokens(
            problem, onnx_graphs.multi_head_attention, threads
        )
        if not case.causal:
            found["MultiHeadAttention, k v [B,H,S,D]"] = lambda problem: _tokens(
                problem, onnx_graphs.multi_head_attention, threads, head_major_keys=True
            )
    if case.causal or case.T == 1:
        found["GroupQueryAttention"] = lambda problem: _grouped(problem, threads)
    if problem.foldable:
        found["Attention, a group's queries as tokens"] = lambda problem: _heads(
            problem, problem.folded, threads
        )
        found["MultiHeadAttention, a group's queries as tokens"] = lambda problem: _folded_tokens(problem, threads)
    return found
