"""The screen of one run: its bricks, the estimates of its models, and notes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import lru_cache, partial
from typing import TYPE_CHECKING, NamedTuple

from textual.app import ComposeResult
from textual.containers import Container

from dlbricks_tui.documents.lines import (
    BLANK,
    Line,
    Span,
    contains_all,
    line,
    sparkline,
    spread,
    wrapped,
)
from dlbricks_tui.estimate.intervals import WIDEST_MS, WIDEST_SHARE
from dlbricks_tui.jobs.folder import State
from dlbricks_tui.tui.keys import scopes
from dlbricks_tui.tui.keys.keymap import key
from dlbricks_tui.tui.messages import ReplayChanged
from dlbricks_tui.tui.run.follower import ReplayChange
from dlbricks_tui.tui.run.snapshot import (
    BrickState,
    RunBrick,
    RunModel,
    RunSnapshot,
    how_far,
    joined,
    state_of,
    what_now,
)
from dlbricks_tui.tui.run.status import StatusLine
from dlbricks_tui.tui.widgets.panel import Panel, SearchLine
from dlbricks_tui.tui.widgets.rows import ItemRows, ListColumn, TailRows, list_heading, list_row, place_of
from dlbricks_tui.tui.widgets.screens import KeyBar, PanelledScreen
from dlbricks_tui.tui.widgets.text import TextLines
from dlbricks_tui.wording.numbers import UNKNOWN, milliseconds, names_of, percent
from dlbricks_tui.wording.plain_text import TextTable
from dlbricks_tui.wording.runs import Note

if TYPE_CHECKING:
    from dlbricks_tui.tui.run.runs import Runs


STATES = {
    BrickState.SAMPLING: Span("now    ", "accent"),
    BrickState.MEASURED: Span("done   ", "good"),
    BrickState.AT_LIMIT: Span("noisy  ", "warn"),
    BrickState.UNFINISHED: Span("part   ", "warn"),
    BrickState.FAILED: Span("failed ", "bad"),
}
# The number of standard deviations that contain 95 % of a normal distribution.
_NORMAL_95 = 1.96
_FEWEST = 6
# The least width for the long sparkline.
_ROOMY_FOR_SAMPLES = 110


class SampleSummary(NamedTuple):
    """The median of the samples so far, and half of its interval."""

    latency_ms: float
    half_width: float | None


def summary_of(samples_ms: Sequence[float]) -> SampleSummary | None:
    """Return the median and half of its 95 % interval as a share; None for too few samples."""
    count = len(samples_ms)
    if count < _FEWEST:
        return None
    ordered = sorted(samples_ms)
    middle = ordered[count // 2]
    # The interval of a median lies between two samples, whatever their distribution.
    reach = _NORMAL_95 * math.sqrt(count) / 2
    low, high = max(0, math.floor(count / 2 - reach)), min(count - 1, math.ceil(count / 2 + reach))
    return SampleSummary(middle, (ordered[high] - ordered[low]) / 2 / middle) if middle > 0 else None


def brick_columns(width: int) -> tuple[ListColumn, ...]:
    """Return the columns of a list of bricks so wide; those that matter least begin at the largest widths."""
    blocks = 36 if width >= _ROOMY_FOR_SAMPLES else 12
    return (
        ListColumn("samples", blocks, lambda it: (sparkline(it.samples_ms, blocks), "bar"), 50, is_right=False),
        ListColumn("runs", 5, lambda it: (f"{len(it.samples_ms)}", "muted"), 56),
        ListColumn("ms", 8, lambda it: _figure(it, lambda found: milliseconds(found.latency_ms)), 29),
        ListColumn("±", 7, lambda it: _figure(it, _half_width), 37),
    )


def brick_row(brick: RunBrick, width: int) -> Line:
    sign = STATES[brick.state]
    label = Span(brick.label or "a brick", "strong" if brick.whole else "text")
    if brick.state is BrickState.FAILED:
        return (sign, label, Span(f"  {brick.reason}", "bad"))
    return (sign, *list_row(label, brick_columns(width), brick, width, len(sign.text)))


def brick_heading(width: int) -> Line:
    return list_heading("state  brick", brick_columns(width), width)


def _figure(brick: RunBrick, told: Callable[[SampleSummary], str]) -> tuple[str, str]:
    if brick.latency_ms is not None:
        return told(SampleSummary(brick.latency_ms, brick.half_width)), "text"
    provisional = summary_of(brick.samples_ms)
    return ("", "muted") if provisional is None else (told(provisional), "muted")


def _half_width(found: SampleSummary) -> str:
    """Return half of the interval as a share, or in microseconds if only that is narrow enough."""
    if found.half_width is None:
        return ""
    half_width_ms = found.half_width * found.latency_ms
    if found.half_width > WIDEST_SHARE and half_width_ms <= WIDEST_MS:
        return f"{1000 * half_width_ms:.1f} µs"
    return percent(found.half_width, 1)


_COPIED = brick_columns(0)[1:]


def _texts_of(brick: RunBrick) -> list[str]:
    figures = (each.cell(brick)[0] for each in _COPIED)
    return [brick.label or "a brick", brick.state.value, *figures, brick.reason]


_LINES_BELOW = 2
_MOST_USERS = 6


class BrickRows(TailRows, ItemRows[RunBrick]):
    """The bricks that match the search."""

    def __init__(self) -> None:
        super().__init__()
        self.say_why_empty("")

    def row(self, index: int, width: int) -> Line:
        return brick_row(self.items[index], width)

    def say_why_empty(self, now: str) -> None:
        """Show the current step of the run while there is no brick to list."""
        doing = [line(Span(f"{now[:1].upper()}{now[1:]}."))] if now else []
        self.show_placeholder(*doing, line(Span("Bricks appear here when the run measures them.", "muted")))

    def show(self, bricks: tuple[RunBrick, ...]) -> None:
        """Show the bricks and redraw only those that have changed, as drawing disturbs measurements."""
        before, self.items = self.items, bricks
        if len(before) != len(bricks):
            self.grown()
            return
        first = self.scroll_offset.y
        for index in range(first, min(first + self.size.height, len(bricks))):
            if bricks[index] is not before[index]:
                self.refresh_line(index)


class BricksPanel(Panel):
    ID = "run-bricks"
    TITLE = "Bricks"
    REACHED_BY = "run.go_to_bricks"
    SEARCH_HINT = "operator, shape, model, or: failed"
    HEADED = True
    ABOUT = (
        "'now' is being sampled. 'done' is as precise as the run asks for: by default 1 % or 3 µs, and 5 % for a small "
        "part of its models. 'noisy' has the most samples, and they still vary too much. 'part' was not finished when "
        "the run was stopped. ± is half of the 95 % interval. The blocks are the newest samples between the least and "
        "the greatest. At the end of the list the cursor follows the run."
    )

    def __init__(self) -> None:
        self._list = BrickRows()
        super().__init__(self._list)
        self._bricks: tuple[RunBrick, ...] = ()
        self._now = ""
        self._search_text: tuple[str, ...] = ()
        self._below = TextLines(self._below_lines, classes="run-brick")
        self._described: RunBrick | None = None

    def compose(self) -> ComposeResult:
        yield from super().compose()
        yield self._below

    def heading(self, width: int) -> Line:
        return (Span(" "), *brick_heading(width - 1))

    def as_texts(self) -> TextTable:
        titles = ("brick", "state", *(each.title for each in _COPIED), "reason")
        return TextTable(titles, [_texts_of(brick) for brick in self._list.items])

    def show(self, bricks: tuple[RunBrick, ...], now: str) -> None:
        """Show the bricks; without any, show the current step of the run."""
        if not bricks and now != self._now:
            self._now = now
            self._list.say_why_empty(now)
        if bricks is not self._bricks:
            self._bricks = bricks
            self._find()

    def on_search_line_text_changed(self, event: SearchLine.TextChanged) -> None:
        here = self._list.selected
        self._search_text = tuple(event.text.casefold().split())
        self._find()
        self._list.move_to(place_of(here and here.number, [brick.number for brick in self._list.items]))

    def cursor_settled(self) -> None:
        self._describe()

    def _find(self) -> None:
        found = tuple(self._found()) if self._search_text else self._bricks
        self._list.show(found)
        of = f" of {len(self._bricks):,}" if len(found) != len(self._bricks) else ""
        self.show_title(f" {len(found):,}{of}")
        self._describe()

    def _found(self) -> Iterable[RunBrick]:
        for brick in self._bricks:
            if contains_all(f"{brick.label} {brick.state.value} {' '.join(brick.used_by)}", self._search_text):
                yield brick

    def _describe(self) -> None:
        brick = self._list.selected
        before, self._described = self._described, brick
        if brick is None or before is None or _described(brick) != _described(before):
            self._below.refresh()

    def _below_lines(self, width: int) -> tuple[Line, ...]:
        brick = self._described
        found = wrapped(_described(brick), width)[:_LINES_BELOW] if brick is not None else []
        return (*found, *[BLANK] * (_LINES_BELOW - len(found)))


def _described(brick: RunBrick) -> Line:
    users = names_of(brick.used_by, _MOST_USERS) or "no known model"
    reason = Span(f"{brick.reason}  " if brick.reason else "", "bad" if brick.state is BrickState.FAILED else "warn")
    return line(Span(f" {brick.state.value}: ", "muted"), reason, Span(f"{brick.label}, in {users}", "muted"))


MODEL_COLUMNS = (
    ListColumn("ms", 11, lambda it: (_told_ms(it, it.sequential_ms), "strong")),
    ListColumn("parallel", 11, lambda it: (_told_ms(it, it.parallel_ms), "text"), 55),
    ListColumn("±", 8, lambda it: (percent(it.half_widths[-1], 1) if it.half_widths else "", "accent")),
    ListColumn("± so far", 9, lambda it: (sparkline(it.half_widths, 9), "bar"), 46, is_right=False),
    ListColumn("run", 5, lambda it: (percent(it.coverage), "muted" if it.measured_layers >= it.layers else "warn"), 36),
)


def _told_ms(model: RunModel, value_ms: float | None) -> str:
    return UNKNOWN if value_ms is None else f"{model.sign}{milliseconds(value_ms)}"


def model_row(model: RunModel, width: int) -> Line:
    return list_row(Span(model.name), MODEL_COLUMNS, model, width)


def model_heading(width: int) -> Line:
    return list_heading("model", MODEL_COLUMNS, width)


class RunEstimateRows(ItemRows[RunModel]):
    """One row per model."""

    def __init__(self) -> None:
        super().__init__()
        self.show_placeholder(line(Span("Estimates come with the first samples.", "muted")))

    def row(self, index: int, width: int) -> Line:
        return model_row(self.items[index], width)


class EstimatesPanel(Panel):
    ID = "run-estimates"
    TITLE = "Estimates"
    REACHED_BY = "run.go_to_estimates"
    HEADED = True
    ABOUT = (
        "The sequential estimate of each model from the samples so far. ± is half of its 95 % interval; the blocks "
        "show its change since the start of the run. 'part' marks an estimate of the part that was measured so far."
    )

    def __init__(self) -> None:
        self._list = RunEstimateRows()
        super().__init__(self._list)

    def heading(self, width: int) -> Line:
        return (Span(" "), *model_heading(width - 1))

    def as_texts(self) -> TextTable:
        # A copy has no blocks.
        kept = [it for it in MODEL_COLUMNS if it.is_right]
        rows = [[model.name, *(it.cell(model)[0] for it in kept)] for model in self._list.items]
        return TextTable(("model", *(it.title for it in kept)), rows)

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
    ID = "run-notes"
    TITLE = "Notes"
    REACHED_BY = "run.go_to_notes"
    ABOUT = (
        "The events of the run: failures and their reasons, changes of the host's speed, and other runs that measure."
    )

    def __init__(self) -> None:
        self._list = NoteRows()
        super().__init__(self._list)

    def show(self, notes: tuple[Note, ...]) -> None:
        if notes is not self._list.notes:
            self._list.notes = notes
            self._list.grown()


@lru_cache(maxsize=1024)
def _note_lines(note: Note, width: int) -> tuple[Line, ...]:
    clock = datetime.fromisoformat(note.when).astimezone().strftime("%H:%M:%S")
    return tuple(wrapped(line(Span(f"{clock} ", "muted"), Span(note.text, note.tone.value)), width))


# The last setting is the runtime, which has a long name.
_ROOMY = 150
# Smaller changes also occur on a quiet host.
_WORTH_A_WARNING = 0.05


def head_lines(run: RunSnapshot | None, width: int) -> tuple[Line, ...]:
    """Return two lines about the run; how far it is and the load of the host are in the status line."""
    if run is None:
        return (line(Span(" Looking for the run.", "muted")), ())
    said = run.settings if width >= _ROOMY else run.settings[:-1]
    settings = (Span("  "), *joined([Span(text, "muted") for text in said]), Span(" "))
    who = (Span(" "), state_of(run), Span(f"  {names_of(run.models)}", "strong"), Span(f"  {run.run}", "muted"))
    return (spread(who, settings, width), spread((Span(" "), *_now(run)), _drift(run), width))


def _now(run: RunSnapshot) -> Line:
    """Return the current step, or what an ended run has done; the status line tells no more of a run that was seen."""
    if run.active:
        return what_now(run)
    resume = (Span(f"  {key('run.pause')}", "accent"), Span(" resumes it", "muted")) if run.can_be_resumed else ()
    return (*what_now(run), *resume, Span("  " * bool(run.message or resume)), *how_far(run))


def _drift(run: RunSnapshot) -> Line:
    if run.drift is None or not run.active:
        return ()
    style = "warn" if abs(run.drift) >= _WORTH_A_WARNING else "muted"
    how = "slower" if run.drift > 0 else "faster"
    return (Span(f"  host {percent(abs(run.drift), 1)} {how} than at the start ", style),)


class RunScreen(PanelledScreen["RunSnapshot"]):
    """Shows the followed run; leaving the screen does not affect the run."""

    scope = scopes.RUN
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
        yield StatusLine()
        yield KeyBar()

    def on_mount(self) -> None:
        self.make_current(self._bricks)
        if self._run is not None:
            self.show_run(self._run)

    def show_run(self, run: RunSnapshot) -> None:
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
            return run is not None and (run.active or run.can_be_resumed)
        if action == "cancel":
            return run is not None and run.active
        if action == "change_replay":
            return run is not None and run.active and run.replay is not None
        return True

    def action_pause(self) -> None:
        run = self._run
        if run is not None and run.replay is not None:
            self.action_change_replay("pause")
        elif run is not None:
            change = self._runs.unpause if run.pausing else self._runs.pause
            self.run_in_thread(partial(change if run.active else self._runs.resume, run.run), "tell")

    def action_cancel(self) -> None:
        from dlbricks_tui.tui.run.boxes import CancelScreen

        if self._run is not None and self._run.replay is not None:
            self.action_change_replay("stop")
        elif self._run is not None:
            cancel = partial(self._runs.cancel, self._run.run)
            self.ask(CancelScreen(self._run), lambda _: self.run_in_thread(cancel, "tell"))

    def action_change_replay(self, change: str) -> None:
        self.post_message(ReplayChanged(ReplayChange(change)))

    def action_show_runs(self) -> None:
        from dlbricks_tui.tui.run.boxes import AllJobsScreen

        self.ask(AllJobsScreen(self._runs), self.post_message)

    def action_leave(self) -> None:
        self.dismiss(self._run)

    def _head_lines(self, width: int) -> tuple[Line, ...]:
        self._drawn = head_lines(self._run, width)
        return self._drawn


def _offers(run: RunSnapshot) -> tuple[bool, bool, bool]:
    return run.active, run.can_be_resumed, run.replay is None
