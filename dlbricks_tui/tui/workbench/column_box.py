"""The box that selects the columns of the list of models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlbricks_tui.documents.lines import Line, Span, column, line
from dlbricks_tui.tui.dialogs.dialog import Box, Dialog
from dlbricks_tui.tui.widgets.rows import DrawnRows
from dlbricks_tui.tui.workbench import actions
from dlbricks_tui.tui.workbench.model_columns import COLUMNS, ModelColumn

if TYPE_CHECKING:
    from collections.abc import Iterable

    from textual.app import ComposeResult

_NAME = 12


class ModelColumnsScreen(Dialog[tuple[str, ...]]):
    """Returns the names of the selected columns."""

    scope = actions.MODEL_COLUMNS
    ABOUT = (
        "Marked columns are shown. A narrow list leaves out the first of them; {app.zoom} and {workbench.wider} help."
    )

    def __init__(self, shown: Iterable[str]) -> None:
        super().__init__()
        self._chosen = set(shown)
        self._list: DrawnRows[ModelColumn] = DrawnRows(self._row)
        self._list.items = COLUMNS

    def compose(self) -> ComposeResult:
        with Box("Columns of the list of models", actions.MODEL_COLUMNS):
            yield self._list

    def on_mount(self) -> None:
        self._list.rows_changed()

    def action_show_or_hide(self) -> None:
        if self._list.selected is not None:
            self._chosen ^= {self._list.selected.name}
            self._list.action_down()
            self._list.refresh()

    def action_use(self) -> None:
        self.dismiss(tuple(each.name for each in COLUMNS if each.name in self._chosen))

    def _row(self, index: int, width: int) -> Line:
        each = self._list.items[index]
        mark = Span("[x] ", "mark") if each.name in self._chosen else Span("[ ] ", "muted")
        return line(mark, column(each.title, _NAME, "strong"), Span(each.about, "muted"))
