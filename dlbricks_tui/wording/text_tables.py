"""Tables of texts as Markdown, CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from dlbricks_tui.printable import printable


class TableFormat(Enum):
    """The formats in which a table is copied; the value ends the names of files."""

    MARKDOWN = "md"
    CSV = "csv"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class TextTable:
    """The titles of the columns, and a text for each of them in each row."""

    titles: tuple[str, ...]
    # Long tables make their rows when these are read, which happens once.
    rows: Iterable[Sequence[str]]


@dataclass(frozen=True, slots=True)
class WrittenTable:
    """A table as one text."""

    text: str
    rows: int


def written(table: TextTable, how: TableFormat) -> WrittenTable:
    """Return the table in a format, with control codes escaped."""
    rows = [[printable(cell) for cell in row] for row in table.rows]
    titles = _distinct([printable(title) for title in table.titles])
    writers = {TableFormat.MARKDOWN: _markdown, TableFormat.CSV: _csv, TableFormat.JSON: _json}
    return WrittenTable(writers[how](titles, rows), len(rows))


def _distinct(titles: Sequence[str]) -> list[str]:
    """Return the titles with numbers after repeated ones: JSON would keep only the last of equal keys."""
    found: list[str] = []
    for title in titles:
        repeated = next((f"{title} {n}" for n in range(2, len(titles) + 1) if f"{title} {n}" not in found), title)
        found.append(repeated if title in found else title)
    return found


def _markdown(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    # `|` ends a cell, also in code spans.
    cells = [[cell.replace("\\", "\\\\").replace("|", "\\|") for cell in row] for row in (titles, *rows)]
    head, *body = (f"| {' | '.join(row)} |" for row in cells)
    return "\n".join([head, f"|{'---|' * len(titles)}", *body]) + "\n"


def _csv(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([titles, *rows])
    return text.getvalue()


def _json(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return json.dumps([dict(zip(titles, row, strict=True)) for row in rows], indent=2, ensure_ascii=False) + "\n"
