"""Reads and cuts models: one at a time for any thread, and all of the library in steps that do not disturb."""

from __future__ import annotations

import json
import time
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, fields, replace
from enum import Enum, auto
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from dlbricks_tui import __version__
from dlbricks_tui.api.open_models import AskedShape, KnownLatency, ModelSpec, asked_inputs, known_latency
from dlbricks_tui.bricks.decomposition import (
    Corpus,
    Cutting,
    Decomposition,
    ModelBricks,
    corpus_of_bricks,
    decompose,
    model_bricks,
)
from dlbricks_tui.errors import UserError
from dlbricks_tui.files import read_json, write_atomically
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.models.cache import Cache
from dlbricks_tui.models.errors import (
    FusionRefusedError,
    MissingShapeError,
    ModelError,
    UnknownModelError,
    UnreadableModelError,
    WrongRuntimeError,
)
from dlbricks_tui.models.frameworks import Frameworks
from dlbricks_tui.models.graph import LayerGraph, Level
from dlbricks_tui.models.input_shapes import ShapeMemory
from dlbricks_tui.models.library import Library, ModelSource, source_of
from dlbricks_tui.models.loading import UNLOADABLE, Loader
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.traits import Format
from dlbricks_tui.runtime.variant import CHOSEN_PRECISIONS, USUAL_KERNELS, AskedVariant, Kernels, Precision
from dlbricks_tui.wording.numbers import measured_ago

if TYPE_CHECKING:
    from dlbricks_tui.api.estimating import ModelReading
    from dlbricks_tui.api.open_models import Choices
    from dlbricks_tui.api.session import WorkbenchSession
    from dlbricks_tui.estimate.comparison import Accuracy, SharedSettings
    from dlbricks_tui.estimate.system_estimate import SystemEstimate


# Enough to switch between a few models; all fifty would fill the memory of a small host.
MOST_KEPT = 4


class Cure(Enum):
    """The change that lets a model be read after all."""

    NONE = auto()
    LAYERS_AS_WRITTEN = auto()
    OTHER_BATCH_SIZE = auto()


class Refusal(NamedTuple):
    """The reason why a model cannot be read, what to do, and the inputs whose shapes would help, with examples."""

    reason: str
    cure: Cure = Cure.NONE
    inputs: Mapping[str, AskedShape] = {}


def refusal_of(error: UserError, spec: ModelSpec) -> Refusal:
    """Return why a model cannot be read."""
    if isinstance(error, MissingShapeError):
        # Examples that were not tried are guesses.
        known = error.examples if error.tried else spec.shapes
        asked = {name: AskedShape(known.get(name), example) for name, example in error.examples.items()}
        return Refusal(str(error), inputs=asked)
    if isinstance(error, FusionRefusedError):
        return Refusal(str(error), Cure.LAYERS_AS_WRITTEN)
    # No batch size makes a model of another file.
    is_cure = spec.batch_size is not None and not isinstance(error, UnreadableModelError | UnknownModelError)
    return Refusal(str(error), Cure.OTHER_BATCH_SIZE if is_cure else Cure.NONE)


class ModelReader:
    """Reads one model at a time, from any thread."""

    def __init__(self, data: DataFolder, samples: Path) -> None:
        self._data = data
        self._registry = Registry(data.path)
        self.library = Library(samples, data.path, self._registry.preferred_format)
        self._memory, self._most_bytes = ShapeMemory(data.path), fingerprint().memory_bytes
        self._computing = {
            each: self._registry.one_of_each_format(asked=AskedVariant(precision=each)) for each in CHOSEN_PRECISIONS
        }
        # The workers of several runtimes at a time, which start when a model needs them.
        self._frameworks: dict[object, Frameworks] = {}
        # The identities of the frameworks, which determine the fused layers of a model. Those with limited kernels, and
        # those of a runtime that reads models otherwise, are the same.
        self.frameworks = tuple(it for each in CHOSEN_PRECISIONS for it in self._workers(each).identities)
        self._cache = Cache(data.cache)
        self._lock = Lock()
        self._read: OrderedDict[object, LayerGraph] = OrderedDict()
        # The last decompositions of these graphs: new results compose them again and again.
        self._cut: dict[tuple[object, Cutting], Decomposition] = {}

    def open(self, spec: ModelSpec) -> Decomposition:
        """Return the decomposition of a model; a framework that was missing is tried again."""
        with self._lock:
            self._workers_for(spec).retry_missing()
            return self._decomposed(spec)

    def inputs(self, spec: ModelSpec) -> dict[str, AskedShape]:
        """Return the inputs of a model with what is known of their shapes.

        They are read at the written level, so that a model that cannot be fused has them too.
        """
        as_written = replace(spec, level=Level.WRITTEN, shapes={}, precision=Precision.F32, kernels=USUAL_KERNELS)
        with self._lock:
            self._workers_for(as_written).retry_missing()
            try:
                found = asked_inputs(self._graph(as_written))
            except MissingShapeError as error:
                examples = error.examples.items()
                found = {name: AskedShape(example if error.tried else None, example) for name, example in examples}
        return {**found, **{name: AskedShape(shape, shape) for name, shape in spec.shapes.items()}}

    def forget_inputs(self, source: ModelSource) -> None:
        """Forget the shapes and values that were given for the inputs of a model."""
        with self._lock:
            self._memory.forget(source)
            self._read.clear()
            self._cut.clear()

    def decompose_cached(self, spec: ModelSpec) -> Decomposition | None:
        """Return the decomposition of a model, or None if only the framework could read it, which takes long."""
        with self._lock:
            known = self._read.get(_key(spec))
            try:
                graph = known or self._loaded(spec, self._workers_for(spec).loader_from_cache)
            except ModelError:
                return None
            return decompose(graph, spec.cutting, self._cache)

    def decompose_model(self, spec: ModelSpec) -> Decomposition:
        """Return the decomposition of a model; the framework reads it if necessary."""
        with self._lock:
            return self._decomposed(spec)

    def language_models(self) -> int:
        """Return the number of language models in the library, which are no files."""
        # Loaded here: no other model needs it.
        from dlbricks_tui.language.opening import library_models

        return len(library_models())

    def add_model(self, path: Path) -> ModelSource:
        """Add a file to the library; refuse one that is not a model."""
        with self._lock:
            self._workers(Precision.F32).loader_from_cache.refuse_no_model(source_of(path))
        return self.library.add_model(path)

    def close(self) -> None:
        """End the processes of the frameworks."""
        # Another thread may be adding some.
        for each in list(self._frameworks.values()):
            each.interrupt()

    def _workers_for(self, spec: ModelSpec) -> Frameworks:
        return self._workers(spec.precision, spec.kernels, spec.runtime)

    def _workers(
        self, precision: Precision, kernels: Kernels = USUAL_KERNELS, runtime: Runtime | None = None
    ) -> Frameworks:
        """Return the workers with a runtime, or else those that have a precision, and kernels where one has them."""
        key = runtime or (precision, kernels)
        if key not in self._frameworks:
            taken = dict(self._registry.one_of_each_format())
            if runtime is not None:
                taken[runtime.traits.format] = runtime
            else:
                taken |= {form: it.with_precision(precision) for form, it in self._computing[precision].items()}
            for form in Format if kernels != USUAL_KERNELS and runtime is None else ():
                found = self._registry.preferred_for({form}, AskedVariant(precision=precision, **asdict(kernels)))
                taken |= {} if found is None else {form: found.with_kernels(kernels).with_precision(precision)}
            log = self._data.log / "framework.log"
            self._frameworks[key] = Frameworks(taken, self._data.cache, log, self._memory, self._most_bytes)
        return self._frameworks[key]

    def _decomposed(self, spec: ModelSpec) -> Decomposition:
        key = _key(spec), spec.cutting
        if key not in self._cut:
            graph = self._graph(spec)
            self._cut = {(of, cutting): it for (of, cutting), it in self._cut.items() if of in self._read}
            self._cut[key] = decompose(graph, spec.cutting, self._cache)
        return self._cut[key]

    def _graph(self, spec: ModelSpec) -> LayerGraph:
        key = _key(spec)
        found = self._read.get(key)
        if found is None:
            found = self._read[key] = self._loaded(spec, self._workers_for(spec).loader)
            if len(self._read) > MOST_KEPT:
                self._read.popitem(last=False)
        self._read.move_to_end(key)
        return found

    def _loaded(self, spec: ModelSpec, loader: Loader) -> LayerGraph:
        if spec.runtime is None and spec.source.format not in self._computing[spec.precision]:
            raise WrongRuntimeError(
                f"no runtime here computes {spec.source.format.value} models in {spec.precision.value}: choose another "
                "precision"
            )
        return loader.load(spec.source, spec.level, spec.shapes, spec.values, spec.batch_size)


def _key(spec: ModelSpec) -> object:
    graphs = spec.precision, spec.kernels, spec.runtime
    given = tuple(sorted(spec.shapes.items())), tuple(sorted(spec.values.items()))
    return spec.source.path, _facts_of(spec.source.path), spec.level, spec.batch_size, graphs, given


def _facts_of(path: Path) -> tuple[int, int]:
    """Return the time of change and the size of a file, which may be written anew while the workbench is open."""
    try:
        known = path.stat()
    except OSError:
        return 0, 0
    return known.st_mtime_ns, known.st_size


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
        files = sorted(set(self._data.path.glob("*.json")) - {self._data.view})
        return [(path.name, *_facts_of(path)) for path in files]


def _cache_key(spec: ModelSpec, choices: Choices) -> str:
    path, given = spec.source.path, (sorted(spec.shapes.items()), sorted(spec.values.items()))
    return repr((str(path), spec.source.name, _facts_of(path), *given, choices))


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
            yield ComparedModels(corpus_of_bricks(found), done, tuple(refused))
            # Comparing takes longer the more models there are, so the interval starts after it.
            told = time.monotonic()
        if measuring:
            pause_after(time.monotonic() - began, measuring=True)
        else:
            time.sleep(_SHORT_BREATH_SECONDS)
    yield ComparedModels(corpus_of_bricks(found), len(specs), tuple(refused))


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
    # Loaded here: models are read without estimates, too.
    from dlbricks_tui.estimate.comparison import accuracy, by_group
    from dlbricks_tui.estimate.inquiry import Inquiry
    from dlbricks_tui.store.selections import combinations, equal

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
