"""ONNX models: read as they are written, or as ONNX Runtime makes them ready to run."""

import platform
import re
from base64 import b64decode
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from dlbricks_tui.models.allocation import without_cycle_search
from dlbricks_tui.models.errors import FusionRefusedError, ModelError, UnreadableModelError
from dlbricks_tui.models.graph import LayerGraph, Level, Shape, TensorType
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.models.neutral import InnerGraphsTooLargeError
from dlbricks_tui.models.onnx.constants import Settled, settle
from dlbricks_tui.models.onnx.inputs import input_types
from dlbricks_tui.models.onnx.layer_graph import OnnxGraph, build_onnx_graph
from dlbricks_tui.models.onnx.model_file import OnnxFile, parse_onnx
from dlbricks_tui.models.onnx.reading import read_onnx
from dlbricks_tui.models.onnx.stored_arrays import refuse_damaged_arrays, stored_bytes
from dlbricks_tui.models.onnx.tensor_types import type_of_weight
from dlbricks_tui.models.onnx.values import DamagedValueError, is_elsewhere
from dlbricks_tui.models.onnx.writer import WholeModel, typed_outputs, whole_model
from dlbricks_tui.models.type_cache import CachedTypes, cache_key, read_types, write_types
from dlbricks_tui.runtime.errors import WorkerRefusedError
from dlbricks_tui.runtime.traits import Format, Traits, usual_traits

# The tensor that ONNX Runtime has named a node for, or that it writes.
_OF_OURS = re.compile(r"t(\d{1,9})_\d{1,9}(?!\d)")
# The worker makes arrays for all constants of a model, those that the file only describes included.
_MOST_COMPUTED_BYTES = 2**30
# Characters of all nodes as text, each with a copy of the small values that it reads.
_MOST_NODE_TEXT = 64 * 2**20


class Optimiser(Protocol):
    """Whoever makes ONNX models ready to run: a worker process, in tests a table."""

    @property
    def traits(self) -> Traits:
        """The facts about the framework."""

    @property
    def identity(self) -> str:
        """The framework with its version: answers of different ones are not mixed."""

    def optimised(self, model: str, weights: Mapping[str, TensorType]) -> str:
        """The model after the framework's own optimiser; nobody but the types says anything of its weights."""

    def output_types(self, model: str) -> Sequence[TensorType]:
        """The types of what a model puts out, which is run as it stands."""


@dataclass(frozen=True, slots=True)
class OnnxLoader:
    """Loads ONNX models at either level; nobody is needed to read them as they are written."""

    cache: Path
    optimiser: Optimiser | None

    @without_cycle_search()
    def load(self, source: ModelSource, level: Level, given: Mapping[str, Shape]) -> LayerGraph:
        """The layer graph of the model in a file."""
        path, name = source.path, source.name
        try:
            file = parse_onnx(read_onnx(path, name), name)
            refuse_damaged_arrays(file, path, name)
            inputs = input_types(file.inputs, given, source.inputs, name)
            written = build_onnx_graph(_written(file, inputs, self._traits), name, Level.WRITTEN)
        except UnicodeDecodeError:
            raise UnreadableModelError(f"{name} has a name in it that is no text: the file is damaged") from None
        except (DamagedValueError, InnerGraphsTooLargeError) as damaged:
            raise UnreadableModelError(f"{name}: {damaged}") from None
        return written if level is Level.WRITTEN else self._fused(written, stored_bytes(file))

    @property
    def _traits(self) -> Traits:
        return usual_traits(Format.ONNX) if self.optimiser is None else self.optimiser.traits

    def _fused(self, written: LayerGraph, stored: int) -> LayerGraph:
        if self.optimiser is None:
            raise ModelError(
                f"{written.name}: only ONNX Runtime tells what it makes of an ONNX model: pip install "
                "'dlbricks-tui[onnx]', or register an interpreter that has it: dlbricks runtimes add PATH"
            )
        nameless = [layer.name for layer in written.layers if not all(it.is_known for it in layer.weights)]
        if nameless:
            raise FusionRefusedError(f"{written.name}: nobody knows the shape of a weight of {nameless[0][:80]!r}")
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
        # How tensors are laid out follows from the processor, and folders are shared between machines.
        key = cache_key(model.text.encode(), {}, "onnx", self.optimiser.identity, platform.node())
        path = self.cache / "fused" / f"{key}.json"
        cached = read_types(path, key)
        if cached is None or cached.symbol is None:
            cached = self._asked(written.name, model, self.optimiser)
            # Without a cache everything works, only slower the next time.
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


def _written(file: OnnxFile, inputs: Mapping[str, TensorType], traits: Traits) -> OnnxGraph:
    settled = settle(file, inputs)
    numbers = {name: number for number, node in enumerate(file.nodes) for name in node.output if name}
    parts = [numbers[next(filter(None, node.output))] for node in settled.layers]
    names = [node.name or f"{node.op_type.lower()}{number}" for number, node in zip(parts, settled.layers, strict=True)]
    return OnnxGraph(settled, inputs, file.outputs, file.opsets, names, [(number,) for number in parts], traits)


def _fused_graph(
    file: OnnxFile, types: Sequence[Sequence[TensorType]], written: LayerGraph, owners: Mapping[int, int]
) -> OnnxGraph:
    inputs = {f"data{number}": found.type for number, found in enumerate(written.inputs)}
    settled = Settled(dict(inputs), layers=list(file.nodes))
    for weight in file.weights:
        settled.types[weight.name] = type_of_weight(weight)
        settled.constants.add(weight.name)
        if not is_elsewhere(weight):
            settled.values[weight.name] = weight
    for node, found in zip(file.nodes, types, strict=True):
        settled.types.update(zip(filter(None, node.output), found, strict=True))
    stands_for = _stands_for(file, written, owners)
    names = [
        written.layers[found[-1]].name if found else node.name or node.op_type.lower()
        for node, found in zip(file.nodes, stands_for, strict=True)
    ]
    parts = [tuple(sorted({part for index in found for part in written.layers[index].nodes})) for found in stands_for]
    return OnnxGraph(settled, inputs, file.outputs, file.opsets, names, parts, written.traits)


def _stands_for(file: OnnxFile, written: LayerGraph, owners: Mapping[int, int]) -> list[list[int]]:
    """For each node the written layers that it stands for, the one that it is named for last.

    ONNX Runtime does not say that. It keeps the names of tensors, or names a node for one: that is the layer. Written
    layers before it that no node is named for were merged into it.
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
        match = _OF_OURS.match(text)
        if match and int(match[1]) in owners:
            return owners[int(match[1])]
    return None
