"""Load tests as jobs: the order, and the events."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from dlbricks_tui.analysis.what_if import Execution
from dlbricks_tui.host.queue import WorkKind
from dlbricks_tui.jobs.events import Event, event_kinds
from dlbricks_tui.jobs.kinds import JobKind
from dlbricks_tui.models.graph import Numbers, Shape
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.scenarios.scenario import Scenario


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
    "dlbricks_tui.scenarios.process",
)
