# SPDX-License-Identifier: Apache-2.0
"""libmha for timing: everything is made once, and what `forward` returns does one forward and nothing else."""
import ctypes

import numpy as np

P, I, L = ctypes.c_void_p, ctypes.c_int32, ctypes.c_int64
# Arguments before the error object, which is the last of all. All return a status.
FUNCTIONS = {
    "mha_config_create": (L, L, P),
    "mha_config_set_projection": (P, I, I),
    "mha_layer_create": (P, P),
    "mha_layer_set_parameter": (P, I, I, P, L),
    "mha_context_create": (P,),
    "mha_context_set_threads": (P, I),
    "mha_context_set_engine": (P, I),
    "mha_mask_create": (P,),
    "mha_mask_set_causal": (P, I),
    "mha_layer_forward": (P, P, L, L, L, P, P, P, P, P),
    "mha_constant_value": (ctypes.c_char_p, P),
}


class Library:
    def __init__(self, path):
        self._lib = ctypes.CDLL(str(path))
        for name, types in FUNCTIONS.items():
            getattr(self._lib, name).argtypes = (*types, P)
        self._lib.mha_error_create.restype = P
        self._lib.mha_error_message.argtypes = (P, ctypes.c_char_p, L)
        self._error = self._lib.mha_error_create()

    def _do(self, name, *arguments):
        if getattr(self._lib, name)(*arguments, self._error) != 0:
            sentence = ctypes.create_string_buffer(512)
            self._lib.mha_error_message(self._error, sentence, 512)
            raise RuntimeError(f"{name}: {sentence.value.decode()}")

    def _constant(self, name):
        value = L()
        self._do("mha_constant_value", f"MHA_{name}".encode(), ctypes.byref(value))
        return value.value

    def _create(self, kind, *arguments):
        handle = P()
        self._do(f"mha_{kind}_create", *arguments, ctypes.byref(handle))
        return handle  # lives as long as this process

    def forward(self, query, key, value, out, heads, engine, threads, causal=False, parameters=None):
        """A function without arguments: one forward of [B,T,E] arrays into out. parameters, by name
        ("q_weight", …), make it a layer; without them all projections are off."""
        B, T, E = query.shape
        config = self._create("config", E, heads)
        if parameters is None:
            for projection in ("Q", "K", "V", "OUT"):
                self._do("mha_config_set_projection", config, self._constant(f"PROJECTION_{projection}"), 0)
        layer = self._create("layer", config)
        for name, array in (parameters or {}).items():
            array = np.ascontiguousarray(array)  # copied by the call
            number = self._constant(f"PARAM_{name.upper()}")
            self._do("mha_layer_set_parameter", layer, number, self._constant("FLOAT32"), array.ctypes.data, array.size)
        context = self._create("context")
        self._do("mha_context_set_threads", context, threads)
        self._do("mha_context_set_engine", context, self._constant(f"ENGINE_{engine.upper()}"))
        mask = None
        if causal:
            mask = self._create("mask")
            self._do("mha_mask_set_causal", mask, 1)
        call, error = self._lib.mha_layer_forward, self._error
        pointers = [P(array.ctypes.data) for array in (query, key, value)]
        arguments = (context, layer, L(B), L(T), L(T), *pointers, mask, P(out.ctypes.data), error)
        arrays = (query, key, value, out)  # kept alive by the function below

        def run():
            if call(*arguments) != 0:
                raise RuntimeError(f"mha_layer_forward failed, B = {arrays[0].shape[0]}")

        return run
