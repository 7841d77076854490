# SPDX-License-Identifier: Apache-2.0
"""Attention as ONNX graphs over [B,T,H*D], and a session of onnxruntime that runs one without copies."""
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

OPSETS = [helper.make_opsetid("", 23), helper.make_opsetid("com.microsoft", 1)]
IR_VERSION = 11  # the first that knows opset 23


def _attention(names, heads, causal):
    """The standard operator, since opset 23."""
    return helper.make_node(
        "Attention", names, ["out"], q_num_heads=heads, kv_num_heads=heads, is_causal=int(causal)
    )


def _multi_head_attention(names, heads, causal):
    """The operator that onnxruntime had before."""
    return helper.make_node(
        "MultiHeadAttention", names, ["out"], domain="com.microsoft", num_heads=heads, unidirectional=int(causal)
    )


CORES = {"Attention, opset 23": _attention, "com.microsoft MultiHeadAttention": _multi_head_attention}


def _model(nodes, inputs, shape, constants=()):
    tensor = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in inputs]
    out = helper.make_tensor_value_info(nodes[-1].output[0], TensorProto.FLOAT, shape)
    initializers = [numpy_helper.from_array(np.ascontiguousarray(array), name) for name, array in constants]
    graph = helper.make_graph(nodes, "attention", tensor, [out], initializers)
    model = helper.make_model(graph, opset_imports=OPSETS, ir_version=IR_VERSION)
    onnx.checker.check_model(model)
    return model.SerializeToString()


def core_models(shape, heads, causal):
    """{operator: model} with the inputs q, k, v."""
    names = ["q", "k", "v"]
    return {name: _model([make(names, heads, causal)], names, shape) for name, make in CORES.items()}


def layer_models(shape, heads, parameters):
    """{operators: model} of a self-attention layer with the input x."""
    weights = {name: parameters[f"{name}_weight"].T for name in ("q", "k", "v", "out")}
    biases = {name: parameters[f"{name}_bias"] for name in ("q", "k", "v", "out")}
    project_out = [
        helper.make_node("MatMul", ["out", "w_out"], ["product"]),
        helper.make_node("Add", ["product", "b_out"], ["y"]),
    ]
    constants_out = [("w_out", weights["out"]), ("b_out", biases["out"])]
    models = {}
    for name, make in CORES.items():
        nodes, constants = [], list(constants_out)
        for part in ("q", "k", "v"):
            nodes.append(helper.make_node("MatMul", ["x", f"w_{part}"], [f"x_{part}"]))
            nodes.append(helper.make_node("Add", [f"x_{part}", f"b_{part}"], [part]))
            constants += [(f"w_{part}", weights[part]), (f"b_{part}", biases[part])]
        nodes += [make(["q", "k", "v"], heads, False), *project_out]
        models[f"MatMul, Add, {name}"] = _model(nodes, ["x"], shape, constants)
    packed = helper.make_node(
        "Attention", ["x", "w_in", "b_in"], ["out"], domain="com.microsoft", num_heads=heads
    )
    constants = [
        ("w_in", np.concatenate([weights[part] for part in ("q", "k", "v")], axis=1)),
        ("b_in", np.concatenate([biases[part] for part in ("q", "k", "v")])),
        *constants_out,
    ]
    models["com.microsoft Attention, MatMul"] = _model([packed, *project_out], ["x"], shape, constants)
    return models


def runner(model, inputs, out, threads):
    """A function without arguments: one run, from the arrays `inputs` by name into `out`."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    for name, array in inputs.items():
        binding.bind_input(name, "cpu", 0, np.float32, array.shape, array.ctypes.data)
    name = session.get_outputs()[0].name
    binding.bind_output(name, "cpu", 0, np.float32, out.shape, out.ctypes.data)
    keep = (inputs, out)  # the binding knows their addresses only

    def run():
        session.run_with_iobinding(binding)
        return keep

    return run
