"""The screen of one run: its bricks, the estimates of its models, and notes."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from dlbricks_tui.api.followed_runs import (
    BrickState,
    ReplayChange,
    RunBrick,
    RunModel,
    RunSnapshot,
    SampleSummary,
    summary_of,
)
from dlbricks_tui.api.jobs import cancel_job, pause_or_resume
from dlbricks_tui.documents.lines import BLANK, Line, Span, contains_all, line, sparkline, spread, wrapped
from dlbricks_tui.documents.run import how_far, joined, state_of, what_now
from dlbricks_tui.tui.keys import scopes
from dlbricks_tui.tui.keys.keymap import Hint, key
from dlbricks_tui.tui.messages import ReplayChanged, RunEndSeen
from dlbricks_tui.tui.widgets.panel import Panel, counts_text
from dlbricks_tui.tui.widgets.rows import (
    DrawnRows,
    ItemRows,
    ListColumn,
    TailLines,
    TailRows,
    list_heading,
    list_row,
    place_of,
)
from dlbricks_tui.tui.widgets.screens import WorkScreen
from dlbricks_tui.tui.widgets.text import TextLines
from dlbricks_tui.wording.numbers import UNKNOWN, milliseconds, names_of, percent
from dlbricks_tui.wording.plain_text import TextTable
from dlbricks_tui.wording.runs import Phrase

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from textual.app import ComposeResult

    from dlbricks_tui.folders import DataFolder


STATES = {
    BrickState.SAMPLING: Span("now    ", "accent"),
    BrickState.MEASURED: Span("done   ", "good"),
    BrickState.AT_LIMIT: Span("noisy  ", "warn"),
    BrickState.UNFINISHED: Span("part   ", "warn"),
    BrickState.FAILED: Span("failed ", "bad"),
}
# The least width for the long sparkline.
_ROOMY_FOR_SAMPLES = 110


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
    label = line(Span(brick.label or "a brick", "strong" if brick.whole else "text"))
    if brick.state is BrickState.FAILED:
        return (sign, *label, Span(f"  {brick.reason}", "bad"))
    return (sign, *list_row(label, brick_columns(width), brick, width, len(sign.text)))


def brick_heading(width: int) -> Line:
    return list_heading("state  brick", brick_columns(width), width)


def _figure(brick: RunBrick, told: Callable[[SampleSummary], str]) -> tuple[str, str]:
    summary = summary_of(brick)
    return "" if summary is None else told(summary), "muted" if brick.latency_ms is None else "text"


def _half_width(found: SampleSummary) -> str:
    """Return half of the interval as a share, or in microseconds if only that is narrow enough."""
    if found.half_width is None:
        return ""
    return percent(found.half_width, 1) if found.half_width_us is None else f"{found.half_width_us:.1f} µs"


_COPIED = brick_columns(0)[1:]
_LINES_BELOW = 2
_MOST_USERS = 6


class BrickRows(TailRows, ItemRows[RunBrick]):
    """The bricks that match the search."""

    def row(self, index: int, width: int) -> Line:
        return brick_row(self.items[index], width)

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


_NO_BRICKS = Hint("Bricks appear here when the run measures them.", "muted")


class BricksPanel(Panel):
    TITLE = "Bricks"
    SEARCH_HINT = "operator, shape, model, or: failed"
    HEADED = True
    PLACEHOLDER = (_NO_BRICKS,)
    ABOUT = (
        "'now' is being sampled. 'done' is as precise as the run asks for: by default 2 % or 3 µs, and 5 % for a small "
        "part of its models. 'noisy' has the most samples, and they still vary too much. 'part' was not finished when "
        "the run was stopped. ± is half of the 95 % interval. The blocks are the newest samples between the least and "
        "the greatest. At the end of the list the cursor follows the run."
    )

    def __init__(self) -> None:
        self._list = BrickRows()
        super().__init__(self._list)
        self._bricks: tuple[RunBrick, ...] = ()
        self._now = ""
        self._below = TextLines(self._below_lines, classes="run-brick")
        self._described: Line = ()

    def compose(self) -> ComposeResult:
        yield from super().compose()
        yield self._below

    def heading(self, width: int) -> Line:
        return (Span(" "), *brick_heading(width - 1))

    def as_texts(self) -> TextTable:
        titles = ("brick", "state", *(each.title for each in _COPIED), "reason")
        rows = [
            [it.label or "a brick", it.state.value, *(each.cell(it)[0] for each in _COPIED), it.reason]
            for it in self._list.items
        ]
        return TextTable(titles, rows)

    def show(self, bricks: tuple[RunBrick, ...], now: str) -> None:
        """Show the bricks; without any, show the current step of the run."""
        if not bricks and now != self._now:
            self._now = now
            self.show_placeholder(*([Hint(f"{now[:1].upper()}{now[1:]}.")] if now else []), _NO_BRICKS)
        if bricks != self._bricks:
            self._bricks = bricks
            self._find()

    def search_changed(self) -> None:
        here = self._list.selected
        self._find()
        self._list.move_to(place_of(here and here.number, [brick.number for brick in self._list.items]))

    def _find(self) -> None:
        words = self.words
        self._list.show(
            tuple(
                it for it in self._bricks if contains_all(f"{it.label} {it.state.value} {' '.join(it.used_by)}", words)
            )
            if words
            else self._bricks
        )
        self.show_title(f" {counts_text(len(self._list.items), len(self._bricks))}")
        self.cursor_settled()

    def cursor_settled(self) -> None:
        brick = self._list.selected
        described = () if brick is None else _described(brick)
        if described != self._described or brick is None:
            self._described = described
            self._below.refresh()

    def _below_lines(self, width: int) -> tuple[Line, ...]:
        found = wrapped(self._described, width)[:_LINES_BELOW] if self._described else []
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
    return list_row(line(model.model), MODEL_COLUMNS, model, width)


def model_heading(width: int) -> Line:
    return list_heading("model", MODEL_COLUMNS, width)


class EstimatesPanel(Panel):
    """One row per model."""

    TITLE = "Estimates"
    HEADED = True
    PLACEHOLDER = (Hint("Estimates come with the first samples.", "muted"),)
    ABOUT = (
        "The sequential estimate of each model from the samples so far. ± is half of its 95 % interval; the blocks "
        "show its change since the start of the run. 'part' marks an estimate of the part that was measured so far."
    )

    def __init__(self) -> None:
        self._list: DrawnRows[RunModel] = DrawnRows(lambda index, width: model_row(self._list.items[index], width))
        super().__init__(self._list)

    def heading(self, width: int) -> Line:
        return (Span(" "), *model_heading(width - 1))

    def as_texts(self) -> TextTable:
        # A copy has no blocks.
        kept = [it for it in MODEL_COLUMNS if it.is_right]
        rows = [[model.model, *(it.cell(model)[0] for it in kept)] for model in self._list.items]
        return TextTable(("model", *(it.title for it in kept)), rows)

    def show(self, estimates: tuple[RunModel, ...]) -> None:
        if estimates != self._list.items:
            self._list.items = estimates
            self._list.rows_changed()


class NotesPanel(Panel):
    """Notes, each wrapped into as many rows as it needs."""

    TITLE = "Notes"
    PLACEHOLDER = (Hint("No events yet.", "muted"),)
    ABOUT = (
        "The events of the run: failures and their reasons, changes of the host's speed, and other runs that measure."
    )

    def __init__(self) -> None:
        self._notes: tuple[Phrase, ...] = ()
        self._list = TailLines(self._lines)
        super().__init__(self._list)

    def show(self, notes: tuple[Phrase, ...]) -> None:
        if notes != self._notes:
            self._notes = notes
            self._list.remake()

    def _lines(self, width: int) -> Iterator[Line]:
        for note in self._notes:
            yield from _note_lines(note, width)


@lru_cache(maxsize=1024)
def _note_lines(note: Phrase, width: int) -> tuple[Line, ...]:
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


class RunScreen(WorkScreen[None, Any]):
    """Shows the followed run; leaving the screen does not affect the run."""

    scope = scopes.RUN
    CSS = """
    BricksPanel { row-span: 2; }
    RunScreen.-medium .panels { grid-columns: 3fr 2fr; grid-rows: 1fr 2fr; }
    RunScreen.-wide .panels { grid-columns: 5fr 3fr; grid-rows: 1fr 1fr; }
    .run-brick { height: 2; }
    """
    ABOUT = "A run is a separate process: it continues if you leave this screen or quit dlbricks."

    def __init__(self, data: DataFolder, run: RunSnapshot | None) -> None:
        self._bricks = BricksPanel()
        self._estimates = EstimatesPanel()
        self._notes = NotesPanel()
        super().__init__(self._bricks, self._estimates, self._notes)
        self._data = data
        self._run = run
        self._drawn: tuple[Line, ...] = ()

    def look(self) -> None:
        """Show the run; the watch of the application tells its later states."""
        if self._run is not None:
            self.show_run(self._run)

    def show_run(self, run: RunSnapshot) -> None:
        before, self._run = self._run, run
        # Drawing disturbs measurements.
        if self.size.width and self._drawn != head_lines(run, self.size.width):
            self._head.refresh()
        waiting = "waiting " if run.waits else ""
        self._bricks.show(run.bricks, f"{waiting}{run.message}" or run.at_work)
        self._estimates.show(run.estimates)
        self._notes.show(run.notes)
        if before is None or _controls(before) != _controls(run):
            self.refresh_bindings()

    def head_lines(self, width: int) -> tuple[Line, ...]:
        self._drawn = head_lines(self._run, width)
        return self._drawn

    def controls(self) -> Mapping[str, bool]:
        return _controls(self._run)

    def action_pause(self) -> None:
        if self._run is not None and self._run.replay is not None:
            self.action_change_replay("pause")
        elif self._run is not None:
            self.run_in_thread(partial(pause_or_resume, self._run.run, self._data), "tell")

    def action_cancel(self) -> None:
        from dlbricks_tui.tui.run.boxes import CancelScreen

        if self._run is not None and self._run.replay is not None:
            self.action_change_replay("stop")
        elif self._run is not None:
            cancel = partial(cancel_job, self._run.run, self._data)
            self.ask(CancelScreen(self._run), lambda _: self.run_in_thread(cancel, "tell"))

    def action_change_replay(self, change: str) -> None:
        self.post_message(ReplayChanged(ReplayChange(change)))

    def action_show_runs(self) -> None:
        from dlbricks_tui.tui.run.boxes import AllJobsScreen

        self.app.push_screen(AllJobsScreen(self._data))

    def action_leave(self) -> None:
        # Nothing more is told of a run that has ended, unless it is resumed.
        if self._run is not None and not self._run.active:
            self.app.post_message(RunEndSeen(self._run.run))
        super().action_leave()


def _controls(run: RunSnapshot | None) -> Mapping[str, bool]:
    is_active = run is not None and run.active
    return {
        "pause": is_active or (run is not None and run.can_be_resumed),
        "cancel": is_active,
        "change_replay": is_active and run is not None and run.replay is not None,
    }
