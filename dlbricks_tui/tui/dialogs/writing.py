"""The box that asks for a written value, such as a number or several."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Generic, TypeVar

from dlbricks_tui.documents.lines import Line, Span, line, wrapped
from dlbricks_tui.runtime.variant import numbers_in
from dlbricks_tui.tui.dialogs.dialog import Box, Dialog
from dlbricks_tui.tui.keys import actions
from dlbricks_tui.tui.widgets.search_line import Field
from dlbricks_tui.tui.widgets.text import TextLines

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.app import ComposeResult

Value = TypeVar("Value")


class WritingError(ValueError):
    """The text is no such value; the message says what to write."""


def whole_numbers(text: str, most: int) -> tuple[int, ...]:
    """Return the numbers in a text, of which none is more than `most`; none of an empty text."""
    numbers = numbers_in(text) if text else ()
    if numbers is None or not all(1 <= number <= most for number in numbers):
        raise WritingError(f"Write whole numbers from 1 to {most:,}, such as 1,2,4")
    return numbers


def one_number(text: str, most: int) -> int | None:
    """Return the number in a text, at most `most`; None of an empty text."""
    numbers = whole_numbers(text, most)
    if len(numbers) > 1:
        raise WritingError(f"Write one whole number from 1 to {most:,}")
    return numbers[0] if numbers else None


def number_up_to(text: str, most: float, unit: str) -> float | None:
    """Return the number in a text, above 0 and at most `most`; None of an empty text."""
    if not text:
        return None
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0.0 < number <= most:
        raise WritingError(f"Write a number above 0 and up to {most:,.0f} {unit}, such as 12.5")
    return number


class WritingScreen(Dialog[Value], Generic[Value]):
    """Returns what `read` makes of the text; `note` says what to write."""

    scope = actions.NUMBERS
    ABOUT = (
        "Write a number, or whole numbers with commas between them, such as 1,2,4. An empty line is the usual value."
    )

    def __init__(self, title: str, text: str, hint: str, note: str, read: Callable[[str], Value]) -> None:
        super().__init__()
        self._title = title
        self._note = note
        self._read = read
        self._field = Field(text, hint=hint)
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
        except WritingError as error:
            self._say(str(error))
        else:
            self.dismiss(found)

    def _say(self, problem: str) -> None:
        self._problem = problem
        self._below.refresh(layout=True)

    def _below_lines(self, width: int) -> tuple[Line, ...]:
        told = self._problem or self._note
        return tuple(wrapped(line(Span(told, "bad" if self._problem else "muted")), width))
