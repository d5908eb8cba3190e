"""All runs of the data folder, those that go on and those that have ended."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from textual.message import Message

from dlbricks_tui.tui.actions.action import Scope
from dlbricks_tui.tui.actions.registry import bindings
from dlbricks_tui.tui.key_words import Hint
from dlbricks_tui.tui.lines import Line, Span, column, line, spread
from dlbricks_tui.tui.live.words import STATE_STYLES, joined
from dlbricks_tui.tui.screens.searched import SearchedDialog
from dlbricks_tui.tui.widgets.box import Box
from dlbricks_tui.tui.widgets.rows import RowsView, place_of
from dlbricks_tui.wording.numbers import duration
from dlbricks_tui.wording.runs import names_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult

    from dlbricks_tui.runs.run_folder import RunState
    from dlbricks_tui.tui.live.runs import Runs


_ROOMY = 80


class AllRunsScreen(SearchedDialog[str]):
    """Gives the id of the run to be watched."""

    scope = Scope.RUNS
    BINDINGS = bindings(Scope.RUNS)
    SEARCH_HINT = "model, state, date or id"
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
        self._list = _RunRows()
        super().__init__(self._list)
        self._runs = runs

    def compose(self) -> ComposeResult:
        with Box("Runs", [Scope.RUNS, Scope.BOX, Scope.DIALOG], classes="-tall"):
            yield self._list
            yield self.search_line

    def on_mount(self) -> None:
        self.ask(self._find, "runs")

    def on_all_runs_screen_listed(self, event: Listed) -> None:
        self._list.show(event.states)
        self.refresh_bindings()

    def on_all_runs_screen_taken_up(self, event: TakenUp) -> None:
        self.dismiss(event.run)

    def show_found(self, words: Sequence[str]) -> None:
        self._list.seek(words)

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
        self._shown: tuple[RunState, ...] = ()
        self._words: tuple[str, ...] = ()
        self.say(line(Span("Looking for runs.", "muted")))

    @property
    def row_count(self) -> int:
        return len(self._shown)

    @property
    def chosen(self) -> RunState | None:
        """The run that the cursor is on."""
        return self._shown[self.cursor] if self._shown else None

    def row(self, index: int, width: int) -> Line:
        return run_row(self._shown[index], width)

    def show(self, states: tuple[RunState, ...]) -> None:
        """Lists the runs."""
        self._states = states
        self._find()

    def seek(self, words: Sequence[str]) -> None:
        """Lists only the runs that have all of the words."""
        self._words = tuple(words)
        self._find()

    def _find(self) -> None:
        here = self.chosen.run if self.chosen else None
        self._shown = tuple(state for state in self._states if _fits(state, self._words))
        if self._states:
            self.say(line("No run has all of these words."), Hint("{find.clear} shows all runs again.", "muted"))
        else:
            self.say(
                line("There was no run yet."),
                Hint("{dialog.close} goes back; {workbench.start_run} on the workbench starts the first."),
            )
        self.rows_changed()
        self.move_to(place_of(here, [state.run for state in self._shown]))


def run_row(state: RunState, width: int) -> Line:
    """A run in one line."""
    bricks = state.bricks
    roomy = width >= _ROOMY
    what = " bricks" if roomy else ""
    counts = [Span(f"{bricks.measured + bricks.reused:,} of {bricks.total:,}{what}", "muted")]
    if bricks.failed:
        counts.append(Span(f"{bricks.failed:,} failed", "bad"))
    if roomy and not state.active:
        counts.append(Span(duration(state.seconds), "muted"))
    stands = column(state.state.value, 12, STATE_STYLES.get(state.state, "text"))
    left = (Span(f"{_began(state)} ", "muted"), stands, Span(names_of(state.models)))
    return spread(left, (Span("  "), *joined(counts), Span(" ")), width)


def _began(state: RunState) -> str:
    return datetime.fromisoformat(state.started).astimezone().strftime("%d %b %H:%M")


def _fits(state: RunState, words: Sequence[str]) -> bool:
    text = f"{_began(state)} {state.state.value} {' '.join(state.models)} {state.run}".casefold()
    return all(word in text for word in words)
