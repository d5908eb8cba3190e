"""Work of the corpus screen that takes time: worker threads do it and post what they have found."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from textual.message import Message
from textual.worker import get_current_worker

from dlbricks_tui.bricks.corpus import compare, model_bricks
from dlbricks_tui.bricks.decomposition import Cutting
from dlbricks_tui.estimate.accuracy import accuracy, by_group
from dlbricks_tui.estimate.inquiry import Inquiry
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.loading import UNLOADABLE
from dlbricks_tui.store.conditions import where
from dlbricks_tui.store.queries import combinations, runs, select
from dlbricks_tui.tui.workbench import work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from dlbricks_tui.bricks.corpus import Corpus, ModelBricks
    from dlbricks_tui.bricks.decomposition import Decomposition
    from dlbricks_tui.estimate.accuracy import Accuracy, Group
    from dlbricks_tui.estimate.system_estimate import SystemEstimate
    from dlbricks_tui.tui.open_model import ModelSpec
    from dlbricks_tui.tui.session import Session


class CorpusQuery(NamedTuple):
    """The settings of a comparison; a message with other settings is out of date."""

    level: Level
    cutting: Cutting
    read_all: bool


class ComparedModels(NamedTuple):
    """The compared models, how many were never read, and which cannot be read."""

    corpus: Corpus
    unread: int
    refused: tuple[str, ...]


class GroupAccuracy(NamedTuple):
    """The accuracy of the estimates on one system in one way at one granularity."""

    group: Group
    accuracy: Accuracy


# Often enough to show progress, seldom enough that comparing and drawing take little of the time.
SECONDS_BETWEEN_TELLING = 0.3
# Yields the interpreter to the user interface.
_BREATH_SECONDS = 0.002


class ReadingProgress(Message):
    """Some of the models are read and compared."""

    def __init__(self, how: CorpusQuery, done: int, total: int, compared: ComparedModels) -> None:
        super().__init__()
        self.how = how
        self.done = done
        self.total = total
        self.compared = compared


class ModelsCompared(Message):
    """All models are read and compared."""

    def __init__(self, how: CorpusQuery, compared: ComparedModels) -> None:
        super().__init__()
        self.how = how
        self.compared = compared


class AccuraciesFound(Message):
    """The accuracy of the estimates by granularity."""

    def __init__(self, accuracies: tuple[GroupAccuracy, ...]) -> None:
        super().__init__()
        self.accuracies = accuracies


class CorpusWork:
    """Reads and compares models, and posts the outcome as messages to one screen."""

    def __init__(self, session: Session, post: Callable[[Message], object]) -> None:
        self._session = session
        self._post = post

    def compare_models(self, specs: Sequence[ModelSpec], how: CorpusQuery) -> None:
        """Read and compare models; `query.read_all` includes those that were never read before."""
        worker = get_current_worker()
        found: list[ModelBricks] = []
        refused: list[str] = []
        told = time.monotonic()
        for done, spec in enumerate(specs, 1):
            if worker.is_cancelled:
                return
            try:
                decomposition = self._decompose(spec, read=how.read_all)
            except UNLOADABLE as error:
                refused.append(f"{spec.source.name}: {error}")
                continue
            if decomposition is not None:
                found.append(replace(model_bricks(decomposition), name=spec.source.name))
            if time.monotonic() - told > SECONDS_BETWEEN_TELLING:
                self._post(ReadingProgress(how, done, len(specs), _compared_models(found, refused, done)))
                # Comparing takes longer the more models there are, so the interval starts after it.
                told = time.monotonic()
            time.sleep(_BREATH_SECONDS)
        self._post(ModelsCompared(how, _compared_models(found, refused, len(specs))))

    def find_accuracies(self, specs: Sequence[ModelSpec]) -> None:
        """Find how accurate the estimates of models measured end to end are, at each granularity that was run."""
        worker = get_current_worker()
        with self._session.store.held() as store:
            whole = set(select(store.generation, where(of="model")).values("name"))
            ways = {(run.granularity, run.level) for run in runs(store.generation).values()}
            # Imported results belong to no run; they are of single layers.
            ways |= {(1, it.level) for it in combinations(store.generation) if it.pairs}
        known = [spec for spec in specs if spec.source.name in whole]
        estimates: list[SystemEstimate] = []
        for granularity, level in sorted(ways):
            for spec in known:
                if worker.is_cancelled:
                    return
                estimates += self._estimates(spec, granularity, level)
                time.sleep(work.BREATH_SECONDS)
        groups = by_group(estimates)
        accuracies = [
            GroupAccuracy(group, found) for group, each in groups.items() if (found := accuracy(each)) is not None
        ]
        accuracies.sort(key=lambda it: (it.group.way, it.group.granularity, it.group.cut.value))
        self._post(AccuraciesFound(tuple(accuracies)))

    def _estimates(self, spec: ModelSpec, granularity: int, level: Level) -> Iterator[SystemEstimate]:
        cutting = Cutting(granularity, spec.cutting.cut, spec.cutting.order)
        decomposition = self._session.reader.decompose_cached(replace(spec, level=level, cutting=cutting))
        if decomposition is not None:
            named = replace(decomposition, graph=replace(decomposition.graph, name=spec.source.name))
            with self._session.store.held() as store:
                yield from Inquiry(store.generation, named).everywhere()

    def _decompose(self, spec: ModelSpec, *, read: bool) -> Decomposition | None:
        return self._session.reader.decompose_model(spec) if read else self._session.reader.decompose_cached(spec)


def _compared_models(found: Sequence[ModelBricks], refused: Sequence[str], looked_at: int) -> ComparedModels:
    return ComparedModels(compare(found), looked_at - len(found) - len(refused), tuple(refused))
