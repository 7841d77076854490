#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""libmha beside PyTorch: random configurations of scaled_dot_product_attention and nn.MultiheadAttention.

Each configuration draws shapes, layout, masks, scale, dropout, widths and extra keys, runs torch in float64 and
libmha in float32 on the same float32 numbers, and compares every output with the rounding bound of float32
(`Bound`). Where torch drops weights, libmha gets the keep mask that torch drew. After that come the differences
on purpose, each as a test of both sides.

Usage: torch_side_by_side.py LIBRARY [--cases 200] [--seed 1] [--only N] [--reference] [-v]
       exit status 1 if a configuration or a stated difference fails
"""
import argparse
import sys
import traceback

import numpy as np
import torch
from mha_ctypes import Library, Refused
from torch.nn.functional import scaled_dot_product_attention as sdpa
from torch_differences import DIFFERENCES

EPSILON = 2.0**-24
TOKENS = (1, 2, 3, 5, 17, 31, 32, 33, 63, 64, 65, 100, 127, 128, 129, 200)
SIZES = (1, 2, 3, 7, 8, 16, 20, 33, 64)


class Bound:
    """How far float32 may be from exact, elementwise at worst, to first order.

    The attention itself: 8 eps (A + log2 S + 4) max|v|, A the largest |scale| sum |q k| + |bias|.
    A projection of n products and a bias: (n + 2) eps (|x| |W|^T + |b|). Its errors dq, dk shift a score by
    ds = |scale| (dq |k| + |q| dk), a weight by at most 2 ds p, the output by 2 ds max|v| + dv.
    """

    def __init__(self, q, k, v, scale, biases, dq=None, dk=None, dv=0.0, keep=1.0):
        q, k = np.abs(q), np.abs(k)
        k = np.repeat(k, q.shape[2] // k.shape[2], axis=2)
        scale = abs(scale)
        A = scale * np.einsum("bihd,bjhd->bhij", q, k).max(initial=0)
        A += sum(np.abs(bias[np.isfinite(bias)]).max(initial=0) for bias in biases)
        ds = 0.0
        if dq is not None:
            ds = scale * (np.einsum("bihd,bjhd->bhij", dq, k) + np.einsum("bihd,bjhd->bhij", q, dk)).max(initial=0)
        value = np.abs(v).max(initial=0)
        self.relative = 8 * EPSILON * (A + np.log2(max(k.shape[1], 1)) + 4) + 2 * ds
        self.weights = self.relative / keep + np.finfo(np.float32).tiny
        self.output = (self.relative * value + dv) / keep + np.finfo(np.float32).tiny


def draw(generator, shape, spread=1.0):
    return (generator.standard_normal(shape) * spread).astype(np.float32)


def some_hidden(generator, shape):
    """Boolean, True = may attend; key 0 always may, so that no row is empty."""
    allowed = generator.random(shape) < generator.choice([0.3, 0.7, 0.95])
    allowed[..., 0] = True
    return allowed


def float_mask(generator, shape):
    """Numbers to add, some of them -inf, never at key 0."""
    mask = draw(generator, shape)
    mask[~some_hidden(generator, shape)] = -np.inf
    return mask


def keep_mask(p, shape, seed):
    """What torch.dropout keeps of a float64 tensor of this shape, first thing after manual_seed."""
    torch.manual_seed(seed)
    return torch.dropout(torch.ones(shape, dtype=torch.float64), p, True).numpy() != 0


def exact(array):
    return torch.from_numpy(array.astype(np.float64) if array.dtype == np.float32 else array)


def sdpa_case(generator, mha):
    """scaled_dot_product_attention: pairs of (name, libmha, torch, bound) and a line about them."""
    B, G = int(generator.integers(1, 4)), int(generator.integers(1, 4))
    H = G * int(generator.integers(1, 4))
    T, S = (int(n) for n in generator.choice(TOKENS, 2))
    D, Dv = (int(n) for n in generator.choice(SIZES, 2))
    rule = str(generator.choice(["none", "causal", "bool", "float"]))
    scale = [None, None, 0.0, -0.5, float(np.float32(generator.uniform(0.05, 1)))][generator.integers(5)]
    p = float(generator.choice([0, 0, 0, 0.3]))
    heads_first = bool(generator.integers(2))
    preset = bool(generator.integers(2))

    def heads(tokens, count, size):
        """[B,tokens,count,size] in one of the two usual layouts of memory."""
        if heads_first:
            return draw(generator, (B, count, tokens, size)).transpose(0, 2, 1, 3)
        return draw(generator, (B, tokens, count, size))

    q, k, v = heads(T, H, D), heads(S, G, D), heads(S, G, Dv)
    options = {"preset": "torch_sdpa"} if preset else {}
    options |= {} if scale is None else {"scale": scale}
    given, biases, shape = {}, [], "-"
    if rule == "causal":
        if scale is not None and scale <= 0:  # torch_differences.causal_of_a_scale_below_zero
            given["attn_mask"] = torch.ones(T, S, dtype=torch.bool).tril()
        else:
            given["is_causal"] = True
        options["causal"] = True
        if not preset:
            options["alignment"] = "top_left"
    elif rule != "none":
        sizes = [n if generator.integers(2) else 1 for n in (B, H, T)] + [S]
        mask = (some_hidden if rule == "bool" else float_mask)(generator, tuple(sizes))
        given["attn_mask"], shape = exact(mask), "x".join(map(str, mask.shape))
        if rule == "bool":
            options["masks"] = [("full", mask, False)]
        else:
            biases = options["biases"] = [mask]
    seed = int(generator.integers(1 << 30))
    if p > 0:
        options |= {"dropout": (p, 0), "keep": keep_mask(p, (B, H, T, S), seed)}
        torch.manual_seed(seed)
    wanted = sdpa(
        *(exact(x).transpose(1, 2) for x in (q, k, v)), dropout_p=p, scale=scale, enable_gqa=G != H, **given
    )
    found = mha.attend(q, k, v, **options)
    bound = Bound(*(x.astype(np.float64) for x in (q, k, v)), D**-0.5 if scale is None else scale, biases, keep=1 - p)
    line = f"sdpa B{B} T{T} S{S} H{H} G{G} D{D} Dv{Dv} mask {rule} {shape} scale {scale} dropout {p} preset {preset}"
    return line, [("output", found["output"], wanted.transpose(1, 2).numpy(), bound.output)]


def projected(x, weight, bias):
    """x W^T + b in float64, and how far float32 may be from it."""
    exactly = x @ weight.T + (0 if bias is None else bias)
    size = np.abs(x) @ np.abs(weight).T + (0 if bias is None else np.abs(bias))
    return exactly, (weight.shape[1] + 2) * EPSILON * size


def layer_parameters(layer):
    """The parameters of nn.MultiheadAttention under libmha's names, float32."""
    names = {
        "in_proj_weight": "in_proj_weight", "q_proj_weight": "q_weight", "k_proj_weight": "k_weight",
        "v_proj_weight": "v_weight", "in_proj_bias": "in_proj_bias", "out_proj.weight": "out_weight",
        "out_proj.bias": "out_bias", "bias_k": "bias_k", "bias_v": "bias_v",
    }  # fmt: skip
    return {names[n]: x.detach().numpy().astype(np.float32) for n, x in layer.named_parameters()}


def layer_bound(inputs, parameters, H, biases, zero, keep):
    """Bounds of the output and of the weights of a whole layer."""
    E = inputs[0].shape[2]
    parameters = {n: x.astype(np.float64) for n, x in parameters.items()}
    if "in_proj_weight" in parameters:
        weights = np.split(parameters["in_proj_weight"], 3)
    else:
        weights = [parameters[f"{n}_weight"] for n in "qkv"]
    ins = np.split(parameters["in_proj_bias"], 3) if "in_proj_bias" in parameters else [None] * 3
    heads, errors = [], []
    for name, x, weight, bias in zip("qkv", inputs, weights, ins):
        y, dy = projected(x.astype(np.float64), weight, bias)
        if name != "q" and "bias_k" in parameters:
            extra = np.broadcast_to(parameters[f"bias_{name}"].reshape(1, 1, E), (y.shape[0], 1, E))
            y, dy = np.concatenate([y, extra], 1), np.concatenate([dy, 0 * extra], 1)
        if name != "q" and zero:
            y, dy = (np.pad(a, ((0, 0), (0, 1), (0, 0))) for a in (y, dy))
        heads.append(y.reshape(*y.shape[:2], H, E // H))
        errors.append(dy.reshape(*y.shape[:2], H, E // H))
    dq, dk, dv = errors
    bound = Bound(*heads, (E // H) ** -0.5, biases, dq, dk, dv.max(initial=0), keep)
    weight = np.abs(parameters["out_weight"])
    value = np.abs(heads[2]).max(initial=0) / keep
    rounding = (E + 2) * EPSILON * (value * weight.sum(1) + np.abs(parameters.get("out_bias", 0)))
    return (bound.output * weight.sum(1) + rounding).max(), bound.weights


def layer_case(generator, mha):
    """nn.MultiheadAttention: projections, masks of both kinds, extra keys, weights, dropout."""
    B, H = int(generator.integers(1, 4)), int(generator.choice([1, 2, 3, 4, 8]))
    E = H * int(generator.choice([1, 2, 3, 5, 8, 16]))
    T = int(generator.choice(TOKENS))
    self_attention = bool(generator.integers(2))
    S = T if self_attention else int(generator.choice(TOKENS))
    kdim = vdim = None
    if not self_attention and generator.integers(2):
        kdim, vdim = (int(n) for n in generator.integers(1, 40, 2))
    bias, bias_kv, zero = (bool(generator.integers(n) == 0) for n in (2, 4, 4))
    p = 0.0 if bias_kv or zero else float(generator.choice([0, 0, 0.25]))
    layer = torch.nn.MultiheadAttention(
        E, H, dropout=p, bias=bias, add_bias_kv=bias_kv, add_zero_attn=zero, kdim=kdim, vdim=vdim,
        batch_first=True, dtype=torch.float64,
    ).train(p > 0)  # fmt: skip
    for parameter in layer.parameters():
        parameter.data = exact(draw(generator, tuple(parameter.shape), parameter.shape[-1] ** -0.5))
    query = draw(generator, (B, T, E))
    key = query if self_attention else draw(generator, (B, S, kdim or E))
    value = query if self_attention else draw(generator, (B, S, vdim or E))

    # Masks: True hides here. Where both are given they are of one kind, as torch wants it.
    kind = str(generator.choice(["bool", "float"]))
    padding, rule = bool(generator.integers(2)), str(generator.choice(["none", "2d", "3d", "causal"]))
    options = {"masks": [], "biases": []}
    given = {"need_weights": p > 0 or bool(generator.integers(2)), "average_attn_weights": False}
    if padding and kind == "bool":
        hidden = ~some_hidden(generator, (B, S))
        given["key_padding_mask"] = exact(hidden)
        options["masks"].append(("key", hidden, True))
    elif padding:
        mask = float_mask(generator, (B, S))
        given["key_padding_mask"] = exact(mask)
        options["biases"].append(mask.reshape(B, 1, 1, S))
    if rule == "causal":
        hidden = np.triu(np.ones((T, S), bool), 1)
        given["attn_mask"] = exact(hidden if kind == "bool" else np.where(hidden, -np.inf, 0).astype(np.float32))
        # A hint beside the mask; with extra keys it says something else: torch_differences.causal_hint_and_extra_keys
        given["is_causal"] = kind == "bool" and not (padding or bias_kv or zero)
        options |= {"causal": True, "alignment": "top_left"}
    elif rule != "none":
        sizes = (T, S) if rule == "2d" else (B, H, T, S)
        mask = ~some_hidden(generator, sizes) if kind == "bool" else float_mask(generator, sizes)
        given["attn_mask"] = exact(mask if rule == "2d" else mask.reshape(B * H, T, S))
        if kind == "bool":
            options["masks"].append(("query_key" if rule == "2d" else "full", mask, True))
        else:
            options["biases"].append(mask.reshape((1, 1, T, S) if rule == "2d" else (B, H, T, S)))

    seed = int(generator.integers(1 << 30))
    if p > 0:
        keep = keep_mask(p, (B * H, T, S), seed)
        options |= {"dropout": (p, 0), "keep": keep.reshape(B, H, T, S)}
        torch.manual_seed(seed)
    if generator.integers(2):
        options["preset"] = "torch_mha"
    with torch.no_grad():
        wanted, weights = layer(exact(query), exact(key), exact(value), **given)
    parameters = layer_parameters(layer)
    options |= {"parameters": parameters, "heads": H, "zero_key": zero}
    named = "weights_dropped" if p > 0 else "weights"  # torch hands out what it multiplies with
    if weights is not None:
        options["outputs"] = [named] if p > 0 else [named, "weights_mean"]
    found = mha.attend(query, key, value, **options)
    output_bound, weights_bound = layer_bound((query, key, value), parameters, H, options["biases"], zero, 1 - p)
    pairs = [("output", found["output"], wanted.numpy(), output_bound)]
    if weights is not None:
        pairs.append((named, found[named], weights.numpy(), weights_bound))
        if p == 0:
            pairs.append(("weights_mean", found["weights_mean"], weights.mean(1).numpy(), weights_bound))
    line = (
        f"layer B{B} T{T} S{S} E{E} H{H} kdim {kdim} vdim {vdim} bias {bias} bias_kv {bias_kv} zero {zero} "
        f"mask {kind} {rule} padding {padding} dropout {p} weights {weights is not None}"
    )
    return line, pairs


def judge(pairs):
    """Problems as sentences, and the largest error as a share of its bound."""
    problems, share = [], 0.0
    for name, found, wanted, allowed in pairs:
        if found.shape != wanted.shape:
            problems.append(f"{name} has the shape {found.shape}, torch's {wanted.shape}")
            continue
        if not np.isfinite(wanted).all():
            problems.append(f"torch's {name} is not finite: this configuration says nothing")
            continue
        error = np.abs(found - wanted).max(initial=0)
        if not error <= allowed:
            problems.append(f"{name} is off by {error:.3g}, allowed {allowed:.3g}")
        share = max(share, error / allowed)
    return problems, share


def main(arguments):
    mha = Library(arguments.library, arguments.reference)
    torch.set_num_threads(2)
    passed = failed = 0
    worst = {sdpa_case: 0.0, layer_case: 0.0}
    numbers = range(arguments.cases) if arguments.only is None else [arguments.only]
    for number in numbers:
        case = layer_case if number % 5 >= 3 else sdpa_case
        line, share = f"{case.__name__} before it could say more", 0.0
        try:
            line, pairs = case(np.random.default_rng([arguments.seed, number]), mha)
            problems, share = judge(pairs)
        except Refused as refusal:
            problems = [f"refused: {refusal}"]
        except Exception:
            problems = [traceback.format_exc()]
        passed, failed = passed + (not problems), failed + bool(problems)
        worst[case] = max(worst[case], share)
        if problems:
            print(f"FAIL {number} (seed {arguments.seed}) {line}: {'; '.join(problems)}")
        elif arguments.verbose:
            print(f"pass {number} {line}, {share:.2f} of the bound")
    print(f"torch {torch.__version__}, libmha {mha.version()}, seed {arguments.seed}: largest error as a share of its")
    print(f"bound: sdpa {worst[sdpa_case]:.3f}, layer {worst[layer_case]:.3f}")
    if arguments.only is None:
        for difference in DIFFERENCES:
            title, told = " ".join(difference.__doc__.split()), None
            try:
                told = difference(mha)
            except Exception:
                told = traceback.format_exc()
            passed, failed = passed + (told is None), failed + (told is not None)
            print(f"{'FAIL' if told else 'as stated:'} {title}{f': {told}' if told else ''}")
    print(f"torch_side_by_side: {passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int)
    parser.add_argument("--reference", action="store_true", help="by mha_reference_forward in place of mha_forward")
    parser.add_argument("-v", "--verbose", action="store_true")
    sys.exit(main(parser.parse_args()))
