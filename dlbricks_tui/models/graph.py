"""The layer graph, into which every model file is read: a directed acyclic graph of layers.

Its algorithms are those of networkx, which is imported on first use, since a model that was cut before is looked up
without it.
"""

import math
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from dlbricks_tui.models.kinds import Kind
from dlbricks_tui.runtime.traits import MXNET, Format, Traits

if TYPE_CHECKING:
    import networkx


Shape = tuple[int, ...]
# The value of an input: one number (or text) for all elements, or one for each.
Numbers = tuple[int | float | str, ...]
ParamValue = None | bool | int | float | str | tuple["ParamValue", ...]
Params = tuple[tuple[str, ParamValue], ...]


class Level(str, Enum):
    """The level of layers: those of the model file, or those that the runtime's optimiser makes of them."""

    WRITTEN = "written"
    FUSED = "fused"


UNKNOWN_DTYPE = "unknown"

# Operators, by neutral name, that read only some rows of a table.
LOOK_UPS = frozenset({"embedding", "mxnet.take", "mxnet._contrib_SparseEmbedding", "onnx.Gather"})

_DIGITS = re.compile("[0-9]{1,3}")


class TensorType(NamedTuple):
    """Shape and dtype of a tensor. The shape is None if inference cannot tell it."""

    shape: Shape | None
    dtype: str = "float32"

    @property
    def is_known(self) -> bool:
        return self.shape is not None and self.dtype != UNKNOWN_DTYPE

    @property
    def size_bytes(self) -> int:
        """The size in memory; for an unknown shape, the size of one number."""
        return -(-math.prod(self.shape or ()) * _bits(self.dtype) // 8)


@lru_cache(maxsize=1 << 8)
def _bits(dtype: str) -> int:
    """Return the bits of an element: the first number in the name of its type."""
    found = _DIGITS.search(dtype)
    return int(found[0]) if found else 8 if dtype == "bool" else 32


UNKNOWN_TYPE = TensorType(None, UNKNOWN_DTYPE)
_QUANTISED = ("int8", "uint8", "int4", "uint4")


class Origin(str, Enum):
    """The source of an operator's input."""

    OPERATOR = "operator"
    DATA = "data"
    WEIGHT = "weight"


class Wire(NamedTuple):
    """One input of an operator: an operator of the same layer, a data input or a weight of the layer, by number."""

    origin: Origin
    number: int
    output: int = 0


class NativeNode(NamedTuple):
    """An operator in the spelling of its file format. `attributes` and `subgraphs` suffice to write it again."""

    op: str
    attributes: tuple[tuple[str, str], ...] = ()
    subgraphs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator of a layer, under its neutral name with normalised parameters.

    `inner` is the canonical form of its subgraphs. `parts` are the operators that the runtime has fused into it, or
    itself.
    """

    op: str
    params: Params
    inputs: tuple[Wire, ...]
    outputs: tuple[TensorType, ...]
    native: NativeNode
    inner: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()


class Feed(NamedTuple):
    """The source of a layer's data input: an output of a layer, or (layer None) a graph input by number."""

    layer: int | None
    output: int


@dataclass(frozen=True, slots=True)
class Layer:
    """One vertex of a model: an operator, or several that the file declares to be one layer."""

    index: int
    name: str
    op: str
    kind: Kind
    operators: tuple[Operator, ...]
    # The sources of its data inputs, each once, and their types.
    feeds: tuple[Feed, ...]
    data: tuple[TensorType, ...]
    weights: tuple[TensorType, ...]
    # The operator outputs that leave the layer, and their types.
    results: tuple[Wire, ...]
    outputs: tuple[TensorType, ...]
    times: int = 1
    # The reason why no runtime can run it, None if one can.
    unmeasurable: str | None = None
    # The nodes of the model file that it stands for. They relate the layers of both levels.
    nodes: tuple[int, ...] = ()
    # The number of the array behind each weight, as layers may share arrays. Empty if each weight has its own.
    arrays: tuple[int, ...] = ()
    # The numbers of its outputs in one run of the model, each empty if they are not known. Empty if none is.
    numbers: tuple[Numbers, ...] = ()
    # Its shapes depend on data, and are those of one run of the model.
    is_recorded: bool = False

    def array(self, weight: int) -> Hashable:
        """Return the identity of a weight's array among all arrays of the model."""
        return (self.weights[weight], self.arrays[weight]) if self.arrays else (self.index, weight)

    def type_of(self, wire: Wire) -> TensorType:
        """Return the type of an input of one of its operators."""
        if wire.origin is Origin.OPERATOR:
            return self.operators[wire.number].outputs[wire.output]
        return (self.data if wire.origin is Origin.DATA else self.weights)[wire.number]


class LayerReads:
    """The inputs and weights of a layer that is made, each once, numbered in the order of reading."""

    def __init__(self) -> None:
        self.feeds: dict[Feed, int] = {}
        self.data: list[TensorType] = []
        # By the name or number of the array: operators that share one share the weight.
        self.arrays: dict[Any, int] = {}
        self.weights: list[TensorType] = []

    def tensor(self, feed: Feed, found: TensorType) -> Wire:
        """Return the wire from an input of the model or from another layer."""
        if feed not in self.feeds:
            self.feeds[feed] = len(self.data)
            self.data.append(found)
        return Wire(Origin.DATA, self.feeds[feed])

    def weight(self, array: Hashable, found: TensorType) -> Wire:
        """Return the wire from a stored array."""
        if array not in self.arrays:
            self.arrays[array] = len(self.weights)
            self.weights.append(found)
        return Wire(Origin.WEIGHT, self.arrays[array])


def bytes_read(layers: Iterable[Layer], paid: int = 1) -> dict[Hashable, int]:
    """Return the bytes that layers read of each weight in one inference.

    `paid` is the number of repetitions that the model pays for. A shared weight counts once, and of a table only the
    rows that are looked up.
    """
    read: dict[Hashable, int] = {}
    for layer in layers:
        for number in range(len(layer.weights)):
            array = layer.array(number)
            read[array] = max(read.get(array, 0), layer.times // paid * _bytes_read(layer, number))
    return read


def _bytes_read(layer: Layer, weight: int) -> int:
    size = layer.weights[weight].size_bytes
    if not any(operator.op in LOOK_UPS for operator in layer.operators):
        return size
    readers = [operator for operator in layer.operators if Wire(Origin.WEIGHT, weight) in operator.inputs]
    if not readers or any(operator.op not in LOOK_UPS for operator in readers):
        return size
    return min(size, sum(made.size_bytes for operator in readers for made in operator.outputs))


class GraphInput(NamedTuple):
    """A data input of the model. `value` is empty if it is not given.

    `assumed` are the names of axes whose size neither the file nor the user says: each has one element.
    """

    name: str
    type: TensorType
    value: Numbers = ()
    assumed: tuple[str, ...] = ()


@dataclass(frozen=True)
class LayerGraph:
    """A model at one level. Layers are in topological order and known by their index."""

    name: str
    level: Level
    layers: tuple[Layer, ...]
    inputs: tuple[GraphInput, ...]
    heads: tuple[Feed, ...]
    # The framework for which it was loaded.
    traits: Traits = MXNET
    # The number of images, sentences or rows in one inference.
    batch_size: int = 1
    # The key of the file and the settings that it was read from; empty for a graph that was made or changed.
    key: str = field(default="", init=False, compare=False, repr=False)
    file: Path | None = field(default=None, init=False, compare=False, repr=False)

    def with_key(self, key: str, file: Path | None = None) -> "LayerGraph":
        """Return the graph as one that was read from a file under a key."""
        found = replace(self)
        object.__setattr__(found, "key", key)
        object.__setattr__(found, "file", file)
        return found

    def named(self, name: str) -> "LayerGraph":
        """Return the graph under another name; its layers and its key stay."""
        return replace(self, name=name).with_key(self.key, self.file)

    @property
    def format(self) -> Format:
        """The file format of its native nodes."""
        return self.traits.format

    @cached_property
    def layers_by_name(self) -> Mapping[str, Layer]:
        """The layers that share their names with no other layer."""
        uses = Counter(layer.name for layer in self.layers)
        return {layer.name: layer for layer in self.layers if uses[layer.name] == 1}

    @cached_property
    def predecessors(self) -> tuple[tuple[int, ...], ...]:
        """The distinct layers that each layer reads, in the order of its inputs."""
        return tuple(
            tuple(dict.fromkeys(feed.layer for feed in layer.feeds if feed.layer is not None)) for layer in self.layers
        )

    @cached_property
    def successors(self) -> tuple[tuple[int, ...], ...]:
        """The layers that read each layer, ascending."""
        readers: list[list[int]] = [[] for _ in self.layers]
        for reader, sources in enumerate(self.predecessors):
            for source in sources:
                readers[source].append(reader)
        return tuple(tuple(found) for found in readers)

    @cached_property
    def weight_bytes(self) -> int:
        """The bytes of weights that one inference reads."""
        return sum(bytes_read(self.layers).values())

    @cached_property
    def is_quantised(self) -> bool:
        """True if the file stores integers of 8 bits or fewer as weights."""
        return any(weight.dtype in _QUANTISED for layer in self.layers for weight in layer.weights)

    @cached_property
    def shared_arrays(self) -> frozenset[Hashable]:
        """The weights that several layers read."""
        read = Counter(
            array for layer in self.layers for array in {layer.array(it) for it in range(len(layer.weights))}
        )
        return frozenset(array for array, readers in read.items() if readers > 1)

    @cached_property
    def edges(self) -> tuple[tuple[int, int], ...]:
        """Pairs of layer indices, from writer to reader."""
        return tuple((source, reader) for reader, sources in enumerate(self.predecessors) for source in sources)


def type_of(graph: LayerGraph, feed: Feed) -> TensorType:
    """Return the type of a tensor of the graph."""
    if feed.layer is None:
        return graph.inputs[feed.output].type
    return graph.layers[feed.layer].outputs[feed.output]


def numbers_of(graph: LayerGraph, feed: Feed) -> Numbers:
    """Return the numbers of a tensor of the graph; none if they are not known."""
    if feed.layer is None:
        return graph.inputs[feed.output].value
    numbers = graph.layers[feed.layer].numbers
    return numbers[feed.output] if numbers else ()


def unmeasurable_layers(graph: LayerGraph) -> dict[str, list[Layer]]:
    """Return the layers that no runtime can run alone, by the reason."""
    found: dict[str, list[Layer]] = {}
    for layer in graph.layers:
        if layer.unmeasurable is not None:
            found.setdefault(layer.unmeasurable, []).append(layer)
    return found


_END = -1


def layer_digraph(graph: LayerGraph) -> "networkx.DiGraph":
    """Return a model as a digraph of networkx.

    A node is the index of a layer and has it as `layer`. An edge leads from a layer to its reader, and has the types of
    the tensors on this way as `tensors`, by the number of the output.
    """
    import networkx as nx

    found = nx.DiGraph(name=graph.name)
    found.add_nodes_from((layer.index, {"layer": layer}) for layer in graph.layers)
    for layer in graph.layers:
        tensors: dict[int, dict[int, TensorType]] = {}
        for feed, read in zip(layer.feeds, layer.data, strict=True):
            if feed.layer is not None:
                tensors.setdefault(feed.layer, {})[feed.output] = read
        found.add_edges_from((source, layer.index, {"tensors": passed}) for source, passed in tensors.items())
    return found


def digraph_of(sources: Sequence[Iterable[int]]) -> "networkx.DiGraph":
    """Return the digraph of numbered nodes, given the sources of each; edges lead from a source to its reader."""
    import networkx as nx

    found = nx.DiGraph()
    found.add_nodes_from(range(len(sources)))
    found.add_edges_from((source, reader) for reader, read in enumerate(sources) for source in read)
    return found


def topological_order(sources: Sequence[Iterable[int]]) -> list[int]:
    """Return each number after its sources, otherwise ascending; leave out cycles and all that depends on them."""
    if all(source < number for number, read in enumerate(sources) for source in read):
        return list(range(len(sources)))
    import networkx as nx

    order: list[int] = []
    with suppress(nx.NetworkXUnfeasible):
        for number in nx.lexicographical_topological_sort(digraph_of(sources)):
            order.append(number)
    return order


def depth_first(sources: Sequence[Iterable[int]]) -> list[int]:
    """Return the numbers that the last one depends on, then itself: each right after the last of its sources.

    The sources of a number come in their own order.
    """
    import networkx as nx

    reads = nx.DiGraph()
    end = len(sources) - 1
    reads.add_node(end)
    reads.add_edges_from((reader, source) for reader, read in enumerate(sources) for source in read)
    return list(nx.dfs_postorder_nodes(reads, end))


def needed_for(heads: Iterable[int], sources: Sequence[Iterable[int]]) -> set[int]:
    """Return the heads, and all numbers that they depend on."""
    import networkx as nx

    found = digraph_of(sources)
    found.add_edges_from((head, _END) for head in heads)
    return set(nx.ancestors(found, _END)) if _END in found else set()
