"""A part of a model as one line: where it stands, what it is, how long it takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlbricks_tui.tui.figures import milliseconds, percent
from dlbricks_tui.tui.lines import Line, Span, bar, clean, column, fitted

if TYPE_CHECKING:
    from dlbricks_tui.tui.widgets.tree.outline import Node
    from dlbricks_tui.tui.widgets.tree.tally import Tally

CRITICAL = "*"
UNKNOWN = "·"
_OPEN, _CLOSED, _NEITHER = "- ", "+ ", "  "
_LATENCY, _SHARE, _BAR, _OCCURS = 9, 7, 12, 6
_LEAST_TITLE = 22
# Deeper parts are not moved any further to the right: what they are must stay readable.
_DEEPEST = 10


def node_line(node: Node, can_open: bool, occurs: int, tally: Tally | None, width: int) -> Line:
    """One row of the tree in so many cells."""
    columns = _columns(width)
    sign = (_OPEN if node.is_open else _CLOSED) if can_open else _NEITHER
    style = "strong" if can_open else "text"
    title = (
        Span("  " * min(node.depth, _DEEPEST)),
        Span(sign, "accent"),
        Span(node.label, "muted"),
        Span(clean(node.title), style),
    )
    cells = [cell for each in columns for cell in _cell(each, node, occurs, tally)]
    return (*fitted(title, width - sum(columns)), *cells)


def heading_line(width: int) -> Line:
    """What the columns are called."""
    names = {_LATENCY: "ms", _SHARE: "share", _BAR: "", _OCCURS: "times"}
    columns = _columns(width)
    cells = [column(names[each], each, "heading", right=True) for each in columns]
    return (*fitted((Span("  part", "heading"),), width - sum(columns)), *cells)


def _columns(width: int) -> tuple[int, ...]:
    room = width - _LEAST_TITLE
    kept: list[int] = []
    for each in (_LATENCY, _OCCURS, _SHARE, _BAR):
        if each <= room:
            kept.append(each)
            room -= each
    return tuple(each for each in (_OCCURS, _LATENCY, _SHARE, _BAR) if each in kept)


def _cell(which: int, node: Node, occurs: int, tally: Tally | None) -> Line:
    if which == _OCCURS:
        return (column(f"x{occurs}" if occurs > 1 else "", which, "muted", right=True),)
    if tally is None or node.layer is not None:
        return (column("", which),)
    if which == _LATENCY:
        return _latency(tally)
    if which == _SHARE:
        return (column(percent(tally.share, 1) if tally.known else "", which, "muted", right=True),)
    return (Span(" "), *bar(tally.share, which - 1))


def _latency(tally: Tally) -> Line:
    sign = Span(CRITICAL if tally.critical else " ", "accent")
    room = _LATENCY - 1
    if not tally.known:
        nothing = "cannot" if tally.unmeasurable else UNKNOWN
        return (column(nothing, room, "bad" if tally.unmeasurable else "muted", right=True), sign)
    partly = tally.known < tally.sequences
    text = f"{'>' if partly else ''}{milliseconds(tally.latency_ms)}"
    return (column(text, room, "warn" if partly else "strong", right=True), sign)
