"""Numbers as tables: what stands behind each figure, and what the page shows beside it."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

from dlbricks_tui.printable import printable

Cell = None | int | float | str
# What stands where there is no number.
NOTHING = "-"


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells under the names of their columns; names carry the units."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    # Columns for machines: in the CSV, and not on the page.
    details: tuple[str, ...] = ()

    def shown(self) -> "Table":
        """The columns for people."""
        held = [number for number, name in enumerate(self.columns) if name not in self.details]
        rows = tuple(tuple(row[number] for number in held) for row in self.rows)
        return Table(tuple(self.columns[number] for number in held), rows)

    def csv(self) -> str:
        """The table as comma-separated values, with numbers as exact as they are."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows([["" if cell is None else cell for cell in row] for row in self.rows])
        return text.getvalue()


def table(columns: Sequence[str], rows: Sequence[Sequence[Cell]], details: Sequence[str] = ()) -> Table:
    """Return a table whose rows have a cell for each column, and some columns for machines.

    Control codes in names are spelled out.
    """
    cells = tuple(tuple(printable(cell) if isinstance(cell, str) else cell for cell in row) for row in rows)
    return Table(tuple(map(printable, columns)), cells, tuple(details))


def cell_text(cell: Cell) -> str:
    """A cell as a person reads it: numbers with four digits that count, nothing as a dash."""
    if cell is None:
        return NOTHING
    if isinstance(cell, float):
        return f"{cell:,.0f}" if abs(cell) >= 1000 else f"{cell:.4g}"
    return f"{cell:,}" if isinstance(cell, int) else cell


def percent(share: float) -> str:
    """A share of 1 in percent."""
    return f"{100 * share:.1f} %"
