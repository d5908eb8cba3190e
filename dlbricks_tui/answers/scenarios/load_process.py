"""Measure a scenario in a separate process, and follow its messages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dlbricks_tui.jobs.errors import JobError
from dlbricks_tui.scenarios.messages import LOAD_TEST, LoadDone, LoadTestDone
from dlbricks_tui.scenarios.scenario import ScenarioError, is_positive
from dlbricks_tui.store.database import ResultsDatabase

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dlbricks_tui.answers.scenarios.predicting import ScenarioAnswer
    from dlbricks_tui.folders import DataFolder
    from dlbricks_tui.jobs.events import Event
    from dlbricks_tui.jobs.process import JobProcess
    from dlbricks_tui.scenarios.messages import ScenarioOrder
    from dlbricks_tui.store.records import LoadTest


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


def load_process(order: ScenarioOrder, data: DataFolder) -> JobProcess:
    """Return the process that measures a scenario; it has not started yet."""
    # Loaded here: predictions need no process.
    from dlbricks_tui.jobs.process import JobProcess

    return JobProcess.new(LOAD_TEST, order, data, [order.source.name])


def measure(order: ScenarioOrder, data: DataFolder, take: Callable[[Event], None]) -> MeasuredTest:
    """Measure a scenario, and pass on the events of the process; raise LoadProcessError if it fails."""
    done: list[LoadDone] = []
    tests: list[LoadTestDone] = []

    def keep(event: Event) -> None:
        if isinstance(event, LoadDone):
            done.append(event)
        elif isinstance(event, LoadTestDone):
            tests.append(event)
        take(event)

    try:
        load_process(order, data).run(keep)
    except JobError as error:
        raise LoadProcessError(f"the scenario was not measured: {error}", tests) from error
    if not done:
        raise LoadProcessError("the process that measures ended without a result", tests)
    with ResultsDatabase(data.store) as store:
        test = store.load_test(done[0].uuid)
    if test is None:
        raise LoadProcessError("the process that measures stored no result", tests)
    return MeasuredTest(test, tests, done[0].warnings)
