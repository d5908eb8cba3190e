"""The screen of the traces of a model: a timeline with levels that open and close, and the start of a new trace."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from textual import on

from dlbricks_tui.api import traces
from dlbricks_tui.api.followed_jobs import TraceJob
from dlbricks_tui.api.open_models import Choices, LayerPlace, ModelSpec, index_of
from dlbricks_tui.api.traces import TraceSettings
from dlbricks_tui.api.workbench_session import WorkbenchSession
from dlbricks_tui.config.config import Config
from dlbricks_tui.documents.lines import Line, Span, line
from dlbricks_tui.documents.timeline_rows import TimelineState
from dlbricks_tui.documents.trace import level_answer, span_words, trace_words
from dlbricks_tui.tui.keys import scopes
from dlbricks_tui.tui.keys.keymap import Hint
from dlbricks_tui.tui.run.work_screen import WorkScreen
from dlbricks_tui.tui.saving import show_message
from dlbricks_tui.tui.trace.panels import (
    CancelTraceScreen,
    SpanPanel,
    StartTraceScreen,
    TimelinePanel,
    TracesPanel,
    WriteTraceScreen,
)
from dlbricks_tui.wording.jobs import trace_question
from dlbricks_tui.wording.numbers import capitalised, in_ms, minute_of, signed_ms

if TYPE_CHECKING:
    from dlbricks_tui.traces.file import StoredTrace, StoredTraces
    from dlbricks_tui.traces.trace import LevelDone, Trace

_NO_TRACE = Hint(" Nothing was traced yet: {trace.measure} traces it in about a minute.", "warn")


def _open(stored: StoredTrace) -> TimelineState:
    return TimelineState(traces.whole_trace(stored))


class TraceScreen(WorkScreen[LayerPlace, TraceJob]):
    """Shows traces of the open model; returns the layer to show in the decomposition."""

    scope = scopes.TRACE
    CSS_PATH = "trace.tcss"
    ABOUT = (
        "Where the time of the open model goes. A trace runs it at rising levels of detail, each by itself, so that "
        "each level also tells what its instruments cost. {trace.measure} traces the model, {trace.cancel} cancels, "
        "and {trace.write} writes the trace to a file for Perfetto or chrome://tracing."
    )
    WORK = "The trace"
    UNDER_WAY = "The model is being traced"
    CANCELLED = "The trace is cancelled; stored traces are kept."
    ASKS_TO_CANCEL = CancelTraceScreen

    def __init__(
        self,
        session: WorkbenchSession,
        spec: ModelSpec,
        choices: Choices,
        config: Config,
        layer: LayerPlace | None = None,
    ) -> None:
        self._timeline = TimelinePanel()
        self._span = SpanPanel()
        self._traces = TracesPanel()
        super().__init__(self._timeline, self._span, self._traces)
        self._data = session.data
        self._spec = spec
        self._model = spec.source.name
        self._choices = choices
        self._config = config
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

    @on(TracesPanel.Opened, "#traces")
    def _trace_wanted(self) -> None:
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

    @on(TimelinePanel.ShownInTree)
    def _show_in_tree(self) -> None:
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

    def action_measure(self) -> None:
        if self.says_under_way():
            return
        if self._settings is not None:
            self._ask_for_settings(self._settings)
        else:
            first = partial(traces.first_settings, self._data, self._spec.source, self._choices, self._config)
            self.run_in_thread(first, "settings", self._ask_for_settings, self._fail)

    def _ask_for_settings(self, settings: TraceSettings) -> None:
        def measure(settings: TraceSettings) -> None:
            self._settings = settings
            order = partial(traces.order_of, self._data, self._spec, self._choices, settings)
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
