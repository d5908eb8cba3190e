"""The common part of frameworks that run ONNX models: tiny networks, synthetic inputs, and runs that are recorded.

Values are also of the data types that numpy lacks.
"""

from __future__ import annotations

from abc import abstractmethod
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial, reduce
from operator import mul
from typing import Any, NamedTuple

import numpy

from dlbricks_tui.runtime.inside.backend import ONE, SWEPT, Backend, BoundNetwork, RefusalError, rows_of
from dlbricks_tui.runtime.inside.onnx_bytes import one_operator, rows_counted
from dlbricks_tui.runtime.inside.values import data_values, given_values, repeated, row_numbers, sampled_values
from dlbricks_tui.runtime.protocol import ArrayType, Held, Network, Reason, Record, Recorded

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


class OnnxNetwork(BoundNetwork):
    """An ONNX model ready to run, as soon as it is fed."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self.inputs: Sequence[Any] = ()
        self.outputs: Sequence[Any] = ()
        # The number of outputs, and the arrays of those that are written in place.
        self._results = 0
        self._in_place: Mapping[int, Any] = {}

    def feed(self, arrays: Sequence[Any]) -> None:
        """Let the model read these arrays as its inputs, in order."""
        if len(arrays) != len(self._network.inputs):
            raise RefusalError(Reason.MALFORMED, f"{len(self._network.inputs)} inputs are fed {len(arrays)} arrays")
        self.inputs = list(arrays)
        self._in_place = _in_place(self._network, self.inputs, self._results)
        self._bind_arrays()

    def output_types(self) -> list[ArrayType]:
        """Return the types of those outputs that are tensors."""
        return [found for found in self._types() if found is not None]

    def refuse_infinite_values(self) -> None:
        for place, found in enumerate(self._types()):
            # numpy cannot check bfloat16.
            if found is not None and found.dtype in FLOATS and not numpy.isfinite(self._numbers(place)).all():
                raise RefusalError(Reason.NOT_FINITE, f"output {place} holds values that are not finite")

    def held(self) -> tuple[Held | None, ...]:
        """Return the outputs of a run; None for one that is no tensor."""
        return tuple(
            None if found is None else held(found, partial(self._numbers, place))
            for place, found in enumerate(self._types())
        )

    @abstractmethod
    def _bind_arrays(self) -> None:
        """Let the framework read `inputs`, and write some outputs in place."""

    @abstractmethod
    def _types(self) -> Sequence[ArrayType | None]:
        """Return the types of the outputs after a run; None for one that is no tensor."""

    @abstractmethod
    def _numbers(self, place: int) -> Any:
        """Return an output as an array of numpy."""


def _in_place(network: Network, inputs: Sequence[Any], results: int) -> dict[int, Any]:
    """Return the arrays of the outputs that are written in place, by the places of these outputs."""
    arrays = {name: inputs[place] for place, name in enumerate(network.inputs)}
    found: dict[int, Any] = {}
    for name, place in network.in_place.items():
        if name not in arrays:
            raise RefusalError(Reason.MALFORMED, f"output {place} is written to {name}, which is no input")
        if place >= results:
            raise RefusalError(Reason.MALFORMED, f"output {place} is written to {name}: there are {results} outputs")
        if place in found:
            raise RefusalError(Reason.MALFORMED, f"output {place} is written to several inputs")
        found[place] = arrays[name]
    return found


class OnnxBackend(Backend):
    """A framework whose graphs are ONNX models in base64, without the values of weights."""

    nothing = one_operator("Identity", ONE)
    sweep = one_operator("Relu", SWEPT)

    def passing_over(self, size_bytes: int) -> Network:
        """Return a relu of an array of half the size."""
        return one_operator("Relu", rows_of(size_bytes // 2))

    def record(self, request: Record) -> Recorded:
        """Return the types of a network's outputs in one run, and the numbers of small ones."""
        bound = self.bind_to_record(request.network)
        refusals = []
        for made_up in (None, partial(given_values, numbers=(0,)), partial(given_values, numbers=(1,))):
            bound.feed(self.filled(request.network, made_up))
            try:
                bound.run()
            except RefusalError as refusal:
                refusals.append(refusal)
            else:
                return Recorded(bound.held())
        raise refusals[0]

    def filled(self, network: Network, made_up: Filling | None = None) -> list[Any]:
        """Return arrays for the inputs of a network; `made_up` makes those without given numbers."""
        return [self.array(found, filling) for found, filling in fillings(network, made_up)]

    @abstractmethod
    def array(self, found: ArrayType, filling: Filling) -> Any:
        """Return an array of the framework; `filling` makes its numbers."""

    @abstractmethod
    def bind_to_record(self, network: Network) -> OnnxNetwork:
        """Prepare a network for a run whose outputs are recorded."""
