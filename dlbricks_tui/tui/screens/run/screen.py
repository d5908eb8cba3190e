"""One run: how far it is, its bricks, the estimates of its models, and what has happened."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual.containers import Container

from dlbricks_tui.tui.actions.action import Scope
from dlbricks_tui.tui.actions.registry import bindings
from dlbricks_tui.tui.messages import RunBegun
from dlbricks_tui.tui.screens.panelled import PanelledScreen
from dlbricks_tui.tui.screens.run.bricks import BricksPanel
from dlbricks_tui.tui.screens.run.estimates import EstimatesPanel
from dlbricks_tui.tui.screens.run.head import head_lines
from dlbricks_tui.tui.screens.run.notes import NotesPanel
from dlbricks_tui.tui.widgets.key_bar import KeyBar
from dlbricks_tui.tui.widgets.said import Said

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from dlbricks_tui.tui.lines import Line
    from dlbricks_tui.tui.live.runs import Runs
    from dlbricks_tui.tui.live.snapshot import RunSnapshot


class RunScreen(PanelledScreen["RunSnapshot"]):
    """Shows the run that is followed; leaving it leaves the run alone, and gives what was shown last."""

    scope: ClassVar[Scope] = Scope.RUN
    BINDINGS = bindings(Scope.RUN)
    AUTO_FOCUS = "#run-bricks RowsView"
    ABOUT = "A run is a process of its own: leave this screen, or dlbricks, and it goes on."

    def __init__(self, runs: Runs, run: RunSnapshot | None) -> None:
        super().__init__()
        self._runs = runs
        self._run = run
        self._drawn: tuple[Line, ...] = ()
        self._head = Said(self._head_lines, classes="run-head")
        self._bricks = BricksPanel()
        self._estimates = EstimatesPanel()
        self._notes = NotesPanel()

    def compose(self) -> ComposeResult:
        yield self._head
        with Container(id="run-panels"):
            yield self._bricks
            yield self._estimates
            yield self._notes
        yield KeyBar()

    def on_mount(self) -> None:
        self.make_current(self._bricks)
        if self._run is not None:
            self.show_run(self._run)

    def show_run(self, run: RunSnapshot) -> None:
        """Shows how the run stands now."""
        before, self._run = self._run, run
        # While bricks run, nothing is drawn that looks as it did.
        if self.size.width and self._drawn != head_lines(run, self.size.width):
            self._head.refresh()
        self._bricks.show(run.bricks, run.message or run.at_work)
        self._estimates.show(run.estimates)
        self._notes.show(run.notes)
        if before is None or _offers(before) != _offers(run):
            self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in ("pause", "cancel"):
            return self._run is not None and self._run.active
        if action == "take_up":
            return self._run is not None and self._run.can_be_taken_up
        return True

    def action_pause(self) -> None:
        if self._run is not None:
            tell = self._runs.go_on if self._run.pausing else self._runs.pause
            self.ask(partial(tell, self._run.run), "tell")

    def action_cancel(self) -> None:
        from dlbricks_tui.tui.screens.run.cancel import CancelScreen

        if self._run is not None:
            self.app.push_screen(CancelScreen(self._run), self._cancel)

    def action_take_up(self) -> None:
        if self._run is not None:
            self.ask(partial(self._runs.take_up, self._run.run), "tell")

    def action_show_runs(self) -> None:
        from dlbricks_tui.tui.screens.run.all_runs import AllRunsScreen

        self.app.push_screen(AllRunsScreen(self._runs), self._run_chosen)

    def action_go_to_bricks(self) -> None:
        self.go_to(self._bricks)

    def action_go_to_estimates(self) -> None:
        self.go_to(self._estimates)

    def action_go_to_notes(self) -> None:
        self.go_to(self._notes)

    def action_leave(self) -> None:
        self.dismiss(self._run)

    def _cancel(self, sure: bool | None) -> None:
        if sure and self._run is not None:
            self.ask(partial(self._runs.cancel, self._run.run), "tell")

    def _run_chosen(self, run: str | None) -> None:
        if run is not None:
            self.post_message(RunBegun(run))

    def _head_lines(self, width: int) -> tuple[Line, ...]:
        self._drawn = head_lines(self._run, width)
        return self._drawn


def _offers(run: RunSnapshot) -> tuple[bool, bool]:
    return run.active, run.can_be_taken_up
