"""The parts of a report: figures and tables, each with its numbers, or with the command that measures them."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dlbricks_tui.answers.analyses import Cell
from dlbricks_tui.documents.parts import Table
from dlbricks_tui.printable import printable


@dataclass(frozen=True, slots=True)
class CsvTable:
    """Rows of exact numbers; the names of columns include units."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    # Columns that are only in the CSV file.
    details: tuple[str, ...] = ()
    # The number of rows on the page; the CSV file has all. None: all.
    most: int | None = None

    def shown(self) -> "CsvTable":
        """Return the first rows without the details."""
        held = [number for number, name in enumerate(self.columns) if name not in self.details]
        rows = tuple(tuple(row[number] for number in held) for row in self.rows[: self.most])
        return CsvTable(tuple(self.columns[number] for number in held), rows)

    def csv(self) -> str:
        """Return the rows as comma-separated values."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows([["" if cell is None else cell for cell in row] for row in self.rows])
        return text.getvalue()


def csv_table(
    columns: Sequence[str], rows: Sequence[Sequence[Cell]], details: Sequence[str] = (), most: int | None = None
) -> CsvTable:
    """Return rows of numbers; control codes in texts are spelled out."""
    cells = tuple(tuple(printable(cell) if isinstance(cell, str) else cell for cell in row) for row in rows)
    return CsvTable(tuple(map(printable, columns)), cells, tuple(details), most)


def cell_text(cell: Cell) -> str:
    """Return the text of a cell: numbers with four significant digits, an empty cell as a dash."""
    if cell is None:
        return "-"
    if isinstance(cell, float):
        return f"{cell:,.0f}" if abs(cell) >= 1000 else f"{cell:.4g}"
    return f"{cell:,}" if isinstance(cell, int) else cell


@dataclass(frozen=True, slots=True)
class Exhibit:
    """A drawing with its numbers, or these alone."""

    # Also the name of its files.
    name: str
    title: str
    caption: str
    numbers: CsvTable
    svg: str = ""
    # The table on the page, where it is that of a document.
    table: Table[Any] | None = None


@dataclass(frozen=True, slots=True)
class Section:
    """A figure or table of the paper: its explanation, its exhibits, and the missing data."""

    # With the paper's number; `anchor` is for links.
    heading: str
    anchor: str
    explanation: str
    exhibits: tuple[Exhibit, ...] = ()
    # The values of the paper and its authors' files.
    published: str = ""
    # The missing data, with the command that measures it.
    missing: tuple[str, ...] = ()
    # The answer, if the heading is a question.
    answer: str = ""
