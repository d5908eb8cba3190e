"""Boxes with a choice or a field: a written value, and the form of a copy."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Generic, TypeVar

from dlbricks_tui.documents.lines import Line, Span, column, line, wrapped
from dlbricks_tui.settings.kinds import ValueRefusedError
from dlbricks_tui.tui.dialogs.dialog import Box, Dialog
from dlbricks_tui.tui.keys import actions
from dlbricks_tui.tui.widgets.rows import DrawnRows
from dlbricks_tui.tui.widgets.search_line import Field
from dlbricks_tui.tui.widgets.text import TextLines
from dlbricks_tui.wording.numbers import capitalised
from dlbricks_tui.wording.text_tables import TableFormat

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


_NAME = 13


class CopiedForm(Enum):
    """The forms of a copy; those of a table have its format."""

    MARKDOWN = ("Markdown", "all rows as a table for documents", TableFormat.MARKDOWN)
    CSV = ("CSV", "all rows for spreadsheets", TableFormat.CSV)
    JSON = ("JSON", "all rows for programs, as texts", TableFormat.JSON)
    PANEL = ("SVG, panel", "a picture of the panel", None)
    SCREEN = ("SVG, screen", "a picture of the whole screen", None)

    def __init__(self, label: str, about: str, table: TableFormat | None) -> None:
        self.label = label
        self.about = about
        self.table = table

    @property
    def is_panel(self) -> bool:
        """Return whether the copy is of the panel, not of the whole screen."""
        return self is not CopiedForm.SCREEN


class CopyScreen(Dialog[CopiedForm]):
    """Returns the selected form; the cursor begins on the one that was used last."""

    scope = actions.COPYING
    ABOUT = (
        "A copy has all rows that the search finds, also those out of view. It goes to the clipboard of your terminal, "
        "and to a file. Tables leave out bars. What is too long for a terminal is only in the file."
    )

    def __init__(self, panel: str, last: CopiedForm | None) -> None:
        super().__init__()
        self._panel = panel
        self._last = last or CopiedForm.MARKDOWN
        self._list: DrawnRows[CopiedForm] = DrawnRows(self._row)
        self._list.items = tuple(CopiedForm)

    def compose(self) -> ComposeResult:
        with Box(f"Copy: {self._panel}", actions.COPYING):
            yield self._list

    def on_mount(self) -> None:
        self._list.rows_changed()
        self._list.move_to(self._list.items.index(self._last))

    def action_copy(self) -> None:
        if self._list.selected is not None:
            self.dismiss(self._list.selected)

    def _row(self, index: int, width: int) -> Line:
        form = self._list.items[index]
        return line(column(form.label, _NAME, "strong"), Span(form.about, "muted"))
