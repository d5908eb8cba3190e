"""The panel of the timeline: a row for each level, and for the tracks and counters of an open one.

plotext draws the other pictures, but not this one:

- A bar has the name of its span in it, and a cell of several spans shows the share that they cover. plotext puts marks
  at coordinates: the last span of a cell would hide all others.
- Every row can be selected, scrolled to and clicked, as in a list.
- plotext draws every span of a trace: 70 ms for a row of 1,000 spans, 110 columns wide, on two shared cores. Here only
  the cells in view are looked up: 0.6 ms, and 1 ms for 20,000 spans.

As elsewhere, only visible rows are drawn, all signs differ by their characters, and the row of a level says in words
what its tracks show.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from rich.cells import cell_len
from textual.message import Message

from dlbricks_tui.documents.lines import Line, Span, column, cut
from dlbricks_tui.documents.timeline import USUAL, axis, counter_row, span_row
from dlbricks_tui.documents.trace import inference_of, level_answer
from dlbricks_tui.traces.trace import TrackKind
from dlbricks_tui.tui.trace import actions
from dlbricks_tui.tui.widgets.panel import Panel
from dlbricks_tui.tui.widgets.rows import RowsView
from dlbricks_tui.tui.widgets.text import text_of
from dlbricks_tui.wording.layers import usual_beginning
from dlbricks_tui.wording.numbers import milliseconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from textual import events

    from dlbricks_tui.traces.layer_times import LayerTime
    from dlbricks_tui.traces.trace import TraceSpan as TracedSpan
    from dlbricks_tui.tui.trace.rows import TimelineState, TraceRow

# As in the decomposition.
_OPEN, _CLOSED = "- ", "+ "
_LEAST_NAME, _MOST_NAME = 22, 34
_SHIFT = 0.5
# The spans of operators that the runtime added.
_ADDED = ("warn", "warn")
NO_LAYER = "Only a span of a layer has a brick: select one in the track of the layers."


class TimelineRows(RowsView):
    """The rows of an open trace; only the visible ones are drawn, and of them only the times in view."""

    def __init__(self) -> None:
        super().__init__()
        self.state: TimelineState | None = None
        self.slowest: LayerTime | None = None
        # The beginning of most names of layers, which the rows leave out.
        self.common = ""

    @property
    def row_count(self) -> int:
        return len(self.state.rows) if self.state else 0

    @property
    def name_width(self) -> int:
        return min(_MOST_NAME, max(_LEAST_NAME, (self.line_width - 1) // 5))

    @property
    def time_width(self) -> int:
        """The number of cells for times, after the names."""
        return max(1, self.line_width - 1 - self.name_width)

    def row(self, index: int, width: int) -> Line:
        if self.state is None:
            return ()
        return (
            *self._label(self.state, self.state.rows[index], self.name_width),
            *self._drawn(self.state, index),
        )

    def all_rows(self, width: int) -> list[Line]:
        state = self.state
        if state is None:
            return []
        names = [text_of(self._label(state, row, self.name_width)) for row in state.rows]
        return [(Span(f"{name} "), *self._drawn(state, index)) for index, name in enumerate(names)]

    def _label(self, state: TimelineState, row: TraceRow, width: int) -> Line:
        if row.track is not None:
            counter = row.track.counter
            unit = f" ({counter.unit})" if counter is not None and counter.unit else ""
            return (column(f"    {row.track.name}{unit}", width - 1, "muted"), Span(" "))
        whole_ms = inference_of(row.level.content)
        is_open = state.is_open(row)
        # An open level has room for a sentence.
        took = "" if is_open or whole_ms is None else f" {milliseconds(whole_ms)} ms"
        return (
            Span(_OPEN if is_open else _CLOSED, "accent"),
            column(f"{row.level.level.value}{took}", width - 3, "strong"),
            Span(" "),
        )

    def _drawn(self, state: TimelineState, index: int) -> Iterator[Span]:
        row, width = state.rows[index], self.time_width
        shown = row.shown
        if row.track is None and state.is_open(row):
            yield Span(cut(level_answer(row.level.content, self.slowest), width))
        elif shown is not None:
            window = state.window(width).later(row.level.start_of(state.anchor))
            selected = state.selected(index) if index == self.cursor else None
            if shown.counter is not None:
                yield from counter_row(shown.counter, shown.times, window, width, selected)
            else:
                styles = _ADDED if row.track is not None and row.track.kind is TrackKind.ADDED else USUAL
                named = partial(self._named, shown.spans)
                yield from span_row(shown.times.runs(window, width), named, selected, styles)

    def _named(self, spans: Sequence[TracedSpan], number: int) -> str:
        return spans[number].name.removeprefix(self.common)

    def on_click(self, event: events.Click) -> None:
        super().on_click(event)
        cell = event.x - 1 - self.name_width
        if self.state is not None and cell >= 0 and self.cursor < self.row_count:
            self.state.select_at(self.cursor, cell, self.time_width)


class TimelinePanel(Panel):
    """The timeline of a trace with the time axis above it."""

    scope = actions.TIMELINE
    TITLE = "Timeline"
    REACHED_BY = "trace.go_to_timeline"
    HEADED = True
    ABOUT = (
        "The levels of the trace, each with the tracks of its instruments. Every level has inferences of its own; all "
        "are aligned at the start of the inference that the axis names. A bar is a span with its name; ░ ▒ ▓ █ are "
        "spans too narrow for a cell, by the share that they cover; █═ and ● mark the selected span. {timeline.next} "
        "and {timeline.previous} go from span to span, {timeline.zoom_in} and {timeline.zoom_out} zoom, "
        "{timeline.pan_left} and {timeline.pan_right} move. {timeline.show_in_tree} shows a layer in the decomposition."
    )

    class Selected(Message):
        """Another span or row is selected."""

    class ShownInTree(Message):
        """The user wants to see the layer of the selected span in the decomposition."""

    def __init__(self) -> None:
        self._list = TimelineRows()
        super().__init__(self._list, id="timeline")

    @property
    def state(self) -> TimelineState | None:
        """The open trace; None without one."""
        return self._list.state

    @property
    def row(self) -> int:
        """The selected row."""
        return self._list.cursor

    @property
    def selected_layer(self) -> int | None:
        """The index of the layer of the selected span."""
        return None if self.state is None else self.state.selected_layer(self.row)

    def copied_heading(self, width: int) -> Line:
        # Times along an axis are no columns.
        return ()

    def heading(self, width: int) -> Line:
        """Return the inference at which the levels are aligned, and the axis from its start on."""
        if self.state is None:
            return ()
        names, times = self._list.name_width, self._list.time_width
        drawn = axis(self.state.window(times), times)
        named = f"inference {self.state.anchor + 1:,}/{self.state.inferences:,}"
        unit = Span(f"{drawn.unit} ", "muted")
        return (Span(" "), column(named, names - cell_len(unit.text), "muted"), unit, Span(drawn.cells, "muted"))

    def show(self, state: TimelineState, slowest: LayerTime | None, layer: int | None = None) -> None:
        """Show a trace, with a layer selected if it has that layer."""
        self._list.state, self._list.slowest = state, slowest
        self._list.common = usual_beginning([it.name for it in state.trace.layers])
        self._list.rows_changed()
        width = self._list.time_width
        found = None if layer is None else state.select_layer(layer, width)
        row = state.first_row() if found is None else found
        self._changed(row)

    def cursor_settled(self) -> None:
        self.post_message(self.Selected())

    def action_next(self) -> None:
        self._step(1)

    def action_previous(self) -> None:
        self._step(-1)

    def action_open_or_close(self) -> None:
        if self.state is not None:
            is_open = self.state.is_open(self.state.rows[self.row])
            self._changed((self.state.close if is_open else self.state.open)(self.row))

    def action_zoom_in(self) -> None:
        self._change(lambda state, row, width: state.zoom(row, 1, width))

    def action_zoom_out(self) -> None:
        self._change(lambda state, row, width: state.zoom(row, -1, width))

    def action_pan_right(self) -> None:
        self._change(lambda state, _, width: state.pan(_SHIFT, width))

    def action_pan_left(self) -> None:
        self._change(lambda state, _, width: state.pan(-_SHIFT, width))

    def action_next_inference(self) -> None:
        self._change(lambda state, row, width: state.go_to_inference(row, 1, width))

    def action_previous_inference(self) -> None:
        self._change(lambda state, row, width: state.go_to_inference(row, -1, width))

    def action_slowest(self) -> None:
        self._change(lambda state, row, width: state.select_slowest(row, width))

    def action_fit(self) -> None:
        self._change(lambda state, *_: state.fit_inference())

    def action_fit_everything(self) -> None:
        self._change(lambda state, *_: state.fit_everything())

    def action_fit_span(self) -> None:
        self._change(lambda state, row, width: state.fit_span(row, width))

    def action_show_in_tree(self) -> None:
        self.post_message(self.ShownInTree())

    def action_copy(self) -> None:
        self.copy(None if self.state is None else self.state.brick_key(self.row), NO_LAYER)

    def on_click(self) -> None:
        super().on_click()
        # The list has selected the span.
        self._changed(self.row)

    def _step(self, step: int) -> None:
        state = self.state
        if state is None or self.row >= len(state.rows):
            return
        if state.rows[self.row].track is None:
            self._changed((state.open if step > 0 else state.close)(self.row))
        else:
            self._change(lambda state, row, width: state.step(row, step, width))

    def _change(self, change: Callable[[TimelineState, int, int], object]) -> None:
        """Change what is in view or selected, and draw it."""
        if self.state is not None and self.row < len(self.state.rows):
            change(self.state, self.row, self._list.time_width)
            self._changed(self.row)

    def _changed(self, row: int) -> None:
        self._list.rows_changed()
        self._list.move_to(row)
        self.heading_changed()
        self.post_message(self.Selected())
