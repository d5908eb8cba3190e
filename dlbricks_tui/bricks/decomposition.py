"""The decomposition of a model: its layer sequences, each with its brick and context.

A corpus of decompositions tells how layers repeat within and across models (the DLBricks paper, section 2.2).
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from dlbricks_tui.bricks.contexts import context_key
from dlbricks_tui.bricks.cutting import Cut, LayerOrder, LayerSequence, cut, overlapping_edges, sequence_edges
from dlbricks_tui.bricks.identity import Brick, brick_of
from dlbricks_tui.bricks.layouts import output_layouts
from dlbricks_tui.bricks.regions import RegionTree, regions_of
from dlbricks_tui.models.cache import Cache, cache_key
from dlbricks_tui.models.content import without_cycle_search
from dlbricks_tui.models.graph import LayerGraph
from dlbricks_tui.models.kinds import Kind, heaviest


@dataclass(frozen=True, slots=True)
class Cutting:
    """The way to cut a model: the most layers of a sequence, the windows, and the order of layers."""

    granularity: int = 1
    cut: Cut = Cut.CHAIN
    order: LayerOrder = LayerOrder.BRANCH


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A layer sequence of a model, with its brick and context."""

    sequence: LayerSequence
    brick: Brick
    context: str


@dataclass(frozen=True)
class Decomposition:
    """The sequences of a model, in order, and their connections."""

    graph: LayerGraph
    cutting: Cutting
    occurrences: tuple[Occurrence, ...]
    # Pairs of sequence numbers, ascending: the second reads the first. The critical path leads along them.
    edges: tuple[tuple[int, int], ...]

    @cached_property
    @without_cycle_search()
    def regions(self) -> RegionTree:
        """The tree of regions. Its leaves are numbers of sequences; sequences with the same brick count as equal."""
        sources: list[list[int]] = [[] for _ in self.occurrences]
        for source, reader in self.edges:
            sources[reader].append(source)
        return regions_of(sources, [it.brick.key for it in self.occurrences])

    @cached_property
    def bricks(self) -> frozenset[str]:
        """The keys of the unique sequences."""
        return frozenset(occurrence.brick.key for occurrence in self.occurrences)

    @cached_property
    def pairs(self) -> frozenset[tuple[str, str]]:
        """The bricks in their contexts, each of which has to run once."""
        return frozenset((occurrence.brick.key, occurrence.context) for occurrence in self.occurrences)


def decompose(graph: LayerGraph, cutting: Cutting | None = None, cache: Cache | None = None) -> Decomposition:
    """Cut a model, and find the brick and context of each sequence; a cache saves this the second time."""
    cutting = cutting or Cutting()
    if cache is None or not graph.key:
        return _decomposed(graph, cutting)
    key = cache_key(graph.key, cutting.granularity, cutting.cut.value, cutting.order.value)
    known = cache.read(key)
    if known is not None:
        # A column for the layers of all sequences, one for their bricks, and one for their contexts.
        columns, edges = known
        rows = enumerate(zip(*columns, strict=True))
        occurrences = [Occurrence(LayerSequence(number, layers), *rest) for number, (layers, *rest) in rows]
        return Decomposition(graph, cutting, tuple(occurrences), edges)
    found = _decomposed(graph, cutting)
    found_rows = ((it.sequence.layers, it.brick, it.context) for it in found.occurrences)
    cache.write(key, (tuple(zip(*found_rows, strict=True)), found.edges))
    return found


@without_cycle_search()
def _decomposed(graph: LayerGraph, cutting: Cutting) -> Decomposition:
    layouts = output_layouts(graph)
    sequences = cut(graph, cutting.granularity, cutting.cut, cutting.order)
    occurrences = tuple(
        [Occurrence(it, brick_of(graph, it.layers), context_key(graph, it.layers, layouts)) for it in sequences]
    )
    connected = overlapping_edges if cutting.cut is Cut.OVERLAP else sequence_edges
    return Decomposition(graph, cutting, occurrences, connected(graph, sequences))


@dataclass(frozen=True, slots=True)
class ModelBricks:
    """A model as the brick, the context and the kind of each of its layer sequences, in order."""

    name: str
    bricks: tuple[str, ...]
    contexts: tuple[str, ...]
    kinds: tuple[Kind, ...]


@dataclass(frozen=True, slots=True)
class Uniqueness:
    """The number of layers of a model and of those that differ; `contexts` counts (brick, context) pairs."""

    name: str
    layers: int
    unique_layers: int
    contexts: int

    @property
    def share(self) -> float:
        """Unique layers over layers, the paper's figure 5; 0 for a model without layers."""
        return self.unique_layers / self.layers if self.layers else 0.0


@dataclass(frozen=True, slots=True)
class RepeatedType:
    """The number of layers of a kind in all models, and of those that occur more than once in their model."""

    kind: Kind
    layers: int
    repeated: int


@dataclass(frozen=True, slots=True)
class Corpus:
    """A comparison of models; the rows and columns of `jaccard` are the models in their order."""

    layers: int
    unique_layers: int
    contexts: int
    models: tuple[Uniqueness, ...]
    repeated_types: tuple[RepeatedType, ...]
    jaccard: tuple[tuple[float, ...], ...]


def model_bricks(decomposition: Decomposition) -> ModelBricks:
    """Return a model as a corpus needs it; a sequence of several layers has the kind of its heaviest one."""
    graph, found = decomposition.graph, decomposition.occurrences
    return ModelBricks(
        graph.name,
        tuple([it.brick.key for it in found]),
        tuple([it.context for it in found]),
        tuple([heaviest(graph.layers[layer].kind for layer in it.sequence.layers) for it in found]),
    )


def corpus_of_bricks(models: Sequence[ModelBricks]) -> Corpus:
    """Return the data of the paper's figures 5 (unique layers), 6 (repeated types) and 7 (similarity), and totals."""
    pairs = [frozenset(zip(model.bricks, model.contexts, strict=True)) for model in models]
    sets = [frozenset(model.bricks) for model in models]
    return Corpus(
        layers=sum(len(model.bricks) for model in models),
        unique_layers=len(frozenset().union(*sets)),
        contexts=len(frozenset().union(*pairs)),
        models=tuple(
            Uniqueness(model.name, len(model.bricks), len(bricks), len(contexts))
            for model, bricks, contexts in zip(models, sets, pairs, strict=True)
        ),
        repeated_types=_repeated_types(models),
        # The shared bricks over all bricks; 1 for models without layers.
        jaccard=tuple(
            tuple(len(one & other) / len(one | other) if one | other else 1.0 for other in sets) for one in sets
        ),
    )


def _repeated_types(models: Sequence[ModelBricks]) -> tuple[RepeatedType, ...]:
    """Return all kinds that occur, the most repeated first."""
    layers: Counter[Kind] = Counter()
    repeated: Counter[Kind] = Counter()
    for model in models:
        occurrences = Counter(model.bricks)
        layers.update(model.kinds)
        repeated.update(kind for brick, kind in zip(model.bricks, model.kinds, strict=True) if occurrences[brick] > 1)
    found = [RepeatedType(kind, layers[kind], repeated[kind]) for kind in layers]
    return tuple(sorted(found, key=lambda it: (-it.repeated, -it.layers, it.kind.value)))
