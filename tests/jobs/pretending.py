"""A process that pretends to measure: `python pretending.py trace|scenario JOB_FOLDER DATA_FOLDER MANNER`.

It writes the events of the sample trace, or those of a search of two load tests. MANNER says how it ends: `done`,
`invalid` (for scenarios), `fails`, `dies`, `nothing`, or `waits`, which goes on until a signal ends it.
"""

import os
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from dlbricks_tui.errors import UserError
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
    ScenarioOrder,
)
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import LoadTest, utc_now
from dlbricks_tui.traces.file import trace_path, write_trace
from dlbricks_tui.traces.trace import TRACE, LevelDone, LevelStarted, RoundStarted, TraceDone, TraceOrder
from tests.store.samples import load_test
from tests.traces.sample_traces import sample_trace


def wait_for_a_signal(job: JobAtWork[Any]) -> None:
    (job.data.path / "fake.pid").write_text(str(os.getpid()))
    try:
        with job.signals.waiting():
            time.sleep(600)
    finally:
        (job.data.path / "ended").touch()


def end_early(manner: str, reason: str) -> None:
    if manner == "fails":
        raise UserError("the worker was lost: killed by signal 9")
    if manner == "dies":
        sys.exit(reason)


def pretend_to_trace(
    order: TraceOrder,
    data: DataFolder,
    manner: str,
    tell: Callable[[Event], None],
    wait: Callable[[], object] = nullcontext,
) -> None:
    """Write the sample trace as that of an order, and tell its messages; tests call this without a process, too."""
    trace = replace(
        sample_trace(order.inferences),
        model=order.source.name,
        runtime=order.execution.runtime.identity,
        graph_level=order.execution.level,
        batch_size=order.execution.batch_size or 1,
    )
    levels = tuple(it for it in trace.levels if it.level in order.levels)
    missing = tuple(it for it in trace.missing if it.level in order.levels)
    tell(Waiting(holder="another run"))
    for level in levels:
        tell(LevelStarted(level=level.level))
        if manner == "waits":
            wait()
    for number in (1, 2):
        tell(RoundStarted(number=number, rounds=2))
    for level in levels:
        tell(LevelDone(level=level.level, inference_ms=median(level.inference_ms), overhead_ms=level.overhead_ms))
    for it in missing:
        tell(LevelDone(level=it.level, inference_ms=None, overhead_ms=None, missing=it.reason))
    end_early(manner, "there is no room for the model")
    if manner != "nothing":
        write_trace(replace(trace, levels=levels, missing=missing), trace_path(data.traces, trace.id))
        tell(TraceDone(id=trace.id))


def trace(job: JobAtWork[TraceOrder], manner: str) -> None:
    pretend_to_trace(job.request, job.data, manner, job.tell, partial(wait_for_a_signal, job))


def measure_scenario(job: JobAtWork[ScenarioOrder], manner: str) -> None:
    job.tell(Waiting(holder="another run"))
    job.tell(LoadReady(service_ms=8.0, passing_ms=0.15, wake_up_ms=0.9, logs=str(job.data.path / "logs")))
    for number, (rate, latency_ms) in enumerate(((40.0, 12.0), (44.0, 24.0)), start=1):
        job.tell(LoadTestStarted(number=number, rate=rate, batch_size=1, queries=700, seconds_left=12.0))
        latencies_ms = (8.0, 9.0, latency_ms, latency_ms)
        job.tell(LoadProgress(number=number, queries=4, seconds=1.0, latencies_ms=latencies_ms))
        if manner == "waits":
            try:
                wait_for_a_signal(job)
            finally:
                job.tell(LoadTestsKept(tests=1))
        test: dict[str, Any] = {"number": number, "rate": rate, "batch_size": 1, "passed": latency_ms < 20}
        job.tell(LoadTestDone(**test, percentile_ms=latency_ms, per_second=rate))
    end_early(manner, "there is no room for the model")
    if manner != "nothing":
        found = load_test_of(job.request, manner)
        with ResultsDatabase(job.data.store) as store:
            store.add(found)
        (job.data.scenarios / found.uuid).mkdir(parents=True)
        job.tell(LoadDone(uuid=found.uuid, warnings=("the clock was set while the test ran",)))


def load_test_of(order: ScenarioOrder, manner: str) -> LoadTest:
    scenario = order.scenario
    is_server = scenario.kind.value == "server"
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
        rate=(scenario.rate or 40.0) if is_server else None,
        sought=is_server and scenario.rate is None,
    )


if __name__ == "__main__":
    what, folder, data, manner = sys.argv[1:]
    if what == "trace":
        sys.exit(work_in_process(TRACE, folder, data, lambda job: trace(job, manner)))
    sys.exit(work_in_process(LOAD_TEST, folder, data, lambda job: measure_scenario(job, manner)))
