"""The rows of a list as texts, to copy them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlbricks_tui.documents.lines import Line, Span, width_of
from dlbricks_tui.wording.text_tables import TextTable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# Wide enough that nearly no cell is shortened.
WIDTH = 500
# A list without columns has these two: most of its lines begin with a name.
FACT, VALUE = "fact", "value"
# The styles of bars and sparklines, which copies leave out.
_DRAWN = frozenset({"bar", "rest"})


def columns_as_texts(heading: Line, rows: Iterable[Line]) -> TextTable:
    """Return rows below the titles of their columns; each span belongs to the column in which it begins."""
    titles, starts = _columns_of(heading)
    found = [_cells(row, starts) for row in rows]
    texts = [[text_of(cell) for cell in row] for row in found]
    # A column that has only drawings is left out; one without any text in these rows stays.
    drawn = {at for row in found for at, cell in enumerate(row) if any(span.style in _DRAWN for span in cell)}
    kept = [at for at in range(len(titles)) if at not in drawn or any(row[at] for row in texts)]
    return TextTable(tuple(titles[at] for at in kept), [[row[at] for at in kept] for row in texts])


def lines_as_texts(lines: Iterable[Line]) -> TextTable:
    """Return lines of text as names and values; a line without a name has only a value."""
    return TextTable((FACT, VALUE), [_fact(each) for each in lines if text_of(each)])


def text_of(spans: Iterable[Span]) -> str:
    """Return the text of spans without drawings and without additional blanks."""
    return " ".join("".join(span.text for span in spans if span.style not in _DRAWN).split())


def _columns_of(heading: Line) -> tuple[list[str], list[int]]:
    """Return the titles, and the cell where each column begins; a gap belongs to the column before it."""
    titles: list[str] = []
    starts: list[int] = []
    at = 0
    for span in heading:
        if span.text.strip():
            titles.append(span.text.strip())
            starts.append(at)
        at += width_of((span,))
    return titles, starts


def _cells(row: Line, starts: Sequence[int]) -> list[list[Span]]:
    cells: list[list[Span]] = [[] for _ in starts]
    at = 0
    for span in row:
        column = sum(start <= at for start in starts) - 1
        # A mark before the first title belongs to no column.
        if column >= 0:
            cells[column].append(span)
        at += width_of((span,))
    return cells


def _fact(spans: Line) -> list[str]:
    # The column of names ends in a gap.
    if len(spans) > 1 and spans[0].text.endswith(" "):
        return [text_of(spans[:1]), text_of(spans[1:])]
    return ["", text_of(spans)]
