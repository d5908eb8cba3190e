"""The panels beside the timeline: the selected span, and the stored traces of the model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.message import Message

from dlbricks_tui.documents.layout import laid_out
from dlbricks_tui.documents.lines import Line, Span, line
from dlbricks_tui.documents.trace import counter_parts, level_parts, span_parts, stored_columns
from dlbricks_tui.tui.keys.keymap import Hint
from dlbricks_tui.tui.trace import actions
from dlbricks_tui.tui.trace.timeline import NO_LAYER
from dlbricks_tui.tui.widgets.panel import Panel
from dlbricks_tui.tui.widgets.rows import LineRows
from dlbricks_tui.tui.widgets.table import TablePanel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dlbricks_tui.documents.parts import Column, Part
    from dlbricks_tui.traces.file import StoredTrace
    from dlbricks_tui.tui.trace.work import ListedTraces, OpenTrace

_NOTHING = (line(Span("Select a span in the timeline", "muted")), line(Span("to see its details here.", "muted")))


class SpanPanel(Panel):
    """Everything that is known of the selected span, or of the selected level."""

    scope = actions.SPAN
    TITLE = "Span"
    REACHED_BY = "trace.go_to_span"
    ABOUT = (
        "The selected span: its time and its share of the inference. A layer also has the median of its times in the "
        "model, at the layer level, and the stored time of its brick alone. On the row of a level: what the level adds "
        "to the one below, and what to know about it. {span.copy} copies the key of the brick."
    )

    def __init__(self) -> None:
        self._list = LineRows(self._lines)
        super().__init__(self._list, id="span")
        self._opened: OpenTrace | None = None
        self._row = 0
        self._list.show_placeholder(*_NOTHING)

    def show(self, opened: OpenTrace | None, row: int) -> None:
        self._opened, self._row = opened, row
        self._list.cursor = 0
        self._list.remake()

    def action_copy(self) -> None:
        self.copy(None if self._opened is None else self._opened.state.brick_key(self._row), NO_LAYER)

    def _lines(self, width: int) -> Iterator[Line]:
        if self._opened is None or self._row >= len(self._opened.state.rows):
            yield from _NOTHING
        else:
            yield from laid_out(self._parts(self._opened), width)

    def _parts(self, opened: OpenTrace) -> Iterator[Part]:
        state = opened.state
        row, span = state.rows[self._row], state.selected_span(self._row)
        track, level = row.track, row.level.content
        if span is not None and track is not None and track.kind is not None:
            layer = None if span.layer is None else state.layers.get(span.layer)
            time = None if layer is None else opened.times.get(layer.index)
            return span_parts(span, track.kind, level, layer, time)
        if track is not None and track.counter is not None:
            return counter_parts(track.counter, state.selected(self._row))
        return level_parts(level, state.trace.missing)


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
