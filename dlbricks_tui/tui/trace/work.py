"""Work of the trace screen that takes time, and the process that traces a model."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from dlbricks_tui.answers.traces.tracing import trace_process
from dlbricks_tui.errors import UserError
from dlbricks_tui.jobs.events import Waiting
from dlbricks_tui.jobs.process import JobProcess
from dlbricks_tui.runtime.variant import Precision
from dlbricks_tui.traces.messages import TRACE, LevelDone, LevelStarted, RoundStarted, TraceDone
from dlbricks_tui.tui.followed import FollowedProcess
from dlbricks_tui.tui.trace.rows import TimelineState

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from dlbricks_tui.config.config import Config
    from dlbricks_tui.folders import DataFolder
    from dlbricks_tui.jobs.events import Event
    from dlbricks_tui.traces.file import StoredTrace
    from dlbricks_tui.traces.layer_times import LayerTime
    from dlbricks_tui.traces.messages import TraceOrder
    from dlbricks_tui.traces.trace import TraceLevel
    from dlbricks_tui.tui.choices import Choices
    from dlbricks_tui.tui.open_model import ModelSpec
    from dlbricks_tui.tui.session import Session
    from dlbricks_tui.tui.trace.boxes import TraceSettings


class ListedTraces(NamedTuple):
    """The stored traces of a model, the newest first, and a line for each file that cannot be read."""

    traces: tuple[StoredTrace, ...]
    unreadable: tuple[str, ...] = ()


def list_traces(session: Session, model: str) -> ListedTraces | str:
    """Return the stored traces of a model, or the reason why they cannot be listed."""
    from dlbricks_tui.traces.file import stored_traces

    try:
        found = stored_traces(session.data.traces)
    except UserError as error:
        return str(error)
    return ListedTraces(tuple(it for it in reversed(found.traces) if it.header.model == model), found.unreadable)


class OpenTrace(NamedTuple):
    """A trace that has been read, with its rows, the times of its layers by their index, and the slowest of them."""

    state: TimelineState
    times: Mapping[int, LayerTime]
    slowest: LayerTime | None


def open_trace(path: Path) -> OpenTrace | str:
    """Return the trace of a file, or the reason why it cannot be shown."""
    from dlbricks_tui.traces.file import read_trace
    from dlbricks_tui.traces.layer_times import layer_times, slowest_first

    try:
        trace = read_trace(path)
    except UserError as error:
        return str(error)
    times = layer_times(trace)
    slowest = next(iter(slowest_first(times)), None)
    return OpenTrace(TimelineState(trace), {it.layer.index: it for it in times}, slowest)


def write_trace_file(opened: OpenTrace, path: Path) -> str:
    """Write a trace for another program; return the reason where that is not possible, else nothing."""
    from dlbricks_tui.answers.traces.tracing import format_of, write_in

    try:
        write_in(format_of(path), opened.state.trace, path)
    except UserError as error:
        return str(error)
    return ""


def first_settings(session: Session, spec: ModelSpec, choices: Choices, config: Config) -> TraceSettings | str:
    """Return the settings to begin with: those in view, else those of the config; or why no runtime has the model."""
    from dlbricks_tui.runtime.registry import Registry
    from dlbricks_tui.tui.run.settings import runtimes_for
    from dlbricks_tui.tui.trace.boxes import TraceSettings

    registry = Registry(session.data.path)
    try:
        runtimes = runtimes_for(registry, (spec.source,))
        usual = config.runtime if config.runtime in runtimes else runtimes[0]
        if choices.runtime is not None:
            # A runtime of the store has a framework; the one of this host with the same framework measures.
            with suppress(UserError):
                named = registry.find(choices.runtime.partition("-")[0]).name
                usual = named if named in runtimes else usual
    except UserError as error:
        return str(error)
    return TraceSettings(
        registered=runtimes, runtime=usual, threads=choices.threads or config.threads, batch=choices.batch
    )


def order_of(session: Session, spec: ModelSpec, choices: Choices, settings: TraceSettings) -> TraceOrder | str:
    """Return the order to trace a model, or the reason why this host cannot trace it."""
    from dlbricks_tui.answers.traces.tracing import require_room, trace_order

    precision = None if choices.precision is Precision.F32 else choices.precision
    try:
        require_room(session.data)
        return trace_order(replace(settings, precision=precision, inputs=spec.shapes), spec.source, session.data)
    except UserError as error:
        return str(error)


class Tracing(FollowedProcess):
    """A model that is being traced."""

    RESULT = "a trace"

    def __init__(self, order: TraceOrder, process: JobProcess) -> None:
        super().__init__(process)
        self.order = order
        # The process or run that it waits for; empty while it runs.
        self.waits_for = ""
        # The level that started last, and the round after that.
        self.level: TraceLevel | None = None
        self.round: RoundStarted | None = None
        self.ended_levels: list[LevelDone] = []
        # The id of the trace, once it is stored.
        self.done = ""

    @classmethod
    def new(cls, order: TraceOrder, data: DataFolder) -> Tracing:
        """Return a trace that starts when it is followed."""
        return cls(order, trace_process(order, data))

    @classmethod
    def begun(cls, model: str, data: DataFolder) -> Tracing | None:
        """Return the trace of a model that was begun before, and that nobody has followed to its end."""
        found = TRACE.last_unseen(data, model)
        if found is None:
            return None
        return cls(TRACE.request_of(found), JobProcess.started_before(TRACE, found, data))

    @property
    def has_result(self) -> bool:
        return bool(self.done)

    def take(self, message: Event) -> None:
        self.waits_for = message.holder if isinstance(message, Waiting) else ""
        if isinstance(message, LevelStarted):
            self.level, self.round = message.level, None
        elif isinstance(message, RoundStarted):
            self.round = message
        elif isinstance(message, LevelDone):
            self.ended_levels.append(message)
            if message.inference_ms is not None:
                self.level = self.round = None
        elif isinstance(message, TraceDone):
            self.done = message.id
