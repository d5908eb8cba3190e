"""The screen of the traces of a model: a timeline with levels that open and close, and the start of a new trace."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from textual import on

from dlbricks_tui.documents.lines import Line, Span, line
from dlbricks_tui.documents.trace import level_answer, span_words, trace_words
from dlbricks_tui.tui.keys.keymap import Hint, key
from dlbricks_tui.tui.open_model import LayerPlace, index_of
from dlbricks_tui.tui.saving import show_message
from dlbricks_tui.tui.trace import actions, work
from dlbricks_tui.tui.trace.panels import SpanPanel, TracesPanel
from dlbricks_tui.tui.trace.timeline import TimelinePanel
from dlbricks_tui.tui.widgets.answering import AnsweringScreen
from dlbricks_tui.wording.numbers import capitalised, in_ms, minute_of
from dlbricks_tui.wording.tracing import signed_ms, trace_question

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from dlbricks_tui.config.config import Config
    from dlbricks_tui.traces.messages import LevelDone, TraceOrder
    from dlbricks_tui.tui.choices import Choices
    from dlbricks_tui.tui.open_model import ModelSpec
    from dlbricks_tui.tui.session import Session
    from dlbricks_tui.tui.trace.boxes import TraceSettings
    from dlbricks_tui.tui.trace.work import OpenTrace, Tracing
    from dlbricks_tui.tui.widgets.panel import Panel


class TraceScreen(AnsweringScreen[LayerPlace]):
    """Shows traces of the open model; returns the layer to show in the decomposition."""

    scope = actions.TRACE
    CSS_PATH = "trace.tcss"
    ABOUT = (
        "Where the time of the open model goes. A trace runs it at rising levels of detail, each by itself, so that "
        "each level also tells what its instruments cost. {trace.measure} traces the model, {trace.cancel} cancels, "
        "and {trace.write} writes the trace to a file for Perfetto or chrome://tracing."
    )

    def __init__(
        self, session: Session, spec: ModelSpec, choices: Choices, config: Config, layer: LayerPlace | None = None
    ) -> None:
        super().__init__()
        self._session = session
        self._spec = spec
        self._model = spec.source.name
        self._choices = choices
        self._config = config
        # The layer to begin with, until a trace has been shown.
        self._layer = layer
        self._settings: TraceSettings | None = None
        self._opened: work.OpenTrace | None = None
        # Why there is no trace, or why the last one failed.
        self._failure = ""
        self._tracing: Tracing | None = None
        # The trace to show once it is listed; empty: the newest one, if none is open.
        self._wanted = ""
        self._timeline = TimelinePanel()
        self._span = SpanPanel()
        self._traces = TracesPanel()

    def panels(self) -> Iterable[Panel]:
        return (self._timeline, self._span, self._traces)

    def on_mount(self) -> None:
        self._timeline.show_placeholder(line(Span("Looking for traces of this model.", "muted")))
        self.action_look_again()
        self.run_in_thread(
            partial(work.Tracing.begun, self._spec.source.name, self._session.data), "begun", self._go_on
        )

    # Stored traces

    def action_look_again(self) -> None:
        self.run_in_thread(partial(work.list_traces, self._session, self._model), "traces", self._listed)

    def _listed(self, found: work.ListedTraces | str) -> None:
        if isinstance(found, str):
            self._fail(found)
            return
        self._traces.show(found)
        self._timeline.show_placeholder(
            line("No trace of this model is stored."),
            Hint("{trace.measure} traces it at rising levels of detail, in about a minute.", "muted"),
        )
        if found.traces and (self._wanted or self._opened is None):
            self._traces.select(self._wanted or found.traces[0].header.id)
            self._wanted = ""
            self._open_selected()

    @on(TracesPanel.Opened)
    def _trace_wanted(self) -> None:
        self.go_to(self._timeline)
        self._open_selected()

    def _open_selected(self) -> None:
        if self._traces.selected is not None:
            self.run_in_thread(partial(work.open_trace, self._traces.selected.path), "trace", self._trace_read)

    def _trace_read(self, found: work.OpenTrace | str) -> None:
        if isinstance(found, str):
            self._fail(found)
            return
        self._opened, self._failure = found, ""
        self._traces.mark(found.state.trace.id)
        self._timeline.show(found.state, found.slowest, self._layer_to_begin_with(found))
        self._show_head()

    def _layer_to_begin_with(self, opened: work.OpenTrace) -> int | None:
        """Return the layer that was selected in the decomposition; None if the trace does not have it."""
        wanted, self._layer = self._layer, None
        if wanted is None:
            return None
        trace = opened.state.trace
        place = index_of(wanted, [it.name for it in trace.layers])
        if place is None:
            self.notify(f"The trace has no layer {wanted.name}: its layers are {trace.graph_level.value}.")
        return None if place is None else trace.layers[place].index

    def _fail(self, reason: str) -> None:
        self._failure = reason
        self._timeline.show_placeholder(line(Span(reason, "warn")))
        self._show_head()

    @on(TimelinePanel.Selected)
    def _span_selected(self) -> None:
        self._span.show(self._opened, self._timeline.row)
        self._show_head()

    # What is shown

    def _show_head(self) -> None:
        self.head_changed()
        self.refresh_bindings()

    def question(self) -> str:
        return trace_question(self._model)

    def answer(self) -> Iterable[Line]:
        yield from answer_lines(self._opened, self._timeline.row)
        if self._failure:
            yield line(Span(f" {self._failure}", "bad"))
        # How far a trace is must not be cut off.
        if self._tracing is not None:
            yield progress_line(self._tracing)

    def state(self) -> Line:
        return () if self._tracing is not None else selection_line(self._opened, self._timeline.row)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "cancel":
            return self._tracing is not None
        if action == "write":
            return self._opened is not None
        return super().check_action(action, parameters)

    # The decomposition

    @on(TimelinePanel.ShownInTree)
    def _show_in_tree(self) -> None:
        layer = self._timeline.selected_layer
        if self._opened is None or layer is None:
            self.notify("Select a span of a layer to see it in the decomposition.")
            return
        trace = self._opened.state.trace
        place = LayerPlace(layer, self._opened.state.layers[layer].name, trace.graph_level)
        self._leave_with(place)

    # Files of other programs

    def action_write(self) -> None:
        from dlbricks_tui.tui.trace.boxes import WriteTraceScreen

        if self._opened is not None:
            self.ask(WriteTraceScreen(self._model), partial(self._write_to, self._opened))

    def _write_to(self, opened: work.OpenTrace, path: Path) -> None:
        self.run_in_thread(partial(work.write_trace_file, opened, path), "", partial(self._written, path))

    def _written(self, path: Path, refusal: str) -> None:
        show_message(self.app, refusal or f"The trace is in {path}", warning=bool(refusal))

    # The measurement

    def action_measure(self) -> None:
        if self._tracing is not None:
            self._say_tracing()
        elif self._settings is not None:
            self._ask_for_settings(self._settings)
        else:
            first = partial(work.first_settings, self._session, self._spec, self._choices, self._config)
            self.run_in_thread(first, "settings", self._ask_for_settings)

    def _ask_for_settings(self, settings: TraceSettings | str) -> None:
        from dlbricks_tui.tui.trace.boxes import StartTraceScreen

        if isinstance(settings, str):
            self._fail(settings)
        else:
            self.ask(StartTraceScreen(self._model, settings), self._measure)

    def _measure(self, settings: TraceSettings) -> None:
        self._settings = settings
        order = partial(work.order_of, self._session, self._spec, self._choices, settings)
        self.run_in_thread(order, "order", self._start)

    def _start(self, order: TraceOrder | str) -> None:
        from dlbricks_tui.tui.trace.work import Tracing

        if isinstance(order, str):
            self._fail(order)
        elif self._tracing is None:
            self._failure = ""
            self._go_on(Tracing.new(order, self._session.data))

    def _go_on(self, tracing: Tracing | None) -> None:
        if tracing is not None and self._tracing is None:
            self._tracing = tracing
            self._show_head()
            self.run_worker(self._follow(tracing), group="measurement", exit_on_error=False)

    async def _follow(self, tracing: Tracing) -> None:
        try:
            await tracing.follow(self._show_head)
        finally:
            self._tracing = None
            self._failure = f"the model was not traced: {tracing.failure}" if tracing.failure else ""
            if tracing.cancelled:
                self.notify("The trace is cancelled; stored traces are kept.")
            self._show_head()
            if tracing.done:
                self._wanted = tracing.done
                self.action_look_again()

    def _say_tracing(self) -> None:
        self.notify(f"The model is being traced: {key('trace.cancel')} cancels it.")

    def action_cancel(self) -> None:
        from dlbricks_tui.tui.trace.boxes import CancelTraceScreen

        def cancel(_: bool) -> None:
            if self._tracing is not None:
                self._tracing.cancel()

        self.ask(CancelTraceScreen("The model is being traced."), cancel)

    def action_leave(self) -> None:
        self._leave_with(None)

    def _leave_with(self, place: LayerPlace | None) -> None:
        if self._tracing is not None:
            show_message(self.app, "The trace goes on in the background; this screen shows it again.")
        self.dismiss(place)


def answer_lines(opened: OpenTrace | None, row: int) -> Iterator[Line]:
    """Yield what the level of a row says; nothing if no trace is open."""
    if opened is not None and row < len(opened.state.rows):
        level = opened.state.rows[row].level.content
        answer = capitalised(f"{level.level.value} level: {level_answer(level, opened.slowest)}")
        yield line(Span(f" {answer}", "strong"))


def selection_line(opened: OpenTrace | None, row: int) -> Line:
    """Return the selected span in one line; a narrow terminal has no room for its panel."""
    if opened is None or row >= len(opened.state.rows):
        return line(Span(" "))
    state = opened.state
    span, level = state.selected_span(row), state.rows[row].level.content
    if span is None:
        return line(Span(f" {trace_words(state.trace)}, {minute_of(state.trace.when)} UTC", "muted"))
    time = None if span.layer is None else opened.times.get(span.layer)
    return line(Span(f" {span.name}", "strong"), Span(f" {span_words(span, level, time)}", "muted"))


def progress_line(tracing: Tracing) -> Line:
    """Return how far a trace is: what ended levels have taken, and what runs now."""
    if tracing.cancelled:
        return line(Span(" cancelling", "warn"))
    if tracing.waits_for:
        return line(Span(f" waits for {tracing.waits_for}", "warn"))
    levels, ended = tracing.order.levels, tracing.ended_levels
    later = levels[len(ended) if tracing.level is None else levels.index(tracing.level) + 1 :]
    then = f"then {', '.join(it.value for it in later)}" if later else ""
    return line(Span(f" {', '.join(filter(None, [*map(_level_done, ended), _now(tracing), then]))}", "good"))


def _now(tracing: Tracing) -> str:
    if tracing.round is not None and tracing.round.rounds > 1:
        return f"round {tracing.round.number} of {tracing.round.rounds} at all levels"
    if tracing.level is None:
        return "" if tracing.ended_levels else "reading the model"
    if tracing.level in (it.level for it in tracing.ended_levels):
        return ""
    return f"{tracing.level.value} level {'starts' if tracing.round is None else 'is traced'}"


def _level_done(message: LevelDone) -> str:
    if message.inference_ms is None:
        return f"no {message.level.value}"
    added = "" if message.overhead_ms is None else f" ({signed_ms(message.overhead_ms)})"
    return f"{message.level.value} {in_ms(message.inference_ms)}{added}"
