"""A process that pretends to trace a model: `python fake_process.py JOB_FOLDER DATA_FOLDER MANNER`.

It writes the events of the sample trace. MANNER says how it ends: `done`,
`fails`, `dies`, `nothing`, or `waits`, which goes on until a signal ends it.
"""

import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from dlbricks_tui.folders import DataFolder
from dlbricks_tui.jobs.events import Event, Waiting
from dlbricks_tui.jobs.process import JobAtWork, work_in_process
from dlbricks_tui.traces.file import trace_path, write_trace
from dlbricks_tui.traces.trace import TRACE, LevelDone, LevelStarted, RoundStarted, TraceDone, TraceError, TraceOrder
from tests.traces.sample_traces import sample_trace


def main(folder: str, data: str, manner: str) -> None:
    def work(job: JobAtWork[TraceOrder]) -> None:
        pretend(job.request, job.data, manner, job.tell)

    sys.exit(work_in_process(TRACE, folder, data, work))


def pretend(order: TraceOrder, data: DataFolder, manner: str, tell: Callable[[Event], None]) -> None:
    """Write the sample trace as that of an order, and tell its messages; tests call this without a process, too."""
    trace = replace(
        sample_trace(order.inferences),
        model=order.source.name,
        runtime=order.execution.runtime.identity,
        graph_level=order.execution.level,
        batch_size=order.execution.batch_size or 1,
    )
    trace = replace(
        trace,
        levels=tuple(it for it in trace.levels if it.level in order.levels),
        missing=tuple(it for it in trace.missing if it.level in order.levels),
    )
    tell(Waiting(holder="another run"))
    for level in trace.levels:
        tell(LevelStarted(level=level.level))
        if manner == "waits":
            wait_for_a_signal(data)
    for number in (1, 2):
        tell(RoundStarted(number=number, rounds=2))
    for level in trace.levels:
        tell(LevelDone(level=level.level, inference_ms=median(level.inference_ms), overhead_ms=level.overhead_ms))
    for missing in trace.missing:
        tell(LevelDone(level=missing.level, inference_ms=None, overhead_ms=None, missing=missing.reason))
    if manner == "fails":
        raise TraceError("the worker was lost: killed by signal 9")
    if manner == "dies":
        sys.exit("there is no room for the model")
    if manner != "nothing":
        write_trace(trace, trace_path(data.traces, trace.id))
        tell(TraceDone(id=trace.id))


def wait_for_a_signal(data: DataFolder) -> None:
    def end(*_: object) -> None:
        (data.path / "ended").touch()
        sys.exit(0)

    signal.signal(signal.SIGTERM, end)
    (data.path / "fake.pid").write_text(str(os.getpid()))
    while True:
        time.sleep(60)


if __name__ == "__main__":
    main(*sys.argv[1:])
