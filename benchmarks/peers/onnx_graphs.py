# SPDX-License-Identifier: Apache-2.0
"""Attention as ONNX graphs: one operator over heads, or a layer with its projections."""
import numpy as np
import onnx
from onnx import helper, numpy_helper

# Attention is standard since opset 23; onnxruntime's own operators are older.
OPSETS = [helper.make_opsetid("", 23), helper.make_opsetid("com.microsoft", 1)]
IR_VERSION = 11  # the first that knows opset 23
OWN = "com.microsoft"


def attention_of_tokens(inputs, case):
    """q [B,T,H*D]"""
    return helper.make_node(
        "Attention", inputs, ["out"], q_num_heads=case.H, kv_num_heads=case.G, is_causal=int(case.causal)
    )


def attention_of_heads(inputs, case):
    """q [B,H,T,D]"""
    return helper.make_node("Attention", inputs, ["out"], is_causal=int(case.causal))


def multi_head_attention(inputs, case):
    """q [B,T,H*D], keys of either layout, as many heads for them as for queries."""
    return helper.make_node(
        "MultiHeadAttention", inputs, ["out"], domain=OWN, num_heads=case.H, unidirectional=int(case.causal)
    )


def _serialized(nodes, inputs, outputs, constants=()):
    """inputs and outputs: arrays by name, for their shapes and types."""

    def described(arrays):
        return [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in arrays.items()
        ]

    initializers = [numpy_helper.from_array(np.ascontiguousarray(array), name) for name, array in constants]
    graph = helper.make_graph(nodes, "attention", described(inputs), described(outputs), initializers)
    model = helper.make_model(graph, opset_imports=OPSETS, ir_version=IR_VERSION)
    onnx.checker.check_model(model)
    return model.SerializeToString()


def core(make, inputs, out, case):
    return _serialized([make(list(inputs), case)], inputs, {"out": out})


def grouped(inputs, past, lengths, outputs, case):
    """GroupQueryAttention over the tokens of inputs behind those of past, which may be nothing."""
    names = ["q", "k", "v", *(list(past) or ["", ""]), *lengths]
    node = helper.make_node(
        "GroupQueryAttention", names, list(outputs), domain=OWN, num_heads=case.H, kv_num_heads=case.G
    )
    return _serialized([node], inputs | past | lengths, outputs)


def _product(x, part, biases, out):
    """x W^T, and its bias if it is not left to the next operator; weights are stored [in, out]."""
    if not biases:
        return [helper.make_node("MatMul", [x, f"w_{part}"], [out])]
    return [
        helper.make_node("MatMul", [x, f"w_{part}"], [f"{out}_product"]),
        helper.make_node("Add", [f"{out}_product", f"b_{part}"], [out]),
    ]


def _projected(make):
    def nodes(case):
        yield from (node for part in "qkv" for node in _product("x", part, True, part))
        yield make(["q", "k", "v"], case)

    return nodes


def _biased(case):
    """The biases of q, k and v are an input of MultiHeadAttention."""
    yield from (node for part in "qkv" for node in _product("x", part, False, part))
    yield multi_head_attention(["q", "k", "v", "b_in"], case)


def _packed(case):
    """onnxruntime's own Attention contains the projections of its input."""
    yield helper.make_node("Attention", ["x", "w_in", "b_in"], ["out"], domain=OWN, num_heads=case.H)


LAYERS = {
    "MatMul, Add, Attention": _projected(attention_of_tokens),
    "MatMul, Add, MultiHeadAttention": _projected(multi_head_attention),
    "MatMul, MultiHeadAttention with biases": _biased,
    "com.microsoft Attention, MatMul": _packed,
}


def layer(make, problem):
    """From x to y, with the parameters as constants; those that no node asks for are left out."""
    constants = {f"w_{part}": array.T for part, array in problem.weights.items()}
    constants |= {f"b_{part}": array for part, array in problem.biases.items()}
    constants["w_in"] = np.concatenate([problem.weights[part].T for part in "qkv"], axis=1)
    constants["b_in"] = np.concatenate([problem.biases[part] for part in "qkv"])
    nodes = [*make(problem.case), *_product("out", "out", True, "y")]
    asked = {name for node in nodes for name in node.input}
    used = [(name, array) for name, array in constants.items() if name in asked]
    return _serialized(nodes, {"x": problem.x}, {"y": problem.x}, used)
