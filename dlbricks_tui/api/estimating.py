"""Estimates of models from a user's store, and the choice of the combination that answers."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import product
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from dlbricks_tui.api.opening import ModelLoaders, library, load_all, open_store
from dlbricks_tui.api.scope import EstimateOptions, MeasuredRuntimes, MeasurementScope, named_runtime, usual_runtimes
from dlbricks_tui.api.session import SILENT, Remarks
from dlbricks_tui.bricks.decomposition import Decomposition, decompose
from dlbricks_tui.errors import UserError
from dlbricks_tui.estimate.compositions import EstimateError
from dlbricks_tui.estimate.estimate import Options
from dlbricks_tui.estimate.inquiry import Inquiry, Predictors, of_usual_variant
from dlbricks_tui.estimate.lookup import levels_measured
from dlbricks_tui.estimate.system_estimate import FigureBasis, SystemEstimate, format_of, preferred_level
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.models.errors import FusionRefusedError
from dlbricks_tui.models.graph import LayerGraph, Level
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.models.loading import UNLOADABLE, Loader, UnloadedModels
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.traits import TRAITS, Format
from dlbricks_tui.runtime.variant import (
    AskedVariant,
    Precision,
    stated_kernels,
    stated_precision,
    states,
    without_variant,
)
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import LoadTest, Measurement, Proof
from dlbricks_tui.store.selections import LEAST_FIRST, Way, by_id, combinations, equal, noop

if TYPE_CHECKING:
    from dlbricks_tui.api.open_models import Available, Choices
    from dlbricks_tui.api.session import SharedStore
    from dlbricks_tui.estimate.knowledge import Pair
    from dlbricks_tui.estimate.score import Score
    from dlbricks_tui.measure.jobs import JobKey
    from dlbricks_tui.measure.known import Conditions, Known
    from dlbricks_tui.store.change import Timing

Found = TypeVar("Found")


class ModelReading(NamedTuple):
    """A model as a runtime reads it: the format of the file, the runtime that fuses it, and the level.

    The runtime is None for the usual one of the format.
    """

    form: Format
    runtime: Runtime | None
    level: Level


@dataclass(frozen=True)
class CombinationChoice:
    """The combinations from which options choose a model's answer, and the one that a run would measure."""

    options: EstimateOptions
    scope: MeasurementScope
    # With the file that a run would read.
    source: ModelSource

    @cached_property
    def runtime(self) -> str:
        """The identity of the runtime that a run would take; empty for any."""
        return self.scope.runtime_for(self.source) or ""

    def counts(self, identity: str) -> bool:
        """Return whether the results of a runtime count, by its identity."""
        options, named = self.options, self.scope.named
        if self.scope.is_exact:
            return identity == named
        if options.runtime in TRAITS and identity.partition("-")[0] != options.runtime:
            return False
        if named is not None and without_variant(identity) != without_variant(named):
            return False
        return options.fits(identity, self.runtime)


@dataclass(frozen=True)
class Answer:
    """The answer to how fast a model is on a system: the estimate and the latency of the combination that answers."""

    # With the file that the runtime reads.
    source: ModelSource
    inquiry: Inquiry
    found: SystemEstimate
    reading: ModelReading
    # The identity of the runtime that a run would take; empty for any.
    wanted: str = ""
    # True if the user chose the combination, at least in part.
    is_chosen: bool = False
    # The fastest combination that was measured completely, if the chosen one is another.
    fastest: SystemEstimate | None = None

    @property
    def decomposition(self) -> Decomposition:
        """The bricks of the model as the runtime reads it."""
        return self.inquiry.decomposition


class Readings:
    """The readings of models by the runtimes that have measured them on one system."""

    def __init__(self, runtimes: MeasuredRuntimes, usual: Mapping[Format, Runtime]) -> None:
        """`usual` has the runtime by which models of each format are read if none is named."""
        self.runtimes = runtimes
        # Threads do not matter for reading.
        self.usual = usual
        self._loading = {form: runtimes.loading(runtime) for form, runtime in usual.items()}
        # The library has many models, and few runtimes have measured them.
        self._known: dict[tuple[str, Level | None], ModelReading] = {}

    def of(self, identity: str, level: Level | None) -> ModelReading:
        """Return the reading of a runtime by its identity."""
        if (identity, level) not in self._known:
            runtime = self.runtimes.of(identity)
            form, reads = runtime.traits.format, self.runtimes.loading(runtime)
            at = level or preferred_level(self.runtimes.levels(identity))
            self._known[identity, level] = ModelReading(form, None if reads == self._loading.get(form) else reads, at)
        return self._known[identity, level]

    def of_model(self, choice: CombinationChoice, *, guess: bool = False) -> dict[ModelReading, list[str]]:
        """Return the readings to look at for a model's answer, each with its runtimes; the first is the usual one.

        A runtime with results that name the model has its reading among them. The usual reading is there in any case,
        as other models may have measured the same bricks. To `guess` is to look into the model's other files, too, if
        no result names it, which may take a framework.
        """
        first, level = self._first(choice), choice.options.level
        found: dict[ModelReading, list[str]] = {first: []}
        named = self.runtimes.of_model(choice.source.name)
        for identity in self.runtimes.measured:
            reading = self.of(identity, level)
            is_other_file = guess and not named and reading.runtime is None and reading.form is not first.form
            fits = reading.form in choice.source.formats and self.runtimes.is_plain(identity)
            if fits and (identity in named or is_other_file or reading == first):
                found.setdefault(reading, []).append(identity)
        return found

    def _first(self, choice: CombinationChoice) -> ModelReading:
        form, level = choice.source.format, choice.options.level
        if choice.runtime in self.runtimes.measured:
            return self.of(choice.runtime, level)
        measured = [it for it in self.runtimes.measured if self.of(it, None).form is form and choice.counts(it)]
        levels = sorted({each for it in measured for each in self.runtimes.levels(it)})
        is_known = choice.runtime.partition("-")[0] in TRAITS
        runtime = self.of(choice.runtime, level).runtime if is_known else None
        return ModelReading(form, runtime, level or preferred_level(levels))


def those_read(
    readings: Iterable[ModelReading],
    read: Callable[[ModelReading], Found],
    refusing: tuple[type[UserError], ...] = UNLOADABLE,
) -> dict[ModelReading, Found]:
    """Return what the readings that work find in a model; raise the first refusal if none of them works."""
    found: dict[ModelReading, Found] = {}
    refusals: list[UserError] = []
    for reading in readings:
        try:
            found[reading] = read(reading)
        except refusing as refusal:
            refusals.append(refusal)
    if not found:
        raise refusals[0]
    return found


def answer_of(
    choice: CombinationChoice,
    readings: Mapping[ModelReading, Sequence[str]],
    inquiries: Mapping[ModelReading, Inquiry],
) -> Answer:
    """Return the answer of a model: by the choice of its options, or the fastest measured one, or else predicted.

    `inquiries` has the readings that worked, at least one. A reading without results is predicted.
    """
    system, options = choice.scope.system, choice.options
    reading_of = {identity: reading for reading in inquiries for identity in readings[reading]}
    measured = [
        one for identity, reading in reading_of.items() for one in inquiries[reading].by_runtime(system, identity)
    ]
    first, inquiry = next(iter(inquiries.items()))
    one = best_of((it for it in measured if choice.counts(it.way.runtime)), choice.runtime)
    if one is None:
        # Results of other models here predict better than those of other systems, and for their own variant.
        alike = [it for it in readings[first] if choice.counts(it)]
        runtime = "" if alike and choice.runtime not in alike else choice.runtime
        one = inquiry.empty(system, runtime, choice.counts, options.precision)
    if options.threads is not None and not one.way.protocol:
        # Without results it is in the variant that was asked for.
        one = replace(one, variant=replace(one.variant, threads=options.threads))
    reading = reading_of.get(one.way.runtime, first) if one.way.protocol else first
    fastest = _fastest(it for it in measured if options.chooses and of_usual_variant(it.way.runtime))
    return Answer(
        choice.source.in_format(reading.form),
        inquiries[reading],
        one,
        reading,
        choice.runtime,
        options.chooses,
        None if fastest is None or fastest.way.runtime == one.way.runtime else fastest,
    )


def best_of(found: Iterable[SystemEstimate], usual: str = "") -> SystemEstimate | None:
    """Return the fastest estimate that was measured completely, else the one with most measured layers.

    Of several with as many layers it is that of the usual runtime. None if nothing was measured.
    """
    known = list(found)
    partly = [it for it in known if it.is_measured]
    return _fastest(known) or max(
        partly, key=lambda it: (it.estimate.coverage.measured, it.way.runtime == usual), default=None
    )


def _fastest(found: Iterable[SystemEstimate]) -> SystemEstimate | None:
    """Return the estimate with the least latency of those that were measured completely.

    Of several methods the last one counts that has timed the whole model by a runtime at a level, or else all bricks.
    """
    known = [(it.figure, it) for it in found if it.figure is not None and it.figure.is_measured]
    known.sort(key=lambda pair: (pair[0].basis is FigureBasis.MEASURED, max(pair[0].between or (0.0,))))
    last = {(it.way.runtime, it.way.level): (figure.latency.value_ms, it) for figure, it in known}
    return min(last.values(), key=lambda pair: pair[0], default=(0.0, None))[1]


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
        """Return the answer of each model, by the rule of `answer_of`.

        Models that cannot be loaded are left out, with a remark; where none can, the first refusal is raised.
        """
        readings = Readings(MeasuredRuntimes(self.data, self.store, scope.system), self.readers.usual)
        found: list[Answer] = []
        left_out = UnloadedModels(self.remarks.word_error)
        for source in sources:
            choice = CombinationChoice(self.options, scope, source.in_format(scope.format or self.preferred))
            taken = readings.of_model(choice, guess=True)
            try:
                found.append(answer_of(choice, taken, those_read(taken, partial(self.inquiry, source))))
            except UNLOADABLE as refusal:
                left_out.add(source, refusal)
        left_out.conclude(found, self.remarks.tell)
        return found

    def inquiry(self, source: ModelSource, reading: ModelReading) -> Inquiry:
        """Return the results of a model as it is read."""
        loader = self.readers.loader(reading.runtime)
        graph = self._graph(source.in_format(reading.form), reading.level, loader).named(source.name)
        decomposition = decompose(graph, self.options.cutting, loader.cache)
        return Inquiry(self.store, decomposition, self.compositions, self.predictors)

    def inquiries(
        self, sources: Sequence[ModelSource], level: Level, form: Format | None
    ) -> list[tuple[ModelSource, Inquiry]]:
        """Return the models with the results of their bricks; nothing is predicted.

        Models that cannot be loaded are left out, with a remark; where none can, the first refusal is raised.
        """
        taken = [source.in_format(form or self.preferred) for source in sources]
        loaded = load_all(taken, lambda source: self._graph(source, level, self.loader), self.remarks)
        cut = ((source, decompose(graph, self.options.cutting, self.loader.cache)) for source, graph in loaded)
        return [(source, Inquiry(self.store, found, self.compositions)) for source, found in cut]

    def scope_of(self, sources: Sequence[ModelSource]) -> MeasurementScope:
        """Return whose measurements count for these models."""
        system = self.options.system_in(self.store)
        is_host = system == fingerprint().id
        form, named = self._named(sources, is_host)
        here = usual_runtimes(self.data, self.options.usual_runtime, self.options) if is_host else {}
        usual = {form: self.options.variant_of(it) for form, it in here.items()}
        if is_host and form is None and self.options.exclude_runtimes:
            self._refuse_without_runtime(sources, usual)
        is_exact = named is not None and self.options.runtime == named
        found = MeasurementScope(system, Level.FUSED, is_host, form, named, usual, is_exact)
        if self.options.level is not None:
            return replace(found, level=self.options.level)
        wanted = {found.runtime_for(source.in_format(form or self.preferred)) for source in sources}
        levels = {level for runtime in wanted for level in levels_measured(self.store, system, runtime)}
        any_runtime = levels_measured(self.store, system) if named is None else ()
        return replace(found, level=preferred_level(sorted(levels) or any_runtime))

    def _refuse_without_runtime(self, sources: Sequence[ModelSource], usual: Collection[Format]) -> None:
        precision, kernels = self.options.precision or Precision.F32, self.options.kernels_of("")
        for source in sources:
            taken = source.in_format(self.preferred).format
            if taken not in usual:
                others = [
                    it
                    for it in TRAITS.values()
                    if it.format is taken and precision in it.precisions and it.has_kernels(kernels)
                ]
                advice = "".join(f", or add {it.title}: {it.install_here}" for it in others[:1])
                raise EstimateError(
                    f"no runtime here computes {taken.value} models, such as {source.name}, "
                    f"{' with '.join([f'in {precision.value}', *kernels.words])}: "
                    f"choose another {'variant' if kernels.words else 'precision'}{advice}"
                )

    def _named(self, sources: Sequence[ModelSource], is_host: bool) -> tuple[Format | None, str | None]:
        """Return the format and the identity of the runtime that the options name; it has to run all of the models.

        The identity is None if several runtimes count: those of a framework, on another system.
        """
        asked = self.options.runtime
        if asked is None:
            return None, None
        found = named_runtime(asked, self.data, self.store)
        for source in sources:
            found.require_format_of(source)
        if found.here is not None and (is_host or found.identity is not None):
            return found.format, self.options.variant_of(found.here).identity
        return found.format, found.identity

    def every_way(self, sources: Sequence[ModelSource], scope: MeasurementScope) -> Iterator[SystemEstimate]:
        """Yield each model's estimate from every system, runtime and level that the options allow."""
        level, precision = self.options.level, self.options.precision or Precision.F32
        system = None if self.options.system is None else scope.system
        kernels, known = self.options.kernels_of(""), by_id(self.store.runtimes())
        ways = combinations(self.store.select(noop() if system is None else equal(system=system), order=()))
        forms = {format_of(known.get(it.runtime)) for it in ways} if scope.format is None else {scope.format}
        for each, form in product(levels_measured(self.store) if level is None else (level,), sorted(forms)):
            having = [source for source in sources if form in source.formats]
            for _, inquiry in self.inquiries(having, each, form) if having else ():
                for way in (it.way for it in inquiry.offers if system in (None, it.way.system)):
                    fits = states(way.runtime, self.options.threads, precision, kernels)
                    is_wanted = fits if scope.named is None else scope.named == way.runtime
                    # Models of several formats share bricks.
                    if is_wanted and format_of(known.get(way.runtime)) is form:
                        yield inquiry.by(way)

    def scores(self, sources: Sequence[ModelSource], scope: MeasurementScope) -> "list[tuple[Way, Score]]":
        """Return how well each model that was measured in full would have been predicted, by way of measuring."""
        from dlbricks_tui.estimate.score import scores_on

        asked = self.inquiries(sources, scope.level, scope.format)
        models = ((inquiry.decomposition, scope.runtime_for(source)) for source, inquiry in asked)
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
                    found[answer.source.name].append(replace(one, timing=answer.inquiry.timing(one.way)))
        return {name: held if any(it.is_measured for it in held) else [] for name, held in found.items()}

    def _graph(self, source: ModelSource, level: Level, loader: Loader) -> LayerGraph:
        options = self.options
        try:
            return loader.load(source, level, options.inputs, options.values, options.batch)
        except FusionRefusedError as refused:
            self.remarks.tell(f"estimated as written: {source.name} cannot be fused: {refused}")
            return loader.load(source, Level.WRITTEN, options.inputs, options.values, options.batch)


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


class ThreadSafeEstimator:
    """Answers for one model at a time, from any thread."""

    def __init__(self, store: "SharedStore", data: DataFolder) -> None:
        self._store = store
        # Loaded here: only lists keep latencies.
        from dlbricks_tui.api.model_reading import LatencyCache

        self._data = data
        self.latencies = LatencyCache(data)
        # Kept for the store in use, as training takes time.
        self._predictors: tuple[ResultsDatabase, Predictors] | None = None
        # Kept until there are new results.
        self._known: tuple[object, tuple[EstimateOptions, MeasurementScope, Readings]] | None = None

    @cached_property
    def host(self) -> str:
        """The id of this host as a system."""
        return fingerprint().id

    def available(self) -> "Available":
        """Return the systems and runtimes of the store, and this host."""
        from dlbricks_tui.api.open_models import Available

        with self._store.held(refresh=True) as store:
            return Available(self.host, store.systems(), store.runtimes(), len(store.select(order=())))

    def state(self) -> str:
        """Return a key of this host and its results; answers with equal keys are equal."""
        with self._store.held() as store:
            return repr((self.host, store.generation.covered))

    def answer(self, source: ModelSource, choices: "Choices", read: Callable[[ModelReading], Decomposition]) -> Answer:
        """Return the answer of a model; raise the first refusal of `read` if no reading of the model works."""
        with self._store.held() as store:
            options, scope, readings = self._asked(store, choices)
            choice = CombinationChoice(options, scope, source.in_format(scope.format or source.format))
            taken = readings.of_model(choice)
        # Other panels use the store while models are read. A framework that ends concerns its own reading only.
        found = those_read(taken, read, (UserError,))
        with self._store.held() as store:
            if self._predictors is None or self._predictors[0] is not store:
                self._predictors = store, Predictors(store, self._data.cache)
            how = options.compositions(), self._predictors[1]
            return answer_of(choice, taken, {reading: Inquiry(store, it, *how) for reading, it in found.items()})

    def _asked(self, store: ResultsDatabase, choices: "Choices") -> tuple[EstimateOptions, MeasurementScope, Readings]:
        """Return the settings as options, whose measurements count, and how their runtimes read models."""
        key = store.generation.covered, choices
        if self._known is None or self._known[0] != key:
            options, chosen, host = choices.options(), choices.runtime, self.host
            system = choices.system or host
            form = choices.format if chosen is None else format_of(by_id(store.runtimes()).get(chosen))
            asked = AskedVariant(precision=choices.precision)
            registered = Registry(self._data.path).one_of_each_format(asked=asked)
            taken = usual_runtimes(self._data, options.usual_runtime, asked) if system == host else {}
            usual = {each: options.variant_of(it) for each, it in taken.items()}
            scope = MeasurementScope(
                system, choices.level, system == host, form, chosen, usual, is_exact=chosen is not None
            )
            read = {each: options.optimising_alike(it) for each, it in registered.items()}
            self._known = key, (options, scope, Readings(MeasuredRuntimes(self._data, store, system), read))
        return self._known[1]

    def scores(self, models: Sequence[tuple[ModelSource, Decomposition]], choices: "Choices") -> "tuple[Score, ...]":
        """Return how well models would have been predicted, by the rule of `Estimator.scores`."""
        from dlbricks_tui.estimate.score import scores_on

        with self._store.held(refresh=True) as store:
            _, scope, _ = self._asked(store, choices)
            asked = [(model, scope.runtime_for(source)) for source, model in models]
            return tuple(score for _, score in scores_on(store, scope.system, asked, others=scope.named is None))

    def timing(self, answer: Answer) -> "Timing | None":
        """Return the latency of the whole model, if it was timed end to end."""
        with self._store.held():
            return answer.inquiry.timing(answer.found.way)

    def other_systems(self, answer: Answer) -> tuple[str, ...]:
        """Return the names of the other systems that have results of the model."""
        with self._store.held() as store:
            others = {offer.way.system for offer in answer.inquiry.offers} - {answer.found.way.system}
            known = by_id(store.systems()) if others else {}
        return tuple(sorted(known[system].name if system in known else system for system in others))

    def known_about(self, model: str, choices: "Choices") -> KnownAlready:
        """Return the facts on which the next steps for a model depend; those about the library are not known here."""
        with self._store.held() as store:
            system = choices.system or self.host
            timed = store.select(equal(of="model", good=True, system=system, name=model), order=()).summaries()
            asked = equal(name=model, system=system)
            return KnownAlready(
                combinations=len({(it.runtime, it.batch_size) for it in timed}),
                proofs=len(store.least_first(Proof, asked)),
                load_tests=len(store.least_first(LoadTest, asked)),
                systems=len(store.systems()),
            )

    def measurements(self, pair: "Pair", way: Way) -> Measurements | None:
        """Return the newest good samples of a brick in a context, and its latency in each run, oldest first."""
        with self._store.held() as store:
            asked = equal(brick=pair[0], context=pair[1], of="brick", good=True) & way.query
            found = store.results(asked, order=LEAST_FIRST)
            newest = found.result(-1) if found else None
            if not isinstance(newest, Measurement):
                return None
            return Measurements(newest, tuple(found.values("trimmed_mean_ms")))

    def known(self, conditions: "Conditions", targets: "Iterable[JobKey]", run: str | None = None) -> "Known":
        """Return what a run under these conditions can reuse: all results, or those of one run."""
        # Loaded here: commands that estimate need nothing of runs.
        from dlbricks_tui.measure.known import known_in

        with self._store.held(refresh=True) as store:
            return known_in(store, conditions, targets, run=run)

    def refresh(self) -> bool:
        """Read what other processes have stored since, and return whether there was anything."""
        with self._store.held() as store:
            return store.refresh()


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
    host, found = fingerprint().id, usual_runtimes(data, usual_runtime, AskedVariant(precision=precision))
    with ResultsDatabase(data.store) as store:
        measured = MeasuredRuntimes(data, store, host).measured
        estimates: list[SystemEstimate | None] = []
        for model in models:
            usual = found.get(model.graph.format)
            wanted = "" if usual is None else usual.with_precision(precision).with_threads(threads).identity
            how = threads, stated_precision(wanted), stated_kernels(wanted)
            alike = [it for it in measured if without_variant(it) == without_variant(wanted) and states(it, *how)]
            inquiry = Inquiry(store, model)
            estimates.append(best_of((one for it in alike for one in inquiry.by_runtime(host, it)), wanted))
    return estimates


@contextmanager
def open_estimator(options: EstimateOptions, data: DataFolder, remarks: Remarks = SILENT) -> Iterator[Estimator]:
    """Open a user's store, and a loader that fuses models as the runtime of the options does.

    At the end, tell of the damage of the store.
    """
    compositions = options.compositions()
    with open_store(data, remarks.tell) as store:
        runtimes = _runtimes_here(options, data, store)
        preferred = runtimes[0].traits.format if runtimes else Registry(data.path).preferred_format
        most_bytes = None if options.batch is None else options.memory_bytes_in(store)
        with ModelLoaders(data, remarks, *runtimes, most_bytes=most_bytes) as readers:
            predictors = Predictors(store, data.cache)
            yield Estimator(options, data, store, readers, remarks, compositions, preferred, predictors)


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
        if options.exclude_runtimes and not (here is not None and here.can_have(options)):
            fitting = [it for it in registry.all() if it.can_have(options)]
            first = {it.traits.format: it for it in reversed(fitting)}
            return [options.optimising_alike(it) for it in fitting if it is first[it.traits.format]]
    return [] if here is None else [options.optimising_alike(here)]
