"""A part of a model as one line: its position, title and latency."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size

from dlbricks_tui.documents.lines import ELLIPSIS, Line, Span, bar, column, fitted, highlighted, number_column, width_of
from dlbricks_tui.printable import printable
from dlbricks_tui.wording.numbers import milliseconds, percent, sign_of

if TYPE_CHECKING:
    from dlbricks_tui.tui.workbench.parts import PartLatency

CRITICAL = "*"
UNKNOWN = "·"
WIDE = "≈"
CANNOT = "cannot"
LEFT_OUT = "-"
_OPEN, _CLOSED, _NEITHER = "- ", "+ ", "  "
# From this width on each level is indented by two cells.
_ROOMY = 24
_MOST_NAMES = 40
_LEAST_BAR, _MOST_BAR = 5, 12


@dataclass(frozen=True, slots=True)
class TreeRow:
    """The content of a row; `is_open` None marks a part that cannot be expanded."""

    title: str
    size: str = ""
    label: str = ""
    names: str = ""
    output: str = ""
    depth: int = 0
    is_open: bool | None = None
    is_layer: bool = False
    occurs: int = 1
    latency: PartLatency | None = None


@dataclass(frozen=True, slots=True)
class _Column:
    title: str
    width: int
    # The least width of a list that shows the column.
    begins_at: int


_TIMES = _Column("times", 5, 36)
_LATENCY = _Column("ms", 9, 30)
_RUN = _Column("run", 6, 64)
_SHARE = _Column("share", 8, 52)
_BAR = _Column("", _LEAST_BAR, 41)
_OUTPUT = _Column("output", 16, 104)
_NAMES = _Column("name", 0, 82)
# Names are left-aligned, other columns right-aligned.
_GAPS = {_NAMES: "  {}", _OUTPUT: "{} "}
_IN_ORDER = (_NAMES, _OUTPUT, _TIMES, _LATENCY, _RUN, _SHARE, _BAR)


def tree_line(row: TreeRow, width: int, search_text: str = "") -> Line:
    """Return a row of the tree; during a search names are shown beside titles."""
    columns = _columns(width, bool(search_text))
    cells = [span for each, room in columns for span in _cell(each, room, row)]
    room = width - sum(room for _, room in columns)
    # The indent is limited to keep deep titles readable.
    indent = " " * min(row.depth * (2 if room >= _ROOMY else 1), room // 3)
    title = (Span(indent), *_title(row, search_text.split()))
    size = (Span(f", {row.size}", "muted"),) if row.size else ()
    # A truncated number would be wrong.
    return (*fitted((*title, *size) if width_of((*title, *size)) <= room else title, room), *cells)


def heading_line(width: int, is_searched: bool = False) -> Line:
    """Return the titles of the columns."""
    columns = _columns(width, is_searched)
    cells = [
        column(_GAPS.get(each, "{}").format(each.title), room, "heading", right=each is not _NAMES)
        for each, room in columns
    ]
    return (*fitted((Span("  part", "heading"),), width - sum(room for _, room in columns)), *cells)


def _columns(width: int, is_searched: bool) -> list[tuple[_Column, int]]:
    kept = [each for each in _IN_ORDER if width >= each.begins_at and not (is_searched and each is _NAMES)]
    widths = {each: each.width for each in kept}
    left = width - sum(widths.values())
    if _BAR in widths:
        wider = max(0, min(_MOST_BAR - _LEAST_BAR, (width - 50) // 2))
        widths[_BAR] += wider
        left -= wider
    if _NAMES in widths:
        # Titles get more space: they are indented, and titles of regions are long.
        widths[_NAMES] = min(max(_MOST_NAMES, width // 5), left * 2 // 5)
    return [(each, widths[each]) for each in kept]


def _title(row: TreeRow, words: list[str]) -> Line:
    sign = _NEITHER if row.is_open is None else _OPEN if row.is_open else _CLOSED
    text, names = printable(row.title), printable(row.names)
    title: Line = (Span(text, "text" if row.is_open is None else "strong"),)
    if words:
        title = (*highlighted(text, words), Span("  "), *highlighted(names, words, "muted"))
    # The sign marks what prevents an estimate, without colours too.
    warning = (Span("! ", "bad"),) if row.latency is not None and row.latency.unmeasurable and not row.is_layer else ()
    return (Span(sign, "accent"), Span(row.label, "muted"), *warning, *title)


def _cell(which: _Column, room: int, row: TreeRow) -> Line:
    if which is _NAMES:
        return (Span("  "), column(_ending(printable(row.names), room - 2), room - 2, "muted"))
    if which is _OUTPUT:
        return (column(row.output, room - 1, "muted", right=True), Span(" "))
    if which is _TIMES:
        return (number_column(f"x{row.occurs}" if row.occurs > 1 else "", room, "muted"),)
    latency = row.latency
    if latency is None or row.is_layer:
        return (column("", room),)
    if which is _LATENCY:
        return _latency(latency, room)
    if which is _RUN:
        partly = latency.layers and 0 < latency.known < latency.layers
        return (number_column(percent(latency.coverage) if partly else "", room, "warn"),)
    if which is _SHARE:
        return (number_column(percent(latency.share, 1) if latency.latency_ms else "", room, "muted"),)
    return (Span(" "), *bar(latency.share, room - 1))


def _latency(latency: PartLatency, width: int) -> Line:
    text, style = latency_text(latency)
    return (number_column(text, width - 1, style), Span(CRITICAL if latency.critical else " ", "accent"))


def _ending(text: str, width: int) -> str:
    """Return the end of a name, where names of one model differ."""
    return text if cell_len(text) <= width else ELLIPSIS + set_cell_size(text[::-1], width - 1).rstrip()[::-1]


def latency_text(latency: PartLatency) -> Span:
    """Return a latency, or a sign for why there is none."""
    if not latency.layers:
        return Span(LEFT_OUT, "muted")
    if latency.unmeasurable == latency.layers:
        return Span(CANNOT, "bad")
    if not latency.known and not latency.predicted:
        return Span(UNKNOWN, "muted")
    lacks = latency.missing + latency.unmeasurable > 0
    if not latency.latency_ms and not lacks:
        return Span("0", "muted")
    sign = sign_of(partial=lacks, predicted=latency.predicted > 0) or (WIDE if latency.wide else "")
    return Span(sign + milliseconds(latency.latency_ms), "warn" if sign else "strong")
