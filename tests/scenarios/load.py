"""Scenarios measured in a data folder of their own: by LoadGen, with requests to the fake worker."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dlbricks_tui.analysis.what_if import Execution
from dlbricks_tui.jobs.events import Event
from dlbricks_tui.jobs.process import JobAtWork
from dlbricks_tui.scenarios.kinds import ScenarioKind
from dlbricks_tui.scenarios.load_tests import Clocks
from dlbricks_tui.scenarios.measuring import LoadRule, measure_scenario
from dlbricks_tui.scenarios.scenario import LOAD_TEST, Scenario, ScenarioOrder
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import LoadTest
from dlbricks_tui.store.verification import verify
from tests.jobs.carrying import Bench, fake

QUICK = LoadRule(seconds=0.0, offline_samples=16, warm_seconds=0.0, pause_seconds=0.0)
# So many queries decide about it.
PERCENTILE, QUERIES = 50.0, 11


def scenario(kind: ScenarioKind, **fields: Any) -> Scenario:
    """Return a scenario whose tests need few queries."""
    return Scenario(**{"kind": kind, "percentile": PERCENTILE, **fields})


@dataclass
class Host(Bench):
    """A data folder in which scenarios are measured."""

    rule: LoadRule = QUICK
    clocks: Clocks = field(default_factory=Clocks)
    # The child processes before the measurement.
    before: frozenset[int] = frozenset()

    def order(self, asked: Scenario, execution: Execution | None = None, **fields: Any) -> ScenarioOrder:
        return ScenarioOrder(source=self.source, execution=execution or fake(), scenario=asked, **fields)

    def measure(self, asked: Scenario, execution: Execution | None = None, **fields: Any) -> bool:
        """Measure a scenario in this process; return whether it was measured."""
        self.before = children()
        order = self.order(asked, execution, **fields)

        def work(job: JobAtWork[ScenarioOrder]) -> None:
            place, queue = self.site.place, self.site.queue
            measure_scenario(order, place, job.signals, job.tell, queue, self.rule, self.clocks)

        try:
            return self.carry(LOAD_TEST, order, work)
        finally:
            # LoadGen can carry out one test at a time, and this one is answered without the workers now.
            for thread in threads_of_loadgen():
                thread.join(60.0)

    def records(self) -> Sequence[LoadTest]:
        """Return the stored tests, each of which is plausible."""
        assert verify(self.site.data.store).implausible == ()
        with ResultsDatabase(self.site.data.store) as store:
            return store.records(LoadTest)


def threads_of_loadgen() -> Sequence[threading.Thread]:
    return [it for it in threading.enumerate() if it.name == "LoadGen"]


def logs_of(told: Sequence[Event]) -> Path:
    """Return the folder of LoadGen's logs."""
    (found,) = {Path(it.logs) for it in told if hasattr(it, "logs")}
    return found


def children() -> frozenset[int]:
    """Return the child processes of this one, zombies too."""
    found = Path(f"/proc/self/task/{threading.get_native_id()}/children").read_text().split()
    return frozenset(map(int, found))


def workers(host: Host) -> Sequence[int]:
    """Return the processes that the measurement in progress has started."""
    return sorted(children() - host.before)
