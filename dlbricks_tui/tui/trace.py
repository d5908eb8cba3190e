"""The screen of the traces of a model: a timeline with levels that open and close, and the start of a new trace."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from rich.cells import cell_len
from textual import on
from textual.message import Message

from dlbricks_tui.api import traces
from dlbricks_tui.api.followed_jobs import TraceJob
from dlbricks_tui.api.open_models import LayerPlace, index_of
from dlbricks_tui.api.session import Asked, WorkbenchSession
from dlbricks_tui.api.traces import TraceSettings
from dlbricks_tui.documents.lines import Line, Span, column, cut, line, wrapped
from dlbricks_tui.documents.timeline_rows import TimelineState
from dlbricks_tui.documents.trace import (
    USUAL,
    axis,
    counter_parts,
    counter_row,
    inference_of,
    level_answer,
    level_parts,
    span_parts,
    span_row,
    span_words,
    stored_columns,
    trace_words,
)
from dlbricks_tui.settings.analysing import INFERENCES, LEVELS
from dlbricks_tui.settings.variant import BATCH, RUNTIME, THREADS
from dlbricks_tui.tui.dialogs.dialog import ConfirmingScreen
from dlbricks_tui.tui.dialogs.paths import NewFileScreen
from dlbricks_tui.tui.keys import scopes
from dlbricks_tui.tui.keys.keymap import Hint
from dlbricks_tui.tui.saving import show_message
from dlbricks_tui.tui.widgets.form import FormDialog, FormRow
from dlbricks_tui.tui.widgets.panel import Copyable, DocumentPanel, Panel, TablePanel
from dlbricks_tui.tui.widgets.rows import RowsView
from dlbricks_tui.tui.widgets.screens import WorkScreen
from dlbricks_tui.tui.widgets.text import TextLines, text_of
from dlbricks_tui.wording.answers import runtime_words, usual_beginning
from dlbricks_tui.wording.jobs import trace_question
from dlbricks_tui.wording.numbers import capitalised, in_ms, milliseconds, minute_of, signed_ms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from textual import events

    from dlbricks_tui.documents.parts import Column, Part
    from dlbricks_tui.documents.timeline_rows import TraceRow
    from dlbricks_tui.traces.file import StoredTrace, StoredTraces
    from dlbricks_tui.traces.trace import LevelDone, Trace

# As in the decomposition.
_OPEN, _CLOSED = "- ", "+ "
_LEAST_NAME, _MOST_NAME = 22, 34
_SHIFT = 0.5
# The spans of operators that the runtime added.
_ADDED = ("warn", "warn")
NO_LAYER = "Only a span of a layer has a brick: select one in the track of the layers."


class TimelineRows(RowsView):
    """The rows of an open trace; only the visible ones are drawn, and of them only the times in view.

    plotext would take 70 ms for a row of 1,000 spans, and hide all spans of a cell but one. Looking up the cells in
    view takes 0.6 ms; they show names and shares, and can be selected as in a list.
    """

    def __init__(self) -> None:
        super().__init__()
        self.state: TimelineState | None = None
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
        state = self.state
        return () if state is None else (*self._label(state, state.rows[index]), *self._drawn(state, index))

    def all_rows(self, width: int) -> list[Line]:
        state = self.state
        if state is None:
            return []
        names = [text_of(self._label(state, row)) for row in state.rows]
        return [(Span(f"{name} "), *self._drawn(state, index)) for index, name in enumerate(names)]

    def _label(self, state: TimelineState, row: TraceRow) -> Line:
        width = self.name_width
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
            yield Span(cut(level_answer(row.level.content, state.slowest), width))
        elif shown is not None:
            window = state.window(width).later(row.level.start_of(state.anchor))
            selected = state.selected(index) if index == self.cursor else None
            if shown.counter is not None:
                yield from counter_row(shown.counter, shown.times, window, width, selected)
            else:
                styles = _ADDED if row.track is not None and row.track.is_added else USUAL
                spans = shown.spans
                yield from span_row(
                    shown.times.runs(window, width),
                    lambda number: spans[number].name.removeprefix(self.common),
                    selected,
                    styles,
                )

    def on_click(self, event: events.Click) -> None:
        super().on_click(event)
        cell = event.x - 1 - self.name_width
        if self.state is not None and cell >= 0 and self.cursor < self.row_count:
            self.state.select_at(self.cursor, cell, self.time_width)


class TimelinePanel(Panel):
    """The timeline of a trace with the time axis above it."""

    scope = scopes.TIMELINE
    TITLE = "Timeline"
    HEADED = True
    PLACEHOLDER = (Hint("Looking for traces of this model.", "muted"),)
    NOTHING_TO_COPY = NO_LAYER
    ABOUT = (
        "The levels of the trace, each with the tracks of its instruments. Every level has inferences of its own; all "
        "are aligned at the start of the inference that the axis names. A bar is a span with its name; ░ ▒ ▓ █ are "
        "spans too narrow for a cell, by the share that they cover; █═ and ● mark the selected span. {timeline.next} "
        "and {timeline.previous} go from span to span, {timeline.zoom_in} and {timeline.zoom_out} zoom, "
        "{timeline.pan_left} and {timeline.pan_right} move. {timeline.show_in_tree} shows a layer in the decomposition."
    )

    class Selected(Message):
        """Another span or row is selected."""

    def __init__(self) -> None:
        self._list = TimelineRows()
        super().__init__(self._list)

    @property
    def state(self) -> TimelineState | None:
        """The open trace; None without one."""
        return self._list.state

    @property
    def row(self) -> int:
        return self._list.cursor

    @property
    def selected_layer(self) -> int | None:
        """The index of the layer of the selected span."""
        return None if self.state is None else self.state.selected_layer(self.row)

    def heading(self, width: int) -> Line:
        """Return the inference at which the levels are aligned, and the axis from its start on."""
        if self.state is None:
            return ()
        names, times = self._list.name_width, self._list.time_width
        unit, cells = axis(self.state.window(times), times)
        named = f"inference {self.state.anchor + 1:,}/{self.state.inferences:,}"
        of_axis = Span(f"{unit} ", "muted")
        return (Span(" "), column(named, names - cell_len(of_axis.text), "muted"), of_axis, Span(cells, "muted"))

    def show(self, state: TimelineState, layer: int | None = None) -> None:
        """Show a trace, with a layer selected if it has that layer."""
        self._list.state = state
        self._list.common = usual_beginning([it.name for it in state.trace.layers])
        self._list.rows_changed()
        width = self._list.time_width
        found = None if layer is None else state.select_layer(layer, width)
        row = state.first_row() if found is None else found
        self._changed(row)

    def cursor_settled(self) -> None:
        self.post_message(self.Selected())

    def action_open_or_close(self) -> None:
        if self.state is not None:
            is_open = self.state.is_open(self.state.rows[self.row])
            self._changed(self.state.open(self.row, is_open=not is_open))

    def action_zoom(self, step: int) -> None:
        self._change(lambda state, row, width: state.zoom(row, step, width))

    def action_pan(self, step: int) -> None:
        self._change(lambda state, _, width: state.pan(step * _SHIFT, width))

    def action_move_inference(self, step: int) -> None:
        self._change(lambda state, row, width: state.go_to_inference(row, step, width))

    def action_slowest(self) -> None:
        self._change(lambda state, row, width: state.select_slowest(row, width))

    def action_fit(self, *, everything: bool = False) -> None:
        self._change(lambda state, *_: state.fit(everything=everything))

    def action_fit_everything(self) -> None:
        self.action_fit(everything=True)

    def action_fit_span(self) -> None:
        self._change(lambda state, row, width: state.fit_span(row, width))

    def copied(self) -> str | None:
        return None if self.state is None else self.state.brick_key(self.row)

    def on_click(self) -> None:
        super().on_click()
        # The list has selected the span.
        self._changed(self.row)

    def action_step(self, step: int) -> None:
        state = self.state
        if state is None or self.row >= len(state.rows):
            return
        if state.rows[self.row].track is None:
            self._changed(state.open(self.row, is_open=step > 0))
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


class SpanPanel(DocumentPanel):
    scope = scopes.SPAN
    TITLE = "Span"
    PLACEHOLDER = (Hint("Select a span in the timeline", "muted"), Hint("to see its details here.", "muted"))
    NOTHING_TO_COPY = NO_LAYER
    ABOUT = (
        "The selected span: its time and its share of the inference. A layer also has the median of its times in the "
        "model, at the layer level, and the stored time of its brick. On the row of a level: what the level adds to "
        "the one below, and what to know about it. {span.copy} copies the key of the brick."
    )

    def show(self, state: TimelineState | None, row: int) -> None:
        if state is None or row >= len(state.rows):
            self.show_groups(())
        else:
            parts = Copyable(tuple(_parts(state, row)), state.brick_key(row) or "")
            self.show_groups([parts], (row, state.selected(row)))


def _parts(state: TimelineState, index: int) -> Iterator[Part]:
    row, span = state.rows[index], state.selected_span(index)
    track, level = row.track, row.level.content
    if span is not None and track is not None and track.kind is not None:
        layer = None if span.layer is None else state.layers.get(span.layer)
        return span_parts(span, track.kind, level, layer, None if layer is None else state.times.get(layer.index))
    if track is not None and track.counter is not None:
        return counter_parts(track.counter, state.selected(index))
    return level_parts(level, state.trace.missing)


class TracesPanel(TablePanel["StoredTrace"]):
    scope = scopes.TRACES
    TITLE = "Traces"
    SEARCH_HINT = "runtime, date or id"
    PLACEHOLDER = (Hint("No trace of this model is stored."), Hint("{trace.measure} traces the model.", "muted"))
    NOUN = "trace"
    IDENTITY = attrgetter("header.id")
    COPIES = attrgetter("header.id")
    NOTHING_TO_COPY = "There is no trace to copy the id of."
    ABOUT = (
        "The stored traces of the model, the newest first; * is the one in the timeline. {traces.open} shows another "
        "one. They are files in the folder of your data, which you may delete."
    )

    def __init__(self) -> None:
        super().__init__()
        self._shown = ""

    def columns(self) -> tuple[Column[StoredTrace], ...]:
        return stored_columns(self._shown)

    def show(self, listed: StoredTraces) -> None:
        self.show_items(listed.traces[::-1])
        unreadable = len(listed.unreadable)
        self.border_subtitle = f"{unreadable:,} cannot be read" if unreadable else ""

    def mark_shown(self, trace: str) -> None:
        """Mark the trace in the timeline, and select it."""
        self._shown = trace
        self.select(trace)
        self.columns_changed()

    def searched(self, item: StoredTrace) -> str:
        return f"{item.header.runtime} {runtime_words(item.header.runtime)} {item.header.when[:16]} {item.header.id}"


_TOLD = (
    "The model runs once more for each level: model, layer (the runtime's profiler), primitive (the kernels of oneDNN) "
    "and thread. Each level adds instruments to the one before, and so shows what they cost."
)
TRACE_ROWS = (
    FormRow(setting=RUNTIME, offered=lambda it: it.registered),
    FormRow(setting=THREADS, usual="default"),
    FormRow(setting=BATCH, usual="the file's"),
    FormRow(setting=LEVELS, many=True, offered=attrgetter("offered_levels"), words=lambda it: it.levels[-1].value),
    FormRow(setting=INFERENCES),
)


class StartTraceScreen(FormDialog[TraceSettings]):
    """Returns the settings to trace the model with."""

    scope = scopes.START_TRACE
    CSS = "StartTraceScreen RowsView { height: 5; }"
    ABOUT = (
        "A trace runs the model at rising levels of detail, in a process of its own. It waits for runs on this host, "
        "and the end of the screen ends it. A level that the runtime or the host cannot give is left out, with its "
        "reason."
    )

    def __init__(self, model: str, settings: TraceSettings) -> None:
        below = TextLines(lambda width: tuple(wrapped(line(Span(_TOLD, "muted")), width)))
        super().__init__(TRACE_ROWS, settings, below, heading=f"Trace {model}")


class WriteTraceScreen(NewFileScreen):
    """Asks for the file of a trace."""

    HINT = "~/model.pftrace, or ~/model.json for chrome://tracing"
    ABOUT = (
        "The ending selects the format. A .json file opens in chrome://tracing and in Perfetto; any other file has the "
        "format of Perfetto, for ui.perfetto.dev. The stored trace stays where it is."
    )


class CancelTraceScreen(ConfirmingScreen):
    HEADING = "Cancel the trace?"
    scope = scopes.CANCEL_TRACE
    ABOUT = "A trace is stored once all of its levels have ended. Stored traces are kept."
    ASKS = ("The model is being traced.", "The levels of this trace are lost; traces that are stored are kept.")


_NO_TRACE = Hint(" Nothing was traced yet: {trace.measure} traces it in about a minute.", "warn")


def _open(stored: StoredTrace) -> TimelineState:
    return TimelineState(traces.whole_trace(stored))


class TraceScreen(WorkScreen[LayerPlace, TraceJob]):
    """Shows traces of the open model; returns the layer to show in the decomposition."""

    scope = scopes.TRACE
    CSS = """
    TraceScreen.-medium .panels, TraceScreen.-wide .panels { grid-columns: 3fr 2fr; grid-rows: 3fr 2fr; }
    TraceScreen.-medium TimelinePanel, TraceScreen.-wide TimelinePanel { column-span: 2; }
    """
    ABOUT = (
        "Where the time of the open model goes. A trace runs it at rising levels of detail, each by itself, so that "
        "each level also tells what its instruments cost. {trace.measure} traces the model, {trace.cancel} cancels, "
        "and {trace.write} writes the trace to a file for Perfetto or chrome://tracing."
    )
    WORK = "The trace"
    UNDER_WAY = "The model is being traced"
    CANCELLED = "The trace is cancelled; stored traces are kept."
    ASKS_TO_CANCEL = CancelTraceScreen

    def __init__(self, session: WorkbenchSession, asked: Callable[[], Asked], layer: LayerPlace | None = None) -> None:
        self._timeline = TimelinePanel()
        self._span = SpanPanel()
        self._traces = TracesPanel()
        super().__init__(self._timeline, self._span, self._traces)
        self._data = session.data
        self._asked = asked
        self._model = asked().spec.source.name
        # The layer to begin with, until a trace has been shown.
        self._layer = layer
        self._settings: TraceSettings | None = None
        self._has_looked = False
        # The trace to show once it is listed; empty: the newest one, if none is open.
        self._wanted = ""

    def on_mount(self) -> None:
        self.find_job(partial(TraceJob.begun, self._data, self._model))

    # Stored traces

    def look(self) -> None:
        look = partial(traces.traces_of, self._data, self._model)
        self.run_in_thread(look, "traces", self._listed, self._fail)

    def _listed(self, found: StoredTraces) -> None:
        self._traces.show(found)
        self._timeline.show_placeholder(line("Its spans are shown here."))
        self._has_looked = True
        self.head_changed()
        if found.traces and (self._wanted or self._timeline.state is None):
            self._traces.select(self._wanted or found.traces[-1].header.id)
            self._wanted = ""
            self._open_selected()

    def action_open_trace(self) -> None:
        if self._traces.selected is not None:
            self.go_to(self._timeline)
            self._open_selected()

    def _open_selected(self) -> None:
        if self._traces.selected is not None:
            self.run_in_thread(partial(_open, self._traces.selected), "trace", self._trace_read, self._fail)

    def _trace_read(self, found: TimelineState) -> None:
        self.failure = ""
        self._traces.mark_shown(found.trace.id)
        self._timeline.show(found, self._layer_to_begin_with(found.trace))
        self.head_changed()

    def _layer_to_begin_with(self, trace: Trace) -> int | None:
        """Return the layer that was selected in the decomposition; None if the trace does not have it."""
        wanted, self._layer = self._layer, None
        if wanted is None:
            return None
        place = index_of(wanted, [it.name for it in trace.layers])
        if place is None:
            self.notify(f"The trace has no layer {wanted.name}: its layers are {trace.graph_level.value}.")
        return None if place is None else trace.layers[place].index

    def _fail(self, reason: str) -> None:
        self.failure = reason
        self._timeline.show_placeholder(line(Span(reason, "warn")))
        self.head_changed()

    @on(TimelinePanel.Selected)
    def _span_selected(self) -> None:
        self._span.show(self._timeline.state, self._timeline.row)
        self.head_changed()

    # What is shown

    def question(self) -> str:
        return trace_question(self._model)

    def answer(self) -> Iterable[Line]:
        opened, row = self._timeline.state, self._timeline.row
        if opened is not None and row < len(opened.rows):
            level = opened.rows[row].level.content
            answer = capitalised(f"{level.level.value} level: {level_answer(level, opened.slowest)}")
            yield line(Span(f" {answer}", "strong"))
        if self.failure:
            yield line(Span(f" {self.failure}", "bad"))
        elif opened is None and self.job is None:
            yield _NO_TRACE.line if self._has_looked else line(Span(" Looking for traces.", "muted"))
        # How far a trace is must not be cut off.
        if self.job is not None:
            yield progress_line(self.job)

    def state(self) -> Line:
        """Return the selected span: a narrow terminal has no room for its panel."""
        opened, row = self._timeline.state, self._timeline.row
        if self.job is not None:
            return ()
        if opened is None or row >= len(opened.rows):
            return line(Span(" "))
        span, level = opened.selected_span(row), opened.rows[row].level.content
        if span is None:
            return line(Span(f" {trace_words(opened.trace)}, {minute_of(opened.trace.when)} UTC", "muted"))
        time = None if span.layer is None else opened.times.get(span.layer)
        return line(Span(f" {span.name}", "strong"), Span(f" {span_words(span, level, time)}", "muted"))

    def controls(self) -> Mapping[str, bool]:
        return {**super().controls(), "write": self._timeline.state is not None}

    def action_show_in_tree(self) -> None:
        opened, layer = self._timeline.state, self._timeline.selected_layer
        if opened is None or layer is None:
            self.notify("Select a span of a layer to see it in the decomposition.")
        else:
            self.leave_with(LayerPlace(layer, opened.layers[layer].name, opened.trace.graph_level))

    def action_write(self) -> None:
        opened = self._timeline.state
        if opened is None:
            return

        def write(path: Path) -> None:
            written = partial(show_message, self.app, f"The trace is in {path}")
            refused = partial(show_message, self.app, warning=True)
            write_file = partial(traces.write_in, path, opened.trace)
            self.run_in_thread(write_file, "", lambda _: written(), refused)

        self.ask(WriteTraceScreen(f"Write the trace of {self._model} to a file"), write)

    # The measurement

    def config_changed(self) -> None:
        # A change of the config overrides the settings of earlier traces, as it does for runs.
        self._settings = None

    def action_measure(self) -> None:
        if self.says_under_way():
            return
        if self._settings is not None:
            self._ask_for_settings(self._settings)
        else:
            spec, choices, config = self._asked()
            first = partial(traces.first_settings, self._data, spec.source, choices, config)
            self.run_in_thread(first, "settings", self._ask_for_settings, self._fail)

    def _ask_for_settings(self, settings: TraceSettings) -> None:
        def measure(settings: TraceSettings) -> None:
            self._settings = settings
            spec, choices, _ = self._asked()
            order = partial(traces.order_of, self._data, spec, choices, settings)
            self.run_in_thread(order, "order", lambda found: self.follow(TraceJob(found, self._data)), self._fail)

        self.ask(StartTraceScreen(self._model, settings), measure)

    def job_ended(self, job: TraceJob) -> None:
        self.failure = f"the model was not traced: {job.failure}" if job.failure else ""
        self.head_changed()
        if job.done:
            self._wanted = job.done
            self.look()


def progress_line(job: TraceJob) -> Line:
    """Return how far a trace is: what ended levels have taken, and what runs now."""
    if job.cancelled:
        return line(Span(" cancelling", "warn"))
    if job.waits_for:
        return line(Span(f" waits for {job.waits_for}", "warn"))
    levels, ended = job.order.levels, job.ended_levels
    later = levels[len(ended) if job.level is None else levels.index(job.level) + 1 :]
    then = f"then {', '.join(it.value for it in later)}" if later else ""
    return line(Span(f" {', '.join(filter(None, [*map(_level_done, ended), _now(job), then]))}", "good"))


def _now(job: TraceJob) -> str:
    if job.round is not None and job.round.rounds > 1:
        return f"round {job.round.number} of {job.round.rounds} at all levels"
    if job.level is None:
        return "" if job.ended_levels else "reading the model"
    if job.level in (it.level for it in job.ended_levels):
        return ""
    return f"{job.level.value} level {'starts' if job.round is None else 'is traced'}"


def _level_done(event: LevelDone) -> str:
    if event.inference_ms is None:
        return f"no {event.level.value}"
    added = "" if event.overhead_ms is None else f" ({signed_ms(event.overhead_ms)})"
    return f"{event.level.value} {in_ms(event.inference_ms)}{added}"
