"""Excerpts of ONNX models: the nodes of a layer and those around it, as a network without names and weights.

A runtime fuses nodes with their neighbours and chooses memory layouts by them: alone, many layers would be others.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from dlbricks_tui.measure.jobs import memory_bytes
from dlbricks_tui.models.errors import ModelError
from dlbricks_tui.models.graph import Feed, GraphInput, LayerGraph, Level, TensorType, numbers_of, type_of
from dlbricks_tui.models.library import ONNX_SUFFIX, source_of
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.models.onnx_arrays import declared
from dlbricks_tui.models.onnx_constants import is_if
from dlbricks_tui.models.onnx_file import reads
from dlbricks_tui.models.onnx_inputs import axes_of
from dlbricks_tui.runtime.errors import WorkerLostError, WorkerRefusedError
from dlbricks_tui.share.errors import BrokenBrickError, ShareError, UnsuitableLayersError, refuse_too_large
from dlbricks_tui.share.onnx_checks import check_network
from dlbricks_tui.share.onnx_network import file_of, onnx_network

if TYPE_CHECKING:
    from onnx import NodeProto, ValueInfoProto

# An excerpt reaches at most this many layers to either side.
MOST_HOPS = 4


class OnnxExcerpts:
    """Cuts excerpts out of a model, given by its layers as written and as they are measured."""

    def __init__(self, written: LayerGraph, measured: LayerGraph) -> None:
        file = file_of(written)
        if any(map(is_if, file.nodes)):
            raise UnsuitableLayersError("has branches, one of which is taken in each run")
        self._file = file
        self._measured = measured
        self._has_open_axes = any(isinstance(axis, str) for given in file.inputs for axis in axes_of(given.type) or ())
        self._stored = {weight.name for weight in file.weights}
        self._tensors = dict(_tensors(written, file.nodes))
        self._writers = {name: number for number, node in enumerate(file.nodes) for name in node.output if name}
        self._readers: dict[str, set[int]] = {}
        for number, node in enumerate(file.nodes):
            for name in reads(node):
                self._readers.setdefault(name, set()).add(number)
        # Nodes of no layer compute constants, or are left out by the optimiser.
        self._owned = {number for layer in measured.layers for number in layer.nodes}

    def around(self, layer: int) -> Iterator[bytes]:
        """Yield excerpts with this layer, each with more layers around it than the one before."""
        graph, near = self._measured, {layer}
        for _ in range(MOST_HOPS):
            near |= {it for index in near for it in (*graph.predecessors[index], *graph.successors[index])}
            nodes = {number for index in near for number in graph.layers[index].nodes}
            if nodes:
                yield self._excerpt(nodes, are_open=False)
                if self._has_open_axes:
                    yield self._excerpt(nodes, are_open=True)

    def _excerpt(self, nodes: Collection[int], *, are_open: bool) -> bytes:
        held = self._with_constants(nodes)
        made = {name for number in held for name in self._file.nodes[number].output if name}
        read = dict.fromkeys(name for number in sorted(held) for name in reads(self._file.nodes[number]) if name)
        inputs = {name: self._tensors.get(name) for name in read if name not in made | self._stored}
        known = {name: it for name, it in inputs.items() if it is not None and it.type.is_known}
        if len(known) < len(inputs):
            raise UnsuitableLayersError("reads a tensor whose shape or data type is not known")
        outputs = []
        for name in (name for number in sorted(nodes) for name in self._file.nodes[number].output if name):
            readers = self._readers.get(name, set())
            # An output cannot be fused away, so only what no node or an outside node reads becomes one.
            if not readers or name in self._file.outputs or not readers.issubset(held):
                outputs.append(name)
        # Nodes are changed when they are written.
        copies = deepcopy([self._file.nodes[number] for number in sorted(held)])
        given = tuple([_declared(name, it.type, are_open=are_open) for name, it in known.items()])
        file = replace(self._file, nodes=tuple(copies), inputs=given, outputs=tuple(outputs))
        return onnx_network(file, known)

    def _with_constants(self, nodes: Iterable[int]) -> set[int]:
        """Return these nodes, and those of no layer that compute what they read."""
        held = set(nodes)
        waiting = [name for number in held for name in reads(self._file.nodes[number])]
        while waiting:
            number = self._writers.get(waiting.pop())
            if number is not None and number not in held and number not in self._owned:
                held.add(number)
                waiting += reads(self._file.nodes[number])
        return held


def _tensors(written: LayerGraph, nodes: "Sequence[NodeProto]") -> Iterator[tuple[str, GraphInput]]:
    """Yield the inputs of a model and the results of its layers, by name."""
    for given in written.inputs:
        yield given.name, given
    for layer in written.layers:
        if len(layer.nodes) != len(layer.operators):
            # Several nodes that are one operator: what is inside has no type.
            continue
        for number, wire in enumerate(layer.results):
            feed = Feed(layer.index, number)
            name = [name for name in nodes[layer.nodes[wire.number]].output if name][wire.output]
            yield name, GraphInput(name, type_of(written, feed), numbers_of(written, feed))


def _declared(name: str, found: TensorType, *, are_open: bool) -> "ValueInfoProto":
    """Return an input of this shape, or one whose axes are open: then the optimiser keeps what computes sizes."""
    from onnx import ValueInfoProto

    given = ValueInfoProto(name=name, type=declared(found))
    if are_open:
        for axis in given.type.tensor_type.shape.dim:
            # Axes of one size have one name.
            axis.dim_param = f"axis{axis.dim_value}"
    return given


class OnnxReader:
    """Reads excerpts as a runtime has them; runtimes open files, which are written to a folder of drafts."""

    def __init__(self, loader: Loader, level: Level, drafts: Path, most_bytes: int) -> None:
        self._loader = loader
        # Shapes are inferred, and memory is added up, before a runtime opens the file.
        self._without_runtime = loader.without_optimiser()
        self._level = level
        self._draft = drafts / f"excerpt{ONNX_SUFFIX}"
        self._most_bytes = most_bytes

    def read(self, content: bytes) -> LayerGraph:
        """Return the layers of an excerpt; raise BrokenBrickError, whose message completes "brick ... "."""
        try:
            check_network(content, self._most_bytes)
            self._draft.write_bytes(content)
            graph = self._without_runtime.load(source_of(self._draft))
            refuse_too_large(memory_bytes(graph.layers), self._most_bytes)
            graph = self._loader.load(source_of(self._draft), self._level)
            refuse_too_large(memory_bytes(graph.layers), self._most_bytes)
            return graph
        except (UnsuitableLayersError, ModelError, WorkerRefusedError, WorkerLostError) as error:
            raise BrokenBrickError(str(error)) from None
        except OSError as error:
            raise ShareError(f"cannot write {self._draft}: {error.strerror}; free some space") from error
        finally:
            self._draft.unlink(missing_ok=True)
