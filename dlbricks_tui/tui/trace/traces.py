"""The panel of the stored traces of the model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.message import Message

from dlbricks_tui.documents.lines import line
from dlbricks_tui.documents.trace import stored_columns
from dlbricks_tui.tui.keys.keymap import Hint
from dlbricks_tui.tui.trace import actions
from dlbricks_tui.tui.widgets.table import TablePanel

if TYPE_CHECKING:
    from dlbricks_tui.documents.parts import Column
    from dlbricks_tui.traces.stored import StoredTrace
    from dlbricks_tui.tui.trace.work import ListedTraces


class TracesPanel(TablePanel["StoredTrace"]):
    """A row for each trace, the newest first."""

    scope = actions.TRACES
    TITLE = "Traces"
    REACHED_BY = "trace.go_to_traces"
    SEARCH_HINT = "runtime, date or id"
    ABOUT = (
        "The stored traces of the model, the newest first; * is the one in the timeline. {traces.open} shows another "
        "one. They are files in the folder of your data, which you may delete."
    )

    class Opened(Message):
        """The user wants to see the selected trace."""

    def __init__(self) -> None:
        super().__init__(id="traces")
        self._shown = ""
        self.show_placeholder(
            line("No trace of this model is stored."), Hint("{trace.measure} traces the model.", "muted")
        )

    def columns(self) -> tuple[Column[StoredTrace], ...]:
        return stored_columns(self._shown)

    def show(self, listed: ListedTraces) -> None:
        self.show_items(listed.traces)
        unreadable = len(listed.unreadable)
        self.border_subtitle = f"{unreadable:,} cannot be read" if unreadable else ""

    def mark(self, trace: str) -> None:
        """Mark the trace in the timeline, and select it."""
        self._shown = trace
        self.select(trace)
        self.columns_changed()

    def identity(self, item: StoredTrace) -> str:
        return item.header.id

    def searched(self, item: StoredTrace) -> str:
        return f"{item.header.runtime} {item.header.when[:16]} {item.header.id}"

    def action_open(self) -> None:
        if self.selected is not None:
            self.post_message(self.Opened())

    def action_copy(self) -> None:
        self.copy(None if self.selected is None else self.selected.header.id, "There is no trace to copy the id of.")
