"""The columns of tables in a width."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from dlbricks_tui.documents.lines import (
    Line,
    Span,
    column,
    cut,
    fitted,
    highlighted,
    line,
    spelled,
    width_of,
    wrapped,
)
from dlbricks_tui.documents.look import PANEL, Look
from dlbricks_tui.documents.parts import CellKind, Table
from dlbricks_tui.wording.histogram import bar

if TYPE_CHECKING:
    from dlbricks_tui.documents.parts import Column

_GAP = "  "
# Names are shortened to the first; shorter ones than the second cost the optional columns.
_LEAST_NAME, _READABLE_NAME = 8, 24
_LEAST_SENTENCE = 16
_LEAST_BAR, _MOST_BAR = 6, 28


class TableLayout:
    """The columns of a table in a width: as wide as their cells, names shortened and bars left out where that is short.

    Rows are drawn one at a time, as a list asks only for those in view.
    """

    def __init__(self, table: Table[Any], width: int, look: Look = PANEL) -> None:
        self._table, self._look, self._width = table, look, width
        self._missing = [table.missing(row) for row in table.rows]
        self._cells: list[Sequence[str]] = [
            tuple(
                "" if missing and not it.is_key else str(it.cell(row))
                for row, missing in zip(table.rows, self._missing, strict=True)
            )
            if it.kind is not CellKind.BAR
            else ()
            for it in table.columns
        ]
        needed, left_out = self._needed(), list[int]()
        self._widths = self._fitted(needed, width)
        optional = [at for at, it in enumerate(table.columns) if it.is_optional]
        optional.sort(key=lambda at: table.columns[at].goes_last)
        while optional and self._is_narrow(needed):
            left_out.append(optional.pop(0))
            self._widths = self._fitted(needed, width, left_out)
        # Where nothing is left to give up, columns move together.
        self._gap = _GAP if self._whole <= width else " "
        self._cells = [self._names(at, cells) for at, cells in enumerate(self._widths)]

    @property
    def heading(self) -> Line:
        """The titles of the columns."""
        columns = [it for it in zip(self._table.columns, self._widths, strict=True) if it[1]]
        titles = [it.title.upper() if self._look.capitals and not it.is_named else it.title for it, _ in columns]
        return self._joined(
            (column(title, width, "muted", right=it.kind is CellKind.NUMBER),)
            for title, (it, width) in zip(titles, columns, strict=True)
        )

    def shows(self, at: int) -> bool:
        """Return whether a column has room."""
        return self._widths[at] > 0

    def row(self, index: int, words: Sequence[str] = ()) -> Line:
        """Return a row in one line, with these words highlighted in its names; it may be too long without figures."""
        cells = self._line(index, self._texts(index), words)
        return (*cells, *(Span(text) for text in self._told(index)))

    def lines(self, index: int) -> Iterator[Line]:
        """Yield the lines of a row, more than one where a sentence wraps, or where its figures are missing."""
        if self._missing[index] is not None:
            cells, (reason, command) = self._line(index, self._texts(index)), self._told(index)
            if width_of((*cells, Span(reason), Span(command))) <= self._width:
                yield (*cells, Span(reason), Span(command))
                return
            yield (*cells, Span(reason))
            if command:
                # A command of its own line can be copied.
                yield (Span(_GAP), Span(command))
            return
        columns = zip(self._table.columns, self._texts(index), self._widths, strict=True)
        texts = [
            ["".join(span.text for span in each) for each in wrapped(line(text), width)]
            if it.kind is CellKind.SENTENCE
            else [text]
            for it, text, width in columns
        ]
        yield from (self._line(index, each) for each in zip_longest(*texts, fillvalue=""))

    def _told(self, index: int) -> tuple[str, ...]:
        """Return why a row has no figures, and the command that measures them; nothing if it has them."""
        missing = self._missing[index]
        return () if missing is None else (f"{_GAP}{missing[0]}", missing[1])

    def _texts(self, index: int) -> list[str]:
        return [self._text(at, index) for at in range(len(self._widths))]

    def _text(self, at: int, index: int) -> str:
        it, width = self._table.columns[at], self._widths[at]
        if it.kind is CellKind.BAR:
            return bar(it.cell(self._table.rows[index]), width, self._look.full, self._look.parts)
        return self._cells[at][index]

    def _line(self, index: int, texts: Iterable[str], words: Sequence[str] = ()) -> Line:
        row, cells = self._table.rows[index], zip(self._table.columns, texts, self._widths, strict=True)
        has_figures = self._missing[index] is None
        shown = ((it, text, width) for it, text, width in cells if width and (has_figures or it.is_key))
        return self._joined(_cell(it, row, text, width, words) for it, text, width in shown)

    def _names(self, at: int, width: int) -> Sequence[str]:
        """Return the cells of a column; those of names may be fitted into the width together."""
        fit = self._table.columns[at].fit
        return self._cells[at] if fit is None or not width else fit(self._cells[at], width)

    def _is_narrow(self, needed: Sequence[int]) -> bool:
        """Return whether a name has too little room, or the whole table."""
        names = [at for at in _shortenable(self._table.columns) if not self._table.columns[at].is_optional]
        return self._whole > self._width or any(self._widths[at] < min(needed[at], _READABLE_NAME) for at in names)

    @property
    def _whole(self) -> int:
        """The width of a row with gaps of the usual width."""
        kept = [width for width in self._widths if width]
        return sum(kept) + len(_GAP) * (len(kept) - 1)

    def _joined(self, cells: Iterable[Line]) -> Line:
        found: list[Span] = []
        for cell in cells:
            found += [Span(self._gap), *cell] if found else cell
        return tuple(found)

    def _needed(self) -> list[int]:
        """Return the width of the longest cell in each column; a bar needs none."""
        return [
            max(map(_width_of, (it.title, *self._names(at, sys.maxsize)))) for at, it in enumerate(self._table.columns)
        ]

    def _fitted(self, needed: Sequence[int], width: int, left_out: Sequence[int] = ()) -> list[int]:
        """Return the width of each column; 0 for one that has no room."""
        columns = self._table.columns
        found = [0 if at in left_out else cells for at, cells in enumerate(needed)]
        bars = [at for at, it in enumerate(columns) if it.kind is CellKind.BAR]
        kept = [at for at in range(len(columns)) if at not in (*bars, *left_out)]
        left = width - sum(found[at] for at in kept) - len(_GAP) * (len(kept) - 1)
        # All have the same room, or none.
        room = min(_MOST_BAR, left // max(1, len(bars)) - len(_GAP)) if self._table.rows else 0
        for at in bars:
            found[at] = room if room >= _LEAST_BAR else 0
            left -= room + len(_GAP) if found[at] else 0
        names, sentences = _shortenable(columns), [at for at, it in enumerate(columns) if it.kind is CellKind.SENTENCE]
        last = [at for at in names[:1] if columns[at].fit is None]
        return _narrowed(found, names, sentences, left, last)


def _shortenable(columns: Sequence[Column[Any]]) -> list[int]:
    """Return the places of the columns whose names may be shortened."""
    return [at for at, it in enumerate(columns) if it.kind is CellKind.NAME and not it.is_key]


def _cell(it: Column[Any], row: Any, text: str, width: int, words: Sequence[str]) -> Line:
    style = it.style(row) if callable(it.style) else it.style
    if it.kind is CellKind.NAME and words:
        return fitted(highlighted(cut(text, width), words, style), width)
    return (column(text, width, style, right=it.kind is CellKind.NUMBER),)


def _narrowed(
    widths: list[int], names: Sequence[int], sentences: Sequence[int], left: int, last: Sequence[int]
) -> list[int]:
    """Return the widths of columns with sentences wrapped, then names shortened, some last.

    Where that is not enough, names are left out.
    """
    found = list(widths)
    others = [at for at in names if at not in last]
    for some, least in ((sentences, _LEAST_SENTENCE), (others, _LEAST_NAME), (last, _LEAST_NAME)):
        while left < 0 and (longer := [at for at in some if found[at] > least]):
            found[max(longer, key=lambda at: found[at])] -= 1
            left += 1
    for at in reversed(names[1:]):
        if left < 0:
            left, found[at] = left + found[at] + len(_GAP), 0
    if names:
        first = names[0]
        found[first] = max(1, min(widths[first], found[first] + left))
    return found


def _width_of(text: str) -> int:
    return width_of(spelled(line(text)))
