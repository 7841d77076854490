# SPDX-License-Identifier: Apache-2.0
"""openvino beside libmha: graphs of its own operators, inputs and output bound to arrays."""
import numpy as np
import openvino
from openvino import opset13 as ops
from peer_case import Run, empty

VERSION = f"openvino {openvino.__version__.split('-')[0]}"
HEADS_FIRST = [0, 2, 1, 3]  # [B,T,H,D] to [B,H,T,D] and back


def _compiled(graph, threads):
    options = {
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": 1,
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32",
        "ENABLE_CPU_PINNING": False,
    }
    return openvino.Core().compile_model(graph, "CPU", options)


def _run(result, inputs, out, convert, threads):
    """A Run of the graph that ends in `result`; inputs: (parameter, array)."""
    graph = openvino.Model([result], [parameter for parameter, _ in inputs], "attention")
    request = _compiled(graph, threads).create_infer_request()
    for i, (_, array) in enumerate(inputs):
        request.set_input_tensor(i, openvino.Tensor(array, shared_memory=True))
    request.set_output_tensor(0, openvino.Tensor(out, shared_memory=True))
    # Start and wait cost less than infer(), which collects results in a dictionary.
    def run():
        request.start_async()
        request.wait()

    return Run(run, lambda: convert(out), (inputs, out))


def _constant(values):
    return ops.constant(np.asarray(values))


def _operator(q, k, v, case):
    return ops.scaled_dot_product_attention(q, k, v, causal=case.causal)


def _by_hand(q, k, v, case):
    """Three operators, which the plugin may put together again."""
    scores = ops.matmul(ops.multiply(q, _constant(np.float32(case.D**-0.5))), k, False, True)
    if case.causal:
        hidden = np.triu(np.full((case.T, case.S), -np.inf, np.float32), 1)
        scores = ops.add(scores, _constant(hidden))
    return ops.matmul(ops.softmax(scores, -1), v, False, False)


def _widened(k, case):
    """[B,G,S,D] to [B,H,S,D], each head for its group."""
    if case.G == case.H:
        return k
    five = ops.unsqueeze(k, _constant([2]))
    five = ops.broadcast(five, _constant([case.B, case.G, case.H // case.G, case.S, case.D]))
    return ops.reshape(five, _constant([case.B, case.H, case.S, case.D]), False)


def _parameters(arrays):
    return [(ops.parameter(array.shape, np.float32), array) for array in arrays]


def _heads(problem, tensors, attend, threads):
    """Of [B,H,T,D]"""
    case, inputs = problem.case, _parameters(tensors)
    q, k, v = (parameter for parameter, _ in inputs)
    if tensors[0].shape[1] == case.H:
        k, v = _widened(k, case), _widened(v, case)
    return _run(attend(q, k, v, case), inputs, empty(tensors[0].shape), problem.from_heads, threads)


def _tokens(problem, attend, threads):
    """Of [B,T,H,D]"""
    case, inputs = problem.case, _parameters(problem.tokens)
    q, k, v = (ops.transpose(parameter, _constant(HEADS_FIRST)) for parameter, _ in inputs)
    out = attend(q, _widened(k, case), _widened(v, case), case)
    result = ops.transpose(out, _constant(HEADS_FIRST))
    return _run(result, inputs, empty(problem.result_shape), lambda out: out, threads)


def _project(x, problem, part):
    return ops.add(ops.matmul(x, _constant(problem.weights[part]), False, True), _constant(problem.biases[part]))


def _layer(problem, attend, threads):
    case, inputs = problem.case, _parameters([problem.x])
    split = _constant([case.B, case.T, case.H, case.D])
    q, k, v = (
        ops.transpose(ops.reshape(_project(inputs[0][0], problem, part), split, False), _constant(HEADS_FIRST))
        for part in "qkv"
    )
    merged = ops.transpose(attend(q, k, v, case), _constant(HEADS_FIRST))
    merged = ops.reshape(merged, _constant(problem.result_shape), False)
    return _run(_project(merged, problem, "out"), inputs, empty(problem.result_shape), lambda out: out, threads)


ATTEND = {"ScaledDotProductAttention": _operator, "MatMul, Softmax, MatMul": _by_hand}


def formulations(problem, threads):
    """{how: prepare(problem)}; prepare returns a Run."""
    case = problem.case
    found = {}
    for name, attend in ATTEND.items():
        if attend is _by_hand and not case.holds:
            continue
        if case.layer:
            found[f"MatMul, Add, {name}"] = lambda problem, a=attend: _layer(problem, a, threads)
            continue
        found[f"{name} [B,T,H,D]"] = lambda problem, a=attend: _tokens(problem, a, threads)
        found[f"{name} [B,H,T,D]"] = lambda problem, a=attend: _heads(problem, problem.heads, a, threads)
        if problem.foldable:
            found[f"{name}, a group's queries as tokens"] = lambda problem, a=attend: _heads(
                problem, problem.folded, a, threads
            )
    return found
