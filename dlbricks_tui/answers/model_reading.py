"""Reads and decomposes models. The first time is slow, so screens call it from threads."""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from enum import Enum, auto
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from dlbricks_tui.answers.open_models import AskedShape, ModelSpec, asked_inputs
from dlbricks_tui.bricks.decomposition import Cutting, Decomposition, decompose
from dlbricks_tui.errors import UserError
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
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.traits import Format
from dlbricks_tui.runtime.variant import CHOSEN_PRECISIONS, USUAL_KERNELS, Kernels, Precision

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
        # The runtimes that compute in each precision, and their workers, which start when a model needs them.
        self._runtimes = {
            (each, USUAL_KERNELS): self._registry.one_of_each_format(precision=each) for each in CHOSEN_PRECISIONS
        }
        self._frameworks = {graphs: self._frameworks_of(*graphs) for graphs in self._runtimes}
        # The workers of runtimes that read models otherwise than the usual ones.
        self._others: dict[Runtime, Frameworks] = {}
        # Without those of limited kernels, which are the same frameworks.
        self._identities = tuple(identity for each in self._frameworks.values() for identity in each.identities)
        self._cache = Cache(data.cache)
        self._lock = Lock()
        self._read: OrderedDict[object, LayerGraph] = OrderedDict()
        # The last decompositions of these graphs: new results compose them again and again.
        self._cut: dict[tuple[object, Cutting], Decomposition] = {}

    @property
    def frameworks(self) -> tuple[str, ...]:
        """The identities of the frameworks, which determine the fused layers of a model."""
        return self._identities

    def open(self, spec: ModelSpec) -> Decomposition:
        """Return the decomposition of a model; a framework that was missing is tried again."""
        with self._lock:
            self._workers(spec).retry_missing()
            return self._decomposed(spec)

    def inputs(self, spec: ModelSpec) -> dict[str, AskedShape]:
        """Return the inputs of a model with what is known of their shapes.

        They are read at the written level, so that a model that cannot be fused has them too.
        """
        as_written = replace(spec, level=Level.WRITTEN, shapes={}, precision=Precision.F32, kernels=USUAL_KERNELS)
        with self._lock:
            self._workers(as_written).retry_missing()
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

    def decompose_cached(self, spec: ModelSpec) -> Decomposition | None:
        """Return the decomposition of a model, or None if only the framework could read it, which takes long."""
        with self._lock:
            known = self._read.get(_key(spec))
            try:
                graph = known or self._loaded(spec, self._workers(spec).loader_from_cache())
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
            self._frameworks[Precision.F32, USUAL_KERNELS].loader_from_cache().refuse_no_model(source_of(path))
        return self.library.add_model(path)

    def close(self) -> None:
        """End the processes of the frameworks."""
        # Another thread may be adding some.
        for each in [*self._frameworks.values(), *self._others.values()]:
            each.interrupt()

    def _workers(self, spec: ModelSpec) -> Frameworks:
        """Return the workers of the runtimes that have the precision of a model, and its kernels where one has them."""
        if spec.runtime is not None:
            return self._frameworks_reading(spec.runtime)
        graphs = spec.precision, spec.kernels
        if graphs not in self._frameworks:
            found = {form: self._registry.first_for({form}, lambda it: _can(it, spec)) for form in Format}
            limited = {form: it.with_kernels(spec.kernels) for form, it in found.items() if it is not None}
            self._runtimes[graphs] = {**self._runtimes[spec.precision, USUAL_KERNELS], **limited}
            self._frameworks[graphs] = self._frameworks_of(*graphs)
        return self._frameworks[graphs]

    def _frameworks_reading(self, runtime: Runtime) -> Frameworks:
        if runtime not in self._others:
            taken = {**self._registry.one_of_each_format(), runtime.traits.format: runtime}
            self._others[runtime] = self._workers_of(taken)
        return self._others[runtime]

    def _frameworks_of(self, precision: Precision, kernels: Kernels) -> Frameworks:
        found = {form: it.with_precision(precision) for form, it in self._runtimes[precision, kernels].items()}
        return self._workers_of({**self._registry.one_of_each_format(), **found})

    def _workers_of(self, taken: Mapping[Format, Runtime]) -> Frameworks:
        log = self._data.log / "framework.log"
        return Frameworks(taken, self._data.cache, log, self._memory, self._most_bytes)

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
            found = self._read[key] = self._loaded(spec, self._workers(spec).loader())
            if len(self._read) > MOST_KEPT:
                self._read.popitem(last=False)
        self._read.move_to_end(key)
        return found

    def _loaded(self, spec: ModelSpec, loader: Loader) -> LayerGraph:
        if spec.runtime is None and spec.source.format not in self._runtimes[spec.precision, USUAL_KERNELS]:
            raise WrongRuntimeError(
                f"no runtime here computes {spec.source.format.value} models in {spec.precision.value}: choose another "
                "precision"
            )
        return loader.load(spec.source, spec.level, spec.shapes, spec.values, spec.batch_size)


def _can(runtime: Runtime, spec: ModelSpec) -> bool:
    return runtime.computes_in(spec.precision) and runtime.traits.has_kernels(spec.kernels)


def _key(spec: ModelSpec) -> object:
    graphs = spec.precision, spec.kernels, spec.runtime
    given = tuple(sorted(spec.shapes.items())), tuple(sorted(spec.values.items()))
    return spec.source.path, spec.level, spec.batch_size, graphs, given
