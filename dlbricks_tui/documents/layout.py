"""Documents as lines of styled text, for any width: paragraphs, figures, tables and grids."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from dlbricks_tui.documents.lines import (
    BLANK,
    Line,
    Span,
    column,
    cut,
    fitted,
    highlighted,
    line,
    names_in,
    spelled,
    width_of,
    wrapped,
)
from dlbricks_tui.documents.parts import (
    BarFigure,
    CellKind,
    Column,
    Fact,
    Figures,
    Grid,
    Heading,
    MarkedSentence,
    Names,
    Part,
    Plots,
    Sentence,
    Table,
)
from dlbricks_tui.wording.commands import completed
from dlbricks_tui.wording.numbers import percent
from dlbricks_tui.wording.plain_text import bar


class Look(NamedTuple):
    """The characters of an output: a full cell, partial cells, the interval below and above the value."""

    full: str
    parts: str
    below: str
    above: str
    # From none to all.
    shades: str
    # True if the titles of columns are capitals.
    capitals: bool = False


PANEL = Look("█", "▏▎▍▌▋▊▉", "▓", "░", "·░▒▓█")
TEXT = PANEL._replace(capitals=True)
ASCII = Look("#", "", "+", ".", ".:+*#", capitals=True)

# The shares at which the shades between none and all end.
_LIMITS = (0.25, 0.5, 1.0)
_STYLES = ("muted", "text", "accent", "warn", "good")
# With more names, numbers would make the grid too wide for a screen.
_MOST_WITH_NUMBERS, _LEAST_GRID_NAME = 12, 16
_NUMBER_CELL = 6
# The meaning of each shade.
MEANINGS = ("none", *(f"below {percent(limit)}" for limit in _LIMITS), "all")


def shade_of(share: float) -> int:
    """Return the number of the shade of a share, from none to all."""
    return 0 if share <= 0 else 1 + sum(share >= limit for limit in _LIMITS)


def shaded(share: float, width: int, shades: str) -> Span:
    """Return a share as a shade of so many cells."""
    step = shade_of(share)
    return Span(shades[step] * width, _STYLES[step])


def legend(shades: str) -> Line:
    """Return the meaning of the shades."""
    steps = zip(shades, _STYLES, MEANINGS, strict=True)
    return tuple(part for shade, style, told in steps for part in (Span(shade, style), Span(f" {told}  ", "muted")))


def grid_lines(names: Sequence[str], shares: Sequence[Sequence[float]], width: int, shades: str) -> Iterator[Line]:
    """Yield the legend, and a row for each name; columns without room follow below, with the names again."""
    count, digits = len(names), len(str(len(names)))
    with_numbers = count <= _MOST_WITH_NUMBERS and count * _NUMBER_CELL + _LEAST_GRID_NAME <= width
    cell = _NUMBER_CELL if with_numbers else 1
    numbered = [f"{number:>{digits}} {name}" for number, name in enumerate(names, 1)]
    side_by_side = max(1, min(count, (width - _LEAST_GRID_NAME - 1) // cell))
    room = min(max(width_of([Span(it)]) for it in numbered), width - 1 - side_by_side * cell)
    yield legend(shades)
    for first in range(0, count, side_by_side):
        columns = range(first, min(first + side_by_side, count))
        # The numbers of columns: side by side where there is room, else one digit below the other.
        if cell > digits:
            texts = ["".join(f"{at + 1:>4}  " for at in columns).rstrip()]
        else:
            texts = ["".join(f"{at + 1:>{digits}}"[digit] for at in columns) for digit in range(digits)]
        yield from ((Span(" " * (room + 1)), Span(text)) for text in texts)
        for name, row in zip(numbered, shares, strict=True):
            cells = [shaded(row[at], 1, shades) for at in columns]
            if with_numbers:
                told = zip(cells, columns, strict=True)
                cells = [it._replace(text=f"{_whole(row[at]):>4} {it.text}") for it, at in told]
            yield (column(name, room), Span(" "), *cells)


def _whole(share: float) -> str:
    """Return a percentage without decimals: `0` only for nothing, `100` only for all."""
    hundredths = 100 * share
    if 0 < hundredths < 1:
        return "<1"
    return "99" if 99 < hundredths < 100 else f"{hundredths:.0f}"


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
        # Why a row has no figures, and the command that measures them.
        self._missing = [(f"{_GAP}{it[0]}", it[1]) if (it := table.missing(row)) else None for row in table.rows]
        self._cells: list[Sequence[str]] = [
            tuple(
                "" if missing and not it.is_key else str(it.cell(row))
                for row, missing in zip(table.rows, self._missing, strict=True)
            )
            if it.kind is not CellKind.BAR
            else ()
            for it in table.columns
        ]
        # The width of the longest cell in each column; a bar needs none.
        needed = [
            max(width_of(spelled(line(text))) for text in (it.title, *self._names(at, sys.maxsize)))
            for at, it in enumerate(table.columns)
        ]
        left_out: list[int] = []
        self._widths = self._fitted(needed, width)
        optional = [at for at, it in enumerate(table.columns) if it.is_optional]
        optional.sort(key=lambda at: table.columns[at].goes_last)
        names = [at for at in _shortenable(table.columns) if not table.columns[at].is_optional]
        # Columns are left out while a name has too little room, or the whole table.
        while optional and (
            self._whole > width or any(self._widths[at] < min(needed[at], _READABLE_NAME) for at in names)
        ):
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
        return (*cells, *(Span(text) for text in self._missing[index] or ()))

    def lines(self, index: int) -> Iterator[Line]:
        """Yield the lines of a row, more than one where a sentence wraps, or where its figures are missing."""
        if (missing := self._missing[index]) is not None:
            cells, (reason, command) = self._line(index, self._texts(index)), missing
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

    def _texts(self, index: int) -> list[str]:
        row, look = self._table.rows[index], self._look
        columns = zip(self._table.columns, self._widths, self._cells, strict=True)
        return [
            bar(it.cell(row), width, look.full, look.parts) if it.kind is CellKind.BAR else cells[index]
            for it, width, cells in columns
        ]

    def _line(self, index: int, texts: Iterable[str], words: Sequence[str] = ()) -> Line:
        row, cells = self._table.rows[index], zip(self._table.columns, texts, self._widths, strict=True)
        has_figures = self._missing[index] is None
        shown = []
        for it, text, width in cells:
            if width and (has_figures or it.is_key):
                style = it.style(row) if callable(it.style) else it.style
                if it.kind is CellKind.NAME and words:
                    shown.append(fitted(highlighted(cut(text, width), words, style), width))
                else:
                    shown.append((column(text, width, style, right=it.kind is CellKind.NUMBER),))
        return self._joined(shown)

    def _names(self, at: int, width: int) -> Sequence[str]:
        """Return the cells of a column; those of names may be fitted into the width together."""
        fit = self._table.columns[at].fit
        return self._cells[at] if fit is None or not width else fit(self._cells[at], width)

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


_INDENT = "    "
# The room of the name of a fact.
_LEAST_FACT = 11


def laid_out(parts: Iterable[Part], width: int, look: Look = PANEL) -> Iterator[Line]:
    """Yield the lines of a document; a blank line stands before each heading but the first line."""
    parts, is_first = list(parts), True
    longest = max((len(it.name) + len(_GAP) for it in parts if isinstance(it, Fact)), default=0)
    for part in parts:
        match part:
            case Heading(text):
                yield from () if is_first else (BLANK,)
                yield from wrapped(line(Span(text, "heading")), width)
            case Sentence(text, style):
                yield from wrapped(line(Span(completed(text), style)), width, commands_whole=look is not PANEL)
            case MarkedSentence(mark, style, text, subject):
                first = [Span(subject, "strong")][: len(subject)]
                spans = line(Span(f"{mark} ", style), *first, completed(text))
                yield from wrapped(spans, width, commands_whole=look is not PANEL)
            case Fact(name, text, remark, style):
                named = column(name, max(_LEAST_FACT, longest), "muted")
                yield from wrapped(line(named, Span(text, style), *[Span(remark, "muted")][: len(remark)]), width)
            case Names(names):
                yield line(names_in(names, width))
            case Figures():
                yield from _figure_lines(part, width, look)
            case Table():
                yield from table_lines(part, width, look)
            case Grid(names, shares):
                yield from grid_lines(names, shares, width, look.shades)
            case Plots(plots, lines):
                # Loaded here: few documents have plots.
                from dlbricks_tui.documents import pictures

                room, beside = max(pictures.LEAST_WIDTH * len(plots), width), (*plots[1:], None)[0]
                yield from pictures.drawn(plots[0], room, lines, fine=False, beside=beside)
            case _:
                yield from wrapped(part.line, width)
        is_first = False


def _figure_lines(figures: Figures, width: int, look: Look) -> Iterator[Line]:
    """Yield a line for each figure: its name, its value, a bar where there is room, and the first remark that fits.

    A remark without room stands in lines of its own.
    """
    rows = figures.rows
    names, values = max(len(it.name) for it in rows), max(len(it.text) for it in rows)
    left = width - names - values - len(_GAP)
    remarks = [next((each for each in it.remarks if len(each) <= left - len(_GAP)), "") for it in rows]
    room = left - 2 * len(_GAP) - max(map(len, remarks))
    bars = min(_MOST_BAR, room) if figures.has_bars and room >= _LEAST_BAR else 0
    longest = max((max(it.value, it.high or 0.0) for it in rows), default=0.0)
    for it, remark in zip(rows, remarks, strict=True):
        drawn = (Span(_GAP), *_interval_bar(it, longest, bars, look)) if bars and longest > 0 else ()
        yield line(
            column(it.name, names + len(_GAP)),
            column(it.text, values, "strong", right=True),
            *drawn,
            *((Span(_GAP), Span(remark, it.style)) if remark else ()),
        )
        if it.remarks and not remark:
            yield from wrapped(line(Span(f"{_GAP}{it.remarks[-1]}", it.style)), width)


def _interval_bar(it: BarFigure, longest: float, width: int, look: Look) -> Line:
    """Return a value as a bar on the scale of the longest one, with its interval in lighter shades."""
    if it.value < 0:
        return (Span(" " * width),)
    if it.low is None or it.high is None:
        return (column(bar(it.value / longest, width, look.full, look.parts), width, "bar"),)
    low, middle, high = (min(width, max(0, round(each / longest * width))) for each in (it.low, it.value, it.high))
    low = max(low, 1)
    middle, high = max(low, middle), max(low, middle, high)
    return (
        Span(look.full * low, "bar"),
        Span(look.below * (middle - low), "bar"),
        Span(look.above * (high - middle), "bar"),
        Span(" " * (width - high)),
    )


def table_lines(table: Table[Any], width: int, look: Look = PANEL) -> Iterator[Line]:
    """Yield the titles of a table, and a line for each row, with its details below."""
    layout = TableLayout(table, width, look)
    yield layout.heading
    for index, row in enumerate(table.rows):
        guides = "" if table.guides is None else table.guides(row)
        for first, *others in layout.lines(index):
            # The guides have a style of their own.
            led = [Span(first.text[: len(guides)], "muted")][: len(guides)]
            yield (*led, first._replace(text=first.text[len(guides) :]), *others)
        details = () if table.details is None else table.details(row)
        yield from ((Span(_INDENT), *each) for each in laid_out(details, width - len(_INDENT), look))
