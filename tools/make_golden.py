#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/golden.json: layers of torch.nn.MultiheadAttention and what they compute.

Parameters and inputs are float32 numbers; the layer itself runs in float64, so that the stored results
have no rounding of their own. In torch's masks True means "may not attend".

    python3 -m venv venv && venv/bin/pip install -r tools/golden_requirements.txt
    venv/bin/python tools/make_golden.py
"""

import json
import pathlib
import platform

import numpy as np
import torch

# name, E, H, kdim, vdim, bias, B, T, S, causal, padded keys a batch row
LAYERS = [
    ("self", 12, 3, None, None, True, 2, 5, 5, False, None),
    ("self without biases", 8, 2, None, None, False, 1, 6, 6, False, None),
    ("cross with widths of their own", 12, 2, 7, 10, True, 2, 4, 6, False, None),
    ("cross of one width", 12, 4, None, None, True, 1, 3, 9, False, None),
    ("causal", 16, 4, None, None, True, 1, 7, 7, True, None),
    ("key padding", 10, 5, None, None, True, 3, 4, 6, False, [0, 2, 5]),
    ("causal and key padding", 8, 2, None, None, True, 2, 6, 6, True, [0, 3]),
    ("longer than a tile", 6, 2, None, None, True, 1, 3, 130, False, None),
]


def float32(generator, *shape):
    return torch.from_numpy(generator.standard_normal(shape).astype(np.float32)).double()


def flat(tensor):
    """Row-major numbers; 9 digits carry a float32 exactly, 12 are enough for a result."""
    return [float(f"{x:.12g}") for x in tensor.detach().reshape(-1).tolist()]


def make(number, name, E, H, kdim, vdim, bias, B, T, S, causal, padded):
    generator = np.random.default_rng(1000 + number)
    layer = torch.nn.MultiheadAttention(
        E, H, bias=bias, kdim=kdim, vdim=vdim, batch_first=True, dtype=torch.float64
    ).eval()
    with torch.no_grad():
        for parameter in layer.parameters():
            scale = parameter.shape[-1] ** -0.5
            parameter.copy_((float32(generator, *parameter.shape) * scale).float().double())
    query = float32(generator, B, T, E)
    is_self = T == S and kdim is None
    key = query if is_self else float32(generator, B, S, kdim or E)
    value = query if is_self else float32(generator, B, S, vdim or E)
    attn_mask = torch.triu(torch.ones(T, S, dtype=torch.bool), diagonal=1) if causal else None
    padding = None
    if padded is not None:
        padding = torch.tensor([[j >= S - n for j in range(S)] for n in padded])

    def forward(mean):
        with torch.no_grad():
            return layer(
                query,
                key,
                value,
                attn_mask=attn_mask,
                key_padding_mask=padding,
                need_weights=True,
                average_attn_weights=mean,
            )

    output, weights = forward(mean=False)
    _, weights_mean = forward(mean=True)
    entry = {
        "name": name,
        "B": B, "T": T, "S": S, "E": E, "H": H, "kdim": kdim or E, "vdim": vdim or E,
        "query": flat(query), "key": flat(key), "value": flat(value),
        "output": flat(output), "weights": flat(weights), "weights_mean": flat(weights_mean),
    }
    for parameter_name, parameter in layer.named_parameters():
        entry[parameter_name] = flat(parameter)
    if attn_mask is not None:
        entry["attn_mask"] = attn_mask.int().reshape(-1).tolist()
    if padding is not None:
        entry["key_padding_mask"] = padding.int().reshape(-1).tolist()
    return entry


def main():
    torch.use_deterministic_algorithms(True)
    golden = {
        "source": "torch.nn.MultiheadAttention, batch_first, float64 on float32 numbers",
        "torch": torch.__version__.split("+")[0],
        "numpy": np.__version__,
        "python": platform.python_version(),
        "layers": [make(number, *layer) for number, layer in enumerate(LAYERS)],
    }
    path = pathlib.Path(__file__).resolve().parent.parent / "tests" / "data" / "golden.json"
    with open(path, "w", encoding="utf-8") as file:
        json.dump(golden, file, separators=(",", ":"))
        file.write("\n")
    print(f"{path.name}: {len(golden['layers'])} layers, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
