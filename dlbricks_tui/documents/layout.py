"""Documents as lines of styled text, for any width."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from dlbricks_tui.documents.grid import grid_lines
from dlbricks_tui.documents.lines import (
    BLANK,
    NAME_WIDTH,
    Line,
    Span,
    column,
    line,
    names_in,
    wrapped,
)
from dlbricks_tui.documents.look import PANEL, Look
from dlbricks_tui.documents.parts import (
    BarFigure,
    Fact,
    Figures,
    Grid,
    Heading,
    MarkedSentence,
    Names,
    Plots,
    Sentence,
    SideBySide,
    Table,
)
from dlbricks_tui.documents.table_layout import TableLayout
from dlbricks_tui.wording.histogram import bar

if TYPE_CHECKING:
    from dlbricks_tui.documents.parts import Part
    from dlbricks_tui.documents.pictures import Plot

_GAP = "  "
_INDENT = "    "
_LEAST_BAR, _MOST_BAR = 6, 28


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
                yield from wrapped(line(Span(text, style)), width)
            case MarkedSentence(mark, style, text, subject):
                first = [Span(subject, "strong")][: len(subject)]
                yield from wrapped(line(Span(f"{mark} ", style), *first, text), width)
            case Fact(name, text, remark, style):
                named = column(name, max(NAME_WIDTH, longest), "muted")
                yield from wrapped(line(named, Span(text, style), *[Span(remark, "muted")][: len(remark)]), width)
            case Names(names):
                yield line(names_in(names, width))
            case Figures():
                yield from _figure_lines(part, width, look)
            case Table():
                yield from table_lines(part, width, look)
            case SideBySide(values):
                yield from _side_by_side(values, width)
            case Grid(names, shares):
                yield from grid_lines(names, shares, width, look.shades)
            case Plots(plots, lines, sentence):
                said = wrapped(line(sentence), width) if sentence else []
                yield from (*_plotted(plots, width, lines - len(said)), *said)
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


def _plotted(plots: Sequence[Plot], width: int, height: int) -> Sequence[Line]:
    # Loaded here: few documents have plots.
    from dlbricks_tui.documents import drawing

    width = max(drawing.LEAST_WIDTH * len(plots), width)
    if len(plots) == 1:
        return drawing.drawn(plots[0], width, height, fine=False)
    return drawing.drawn_beside(plots[0], plots[1], width, height, fine=False)


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


def _side_by_side(rows: Sequence[tuple[str, str, str]], width: int) -> Iterator[Line]:
    """Yield a line for each name with two values, or two lines where one is too short."""
    names = max(len(name) for name, _, _ in rows)
    first = min(max(len(one) for _, one, _ in rows), max(12, (width - names) // 2 - len(_GAP)))
    for name, one, other in rows:
        named = column(name, names + len(_GAP), "muted")
        if len(one) <= first and names + first + len(other) + 2 * len(_GAP) <= width:
            yield line(named, column(one, first + len(_GAP)), other)
        else:
            yield from wrapped(line(named, f"A {one}"), width)
            yield from wrapped(line(named._replace(text=" " * len(named.text)), f"B {other}"), width)


def table_lines(table: Table[Any], width: int, look: Look = PANEL) -> Iterator[Line]:
    """Yield the titles of a table, and a line for each row, with its details below."""
    layout = TableLayout(table, width, look)
    yield layout.heading
    for index, row in enumerate(table.rows):
        lines = layout.lines(index)
        yield from lines if table.guides is None else (_with_guides(each, table.guides(row)) for each in lines)
        details = () if table.details is None else table.details(row)
        yield from ((Span(_INDENT), *each) for each in laid_out(details, width - len(_INDENT), look))


def _with_guides(spans: Line, guides: str) -> Line:
    """Return the line of a row with its guides in a style of their own."""
    (text, style), *others = spans
    return (Span(text[: len(guides)], "muted"), Span(text[len(guides) :], style), *others)
