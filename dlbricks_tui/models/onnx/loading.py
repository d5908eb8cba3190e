"""Loads ONNX models at either level."""

import platform
import re
from base64 import b64decode
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from dlbricks_tui.models.cache import ReadModel
from dlbricks_tui.models.content import without_cycle_search
from dlbricks_tui.models.errors import FusionRefusedError, ModelError, UnreadableModelError
from dlbricks_tui.models.graph import LayerGraph, Level, Numbers, Shape, TensorType
from dlbricks_tui.models.input_shapes import listed, missing_shapes, refuse_too_large, short_shape
from dlbricks_tui.models.input_values import refuse_unfit, refuse_unknown_inputs
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.models.neutral import InnerGraphsTooLargeError
from dlbricks_tui.models.onnx.constants import Analysis, analyse
from dlbricks_tui.models.onnx.layer_graph import OnnxGraph, build_onnx_graph
from dlbricks_tui.models.onnx.model_file import OnnxFile, parse_onnx
from dlbricks_tui.models.onnx.open_axes import axes_of, named_sizes, shape_of_value, shapes_to_ask, sized
from dlbricks_tui.models.onnx.reading import read_onnx, refuse_too_many_parts
from dlbricks_tui.models.onnx.settings import compared_numbers, stored_settings
from dlbricks_tui.models.onnx.stored_arrays import checked_array_file_sizes, stored_bytes
from dlbricks_tui.models.onnx.tensors import MOST_ELEMENTS, DamagedValueError, dtype_name, is_external, type_of_weight
from dlbricks_tui.models.onnx.writer import WholeModel, typed_outputs, whole_model
from dlbricks_tui.models.type_cache import CachedTypes, cache_key, read_types, write_types
from dlbricks_tui.runtime.errors import WorkerRefusedError
from dlbricks_tui.runtime.traits import Format, Traits, usual_traits

if TYPE_CHECKING:
    from onnx import ValueInfoProto


def input_types(
    inputs: Sequence["ValueInfoProto"],
    given: Mapping[str, Shape],
    known: Mapping[str, Shape],
    values: Mapping[str, Numbers],
    where: str,
) -> dict[str, TensorType]:
    """Return the type of each input by name.

    An open axis has the size that is given for its name in any input. Otherwise a first axis, or one named batch, means
    one image.
    """
    names = [it.name for it in inputs]
    for name in given:
        if name not in names:
            raise ModelError(f"{where} has no input {name[:80]!r}; its inputs are: {listed(names) or 'none'}")
    refuse_unknown_inputs(values, names, where)
    stated = {**known, **given}
    sizes: dict[str, int] = {}
    for it in inputs:
        axes = axes_of(it)
        if it.name in stated and axes is not None:
            if len(axes) != len(stated[it.name]):
                shown = short_shape(stated[it.name])
                raise ModelError(
                    f"{where}: input {it.name[:80]!r} has {len(axes)} axes; the given shape {shown} does not"
                )
            sizes.update(named_sizes(axes, stated[it.name]))
    shapes = {
        it.name: stated.get(it.name, shape_of_value(axes_of(it), values.get(it.name, ())) or sized(axes_of(it), sizes))
        for it in inputs
    }
    missing = {it.name: axes_of(it) for it in inputs if shapes[it.name] is None}
    if missing:
        raise missing_shapes(shapes_to_ask(missing, sizes), where)
    refuse_too_large({name: shape for name, shape in shapes.items() if shape}, MOST_ELEMENTS, "ONNX Runtime", where)
    return {it.name: TensorType(shapes[it.name], dtype_name(it.type.tensor_type.elem_type)) for it in inputs}


# The tensor after which ONNX Runtime names a node or its output.
_OUR_TENSOR = re.compile(r"t(\d{1,9})_\d{1,9}(?!\d)")
# The worker creates all constants of a model, including those that the file only describes.
_MOST_COMPUTED_BYTES = 2**30
# Characters of all nodes as text, each with a copy of the small values that it reads.
_MOST_NODE_TEXT = 64 * 2**20


class Optimiser(Protocol):
    """The interface of a framework that optimises ONNX models."""

    @property
    def traits(self) -> Traits:
        """The facts about the framework."""

    @property
    def identity(self) -> str:
        """The framework with its version. The cache separates their answers."""

    def optimised(self, model: str, weights: Mapping[str, TensorType]) -> str:
        """Return the model after the framework's own optimiser. The model holds the types of its weights only."""

    def output_types(self, model: str) -> Sequence[TensorType]:
        """Return the types of a model's outputs, without optimising it."""


@dataclass(frozen=True, slots=True)
class OnnxLoader:
    """Loads ONNX models at either level. Only the fused level needs a framework."""

    cache: Path
    optimiser: Optimiser | None

    def read(self, source: ModelSource) -> bytes:
        """Return the content of a model file without its large arrays."""
        return read_onnx(source.path, source.name)

    def facts(self, source: ModelSource, level: Level) -> tuple[object, ...]:
        """Return the facts beside the file and its shapes on which a layer graph depends."""
        framework = None if self.optimiser is None else self.optimiser.identity
        # The layouts of fused tensors depend on the processor, and machines may share a cache folder.
        return framework, _version_of_onnx(), platform.node() if level is Level.FUSED else ""

    @without_cycle_search()
    def load(
        self,
        source: ModelSource,
        content: bytes,
        level: Level,
        given: Mapping[str, Shape],
        values: Mapping[str, Numbers],
    ) -> ReadModel:
        """Return the layer graph of a model file."""
        path, name = source.path, source.name
        try:
            refuse_too_many_parts(content, name)
            file = parse_onnx(content, name)
            beside = checked_array_file_sizes(file, path, name)
            inputs = input_types(file.inputs, given, source.inputs, values, name)
            refuse_unfit(values, inputs, name)
            values = {**compared_numbers(file, inputs), **values}
            written = build_onnx_graph(_written(file, inputs, values, self._traits), name, Level.WRITTEN)
            inputs_with_values = tuple([it._replace(value=values.get(it.name, ())) for it in written.inputs])
            written = replace(written, inputs=inputs_with_values)
        except UnicodeDecodeError:
            raise UnreadableModelError(f"{name} contains a name that is not valid text: the file is damaged") from None
        except (DamagedValueError, InnerGraphsTooLargeError) as damaged:
            raise UnreadableModelError(f"{name}: {damaged}") from None
        graph = written if level is Level.WRITTEN else self._fused(written, stored_bytes(file))
        return ReadModel(graph, beside)

    @property
    def _traits(self) -> Traits:
        return usual_traits(Format.ONNX) if self.optimiser is None else self.optimiser.traits

    def _fused(self, written: LayerGraph, stored: int) -> LayerGraph:
        if self.optimiser is None:
            raise ModelError(
                f"{written.name}: fusing an ONNX model needs {self._traits.title}: {self._traits.install_here}, "
                "or register an interpreter that has it: dlbricks runtimes add PATH"
            )
        nameless = [layer.name for layer in written.layers if not all(it.is_known for it in layer.weights)]
        if nameless:
            raise FusionRefusedError(f"{written.name}: the shape of a weight of {nameless[0][:80]!r} is unknown")
        operators = [operator for layer in written.layers for operator in layer.operators]
        if sum(len(text) for it in operators for _, text in it.native.attributes) > _MOST_NODE_TEXT:
            raise FusionRefusedError(
                f"{written.name} has too many long values in its nodes; read its layers as written"
            )
        model = whole_model(written)
        if sum(found.size_bytes for found in model.weights.values()) > stored + _MOST_COMPUTED_BYTES:
            most = f"{_MOST_COMPUTED_BYTES // 2**30} GiB"
            raise FusionRefusedError(
                f"{written.name} computes constants of more than {most} from shapes; read its layers as written"
            )
        # The layouts of tensors depend on the processor, and machines may share a cache folder.
        key = cache_key(model.text.encode(), {}, "onnx", self.optimiser.identity, platform.node())
        path = self.cache / "fused" / f"{key}.json"
        cached = read_types(path, key)
        if cached is None or cached.symbol is None:
            cached = self._asked(written.name, model, self.optimiser)
            # Without a cache, the next read asks the framework again.
            with suppress(OSError):
                write_types(path, key, cached)
        file = parse_onnx(b64decode(cached.symbol or ""), f"{written.name}, fused")
        graph = build_onnx_graph(_fused_graph(file, cached.types, written, model.owners), written.name, Level.FUSED)
        return replace(graph, inputs=written.inputs)

    def _asked(self, name: str, model: WholeModel, optimiser: Optimiser) -> CachedTypes:
        try:
            symbol = optimiser.optimised(model.text, model.weights)
            file = parse_onnx(b64decode(symbol), f"{name}, fused")
            question, counts = typed_outputs(file)
            types = iter(optimiser.output_types(question))
        except WorkerRefusedError as refused:
            raise FusionRefusedError(f"{name}: {refused}") from None
        found = tuple([tuple([next(types) for _ in range(count)]) for count in counts])
        return CachedTypes(found, framework=optimiser.identity, symbol=symbol)


def _version_of_onnx() -> str:
    # Loaded here: it takes long, and other formats do without.
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("onnx")
    except PackageNotFoundError:
        return ""


def _written(
    file: OnnxFile, inputs: Mapping[str, TensorType], values: Mapping[str, Numbers], traits: Traits
) -> OnnxGraph:
    analysis = analyse(file, inputs, stored_settings(values, inputs))
    numbers = {name: number for number, node in enumerate(analysis.nodes) for name in node.output if name}
    parts = [numbers[next(filter(None, node.output))] for node in analysis.layers]
    names = [
        node.name or f"{node.op_type.lower()}{number}" for number, node in zip(parts, analysis.layers, strict=True)
    ]
    return OnnxGraph(analysis, inputs, file.outputs, file.opsets, names, [(number,) for number in parts], traits)


def _fused_graph(
    file: OnnxFile, types: Sequence[Sequence[TensorType]], written: LayerGraph, owners: Mapping[int, int]
) -> OnnxGraph:
    inputs = {f"data{number}": found.type for number, found in enumerate(written.inputs)}
    analysis = Analysis(dict(inputs), layers=list(file.nodes))
    for weight in file.weights:
        analysis.types[weight.name] = type_of_weight(weight)
        analysis.constants.add(weight.name)
        if not is_external(weight):
            analysis.values[weight.name] = weight
    for node, found in zip(file.nodes, types, strict=True):
        analysis.types.update(zip(filter(None, node.output), found, strict=True))
    stands_for = _stands_for(file, written, owners)
    names = [
        written.layers[found[-1]].name if found else node.name or node.op_type.lower()
        for node, found in zip(file.nodes, stands_for, strict=True)
    ]
    parts = [tuple(sorted({part for index in found for part in written.layers[index].nodes})) for found in stands_for]
    return OnnxGraph(analysis, inputs, file.outputs, file.opsets, names, parts, written.traits)


def _stands_for(file: OnnxFile, written: LayerGraph, owners: Mapping[int, int]) -> list[list[int]]:
    """Return for each node the written layers behind it, with the one that names it last.

    ONNX Runtime keeps the names of tensors, or names a node after one: that gives the layer. Written layers before it
    that no node is named after were merged into it.
    """
    named = [_named_for(node.name, list(node.output), owners) for node in file.nodes]
    taken = {index for index in named if index is not None}
    found: list[list[int]] = []
    for index in named:
        merged: list[int] = []
        waiting = [] if index is None else [*written.predecessors[index]]
        while waiting:
            before = waiting.pop()
            if before not in taken:
                taken.add(before)
                merged.append(before)
                waiting += written.predecessors[before]
        found.append([] if index is None else [*sorted(merged), index])
    return found


def _named_for(name: str, outputs: Sequence[str], owners: Mapping[int, int]) -> int | None:
    for text in (*outputs, name):
        match = _OUR_TENSOR.match(text)
        if match and int(match[1]) in owners:
            return owners[int(match[1])]
    return None
