"""Load tests: a scenario, or the users of a language model, predicted and measured in a separate process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from dlbricks_tui.api.documents import taken
from dlbricks_tui.api.language_answers import LanguageExecution, LanguageOptions, questions
from dlbricks_tui.api.language_models import measure as measure_language
from dlbricks_tui.api.scenarios import ScenarioAnswer
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.jobs.errors import JobError
from dlbricks_tui.jobs.events import Event
from dlbricks_tui.language.architecture import LanguageError
from dlbricks_tui.language.composing import StepTime, memory_need, steps_time
from dlbricks_tui.language.end_to_end import driven_load
from dlbricks_tui.language.opening import NamedModel
from dlbricks_tui.language.orders import Drive, DrivenLoad, LanguageOrder, LanguageQuestion
from dlbricks_tui.language.predicting import BrickPredictor
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runtime.variant import Precision, stated_precision, stated_threads
from dlbricks_tui.scenarios.kinds import MOST_USERS, ScenarioKind
from dlbricks_tui.scenarios.scenario import (
    CONFIDENCE,
    LoadFigures,
    LoadTestDone,
    ScenarioError,
    ScenarioOrder,
    batch_sizes_up_to,
    fewest_queries,
    is_positive,
    measured_load,
    meets_bound,
    percentile_ms,
)
from dlbricks_tui.scenarios.tokens import StepLatencies, TokenLoad, TokenQueue, TokenScenario, TokenServing
from dlbricks_tui.settings.loads import BATCHES, FIRST_TOKEN, PER_TOKEN, PERCENTILE, THINK, USERS
from dlbricks_tui.settings.setting import require_allowed
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import LoadTest, System

# The figures of an outcome, predicted or measured.
_FIGURES = ("p50_ms", "p90_ms", "p99_ms", "p999_ms", "per_second")


class LoadProcessError(ScenarioError):
    """The process that measures a scenario cannot be started, or ended before the scenario was measured."""

    def __init__(self, reason: str, tests: Sequence[LoadTestDone] = ()) -> None:
        super().__init__(reason)
        # Those that had ended before.
        self.tests = tests


@dataclass(frozen=True, slots=True)
class MeasuredTest:
    """A load test as it was stored, all tests of LoadGen that led to it, and warnings about it."""

    test: LoadTest
    tests: Sequence[LoadTestDone]
    warnings: tuple[str, ...]

    @property
    def is_positive(self) -> bool:
        """True if LoadGen calls the test valid, and its percentile is within the bound."""
        return is_positive(self.test)


def order_of(answer: ScenarioAnswer, *, is_system_named: bool) -> ScenarioOrder:
    """Return the order to measure a scenario; raise ScenarioError where this host cannot measure it."""
    # Loaded here: predictions need no LoadGen.
    from dlbricks_tui.scenarios.loadgen import require_loadgen

    if answer.order is not None:
        require_loadgen()
        return answer.order
    if is_system_named:
        raise ScenarioError("scenarios are measured on this host: name no system, or predict only")
    raise ScenarioError(f"no runtime of this host runs {answer.source.name}; `dlbricks runtimes` lists them")


def measure(order: ScenarioOrder, data: DataFolder, take: Callable[[Event], None]) -> MeasuredTest:
    """Measure a scenario, and pass on the events of the process; raise LoadProcessError if it fails."""
    # Loaded here: predictions need no process.
    from dlbricks_tui.api.followed_jobs import LoadJob

    job = LoadJob(order, data)
    try:
        job.run(take)
    except JobError as error:
        raise LoadProcessError(f"the scenario was not measured: {error}", job.ended) from error
    if job.done is None:
        raise LoadProcessError("the process that measures ended without a result", job.ended)
    with ResultsDatabase(data.store) as store:
        test = store.load_test(job.done.uuid)
    if test is None:
        raise LoadProcessError("the process that measures stored no result", job.ended)
    return MeasuredTest(test, job.ended, job.done.warnings)


@dataclass(frozen=True, slots=True)
class LoadIntervals:
    """The 95 % intervals of a predicted outcome: a lower and an upper bound of each figure."""

    p50_ms: tuple[float, float]
    p90_ms: tuple[float, float]
    p99_ms: tuple[float, float]
    p999_ms: tuple[float, float]
    per_second: tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedScenario:
    """The outcome of a scenario by a simulated queue, from stored results."""

    p50_ms: float
    p90_ms: float
    p99_ms: float
    p999_ms: float
    # Of a server without a rate: the highest rate within the bound.
    per_second: float
    # True: the percentile is within the bound, or there is no bound.
    valid: bool
    # Simulated ones.
    queries: int
    batch_size: int
    intervals: LoadIntervals


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredScenario:
    """The outcome of a scenario by LoadGen."""

    p50_ms: float
    p90_ms: float
    p99_ms: float
    p999_ms: float
    # Of a server without a rate: the highest rate that passed. Else the requests that were answered, or the samples of
    # multi stream and offline.
    per_second: float
    # LoadGen's verdict, and its reasons if it is negative.
    valid: bool
    reasons: tuple[str, ...]
    queries: int
    batch_size: int
    # The latency of the percentile of the scenario, and whether it is within the bound; null without a bound.
    percentile_ms: float
    bound_met: bool | None
    # The requests per second that a server was sent; null for other kinds. If `sought`, the highest that passed.
    rate: float | None
    sought: bool
    # Of a positive verdict about the percentile; null if the verdict is negative, or the queries are too few.
    confidence: float | None
    # What passing a request to the worker and back adds to its inference.
    passing_ms: float
    wake_up_ms: float
    seconds: float
    when: str
    id: str
    # The folder of LoadGen's logs; null if it is not on this host.
    logs: Path | None


@dataclass(frozen=True, slots=True)
class TestedLoad:
    """One of the tests of a measurement; it passes if it is valid, and few enough requests are over the bound."""

    # The requests per second that a server was sent; null for other kinds.
    rate: float | None
    batch_size: int
    percentile_ms: float
    per_second: float
    passed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioResult:
    """The load that a model serves in a scenario: predicted, measured, or both."""

    model: str
    system: str
    # None if no runtime is known that runs the model.
    runtime: str | None
    level: Level | None
    threads: int | None
    precision: Precision | None
    kind: ScenarioKind
    percentile: float
    bound_ms: float | None
    # The given rate of a server; null if the highest one is sought.
    rate: float | None
    # The largest size of batches.
    batch_size: int
    batch_sizes: tuple[int, ...]
    instances: int
    full: bool
    predicted: PredictedScenario | None
    measured: MeasuredScenario | None
    # All tests of the measurement, in their order, also if it failed. The highest valid rate counts, or offline the
    # highest throughput.
    tests: tuple[TestedLoad, ...]
    # The stored measurement that answers this scenario, else the newest, if it was not measured now.
    stored: MeasuredScenario | None
    # All of them, and if the highest rate is sought, the stored tests at given rates; the newest first.
    stored_tests: tuple[MeasuredScenario, ...]
    # The predicted over the measured, or else stored, figures, minus one.
    difference: LoadFigures | None
    # The reason why it could not be measured, or else predicted, as was asked for.
    obstacle: str | None
    # What one should know before believing the prediction or the measurement.
    warnings: tuple[str, ...]


def scenario_result(
    answer: ScenarioAnswer, found: MeasuredTest | LoadProcessError | None, data: DataFolder, *, predicts: bool
) -> ScenarioResult:
    """Return the outcome of a scenario as a document; without `predicts`, no prediction was asked for."""
    measured = measured_scenario(found.test, data) if isinstance(found, MeasuredTest) else None
    known = answer.best_test or next(iter(answer.load_tests), None)
    stored = None if measured is not None or known is None else measured_scenario(known, data)
    failure = str(found) if isinstance(found, LoadProcessError) else ""
    noted = answer.notes if answer.prediction is not None and predicts else ()
    warned = found.warnings if isinstance(found, MeasuredTest) else ()
    execution = answer.execution
    predicted = answer.prediction if predicts else None
    runtime = None if execution is None else execution.runtime.identity
    beside = measured or stored
    figures = () if predicted is None else tuple(getattr(predicted, it) for it in _FIGURES)
    ratios = (it.value / getattr(beside, name) - 1 for name, it in zip(_FIGURES, figures, strict=True))
    return taken(
        ScenarioResult,
        answer.scenario,
        model=answer.source.name,
        system=answer.system,
        runtime=runtime,
        level=None if execution is None else execution.level,
        threads=None if runtime is None else stated_threads(runtime),
        precision=None if runtime is None else stated_precision(runtime),
        batch_size=max(answer.scenario.batch_sizes),
        predicted=None
        if predicted is None
        else taken(
            PredictedScenario,
            predicted,
            **{name: it.value for name, it in zip(_FIGURES, figures, strict=True)},
            intervals=LoadIntervals(*((it.low, it.high) for it in figures)),
        ),
        measured=measured,
        tests=() if found is None else tuple(taken(TestedLoad, it) for it in found.tests),
        stored=stored,
        stored_tests=() if measured is not None else tuple([measured_scenario(it, data) for it in answer.stored_tests]),
        difference=None if predicted is None or beside is None else LoadFigures(*ratios),
        obstacle=failure or (answer.refusal if predicts else "") or None,
        warnings=(*noted, *warned),
    )


def measured_scenario(test: LoadTest, data: DataFolder) -> MeasuredScenario:
    """Return a stored load test as a document."""
    logs = data.scenarios / test.uuid
    decides = test.valid and test.kind != ScenarioKind.OFFLINE.value and test.queries >= fewest_queries(test.percentile)
    return taken(
        MeasuredScenario,
        measured_load(test),
        test,
        percentile_ms=percentile_ms(test),
        bound_met=None if test.bound_ms is None else meets_bound(test),
        confidence=CONFIDENCE if decides else None,
        id=test.uuid,
        logs=logs if logs.is_dir() else None,
    )


# The engine that users ask makes batches in its runtime only.
_FRAMEWORK = "onnxruntime"
# onnxruntime-genai makes no continuous batches on processors.
_DRIVEN = (TokenServing.SINGLE, TokenServing.STATIC)
# The numbers of users of a curve.
_CURVE = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, MOST_USERS)
_FEWEST_SHOWN, _BEYOND = 3, 1.5
# The latency of a step, between the ends of its interval: all steps are wrong alike.
_ENDS: tuple[Callable[[StepTime], float], ...] = (
    lambda it: it.bounds_ms[0],
    lambda it: it.ms,
    lambda it: it.bounds_ms[1],
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenLoadOptions(LanguageOptions):
    """The requests of users, the bounds of their delays, and the execution of the model: the first of several."""

    first_token_ms: float = 2000.0
    per_token_ms: float = 100.0
    percentile: float = 90.0
    think_s: float = 0.0
    # The most answers that are made together.
    batch: int = 8
    # Empty: the most within both bounds.
    users: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        LanguageOptions.__post_init__(self)
        require_allowed(self, (FIRST_TOKEN, PER_TOKEN, PERCENTILE, USERS), LanguageError)
        BATCHES.require(self.batch, LanguageError)
        THINK.require(self.think_s or None, LanguageError)


@dataclass(frozen=True, slots=True, kw_only=True)
class UsersLoad:
    """The load of so many users: predicted, and driven in the engine."""

    # The 95 % intervals follow from those of the steps.
    predicted: TokenLoad
    first_token_interval_ms: tuple[float, float]
    per_token_interval_ms: tuple[float, float]
    # null if users were not driven.
    driven: DrivenLoad | None
    # Predicted with the few answers and the pauses of the drive, to compare with it.
    predicted_drive: TokenLoad | None

    @property
    def is_met(self) -> bool:
        """True if both delays are within their bounds, as driven where they were."""
        return (self.driven.load if self.driven else self.predicted).within


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedUsers:
    """The users that an engine serves in one way."""

    # `single`: one answer after another. `static`: the requests that wait when a batch has ended are the next one.
    # `continuous`: requests join and leave a batch between two steps.
    serving: str
    # The most answers that are made together.
    batch: int
    # The memory for so many, and whether the host has it.
    memory_bytes: int
    fits: bool
    # The most users within both bounds, at most 256; 0: one is too many.
    most_users: int
    # From the 95 % intervals of the steps.
    most_users_interval: tuple[int, int]
    # Of the most users, and of those that were asked for.
    loads: tuple[UsersLoad, ...]
    # By users, for the picture.
    curve: tuple[TokenLoad, ...]


@dataclass(frozen=True, slots=True)
class BatchStep:
    """A step that makes a token of each answer in a batch, with its 95 % interval."""

    answers: int
    ms: float
    low_ms: float
    high_ms: float
    # True unless all of it was measured.
    predicted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenLoadAnswer(LanguageExecution):
    """The users that a language model serves on a system within bounds of both delays."""

    # What users ask for, their pauses, and both bounds.
    scenario: TokenScenario
    prefill_ms: float
    # Of a token each, by the number of answers in a batch.
    steps: tuple[BatchStep, ...]
    # One answer after another, static and continuous batches.
    ways: tuple[ServedUsers, ...]

    def is_met(self, users: Sequence[int]) -> bool:
        """Return whether one way serves all of these users within both bounds; without any, whether it serves one."""
        ways = [it for it in self.ways if it.fits]
        if not users:
            return any(way.most_users for way in ways)
        return any(all(it.is_met for it in way.loads if it.predicted.users in users) for way in ways)


# What `dlbricks scenario --json` prints.
ScenarioDocument = ScenarioResult | TokenLoadAnswer


def token_load(model: NamedModel, options: TokenLoadOptions, data: DataFolder) -> TokenLoadAnswer:
    """Return what the store knows and predicts of a load; nothing is measured."""
    asked, scenario, here = _question(model, options, data), taken(TokenScenario, options), fingerprint()
    with ResultsDatabase(data.store) as store:
        host = BrickPredictor.of_host(store, here.id, asked.runtime.identity, asked.threads)
        (_, prefill), *times = [(it, host.step(asked, it)) for it in asked.steps]
        alone = [found for step, found in times if step.batch == 1]
        steps = {1: steps_time((0.5, alone[0]), (0.5, alone[-1]))}
        steps |= {step.batch: found for step, found in times if step.batch > 1}
        driven = partial(driven_load, store, here.id, asked, scenario)
        found = answered(asked, scenario, prefill, steps, options.users, driven, here)
        return replace(found, has_rough_peaks=host.rates.is_rough)


def answered(
    asked: LanguageQuestion,
    scenario: TokenScenario,
    prefill: StepTime,
    steps: Mapping[int, StepTime],
    users: Sequence[int],
    driven: Callable[[TokenServing, int], DrivenLoad | None],
    system: System,
) -> TokenLoadAnswer:
    """Return the answer that follows from the latencies of a prompt, of steps by their batches, and from drives."""
    low, usual, high = queues = [
        TokenQueue(scenario, StepLatencies(of(prefill), {size: of(it) for size, it in steps.items()})) for of in _ENDS
    ]
    decoder = asked.decoder(asked.steps[0])

    def way(serving: TokenServing) -> ServedUsers:
        most, *ends = (it.most_users(serving) for it in (usual, high, low))
        counts = sorted({*users, max(1, most)})
        last = max(_BEYOND * counts[-1], _FEWEST_SHOWN)
        batch = scenario.largest(serving)
        memory = memory_need(asked, decoder, batch, batch if serving is TokenServing.STATIC else 1).total
        return ServedUsers(
            serving=serving.value,
            batch=batch,
            memory_bytes=memory,
            fits=memory <= system.memory_bytes,
            most_users=most,
            most_users_interval=(min(most, *ends), max(most, *ends)),
            loads=tuple([_load(queues, serving, it, driven(serving, it)) for it in counts]),
            curve=tuple([usual.load(serving, it) for it in sorted({*_CURVE, *counts}) if it <= last]),
        )

    total = steps_time((1, prefill), *((scenario.generate - 1, it) for it in steps.values()))
    return taken(
        TokenLoadAnswer,
        asked,
        asked.model,
        model=asked.model.name,
        system=system.id,
        runtime=asked.runtime.identity,
        precision=asked.precision.value,
        host_memory_bytes=system.memory_bytes,
        scenario=scenario,
        prefill_ms=prefill.ms,
        steps=tuple([BatchStep(it, of.ms, *of.bounds_ms, of.coverage < 1.0) for it, of in steps.items()]),
        coverage=total.coverage,
        ways=tuple(map(way, TokenServing)),
    )


def _load(queues: Sequence[TokenQueue], serving: TokenServing, users: int, measured: DrivenLoad | None) -> UsersLoad:
    """Return the load by the queues of `_ENDS`, and what a drive of so many users measured."""
    usual = queues[1]
    # Slower steps may let more requests join a batch, which are answered sooner then.
    loads = [it.load(serving, users) for it in queues]
    first_ms = [it.first_token.bounded_ms for it in loads]
    later_ms = [it.per_token.bounded_ms for it in loads]
    return UsersLoad(
        predicted=loads[1],
        first_token_interval_ms=(min(first_ms), max(first_ms)),
        per_token_interval_ms=(min(later_ms), max(later_ms)),
        driven=measured,
        predicted_drive=usual.load(serving, users, _drive(usual, serving, users).pauses) if measured else None,
    )


def measure_token_load(
    model: NamedModel, options: TokenLoadOptions, data: DataFolder, take: Callable[[Event], None]
) -> TokenLoadAnswer:
    """Measure the steps that the store lacks, drive the users of each way, and return the answer."""
    measure_language(LanguageOrder((_question(model, options, data),)), data, take)
    # The most users follow from what was measured.
    measure_language(order_of_load(model, options, data), data, take)
    return token_load(model, options, data)


def order_of_load(model: NamedModel, options: TokenLoadOptions, data: DataFolder) -> LanguageOrder:
    """Return the order that measures what the store lacks, and drives the users of its answer."""
    answer = token_load(model, options, data)
    steps = StepLatencies(answer.prefill_ms, {it.answers: it.ms for it in answer.steps})
    ways = {TokenServing(it.serving): it.loads for it in answer.ways}
    drives = [
        _drive(TokenQueue(answer.scenario, steps), it, load.predicted.users) for it in _DRIVEN for load in ways[it]
    ]
    return LanguageOrder((_question(model, options, data),), drives=tuple(drives))


def _drive(queue: TokenQueue, serving: TokenServing, users: int) -> Drive:
    asked = queue.scenario
    pauses = asked.pauses(users, queue.steps.answer_ms(asked.generate), is_driven=True)
    return Drive(asked, serving, pauses, max(it.ended_ns for it in queue.answers(serving, pauses)) / 1e9)


def _question(model: NamedModel, options: TokenLoadOptions, data: DataFolder) -> LanguageQuestion:
    asked, *_ = questions([model], options, data)
    if asked.runtime.framework != _FRAMEWORK:
        raise LanguageError("users are served by ONNX Runtime only: leave --runtime out, or choose onnxruntime")
    return replace(asked, batches=batch_sizes_up_to(options.batch))
