"""The first thing that a newcomer sees."""

from collections.abc import Iterable

from textual.app import ComposeResult

from dlbricks_tui.tui.actions.action import Scope
from dlbricks_tui.tui.actions.registry import bindings
from dlbricks_tui.tui.keymap import key
from dlbricks_tui.tui.lines import BLANK, Line, Span, column, line
from dlbricks_tui.tui.screens.dialog import Dialog
from dlbricks_tui.tui.widgets.box import Box
from dlbricks_tui.tui.widgets.reading import Reading

_KEYS = 8


class WelcomeScreen(Dialog[bool]):
    """Leads to the first estimate; gives True when the person goes along."""

    BINDINGS = bindings(Scope.WELCOME)
    ABOUT = "Nothing was ever measured with this data folder. A first estimate takes about twenty seconds."

    def __init__(self, sample: str) -> None:
        super().__init__()
        self._sample = sample

    def compose(self) -> ComposeResult:
        with Box("Welcome to dlbricks", [Scope.WELCOME, Scope.DIALOG]):
            yield Reading(self._said)

    def action_begin(self) -> None:
        self.dismiss(True)

    def _said(self) -> Iterable[Line]:
        yield line(Span("How fast does each of these networks run on this machine?", "strong"))
        yield BLANK
        yield line(
            "Most layers of a network occur again and again, in it and in others. dlbricks runs each of them once, as "
            "a brick, and composes the latency of every network from what it has measured: as the sum over all "
            "layers, and along the critical path, as if independent layers ran at the same time."
        )
        yield BLANK
        yield line(
            f"Nothing was measured here yet. {self._sample} is a small network to begin with: its bricks, and the "
            "whole network to compare with, take about twenty seconds."
        )
        yield BLANK
        yield line(column(key("welcome.begin"), _KEYS, "accent"), f"open {self._sample} and run its bricks")
        yield line(column(key("dialog.close"), _KEYS, "accent"), "look around first")
        yield line(column(key("app.show_help"), _KEYS, "accent"), "everywhere: which keys do what")
