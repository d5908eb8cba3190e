"""A part of a model as one line: its position, title and latency."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dlbricks_tui.documents.lines import (
    Line,
    Span,
    bar,
    column,
    cut_start,
    fitted,
    highlighted,
    number_column,
    width_of,
)
from dlbricks_tui.printable import printable
from dlbricks_tui.wording.numbers import CRITICAL, percent

if TYPE_CHECKING:
    from dlbricks_tui.documents.outline import Node
    from dlbricks_tui.documents.part_latencies import PartLatency

_OPEN, _CLOSED, _NEITHER = "- ", "+ ", "  "
# From this width on each level is indented by two cells.
_ROOMY = 24
_MOST_NAMES = 40
_LEAST_BAR, _MOST_BAR = 5, 12


class TreeRow(NamedTuple):
    """A part and its latency; `is_open` None marks a part that cannot be expanded."""

    node: Node
    latency: PartLatency | None = None
    is_open: bool | None = None


class _Column(NamedTuple):
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
    indent = Span(" " * min(row.node.depth * (2 if room >= _ROOMY else 1), room // 3))
    return (*fitted((indent, *_title(row, room - len(indent.text), search_text.split())), room), *cells)


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


def _title(row: TreeRow, width: int, searched: list[str]) -> Line:
    node = row.node
    sign = Span(_NEITHER if row.is_open is None else _OPEN if row.is_open else _CLOSED, "accent")
    first, *others = map(printable, node.words)
    # The sign marks what prevents an estimate, without colours too.
    is_marked = row.latency is not None and row.latency.unmeasurable and node.layer is None and "!" not in first
    begun = (sign, Span(node.label, "muted"), *(Span("! ", "bad") for _ in range(bool(is_marked))))
    if searched:
        names = highlighted(printable(node.names), searched, "muted")
        return (*begun, *highlighted(first, searched), Span("  "), *names)
    style = "bad" if node.is_unmeasurable else "text" if row.is_open is None else "strong"
    title = (*begun, Span(first, style))
    for word in others:
        # A truncated number would be wrong.
        title = longer if width_of(longer := (*title, Span(f", {word}", "muted"))) <= width else title
    return title


def _cell(which: _Column, room: int, row: TreeRow) -> Line:
    node, latency = row.node, row.latency
    if which is _NAMES:
        # The details list the names of the layers in a region. The end of a name is where names of a model differ.
        names = node.names if node.sequence is not None else ""
        return (Span("  "), column(cut_start(names, room - 2), room - 2, "muted"))
    if which is _OUTPUT:
        return (column(node.output, room - 1, "muted", right=True), Span(" "))
    if which is _TIMES:
        return (number_column(f"x{node.occurs}" if node.occurs > 1 else "", room, "muted"),)
    if latency is None or node.layer is not None:
        return (column("", room),)
    if which is _LATENCY:
        return (
            number_column(latency.told.text, room - 1, latency.told.style),
            Span(CRITICAL if latency.critical else " ", "accent"),
        )
    if which is _RUN:
        partly = latency.layers and 0 < latency.known < latency.layers
        return (number_column(percent(latency.coverage) if partly else "", room, "warn"),)
    if which is _SHARE:
        return (number_column(percent(latency.share, 1) if latency.latency_ms else "", room, "muted"),)
    return (Span(" "), *bar(latency.share, room - 1))
