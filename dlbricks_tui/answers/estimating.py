"""Estimates of models from a user's store, and the choice of the system, runtimes and level that they come from."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from dlbricks_tui.answers.opening import InputsUsed, library, load_all, open_loader
from dlbricks_tui.answers.runtimes import named_runtime, usual_runtimes
from dlbricks_tui.answers.scope import EstimateOptions, MeasurementScope, ScopeChoice
from dlbricks_tui.bricks.decomposition import Decomposition, decompose
from dlbricks_tui.errors import UserError
from dlbricks_tui.estimate.estimate import Options
from dlbricks_tui.estimate.inquiry import Inquiry
from dlbricks_tui.estimate.lookup import levels_measured
from dlbricks_tui.estimate.predictors import Predictors
from dlbricks_tui.estimate.selection import (
    best_offer,
    find_system,
    format_of,
    preferred_level,
)
from dlbricks_tui.estimate.system_estimate import SystemEstimate, Way
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.models.errors import FusionRefusedError
from dlbricks_tui.models.graph import LayerGraph, Level
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.models.loading import UNLOADABLE, Loader
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.traits import Format
from dlbricks_tui.runtime.variant import Precision, states
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.filters import equal, noop
from dlbricks_tui.store.selections import by_id, combinations

if TYPE_CHECKING:
    from dlbricks_tui.estimate.prediction.score import Score


class Remarks(NamedTuple):
    """Functions that take what a person should know beside the estimates."""

    # Takes a line of text.
    tell: Callable[[str], None]
    # Words an error, with what to do about it.
    word_error: Callable[[UserError], str]
    inputs_used: InputsUsed


class Asked(NamedTuple):
    """A model with the results of its bricks."""

    source: ModelSource
    inquiry: Inquiry


class ModelWithEstimate(NamedTuple):
    """A model with its estimate, and the identity of the runtime that should have measured it, if one should."""

    source: ModelSource
    decomposition: Decomposition
    found: SystemEstimate
    wanted: str | None


@dataclass(frozen=True, slots=True)
class Estimator:
    """Estimates any models from one store, with the same options."""

    options: EstimateOptions
    data: DataFolder
    store: ResultsDatabase
    loader: Loader
    remarks: Remarks
    compositions: Options
    # The format of models that have several, unless the options name a runtime.
    preferred: Format
    # None: nothing is predicted.
    predictors: Predictors | None = None

    def estimates(self, sources: Sequence[ModelSource], scope: MeasurementScope) -> list[ModelWithEstimate]:
        """Return the estimate of each model from the runtime that counts for it.

        If that runtime has measured nothing and the options do not name it, another one takes its place: one of the
        same framework, or else one that reads the model's file of another format.
        """
        answers: list[ModelWithEstimate] = []
        for asked in self.inquiries(sources, scope.level, scope.format, self.predictors):
            wanted, found = scope.runtime_for(asked.source), self._by_usual(asked, scope)
            alone = found is not None or scope.format is not None
            twin = None if alone else self._twin_of(asked.source, scope.level, scope.system)
            if twin is not None and (from_twin := self._by_usual(twin, scope)) is not None:
                asked, found = twin, from_twin
            found = found or self._empty(asked.inquiry, scope.system, wanted or "")
            answers.append(ModelWithEstimate(asked.source, asked.inquiry.decomposition, found, wanted))
        return answers

    def _empty(self, inquiry: Inquiry, system: str, runtime: str) -> SystemEstimate:
        """Return the estimate without results, in the variant of the options."""
        found = inquiry.empty(system, runtime, partial(self.options.fits, wanted=runtime), self.options.precision)
        threads = self.options.threads
        return found if threads is None else replace(found, variant=replace(found.variant, threads=threads))

    def inquiries(
        self,
        sources: Sequence[ModelSource],
        level: Level,
        form: Format | None = None,
        predictors: Predictors | None = None,
    ) -> list[Asked]:
        """Return the models with the results of their bricks; without predictors, nothing is predicted.

        Models that cannot be loaded are left out, with a remark; where none can, the first refusal is raised.
        """
        taken = [source.in_format(form or self.preferred) for source in sources]
        loaded = load_all(taken, lambda source: self._graph(source, level), self.remarks.word_error)
        for line in loaded.left_out:
            self.remarks.tell(f"left out: {line}")
        cut = ((it.source, decompose(it.graph, self.options.cutting, self.loader.cache)) for it in loaded.models)
        return [Asked(source, Inquiry(self.store, found, self.compositions, predictors)) for source, found in cut]

    def scope_of(self, sources: Sequence[ModelSource]) -> MeasurementScope:
        """Return whose measurements count for these models."""
        return ScopeChoice(self.options, self.data, self.store, self.preferred).scope_of(sources)

    def every_way(self, sources: Sequence[ModelSource], scope: MeasurementScope) -> Iterator[SystemEstimate]:
        """Yield each model's estimate from every system, runtime and level that the options allow."""
        level = self.options.level
        system = None if self.options.system is None else scope.system
        levels = levels_measured(self.store) if level is None else (level,)
        known = by_id(self.store.runtimes())
        forms = self._measured_formats(system) if scope.format is None else {scope.format}
        for each, form in product(levels, sorted(forms)):
            having = [source for source in sources if form in source.formats]
            for _, inquiry in self.inquiries(having, each, form) if having else ():
                # Models of several formats share bricks.
                offers = [it for it in inquiry.offers if format_of(known.get(it.way.runtime)) is form]
                for offer in offers:
                    precision, kernels = self.options.precision or Precision.F32, self.options.kernels_of("")
                    fits = states(offer.way.runtime, None, precision, kernels)
                    is_wanted = fits if scope.named is None else scope.named == offer.way.runtime
                    if is_wanted and system in (None, offer.way.system):
                        yield inquiry.by(offer.way)

    def scores(self, sources: Sequence[ModelSource], scope: MeasurementScope) -> "list[tuple[Way, Score]]":
        """Return how well each model that was measured in full would have been predicted, by way of measuring."""
        from dlbricks_tui.estimate.prediction.score import scores_on

        asked = self.inquiries(sources, scope.level, scope.format)
        models = ((it.inquiry.decomposition, scope.runtime_for(it.source)) for it in asked)
        return scores_on(self.store, scope.system, models, others=scope.named is None)

    def level_on(self, system: str) -> Level:
        """Return the level to estimate at on a system."""
        return self.options.level or preferred_level(levels_measured(self.store, system, None))

    def _graph(self, source: ModelSource, level: Level) -> LayerGraph:
        try:
            return self._loaded(source, level)
        except FusionRefusedError as refused:
            self.remarks.tell(f"estimated as written: {source.name} cannot be fused: {refused}")
            return self._loaded(source, Level.WRITTEN)

    def _loaded(self, source: ModelSource, level: Level) -> LayerGraph:
        return self.loader.load(source, level, self.options.inputs, self.options.values, self.options.batch)

    def of_twin(self, source: ModelSource, level: Level, system: str) -> SystemEstimate | None:
        """Return the estimate from the model's file of another format, by the runtime that covers most on a system."""
        twin = self._twin_of(source, level, system)
        return None if twin is None else twin.inquiry.on(system, None, self.options.fits)

    def _by_usual(self, asked: Asked, scope: MeasurementScope) -> SystemEstimate | None:
        """Return the estimate from the runtime that counts, or from another one of its framework."""
        inquiry, wanted = asked.inquiry, scope.runtime_for(asked.source)
        fits = partial(self.options.fits, wanted=wanted)
        found = inquiry.on(scope.system, wanted, fits)
        usual = scope.usual.get(asked.source.format)
        if found is None and scope.named is None and usual is not None and self.options.allows_any_threads:
            known = by_id(self.store.runtimes())
            alike = {it for it, each in known.items() if each.framework == usual.framework and fits(it)}
            offer = best_offer([it for it in inquiry.offers if it.way.runtime in alike], scope.system, None)
            found = None if offer is None else inquiry.by(offer.way)
        return found

    def _twin_of(self, source: ModelSource, level: Level, system: str) -> Asked | None:
        """Return the model with its file of another format, if a runtime has measured such models on the system."""
        twin = source.twin
        if twin is None or twin.format not in self._measured_formats(system):
            return None
        try:
            return self.inquiries([source], level, twin.format, self.predictors)[0]
        except UNLOADABLE:
            return None

    def _measured_formats(self, system: str | None) -> frozenset[Format]:
        """Return the formats of the models that runtimes have measured, on a system or on any."""
        known = by_id(self.store.runtimes())
        ways = combinations(self.store.select(noop() if system is None else equal(system=system), order=()))
        return frozenset(format_of(known.get(it.runtime)) for it in ways)


def measured_models(data: DataFolder) -> tuple[ModelSource, ...]:
    """Return the models of the library that were measured, by their bricks or end to end."""
    with ResultsDatabase(data.store) as store:
        names = {name for run in store.runs() for name in run.models}
        names |= store.select(equal(of="model"), order=()).distinct("name")
    return tuple([source for source in library(data).sources() if source.name in names])


def estimates_here(
    data: DataFolder,
    usual_runtime: str | None,
    threads: int | None,
    models: Sequence[Decomposition],
    precision: Precision | None = None,
) -> list[SystemEstimate | None]:
    """Return the estimate of each model from this host's results, by the usual runtime; None without results."""
    if not data.store.exists():
        return [None for _ in models]
    host, found = fingerprint().id, usual_runtimes(data, usual_runtime, threads, precision)
    usual = {form: it.with_precision(precision) for form, it in found.items()}
    with ResultsDatabase(data.store) as store:
        return [_on_host(store, it, host, usual) for it in models]


def _on_host(
    store: ResultsDatabase, model: Decomposition, host: str, usual: Mapping[Format, Runtime]
) -> SystemEstimate | None:
    runtime = usual.get(model.graph.format)
    return None if runtime is None else Inquiry(store, model).on(host, runtime.identity)


@contextmanager
def open_estimator(options: EstimateOptions, data: DataFolder, remarks: Remarks) -> Iterator[Estimator]:
    """Open a user's store, and a loader that fuses models as the runtime of the options does."""
    compositions = options.compositions()
    with ResultsDatabase(data.store) as store:
        runtimes = _runtimes_here(options, data, store)
        preferred = runtimes[0].traits.format if runtimes else Registry(data.path).preferred_format
        most_bytes = _memory_bytes(options, store)
        with open_loader(data, remarks.inputs_used, *runtimes, most_bytes=most_bytes) as loader:
            predictors = Predictors(store, data.cache)
            yield Estimator(options, data, store, loader, remarks, compositions, preferred, predictors)


def _memory_bytes(options: EstimateOptions, store: ResultsDatabase) -> int | None:
    """Return the memory of the system whose results count; None where it is not known."""
    if options.batch is None:
        return None
    if options.system is None:
        return fingerprint().memory_bytes
    known = by_id(store.systems())
    return known[find_system(options.system, known)].memory_bytes or None


def _runtimes_here(options: EstimateOptions, data: DataFolder, store: ResultsDatabase) -> list[Runtime]:
    """Return the runtime of this host that the options name, as others may fuse models otherwise.

    If they name only a precision or kernels, there is one for each format, the preferred one first.
    """
    registry = Registry(data.path)
    if options.runtime is not None:
        named = named_runtime(options.runtime, data, store)
        here = named.here or (None if named.identity is None else registry.with_identity(named.identity))
    else:
        here = None if options.usual_runtime is None else registry.find(options.usual_runtime)
        if options.exclude_runtimes and not (here is not None and options.allow(here)):
            fitting = [it for it in registry.all() if options.allow(it)]
            first = {it.traits.format: it for it in reversed(fitting)}
            return [options.optimising_alike(it) for it in fitting if it is first[it.traits.format]]
    return [] if here is None else [options.optimising_alike(here)]
