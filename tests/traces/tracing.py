"""Traces in a data folder of their own, by the fake worker or by real runtimes."""

from typing import Any

import pytest

from dlbricks_tui.analysis.what_if import Execution
from dlbricks_tui.jobs.events import JobEnded
from dlbricks_tui.jobs.process import JobAtWork
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.traces.file import read_trace, trace_path, write_trace
from dlbricks_tui.traces.measuring import Tracing
from dlbricks_tui.traces.trace import TRACE, LevelTrace, Trace, TraceDone, TraceLevel, TraceOrder, Track, TrackKind
from tests.jobs.carrying import Bench, fake


class TraceBench(Bench):
    """A data folder in which models are traced."""

    def trace(self, execution: Execution | None = None, source: ModelSource | None = None, **fields: Any) -> Trace:
        """Trace a model in this process, and read the trace from its file."""
        assert self.traced(execution, source, **fields), self.told
        done = self.told[-1]
        assert isinstance(done, TraceDone)
        return read_trace(self.site.data.traces / f"{done.id}.json.gz")

    def failure(self, execution: Execution | None = None, **fields: Any) -> str:
        """Return why a model cannot be traced."""
        assert not self.traced(execution, **fields)
        failed = self.told[-1]
        assert isinstance(failed, JobEnded)
        return failed.message

    def traced(self, execution: Execution | None = None, source: ModelSource | None = None, **fields: Any) -> bool:
        """Return whether a model could be traced."""
        order = TraceOrder(source=source or self.source, execution=execution or fake(), **fields)

        def work(job: JobAtWork[TraceOrder]) -> None:
            trace = Tracing(order, self.site.place, job.signals, job.tell, self.limits).trace(self.site.queue)
            write_trace(trace, trace_path(job.data.traces, trace.id))
            job.tell(TraceDone(id=trace.id))

        return self.carry(TRACE, order, work)


def level_of(trace: Trace, level: TraceLevel) -> LevelTrace:
    """Return a level of a trace, which has it."""
    (found,) = (it for it in trace.levels if it.level is level)
    return found


def track_of(level: LevelTrace, kind: TrackKind) -> Track:
    """Return the only track of a kind."""
    (found,) = (it for it in level.tracks if it.kind is kind)
    return found


def assert_exactly_the_layers(trace: Trace, level: LevelTrace) -> None:
    """Check that a level has each layer of the graph exactly once in each inference shown, inside of the inference."""
    inferences = track_of(level, TrackKind.INFERENCES).spans
    layers = track_of(level, TrackKind.LAYERS).spans
    wanted = {it.index: it.name for it in trace.layers}
    assert inferences
    # Other rounds follow those that are shown.
    shown_ms = [it.duration_ns / 1e6 for it in inferences]
    assert list(level.inference_ms[: len(inferences)]) == pytest.approx(shown_ms)
    for number, inference in enumerate(inferences):
        shown = [it for it in layers if it.inference == number]
        assert sorted(it.layer for it in shown if it.layer is not None) == sorted(wanted)
        assert all(it.layer is not None and it.name == wanted[it.layer] for it in shown)
        ends = inference.start_ns
        for it in shown:
            assert it.start_ns >= ends
            ends = it.start_ns + it.duration_ns
        assert ends <= inference.start_ns + inference.duration_ns
