"""Excerpts of ONNX models as files of a suite, each read back by the runtime that is to measure it."""

from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass

from dlbricks_tui.bricks.contexts import FAR_BYTES
from dlbricks_tui.bricks.identity import brick_of
from dlbricks_tui.measure.plan import is_run
from dlbricks_tui.models.graph import LayerGraph
from dlbricks_tui.share.errors import BrokenBrickError, UnsuitableLayersError
from dlbricks_tui.share.suites.onnx_excerpts import OnnxExcerpts
from dlbricks_tui.share.suites.packing import PackedBrick, Pair, SuiteModel

# Reads an excerpt; raises BrokenBrickError if it cannot be read.
Read = Callable[[bytes], LayerGraph]


@dataclass(frozen=True, slots=True)
class OnnxPacking:
    """Packs the smallest excerpt of a model in which a runtime makes the same brick."""

    read: Read

    def pairs(self, model: SuiteModel) -> frozenset[Pair]:
        """Return the bricks of a model that take time."""
        return frozenset(pair for pair, _ in _layers(model))

    def packed(self, model: SuiteModel, known: Container[Pair]) -> Iterator[PackedBrick]:
        """Pack the bricks of a model that are not known yet, each once."""
        graph = model.decomposition.graph
        try:
            excerpts, why = OnnxExcerpts(model.written or graph, graph), ""
        except UnsuitableLayersError as refusal:
            excerpts, why = None, str(refusal)
        done: set[Pair] = set()
        for pair, layer in _layers(model):
            if pair in known or pair in done:
                continue
            done.add(pair)
            canonical = brick_of(graph, (layer,)).canonical
            if excerpts is None:
                yield PackedBrick(pair, canonical, reason=why)
                continue
            try:
                content = self._smallest(excerpts, layer, pair.brick)
            except UnsuitableLayersError as refusal:
                yield PackedBrick(pair, canonical, reason=str(refusal))
            else:
                yield PackedBrick(pair, canonical, cold=graph.weight_bytes > FAR_BYTES, content=content)

    def _smallest(self, excerpts: OnnxExcerpts, layer: int, brick: str) -> bytes:
        why = "belongs to no node of the file"
        for content in excerpts.around(layer):
            try:
                graph = self.read(content)
            except BrokenBrickError as error:
                why = str(error)
                continue
            if any(brick_of(graph, (it.index,)).key == brick for it in graph.layers):
                return content
            why = "would not be read back as the same brick"
        raise UnsuitableLayersError(why)


def _layers(model: SuiteModel) -> Iterator[tuple[Pair, int]]:
    """Yield each single layer that takes time, with its brick."""
    for it in model.decomposition.occurrences:
        if is_run(model.decomposition.graph, it):
            (layer,) = it.sequence.layers
            yield Pair(it.brick.key, ""), layer
