#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""libmha from Python, as far as the comparisons in this folder need it: a helper of tests, no binding.

    mha = Library("build/release/libmha.so")
    result = mha.attend(q, k, v, causal=True, alignment="top_left", outputs=["weights", "lse"])

Arrays keep their strides on the way in and out, so a transposed view is passed as what it is.
"""
import contextlib
import ctypes

import numpy as np

# Arguments before the error object: p pointer, i int32, l int64, f float, d double, u uint64.
# All of these return a status.
FUNCTIONS = {
    "mha_config_create": "llp",
    "mha_config_set_kv_heads": "pl",
    "mha_config_set_head_size": "pl",
    "mha_config_set_value_head_size": "pl",
    "mha_config_set_key_width": "pl",
    "mha_config_set_value_width": "pl",
    "mha_config_set_projection": "pii",
    "mha_config_set_bias": "pii",
    "mha_config_set_scale": "pf",
    "mha_config_set_softcap": "pf",
    "mha_config_set_extra_keys": "pii",
    "mha_layer_create": "pp",
    "mha_layer_set_parameter": "piipl",
    "mha_context_create": "p",
    "mha_mask_create": "p",
    "mha_mask_set_causal": "pi",
    "mha_mask_set_alignment": "pi",
    "mha_mask_set_offsets": "plp",
    "mha_mask_set_window": "pll",
    "mha_mask_set_key_lengths": "plp",
    "mha_mask_add_key_mask": "pllppi",
    "mha_mask_add_query_key_mask": "pllppi",
    "mha_mask_add_full_mask": "pllllppi",
    "mha_preset_apply": "iipp",
    "mha_call_create": "p",
    "mha_call_set_input": "piipipp",
    "mha_call_set_output": "piipipp",
    "mha_call_set_dropout": "pdu",
    "mha_call_set_dropout_mask": "ppllll",
    "mha_forward": "pppp",
    "mha_reference_forward": "ppp",
    "mha_constant_value": "pp",
}
TYPES = {
    "p": ctypes.c_void_p,
    "i": ctypes.c_int32,
    "l": ctypes.c_int64,
    "f": ctypes.c_float,
    "d": ctypes.c_double,
    "u": ctypes.c_uint64,
}
PROJECTIONS = ("q", "k", "v", "out")


class Refused(Exception):
    """A status that is not MHA_OK, with the library's sentence."""

    def __init__(self, status, sentence):
        super().__init__(sentence)
        self.status = status


def integers(values):
    return np.ascontiguousarray(np.atleast_1d(values), dtype=np.int64)


def address(array):
    return None if array is None else array.ctypes.data


class Library:
    """The shared library at path; with reference, attend is its mha_reference_forward."""

    def __init__(self, path, reference=False):
        self._lib = ctypes.CDLL(str(path))
        self._reference = reference
        for kind in ("config", "layer", "context", "mask", "call", "error"):
            destroy = getattr(self._lib, f"mha_{kind}_destroy")
            destroy.argtypes, destroy.restype = [ctypes.c_void_p], None
        self._lib.mha_error_create.restype = ctypes.c_void_p
        self._lib.mha_error_message.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int64]
        self._lib.mha_error_message.restype = ctypes.c_int64
        self._lib.mha_version_string.restype = ctypes.c_char_p
        self._error = self._lib.mha_error_create()
        self._constants = {}

    def version(self):
        return self._lib.mha_version_string().decode() + (" reference" if self._reference else "")

    def constant(self, name):
        """The value of MHA_<name>, as the library has it."""
        if name not in self._constants:
            value = ctypes.c_int64()
            self._do("mha_constant_value", f"MHA_{name}".encode(), ctypes.byref(value))
            self._constants[name] = value.value
        return self._constants[name]

    def _do(self, name, *arguments):
        function = getattr(self._lib, name)
        function.argtypes = [TYPES[letter] for letter in FUNCTIONS[name]] + [ctypes.c_void_p]
        status = function(*arguments, self._error)
        if status != 0:
            sentence = ctypes.create_string_buffer(512)
            self._lib.mha_error_message(self._error, sentence, 512)
            raise Refused(status, sentence.value.decode() or f"{name}: status {status}")

    def _create(self, stack, kind, *arguments):
        handle = ctypes.c_void_p()
        self._do(f"mha_{kind}_create", *arguments, ctypes.byref(handle))
        stack.callback(getattr(self._lib, f"mha_{kind}_destroy"), handle)
        return handle

    def attend(self, query, key, value, **options):
        """One forward pass; a dict of arrays, "output" first.

        Without `parameters`: query [B,T,H,D], key [B,S,G,D], value [B,S,G,Dv], no projections. With them:
        [B,T,E], [B,S,Ek], [B,S,Ev] and `heads`, and the parameters by name ("q_weight", "bias_k", …);
        a bias that is not among them does not exist.

        config   parameters, heads, scale, softcap, zero_key
        mask     preset (name), causal, alignment ("top_left" | "bottom_right"), offsets, window (left,
                 right), key_lengths, masks: a list of (kind "key" | "query_key" | "full", array, inverted)
        call     biases: a list of [B|1,H|1,T|1,S], dropout (p, seed), keep [B,H,T,S], output: the array to
                 write to, outputs: names of others ("weights", "lse", "scores_scaled", …)
        """
        unknown = set(options) - OPTIONS
        if unknown:
            raise TypeError(f"attend has no options {sorted(unknown)}")
        with contextlib.ExitStack() as stack:
            layer = self._layer(stack, query, key, value, options)
            mask = self._mask(stack, options)
            call = self._create(stack, "call")
            for name, array in (("QUERY", query), ("KEY", key), ("VALUE", value)):
                self._tensor("input", call, name, array)
            for number, bias in enumerate(options.get("biases", ())):
                self._tensor("input", call, f"BIAS{number}", bias)
            keep = self._dropout(call, options)
            outputs = self._outputs(call, query, key, value, options)
            if self._reference:
                self._do("mha_reference_forward", layer, mask, call)
            else:
                self._do("mha_forward", self._create(stack, "context"), layer, mask, call)
            del keep  # the call remembered its address until here
            return outputs

    def _layer(self, stack, query, key, value, options):
        parameters = options.get("parameters")
        if parameters is None:
            heads, size = query.shape[2:]
            config = self._create(stack, "config", heads * size, heads)
            self._do("mha_config_set_kv_heads", config, key.shape[2])
            self._do("mha_config_set_head_size", config, size)
            self._do("mha_config_set_value_head_size", config, value.shape[3])
            parameters, on = {}, 0
        else:
            config = self._create(stack, "config", query.shape[2], options["heads"])
            self._do("mha_config_set_key_width", config, key.shape[2])
            self._do("mha_config_set_value_width", config, value.shape[2])
            on = 1
        if "preset" in options:
            preset = self.constant(f"PRESET_{options['preset'].upper()}")
            self._do("mha_preset_apply", preset, int(options.get("causal", False)), config, None)
        for projection in PROJECTIONS:
            number = self.constant(f"PROJECTION_{projection.upper()}")
            packed = projection != "out" and "in_proj_bias" in parameters
            bias = packed or f"{projection}_bias" in parameters
            self._do("mha_config_set_projection", config, number, on)
            self._do("mha_config_set_bias", config, number, int(bool(on and bias)))
        if options.get("scale") is not None:
            self._do("mha_config_set_scale", config, options["scale"])
        if options.get("softcap") is not None:
            self._do("mha_config_set_softcap", config, options["softcap"])
        bias_kv, zero = int("bias_k" in parameters), int(options.get("zero_key", False))
        if bias_kv or zero:
            self._do("mha_config_set_extra_keys", config, bias_kv, zero)
        handle = self._create(stack, "layer", config)
        for name, array in parameters.items():
            array = np.ascontiguousarray(array, dtype=np.float32)
            number = self.constant(f"PARAM_{name.upper()}")
            float32 = self.constant("FLOAT32")
            self._do("mha_layer_set_parameter", handle, number, float32, address(array), array.size)
        return handle

    def _mask(self, stack, options):
        mask = self._create(stack, "mask")
        if "preset" in options:
            preset = self.constant(f"PRESET_{options['preset'].upper()}")
            self._do("mha_preset_apply", preset, int(options.get("causal", False)), None, mask)
        elif "causal" in options:
            self._do("mha_mask_set_causal", mask, int(options["causal"]))
        if "alignment" in options:
            alignment = self.constant(f"ALIGNMENT_{options['alignment'].upper()}")
            self._do("mha_mask_set_alignment", mask, alignment)
        if "offsets" in options:
            offsets = integers(options["offsets"])
            self._do("mha_mask_set_offsets", mask, offsets.size, address(offsets))
        if "window" in options:
            self._do("mha_mask_set_window", mask, *options["window"])
        if "key_lengths" in options:
            lengths = integers(options["key_lengths"])
            self._do("mha_mask_set_key_lengths", mask, lengths.size, address(lengths))
        for kind, allowed, inverted in options.get("masks", ()):
            bytes_ = np.asarray(allowed).astype(np.uint8, order="K", copy=False)
            sizes = bytes_.shape[-{"key": 2, "query_key": 2, "full": 4}[kind] :]
            strides = integers(bytes_.strides)
            flags = self.constant("MASK_INVERTED") if inverted else 0
            add = f"mha_mask_add_{kind}_mask"
            self._do(add, mask, *sizes, address(bytes_), address(strides), flags)
        return mask

    def _tensor(self, direction, call, name, array):
        if array.dtype != np.float32:
            raise TypeError(f"{name} is {array.dtype}, not float32")
        shape = integers(array.shape)
        strides = integers([stride // 4 for stride in array.strides])
        number, float32 = self.constant(f"TENSOR_{name}"), self.constant("FLOAT32")
        set_tensor = f"mha_call_set_{direction}"
        self._do(set_tensor, call, number, float32, address(array), array.ndim, address(shape), address(strides))

    def _dropout(self, call, options):
        if "dropout" in options:
            self._do("mha_call_set_dropout", call, *options["dropout"])
        if "keep" not in options:
            return None
        keep = np.ascontiguousarray(options["keep"], dtype=np.uint8)
        self._do("mha_call_set_dropout_mask", call, address(keep), *keep.shape)
        return keep

    def _outputs(self, call, query, key, value, options):
        """Output arrays full of NaN, so that what is not written shows."""
        B, T, S = query.shape[0], query.shape[1], key.shape[1]
        parameters = options.get("parameters")
        if parameters is None:
            H = query.shape[2]
            width = (H, value.shape[3])
        else:
            H = options["heads"]
            width = (parameters["out_weight"].shape[0],)
        columns = S + int("bias_k" in (parameters or {})) + int(options.get("zero_key", False))
        shapes = {
            "weights": (B, H, T, columns),
            "weights_dropped": (B, H, T, columns),
            "weights_mean": (B, T, columns),
            "lse": (B, H, T),
            "scores_scaled": (B, H, T, S),
            "scores_capped": (B, H, T, S),
            "scores_biased": (B, H, T, S),
        }
        outputs = {"output": options.get("output")}
        if outputs["output"] is None:
            outputs["output"] = np.empty((B, T, *width), np.float32)
        for name in options.get("outputs", ()):
            outputs[name] = np.empty(shapes[name], np.float32)
        for name, array in outputs.items():
            array.fill(np.nan)
            self._tensor("output", call, name.upper(), array)
        return outputs


OPTIONS = {
    "parameters", "heads", "scale", "softcap", "zero_key", "preset", "causal", "alignment", "offsets",
    "window", "key_lengths", "masks", "biases", "dropout", "keep", "output", "outputs",
}  # fmt: skip


def bound(scores, value, sides=1):
    """How far float32 attention may be from the exact one: 8 * 2^-24 * (A + log2 S + 4) * max|v|, where
    A = scores is the largest |scale| * sum |q_d k_d| + |biases| and value the largest |v|; times the number
    of sides that round in float32."""
    A, S = float(scores[0]), scores[1]
    return sides * 8 * 2.0**-24 * (A + np.log2(max(S, 1)) + 4) * float(value) + np.finfo(np.float32).tiny


def largest_score(query, key, scale, biases=()):
    """A of `bound` and S, from heads [B,T,H,D] and [B,S,G,D]; hidden keys count too."""
    query, key = np.abs(query.astype(np.float64)), np.abs(key.astype(np.float64))
    key = np.repeat(key, query.shape[2] // key.shape[2], axis=2)
    A = abs(scale) * np.einsum("bihd,bjhd->bhij", query, key).max(initial=0)
    for bias in biases:
        A += np.abs(bias[np.isfinite(bias)]).max(initial=0)
    return A, key.shape[1]
