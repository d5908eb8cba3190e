"""Scans of the library: work on many models, in steps that leave the processor to the user, and to a run that measures.

Models that only a framework could read, which takes long, are left out.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, fields, replace
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from dlbricks_tui import __version__
from dlbricks_tui.api.open_models import KnownLatency, known_latency
from dlbricks_tui.bricks.decomposition import Corpus, ModelBricks, compare, model_bricks
from dlbricks_tui.errors import UserError
from dlbricks_tui.estimate.comparison import Accuracy, SharedSettings, accuracy, by_group
from dlbricks_tui.estimate.inquiry import Inquiry
from dlbricks_tui.files import read_json, write_atomically
from dlbricks_tui.models.errors import ModelError
from dlbricks_tui.models.loading import UNLOADABLE
from dlbricks_tui.store.selections import combinations, equal
from dlbricks_tui.wording.numbers import measured_ago

if TYPE_CHECKING:
    from dlbricks_tui.api.estimating import ModelReading
    from dlbricks_tui.api.model_reading import ModelReader
    from dlbricks_tui.api.open_models import Choices, ModelSpec
    from dlbricks_tui.api.session import WorkbenchSession
    from dlbricks_tui.bricks.decomposition import Decomposition
    from dlbricks_tui.estimate.system_estimate import SystemEstimate
    from dlbricks_tui.folders import DataFolder
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


_MOST_KEPT_LATENCIES = 5000
# Other fields make another cache.
_FIELDS = tuple(each.name for each in fields(KnownLatency))


class LatencyCache:
    """Cached estimates by model and settings; a change of the store or of the runtimes drops them.

    If the cache cannot be read or written, the models are estimated again.
    """

    def __init__(self, data: DataFolder) -> None:
        self._data = data
        self._file = data.cache / "latencies.json"
        self._lock = Lock()
        self._state = ""
        self._known: dict[str, KnownLatency] = {}
        # Those of the state before, which new results have made older.
        self._older: dict[str, KnownLatency] = {}

    def begin(self, *state: str) -> None:
        """Use the cache of this state; that of the state before stays as the older one."""
        now = repr((__version__, _FIELDS, state, self._settings_files()))
        with self._lock:
            if now != self._state:
                before, self._state = self._known, now
                self._known, kept = self._read(now)
                self._older = {**self._older, **(before or kept)}

    def of(self, spec: ModelSpec, choices: Choices) -> KnownLatency | None:
        """Return the cached estimate of a model; None if there is none or the file has changed."""
        with self._lock:
            return self._known.get(_cache_key(spec, choices))

    def older(self, spec: ModelSpec, choices: Choices) -> KnownLatency | None:
        """Return the estimate of a model from before the last new results; None if there is none."""
        with self._lock:
            return self._older.get(_cache_key(spec, choices))

    def keep(self, spec: ModelSpec, choices: Choices, latency: KnownLatency) -> None:
        """Cache an estimate until the next `save`."""
        with self._lock:
            if len(self._known) >= _MOST_KEPT_LATENCIES:
                self._known.clear()
            self._known[_cache_key(spec, choices)] = latency

    def save(self) -> None:
        with self._lock:
            known = {key: asdict(latency) for key, latency in self._known.items()}
            with suppress(OSError):
                write_atomically(self._file, json.dumps({"state": self._state, "known": known}))

    def _read(self, state: str) -> tuple[dict[str, KnownLatency], dict[str, KnownLatency]]:
        """Return the estimates of this state in the file, and those of another one."""
        try:
            document = read_json(self._file)
            found = {str(key): KnownLatency(**values) for key, values in document["known"].items()}
            return (found, {}) if document["state"] == state else ({}, found)
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            return {}, {}

    def _settings_files(self) -> list[tuple[str, int, int]]:
        """Return the files with runtimes and input shapes, with their times of change and sizes."""
        found = []
        for path in sorted(set(self._data.path.glob("*.json")) - {self._data.view}):
            with suppress(OSError):
                known = path.stat()
                found.append((path.name, known.st_mtime_ns, known.st_size))
        return found


def _cache_key(spec: ModelSpec, choices: Choices) -> str:
    path = spec.source.path
    try:
        known = path.stat()
        file = (known.st_mtime_ns, known.st_size)
    except OSError:
        file = (0, 0)
    return repr((str(path), spec.source.name, file, sorted(spec.shapes.items()), sorted(spec.values.items()), choices))


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
