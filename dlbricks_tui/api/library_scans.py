"""Scans of the library: work on many models, in steps that leave the processor to the user, and to a run that measures.

Models that only a framework could read, which takes long, are left out.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from dlbricks_tui.api.open_models import KnownLatency, known_latency
from dlbricks_tui.bricks.corpus import Corpus, ModelBricks, compare, model_bricks
from dlbricks_tui.errors import UserError
from dlbricks_tui.estimate.comparison import Accuracy, SharedSettings, accuracy, by_group
from dlbricks_tui.estimate.inquiry import Inquiry
from dlbricks_tui.models.errors import ModelError
from dlbricks_tui.models.loading import UNLOADABLE
from dlbricks_tui.store.selections import combinations, equal
from dlbricks_tui.wording.numbers import measured_ago

if TYPE_CHECKING:
    from dlbricks_tui.api.choices import Choices
    from dlbricks_tui.api.estimating import ModelReading
    from dlbricks_tui.api.model_reading import ModelReader
    from dlbricks_tui.api.open_models import ModelSpec
    from dlbricks_tui.api.workbench_session import WorkbenchSession
    from dlbricks_tui.bricks.decomposition import Decomposition
    from dlbricks_tui.estimate.system_estimate import SystemEstimate
    from dlbricks_tui.models.library import ModelSource

# A user who holds a key in the settings starts one scan, not one per setting.
SETTLED_SECONDS = 0.15
# Yields the interpreter to the user interface during scans.
BREATH_SECONDS = 0.02
# While a run measures, scans compute for this share of the time, and never pause for longer.
SHARE_WHILE_MEASURING = 0.1
_LONGEST_PAUSE_SECONDS = 2.0
# Often enough to show progress, seldom enough that comparing and drawing take little of the time.
SECONDS_BETWEEN_TELLING = 0.3
# Models whose bricks are in the cache take little time each.
_SHORT_BREATH_SECONDS = 0.002


def pause_after(seconds: float, *, measuring: bool) -> None:
    """Pause a scan that has computed for so long; while a run measures, long enough not to disturb it."""
    wanted = seconds * (1.0 / SHARE_WHILE_MEASURING - 1.0) if measuring else 0.0
    time.sleep(min(max(BREATH_SECONDS, wanted), _LONGEST_PAUSE_SECONDS))


# The names of the models that contain each brick, in the order of the library.
BrickIndex = dict[str, dict[str, None]]


def index_bricks(
    reader: ModelReader, specs: Sequence[ModelSpec], go_on: Callable[[], bool], *, measuring: bool = False
) -> Iterator[BrickIndex]:
    """Index the bricks of the models of the library."""
    time.sleep(SETTLED_SECONDS)
    index: BrickIndex = defaultdict(dict)
    for spec in specs:
        if not go_on():
            return
        began = time.monotonic()
        decomposition = reader.decompose_cached(spec)
        if decomposition is not None:
            for brick in decomposition.bricks:
                index[brick][decomposition.graph.name] = None
        pause_after(time.monotonic() - began, measuring=measuring)
    yield index


def estimate_library(
    session: WorkbenchSession, specs: Sequence[ModelSpec], choices: Choices, *, measuring: bool = False
) -> Iterator[tuple[ModelSource, KnownLatency | None]]:
    """Estimate the models of the library; cached estimates come first.

    While a run measures, the estimates of before stay: each of its results would change all of them.
    """
    time.sleep(SETTLED_SECONDS)
    reader, estimator = session.reader, session.estimator
    cache = estimator.latencies
    cache.begin(estimator.state(), *reader.frameworks)
    unknown: list[ModelSpec] = []
    for spec in specs:
        latency = cache.of(spec, choices) or (cache.older(spec, choices) if measuring else None)
        if latency is None:
            unknown.append(spec)
        else:
            yield spec.source, latency

    for spec in unknown:
        began = time.monotonic()
        latency = None
        with suppress(UserError):
            answer = estimator.answer(spec.source, choices, partial(_read_cached, reader, spec))
            latency = known_latency(answer.found)
            cache.keep(spec, choices, latency)
        yield spec.source, latency
        pause_after(time.monotonic() - began, measuring=measuring)
    if unknown:
        cache.save()


def _read_cached(reader: ModelReader, spec: ModelSpec, reading: ModelReading) -> Decomposition:
    found = reader.decompose_cached(spec.read_as(reading))
    if found is None:
        raise ModelError(f"{spec.source.name} is read by a framework, which takes too long for a list")
    return found


class ComparedModels(NamedTuple):
    """The comparison of all models, or of the first of them while the others are being read."""

    corpus: Corpus
    # The number of models that were tried so far.
    tried: int
    # The reasons why some of them cannot be read.
    refused: tuple[str, ...]

    @property
    def unread(self) -> int:
        return self.tried - len(self.corpus.models) - len(self.refused)


def compare_models(
    reader: ModelReader,
    specs: Sequence[ModelSpec],
    go_on: Callable[[], bool],
    *,
    read_all: bool = False,
    measuring: bool = False,
) -> Iterator[ComparedModels]:
    """Read and compare models; `read_all` includes those that only a framework can read."""
    found: list[ModelBricks] = []
    refused: list[str] = []
    told = time.monotonic()
    for done, spec in enumerate(specs, 1):
        if not go_on():
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
            pause_after(time.monotonic() - began, measuring=True)
        else:
            time.sleep(_SHORT_BREATH_SECONDS)
    yield ComparedModels(compare(found), len(specs), tuple(refused))


class GroupAccuracy(NamedTuple):
    """The accuracy of the estimates on one system in one way at one granularity."""

    group: SharedSettings
    accuracy: Accuracy
    # How long ago its results were measured.
    measured: str = ""


def find_accuracies(
    session: WorkbenchSession, specs: Sequence[ModelSpec], go_on: Callable[[], bool], *, measuring: bool = False
) -> tuple[GroupAccuracy, ...]:
    """Return how accurate the estimates of models measured end to end are, at each granularity that was run."""
    with session.store.held() as store:
        whole = store.select(equal(of="model"), order=()).distinct("name")
        ways = {(run.granularity, run.level) for run in store.runs()}
        # Imported results belong to no run; they are of single layers.
        ways |= {(1, it.level) for it in combinations(store.select(order=())) if it.pairs}
    known = [spec for spec in specs if spec.source.name in whole]
    estimates: list[SystemEstimate] = []
    for granularity, level in sorted(ways):
        for spec in known:
            if not go_on():
                return ()
            began = time.monotonic()
            cutting = replace(spec.cutting, granularity=granularity)
            decomposition = session.reader.decompose_cached(replace(spec, level=level, cutting=cutting))
            if decomposition is not None:
                named = replace(decomposition, graph=decomposition.graph.named(spec.source.name))
                with session.store.held() as store:
                    estimates += Inquiry(store, named).everywhere()
            pause_after(time.monotonic() - began, measuring=measuring)
    accuracies = [
        GroupAccuracy(group, found, measured_ago(each))
        for group, each in by_group(estimates).items()
        if (found := accuracy(each)) is not None
    ]
    return tuple(sorted(accuracies, key=lambda it: (it.group.way, it.group.granularity, it.group.cut.value)))
