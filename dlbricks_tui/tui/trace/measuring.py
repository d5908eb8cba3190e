"""The process that traces a model, as the screen follows it: its progress, and its end if the user cancels it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlbricks_tui.answers.child_process import ChildProcess, JobFolder
from dlbricks_tui.answers.traces.tracing import trace_process
from dlbricks_tui.host.queue import Kind
from dlbricks_tui.traces.messages import (
    LevelDone,
    LevelStarted,
    RoundStarted,
    TraceDone,
    TraceFailed,
    TraceWaits,
    decode,
)
from dlbricks_tui.tui.followed import FollowedProcess

if TYPE_CHECKING:
    from dlbricks_tui.folders import DataFolder
    from dlbricks_tui.traces.messages import TraceMessage, TraceOrder
    from dlbricks_tui.traces.trace import TraceLevel


class Tracing(FollowedProcess["TraceMessage"]):
    """A model that is being traced."""

    RESULT = "a trace"

    def __init__(self, order: TraceOrder, process: ChildProcess[TraceMessage]) -> None:
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
        found = JobFolder.last_of(data, Kind.TRACE, model)
        return None if found is None else cls(found[1], ChildProcess.started_before(found[0], decode))

    @property
    def has_result(self) -> bool:
        return bool(self.done)

    def take(self, message: TraceMessage) -> None:
        self.waits_for = message.holder if isinstance(message, TraceWaits) else ""
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
        elif isinstance(message, TraceFailed):
            self.failure = message.reason
