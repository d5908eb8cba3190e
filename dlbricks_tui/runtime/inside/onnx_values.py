"""Synthetic values for ONNX models, also of the data types that numpy lacks, and what is kept of results."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping
from functools import partial, reduce
from operator import mul
from typing import Any, NamedTuple

import numpy

from dlbricks_tui.runtime.inside.backend import RefusalError
from dlbricks_tui.runtime.inside.onnx_bytes import rows_counted
from dlbricks_tui.runtime.inside.values import data_values, given_values, repeated, row_numbers, sampled_values
from dlbricks_tui.runtime.protocol import ArrayType, Held, Network, Reason

# Makes a numpy array of this shape and type.
Filling = Callable[[tuple[int, ...], str], Any]

TEXT = "object"
FLOATS = ("float16", "float32", "float64")
_NUMBERS = ("int64", "int32", "bool", "float32", "float64")
# More numbers than a shape or the arguments of an operator have.
_FEW_NUMBERS = 64


class OnnxOnly(NamedTuple):
    """A data type that numpy lacks: ONNX's number for it, how an array of it is made, and its elements per byte."""

    number: int
    packed: Callable[[tuple[int, ...], Filling], Any]
    per_byte: int = 1


def _upper_halves(shape: tuple[int, ...], filling: Filling) -> Any:
    """Return the upper halves of 32-bit floats, which are bfloat16."""
    halves = numpy.empty(shape, numpy.uint16)
    numpy.right_shift(filling(shape, "float32").view(numpy.uint32), 16, out=halves, casting="unsafe")
    return halves


def _bytes_of(byte: int) -> Callable[[tuple[int, ...], Filling], Any]:
    """Return a function that fills an array with one byte."""
    return lambda shape, filling: repeated(numpy.array([byte], numpy.uint8), shape)


# The number one in each type of eight bits; in types of four bits, twice in each byte.
ONNX_ONLY: Mapping[str, OnnxOnly] = {
    "bfloat16": OnnxOnly(16, _upper_halves),
    "float8e4m3fn": OnnxOnly(17, _bytes_of(0x38)),
    "float8e4m3fnuz": OnnxOnly(18, _bytes_of(0x40)),
    "float8e5m2": OnnxOnly(19, _bytes_of(0x3C)),
    "float8e5m2fnuz": OnnxOnly(20, _bytes_of(0x40)),
    "uint4": OnnxOnly(21, _bytes_of(0x11), 2),
    "int4": OnnxOnly(22, _bytes_of(0x11), 2),
}


def numpy_values(found: ArrayType, filling: Filling) -> Any:
    """Return an array of numpy. For a data type that numpy lacks, it has at least the bytes of all elements."""
    shape, dtype = found
    if dtype in ONNX_ONLY:
        return ONNX_ONLY[dtype].packed(shape, filling)
    try:
        known = numpy.dtype(dtype)
    except TypeError as error:
        raise RefusalError(Reason.UNBUILDABLE, f"there are no synthetic values of {dtype}") from error
    return filling(shape, known.name)


def fillings(network: Network, made_up: Filling | None = None) -> Iterator[tuple[ArrayType, Filling]]:
    """Return the type and the filling of each input of a network; `made_up` makes those without given numbers."""
    rows = rows_counted(b64decode(network.symbol), network.weights) if network.weights and not made_up else {}
    for name, found in network.inputs.items():
        filling = made_up or (sampled_values if network.file else data_values)
        if name in network.values:
            filling = partial(given_values, numbers=network.values[name])
        elif name in rows:
            filling = partial(row_numbers, rows=rows[name])
        yield found, filling


def held(found: ArrayType, numbers: Callable[[], Any]) -> Held:
    """Return the type of an output, and its numbers if they are few."""
    kept: tuple[float, ...] = ()
    if found.dtype in _NUMBERS and reduce(mul, found.shape, 1) <= _FEW_NUMBERS:
        array = numbers()
        # Adding 0 turns truth values into numbers.
        kept = tuple((array + 0).ravel().tolist()) if numpy.isfinite(array).all() else ()
    return Held(found.shape, found.dtype, kept)
