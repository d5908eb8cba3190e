"""The common part of frameworks that run ONNX models: tiny networks, synthetic inputs, and runs that are recorded."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy

from dlbricks_tui.runtime.inside.backend import ONE, SWEPT, Backend, BoundNetwork, RefusalError, rows_of
from dlbricks_tui.runtime.inside.onnx_bytes import one_operator
from dlbricks_tui.runtime.inside.onnx_values import FLOATS, Filling, fillings, held
from dlbricks_tui.runtime.inside.values import given_values
from dlbricks_tui.runtime.protocol import ArrayType, Held, Network, Reason, Record, Recorded


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
