"""The base of boxes that ask whether something is really meant."""

from collections.abc import Iterable
from typing import ClassVar

from textual.app import ComposeResult

from dlbricks_tui.tui.actions.action import Scope
from dlbricks_tui.tui.lines import Line
from dlbricks_tui.tui.screens.dialog import Dialog
from dlbricks_tui.tui.widgets.box import Box
from dlbricks_tui.tui.widgets.reading import Reading


class ConfirmingScreen(Dialog[bool]):
    """Gives True when the person is sure; subclasses bind the key of `confirm` and say what it is about."""

    QUESTION: ClassVar[str]
    ACTIONS: ClassVar[Scope]

    def compose(self) -> ComposeResult:
        with Box(self.QUESTION, [self.ACTIONS, Scope.DIALOG]):
            yield Reading(self.paragraphs)

    def paragraphs(self) -> Iterable[Line]:
        """What it is about."""
        raise NotImplementedError

    def action_confirm(self) -> None:
        self.dismiss(True)
