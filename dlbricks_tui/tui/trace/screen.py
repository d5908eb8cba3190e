"""The screen of the traces of a model: a timeline with levels that open and close, and the start of a new trace."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from textual import on

from dlbricks_tui.answers.traces import trace_process
from dlbricks_tui.config.config import Config
from dlbricks_tui.documents.lines import Line, Span, line
from dlbricks_tui.documents.trace import level_answer, span_words, trace_words
from dlbricks_tui.errors import UserError
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.jobs.events import Event, Waiting
from dlbricks_tui.jobs.process import JobProcess
from dlbricks_tui.runtime.variant import Precision
from dlbricks_tui.traces.file import StoredTrace
from dlbricks_tui.traces.trace import (
    TRACE,
    LayerTime,
    LevelDone,
    LevelStarted,
    RoundStarted,
    TraceDone,
    TraceLevel,
    TraceOrder,
)
from dlbricks_tui.tui.choices import Choices
from dlbricks_tui.tui.followed import FollowedProcess
from dlbricks_tui.tui.keys import scopes
from dlbricks_tui.tui.keys.keymap import Hint, key
from dlbricks_tui.tui.open_model import LayerPlace, ModelSpec, index_of
from dlbricks_tui.tui.saving import show_message
from dlbricks_tui.tui.session import Session
from dlbricks_tui.tui.trace.panels import (
    CancelTraceScreen,
    SpanPanel,
    StartTraceScreen,
    TimelinePanel,
    TraceSettings,
    TracesPanel,
    WriteTraceScreen,
)
from dlbricks_tui.tui.trace.rows import TimelineState
from dlbricks_tui.tui.widgets.screens import AnswerScreen
from dlbricks_tui.wording.numbers import capitalised, in_ms, minute_of, signed_ms
from dlbricks_tui.wording.scenarios import trace_question

_NO_TRACE = Hint(" Nothing was traced yet: {trace.measure} traces it in about a minute.", "warn")


class ListedTraces(NamedTuple):
    """The stored traces of a model, the newest first, and a line for each file that cannot be read."""

    traces: tuple[StoredTrace, ...]
    unreadable: tuple[str, ...] = ()


def list_traces(session: Session, model: str) -> ListedTraces:
    from dlbricks_tui.traces.file import stored_traces

    found = stored_traces(session.data.traces)
    return ListedTraces(tuple(it for it in reversed(found.traces) if it.header.model == model), found.unreadable)


class OpenTrace(NamedTuple):
    """A trace that has been read, with its rows, the times of its layers by their index, and the slowest of them."""

    state: TimelineState
    times: Mapping[int, LayerTime]
    slowest: LayerTime | None


def open_trace(path: Path) -> OpenTrace:
    from dlbricks_tui.traces.file import read_trace
    from dlbricks_tui.traces.trace import layer_times, slowest_first

    trace = read_trace(path)
    times = layer_times(trace)
    slowest = next(iter(slowest_first(times)), None)
    return OpenTrace(TimelineState(trace), {it.layer.index: it for it in times}, slowest)


def write_trace_file(opened: OpenTrace, path: Path) -> None:
    """Write a trace for another program."""
    from dlbricks_tui.answers.traces import format_of, write_in

    write_in(format_of(path), opened.state.trace, path)


def first_settings(session: Session, spec: ModelSpec, choices: Choices, config: Config) -> TraceSettings:
    """Return the settings to begin with: those in view, else those of the config."""
    from dlbricks_tui.runtime.registry import Registry
    from dlbricks_tui.tui.run.settings import runtimes_for

    registry = Registry(session.data.path)
    runtimes = runtimes_for(registry, (spec.source,))
    usual = config.runtime if config.runtime in runtimes else runtimes[0]
    if choices.runtime is not None:
        # A runtime of the store has a framework; the one of this host with the same framework measures.
        with suppress(UserError):
            named = registry.find(choices.runtime.partition("-")[0]).name
            usual = named if named in runtimes else usual
    return TraceSettings(
        registered=runtimes, runtime=usual, threads=choices.threads or config.threads, batch=choices.batch
    )


def order_of(session: Session, spec: ModelSpec, choices: Choices, settings: TraceSettings) -> TraceOrder:
    """Return the order to trace a model; raise a UserError where this host cannot trace it."""
    from dlbricks_tui.answers.traces import require_room, trace_order

    precision = None if choices.precision is Precision.F32 else choices.precision
    require_room(session.data)
    return trace_order(replace(settings, precision=precision, inputs=spec.shapes), spec.source, session.data)


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


class TraceScreen(AnswerScreen[LayerPlace]):
    """Shows traces of the open model; returns the layer to show in the decomposition."""

    scope = scopes.TRACE
    CSS_PATH = "trace.tcss"
    ABOUT = (
        "Where the time of the open model goes. A trace runs it at rising levels of detail, each by itself, so that "
        "each level also tells what its instruments cost. {trace.measure} traces the model, {trace.cancel} cancels, "
        "and {trace.write} writes the trace to a file for Perfetto or chrome://tracing."
    )

    def __init__(
        self, session: Session, spec: ModelSpec, choices: Choices, config: Config, layer: LayerPlace | None = None
    ) -> None:
        self._timeline = TimelinePanel()
        self._span = SpanPanel()
        self._traces = TracesPanel()
        super().__init__(self._timeline, self._span, self._traces)
        self._session = session
        self._spec = spec
        self._model = spec.source.name
        self._choices = choices
        self._config = config
        # The layer to begin with, until a trace has been shown.
        self._layer = layer
        self._settings: TraceSettings | None = None
        self._opened: OpenTrace | None = None
        # Why there is no trace, or why the last one failed.
        self._failure = ""
        self._tracing: Tracing | None = None
        self._has_looked = False
        # The trace to show once it is listed; empty: the newest one, if none is open.
        self._wanted = ""

    def on_mount(self) -> None:
        self.run_in_thread(partial(Tracing.begun, self._model, self._session.data), "begun", self._go_on)

    # Stored traces

    def look(self) -> None:
        self.run_in_thread(partial(list_traces, self._session, self._model), "traces", self._listed, self._fail)

    def _listed(self, found: ListedTraces) -> None:
        self._traces.show(found)
        self._timeline.show_placeholder(line("Its spans are shown here."))
        self._has_looked = True
        self.head_changed()
        if found.traces and (self._wanted or self._opened is None):
            self._traces.select(self._wanted or found.traces[0].header.id)
            self._wanted = ""
            self._open_selected()

    @on(TracesPanel.Opened, "#traces")
    def _trace_wanted(self) -> None:
        self.go_to(self._timeline)
        self._open_selected()

    def _open_selected(self) -> None:
        if self._traces.selected is not None:
            read = partial(open_trace, self._traces.selected.path)
            self.run_in_thread(read, "trace", self._trace_read, self._fail)

    def _trace_read(self, found: OpenTrace) -> None:
        self._opened, self._failure = found, ""
        self._traces.mark_shown(found.state.trace.id)
        self._timeline.show(found.state, found.slowest, self._layer_to_begin_with(found))
        self.head_changed()

    def _layer_to_begin_with(self, opened: OpenTrace) -> int | None:
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
        self.head_changed()

    @on(TimelinePanel.Selected)
    def _span_selected(self) -> None:
        self._span.show(self._opened, self._timeline.row)
        self.head_changed()

    # What is shown

    def question(self) -> str:
        return trace_question(self._model)

    def answer(self) -> Iterable[Line]:
        opened, row = self._opened, self._timeline.row
        if opened is not None and row < len(opened.state.rows):
            level = opened.state.rows[row].level.content
            answer = capitalised(f"{level.level.value} level: {level_answer(level, opened.slowest)}")
            yield line(Span(f" {answer}", "strong"))
        if self._failure:
            yield line(Span(f" {self._failure}", "bad"))
        elif opened is None and self._tracing is None:
            yield _NO_TRACE.line if self._has_looked else line(Span(" Looking for traces.", "muted"))
        # How far a trace is must not be cut off.
        if self._tracing is not None:
            yield progress_line(self._tracing)

    def state(self) -> Line:
        """Return the selected span: a narrow terminal has no room for its panel."""
        opened, row = self._opened, self._timeline.row
        if self._tracing is not None:
            return ()
        if opened is None or row >= len(opened.state.rows):
            return line(Span(" "))
        state = opened.state
        span, level = state.selected_span(row), state.rows[row].level.content
        if span is None:
            return line(Span(f" {trace_words(state.trace)}, {minute_of(state.trace.when)} UTC", "muted"))
        time = None if span.layer is None else opened.times.get(span.layer)
        return line(Span(f" {span.name}", "strong"), Span(f" {span_words(span, level, time)}", "muted"))

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
        if self._opened is not None:
            self.ask(
                WriteTraceScreen(f"Write the trace of {self._model} to a file"), partial(self._write_to, self._opened)
            )

    def _write_to(self, opened: OpenTrace, path: Path) -> None:
        def written(_: None) -> None:
            show_message(self.app, f"The trace is in {path}")

        def refused(reason: str) -> None:
            show_message(self.app, reason, warning=True)

        self.run_in_thread(partial(write_trace_file, opened, path), "", written, refused)

    # The measurement

    def action_measure(self) -> None:
        if self._tracing is not None:
            self._say_tracing()
        elif self._settings is not None:
            self._ask_for_settings(self._settings)
        else:
            first = partial(first_settings, self._session, self._spec, self._choices, self._config)
            self.run_in_thread(first, "settings", self._ask_for_settings, self._fail)

    def _ask_for_settings(self, settings: TraceSettings) -> None:
        self.ask(StartTraceScreen(self._model, settings), self._measure)

    def _measure(self, settings: TraceSettings) -> None:
        self._settings = settings
        order = partial(order_of, self._session, self._spec, self._choices, settings)
        self.run_in_thread(order, "order", self._start, self._fail)

    def _start(self, order: TraceOrder) -> None:
        if self._tracing is None:
            self._failure = ""
            self._go_on(Tracing.new(order, self._session.data))

    def _go_on(self, tracing: Tracing | None) -> None:
        if tracing is not None and self._tracing is None:
            self._tracing = tracing
            self.head_changed()
            self.run_worker(self._follow(tracing), group="measurement", exit_on_error=False)

    async def _follow(self, tracing: Tracing) -> None:
        try:
            await tracing.follow(self.head_changed)
        finally:
            self._tracing = None
            self._failure = f"the model was not traced: {tracing.failure}" if tracing.failure else ""
            if tracing.cancelled:
                self.notify("The trace is cancelled; stored traces are kept.")
            self.head_changed()
            if tracing.done:
                self._wanted = tracing.done
                self.look()

    def _say_tracing(self) -> None:
        self.notify(f"The model is being traced: {key('trace.cancel')} cancels it.")

    def action_cancel(self) -> None:
        def cancel(_: bool) -> None:
            if self._tracing is not None:
                self._tracing.cancel()

        self.ask(CancelTraceScreen(), cancel)

    def action_leave(self) -> None:
        self._leave_with(None)

    def _leave_with(self, place: LayerPlace | None) -> None:
        if self._tracing is not None:
            show_message(self.app, "The trace goes on in the background; this screen shows it again.")
        self.dismiss(place)


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
