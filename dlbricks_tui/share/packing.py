"""How bricks of each format become files of a suite, and which of them share a file."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Protocol

from dlbricks_tui.bricks.decomposition import Decomposition, Occurrence
from dlbricks_tui.bricks.identity import brick_of
from dlbricks_tui.bricks.layouts import output_layouts
from dlbricks_tui.bricks.programs import Excerpt, excerpt
from dlbricks_tui.measure.jobs import memory_bytes
from dlbricks_tui.measure.plan import is_run
from dlbricks_tui.models.errors import ModelError
from dlbricks_tui.models.graph import Feed, GraphInput, Layer, LayerGraph
from dlbricks_tui.runtime.traits import Format
from dlbricks_tui.share.errors import BrokenBrickError, UnsuitableLayersError
from dlbricks_tui.share.mxnet_network import packed
from dlbricks_tui.share.unpacking import Unpacker


class SuitePair(NamedTuple):
    """A brick by its key, and its context, which is empty for bricks that are timed inside of networks."""

    brick: str
    context: str


@dataclass(frozen=True)
class SuiteModel:
    """A model whose bricks go into a suite, and its layers as written if they are other ones."""

    decomposition: Decomposition
    written: LayerGraph | None = None

    @property
    def framework(self) -> str:
        """The framework that runs its bricks."""
        return self.decomposition.graph.traits.framework

    @cached_property
    def bricks(self) -> Mapping[SuitePair, Occurrence]:
        """The bricks that take time, each with its first occurrence."""
        graph, found = self.decomposition.graph, dict[SuitePair, Occurrence]()
        for it in self.decomposition.occurrences:
            if is_run(graph, it):
                found.setdefault(SuitePair(it.brick.key, "" if graph.format is Format.ONNX else it.context), it)
        return found


class PackedBrick(NamedTuple):
    """The file of a brick; without content, the reason why a suite cannot hold the brick."""

    pair: SuitePair
    canonical: str
    layers: int = 1
    cold: bool = False
    content: bytes = b""
    reason: str = ""


class Packing(Protocol):
    """The packing of the bricks of one framework."""

    def packed(self, model: SuiteModel, bricks: Mapping[SuitePair, Occurrence]) -> Iterator[PackedBrick]:
        """Pack some bricks of a model, each once."""


class MXNetPacking:
    """Packs each layer sequence with the layers in front of it that set the layouts of its inputs."""

    def __init__(self, unpacker: Unpacker | None) -> None:
        """Each file is read back by the unpacker, if there is one."""
        self._unpacker = unpacker

    def packed(self, model: SuiteModel, bricks: Mapping[SuitePair, Occurrence]) -> Iterator[PackedBrick]:
        """Pack some bricks of a model, each once."""
        graph = model.decomposition.graph
        layouts = output_layouts(graph)
        for pair, occurrence in bricks.items():
            yield self._packed(pair, excerpt(graph, occurrence.sequence.layers, layouts))

    def _packed(self, pair: SuitePair, alone: Excerpt) -> PackedBrick:
        canonical = alone.brick.canonical
        try:
            content = packed(alone)
            if self._unpacker is not None:
                read = self._unpacker.unpacked(content, alone.held, alone.cold)
                if (read.brick, read.context) != (alone.brick, alone.context):
                    raise UnsuitableLayersError("would not be read back as the same brick in the same context")
        except (UnsuitableLayersError, BrokenBrickError, ModelError) as error:
            return PackedBrick(pair, canonical, reason=str(error))
        return PackedBrick(pair, canonical, alone.held, alone.cold, content)


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
            """Return the same tensor behind so many other layers and inputs."""
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
