"""Scenarios: how requests arrive, what is asked of their latencies, what came out, and load tests as jobs."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from dlbricks_tui.analysis.what_if import Execution
from dlbricks_tui.errors import UserError
from dlbricks_tui.host.queue import WorkKind
from dlbricks_tui.jobs.events import Event, event_kinds
from dlbricks_tui.jobs.kinds import JobKind
from dlbricks_tui.models.graph import Numbers, Shape
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.scenarios.kinds import AskedScenario, ScenarioKind
from dlbricks_tui.store.records import LoadTest
from dlbricks_tui.store.statistics import unpack_latencies

# LoadGen decides with this confidence whether a percentile is within its bound, with one slower query allowed.
CONFIDENCE = 0.99
_SLOWER_QUERIES_ALLOWED, _MOST_QUERIES = 1, 1 << 40
# The samples of a query of multi stream in MLPerf.
SAMPLES_PER_QUERY = 8
# The seed of the times at which LoadGen sends requests, unless its settings say another one.
SCHEDULE_SEED = 0
# The least duration of a test by MLPerf's rules.
FULL_SECONDS = 600.0


class ScenarioError(UserError):
    """A scenario that contradicts itself, or that nothing can fulfil."""


# A server gets the fewest queries that decide.
_LEAST_SECONDS = {
    ScenarioKind.SINGLE: 2.0,
    ScenarioKind.MULTI: 2.0,
    ScenarioKind.SERVER: 0.0,
    ScenarioKind.OFFLINE: 3.0,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario(AskedScenario):
    """How requests arrive, and how the system serves them."""

    percentile: float = field()
    # A server batches waiting requests up to the largest; offline, each size is tried and the best one counts.
    batch_sizes: tuple[int, ...] = (1,)

    @property
    def seeks_rate(self) -> bool:
        """True if the highest rate of a server is sought."""
        return self.kind is ScenarioKind.SERVER and self.rate is None

    @property
    def least_seconds(self) -> float:
        """The least duration of a test."""
        return FULL_SECONDS if self.full else _LEAST_SECONDS[self.kind]


def usual_percentile(kind: ScenarioKind) -> float:
    """Return the percentile that MLPerf reports."""
    return 90.0 if kind is ScenarioKind.SINGLE else 99.0


def fewest_queries(percentile: float) -> int:
    """Return the least number of queries after which LoadGen's early stopping may decide about a percentile.

    If the true share of fast queries is the percentile, at most one slow one among so many has a chance of at most
    1 - CONFIDENCE.
    """
    within = percentile / 100.0

    def is_enough(queries: int) -> bool:
        return bool(within**queries + queries * (1 - within) * within ** (queries - 1) <= 1 - CONFIDENCE)

    return bisect_left(range(_MOST_QUERIES), True, _SLOWER_QUERIES_ALLOWED + 1, key=is_enough)


def batch_sizes_up_to(largest: int) -> tuple[int, ...]:
    """Return the sizes of batches of at most so many requests for which there are programs: 1, 2, 4, ..., largest."""
    powers = (1 << power for power in range(largest.bit_length()))
    return (*(size for size in powers if size < largest), largest)


_NS_PER_MS = 1e6
PERCENTILES = (50.0, 90.0, 99.0, 99.9)


@dataclass(frozen=True, slots=True)
class Range:
    """A predicted value with its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedLoad:
    """Latencies and throughput of a scenario, from stored service times and a simulated queue."""

    p50_ms: Range
    p90_ms: Range
    p99_ms: Range
    p999_ms: Range
    # Of a server without a rate: the highest rate within the bound. Else what the system serves.
    per_second: Range
    # True: the percentile is within the bound, or there is no bound.
    valid: bool
    # Simulated queries.
    queries: int
    batch_size: int

    def at(self, percentile: float) -> Range | None:
        """Return the latency of one of the four percentiles; None for another."""
        known = (self.p50_ms, self.p90_ms, self.p99_ms, self.p999_ms)
        return dict(zip(PERCENTILES, known, strict=True)).get(percentile)


@dataclass(frozen=True, slots=True)
class LoadFigures:
    """Four percentiles of the latencies, and the throughput."""

    p50_ms: float
    p90_ms: float
    p99_ms: float
    p999_ms: float
    per_second: float


# The latencies of a test are packed, and lists draw it again and again.
@lru_cache(maxsize=8)
def measured_load(test: LoadTest) -> LoadFigures:
    """Return the figures of a stored load test; the throughput is the highest rate that passed if that was sought."""
    ordered = sorted(latencies_ms(test))
    p50_ms, p90_ms, p99_ms, p999_ms = (percentile_of(ordered, each) for each in PERCENTILES)
    return LoadFigures(p50_ms, p90_ms, p99_ms, p999_ms, test.found_per_second)


def latencies_ms(test: LoadTest) -> list[float]:
    """Return the latencies of a load test, in the order of the requests."""
    return [latency_ns / _NS_PER_MS for latency_ns in unpack_latencies(test.latencies)]


@lru_cache(maxsize=256)
def percentile_ms(test: LoadTest) -> float:
    """Return the latency of the percentile that a load test is about."""
    return percentile_of(sorted(latencies_ms(test)), test.percentile)


def meets_bound(test: LoadTest) -> bool:
    """Return whether the percentile is within the bound; without a bound it is."""
    return test.bound_ms is None or percentile_ms(test) <= test.bound_ms


def is_positive(test: LoadTest) -> bool:
    """Return whether LoadGen calls a test valid, and its percentile is within the bound."""
    return test.valid and meets_bound(test)


def best_of(tests: Sequence[LoadTest]) -> LoadTest | None:
    """Return the test that answers a scenario: the newest, or offline the best of the newest of each batch size.

    The stored tests of the scenario begin with the newest. None: no search was valid, or LoadGen calls a test invalid
    for another reason than the bound.
    """
    counting = [it for it in tests if it.valid or not (it.sought or meets_bound(it))]
    by_size = {it.batch_size: it for it in reversed(counting)}
    return max(by_size.values(), key=lambda it: it.per_second, default=None)


def percentile_of(ordered: Sequence[float], percentile: float) -> float:
    """Return the percentile of sorted latencies as LoadGen does: of those that are reached, without interpolation."""
    return ordered[min(len(ordered) - 1, int(len(ordered) * percentile / 100))]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioOrder:
    """A model, how it is executed, and the scenario to measure."""

    source: ModelSource
    execution: Execution
    scenario: Scenario
    # The rate at which the search for the highest one begins: a predicted one, or that which passed before a pause.
    first_rate: float | None = None
    inputs: Mapping[str, Shape] = field(default_factory=dict)
    values: Mapping[str, Numbers] = field(default_factory=dict)
    # The evaluation that asked for it, and its requirements that this system does not meet.
    evaluation: str = ""
    unmet: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadReady(Event):
    """All instances have the model loaded."""

    # Of a single request: the median of the inference, and what passing it to the worker and back adds.
    service_ms: float
    passing_ms: float
    # How much longer a request takes whose instance was idle for a while before it.
    wake_up_ms: float
    # The folder of LoadGen's logs.
    logs: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadTestStarted(Event):
    """LoadGen starts a test; a search for the highest rate consists of several."""

    number: int
    # Requests per second of a server.
    rate: float | None
    batch_size: int
    # At least so many requests; those of a query with several samples count apart.
    queries: int
    # Of all tests that are still expected; None if that is not known.
    seconds_left: float | None
    # About so many tests in all, for the measurement of the scenario.
    tests: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadProgress(Event):
    """The requests of a test that were answered since the last message, about once a second."""

    number: int
    # Answered since the start of the test, after so many seconds.
    queries: int
    seconds: float
    # Since each was handed to us.
    latencies_ms: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadTestDone(Event):
    """The end of a test: it passes if its percentile is within the bound."""

    number: int
    rate: float | None
    batch_size: int
    passed: bool
    # The latency of the scenario's percentile.
    percentile_ms: float
    per_second: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadDone(Event):
    """The scenario is measured, and its record is in the store."""

    uuid: str
    # What a user should know before believing it, such as a jump of the clock.
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadTestsKept(Event):
    """The measurement ends before its result; the tests that have ended are in the store."""

    tests: int


LOAD_TEST = JobKind(
    WorkKind.LOAD_TEST,
    ScenarioOrder,
    event_kinds(LoadReady, LoadTestStarted, LoadProgress, LoadTestDone, LoadDone, LoadTestsKept),
    "dlbricks_tui.scenarios.measuring",
)
