"""The executions of a model with results on a system, as the runtimes read the model."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from dlbricks_tui.analysis.groups import MeasuredExecution
from dlbricks_tui.analysis.what_if import Execution
from dlbricks_tui.answers.estimating import Estimator
from dlbricks_tui.answers.measuring import measured_batch_sizes
from dlbricks_tui.answers.scope import MeasuredRuntimes
from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.estimate.inquiry import Inquiry
from dlbricks_tui.models.graph import LayerGraph, Level
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.models.loading import UNLOADABLE
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.traits import Format


class _Reading(NamedTuple):
    """A model as a runtime reads it: the file, the runtime, the level and the batch size."""

    form: Format
    # None: the usual one of the format.
    runtime: Runtime | None
    level: Level
    batch: int | None


class MeasuredExecutions:
    """Finds the executions of models with results in one store; it reads each model once for each runtime."""

    def __init__(self, estimator: Estimator) -> None:
        self._estimator = estimator
        self._usual_sizes: dict[object, int] = {}

    def others(
        self, source: ModelSource, runtimes: MeasuredRuntimes, baseline: MeasuredExecution
    ) -> Iterator[MeasuredExecution]:
        """Yield the model in each other execution with results of its bricks.

        Batch sizes are those of the file and of the options. For the runtime and the level of the baseline, those at
        which its bricks were measured, or the model was timed end to end, come on top.
        """
        usual = [None, self._estimator.options.batch]
        way, size = baseline.found.way, baseline.graph.batch_size
        measured = measured_batch_sizes(self._estimator.store, way, baseline.parts, size)
        others = [*runtimes.batch_sizes(source.name), *measured]
        inquiries: dict[_Reading, Inquiry | None] = {}
        written: dict[_Reading, LayerGraph | None] = {}
        for identity in runtimes.measured:
            runtime = runtimes.of(identity)
            if runtime.traits.format not in source.formats:
                continue
            batches = [(level, batch) for level in runtimes.levels(identity) for batch in usual]
            batches += [(way.level, batch) for batch in others] if identity == way.runtime else []
            for level, batch in dict.fromkeys(batches):
                if (identity, level, batch) == _choices_of(baseline):
                    continue
                key = _Reading(runtime.traits.format, runtimes.loading(runtime), level, batch)
                if key not in inquiries:
                    inquiries[key] = self._inquiry(source, key)
                inquiry = inquiries[key]
                found = None if inquiry is None else inquiry.on(runtimes.system, identity)
                if inquiry is not None and found is not None and any(it.measured for it in found.estimate.parts):
                    graph = inquiry.decomposition.graph
                    # Layers at other batch sizes are compared within one file only.
                    if graph.batch_size == baseline.graph.batch_size and key not in written:
                        is_other = graph.file != baseline.file
                        written[key] = self._as_in_file(source, key) if is_other else baseline.written
                    yield MeasuredExecution(Execution(runtime, level, batch), graph, found, written.get(key))

    def _inquiry(self, named: ModelSource, reading: _Reading) -> Inquiry | None:
        """Return the results of a model as a runtime has it; None if it cannot be read so, or not at this size."""
        form, runtime, level, batch = reading
        source = named.in_format(form)
        estimator = self._estimator
        loader = estimator.readers.loader(runtime)
        options = estimator.options
        with suppress(*UNLOADABLE):
            if batch is not None and batch == self._usual_size(source, runtime, level):
                return None
            graph = loader.load(source, level, options.inputs, options.values, batch)
            if batch is None:
                self._usual_sizes[_network(source, runtime, level)] = graph.batch_size
            decomposition = decompose(graph.named(source.name), options.cutting, loader.cache)
            return Inquiry(estimator.store, decomposition, replace(estimator.compositions, measured_only=True))
        return None

    def _as_in_file(self, source: ModelSource, reading: _Reading) -> LayerGraph | None:
        """Return the layers of the file that a runtime runs; None if it cannot be read so."""
        form, runtime, _, batch = reading
        options = self._estimator.options
        with suppress(*UNLOADABLE):
            own = source.in_format(form)
            return self._estimator.readers.loader(runtime).load(
                own, Level.WRITTEN, options.inputs, options.values, batch
            )
        return None

    def _usual_size(self, source: ModelSource, runtime: Runtime | None, level: Level) -> int:
        key = _network(source, runtime, level)
        if key not in self._usual_sizes:
            options = self._estimator.options
            graph = self._estimator.readers.loader(runtime).load(source, level, options.inputs, options.values)
            self._usual_sizes[key] = graph.batch_size
        return self._usual_sizes[key]


def _choices_of(one: MeasuredExecution) -> tuple[str, Level, int | None]:
    return one.found.way.runtime, one.graph.level, one.execution.batch_size


def _network(source: ModelSource, runtime: Runtime | None, level: Level) -> object:
    """Return what models have in common whose files and layers are the same."""
    return source.path, *source.inputs.items(), runtime, level
