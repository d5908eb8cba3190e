"""All runs of the data folder, those that go on and those that have ended."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from textual.message import Message

from dlbricks_tui.tui.actions.action import Scope
from dlbricks_tui.tui.actions.registry import bindings
from dlbricks_tui.tui.figures import duration
from dlbricks_tui.tui.keymap import key
from dlbricks_tui.tui.lines import Line, Span, column, line, spread
from dlbricks_tui.tui.live.words import STATE_STYLES, joined, names_of
from dlbricks_tui.tui.screens.dialog import Dialog
from dlbricks_tui.tui.widgets.box import Box
from dlbricks_tui.tui.widgets.rows import RowsView

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from dlbricks_tui.bench.run_folder import RunState
    from dlbricks_tui.tui.live.runs import Runs


_ROOMY = 80


class AllRunsScreen(Dialog[str]):
    """Gives the id of the run to be watched."""

    scope = Scope.RUNS
    BINDINGS = bindings(Scope.RUNS, Scope.DIALOG)
    ABOUT = "The newest run is at the top. Those that were started in another terminal are here too."

    class Listed(Message):
        """The runs that there are, the newest first."""

        def __init__(self, states: tuple[RunState, ...]) -> None:
            super().__init__()
            self.states = states

    class TakenUp(Message):
        """A process goes on with a run."""

        def __init__(self, run: str) -> None:
            super().__init__()
            self.run = run

    def __init__(self, runs: Runs) -> None:
        super().__init__()
        self._runs = runs
        self._list = _RunRows()

    def compose(self) -> ComposeResult:
        with Box("Runs", [Scope.RUNS, Scope.DIALOG], classes="-tall"):
            yield self._list

    def on_mount(self) -> None:
        self.ask(self._find, "runs")

    def on_all_runs_screen_listed(self, event: Listed) -> None:
        self._list.show(event.states)
        self.refresh_bindings()

    def on_all_runs_screen_taken_up(self, event: TakenUp) -> None:
        self.dismiss(event.run)

    def action_show(self) -> None:
        if self._list.chosen is not None:
            self.dismiss(self._list.chosen.run)

    def action_take_up(self) -> None:
        if self._list.chosen is not None:
            self.ask(partial(self._take_up, self._list.chosen.run), "tell")

    def _find(self) -> None:
        self.post_message(self.Listed(self._runs.states()))

    def _take_up(self, run: str) -> None:
        self._runs.take_up(run)
        self.post_message(self.TakenUp(run))


class _RunRows(RowsView):
    def __init__(self) -> None:
        super().__init__()
        self._states: tuple[RunState, ...] = ()
        self.say(line(Span("Looking for runs.", "muted")))

    @property
    def row_count(self) -> int:
        return len(self._states)

    @property
    def chosen(self) -> RunState | None:
        """The run that the cursor is on."""
        return self._states[self.cursor] if self._states else None

    def row(self, index: int, width: int) -> Line:
        return run_row(self._states[index], width)

    def show(self, states: tuple[RunState, ...]) -> None:
        """Lists the runs."""
        self._states = states
        self.say(
            line("There was no run yet."),
            line(
                Span(key("dialog.close"), "accent"),
                " goes back; ",
                Span(key("workbench.start_run"), "accent"),
                " on the workbench starts the first.",
            ),
        )
        self.rows_changed()


def run_row(state: RunState, width: int) -> Line:
    """A run in one line."""
    began = datetime.fromisoformat(state.started).astimezone().strftime("%d %b %H:%M ")
    bricks = state.bricks
    roomy = width >= _ROOMY
    what = " bricks" if roomy else ""
    counts = [Span(f"{bricks.measured + bricks.reused:,} of {bricks.total:,}{what}", "muted")]
    if bricks.failed:
        counts.append(Span(f"{bricks.failed:,} failed", "bad"))
    if roomy and not state.active:
        counts.append(Span(duration(state.seconds), "muted"))
    stands = column(state.state.value, 12, STATE_STYLES.get(state.state, "text"))
    left = (Span(began, "muted"), stands, Span(names_of(state.models)))
    return spread(left, (Span("  "), *joined(counts), Span(" ")), width)
