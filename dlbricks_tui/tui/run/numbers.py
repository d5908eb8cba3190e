"""The box that asks for one whole number or several."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlbricks_tui.runtime.variant import numbers_in
from dlbricks_tui.tui.dialogs.dialog import Box, Dialog
from dlbricks_tui.tui.lines import Line, Span, line, wrapped
from dlbricks_tui.tui.run import actions
from dlbricks_tui.tui.widgets.search_line import Field
from dlbricks_tui.tui.widgets.text import TextLines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult


class NumbersScreen(Dialog["tuple[int, ...]"]):
    """Returns the numbers that the user has written; none if the line is empty."""

    scope = actions.NUMBERS
    ABOUT = "Write whole numbers with commas between them, such as 1,2,4. An empty line is the usual value."

    def __init__(self, title: str, numbers: Sequence[int], most: int) -> None:
        super().__init__()
        self._title = title
        self._most = most
        self._field = Field(",".join(map(str, numbers)), hint="1,2,4")
        self._problem = ""
        self._below = TextLines(self._below_lines)

    def compose(self) -> ComposeResult:
        with Box(self._title, actions.NUMBERS):
            yield self._field
            yield self._below

    def on_input_submitted(self) -> None:
        self.action_submit()

    def on_input_changed(self) -> None:
        self._say("")

    def action_submit(self) -> None:
        text = self._field.value.strip()
        numbers = numbers_in(text) if text else ()
        if numbers is None or not all(1 <= number <= self._most for number in numbers):
            self._say(f"Write whole numbers from 1 to {self._most:,}, such as 1,2,4")
            return
        self.dismiss(numbers)

    def _say(self, problem: str) -> None:
        self._problem = problem
        self._below.refresh(layout=True)

    def _below_lines(self, width: int) -> tuple[Line, ...]:
        told = self._problem or "Several numbers are measured one after another, in one run."
        return tuple(wrapped(line(Span(told, "bad" if self._problem else "muted")), width))
