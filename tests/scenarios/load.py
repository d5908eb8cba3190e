"""Scenarios measured in a data folder of their own: by LoadGen, with requests to the fake worker."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dlbricks_tui.analysis.what_if import Execution
from dlbricks_tui.folders import SAMPLE_MODELS
from dlbricks_tui.jobs.events import Event
from dlbricks_tui.jobs.process import JobAtWork
from dlbricks_tui.measure.supervised_worker import TimeLimits
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import Library, ModelSource
from dlbricks_tui.scenarios.load_tests import Clocks
from dlbricks_tui.scenarios.measuring import LoadRule, measure_scenario
from dlbricks_tui.scenarios.scenario import LOAD_TEST, Scenario, ScenarioKind, ScenarioOrder
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import LoadTest
from tests.jobs.carrying import carried_out
from tests.runs.runs import FAKE, MODEL, Site

QUICK = LoadRule(seconds=0.0, offline_samples=16, warm_seconds=0.0, pause_seconds=0.0)
# So many queries decide about it.
PERCENTILE, QUERIES = 50.0, 11


def fake(**variables: str) -> Execution:
    """Return the fake worker with these variables."""
    settings = replace(FAKE.settings, environment=tuple({"FAKE_NOISE": "0.001", **variables}.items()))
    return Execution(replace(FAKE, settings=settings), Level.WRITTEN)


def scenario(kind: ScenarioKind, **fields: Any) -> Scenario:
    """Return a scenario whose tests need few queries."""
    return Scenario(**{"kind": kind, "percentile": PERCENTILE, **fields})


@dataclass
class Host:
    """A data folder in which scenarios are measured, and the messages of the last one."""

    site: Site
    rule: LoadRule = QUICK
    clocks: Clocks = field(default_factory=Clocks)
    act: Callable[[Event], None] = lambda _: None
    told: list[Event] = field(default_factory=list)
    # The child processes before the measurement.
    before: frozenset[int] = frozenset()

    @property
    def source(self) -> ModelSource:
        self.site.path.mkdir(exist_ok=True)
        (found,) = Library(SAMPLE_MODELS, self.site.path).find(MODEL)
        return found

    def hung_after(self, seconds: float) -> "Host":
        """Return the host with workers that hang when they do not answer for so long."""
        self.rule = replace(self.rule, limits=TimeLimits(sample_seconds=seconds))
        return self

    def order(self, asked: Scenario, execution: Execution | None = None, **fields: Any) -> ScenarioOrder:
        return ScenarioOrder(source=self.source, execution=execution or fake(), scenario=asked, **fields)

    def measure(self, asked: Scenario, execution: Execution | None = None, **fields: Any) -> bool:
        """Measure a scenario in this process; return whether it was measured."""
        self.told, self.before = [], children()

        def write(message: Event) -> None:
            self.told.append(message)
            self.act(message)

        order = self.order(asked, execution, **fields)

        def work(job: JobAtWork[ScenarioOrder]) -> None:
            place, queue = self.site.place, self.site.queue
            measure_scenario(order, place, job.signals, job.tell, queue, self.rule, self.clocks)

        try:
            return carried_out(LOAD_TEST, order, self.site.data, work, write)
        finally:
            # LoadGen can carry out one test at a time, and this one is answered without the workers now.
            for thread in threads_of_loadgen():
                thread.join(60.0)

    def messages(self, kind: type[Event]) -> list[Any]:
        """Return the messages of a kind."""
        return [it for it in self.told if isinstance(it, kind)]

    def records(self) -> Sequence[LoadTest]:
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
