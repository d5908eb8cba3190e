"""The backend of ONNX Runtime."""

from __future__ import annotations

import platform
import tempfile
from base64 import b64decode, b64encode
from collections.abc import Sequence
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
from dlbricks_tui.runtime.inside.values import data_values, given_values, numpy_dtype, row_numbers
from dlbricks_tui.runtime.protocol import ArrayType, Described, Fuse, Fused, Infer, Inferred, Network, Reason

# Larger weights are written beside an optimised model: the size of a model file is limited.
_LARGE_BYTES = "1024"


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
        """Return the model as optimised by ONNX Runtime; `request` has the types of its weights."""
        weights = {name: ArrayType(shape, request.dtypes[name]) for name, shape in request.shapes.items()}
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "optimised.onnx"
            settings = options(self._ort, optimised=True)
            settings.optimized_model_filepath = str(path)
            prefix = "session.optimized_model_external_initializers_"
            settings.add_session_config_entry(f"{prefix}file_name", "weights")
            settings.add_session_config_entry(f"{prefix}min_size_in_bytes", _LARGE_BYTES)
            session(self._ort, request.symbol, weight_values(self._ort, weights), settings, Reason.UNFUSABLE)
            return Fused(b64encode(path.read_bytes()).decode(), (), ())

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
            session_of_file(ort, network.file, settings)
            if network.file
            else session(ort, network.symbol, self._weights, settings, Reason.UNBUILDABLE)
        )
        self.inputs = list(fed) if fed is not None else self._filled(network)
        self.outputs: list[Any] = []
        self._names = [output.name for output in self._session.get_outputs()]
        self._binding = self._session.io_binding()
        if len(self.inputs) != len(network.inputs):
            raise RefusalError(Reason.MALFORMED, f"{len(network.inputs)} inputs are fed {len(self.inputs)} arrays")
        for place, name in enumerate(network.inputs):
            self._binding.bind_ortvalue_input(name, self.inputs[place])
        for name in self._names:
            self._binding.bind_output(name)

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

    def _filled(self, network: Network) -> list[Any]:
        rows = rows_counted(b64decode(network.symbol), network.weights) if network.weights else {}
        made = []
        for name, found in network.inputs.items():
            shape, dtype = found.shape, numpy_dtype(found.dtype).name
            if name in network.values:
                values = given_values(shape, dtype, network.values[name])
            else:
                values = row_numbers(shape, dtype, rows[name]) if name in rows else data_values(shape, dtype)
            made.append(self._ort.OrtValue.ortvalue_from_numpy(values))
        return made


def _is_of_floats(value: Any) -> bool:
    # numpy cannot check bfloat16.
    return value.is_tensor() and numpys_name(value.data_type()) in ("float16", "float32", "float64")
