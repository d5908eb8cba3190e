"""The panel of the stored traces of the model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.message import Message

from dlbricks_tui.documents.lines import Line, Span, column, line, number_column
from dlbricks_tui.tui.keys.keymap import Hint
from dlbricks_tui.tui.trace import actions
from dlbricks_tui.tui.widgets.panel import ItemPanel
from dlbricks_tui.tui.widgets.rows import DrawnRows

if TYPE_CHECKING:
    from dlbricks_tui.traces.stored import StoredTrace
    from dlbricks_tui.tui.trace.work import ListedTraces

_WHEN, _BATCH, _ID = 13, 7, 10
_ID_DIGITS = 8
# The sign of the trace in the timeline.
_SHOWN = "*"


class TracesPanel(ItemPanel["StoredTrace"]):
    """A row for each trace, the newest first."""

    scope = actions.TRACES
    TITLE = "Traces"
    REACHED_BY = "trace.go_to_traces"
    HEADED = True
    SEARCH_HINT = "runtime, date or id"
    ABOUT = (
        "The stored traces of the model, the newest first; * is the one in the timeline. {traces.open} shows another "
        "one. They are files in the folder of your data, which you may delete."
    )

    class Opened(Message):
        """The user wants to see the selected trace."""

    def __init__(self) -> None:
        super().__init__(DrawnRows(self._row), id="traces")
        self._shown = ""
        self.show_placeholder(
            line("No trace of this model is stored."), Hint("{trace.measure} traces the model.", "muted")
        )

    def heading(self, width: int) -> Line:
        left = (Span(" "), column("  UTC", _WHEN + 2, "muted"), column("runtime", _runtime_width(width - 1), "muted"))
        return (*left, number_column("batch", _BATCH, "muted"), number_column("id", _ID, "muted"))

    def show(self, listed: ListedTraces) -> None:
        self.show_items(listed.traces)
        unreadable = len(listed.unreadable)
        self.border_subtitle = f"{unreadable:,} cannot be read" if unreadable else ""

    def mark(self, trace: str) -> None:
        """Mark the trace in the timeline, and select it."""
        self._shown = trace
        self.select(trace)
        self.rows.refresh()

    def identity(self, item: StoredTrace) -> str:
        return item.header.id

    def searched(self, item: StoredTrace) -> str:
        return f"{item.header.runtime} {item.header.when[:16]} {item.header.id}"

    def action_open(self) -> None:
        if self.selected is not None:
            self.post_message(self.Opened())

    def action_copy(self) -> None:
        self.copy(None if self.selected is None else self.selected.header.id, "There is no trace to copy the id of.")

    def _row(self, index: int, width: int) -> Line:
        header = self.found[index].header
        is_shown = header.id == self._shown
        return (
            Span(f"{_SHOWN if is_shown else ' '} ", "mark"),
            column(header.when[5:16].replace("T", " "), _WHEN),
            column(header.runtime, _runtime_width(width), "strong" if is_shown else "text"),
            number_column(f"{header.batch_size:,}", _BATCH),
            number_column(header.id[:_ID_DIGITS], _ID, "muted"),
        )


def _runtime_width(width: int) -> int:
    return max(8, width - 2 - _WHEN - _BATCH - _ID)
