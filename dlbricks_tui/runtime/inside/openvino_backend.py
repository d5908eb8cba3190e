"""The backend of OpenVINO, on its CPU plugin.

OpenVINO always optimises a graph. So a network of several layers runs fused, at either level.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy

from dlbricks_tui.runtime.inside.backend import (
    ONE,
    SWEPT,
    Backend,
    BoundNetwork,
    ProfiledNetwork,
    RefusalError,
    rows_of,
)
from dlbricks_tui.runtime.inside.onnx_bytes import one_operator, rows_counted
from dlbricks_tui.runtime.inside.openvino_graph import executed_nodes
from dlbricks_tui.runtime.inside.openvino_models import ModelText, ask, compiled, feed, model_in_file
from dlbricks_tui.runtime.inside.openvino_profiler import ProfiledModel
from dlbricks_tui.runtime.inside.values import data_values, given_values, numpy_dtype, row_numbers, sampled_values
from dlbricks_tui.runtime.protocol import (
    ArrayType,
    Described,
    Fuse,
    Fused,
    Held,
    Infer,
    Inferred,
    Network,
    Reason,
    Record,
    Recorded,
    Tensor,
)

_NUMPYS = {"f16": "float16", "f32": "float32", "f64": "float64", "boolean": "bool", "string": "object"}
# More numbers than a shape or the arguments of an operator have.
_FEW_NUMBERS = 64
_NUMBERS = ("int64", "int32", "bool", "float32", "float64")


class OpenVino(Backend):
    """OpenVINO. Its graphs are ONNX models in base64, without the values of weights."""

    nothing = one_operator("Identity", ONE)
    sweep = one_operator("Relu", SWEPT)

    def __init__(self, openvino: Any) -> None:
        self._openvino = openvino
        self._core = openvino.Core()

    def passing_over(self, size_bytes: int) -> Network:
        """Return a relu of an array of half the size."""
        return one_operator("Relu", rows_of(size_bytes // 2))

    def describe(self) -> Described:
        # The version of the package, without the number of the build.
        version = self._openvino.__version__.split("-")[0]
        return Described(platform.python_version(), "openvino", version)

    def infer(self, request: Infer) -> Inferred:
        model = ModelText(request.symbol).read(self._core, {}, {}, Reason.INCONSISTENT)
        return Inferred(tuple([(_declared(output),) for output in model.outputs]), ())

    def fuse(self, request: Fuse) -> Fused:
        """Return the nodes that OpenVINO executes, as a list in JSON.

        The request has the shapes of inputs in order, and the shapes and data types of weights.
        """
        text = ModelText(request.symbol)
        weights = {name: ArrayType(request.shapes[name], dtype) for name, dtype in request.dtypes.items()}
        inputs = {name: shape for name, shape in request.shapes.items() if name not in weights}
        model = text.read(self._core, inputs, weights, Reason.UNFUSABLE)
        found = executed_nodes(compiled(self._core, model, Reason.UNFUSABLE), text.nodes)
        return Fused(json.dumps([asdict(it) for it in found]), (), ())

    def record(self, request: Record) -> Recorded:
        """Return the types of a network's outputs in one run, and the numbers of small ones."""
        network = request.network
        refusals: list[RefusalError] = []
        for made_up in (None, partial(given_values, numbers=(0,)), partial(given_values, numbers=(1,))):
            try:
                bound = _BoundModel(self._openvino, self._core, network, _filled(self._openvino, network, made_up))
                bound.run()
                return Recorded(tuple(map(_held, bound.outputs)))
            except RefusalError as refusal:
                refusals.append(refusal)
        raise refusals[0]

    def bind(self, network: Network, fed: Sequence[Any] | None = None, *, side_by_side: bool = False) -> BoundNetwork:
        """Compile a network or a model file. OpenVINO runs its operators one after another."""
        if side_by_side:
            raise RefusalError(Reason.UNBUILDABLE, "OpenVINO runs the operators of a model one after another")
        return _BoundModel(self._openvino, self._core, network, fed)


class _BoundModel(BoundNetwork):
    def __init__(self, openvino: Any, core: Any, network: Network, fed: Sequence[Any] | None) -> None:
        self._core = core
        self._network = network
        self._text: ModelText | None = None
        shapes = {name: it.shape for name, it in network.inputs.items()}
        if network.file:
            self._model = model_in_file(core, network.file, shapes)
        else:
            self._text = ModelText(network.symbol)
            self._model = self._text.read(core, shapes, network.weights, Reason.UNBUILDABLE)
        self.inputs = list(fed) if fed is not None else _filled(openvino, network)
        self.outputs: list[Any] = []
        if len(self.inputs) != len(network.inputs):
            raise RefusalError(Reason.MALFORMED, f"{len(network.inputs)} inputs are fed {len(self.inputs)} arrays")
        found = compiled(core, self._model, Reason.UNBUILDABLE)
        self._request = ask(found.create_infer_request, Reason.UNBUILDABLE)
        self._results = len(found.outputs)
        feed(self._request, self._keys(), self.inputs)

    def run(self) -> None:
        ask(self._run, Reason.UNBUILDABLE)

    def _run(self) -> None:
        self._request.infer(share_outputs=True)
        if not self.outputs:
            self.outputs = [self._request.get_output_tensor(number) for number in range(self._results)]

    def _keys(self) -> Sequence[str | int]:
        """Return the names of a file's inputs. Those of our networks are known by place, as some lose their names."""
        return list(self._network.inputs) if self._text is None else range(len(self._network.inputs))

    def profiled(self) -> ProfiledNetwork:
        if self._text is None:
            raise RefusalError(Reason.UNBUILDABLE, "the nodes of a model file have no numbers")
        return ProfiledModel(self._core, self._model, self._text, self.inputs)

    def output_types(self) -> list[ArrayType]:
        return [ArrayType(tuple(it.shape), _numpys_name(it.element_type)) for it in self.outputs]

    def refuse_infinite_values(self) -> None:
        for place, tensor in enumerate(self.outputs):
            # numpy cannot check bfloat16.
            is_checked = _numpys_name(tensor.element_type) in ("float16", "float32", "float64")
            if is_checked and not numpy.isfinite(tensor.data).all():
                raise RefusalError(Reason.NOT_FINITE, f"output {place} holds values that are not finite")


def _filled(openvino: Any, network: Network, made_up: Callable[[tuple[int, ...], str], Any] | None = None) -> list[Any]:
    """Return arrays for the inputs; `made_up` makes those without given numbers."""
    rows: dict[str, int] = {}
    if network.weights and not made_up:
        rows = rows_counted(ModelText(network.symbol).content, network.weights)
    filling = made_up or (sampled_values if network.file else data_values)
    made = []
    for name, found in network.inputs.items():
        shape, dtype = found.shape, numpy_dtype(found.dtype).name
        if name in network.values:
            values = given_values(shape, dtype, network.values[name])
        else:
            values = row_numbers(shape, dtype, rows[name]) if name in rows else filling(shape, dtype)
        made.append(_tensor(openvino, values))
    return made


def _held(tensor: Any) -> Held:
    """Return the type of an output, and its numbers if they are few."""
    shape, dtype = tuple(tensor.shape), _numpys_name(tensor.element_type)
    if dtype not in _NUMBERS or tensor.size > _FEW_NUMBERS:
        return Held(shape, dtype, ())
    numbers = tensor.data
    return Held(shape, dtype, tuple((numbers + 0).ravel().tolist()) if numpy.isfinite(numbers).all() else ())


def _tensor(openvino: Any, values: Any) -> Any:
    return ask(lambda: openvino.Tensor(values), Reason.UNBUILDABLE)


def _declared(output: Any) -> Tensor:
    shape = output.get_partial_shape()
    return Tensor(tuple(shape.to_shape()) if shape.is_static else None, _numpys_name(output.get_element_type()))


def _numpys_name(declared: Any) -> str:
    """Return numpy's name for a data type: `int64` for `i64`."""
    name = str(declared.get_type_name())
    whole = {"i": "int", "u": "uint"}.get(name[0]) if name[1:].isdecimal() else None
    return _NUMPYS.get(name, f"{whole}{name[1:]}" if whole else name)
