"""How bricks of each format become files of a suite."""

from collections.abc import Container, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from dlbricks_tui.bricks.decomposition import Decomposition, Occurrence
from dlbricks_tui.bricks.excerpts import Excerpt, excerpt
from dlbricks_tui.bricks.layouts import output_layouts
from dlbricks_tui.measure.plan import is_run
from dlbricks_tui.models.errors import ModelError
from dlbricks_tui.models.graph import LayerGraph
from dlbricks_tui.share.errors import BrokenBrickError, UnsuitableLayersError
from dlbricks_tui.share.networks.mxnet_network import packed
from dlbricks_tui.share.suites.unpacking import Unpacker


class Pair(NamedTuple):
    """A brick by its key, and its context, which is empty for bricks that are timed inside of networks."""

    brick: str
    context: str


@dataclass(frozen=True, slots=True)
class SuiteModel:
    """A model whose bricks go into a suite, and its layers as written if they are other ones."""

    decomposition: Decomposition
    written: LayerGraph | None = None

    @property
    def framework(self) -> str:
        """The framework that runs its bricks."""
        return self.decomposition.graph.traits.framework


class PackedBrick(NamedTuple):
    """The file of a brick; without content, the reason why a suite cannot hold the brick."""

    pair: Pair
    canonical: str
    layers: int = 1
    cold: bool = False
    content: bytes = b""
    reason: str = ""


class Packing(Protocol):
    """The packing of the bricks of one framework."""

    def pairs(self, model: SuiteModel) -> frozenset[Pair]:
        """Return the bricks of a model that take time."""

    def packed(self, model: SuiteModel, known: Container[Pair]) -> Iterator[PackedBrick]:
        """Pack the bricks of a model that are not known yet, each once."""


class MXNetPacking:
    """Packs each layer sequence with the layers in front of it that set the layouts of its inputs."""

    def __init__(self, unpacker: Unpacker | None) -> None:
        """Each file is read back by the unpacker, if there is one."""
        self._unpacker = unpacker

    def pairs(self, model: SuiteModel) -> frozenset[Pair]:
        """Return the bricks of a model that take time."""
        return frozenset(Pair(it.brick.key, it.context) for it in _run(model))

    def packed(self, model: SuiteModel, known: Container[Pair]) -> Iterator[PackedBrick]:
        """Pack the bricks of a model that are not known yet, each once."""
        graph = model.decomposition.graph
        layouts = output_layouts(graph)
        done: set[Pair] = set()
        for occurrence in _run(model):
            pair = Pair(occurrence.brick.key, occurrence.context)
            if pair not in known and pair not in done:
                done.add(pair)
                yield self._packed(pair, excerpt(graph, occurrence.sequence.layers, layouts))

    def _packed(self, pair: Pair, alone: Excerpt) -> PackedBrick:
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


def _run(model: SuiteModel) -> Iterator[Occurrence]:
    return (it for it in model.decomposition.occurrences if is_run(model.decomposition.graph, it))
