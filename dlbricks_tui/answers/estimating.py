"""Estimates of models from a user's store, and the choice of the system, runtimes and level that they come from."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from dlbricks_tui.answers.answer import Answer, Choice, ModelReading, Readings, answer_of, best_of, with_threads
from dlbricks_tui.answers.measured_runtimes import MeasuredRuntimes
from dlbricks_tui.answers.opening import InputsUsed, ModelLoaders, library, load_all
from dlbricks_tui.answers.runtimes import named_runtime, usual_runtimes
from dlbricks_tui.answers.scope import EstimateOptions, MeasurementScope, ScopeChoice
from dlbricks_tui.bricks.decomposition import Decomposition, decompose
from dlbricks_tui.errors import UserError
from dlbricks_tui.estimate.estimate import Options
from dlbricks_tui.estimate.inquiry import Inquiry
from dlbricks_tui.estimate.lookup import levels_measured
from dlbricks_tui.estimate.predictors import Predictors
from dlbricks_tui.estimate.selection import find_system, format_of
from dlbricks_tui.estimate.system_estimate import SystemEstimate, Way
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.models.errors import FusionRefusedError
from dlbricks_tui.models.graph import LayerGraph, Level
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.models.loading import UNLOADABLE, Loader, UnloadedModels
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.traits import TRAITS, Format
from dlbricks_tui.runtime.variant import Precision, stated_kernels, stated_precision, states, without_variant
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


@dataclass(frozen=True, slots=True)
class Estimator:
    """Estimates any models from one store, with the same options."""

    options: EstimateOptions
    data: DataFolder
    store: ResultsDatabase
    readers: ModelLoaders
    remarks: Remarks
    compositions: Options
    # The format of models that have several, unless the options name a runtime.
    preferred: Format
    # None: nothing is predicted.
    predictors: Predictors | None = None

    @property
    def loader(self) -> Loader:
        """The loader of models as the usual runtime of their format has them."""
        return self.readers.loader()

    def answers(self, sources: Sequence[ModelSource], scope: MeasurementScope) -> list[Answer]:
        """Return the answer of each model, by the rule of `answer`.

        Models that cannot be loaded are left out, with a remark; where none can, the first refusal is raised.
        """
        readings = Readings(MeasuredRuntimes(self.data, self.store, scope.system), self.readers.usual)
        found: list[Answer] = []
        left_out = UnloadedModels(self.remarks.word_error)
        for source in sources:
            choice = self._choice(source, scope)
            taken = readings.of_model(source, choice, guess=True)
            inquiries: dict[ModelReading, Inquiry] = {}
            for reading in taken:
                try:
                    inquiries[reading] = self.inquiry(source, reading)
                except UNLOADABLE as refusal:
                    first = refusal
            if inquiries:
                found.append(answer_of(source, scope.system, choice, taken, inquiries))
            else:
                left_out.add(source, first)
        if left_out.first is not None and not found:
            raise left_out.first
        for line in left_out.lines:
            self.remarks.tell(f"left out: {line}")
        threads = self.options.threads
        return [replace(it, found=with_threads(it.found, threads)) for it in found]

    def _choice(self, source: ModelSource, scope: MeasurementScope) -> Choice:
        """Return the combinations from which the answer of a model is chosen."""
        options, taken = self.options, source.in_format(scope.format or self.preferred)
        wanted = scope.runtime_for(taken) or ""

        def counts(identity: str) -> bool:
            if scope.is_exact:
                return identity == scope.named
            if options.runtime in TRAITS and identity.partition("-")[0] != options.runtime:
                return False
            if scope.named is not None and without_variant(identity) != without_variant(scope.named):
                return False
            return options.fits(identity, wanted)

        return Choice(counts, taken.format, wanted, options.chooses, options.level, options.precision)

    def inquiry(self, source: ModelSource, reading: ModelReading) -> Inquiry:
        """Return the results of a model as it is read."""
        loader = self.readers.loader(reading.runtime)
        graph = self._graph(source.in_format(reading.form), reading.level, loader).named(source.name)
        decomposition = decompose(graph, self.options.cutting, loader.cache)
        return Inquiry(self.store, decomposition, self.compositions, self.predictors)

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
        loaded = load_all(taken, lambda source: self._graph(source, level, self.loader), self.remarks.word_error)
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

    def on_systems(self, sources: Sequence[ModelSource], systems: Sequence[str]) -> dict[str, list[SystemEstimate]]:
        """Return the answers of each model on some systems, by its name.

        Systems that have measured other models only are there with predictions, if another one has measured the model.
        """
        found: dict[str, list[SystemEstimate]] = {source.name: [] for source in sources}
        for system in systems:
            there = replace(self, options=replace(self.options, system=system))
            for answer in there.answers(sources, there.scope_of(sources)):
                one = answer.found
                if one.is_measured or (one.way.protocol and one.figure is not None):
                    found[answer.source.name].append(one)
        return {name: held if any(it.is_measured for it in held) else [] for name, held in found.items()}

    def _graph(self, source: ModelSource, level: Level, loader: Loader) -> LayerGraph:
        options = self.options
        try:
            return loader.load(source, level, options.inputs, options.values, options.batch)
        except FusionRefusedError as refused:
            self.remarks.tell(f"estimated as written: {source.name} cannot be fused: {refused}")
            return loader.load(source, Level.WRITTEN, options.inputs, options.values, options.batch)

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
    """Return the best known estimate of each model from this host's results by the usual runtime, or None."""
    if not data.store.exists():
        return [None for _ in models]
    host, found = fingerprint().id, usual_runtimes(data, usual_runtime, threads, precision)
    with ResultsDatabase(data.store) as store:
        measured = MeasuredRuntimes(data, store, host).measured
        estimates: list[SystemEstimate | None] = []
        for model in models:
            usual = found.get(model.graph.format)
            wanted = "" if usual is None else usual.with_precision(precision).identity
            alike = [it for it in measured if _is_alike(it, wanted, threads)]
            inquiry = Inquiry(store, model)
            estimates.append(best_of((one for it in alike for one in inquiry.by_runtime(host, it)), wanted))
    return estimates


def _is_alike(identity: str, wanted: str, threads: int | None) -> bool:
    return without_variant(identity) == without_variant(wanted) and states(
        identity, threads, stated_precision(wanted), stated_kernels(wanted)
    )


@contextmanager
def open_estimator(options: EstimateOptions, data: DataFolder, remarks: Remarks) -> Iterator[Estimator]:
    """Open a user's store, and a loader that fuses models as the runtime of the options does."""
    compositions = options.compositions()
    with ResultsDatabase(data.store) as store:
        runtimes = _runtimes_here(options, data, store)
        preferred = runtimes[0].traits.format if runtimes else Registry(data.path).preferred_format
        most_bytes = _memory_bytes(options, store)
        with ModelLoaders(data, remarks.inputs_used, *runtimes, most_bytes=most_bytes, tell=remarks.tell) as readers:
            predictors = Predictors(store, data.cache)
            yield Estimator(options, data, store, readers, remarks, compositions, preferred, predictors)


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
