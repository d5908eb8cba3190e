"""A process that pretends to measure a scenario: `python fake_process.py JOB_FOLDER DATA_FOLDER MANNER`.

It writes the events of a search of two tests. MANNER says how it ends:
`done`, `invalid`, `fails`, `dies`, `nothing`, or `waits`, which goes on until a signal ends it.
"""

import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from dlbricks_tui.folders import DataFolder
from dlbricks_tui.jobs.events import Event, Waiting
from dlbricks_tui.jobs.process import JobAtWork, work_in_process
from dlbricks_tui.scenarios.scenario import (
    LOAD_TEST,
    LoadDone,
    LoadProgress,
    LoadReady,
    LoadTestDone,
    LoadTestsKept,
    LoadTestStarted,
    ScenarioError,
    ScenarioOrder,
)
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import LoadTest, utc_now
from tests.store.samples import load_test


def main(folder: str, data: str, manner: str) -> None:
    def work(job: JobAtWork[ScenarioOrder]) -> None:
        pretend(job, manner)

    sys.exit(work_in_process(LOAD_TEST, folder, data, work))


def pretend(job: JobAtWork[ScenarioOrder], manner: str) -> None:
    order, data = job.request, job.data

    def told(*events: Event) -> None:
        for event in events:
            job.tell(event)

    told(
        Waiting(holder="another run"),
        LoadReady(service_ms=8.0, passing_ms=0.15, wake_up_ms=0.9, logs=str(data.path / "logs")),
    )
    for number, (rate, latency_ms) in enumerate(((40.0, 12.0), (44.0, 24.0)), start=1):
        told(
            LoadTestStarted(number=number, rate=rate, batch_size=1, queries=700, seconds_left=12.0),
            LoadProgress(number=number, queries=4, seconds=1.0, latencies_ms=(8.0, 9.0, latency_ms, latency_ms)),
        )
        if manner == "waits":
            wait_for_a_signal(data, job)
        told(
            LoadTestDone(
                number=number,
                rate=rate,
                batch_size=1,
                passed=latency_ms < 20,
                percentile_ms=latency_ms,
                per_second=rate,
            )
        )
    if manner == "fails":
        raise ScenarioError("the worker was lost: killed by signal 9")
    if manner == "dies":
        sys.exit("there is no room for the model")
    if manner != "nothing":
        test = of_order(order, manner)
        with ResultsDatabase(data.store) as store:
            store.add(test)
        (data.scenarios / test.uuid).mkdir(parents=True)
        told(LoadDone(uuid=test.uuid, warnings=("the clock was set while the test ran",)))


def of_order(order: ScenarioOrder, manner: str) -> LoadTest:
    scenario = order.scenario
    sent: dict[str, Any] = {"rate": scenario.rate or 40.0, "sought": scenario.rate is None}
    if scenario.kind.value != "server":
        sent = {"rate": None, "sought": False}
    reasons = ("min queries not satisfied",) if manner == "invalid" else ()
    return replace(
        load_test(when=utc_now(), valid=not reasons, reasons=reasons),
        name=order.source.name,
        kind=scenario.kind.value,
        percentile=scenario.percentile,
        bound_ms=scenario.bound_ms,
        batch_size=max(scenario.batch_sizes),
        instances=scenario.instances,
        runtime=order.execution.runtime.identity,
        level=order.execution.level,
        **sent,
    )


def wait_for_a_signal(data: DataFolder, job: JobAtWork[ScenarioOrder]) -> None:
    (data.path / "fake.pid").write_text(str(os.getpid()))
    try:
        with job.signals.waiting():
            time.sleep(600)
    finally:
        job.tell(LoadTestsKept(tests=1))
        (data.path / "ended").touch()


if __name__ == "__main__":
    main(*sys.argv[1:])
