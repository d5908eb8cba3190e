"""Load tests: a scenario measured in a separate process, and its outcome as plain values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dlbricks_tui.api.documents import taken
from dlbricks_tui.api.scenarios import ScenarioAnswer
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.jobs.errors import JobError
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runtime.variant import Precision, stated_precision, stated_threads
from dlbricks_tui.scenarios.scenario import (
    CONFIDENCE,
    LoadTestDone,
    ScenarioError,
    ScenarioKind,
    ScenarioOrder,
    fewest_queries,
    is_positive,
    measured_load,
    meets_bound,
    percentile_ms,
)
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import LoadTest

if TYPE_CHECKING:
    from dlbricks_tui.jobs.events import Event


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


@dataclass(frozen=True, slots=True)
class LoadDifference:
    """The predicted over the measured figures, minus one."""

    p50_ms: float
    p90_ms: float
    p99_ms: float
    p999_ms: float
    per_second: float


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
    # Of predicted and measured, or else stored, figures.
    difference: LoadDifference | None
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
        difference=None if predicted is None or beside is None else LoadDifference(*ratios),
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
