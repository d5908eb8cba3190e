"""Arrays of ONNX Runtime, also of the data types that numpy lacks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy

from dlbricks_tui.runtime.inside.backend import RefusalError
from dlbricks_tui.runtime.inside.onnx_bytes import as_texts
from dlbricks_tui.runtime.protocol import ArrayType, Reason

TEXT = "object"

# Makes a numpy array of this shape and type.
Filling = Callable[[tuple[int, ...], str], Any]


class _OnnxOnly(NamedTuple):
    """A data type that numpy lacks: ONNX's number for it, and how an array of it is made."""

    number: int
    packed: Callable[[tuple[int, ...], Filling], Any]


def _upper_halves(shape: tuple[int, ...], filling: Filling) -> Any:
    """Return the upper halves of 32-bit floats, which are bfloat16."""
    return (filling(shape, "float32").view(numpy.uint32) >> 16).astype(numpy.uint16)


def _bytes_of(byte: int) -> Callable[[tuple[int, ...], Filling], Any]:
    """Return a function that fills an array with one byte."""
    return lambda shape, filling: numpy.full(shape, byte, numpy.uint8)


# The number one in each type of eight bits; in types of four bits, twice in each byte.
_ONNX_ONLY: Mapping[str, _OnnxOnly] = {
    "bfloat16": _OnnxOnly(16, _upper_halves),
    "float8e4m3fn": _OnnxOnly(17, _bytes_of(0x38)),
    "float8e4m3fnuz": _OnnxOnly(18, _bytes_of(0x40)),
    "float8e5m2": _OnnxOnly(19, _bytes_of(0x3C)),
    "float8e5m2fnuz": _OnnxOnly(20, _bytes_of(0x40)),
    "uint4": _OnnxOnly(21, _bytes_of(0x11)),
    "int4": _OnnxOnly(22, _bytes_of(0x11)),
}


def array_value(ort: Any, found: ArrayType, filling: Filling) -> Any:
    """Return an array of ONNX Runtime; `filling` makes its numbers, and whole numbers for texts."""
    shape, dtype = found
    if dtype == TEXT:
        return _texts(ort, filling(shape, "int64"))
    if dtype in _ONNX_ONLY:
        number, packed = _ONNX_ONLY[dtype]
        return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(packed(shape, filling), number)
    try:
        known = numpy.dtype(dtype)
    except TypeError as error:
        raise RefusalError(Reason.UNBUILDABLE, f"there are no synthetic values of {dtype}") from error
    return ort.OrtValue.ortvalue_from_numpy(filling(shape, known.name))


def _texts(ort: Any, numbers: Any) -> Any:
    """Return whole numbers as texts. Only ONNX Runtime itself makes arrays of texts that it can bind."""
    (texts,) = _text_maker(ort).run_with_ort_values(None, {"data": ort.OrtValue.ortvalue_from_numpy(numbers)})
    return texts


@lru_cache(maxsize=1)
def _text_maker(ort: Any) -> Any:
    settings = ort.SessionOptions()
    settings.use_per_session_threads = False
    return ort.InferenceSession(as_texts(), settings, providers=["CPUExecutionProvider"])
