"""The box that asks before a measurement is cancelled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlbricks_tui.tui.dialogs.dialog import ConfirmingScreen
from dlbricks_tui.tui.lines import BLANK, Line, line
from dlbricks_tui.tui.scenario import actions

if TYPE_CHECKING:
    from collections.abc import Iterable


class CancelLoadScreen(ConfirmingScreen):
    """Returns True if the user confirms."""

    HEADING = "Cancel the measurement?"
    scope = actions.CANCEL
    ABOUT = "The result of a scenario is stored once all of its tests have ended. Stored load tests are kept."

    def __init__(self, told: str) -> None:
        super().__init__()
        self._told = told

    def paragraphs(self) -> Iterable[Line]:
        yield line(self._told)
        yield BLANK
        yield line("The tests of this measurement are lost; load tests that are stored are kept.")
