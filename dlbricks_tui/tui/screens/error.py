"""An error, as one can read and copy it."""

from collections.abc import Iterable
from pathlib import Path

from textual.app import ComposeResult

from dlbricks_tui.tui.actions.action import Scope
from dlbricks_tui.tui.actions.registry import bindings
from dlbricks_tui.tui.lines import BLANK, Line, Span, line
from dlbricks_tui.tui.screens.dialog import Dialog
from dlbricks_tui.tui.widgets.box import Box
from dlbricks_tui.tui.widgets.reading import Reading


class ErrorScreen(Dialog[None]):
    """Says what went wrong and what to do; the text can be taken along."""

    BINDINGS = bindings(Scope.ERROR)

    def __init__(self, text: str, log: Path | None = None) -> None:
        super().__init__()
        self._text = text
        self._log = log

    def compose(self) -> ComposeResult:
        with Box("This did not work", [Scope.ERROR, Scope.DIALOG], classes="-bad"):
            yield Reading(self._said)

    def action_copy(self) -> None:
        self.app.copy_to_clipboard(self._text)

    def _said(self) -> Iterable[Line]:
        yield line(self._text)
        if self._log is not None:
            yield BLANK
            yield line(Span(f"This is a fault of dlbricks. The details for a report are in {self._log}", "muted"))
