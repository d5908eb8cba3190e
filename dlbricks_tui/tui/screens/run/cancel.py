"""Asks before a run is cancelled."""

from collections.abc import Iterable

from dlbricks_tui.tui.actions.action import Scope
from dlbricks_tui.tui.actions.registry import bindings
from dlbricks_tui.tui.lines import BLANK, Line, line
from dlbricks_tui.tui.live.snapshot import RunSnapshot
from dlbricks_tui.tui.screens.confirming import ConfirmingScreen
from dlbricks_tui.tui.widgets.reading import Reading
from dlbricks_tui.wording.runs import names_of


class CancelScreen(ConfirmingScreen):
    """Gives True when the person is sure."""

    QUESTION = "Cancel the run?"
    ACTIONS = Scope.CANCEL_RUN
    BINDINGS = bindings(Scope.CANCEL_RUN)
    ABOUT = "What the run has measured is in the store and stays there; the run can be taken up again."

    def __init__(self, run: RunSnapshot) -> None:
        super().__init__()
        self._run = run

    def show_run(self, run: RunSnapshot) -> None:
        """Say how far the run is by now."""
        self._run = run
        self.query_one(Reading).remake()

    def paragraphs(self) -> Iterable[Line]:
        counts = self._run.counts
        yield line(f"Run {self._run.run} of {names_of(self._run.models)}: {counts.done:,} of {counts.total:,} done.")
        yield BLANK
        yield line("What it has measured is kept. It can be taken up again later, where it stopped.")
