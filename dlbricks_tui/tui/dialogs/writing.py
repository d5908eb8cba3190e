"""The box that asks for a written value, such as a number or several."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from dlbricks_tui.documents.lines import Line, Span, line, wrapped
from dlbricks_tui.settings.kinds import ValueRefusedError
from dlbricks_tui.tui.dialogs.dialog import Box, Dialog
from dlbricks_tui.tui.keys import actions
from dlbricks_tui.tui.widgets.search_line import Field
from dlbricks_tui.tui.widgets.text import TextLines
from dlbricks_tui.wording.numbers import capitalised

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.app import ComposeResult

Value = TypeVar("Value")


class WritingScreen(Dialog[Value], Generic[Value]):
    """Returns what `read` makes of the text, or shows why it refuses it; `note` says what to write."""

    scope = actions.NUMBERS
    ABOUT = (
        "Write a number, or whole numbers with commas between them, such as 1,2,4. An empty line is the usual value."
    )

    def __init__(self, title: str, text: str, note: str, read: Callable[[str], Value]) -> None:
        super().__init__()
        self._title = title
        self._note = note
        self._read = read
        self._field = Field(text, hint="")
        self._problem = ""
        self._below = TextLines(self._below_lines)

    def compose(self) -> ComposeResult:
        with Box(self._title, actions.NUMBERS):
            yield self._field
            yield self._below

    def on_input_changed(self) -> None:
        self._say("")

    def action_submit(self) -> None:
        try:
            found = self._read(self._field.value.strip())
        except ValueRefusedError as error:
            self._say(capitalised(str(error)))
        else:
            self.dismiss(found)

    def _say(self, problem: str) -> None:
        self._problem = problem
        self._below.refresh(layout=True)

    def _below_lines(self, width: int) -> tuple[Line, ...]:
        told = self._problem or self._note
        return tuple(wrapped(line(Span(told, "bad" if self._problem else "muted")), width))
