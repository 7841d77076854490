# SPDX-License-Identifier: Apache-2.0
"""libmha for timing: everything is made once, and what `forward` returns does one forward and nothing else."""
import ctypes

import numpy as np
from peer_case import Run, empty

P, I, L = ctypes.c_void_p, ctypes.c_int32, ctypes.c_int64
LONGS = ctypes.POINTER(L)
# Arguments before the error object, which is the last of all. All return a status.
FUNCTIONS = {
    "mha_config_create": (L, L, P),
    "mha_config_set_kv_heads": (P, L),
    "mha_config_set_projection": (P, I, I),
    "mha_layer_create": (P, P),
    "mha_layer_set_parameter": (P, I, I, P, L),
    "mha_context_create": (P,),
    "mha_context_set_threads": (P, I),
    "mha_context_set_engine": (P, I),
    "mha_mask_create": (P,),
    "mha_mask_set_causal": (P, I),
    "mha_call_create": (P,),
    "mha_call_set_input": (P, I, I, P, I, LONGS, LONGS),
    "mha_call_set_output": (P, I, I, P, I, LONGS, LONGS),
    "mha_forward": (P, P, P, P),
    "mha_constant_value": (ctypes.c_char_p, P),
}
OBJECTS = ("config", "layer", "context", "mask", "call")


class Library:
    def __init__(self, path):
        self._lib = ctypes.CDLL(str(path))
        for name, types in FUNCTIONS.items():
            getattr(self._lib, name).argtypes = (*types, P)
        for name in OBJECTS:
            getattr(self._lib, f"mha_{name}_destroy").argtypes = (P,)
            getattr(self._lib, f"mha_{name}_destroy").restype = None
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

    def _layer(self, handles, problem):
        case = problem.case
        config = handles.create("config", case.H * case.D, case.H)
        self._do("mha_config_set_kv_heads", config, case.G)
        if not case.layer:
            for projection in ("Q", "K", "V", "OUT"):
                self._do("mha_config_set_projection", config, self._constant(f"PROJECTION_{projection}"), 0)
            return handles.create("layer", config)
        layer = handles.create("layer", config)
        for kind, arrays in (("WEIGHT", problem.weights), ("BIAS", problem.biases)):
            for part, array in arrays.items():
                array = np.ascontiguousarray(array)  # copied by the call
                number = self._constant(f"PARAM_{part.upper()}_{kind}")
                pointer = array.ctypes.data
                self._do("mha_layer_set_parameter", layer, number, self._constant("FLOAT32"), pointer, array.size)
        return layer

    def _tensor(self, call, direction, name, array):
        """Of an array of any strides."""
        shape = (L * array.ndim)(*array.shape)
        strides = (L * array.ndim)(*(stride // array.itemsize for stride in array.strides))
        tensor, float32 = self._constant(f"TENSOR_{name}"), self._constant("FLOAT32")
        self._do(f"mha_call_set_{direction}", call, tensor, float32, array.ctypes.data, array.ndim, shape, strides)

    def forward(self, problem, engine, threads):
        """A Run of a problem."""
        handles = Handles(self)
        layer = self._layer(handles, problem)
        context = handles.create("context")
        self._do("mha_context_set_threads", context, threads)
        self._do("mha_context_set_engine", context, self._constant(f"ENGINE_{engine.upper()}"))
        mask = None
        if problem.case.causal:
            mask = handles.create("mask")
            self._do("mha_mask_set_causal", mask, 1)
        if problem.case.layer:
            inputs = (problem.x, problem.x, problem.x)
        elif problem.case.head_major:
            inputs = (problem.q, problem.k.swapaxes(1, 2), problem.v.swapaxes(1, 2))
        else:
            inputs = (problem.q, problem.k, problem.v)
        out = empty(problem.result_shape)
        call = handles.create("call")
        for name, array in zip(("QUERY", "KEY", "VALUE"), inputs):
            self._tensor(call, "input", name, array)
        self._tensor(call, "output", "OUTPUT", out)
        function, arguments = self._lib.mha_forward, (context, layer, mask, call, self._error)

        def run():
            if function(*arguments) != 0:
                raise RuntimeError("mha_forward failed")

        return Run(run, lambda: out, (handles, inputs))


class Handles:
    """Objects of the library that are destroyed when nobody can reach them any more."""

    def __init__(self, library):
        self.library, self.all = library, []

    def create(self, kind, *arguments):
        handle = P()
        self.library._do(f"mha_{kind}_create", *arguments, ctypes.byref(handle))
        self.all.append((kind, handle))
        return handle

    def __del__(self):
        for kind, handle in reversed(self.all):
            getattr(self.library._lib, f"mha_{kind}_destroy")(handle)
