"""Reads and decomposes models. The first time is slow, so screens call it from threads."""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from enum import Enum, auto
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from dlbricks_tui.api.open_models import AskedShape, ModelSpec, asked_inputs
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
        self._computing = {each: self._registry.one_of_each_format(precision=each) for each in CHOSEN_PRECISIONS}
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

    def decompose_cached(self, spec: ModelSpec) -> Decomposition | None:
        """Return the decomposition of a model, or None if only the framework could read it, which takes long."""
        with self._lock:
            known = self._read.get(_key(spec))
            try:
                graph = known or self._loaded(spec, self._workers_for(spec).loader_from_cache())
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
            self._workers(Precision.F32).loader_from_cache().refuse_no_model(source_of(path))
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
                found = self._registry.first_for(
                    {form}, lambda it: it.computes_in(precision) and it.traits.has_kernels(kernels)
                )
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
            found = self._read[key] = self._loaded(spec, self._workers_for(spec).loader())
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
    return spec.source.path, spec.level, spec.batch_size, graphs, given
