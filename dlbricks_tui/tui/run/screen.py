"""The screen of one run."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from textual.containers import Container

from dlbricks_tui.documents.lines import Line, Span, bar, column, line, number_column, sparkline, spread, wrapped
from dlbricks_tui.jobs.folder import State
from dlbricks_tui.tui.keys.keymap import key
from dlbricks_tui.tui.messages import ReplayChanged, ReplayWanted, RunBegun
from dlbricks_tui.tui.run import actions
from dlbricks_tui.tui.run.bricks import BricksPanel
from dlbricks_tui.tui.run.follower import ReplayChange
from dlbricks_tui.tui.run.snapshot import RunModel, RunSnapshot
from dlbricks_tui.tui.run.words import how_far, joined, load_of, state_of, what_now
from dlbricks_tui.tui.widgets.panel import Panel
from dlbricks_tui.tui.widgets.rows import ItemRows, TailRows
from dlbricks_tui.tui.widgets.screens import KeyBar, PanelledScreen
from dlbricks_tui.tui.widgets.text import TextLines
from dlbricks_tui.wording.numbers import PARTLY, milliseconds, names_of, percent
from dlbricks_tui.wording.runs import Note

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from dlbricks_tui.tui.run.runs import Runs

_MS, _PARALLEL, _WIDTH, _COVERAGE, _SPARKLINE = 9, 9, 9, 6, 10
_LEAST_NAME = 12
_WITH_COVERAGE = _LEAST_NAME + _MS + _WIDTH + _COVERAGE
_WITH_SPARKLINE = _WITH_COVERAGE + _SPARKLINE
_WITH_PARALLEL = _WITH_SPARKLINE + _PARALLEL


def model_row(model: RunModel, width: int) -> Line:
    """Return a model as a row."""
    complete = model.measured_layers >= model.layers
    sign = PARTLY if model.is_partial else ""
    cells = [_ms_cell(model.sequential_ms, sign, _MS, "strong")]
    if width >= _WITH_PARALLEL:
        cells.append(_ms_cell(model.parallel_ms, sign, _PARALLEL, "text"))
    width_now = percent(model.half_widths[-1], 1) if model.half_widths else ""
    cells.append(number_column(width_now, _WIDTH, "accent"))
    if width >= _WITH_SPARKLINE:
        cells += [Span(" "), column(sparkline(model.half_widths, _SPARKLINE - 1), _SPARKLINE - 1, "bar")]
    if width >= _WITH_COVERAGE:
        cells.append(number_column(percent(model.coverage), _COVERAGE, "muted" if complete else "warn"))
    return (column(model.name, width - sum(len(cell.text) for cell in cells)), *cells)


def model_heading(width: int) -> Line:
    """Return the titles of the columns."""
    cells = [column("ms", _MS, "heading", right=True)]
    if width >= _WITH_PARALLEL:
        cells.append(column("parallel", _PARALLEL, "heading", right=True))
    cells.append(column("±", _WIDTH, "heading", right=True))
    if width >= _WITH_SPARKLINE:
        cells += [Span(" "), column("± so far", _SPARKLINE - 1, "heading")]
    if width >= _WITH_COVERAGE:
        cells.append(column("run", _COVERAGE, "heading", right=True))
    return (column("model", width - sum(len(cell.text) for cell in cells), "heading"), *cells)


def _ms_cell(value_ms: float | None, sign: str, width: int, style: str) -> Span:
    return number_column("·" if value_ms is None else f"{sign}{milliseconds(value_ms)}", width, style)


class RunEstimateRows(ItemRows[RunModel]):
    """One row per model."""

    def __init__(self) -> None:
        super().__init__()
        self.show_placeholder(line(Span("Estimates come with the first samples.", "muted")))

    def row(self, index: int, width: int) -> Line:
        return model_row(self.items[index], width)


class EstimatesPanel(Panel):
    """The estimates of the models and how their intervals shrink."""

    TITLE = "Estimates"
    REACHED_BY = "run.go_to_estimates"
    HEADED = True
    ABOUT = (
        "The sequential estimate of each model from the samples so far. ± is half of its 95 % interval; the blocks "
        "show its change since the start of the run. … marks an estimate of the part that was measured so far."
    )

    def __init__(self) -> None:
        self._list = RunEstimateRows()
        super().__init__(self._list, id="run-estimates")

    def heading(self, width: int) -> Line:
        return (Span(" "), *model_heading(width - 1))

    def show(self, estimates: tuple[RunModel, ...]) -> None:
        if estimates is not self._list.items:
            self._list.items = estimates
            self._list.rows_changed()


class NoteRows(TailRows):
    """Notes, each wrapped into as many rows as it needs."""

    def __init__(self) -> None:
        super().__init__()
        self.notes: tuple[Note, ...] = ()
        self._made: tuple[Line, ...] = ()
        self._made_of: tuple[tuple[Note, ...], int] = ((), -1)
        self.show_placeholder(line(Span("No events yet.", "muted")))

    @property
    def row_count(self) -> int:
        return len(self._rows())

    def row(self, index: int, width: int) -> Line:
        return self._rows()[index]

    def all_rows(self, width: int) -> list[Line]:
        return [each for note in self.notes for each in _note_lines(note, width)]

    def on_resize(self) -> None:
        self.grown()

    def _rows(self) -> tuple[Line, ...]:
        wanted = self.notes, self.line_width - 1
        if wanted != self._made_of and wanted[1] > 0:
            self._made_of = wanted
            self._made = tuple(each for note in self.notes for each in _note_lines(note, wanted[1]))
        return self._made


class NotesPanel(Panel):
    """Failures, warnings and other events of the run."""

    TITLE = "Notes"
    REACHED_BY = "run.go_to_notes"
    ABOUT = (
        "The events of the run: failures and their reasons, changes of the host's speed, and other runs that measure."
    )

    def __init__(self) -> None:
        self._list = NoteRows()
        super().__init__(self._list, id="run-notes")

    def show(self, notes: tuple[Note, ...]) -> None:
        if notes is not self._list.notes:
            self._list.notes = notes
            self._list.grown()


@lru_cache(maxsize=1024)
def _note_lines(note: Note, width: int) -> tuple[Line, ...]:
    clock = datetime.fromisoformat(note.when).astimezone().strftime("%H:%M:%S")
    return tuple(wrapped(line(Span(f"{clock} ", "muted"), Span(note.text, note.tone.value)), width))


_TRACK = "░"
# The last setting is the runtime, which has a long name.
_ROOMY = 150
_ROOMY_FOR_LOAD = 100
# Smaller changes also occur on a quiet host.
_WORTH_A_WARNING = 0.05


def head_lines(run: RunSnapshot | None, width: int) -> tuple[Line, ...]:
    """Return three lines about the run."""
    if run is None:
        return (line(Span(" Looking for the run.", "muted")), (), ())
    said = run.settings if width >= _ROOMY else run.settings[:-1]
    settings = (Span("  "), *joined([Span(text, "muted") for text in said]), Span(" "))
    who = (Span(" "), state_of(run), Span(f"  {names_of(run.models)}", "strong"), Span(f"  {run.run}", "muted"))
    return (spread(who, settings, width), _progress(run, width), spread(_now(run), _host(run, width), width))


def _progress(run: RunSnapshot, width: int) -> Line:
    said = how_far(run)
    if run.share is None:
        return (Span(" "), *said)
    return (Span(" "), *bar(run.share, width // 3, _TRACK), Span(f" {percent(run.share):>5}  ", "strong"), *said)


def _now(run: RunSnapshot) -> Line:
    now = what_now(run)
    if not run.active and run.can_be_resumed:
        return (Span(" "), *now, Span(f"  {key('run.resume')}", "accent"), Span(" resumes it", "muted"))
    return (Span(" "), *now)


def _host(run: RunSnapshot, width: int) -> Line:
    """Return the load and the speed of the host; of a narrow terminal a change of the speed takes the place."""
    drift, roomy = _drift(run), width >= _ROOMY_FOR_LOAD
    changed = run.drift is not None and abs(run.drift) >= _WORTH_A_WARNING
    return drift if changed and not roomy else (*load_of(run, with_cores=roomy), *drift)


def _drift(run: RunSnapshot) -> Line:
    if run.drift is None:
        return ()
    style = "warn" if abs(run.drift) >= _WORTH_A_WARNING else "muted"
    how = "slower" if run.drift > 0 else "faster"
    return (Span(f"  host {percent(abs(run.drift), 1)} {how} than at the start ", style),)


class RunScreen(PanelledScreen["RunSnapshot"]):
    """Shows the followed run; leaving the screen does not affect the run."""

    scope = actions.RUN
    CSS_PATH = "run.tcss"
    AUTO_FOCUS = "#run-bricks RowsView"
    ABOUT = "A run is a separate process: it continues if you leave this screen or quit dlbricks."

    def __init__(self, runs: Runs, run: RunSnapshot | None) -> None:
        super().__init__()
        self._runs = runs
        self._run = run
        self._drawn: tuple[Line, ...] = ()
        self._head = TextLines(self._head_lines, classes="run-head")
        self._bricks = BricksPanel()
        self._estimates = EstimatesPanel()
        self._notes = NotesPanel()

    def compose(self) -> ComposeResult:
        yield self._head
        with Container(classes="panels"):
            yield self._bricks
            yield self._estimates
            yield self._notes
        yield KeyBar()

    def on_mount(self) -> None:
        self.make_current(self._bricks)
        if self._run is not None:
            self.show_run(self._run)

    def show_run(self, run: RunSnapshot) -> None:
        """Show the current state of the run."""
        before, self._run = self._run, run
        # Drawing disturbs measurements.
        if self.size.width and self._drawn != head_lines(run, self.size.width):
            self._head.refresh()
        waiting = "waiting " if run.state is State.WAITING else ""
        self._bricks.show(run.bricks, f"{waiting}{run.message}" or run.at_work)
        self._estimates.show(run.estimates)
        self._notes.show(run.notes)
        if before is None or _offers(before) != _offers(run):
            self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        run = self._run
        if action == "pause":
            return run is not None and run.active
        if action == "cancel":
            return run is not None and run.active and run.replay is None
        if action in ("stop_replay", "slower", "faster"):
            return run is not None and run.active and run.replay is not None
        if action == "resume":
            return self._run is not None and self._run.can_be_resumed
        return True

    def action_pause(self) -> None:
        if self._run is not None and self._run.replay is not None:
            self._change_replay(ReplayChange.PAUSE)
        elif self._run is not None:
            change = self._runs.unpause if self._run.pausing else self._runs.pause
            self.run_in_thread(partial(change, self._run.run), "tell")

    def action_cancel(self) -> None:
        from dlbricks_tui.tui.run.all_runs import CancelScreen

        if self._run is not None:
            self.app.push_screen(CancelScreen(self._run), self._cancel)

    def action_stop_replay(self) -> None:
        self._change_replay(ReplayChange.STOP)

    def action_slower(self) -> None:
        self._change_replay(ReplayChange.SLOWER)

    def action_faster(self) -> None:
        self._change_replay(ReplayChange.FASTER)

    def _change_replay(self, change: ReplayChange) -> None:
        self.post_message(ReplayChanged(change))

    def action_resume(self) -> None:
        if self._run is not None:
            self.run_in_thread(partial(self._runs.resume, self._run.run), "tell")

    def action_show_runs(self) -> None:
        from dlbricks_tui.tui.run.all_runs import AllJobsScreen

        self.app.push_screen(AllJobsScreen(self._runs), self._run_chosen)

    def action_leave(self) -> None:
        self.dismiss(self._run)

    def _cancel(self, sure: bool | None) -> None:
        if sure and self._run is not None:
            self.run_in_thread(partial(self._runs.cancel, self._run.run), "tell")

    def _run_chosen(self, wanted: RunBegun | ReplayWanted | None) -> None:
        if wanted is not None:
            self.post_message(wanted)

    def _head_lines(self, width: int) -> tuple[Line, ...]:
        self._drawn = head_lines(self._run, width)
        return self._drawn


def _offers(run: RunSnapshot) -> tuple[bool, bool, bool]:
    return run.active, run.can_be_resumed, run.replay is None
