"""The first thing that a newcomer sees."""

from collections.abc import Iterable

from textual.app import ComposeResult

from dlbricks_tui.tui.actions.action import Scope
from dlbricks_tui.tui.actions.registry import bindings
from dlbricks_tui.tui.lines import BLANK, Line, Span, line
from dlbricks_tui.tui.screens.dialog import Dialog
from dlbricks_tui.tui.widgets.box import Box
from dlbricks_tui.tui.widgets.reading import Reading


class WelcomeScreen(Dialog[bool]):
    """Leads to the first estimate; gives True when the person goes along."""

    BINDINGS = bindings(Scope.WELCOME)
    ABOUT = "Nothing has been measured with this data folder yet. It takes a minute to get a first estimate."

    def __init__(self, sample: str) -> None:
        super().__init__()
        self._sample = sample

    def compose(self) -> ComposeResult:
        with Box("Welcome to dlbricks", [Scope.WELCOME, Scope.DIALOG]):
            yield Reading(self._said)

    def action_begin(self) -> None:
        self.dismiss(True)

    def _said(self) -> Iterable[Line]:
        yield line("How fast does a network run on this machine? Its layers repeat, and those of other networks are")
        yield BLANK
        yield line(Span("enter", "accent"), f" opens {self._sample}")
