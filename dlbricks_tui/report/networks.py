"""The models of a report at one level, loaded and cut once for each network that they are."""

from collections.abc import Iterator, Mapping, Sequence

from dlbricks_tui.bricks.decomposition import Cutting, Decomposition, decompose
from dlbricks_tui.models.graph import LayerGraph, Level, Shape
from dlbricks_tui.models.left_out import UNLOADABLE, LeftOut
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.report.subjects import Subject, subject_of


class Networks:
    """Models as a loader has them; of the fifty some are one network with other weights, and share its graph."""

    def __init__(
        self, loader: Loader, sources: Sequence[ModelSource], level: Level, given: Mapping[str, Shape] | None = None
    ) -> None:
        self.by_subject: dict[Subject, LayerGraph] = {}
        # What cannot be loaded at this level, with the reason.
        self.left_out = LeftOut()
        self._cut: dict[tuple[int, Cutting], Decomposition] = {}
        known: dict[object, LayerGraph] = {}
        for source in sources:
            network = (source.path, *source.inputs.items())
            try:
                graph = known.get(network) or loader.load(source, level, given)
            except UNLOADABLE as refusal:
                self.left_out.add(source, refusal)
            else:
                known[network] = self.by_subject[subject_of(source)] = graph

    def alike(self) -> Iterator[tuple[LayerGraph, list[Subject]]]:
        """Each graph with the models that it is."""
        found: dict[int, list[Subject]] = {}
        for subject, graph in self.by_subject.items():
            found.setdefault(id(graph), []).append(subject)
        for subjects in found.values():
            yield self.by_subject[subjects[0]], subjects

    def cut(self, graph: LayerGraph, cutting: Cutting) -> Decomposition:
        """One of the graphs, cut."""
        known = self._cut.get((id(graph), cutting))
        if known is None:
            known = self._cut[id(graph), cutting] = decompose(graph, cutting)
        return known
