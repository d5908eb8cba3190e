"""The box that asks before a trace is cancelled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlbricks_tui.documents.lines import BLANK, Line, line
from dlbricks_tui.tui.dialogs.dialog import ConfirmingScreen
from dlbricks_tui.tui.trace import actions

if TYPE_CHECKING:
    from collections.abc import Iterable


class CancelTraceScreen(ConfirmingScreen):
    """Returns True if the user confirms."""

    HEADING = "Cancel the trace?"
    scope = actions.CANCEL
    ABOUT = "A trace is stored once all of its levels have ended. Stored traces are kept."

    def __init__(self, told: str) -> None:
        super().__init__()
        self._told = told

    def paragraphs(self) -> Iterable[Line]:
        yield line(self._told)
        yield BLANK
        yield line("The levels of this trace are lost; traces that are stored are kept.")
