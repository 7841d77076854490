#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/fuzz/corpus: the seeds of the fuzzers, and the files of tests/test_io_corpus.c.

good_* come from other people's writers (NumPy, safetensors) and must be read; their numbers are i/2 - 3
for index i in row-major order. bad_* must be refused.

Usage: make_io_corpus.py OUTPUT_DIR        needs numpy==2.4.6 safetensors==0.8.0
"""
import io
import json
import pathlib
import struct
import sys

import numpy
from numpy.lib import format as npy_format
from safetensors.numpy import save

F32 = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


def counting(*shape, dtype="<f4"):
    return (numpy.arange(numpy.prod(shape, dtype=int)) / 2 - 3).astype(dtype).reshape(shape)


def npy(array, version):
    stream = io.BytesIO()
    npy_format.write_array(stream, array, version=version, allow_pickle=True)
    return stream.getvalue()


def npy_text(header, data=b"\0" * 24):
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


def npy_files():
    for version in [(1, 0), (2, 0), (3, 0)]:
        yield f"good_version_{version[0]}.npy", npy(counting(2, 3), version)
    for dtype in ["<f2", ">f2", ">f4", "<f8", ">f8"]:
        name = ("big" if dtype[0] == ">" else "little") + dtype[1:]
        yield f"good_{name}.npy", npy(counting(5, dtype=dtype), (1, 0))
    yield "good_fortran.npy", npy(numpy.asfortranarray(counting(2, 3, 4)), (1, 0))
    yield "good_fortran_f8.npy", npy(numpy.asfortranarray(counting(4, 3, dtype=">f8")), (1, 0))
    yield "good_scalar.npy", npy(counting(), (1, 0))
    yield "good_empty.npy", npy(counting(3, 0), (1, 0))
    yield "bad_objects.npy", npy(numpy.array([None]), (1, 0))
    yield "bad_integers.npy", npy(numpy.arange(3), (1, 0))
    yield "bad_records.npy", npy(numpy.zeros(2, [("a", "<f4")]), (1, 0))
    yield "bad_complex.npy", npy(numpy.zeros(2, "<c8"), (1, 0))
    yield "bad_cut.npy", npy(counting(2, 3), (1, 0))[:-1]
    yield "bad_long.npy", npy(counting(2, 3), (1, 0)) + b"\0"
    yield "bad_range.npy", npy(numpy.array([1e300]), (1, 0))
    yield "bad_no_newline.npy", npy_text(b"{'descr':'<f4','fortran_order':False,'shape':(2,3)}")
    yield "bad_negative.npy", npy_text(b"{'descr':'<f4','fortran_order':False,'shape':(-2,-3)}\n")
    yield "bad_huge.npy", npy_text(b"{'descr':'<f4','fortran_order':False,'shape':(8589934592,)}\n")
    yield "bad_missing_key.npy", npy_text(b"{'descr':'<f4','shape':(2,3)}\n")


def safetensors_text(header, data=b"\0" * 8):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def layer(prefix, names):
    return save({prefix + name: counting(*shape) for name, shape in names.items()})


def safetensors_files():
    yield "good_types.safetensors", save(
        {"a": counting(2, 3), "h": counting(5, dtype="<f2"), "s": counting()}, {"made": "by hand"})
    # bfloat16, which NumPy lacks: the upper halves
    upper = counting(6).view("<u4") >> 16
    yield "good_bf16.safetensors", safetensors_text(
        {"x": {"dtype": "BF16", "shape": [6], "data_offsets": [0, 12]}}, upper.astype("<u2").tobytes())
    yield "good_unaligned.safetensors", safetensors_text(
        json.dumps({"x": F32}).encode() + b"   ", counting(2).tobytes())
    yield "good_bert.safetensors", layer("e.", {
        "self.query.weight": (4, 4), "self.query.bias": (4,), "self.key.weight": (4, 4),
        "self.key.bias": (4,), "self.value.weight": (4, 4), "self.value.bias": (4,),
        "output.dense.weight": (4, 4), "output.dense.bias": (4,)})
    yield "good_torch.safetensors", layer("", {
        "in_proj_weight": (12, 4), "in_proj_bias": (12,), "out_proj.weight": (4, 4),
        "out_proj.bias": (4,)})
    yield "good_gpt2.safetensors", layer("h.0.attn.", {
        "c_attn.weight": (4, 12), "c_attn.bias": (12,), "c_proj.weight": (4, 4), "c_proj.bias": (4,)})
    yield "bad_length.safetensors", struct.pack("<Q", 2**64 - 5) + json.dumps({"x": F32}).encode()
    yield "bad_overlap.safetensors", safetensors_text(
        {"x": F32, "y": {**F32, "data_offsets": [4, 12]}}, b"\0" * 12)
    yield "bad_hole.safetensors", safetensors_text({"x": {**F32, "data_offsets": [4, 12]}}, b"\0" * 12)
    yield "bad_shape.safetensors", safetensors_text({"x": {**F32, "shape": [2**32, 2**32]}})
    yield "bad_float.safetensors", safetensors_text(
        b'{"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8.0]}}')
    yield "bad_nesting.safetensors", safetensors_text(b'{"x":' + b"[" * 500)
    yield "bad_duplicate.safetensors", safetensors_text(
        b'{"x":%s,"x":%s}' % (json.dumps(F32).encode(), json.dumps(F32).encode()))
    yield "bad_nul.safetensors", safetensors_text({"x\0": F32})
    yield "bad_utf8.safetensors", safetensors_text(
        json.dumps({"x": F32}).encode().replace(b'"x"', b'"\xff"'))
    yield "bad_cut.safetensors", safetensors_text({"x": F32}, b"\0" * 7)
    yield "bad_type.safetensors", safetensors_text({"x": {**F32, "dtype": "F33"}})
    yield "bad_metadata.safetensors", safetensors_text({"__metadata__": {"a": 1}, "x": F32})


def main():
    root = pathlib.Path(sys.argv[1])
    for folder, files in [("npy", npy_files()), ("safetensors", safetensors_files())]:
        (root / folder).mkdir(parents=True, exist_ok=True)
        for name, data in files:
            (root / folder / name).write_bytes(data)


if __name__ == "__main__":
    main()
