"""The backend of OpenVINO, on its CPU plugin.

OpenVINO always optimises a graph. So a network of several layers runs fused, at either level.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from dlbricks_tui.runtime import protocol
from dlbricks_tui.runtime.inside.backend import BoundNetwork, ProfiledNetwork, RefusalError
from dlbricks_tui.runtime.inside.onnx_backend import Filling, OnnxBackend, OnnxNetwork, numpy_values
from dlbricks_tui.runtime.inside.openvino_decoders import ModelRequest, decoder_extensions, with_state
from dlbricks_tui.runtime.inside.openvino_graph import executed_nodes
from dlbricks_tui.runtime.inside.openvino_models import (
    ModelText,
    ask,
    compiled,
    effective_settings,
    model_in_file,
    refuse_missing_precision,
)
from dlbricks_tui.runtime.inside.openvino_profiler import ProfiledOpenvinoModel
from dlbricks_tui.runtime.inside.tracing import lines_printed

# OpenVINO's names of the data types that numpy lacks, and numpy's names of others.
_ONNX_ONLY = {"bfloat16": "bf16", "float8e4m3fn": "f8e4m3", "float8e5m2": "f8e5m2", "uint4": "u4", "int4": "i4"}
_NUMPYS = {"f16": "float16", "f32": "float32", "f64": "float64", "boolean": "bool", "string": "object"}
_NAMES = {**_NUMPYS, **{theirs: ours for ours, theirs in _ONNX_ONLY.items()}}


class OpenVino(OnnxBackend):
    """OpenVINO."""

    falls_asleep = True

    def __init__(self, openvino: Any) -> None:
        self._openvino = openvino
        self._core = openvino.Core()
        self._decoding_core: Any = None
        refuse_missing_precision(self._core)

    def describe(self) -> protocol.Described:
        # The version of the package, without the number of the build.
        version = self._openvino.__version__.split("-")[0]
        told = effective_settings(self._openvino, self._core)
        return protocol.Described(platform.python_version(), "openvino", version, told)

    def infer(self, request: protocol.Infer) -> protocol.Inferred:
        found = []
        for output in ModelText(request.symbol).read(self._core, {}, {}, protocol.Reason.INCONSISTENT).outputs:
            shape, dtype = output.get_partial_shape(), _numpys_name(output.get_element_type())
            found.append((protocol.Tensor(tuple(shape.to_shape()) if shape.is_static else None, dtype),))
        return protocol.Inferred(tuple(found), ())

    def fuse(self, request: protocol.Fuse) -> protocol.Fused:
        """Return the nodes that OpenVINO executes, as a list in JSON.

        The request has the shapes of inputs in order, and the shapes and data types of weights.
        """
        text = ModelText(request.symbol)
        weights = {name: protocol.ArrayType(request.shapes[name], dtype) for name, dtype in request.dtypes.items()}
        inputs = {name: shape for name, shape in request.shapes.items() if name not in weights}
        model = text.read(self._core, inputs, weights, protocol.Reason.UNFUSABLE)
        found = executed_nodes(compiled(self._core, model, protocol.Reason.UNFUSABLE), text.nodes)
        return protocol.Fused(json.dumps([asdict(it) for it in found]), (), ())

    def explain(self, request: protocol.Explain) -> protocol.Explained:
        """Return what oneDNN prints while OpenVINO compiles a network, which is when it chooses kernels."""
        return protocol.Explained(lines_printed(lambda: self.bind(request.network)))

    def array(self, found: protocol.ArrayType, filling: Filling) -> Any:
        values = numpy_values(found, filling)
        if found.dtype not in _ONNX_ONLY:
            return ask(lambda: self._openvino.Tensor(values), protocol.Reason.UNBUILDABLE)
        declared = getattr(self._openvino.Type, _ONNX_ONLY[found.dtype])
        return ask(lambda: self._openvino.Tensor(values, list(found.shape), declared), protocol.Reason.UNBUILDABLE)

    def bind_to_record(self, network: protocol.Network) -> OnnxNetwork:
        return _BoundModel(self._core, network)

    def bind(
        self, network: protocol.Network, fed: Sequence[Any] | None = None, *, side_by_side: bool = False
    ) -> BoundNetwork:
        """Compile a network or a model file. OpenVINO runs its operators one after another."""
        if side_by_side:
            raise RefusalError(protocol.Reason.UNBUILDABLE, "OpenVINO runs the operators of a model one after another")
        bound = _BoundModel(self._core_for(network), network)
        bound.feed(self.filled(network) if fed is None else fed)
        return bound

    def _core_for(self, network: protocol.Network) -> Any:
        """Return the core that reads a network: parts of language models become what the plugin fuses."""
        if not network.distinct:
            return self._core
        if self._decoding_core is None:
            self._decoding_core = self._openvino.Core()
            for extension in decoder_extensions(self._openvino):
                self._decoding_core.add_extension(extension)
        return self._decoding_core


class _BoundModel(OnnxNetwork):
    def __init__(self, core: Any, network: protocol.Network) -> None:
        # OpenVINO keeps the caches of a language model itself.
        keeps_caches = network.distinct and bool(network.in_place)
        network = replace(network, in_place={}) if keeps_caches else network
        super().__init__(network)
        self._core = core
        self._text: ModelText | None = None
        shapes = {name: it.shape for name, it in network.inputs.items()}
        if network.file:
            self._model = model_in_file(core, network.file, shapes)
        else:
            self._text = ModelText(network.symbol)
            self._model = self._text.read(core, shapes, network.weights, protocol.Reason.UNBUILDABLE)
            if keeps_caches:
                self._model = with_state(self._model)
        found = compiled(core, self._model, protocol.Reason.UNBUILDABLE)
        self._request = ModelRequest(self._model, ask(found.create_infer_request, protocol.Reason.UNBUILDABLE))
        self._results = len(found.outputs)

    def _bind_arrays(self) -> None:
        names = list(self._network.inputs)
        # Inputs of a file are known by name, and those of our networks by place, as some lose their names.
        keys = names if self._text is None else range(len(names))
        ask(lambda: self._request.feed(keys, self.inputs, self._in_place), protocol.Reason.UNBUILDABLE)

    def run(self) -> None:
        ask(self._run, protocol.Reason.UNBUILDABLE)

    def _run(self) -> None:
        self._request.run()
        if not self.outputs:
            self.outputs = [self._request.request.get_output_tensor(number) for number in range(self._results)]

    def prepare(self) -> None:
        ask(self._request.prepare, protocol.Reason.UNBUILDABLE)

    def begin(self) -> None:
        ask(self._request.begin, protocol.Reason.UNBUILDABLE)

    def profiled(self) -> ProfiledNetwork:
        if self._text is None:
            raise RefusalError(protocol.Reason.UNBUILDABLE, "the nodes of a model file have no numbers")
        return ProfiledOpenvinoModel(self._core, self._model, self._text, self.inputs, self._in_place)

    def _types(self) -> list[protocol.ArrayType]:
        return [protocol.ArrayType(tuple(it.shape), _numpys_name(it.element_type)) for it in self.outputs]

    def _numbers(self, place: int) -> Any:
        return self.outputs[place].data


def _numpys_name(declared: Any) -> str:
    """Return numpy's name for a data type: `int64` for `i64`."""
    name = str(declared.get_type_name())
    whole = {"i": "int", "u": "uint"}.get(name[0]) if name[1:].isdecimal() else None
    return _NAMES.get(name, f"{whole}{name[1:]}" if whole else name)
