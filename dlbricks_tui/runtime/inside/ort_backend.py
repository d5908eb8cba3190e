"""The backend of ONNX Runtime."""

from __future__ import annotations

import platform
import tempfile
from base64 import b64decode, b64encode
from collections.abc import Sequence
from functools import partial, reduce
from operator import mul
from pathlib import Path
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
from dlbricks_tui.runtime.inside.ort_profiler import ProfiledModel
from dlbricks_tui.runtime.inside.ort_session import (
    ask,
    numpys_name,
    options,
    session,
    session_of_file,
    tensor_type,
    weight_values,
)
from dlbricks_tui.runtime.inside.ort_values import Filling, array_value
from dlbricks_tui.runtime.inside.values import data_values, given_values, row_numbers, sampled_values
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
)

# Larger weights are written beside an optimised model: the size of a model file is limited. Smaller ones may be zero
# points, sizes or rows.
_LARGE_BYTES = str(2**16)
# More numbers than a shape or the arguments of an operator have.
_FEW_NUMBERS = 64
_NUMBERS = ("int64", "int32", "bool", "float32", "float64")


class OnnxRuntime(Backend):
    """ONNX Runtime. Its graphs are ONNX models in base64, without the values of weights."""

    nothing = one_operator("Identity", ONE)
    sweep = one_operator("Relu", SWEPT)

    def __init__(self, ort: Any) -> None:
        self._ort = ort

    def passing_over(self, size_bytes: int) -> Network:
        """Return a relu of an array of half the size."""
        return one_operator("Relu", rows_of(size_bytes // 2))

    def describe(self) -> Described:
        return Described(platform.python_version(), "onnxruntime", self._ort.__version__)

    def infer(self, request: Infer) -> Inferred:
        found = session(self._ort, request.symbol, {}, options(self._ort, optimised=False), Reason.INCONSISTENT)
        return Inferred(tuple((tensor_type(output),) for output in found.get_outputs()), ())

    def fuse(self, request: Fuse) -> Fused:
        """Return the graph that ONNX Runtime executes when it opens a model file."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "optimised.onnx"
            settings = options(self._ort, optimised=True)
            settings.optimized_model_filepath = str(path)
            prefix = "session.optimized_model_external_initializers_"
            settings.add_session_config_entry(f"{prefix}file_name", "weights")
            settings.add_session_config_entry(f"{prefix}min_size_in_bytes", _LARGE_BYTES)
            session_of_file(self._ort, request.file, settings, Reason.UNFUSABLE)
            return Fused(b64encode(path.read_bytes()).decode(), (), ())

    def record(self, request: Record) -> Recorded:
        """Return the types of a network's outputs in one run, and the numbers of small ones."""
        settings = options(self._ort, optimised=False)
        # Nodes that only read a shape run at once, so that the tensor is freed early.
        settings.execution_order = self._ort.ExecutionOrder.PRIORITY_BASED
        bound = _BoundModel(self._ort, request.network, None, settings)
        try:
            bound.run()
        except RefusalError as refusal:
            if not any(map(bound.runs_on, (0, 1))):
                raise refusal from None
        return Recorded(tuple(map(_held, bound.outputs)))

    def bind(self, network: Network, fed: Sequence[Any] | None = None, *, side_by_side: bool = False) -> BoundNetwork:
        """Return a session of a model without further optimisation, or of a model file as the network asks."""
        settings = options(self._ort, optimised=network.optimised, side_by_side=side_by_side)
        return _BoundModel(self._ort, network, fed, settings)


class _BoundModel(BoundNetwork):
    def __init__(self, ort: Any, network: Network, fed: Sequence[Any] | None, settings: Any) -> None:
        self._ort = ort
        self._network = network
        self._weights = weight_values(ort, network.weights)
        self._session = (
            session_of_file(ort, network.file, settings, Reason.UNBUILDABLE)
            if network.file
            else session(ort, network.symbol, self._weights, settings, Reason.UNBUILDABLE)
        )
        self.inputs = list(fed) if fed is not None else self._filled()
        self.outputs: list[Any] = []
        self._names = [output.name for output in self._session.get_outputs()]
        self._binding = self._session.io_binding()
        if len(self.inputs) != len(network.inputs):
            raise RefusalError(Reason.MALFORMED, f"{len(network.inputs)} inputs are fed {len(self.inputs)} arrays")
        self._bind_inputs()
        for name in self._names:
            self._binding.bind_output(name)

    def _bind_inputs(self) -> None:
        for place, name in enumerate(self._network.inputs):
            self._binding.bind_ortvalue_input(name, self.inputs[place])

    def runs_on(self, number: int) -> bool:
        """Run on inputs that hold one number throughout, unless their numbers are given; return false if that fails."""
        self.inputs = self._filled(lambda shape, dtype: given_values(shape, dtype, (number,)))
        self._bind_inputs()
        try:
            self.run()
        except RefusalError:
            return False
        return True

    def run(self) -> None:
        ask(self._ort, self._run, Reason.UNBUILDABLE)

    def _run(self) -> None:
        self._session.run_with_iobinding(self._binding)
        if not self.outputs:
            self._keep_outputs()

    def _keep_outputs(self) -> None:
        """Bind the outputs, so that later runs write to the same arrays instead of new ones."""
        self.outputs = self._binding.get_outputs()
        if all(value.is_tensor() for value in self.outputs):
            self._binding.clear_binding_outputs()
            for place, value in enumerate(self.outputs):
                self._binding.bind_ortvalue_output(self._names[place], value)

    def profiled(self) -> ProfiledNetwork:
        return ProfiledModel(self._ort, self._network, self._weights, self.inputs)

    def output_types(self) -> list[ArrayType]:
        """Return the types of those outputs that are tensors."""
        tensors = [value for value in self.outputs if value.is_tensor()]
        return [ArrayType(tuple(value.shape()), numpys_name(value.data_type()) or "object") for value in tensors]

    def refuse_infinite_values(self) -> None:
        for place, value in enumerate(self.outputs):
            if _is_of_floats(value) and not numpy.isfinite(value.numpy()).all():
                raise RefusalError(Reason.NOT_FINITE, f"output {self._names[place]} holds values that are not finite")

    def _filled(self, made_up: Filling | None = None) -> list[Any]:
        """Return arrays for the inputs; `made_up` makes those without given numbers."""
        network = self._network
        rows = rows_counted(b64decode(network.symbol), network.weights) if network.weights and not made_up else {}
        made = []
        for name, found in network.inputs.items():
            if name in network.values:
                filling: Filling = partial(given_values, numbers=network.values[name])
            elif name in rows:
                filling = partial(row_numbers, rows=rows[name])
            else:
                filling = made_up or (sampled_values if network.file else data_values)
            made.append(array_value(self._ort, found, filling))
        return made


def _held(value: Any) -> Held | None:
    """Return the type of an output, and its numbers if they are few."""
    dtype = numpys_name(value.data_type()) if value.is_tensor() else None
    if dtype is None:
        return None
    shape = tuple(value.shape())
    if dtype not in _NUMBERS or reduce(mul, shape, 1) > _FEW_NUMBERS:
        return Held(shape, dtype, ())
    numbers = value.numpy()
    return Held(shape, dtype, tuple((numbers + 0).ravel().tolist()) if numpy.isfinite(numbers).all() else ())


def _is_of_floats(value: Any) -> bool:
    # numpy cannot check bfloat16.
    return value.is_tensor() and numpys_name(value.data_type()) in ("float16", "float32", "float64")
