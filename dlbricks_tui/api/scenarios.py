"""Predict the load that a model can serve from stored results and times, and find load tests of the same scenario."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

from tinydb import where

from dlbricks_tui.analysis.what_if import Execution
from dlbricks_tui.api.documents import taken
from dlbricks_tui.api.estimating import Answer, Estimator
from dlbricks_tui.api.opening import reference_to, run_command
from dlbricks_tui.api.scope import MeasuredRuntimes, MeasurementScope
from dlbricks_tui.bricks.identity import end_to_end_keys
from dlbricks_tui.estimate.inquiry import Inquiry
from dlbricks_tui.estimate.system_estimate import SystemEstimate
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.measure.carriers import PLACEMENT_SHARE
from dlbricks_tui.models.graph import LayerGraph
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.runtime.runtime import MOST_THREADS, Runtime
from dlbricks_tui.runtime.variant import remarks_on, stated_precision, stated_threads
from dlbricks_tui.scenarios.kinds import AskedScenario, ScenarioKind
from dlbricks_tui.scenarios.predicting import (
    BrickSamples,
    CurvePoint,
    ServiceSource,
    ServiceTime,
    ServiceTimes,
    composed_service,
    filled,
    load_curve,
    predict,
    streamed_service,
    tests_together,
    timed_service,
    with_load_tests,
    with_other_arrivals,
)
from dlbricks_tui.scenarios.scenario import (
    PredictedLoad,
    Scenario,
    ScenarioError,
    ScenarioOrder,
    batch_sizes_up_to,
    best_of,
    fewest_queries,
    usual_percentile,
)
from dlbricks_tui.settings.loads import BATCHES, BOUND, INSTANCES, PERCENTILE, RATE
from dlbricks_tui.settings.setting import require_allowed
from dlbricks_tui.store.records import LoadTest
from dlbricks_tui.store.selections import by_id, equal
from dlbricks_tui.wording.numbers import counted, too_many_threads

# LoadGen prepares all of them before a test.
_MOST_REQUESTS_IN_A_TEST = 1_000_000
# Predicted bricks with a larger share of an estimate count less than an interpolation between measured batch sizes.
_MOST_PREDICTED = 0.05
# The largest batch that an offline scenario tries, unless the options say another.
_USUAL_OFFLINE_BATCH = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioOptions(AskedScenario):
    """A scenario as a user asks for it; how the model is executed is said by the options of its estimator."""

    # The largest batch of waiting requests; several sizes are the only ones. Without any, the options of the estimator
    # or the kind decide.
    batch_sizes: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        require_allowed(self, (BOUND, RATE, PERCENTILE, INSTANCES), ScenarioError)
        if self.percentile is not None and (queries := fewest_queries(self.percentile)) > _MOST_REQUESTS_IN_A_TEST:
            raise ScenarioError(
                f"percentile {self.percentile:.10g}: a test needs {queries:,} requests; give a lower one, such as 99.9"
            )
        if self.rate is not None and self.kind is not ScenarioKind.SERVER:
            raise ScenarioError(f"kind {self.kind.value} has no rate: leave --rate out, or choose --kind server")
        if self.kind is ScenarioKind.SERVER and self.bound_ms is None and self.rate is None:
            raise ScenarioError("a server needs a bound of its latency (--bound-ms), or a rate (--rate)")

    def scenario(self, batch: int | None = None) -> Scenario:
        """Return the scenario; without batch sizes, with batches of at most so many requests."""
        usual = _USUAL_OFFLINE_BATCH if self.kind is ScenarioKind.OFFLINE else 1
        given = self.batch_sizes or (usual if batch is None else batch,)
        BATCHES.require(given, ScenarioError)
        for size in given:
            if size != 1 and self.kind is ScenarioKind.SINGLE:
                raise ScenarioError(f"batch {size}: a single stream has one request at a time; leave --batch out")
        # A request that waits alone is served alone.
        single = () if self.kind is ScenarioKind.OFFLINE else (1,)
        percentile = usual_percentile(self.kind) if self.percentile is None else self.percentile
        sizes = batch_sizes_up_to(*given) if len(given) == 1 else tuple(sorted({*given, *single}))
        return taken(Scenario, self, percentile=percentile, batch_sizes=sizes)


@dataclass(frozen=True, slots=True)
class ScenarioAnswer:
    """A scenario of a model on a system: what is predicted, what was measured, and the order to measure it."""

    source: ModelSource
    system: str
    # None if no runtime is known that runs the model.
    execution: Execution | None
    scenario: Scenario
    # None if the service times are not known, or the bound is impossible.
    prediction: PredictedLoad | None
    service: ServiceTimes | None
    # The reason why there is no prediction, in one line; empty if there is one.
    refusal: str
    # The command that measures the missing service times; empty if none is missing.
    cure: str
    # None if the scenario cannot be measured on this host.
    order: ScenarioOrder | None
    # Stored tests of this scenario in this execution, and of the model in any; the newest first.
    load_tests: tuple[LoadTest, ...]
    load_tests_of_model: tuple[LoadTest, ...]
    # If the highest rate is sought: tests at given rates, and those of searches that ended before their result.
    load_tests_at_rates: tuple[LoadTest, ...]
    # Lines that a user should know before believing the prediction.
    notes: tuple[str, ...]

    @property
    def remarks(self) -> list[str]:
        """Remarks on the precision in which the model is executed."""
        return [] if self.execution is None else remarks_on([stated_precision(self.execution.runtime.identity)])

    @property
    def best_test(self) -> LoadTest | None:
        """The stored test that answers the scenario; None if there is none."""
        return best_of(self.load_tests)

    @property
    def stored_tests(self) -> tuple[LoadTest, ...]:
        """The stored tests of this scenario, with those at given rates; the newest first."""
        found = (*self.load_tests, *self.load_tests_at_rates)
        return tuple(sorted(found, key=lambda test: test.when, reverse=True))

    def curve(self, points: int = 20) -> tuple[CurvePoint, ...]:
        """Return the predicted percentile against the rate of a server; nothing without service times."""
        return () if self.service is None else load_curve(self.scenario, self.service, points)


def scenario_answer(estimator: Estimator, source: ModelSource, asked: ScenarioOptions) -> ScenarioAnswer:
    """Return what is known of a scenario of a model; nothing is measured.

    Unless the user chose a combination, the one whose load test answers the scenario comes before a prediction. The
    order to measure stays that of the usual combination.
    """
    scenario = asked.scenario(estimator.options.batch)
    options = estimator.options
    is_open = options.threads is None and options.usual_threads is None
    if scenario.instances > 1 and is_open and options.system is None:
        # Instances share the cores.
        threads = max(1, fingerprint().cores_to_use // scenario.instances)
        estimator = replace(estimator, options=replace(options, threads=threads))
    usual = _Scenarios(estimator, source, scenario)
    answer, test = usual.answer(), usual.test_of_another_execution
    if test is None:
        return answer
    tested = replace(estimator, options=replace(estimator.options, runtime=test.runtime, level=test.level))
    return replace(_Scenarios(tested, source, scenario).answer(), order=answer.order)


class _Scenarios:
    """The results of a model for a scenario."""

    def __init__(self, estimator: Estimator, source: ModelSource, scenario: Scenario) -> None:
        self._estimator = estimator
        self._source = source
        self._scenario = scenario
        self._scope = estimator.scope_of([source])
        self._runtimes = MeasuredRuntimes(estimator.data, estimator.store, self._scope.system)
        # The file's own batch size is not a choice, so that the results of a plain run count.
        own = self._asked(self._scope, batch=None)
        self._own_size = own.decomposition.graph.batch_size
        self._model = own if self._own_size == 1 else self._asked(self._scope, batch=1)

    def answer(self) -> ScenarioAnswer:
        """Return what is known of the scenario."""
        model, scenario, store = self._model, self._scenario, self._estimator.store
        way = model.found.way
        alike = [it for it in self._own_tests if has_settings_of(it, scenario)]
        runtime = self._runtimes.of(way.runtime) if way.runtime else None
        execution = None if runtime is None else Execution(runtime, way.level)
        by_size = self._services(scenario.batch_sizes, self._runtimes.batch_sizes(model.source.name))
        service: ServiceTimes | None = None
        prediction: PredictedLoad | None = None
        refusal = cure = ""
        known = {it.batch_size for it in by_size}
        lacking = [size for size in scenario.batch_sizes if size not in known]
        if runtime is None:
            refusal = f"no runtime is known that runs {self._source.name}; `dlbricks runtimes` lists those of this host"
        elif lacking:
            cure = self._cure(runtime, lacking)
            sizes = f"size{'' if len(lacking) == 1 else 's'} {', '.join(map(str, lacking))}"
            refusal = f"{self._source.name} has no results at batch {sizes}; measure them: {cure}"
        else:
            tests = store.least_first(LoadTest, equal(system=way.system))
            crowded = ServiceTimes(by_size, crowding=max(1.0, self._threads / self._cores))
            service = with_load_tests(crowded, tests, way.runtime, scenario.instances)
            try:
                prediction = predict(scenario, service)
            except ScenarioError as error:
                refusal = str(error)
        return ScenarioAnswer(
            source=model.source,
            system=way.system,
            execution=execution,
            scenario=scenario,
            prediction=prediction,
            service=service,
            refusal=refusal,
            cure=cure,
            order=self._order(execution, prediction),
            load_tests=tuple(self._answering(self._own_tests)),
            load_tests_of_model=self._tests_of_model,
            load_tests_at_rates=tuple([it for it in alike if not it.sought]) if scenario.seeks_rate else (),
            notes=tuple(self._notes(service, prediction)),
        )

    @property
    def test_of_another_execution(self) -> LoadTest | None:
        """The stored test that answers the scenario if the user chose no execution, and this one has none."""
        if self._model.is_chosen:
            return None
        return None if best_of(self._answering(self._own_tests)) else best_of(self._answering(self._tests_of_model))

    def _answering(self, tests: Sequence[LoadTest]) -> list[LoadTest]:
        return [it for it in tests if has_settings_of(it, self._scenario) and has_rate_of(it, self._scenario)]

    def _asked(self, scope: MeasurementScope | None, **changed: Any) -> Answer:
        """Return the model with its estimate under changed options, which may need a scope of their own."""
        estimator = replace(self._estimator, options=replace(self._estimator.options, **changed))
        (found,) = estimator.answers([self._source], scope or estimator.scope_of([self._source]))
        return found

    def _cure(self, runtime: Runtime, sizes: Sequence[int]) -> str:
        """Return the command that measures the model at these batch sizes."""
        options, source = self._estimator.options, self._source
        level, of_file = self._model.found.way.level, sizes == [1] and self._own_size == 1
        # Without --batch a run takes the batch size of the file.
        batches = [] if of_file else ["--batch", ",".join(map(str, sizes))]
        # A name may stand for several models that are no samples; their paths do not.
        named = reference_to(source, has_name=source.task is not None)
        return run_command(named, runtime, level, None, options, *batches, "--end-to-end")

    def _order(self, execution: Execution | None, prediction: PredictedLoad | None) -> ScenarioOrder | None:
        """Return the order to measure the scenario; None if the runtime is not on this host."""
        if execution is None or not self._scope.is_host or not execution.runtime.python:
            return None
        scenario, options = self._scenario, self._estimator.options
        return ScenarioOrder(
            source=self._model.source,
            execution=execution,
            scenario=scenario,
            first_rate=prediction.per_second.value if scenario.seeks_rate and prediction is not None else None,
            inputs=options.inputs,
            values=options.values,
        )

    @cached_property
    def _tests_of_model(self) -> tuple[LoadTest, ...]:
        """All stored tests of the model on the system, the newest first."""
        graphs = [self._model.decomposition.graph, *self._graphs_of_other_files()]
        keys = dict.fromkeys(key for graph in graphs for key in end_to_end_keys(graph).values())
        found = [
            test for key in keys for test in self._estimator.store.load_tests_of(key, self._model.found.way.system)
        ]
        return tuple(sorted(found, key=lambda test: test.when, reverse=True))

    def _graphs_of_other_files(self) -> Iterator[LayerGraph]:
        """Yield the model as its files of other formats have it, if tests of this name ran them."""
        model = self._model
        named = equal(system=model.found.way.system, name=self._source.name)
        tested = sorted({it.runtime for it in self._estimator.store.least_first(LoadTest, named)})
        by_format = {self._runtimes.of(identity).traits.format: identity for identity in tested}
        for form, identity in by_format.items():
            if form is not model.source.format and form in self._source.formats:
                yield self._asked(None, batch=1, runtime=identity, threads=None).decomposition.graph

    @property
    def _own_tests(self) -> Sequence[LoadTest]:
        """The load tests of the model in this execution."""
        way = self._model.found.way
        return [it for it in self._tests_of_model if (it.runtime, it.level) == (way.runtime, way.level)]

    @property
    def _streams(self) -> Sequence[LoadTest]:
        """The valid tests of a single stream that count together: their requests are end-to-end samples, too."""
        return tests_together(it for it in self._own_tests if it.kind == ScenarioKind.SINGLE.value and it.valid)

    @property
    def _threads(self) -> int:
        """The threads of all instances; 0 if the framework decides their number."""
        return self._scenario.instances * (stated_threads(self._model.found.way.runtime) or 0)

    @property
    def _cores(self) -> int:
        """The cores of the system; any number if it is not known."""
        if self._scope.is_host:
            return fingerprint().cores_to_use
        system = by_id(self._estimator.store.systems()).get(self._model.found.way.system)
        return MOST_THREADS if system is None else max(1, system.cores_to_use)

    def _notes(self, service: ServiceTimes | None, prediction: PredictedLoad | None) -> Iterator[str]:
        """Yield what a user should know before believing the prediction."""
        scenario = self._scenario
        if warning := too_many_threads([self._threads], self._cores):
            yield warning
        if service is None:
            return
        if prediction is not None and scenario.seeks_rate:
            others = with_other_arrivals(scenario, service)
            yield (
                "all load tests send their requests at the same times: with others, the highest rate is "
                f"{others.value:.3g} ({others.low:.3g} to {others.high:.3g}) requests per second"
            )
        fewest = min(len(it.samples_ms) for it in service.by_size)
        if fewest < 100:
            yield (
                f"service times from {counted(fewest, 'sample')} of runs that follow one another: they do not show how "
                "long the slowest of many requests take"
            )
        if scenario.instances > 1 and service.slowdown is None:
            yield (
                "it is not known how much the instances slow one another down: an offline test of one instance and one "
                f"of {scenario.instances} would show it"
            )
        if not service.passing_is_measured:
            yield (
                f"no load test has measured it: {service.passing_ms:g} ms are assumed for passing a request to the "
                f"worker, and {service.wake_up_ms:g} ms more after a pause"
            )

    def _services(self, sizes: Sequence[int], timed: Sequence[int]) -> tuple[ServiceTime, ...]:
        """Return the service times of the batch sizes for which there are results, or results of those around.

        `timed` has the sizes at which the model was timed end to end.
        """
        known: dict[int, ServiceTime] = {}
        doubtful: dict[int, ServiceTime] = {}
        larger = [it for it in sorted(timed) if it > max(sizes)][:1]
        for size in (*sizes, *larger):
            if size in sizes or max(sizes) not in known:
                # Times of which much is predicted count less.
                service, is_doubtful = self._service(size)
                if service is not None:
                    (doubtful if is_doubtful else known)[size] = service
        certain = {it.batch_size: it for it in filled(known, sizes)}
        return filled({**doubtful, **certain}, sizes)

    def _service(self, size: int) -> tuple[ServiceTime | None, bool]:
        """Return the service time of a batch size, if there are results, and whether much of it is predicted."""
        decomposition, found = self._model.decomposition, self._model.found
        if size != 1:
            estimator, way = self._estimator, found.way
            options = replace(estimator.options, batch=None if size == self._own_size else size)
            asked = replace(estimator, options=options).inquiry(self._model.source, self._model.reading)
            decomposition = asked.decomposition
            found = asked.on(way.system, way.runtime) or asked.empty(way.system, way.runtime)
        inquiry = Inquiry(self._estimator.store, decomposition, self._estimator.compositions)
        service = self._service_of(size, inquiry, found)
        is_estimate = service is not None and service.source is ServiceSource.ESTIMATE
        return service, is_estimate and found.estimate.predicted_share > _MOST_PREDICTED

    def _service_of(self, size: int, inquiry: Inquiry, found: SystemEstimate) -> ServiceTime | None:
        """Return the service time from the newest streams or runs of the model, else from a complete estimate."""
        timed, streams = inquiry.timed(found.way), self._streams if size == 1 else ()
        if streams and (timed is None or timed.when < streams[-1].when):
            return streamed_service(streams, PLACEMENT_SHARE)
        if timed is not None and found.end_to_end is not None:
            return timed_service(size, inquiry.steady_samples_ms(timed), found.end_to_end, PLACEMENT_SHARE)
        latency = found.estimate.latency
        return None if latency is None else composed_service(size, latency, self._brick_samples(found))

    def _brick_samples(self, found: SystemEstimate) -> Iterator[BrickSamples]:
        """Yield the samples of each measured brick of an estimate."""
        times: dict[str, int] = {}
        for part in found.estimate.parts:
            for result in part.measured.results[:1] if part.measured is not None else ():
                times[result] = times.get(result, 0) + part.times
        selection = self._estimator.store.select(where("id").one_of(list(times)), order=())
        for place, summary in enumerate(selection):
            record = selection.result(place)
            # The reference is timed in each round: its latency tells the rounds apart.
            yield BrickSamples(f"{summary.run} {summary.reference_ms}", times[summary.id], record.samples_ms)


def has_settings_of(test: LoadTest, scenario: Scenario) -> bool:
    """Return whether a stored test has all settings of a scenario, except for the rate."""
    if (test.kind, test.percentile, test.instances) != (scenario.kind.value, scenario.percentile, scenario.instances):
        return False
    if scenario.kind is ScenarioKind.OFFLINE:
        return test.batch_size in scenario.batch_sizes
    return (test.bound_ms, test.batch_size) == (scenario.bound_ms, max(scenario.batch_sizes))


def has_rate_of(test: LoadTest, scenario: Scenario) -> bool:
    """Return whether a stored test was at the rate of a scenario, or has found the highest one if that is sought."""
    return test.sought if scenario.seeks_rate else not test.sought and test.rate == scenario.rate


# The usual bound over the time of a single request.
_USUAL_BOUND = 10.0


@dataclass(frozen=True, kw_only=True)
class ScenarioSettings(AskedScenario):
    """A scenario as the user has chosen it; None is the usual value.

    The default bound of a server is ten times its estimate; other kinds have none.
    """

    # The names of the runtimes to choose from, the usual one first.
    runtimes: tuple[str, ...] = ()
    kind: ScenarioKind = ScenarioKind.SERVER
    # The largest batch of waiting requests, or several sizes: these ones.
    batch_sizes: tuple[int, ...] = ()
    threads: int | None = None
    runtime: str | None = None
    # What the usual bound stands for, once it is known.
    usual_bound_ms: float | None = field(default=None, compare=False)

    @property
    def bound_in_words(self) -> str:
        bound_ms = self.usual_bound_ms if self.bound_ms is None else self.bound_ms
        if bound_ms is not None:
            return f"{bound_ms:g} ms"
        return "default" if self.kind is ScenarioKind.SERVER else "none"

    @property
    def percentile_in_words(self) -> str:
        return f"p{usual_percentile(self.kind) if self.percentile is None else self.percentile:g}"

    def like(self, test: LoadTest) -> "ScenarioSettings":
        """Return the settings that predict the scenario of a load test."""
        return replace(
            self,
            kind=ScenarioKind(test.kind),
            bound_ms=test.bound_ms,
            percentile=test.percentile,
            rate=None if test.sought else test.rate,
            batch_sizes=(test.batch_size,),
            instances=test.instances,
            threads=stated_threads(test.runtime),
            runtime=test.runtime,
        )


class ScenarioOfModel(NamedTuple):
    """A scenario of a model with its prediction, and the stored load tests of the model."""

    answer: ScenarioAnswer
    # The predicted latency of the percentile at rates of a server.
    curve: tuple[tuple[float, float], ...]
    # What is known of the model by itself, on which the prediction rests.
    results: tuple[SystemEstimate, ...] = ()

    def is_of(self, test: LoadTest | None) -> bool:
        """Return whether a load test is of the same scenario and execution."""
        return test is not None and any(it.uuid == test.uuid for it in self.answer.load_tests)


def predicted_scenario(estimator: Estimator, source: ModelSource, settings: ScenarioSettings) -> ScenarioOfModel:
    """Predict a scenario from stored results; raise a UserError where that is not possible."""
    found = scenario_answer(estimator, source, _options_for(estimator, source, settings))
    results = tuple(it.found for it in estimator.answers([source], estimator.scope_of([source])))
    is_server = found.scenario.kind is ScenarioKind.SERVER
    curve = tuple((it.rate, it.latency_ms.value) for it in found.curve()) if is_server else ()
    return ScenarioOfModel(found, curve, results)


def _options_for(estimator: Estimator, source: ModelSource, settings: ScenarioSettings) -> ScenarioOptions:
    asked = ScenarioOptions(
        kind=ScenarioKind.SINGLE, percentile=settings.percentile, instances=settings.instances, full=settings.full
    )
    is_server = settings.kind is ScenarioKind.SERVER
    bound_ms = settings.bound_ms
    if is_server and bound_ms is None:
        service = scenario_answer(estimator, source, asked).service
        if service is not None:
            bound_ms = float(f"{_USUAL_BOUND * service.single_ms:.2g}")
        elif settings.rate is None:
            raise ScenarioError(
                "nothing was measured of it yet, so there is no default bound: set one, or run the model first"
            )
    rate = settings.rate if is_server else None
    return replace(asked, kind=settings.kind, bound_ms=bound_ms, rate=rate, batch_sizes=settings.batch_sizes)
