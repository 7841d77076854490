#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The backend node tests of the ONNX operator Attention (opset 23 to 25), through libmha.

The tests come from the PyPI package onnx: models of one node, inputs, and outputs by ONNX's own reference.
Each is mapped to libmha's options, and every output is compared: Y, present_key, present_value (which the
runner concatenates: a plain call has no cache) and qk_matmul_output. A float32 result has to meet ONNX's
tolerance for the test and the rounding bound of float32. The float16 and bfloat16 tests run on widened inputs
and have to meet a few units in the last place of their type, as that is what their reference rounds to.

Usage: onnx_attention.py LIBRARY [--reference] [-v]     exit status 1 if a test fails or there are none
       --reference: by mha_reference_forward in place of mha_forward
"""
import collections
import sys
import warnings

import numpy as np
from mha_ctypes import Library, bound, largest_score

INPUTS = ("Q", "K", "V", "attn_mask", "past_key", "past_value", "nonpad_kv_seqlen")
OUTPUTS = ("Y", "present_key", "present_value", "qk_matmul_output")
KNOWN = {  # attributes; softmax_precision changes no meaning, libmha's softmax is float32
    "scale", "softcap", "is_causal", "qk_matmul_output_mode", "q_num_heads", "kv_num_heads",
    "left_window_size", "right_window_size", "softmax_precision",
}  # fmt: skip
# qk_matmul_output_mode: the stage of the scores that the fourth output holds
STAGES = ("scores_scaled", "scores_capped", "scores_biased", "weights")
# Units in the last place of the type that its own reference computes in, step by step.
HALF_UNITS = 8
SEED = 23


def cases():
    """(name, attributes, inputs by name, outputs by name, rtol, atol) of each test of one Attention node."""
    np.random.seed(SEED)  # the tests draw their inputs from numpy's global stream
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of other operators' tests
        import onnx
        from onnx.backend.test.case.node import collect_testcases

        collected = collect_testcases("Attention")
    for case in collected:
        nodes = case.model.graph.node
        if len(nodes) != 1 or nodes[0].op_type != "Attention":
            continue  # the same test written out in other operators
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in nodes[0].attribute}
        unknown = set(attributes) - KNOWN
        if unknown:
            raise SystemExit(f"{case.name}: attributes {sorted(unknown)} are not known to this runner")
        for inputs, outputs in case.data_sets:
            yield (
                case.name,
                attributes,
                by_name(INPUTS, nodes[0].input, inputs),
                by_name(OUTPUTS, nodes[0].output, outputs),
                case.rtol,
                case.atol,
            )


def by_name(names, given, arrays):
    """Optional inputs and outputs are left out by an empty name; only the others have an array."""
    return dict(zip([name for name, label in zip(names, given) if label], arrays))


def heads_first(array, heads):
    """[B,T,H*D] or [B,H,T,D] as [B,T,H,D]: a view, never a copy."""
    if array.ndim == 3:
        return array.reshape(*array.shape[:2], heads, array.shape[2] // heads)
    return array.transpose(0, 2, 1, 3)


def run(mha, attributes, inputs, outputs):
    """What libmha computes for the outputs, and the rounding bounds of Y and of the scores."""
    kind = inputs["Q"].dtype
    inputs = {n: a.astype(np.float32) if a.dtype == kind else a for n, a in inputs.items()}
    q = heads_first(inputs["Q"], attributes.get("q_num_heads"))
    k = heads_first(inputs["K"], attributes.get("kv_num_heads"))
    v = heads_first(inputs["V"], attributes.get("kv_num_heads"))
    options = {"preset": "onnx", "causal": bool(attributes.get("is_causal", 0))}
    options |= {"masks": [], "biases": [], "outputs": []}

    # Where the queries stand: after what the cache held before them; the preset's corner is for no cache.
    if "past_key" in inputs:
        k = np.concatenate([inputs["past_key"].transpose(0, 2, 1, 3), k], axis=1)
        v = np.concatenate([inputs["past_value"].transpose(0, 2, 1, 3), v], axis=1)
        options["offsets"] = [inputs["past_key"].shape[2]]
    elif "nonpad_kv_seqlen" in inputs:
        options["key_lengths"] = inputs["nonpad_kv_seqlen"]
        options["alignment"] = "bottom_right"  # of the lengths: off[b] = nonpad_kv_seqlen[b] - T

    window = attributes.get("left_window_size", -1), attributes.get("right_window_size", -1)
    if window != (-1, -1):
        options["window"] = window
    for name in ("scale", "softcap"):
        if name in attributes:
            options[name] = attributes[name]
    if "attn_mask" in inputs:  # axes from the right; a last axis shorter than S hides the rest, here as there
        mask = inputs["attn_mask"]
        mask = mask.reshape((1,) * (4 - mask.ndim) + mask.shape)
        if mask.dtype == bool:
            options["masks"].append(("full", mask, False))
        else:
            options["biases"].append(mask)
    stage = STAGES[attributes.get("qk_matmul_output_mode", 0)]
    if "qk_matmul_output" in outputs:
        options["outputs"].append(stage)

    # Written in the layout that the operator has, through strides.
    B, T, H, Dv = q.shape[0], q.shape[1], q.shape[2], v.shape[3]
    if inputs["Q"].ndim == 3:
        Y = np.empty((B, T, H * Dv), np.float32)
        options["output"] = Y.reshape(B, T, H, Dv)
    else:
        Y = np.empty((B, H, T, Dv), np.float32)
        options["output"] = Y.transpose(0, 2, 1, 3)
    result = mha.attend(q, k, v, **options)

    A = largest_score(q, k, attributes.get("scale", q.shape[3] ** -0.5), options["biases"])
    finite = np.abs(v[np.isfinite(v)]).max(initial=0)
    bounds = {"Y": bound(A, finite, sides=2), "qk_matmul_output": bound(A, 1, sides=2)}
    found = {
        "Y": Y,
        "present_key": k.transpose(0, 2, 1, 3),
        "present_value": v.transpose(0, 2, 1, 3),
        "qk_matmul_output": result.get(stage),
    }
    return found, bounds


def compare(name, found, wanted, rtol, atol, bounds):
    """A sentence where the output is not what ONNX says, else None; and its largest error."""
    kind = wanted.dtype
    if found.shape != wanted.shape:
        return f"{name} has the shape {found.shape}, not {wanted.shape}", np.inf
    wanted = wanted.astype(np.float32).astype(np.float64)
    found = found.astype(np.float64)
    if name.startswith("present"):
        return (None if np.array_equal(found, wanted, equal_nan=True) else f"{name} differs"), 0.0
    finite = np.isfinite(wanted)
    if not np.array_equal(found[~finite], wanted[~finite], equal_nan=True):
        return f"{name} differs where ONNX has an infinity or NaN", np.inf
    error = np.abs(found[finite] - wanted[finite])
    allowed = atol + rtol * np.abs(wanted[finite])
    if kind == np.float32:
        allowed = np.minimum(allowed, bounds[name])
    else:
        unit = 2.0**-10 if kind == np.float16 else 2.0**-7
        allowed = HALF_UNITS * unit * np.maximum(np.abs(wanted[finite]), 2.0**-4)
    if error.size == 0:
        return None, 0.0
    worst = int(np.argmax(np.where(np.isnan(error), np.inf, error / allowed)))
    if not error[worst] <= allowed[worst]:  # NaN too
        return f"{name} is off by {error[worst]:.3g}, allowed {allowed[worst]:.3g}", np.inf
    return None, float(error.max())


def main(path, reference, verbose):
    mha = Library(path, reference)
    counts, worst = collections.Counter(), collections.defaultdict(float)
    for name, attributes, inputs, outputs, rtol, atol in cases():
        kind = inputs["Q"].dtype.name
        try:
            found, bounds = run(mha, attributes, inputs, outputs)
            verdicts = [compare(n, found[n], wanted, rtol, atol, bounds) for n, wanted in outputs.items()]
            problems = [sentence for sentence, _ in verdicts if sentence]
            if not problems:
                worst[kind] = max(worst[kind], *(error for _, error in verdicts))
        except Exception as error:  # a refusal fails this test, not the run
            problems = [f"{type(error).__name__}: {error}"]
        counts[kind, not problems] += 1
        if problems:
            print(f"FAIL {name} ({kind}): {'; '.join(problems)}")
        elif verbose:
            print(f"pass {name} ({kind})")
    for kind in sorted({kind for kind, _ in counts}):
        total = counts[kind, True] + counts[kind, False]
        print(f"{kind}: {counts[kind, True]} of {total} pass, largest error {worst[kind]:.3g}")
    passed = sum(n for (_, good), n in counts.items() if good)
    failed = sum(counts.values()) - passed
    print(f"onnx_attention, libmha {mha.version()}: {passed} passed, {failed} failed")
    return 1 if failed or counts["float32", True] == 0 else 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], "--reference" in sys.argv[2:], "-v" in sys.argv[2:]))
