"""Estimates models from the store, and caches the estimates in the list of models."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from functools import partial
from math import fsum, sqrt
from operator import eq
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from dlbricks_tui import __version__
from dlbricks_tui.api.choices import Available, Choices
from dlbricks_tui.api.estimating import Answer, CombinationChoice, ModelReading, Readings, answer_of
from dlbricks_tui.api.open_models import KnownLatency, ModelSpec
from dlbricks_tui.api.scope import MeasuredRuntimes
from dlbricks_tui.atomic_write import write_atomically
from dlbricks_tui.bricks.decomposition import Decomposition
from dlbricks_tui.errors import UserError
from dlbricks_tui.estimate.estimate import Options
from dlbricks_tui.estimate.inquiry import Inquiry, Predictors
from dlbricks_tui.estimate.knowledge import Latency, Pair
from dlbricks_tui.estimate.system_estimate import format_of
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.measure.jobs import JobKey
from dlbricks_tui.measure.known import Conditions, Known, known_in
from dlbricks_tui.regular_files import read_json
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.variant import Precision, states
from dlbricks_tui.store.change import Timing
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import LoadTest, Measurement, Proof, System
from dlbricks_tui.store.selections import LEAST_FIRST, Way, by_id, equal
from dlbricks_tui.store.statistics import trimmed_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dlbricks_tui.api.workbench_session import SharedStore
    from dlbricks_tui.estimate.prediction.score import Score
    from dlbricks_tui.folders import DataFolder
    from dlbricks_tui.models.library import ModelSource


class KnownAlready(NamedTuple):
    """The facts that the store and the library have about a model and around it."""

    # Combinations of runtime, threads, batch size and precision in which the whole model was timed on the system.
    combinations: int = 0
    proofs: int = 0
    load_tests: int = 0
    systems: int = 0
    # Models that the user has added to the library.
    own_models: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Measurements:
    """The stored samples of a brick in a context: the newest good ones, and the latency in each run, oldest first."""

    newest: Measurement
    history_ms: tuple[float, ...]


# Returns the decomposition of a model as it is read, or raises UserError.
Read: TypeAlias = "Callable[[ModelReading], Decomposition]"


class ThreadSafeEstimator:
    """Answers for one model at a time, from any thread."""

    def __init__(self, store: SharedStore, data: DataFolder) -> None:
        self._store = store
        self._data = data
        # Kept for the store in use, as training takes time.
        self._predictors: tuple[ResultsDatabase, Predictors] | None = None
        # Kept until there are new results.
        self._readings: tuple[object, Readings] | None = None
        self._host: System | None = None
        self.latencies = LatencyCache(data)

    def available(self) -> Available:
        """Return the systems and runtimes of the store, and this host."""
        with self._store.held() as store:
            store.refresh()
            return Available(
                self._this_host().id,
                store.systems(),
                store.runtimes(),
                len(store.select(order=())),
            )

    def state(self) -> str:
        """Return a key of this host and its results; answers with equal keys are equal."""
        with self._store.held() as store:
            return repr((self._this_host().id, store.generation.covered))

    def answer(self, source: ModelSource, choices: Choices, read: Read) -> Answer:
        """Return the answer of a model; raise the first refusal of `read` if no reading of the model works."""
        system = choices.system or self._this_host().id
        with self._store.held() as store:
            readings = self._readings_of(store, system, choices)
            choice = _choice(source, choices, store, readings)
            taken = readings.of_model(source, choice)
        found: dict[ModelReading, Decomposition] = {}
        refusals: list[UserError] = []
        # Other panels use the store while models are read.
        for reading in taken:
            try:
                found[reading] = read(reading)
            except UserError as refusal:
                refusals.append(refusal)
        if not found:
            raise refusals[0]
        with self._store.held() as store:
            inquiries = {reading: self._inquiry(store, it, choices) for reading, it in found.items()}
            return answer_of(source, system, choice, taken, inquiries)

    def timing(self, answer: Answer) -> Timing | None:
        """Return the latency of the whole model, if it was timed end to end."""
        with self._store.held():
            return answer.inquiry.timing(answer.found.way)

    def other_systems(self, answer: Answer) -> tuple[str, ...]:
        """Return the names of the other systems that have results of the model."""
        with self._store.held() as store:
            others = {offer.way.system for offer in answer.inquiry.offers} - {answer.found.way.system}
            known = by_id(store.systems()) if others else {}
        return tuple(sorted(known[system].name if system in known else system for system in others))

    def known_about(self, model: str, choices: Choices) -> KnownAlready:
        """Return the facts on which the next steps for a model depend; those about the library are not known here."""
        with self._store.held() as store:
            system = choices.system or self._this_host().id
            timed = store.select(equal(of="model", good=True, system=system, name=model), order=()).summaries()
            asked = equal(name=model, system=system)
            return KnownAlready(
                combinations=len({(it.runtime, it.batch_size) for it in timed}),
                proofs=len(store.least_first(Proof, asked)),
                load_tests=len(store.least_first(LoadTest, asked)),
                systems=len(store.systems()),
            )

    def measurements(self, pair: Pair, way: Way) -> Measurements | None:
        """Return the newest good samples of a brick in a context, and its latency in each run, oldest first."""
        with self._store.held() as store:
            asked = equal(brick=pair[0], context=pair[1], of="brick", good=True) & way.query
            found = store.results(asked, order=LEAST_FIRST)
            newest = found.result(-1) if found else None
            if not isinstance(newest, Measurement):
                return None
            return Measurements(newest, tuple(found.values("trimmed_mean_ms")))

    def known(self, conditions: Conditions, targets: Iterable[JobKey], run: str | None = None) -> Known:
        """Return what a run under these conditions can reuse: all results, or those of one run."""
        with self._store.held() as store:
            store.refresh()
            return known_in(store, conditions, targets, run=run)

    def scores(self, models: Iterable[Decomposition], choices: Choices) -> list[Score]:
        """Return how well models that were measured in full would have been predicted."""
        from dlbricks_tui.estimate.prediction.score import scores_on

        with self._store.held() as store:
            store.refresh()
            system = choices.system or self._this_host().id
            return [score for _, score in scores_on(store, system, ((model, choices.runtime) for model in models))]

    def refresh(self) -> bool:
        """Read what other processes have stored since, and return whether there was anything."""
        with self._store.held() as store:
            return store.refresh()

    def _readings_of(self, store: ResultsDatabase, system: str, choices: Choices) -> Readings:
        key = store.generation.covered, system, choices.precision
        if self._readings is None or self._readings[0] != key:
            usual = Registry(self._data.path).one_of_each_format(precision=choices.precision)
            read = {form: it.with_precision(choices.precision) for form, it in usual.items()}
            self._readings = key, Readings(MeasuredRuntimes(self._data, store, system), read)
        return self._readings[1]

    def _inquiry(self, store: ResultsDatabase, decomposition: Decomposition, choices: Choices) -> Inquiry:
        if self._predictors is None or self._predictors[0] is not store:
            self._predictors = store, Predictors(store, self._data.cache)
        options = Options(workers=choices.workers, measured_only=choices.measured_only)
        return Inquiry(store, decomposition, options, self._predictors[1])

    def _this_host(self) -> System:
        if self._host is None:
            self._host = fingerprint()
        return self._host


def _choice(source: ModelSource, choices: Choices, store: ResultsDatabase, readings: Readings) -> CombinationChoice:
    """Return the combinations that the settings leave to choose from."""
    # A runtime that was chosen has its own number of threads.
    threads = choices.threads if choices.runtime is None else None
    fits = partial(states, threads=threads, precision=choices.precision, kernels=choices.kernels)
    form = source.in_format(choices.format or source.format).format
    if choices.runtime is not None:
        form = format_of(by_id(store.runtimes()).get(choices.runtime))
    here = readings.usual.get(form) if choices.system is None else None
    usual = "" if here is None else here.with_threads(threads).identity
    return CombinationChoice(
        fits if choices.runtime is None else partial(eq, choices.runtime),
        form,
        choices.runtime or usual,
        is_made=choices.runtime is not None or threads is not None or choices.precision is not Precision.F32,
        level=choices.level,
        precision=choices.precision,
    )


_MOST_KEPT = 5000
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
            return self._known.get(_key(spec, choices))

    def older(self, spec: ModelSpec, choices: Choices) -> KnownLatency | None:
        """Return the estimate of a model from before the last new results; None if there is none."""
        with self._lock:
            return self._older.get(_key(spec, choices))

    def keep(self, spec: ModelSpec, choices: Choices, latency: KnownLatency) -> None:
        """Cache an estimate until the next `save`."""
        with self._lock:
            if len(self._known) >= _MOST_KEPT:
                self._known.clear()
            self._known[_key(spec, choices)] = latency

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


def _key(spec: ModelSpec, choices: Choices) -> str:
    path = spec.source.path
    try:
        known = path.stat()
        file = (known.st_mtime_ns, known.st_size)
    except OSError:
        file = (0, 0)
    return repr((str(path), spec.source.name, file, sorted(spec.shapes.items()), sorted(spec.values.items()), choices))


# Fewer samples of the whole model tell less than the short burst that times it at first.
_ENOUGH_SAMPLES = 8
# A mean lies within this many standard errors with 95 % confidence.
_TWO_SIDED_95 = 1.96


def estimate_so_far(value_ms: float | None, low_ms: float | None, high_ms: float | None) -> Latency | None:
    """Return the estimate of a run in progress; None until each layer has samples."""
    return Latency(value_ms, low_ms, high_ms) if value_ms and low_ms is not None and high_ms is not None else None


def latency_so_far(samples_ms: Sequence[float], latency_ms: float | None, half_width: float | None) -> Latency | None:
    """Return the latency of a whole model that a run times, from its samples, or as it was measured at first."""
    if len(samples_ms) >= _ENOUGH_SAMPLES:
        # Samples of the rounds of the bricks saw the host at the same speed as these. The bootstrap of the final
        # interval would take the processor from the run.
        value_ms, samples = trimmed_mean(samples_ms), len(samples_ms)
        squares = fsum((it - value_ms) ** 2 for it in samples_ms)
        half_ms = _TWO_SIDED_95 * sqrt(squares / (samples - 1) / samples)
        return Latency(value_ms, max(0.0, value_ms - half_ms), value_ms + half_ms)
    if not latency_ms:
        return None
    half_ms = latency_ms * (half_width or 0.0)
    return Latency(latency_ms, latency_ms - half_ms, latency_ms + half_ms)
