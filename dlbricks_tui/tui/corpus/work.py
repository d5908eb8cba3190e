"""Work of the corpus screen that takes time; the screen runs it in threads."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from textual.worker import get_current_worker

from dlbricks_tui.bricks.corpus import compare, model_bricks
from dlbricks_tui.bricks.decomposition import Cutting
from dlbricks_tui.documents.corpus import GroupAccuracy
from dlbricks_tui.estimate.comparison import accuracy, by_group
from dlbricks_tui.estimate.inquiry import Inquiry
from dlbricks_tui.models.loading import UNLOADABLE
from dlbricks_tui.store.selections import combinations, equal
from dlbricks_tui.tui.workbench import work
from dlbricks_tui.wording.numbers import measured_ago

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dlbricks_tui.bricks.corpus import Corpus, ModelBricks
    from dlbricks_tui.estimate.system_estimate import SystemEstimate
    from dlbricks_tui.models.graph import Level
    from dlbricks_tui.tui.model_reader import ModelReader
    from dlbricks_tui.tui.open_model import ModelSpec
    from dlbricks_tui.tui.session import Session


class ComparedModels(NamedTuple):
    """The comparison of all models, or of the first of them while the others are being read."""

    corpus: Corpus
    # The number of models that were tried so far.
    tried: int
    # The reasons why some of them cannot be read.
    refused: tuple[str, ...]

    @property
    def unread(self) -> int:
        """The number of models that were never read."""
        return self.tried - len(self.corpus.models) - len(self.refused)


# Often enough to show progress, seldom enough that comparing and drawing take little of the time.
SECONDS_BETWEEN_TELLING = 0.3
# Yields the interpreter to the user interface.
_BREATH_SECONDS = 0.002


def compare_models(
    reader: ModelReader, specs: Sequence[ModelSpec], read_all: bool, *, measuring: bool = False
) -> Iterator[ComparedModels]:
    """Read and compare models; `read_all` includes those that were never read before.

    While a run measures, it goes slowly, so that it does not disturb the run.
    """
    worker = get_current_worker()
    found: list[ModelBricks] = []
    refused: list[str] = []
    told = time.monotonic()
    for done, spec in enumerate(specs, 1):
        if worker.is_cancelled:
            return
        began = time.monotonic()
        try:
            decomposition = reader.decompose_model(spec) if read_all else reader.decompose_cached(spec)
        except UNLOADABLE as error:
            refused.append(f"{spec.source.name}: {error}")
            continue
        if decomposition is not None:
            found.append(replace(model_bricks(decomposition), name=spec.source.name))
        if time.monotonic() - told > SECONDS_BETWEEN_TELLING:
            yield ComparedModels(compare(found), done, tuple(refused))
            # Comparing takes longer the more models there are, so the interval starts after it.
            told = time.monotonic()
        if measuring:
            work.pause_after(time.monotonic() - began, measuring=True)
        else:
            time.sleep(_BREATH_SECONDS)
    yield ComparedModels(compare(found), len(specs), tuple(refused))


def find_accuracies(
    session: Session, specs: Sequence[ModelSpec], *, measuring: bool = False
) -> tuple[GroupAccuracy, ...]:
    """Return how accurate the estimates of models measured end to end are, at each granularity that was run."""
    worker = get_current_worker()
    with session.store.held() as store:
        whole = store.select(equal(of="model"), order=()).distinct("name")
        ways = {(run.granularity, run.level) for run in store.runs()}
        # Imported results belong to no run; they are of single layers.
        ways |= {(1, it.level) for it in combinations(store.select(order=())) if it.pairs}
    known = [spec for spec in specs if spec.source.name in whole]
    estimates: list[SystemEstimate] = []
    for granularity, level in sorted(ways):
        for spec in known:
            if worker.is_cancelled:
                return ()
            began = time.monotonic()
            estimates += _estimates(session, spec, granularity, level)
            work.pause_after(time.monotonic() - began, measuring=measuring)
    groups = by_group(estimates)
    accuracies = [
        GroupAccuracy(group, found, measured_ago(each))
        for group, each in groups.items()
        if (found := accuracy(each)) is not None
    ]
    accuracies.sort(key=lambda it: (it.group.way, it.group.granularity, it.group.cut.value))
    return tuple(accuracies)


def _estimates(session: Session, spec: ModelSpec, granularity: int, level: Level) -> Iterator[SystemEstimate]:
    cutting = Cutting(granularity, spec.cutting.cut, spec.cutting.order)
    decomposition = session.reader.decompose_cached(replace(spec, level=level, cutting=cutting))
    if decomposition is not None:
        named = replace(decomposition, graph=replace(decomposition.graph, name=spec.source.name))
        with session.store.held() as store:
            yield from Inquiry(store, named).everywhere()
