"""Samples and what they say, as lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlbricks_tui.tui.lines import Line, Span, bar, column, line
from dlbricks_tui.wording.numbers import counted, milliseconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dlbricks_tui.store.records import Facts, Result

NAME_WIDTH = 11
_BAR = 20
_FACT_WIDTH = 18


def said(name: str, *parts: str | Span) -> Line:
    """What something is called, and what it is."""
    return line(column(name, NAME_WIDTH, "muted"), *parts)


def fact_lines(facts: Facts) -> Iterator[Line]:
    """What is known by name, as the store has it."""
    words = {None: "unknown", True: "yes", False: "no"}
    for name, value in facts:
        told = words[value] if value is None or isinstance(value, bool) else str(value)
        yield line(column(name.replace("_", " "), _FACT_WIDTH, "muted"), told)


def sample_lines(result: Result, width: int) -> Iterator[Line]:
    """How the samples are distributed, one bar for each range, and what is told of them."""
    from dlbricks_tui.wording.histogram import bins

    statistics = result.statistics
    yield line(Span(f"{counted(statistics.count, 'sample')}, {result.when[:16].replace('T', ' ')} UTC", "heading"))
    found = bins(result.samples_ms)
    tallest = max((each.samples for each in found), default=1)
    room = max(4, min(_BAR, width - 18))
    for each in found:
        start = (">=" if each.tail else "") + milliseconds(each.low_ms)
        count = column(f"{each.samples}", 5, "muted", right=True)
        yield line(column(start, NAME_WIDTH, right=True), Span(" "), *bar(each.samples / tallest, room), count)
    yield said("median", milliseconds(statistics.median_ms), Span(" ms", "muted"))
    yield said("minimum", milliseconds(statistics.minimum_ms), Span(" ms", "muted"))
    yield said("spread", milliseconds(statistics.spread_ms), Span(" ms between the quartiles", "muted"))
