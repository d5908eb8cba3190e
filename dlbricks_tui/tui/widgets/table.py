"""Panels whose rows are those of a document's table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from dlbricks_tui.documents.lines import Line, Span
from dlbricks_tui.documents.parts import Table
from dlbricks_tui.documents.table_layout import TableLayout
from dlbricks_tui.tui.widgets.panel import ItemPanel
from dlbricks_tui.tui.widgets.rows import DrawnRows, Item
from dlbricks_tui.wording.text_tables import TextTable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dlbricks_tui.documents.parts import Column, Missing


class _TableRows(DrawnRows[Item]):
    """A row for each item, then rows of totals, which cannot be selected."""

    totals: tuple[Item, ...] = ()

    @property
    def row_count(self) -> int:
        return len(self.items) + len(self.totals)

    def can_select(self, index: int) -> bool:
        return index < len(self.items)


class TablePanel(ItemPanel[Item]):
    """A list with declared columns: they give its titles, its rows, and the table that is copied."""

    HEADED: ClassVar[bool] = True

    def __init__(self, *, id: str) -> None:  # noqa: A002 - Textual's name
        self._table_rows: _TableRows[Item] = _TableRows(self._row)
        super().__init__(self._table_rows, id=id)
        # The columns in a width, for the items of the moment.
        self._layout: TableLayout | None = None
        self._laid_out_for: tuple[Item, ...] = ()
        self._width = 0

    def columns(self) -> tuple[Column[Any], ...]:
        """Return the columns for the items of the moment."""
        raise NotImplementedError

    def copied_columns(self) -> tuple[Column[Any], ...]:
        """Return the columns of a copy."""
        return self.columns()

    def columns_changed(self) -> None:
        """Draw the same items with other cells."""
        self._layout = None
        self.rows.refresh()
        self.heading_changed()

    def show_totals(self, totals: Sequence[Item]) -> None:
        """Show rows below those of the items, which cannot be selected."""
        self._table_rows.totals = tuple(totals)

    def missing(self, item: Item) -> Missing | None:
        """Return why an item has no figures, and the command that measures them."""
        return None

    def heading(self, width: int) -> Line:
        # The sign of the cursor stands before the rows.
        return (Span(" "), *self._laid_out(width - 1).heading)

    def as_texts(self) -> TextTable:
        # Bars, marks and numbers of rows have no title.
        kept = [it for it in self.copied_columns() if it.title]
        found = (*self.found, *self._table_rows.totals)
        told = ["".join(self.missing(row) or ()) for row in found]
        rows = [
            ["" if missing and not it.is_key else str(it.cell(row)) for it in kept]
            for row, missing in zip(found, told, strict=True)
        ]
        titles = [it.title for it in kept]
        if any(told):
            titles, rows = [*titles, "missing"], [[*row, missing] for row, missing in zip(rows, told, strict=True)]
        return TextTable(tuple(titles), rows)

    def search_changed(self) -> None:
        self._layout = None
        super().search_changed()
        self.heading_changed()

    def _row(self, index: int, width: int) -> Line:
        return self._laid_out(width).row(index, self.words)

    def _laid_out(self, width: int) -> TableLayout:
        if self._layout is None or self._laid_out_for is not self.found or self._width != width:
            rows = (*self.found, *self._table_rows.totals)
            self._layout = TableLayout(Table(self.columns(), rows, missing=self.missing), width)
            self._laid_out_for, self._width = self.found, width
        return self._layout
