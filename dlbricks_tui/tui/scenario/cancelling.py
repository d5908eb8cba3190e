"""The box that asks before a measurement is cancelled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlbricks_tui.documents.lines import BLANK, Line, line
from dlbricks_tui.tui.dialogs.dialog import ConfirmingScreen
from dlbricks_tui.tui.scenario import actions

if TYPE_CHECKING:
    from collections.abc import Iterable


class CancelLoadScreen(ConfirmingScreen):
    """Returns True if the user confirms."""

    HEADING = "Cancel the measurement?"
    scope = actions.CANCEL
    ABOUT = (
        "The result of a scenario is stored once all of its tests have ended. If it is cancelled, the tests that have "
        "ended are stored as load tests at their rates or batch sizes; the test in progress is lost."
    )

    def __init__(self, told: str) -> None:
        super().__init__()
        self._told = told

    def paragraphs(self) -> Iterable[Line]:
        yield line(self._told)
        yield BLANK
        yield line("The test in progress is lost; the tests that have ended are stored.")
