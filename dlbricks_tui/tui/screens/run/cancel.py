"""Asks before a run is cancelled."""

from collections.abc import Iterable

from textual.app import ComposeResult

from dlbricks_tui.tui.actions.action import Scope
from dlbricks_tui.tui.actions.registry import bindings
from dlbricks_tui.tui.lines import BLANK, Line, line
from dlbricks_tui.tui.live.snapshot import RunSnapshot
from dlbricks_tui.tui.live.words import names_of
from dlbricks_tui.tui.screens.dialog import Dialog
from dlbricks_tui.tui.widgets.box import Box
from dlbricks_tui.tui.widgets.reading import Reading


class CancelScreen(Dialog[bool]):
    """Gives True when the person is sure."""

    BINDINGS = bindings(Scope.CANCEL_RUN)
    ABOUT = "What the run has measured is in the store and stays there; the run can be taken up again."

    def __init__(self, run: RunSnapshot) -> None:
        super().__init__()
        self._run = run

    def compose(self) -> ComposeResult:
        with Box("Cancel the run?", [Scope.CANCEL_RUN, Scope.DIALOG]):
            yield Reading(self._said)

    def action_confirm(self) -> None:
        self.dismiss(True)

    def _said(self) -> Iterable[Line]:
        counts = self._run.counts
        yield line(f"Run {self._run.run} of {names_of(self._run.models)}: {counts.done:,} of {counts.total:,} done.")
        yield BLANK
        yield line("What it has measured is kept. It can be taken up again later, where it stopped.")
