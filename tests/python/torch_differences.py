# SPDX-License-Identifier: Apache-2.0
"""Where libmha and PyTorch differ on purpose: a function each, its first sentence the difference.

Each shows what torch does and what libmha does, and returns None, or a sentence where one of them has changed.
docs/presets.md tells the same to people.
"""
import numpy as np
import torch
from mha_ctypes import Refused, bound, largest_score
from torch.nn.functional import scaled_dot_product_attention as sdpa

SIZE = 8
# Layers of 16 features on both sides in float32: three products of 16 in a row, entries of about 1.
LAYER_ROUNDING = 3 * 16 * 2.0**-23


def heads(B=2, T=3, S=5, H=2, G=2):
    generator = np.random.default_rng(7)
    return [generator.standard_normal((B, n, h, SIZE)).astype(np.float32) for n, h in ((T, H), (S, G), (S, G))]


def of_torch(q, k, v, **options):
    """sdpa in float64 over [B,T,H,D]; float arrays among the options too."""
    options = {n: torch.from_numpy(x) if isinstance(x, np.ndarray) else x for n, x in options.items()}
    q, k, v = (torch.from_numpy(x.astype(np.float64)).transpose(1, 2) for x in (q, k, v))
    return sdpa(q, k, v, **options).transpose(1, 2).numpy()


def refused(function, *arguments, **options):
    """The exception's type, None if there was none."""
    try:
        function(*arguments, **options)
    except (RuntimeError, Refused) as refusal:
        return type(refusal)
    return None


def close(found, wanted, q, k, v, scale=SIZE**-0.5):
    """Within the rounding of float32, and so not NaN."""
    allowed = bound(largest_score(q, k, scale), np.abs(v[np.isfinite(v)]).max())
    return bool(np.abs(found - wanted).max() <= allowed)


def plain_layer():
    torch.manual_seed(5)
    layer = torch.nn.MultiheadAttention(16, 2, batch_first=True).eval()
    with torch.no_grad():
        layer.out_proj.bias.copy_(torch.linspace(-1, 1, 16))
    names = {"in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias"}
    parameters = {
        name.replace("proj.", ""): x.detach().numpy() for name, x in layer.named_parameters() if name in names
    }
    return layer, {"parameters": parameters, "heads": 2}


def empty_rows_of_a_layer(mha):
    """a row that may see no key: nn.MultiheadAttention gives NaN with need_weights, libmha the output bias."""
    layer, options = plain_layer()
    x = np.random.default_rng(1).standard_normal((1, 4, 16)).astype(np.float32)
    hidden = np.zeros((4, 4), bool)
    hidden[1] = True
    given = torch.from_numpy(x)
    wanted, weights = layer(given, given, given, attn_mask=torch.from_numpy(hidden))
    if not (np.isnan(wanted[0, 1].detach()).all() and np.isnan(weights[0, 1].detach()).all()):
        return "torch's row is no longer NaN"
    found = mha.attend(x, x, x, masks=[("query_key", hidden, True)], outputs=["weights", "lse"], **options)
    if not np.array_equal(found["output"][0, 1], options["parameters"]["out_bias"]):
        return f"libmha's row is {found['output'][0, 1]}, not the output bias"
    if found["weights"][0, :, 1].any() or not np.isneginf(found["lse"][0, :, 1]).all():
        return "libmha's weights are not 0 or its log-sum-exp is not -infinity"
    return None


def empty_rows_of_a_function(mha):
    """the same in scaled_dot_product_attention: both give 0 (torch from 2.5 on), so nothing differs here."""
    q, k, v = heads()
    allowed = np.ones((1, 1, 3, 5), bool)
    allowed[:, :, 1] = False
    wanted = of_torch(q, k, v, attn_mask=allowed)
    found = mha.attend(q, k, v, masks=[("full", allowed, False)])["output"]
    if wanted[:, 1].any() or found[:, 1].any():
        return "a row is not 0"
    return None if close(found, wanted, q, k, v) else "the other rows differ"


def nan_at_hidden_keys(mha):
    """NaN stored at a hidden key: torch spreads it (NaN + -inf, 0 * NaN), libmha's bits stay the same."""
    q, k, v = heads()
    allowed = np.ones((1, 1, 3, 5), bool)
    allowed[..., 4] = False
    clean = mha.attend(q, k, v, masks=[("full", allowed, False)])["output"]
    k[:, 4], v[:, 4] = np.nan, np.nan
    if not np.isnan(of_torch(q, k, v, attn_mask=allowed)).all():
        return "torch's output is no longer NaN"
    found = mha.attend(q, k, v, masks=[("full", allowed, False)])["output"]
    return None if found.tobytes() == clean.tobytes() and np.isfinite(clean).all() else "libmha's bits changed"


def causal_beside_a_mask(mha):
    """is_causal beside attn_mask: scaled_dot_product_attention refuses, libmha applies both."""
    q, k, v = heads()
    allowed = np.random.default_rng(2).random((1, 1, 3, 5)) < 0.5
    allowed[..., 0] = True
    if refused(of_torch, q, k, v, attn_mask=allowed, is_causal=True) is None:
        return "torch accepts both now"
    found = mha.attend(q, k, v, causal=True, alignment="top_left", masks=[("full", allowed, False)])["output"]
    both = allowed & np.tri(3, 5, dtype=bool)
    return None if close(found, of_torch(q, k, v, attn_mask=both), q, k, v) else "libmha's is not the intersection"


def causal_without_alignment(mha):
    """causal where T != S: torch takes the top left corner unsaid, libmha refuses until the alignment is said."""
    q, k, v = heads()
    if refused(mha.attend, q, k, v, causal=True) is not Refused:
        return "libmha did not refuse"
    found = mha.attend(q, k, v, causal=True, alignment="top_left")["output"]
    if not close(found, of_torch(q, k, v, is_causal=True), q, k, v):
        return "torch's corner is not the top left one"
    lower = np.tri(3, 5, 5 - 3, dtype=bool)
    found = mha.attend(q, k, v, causal=True, alignment="bottom_right")["output"]
    return None if close(found, of_torch(q, k, v, attn_mask=lower), q, k, v) else "bottom right is not tril(S - T)"


def causal_hint_of_a_layer(mha):
    """is_causal of nn.MultiheadAttention is a hint beside attn_mask and refused alone, in libmha it is the mask."""
    layer, options = plain_layer()
    x = np.random.default_rng(3).standard_normal((1, 4, 16)).astype(np.float32)
    given = torch.from_numpy(x)
    if refused(layer, given, given, given, is_causal=True) is None:
        return "torch accepts the hint alone now"
    mask = torch.nn.Transformer.generate_square_subsequent_mask(4)
    wanted = layer(given, given, given, attn_mask=mask, is_causal=True)[0].detach().numpy()
    found = mha.attend(x, x, x, causal=True, **options)["output"]
    return None if np.abs(found - wanted).max() <= LAYER_ROUNDING else "the masked layers differ"


def causal_hint_and_extra_keys(mha):
    """extra keys under the is_causal hint: without need_weights torch hides them by position, libmha never."""
    torch.manual_seed(8)
    layer = torch.nn.MultiheadAttention(16, 2, bias=False, add_bias_kv=True, batch_first=True).eval()
    x = np.random.default_rng(8).standard_normal((1, 4, 16)).astype(np.float32)
    given, hidden = torch.from_numpy(x), torch.from_numpy(np.triu(np.ones((4, 4), bool), 1))
    with torch.no_grad():
        wanted = layer(given, given, given, attn_mask=hidden)[0].numpy()
        fast = layer(given, given, given, attn_mask=hidden, is_causal=True, need_weights=False)[0].numpy()
    if np.allclose(fast, wanted, atol=1e-3):
        return "torch's two ways agree now"
    parameters = {name.replace("proj.", ""): x.detach().numpy() for name, x in layer.named_parameters()}
    found = mha.attend(x, x, x, causal=True, parameters=parameters, heads=2)["output"]
    # As in causal_hint_of_a_layer; bias_k and bias_v are entries of about 1 too.
    return None if np.abs(found - wanted).max() <= LAYER_ROUNDING else "libmha is not torch with need_weights"


def causal_of_a_scale_below_zero(mha):
    """is_causal with a scale of 0 or less: torch's CPU kernel gives NaN, libmha what torch gives for the same mask."""
    q, k, v = heads(T=64, S=100)
    lower = np.tri(64, 100, dtype=bool)
    for scale in (0.0, -0.5):
        if np.isfinite(of_torch(q, k, v, is_causal=True, scale=scale)).all():
            return f"torch's output for a scale of {scale} is finite now"
        found = mha.attend(q, k, v, causal=True, alignment="top_left", scale=scale)["output"]
        if not close(found, of_torch(q, k, v, attn_mask=lower, scale=scale), q, k, v, 0.5):
            return f"the masked outputs for a scale of {scale} differ"
    return None


def dropout_streams(mha):
    """dropout with one seed: other random numbers than torch's, but the same result from the same keep mask."""
    q, k, v = heads()
    p, seed, shape = 0.5, 11, (2, 2, 3, 5)
    torch.manual_seed(seed)
    keep = torch.dropout(torch.ones(shape, dtype=torch.float64), p, True).numpy() != 0
    torch.manual_seed(seed)
    wanted = of_torch(q, k, v, dropout_p=p)
    if np.allclose(mha.attend(q, k, v, dropout=(p, seed))["output"], wanted, atol=1e-4):
        return "one seed drops the same weights on both sides, which no one can have wanted"
    found = mha.attend(q, k, v, dropout=(p, seed), keep=keep)["output"]
    return None if close(found * (1 - p), wanted * (1 - p), q, k, v) else "the same keep mask gives another result"


def weights_under_dropout(mha):
    """weights under dropout: nn.MultiheadAttention returns the dropped ones, libmha both, as asked."""
    layer, options = plain_layer()
    layer.dropout = 0.5
    x = np.random.default_rng(4).standard_normal((1, 6, 16)).astype(np.float32)
    given, shape = torch.from_numpy(x), (2, 6, 6)
    torch.manual_seed(3)
    keep = torch.dropout(torch.ones(shape), 0.5, True).numpy() != 0
    torch.manual_seed(3)
    weights = layer.train()(given, given, given, average_attn_weights=False)[1].detach().numpy()
    found = mha.attend(
        x, x, x, dropout=(0.5, 0), keep=keep[None], outputs=["weights", "weights_dropped"], **options
    )
    if np.array_equal(weights != 0, np.ones_like(weights, bool)) or np.abs(found["weights"].sum(-1) - 1).max() > 3e-6:
        return "torch dropped nothing, or libmha's weights do not sum to 1"
    # Weights of at most 1 / (1 - p) from float32 scores of a few units, on both sides.
    return None if np.abs(found["weights_dropped"] - weights).max() <= 64 * 2.0**-23 else "the dropped weights differ"


def heads_of_groups(mha):
    """fewer key heads than query heads: torch wants enable_gqa=True, libmha sees it from the config."""
    q, k, v = heads(H=4, G=2)
    if refused(of_torch, q, k, v) is None:
        return "torch needs no flag any more"
    found = mha.attend(q, k, v)["output"]
    return None if close(found, of_torch(q, k, v, enable_gqa=True), q, k, v) else "the groups differ"


def masks_of_a_layer_hide(mha):
    """True in a mask hides in nn.MultiheadAttention, shows in scaled_dot_product_attention; libmha has a flag."""
    q, k, v = heads()
    mask = np.random.default_rng(6).random((1, 1, 3, 5)) < 0.5
    mask[..., 0], mask[..., 1] = True, False
    shows = mha.attend(q, k, v, masks=[("full", mask, False)])["output"]
    hides = mha.attend(q, k, v, masks=[("full", mask, True)])["output"]
    if not close(shows, of_torch(q, k, v, attn_mask=mask), q, k, v):
        return "as it is, True does not show"
    return None if close(hides, of_torch(q, k, v, attn_mask=~mask), q, k, v) else "inverted, True does not hide"


DIFFERENCES = [
    empty_rows_of_a_layer,
    empty_rows_of_a_function,
    nan_at_hidden_keys,
    causal_beside_a_mask,
    causal_without_alignment,
    causal_hint_of_a_layer,
    causal_hint_and_extra_keys,
    causal_of_a_scale_below_zero,
    dropout_streams,
    weights_under_dropout,
    heads_of_groups,
    masks_of_a_layer_hide,
]
