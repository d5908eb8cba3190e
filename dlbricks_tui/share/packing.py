"""Packing of bricks into files of a suite, excerpts of their models, and joining of these to networks again."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from dlbricks_tui.bricks.contexts import FAR_BYTES
from dlbricks_tui.bricks.decomposition import Decomposition, Occurrence
from dlbricks_tui.bricks.identity import brick_of
from dlbricks_tui.measure.jobs import memory_bytes
from dlbricks_tui.measure.plan import is_run
from dlbricks_tui.models.graph import Feed, GraphInput, Layer, LayerGraph
from dlbricks_tui.runtime.traits import Format
from dlbricks_tui.share.errors import BrokenBrickError, UnsuitableLayersError
from dlbricks_tui.share.mxnet_excerpts import MXNetExcerpts
from dlbricks_tui.share.onnx_excerpts import OnnxExcerpts


@dataclass(frozen=True)
class SuiteModel:
    """A model whose bricks go into a suite: cut into single layers, with its written layers where it was fused."""

    decomposition: Decomposition
    written: LayerGraph | None = None

    @property
    def framework(self) -> str:
        """The framework that runs its bricks."""
        return self.decomposition.graph.traits.framework

    @cached_property
    def bricks(self) -> Mapping[str, Occurrence]:
        """The bricks that take time, by key, each with its first occurrence."""
        found: dict[str, Occurrence] = {}
        for it in self.decomposition.occurrences:
            if is_run(self.decomposition.graph, it):
                found.setdefault(it.brick.key, it)
        return found

    def excerpts(self) -> OnnxExcerpts | MXNetExcerpts:
        """Return the excerpts of the model; raise UnsuitableLayersError if it has none."""
        graph = self.decomposition.graph
        return OnnxExcerpts(self.written or graph, graph) if graph.format is Format.ONNX else MXNetExcerpts(graph)


class PackedBrick(NamedTuple):
    """The file of a brick, by key; without content, the reason why a suite cannot hold the brick."""

    brick: str
    canonical: str
    cold: bool = False
    content: bytes = b""
    reason: str = ""


# Reads an excerpt as a runtime has it; raises BrokenBrickError if it cannot be read.
Read = Callable[[bytes], LayerGraph]


@dataclass(frozen=True)
class Packing:
    """Packs the smallest excerpt of a model in which a runtime makes the same brick."""

    read: Read

    def packed(self, model: SuiteModel, bricks: Mapping[str, Occurrence]) -> Iterator[PackedBrick]:
        """Pack some bricks of a model, each once."""
        cold = model.decomposition.graph.weight_bytes > FAR_BYTES
        excerpts, refusal = None, ""
        try:
            excerpts = model.excerpts()
        except UnsuitableLayersError as error:
            refusal = str(error)
        for key, occurrence in bricks.items():
            content, reason = b"", refusal
            if excerpts is not None:
                try:
                    content = self._smallest(excerpts.around(*occurrence.sequence.layers), key)
                except UnsuitableLayersError as error:
                    reason = str(error)
            yield PackedBrick(key, occurrence.brick.canonical, cold, content, reason)

    def _smallest(self, excerpts: Iterator[bytes], brick: str) -> bytes:
        why = "belongs to no node of the file"
        for content in excerpts:
            try:
                graph = self.read(content)
            except BrokenBrickError as error:
                why = str(error)
                continue
            if any(brick_of(graph, (it.index,)).key == brick for it in graph.layers):
                return content
            why = "would not be read back as the same brick"
        raise UnsuitableLayersError(why)


# The least memory of one network: of excerpts from models whose weights fit into caches, and from others.
_WARM_BYTES, _COLD_BYTES = 16 << 20, 64 << 20
_MOST_LAYERS = 400


@dataclass(frozen=True, slots=True)
class JoinedExcerpts:
    """A network of several excerpts, and the layers in it that do not stand for their bricks.

    Those are at the edge of an excerpt, where a layer reads and writes other memory than inside of a model.
    """

    graph: LayerGraph
    edges: frozenset[int]


def joined_excerpts(warm: Sequence[LayerGraph], cold: Sequence[LayerGraph]) -> tuple[JoinedExcerpts, ...]:
    """Return all excerpts in networks; bricks that are only at edges are timed there."""
    graphs = [*_networks(warm, _WARM_BYTES), *_networks(cold, _COLD_BYTES)]
    keys = [[brick_of(graph, (layer.index,)).key for layer in graph.layers] for graph in graphs]
    at_edges = []
    for graph in graphs:
        writers = {head.layer for head in graph.heads if head.layer is not None}
        readers = {layer.index for layer in graph.layers if any(feed.layer is None for feed in layer.feeds)}
        at_edges.append(frozenset(readers | writers))
    inside = {
        key
        for edges, of_layers in zip(at_edges, keys, strict=True)
        for layer, key in enumerate(of_layers)
        if layer not in edges
    }
    return tuple(
        JoinedExcerpts(
            replace(graph, name=f"excerpts {number}"), frozenset(it for it in edges if of_layers[it] in inside)
        )
        for number, (graph, edges, of_layers) in enumerate(zip(graphs, at_edges, keys, strict=True), start=1)
    )


def _networks(graphs: Sequence[LayerGraph], fewest_bytes: int) -> Iterator[LayerGraph]:
    """Yield networks of these graphs, of about equal size: a small one would stay in the caches."""
    sizes = [memory_bytes(graph.layers) for graph in graphs]
    parts = max(1, sum(sizes) // fewest_bytes, sum(len(graph.layers) for graph in graphs) // _MOST_LAYERS)
    waiting: list[LayerGraph] = []
    size, taken = 0, 0
    for graph, own in zip(graphs, sizes, strict=True):
        waiting.append(graph)
        size += own
        if size * parts >= sum(sizes) * (taken + 1) and taken + 1 < parts:
            yield joined(waiting)
            waiting = []
            taken += 1
    if waiting:
        yield joined(waiting)


def joined(graphs: Sequence[LayerGraph]) -> LayerGraph:
    """Return one graph with the layers, inputs and outputs of all these, which have no tensor in common."""
    layers: list[Layer] = []
    inputs: list[GraphInput] = []
    heads: list[Feed] = []
    arrays = 0
    for number, graph in enumerate(graphs):
        first_layer, first_input = len(layers), len(inputs)

        def moved(feed: Feed, layers: int = first_layer, inputs: int = first_input) -> Feed:
            """Return a feed with the numbers that its layer or input has in the joined graph."""
            return (
                feed._replace(output=inputs + feed.output)
                if feed.layer is None
                else feed._replace(layer=layers + feed.layer)
            )

        for layer in graph.layers:
            layers.append(
                replace(
                    layer,
                    index=len(layers),
                    name=f"{number}.{layer.name}",
                    feeds=tuple([moved(feed) for feed in layer.feeds]),
                    nodes=(),
                    arrays=tuple([arrays + array for array in layer.arrays]),
                )
            )
        inputs += [given._replace(name=f"data{first_input + place}") for place, given in enumerate(graph.inputs)]
        heads += [moved(head) for head in graph.heads]
        arrays += 1 + max((array for layer in graph.layers for array in layer.arrays), default=0)
    return replace(graphs[0], layers=tuple(layers), inputs=tuple(inputs), heads=tuple(heads))
