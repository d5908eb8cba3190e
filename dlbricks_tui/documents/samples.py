"""The samples of a result: a histogram and statistics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlbricks_tui.documents.lines import NAME_WIDTH, Line, Span, bar, column, fact, line
from dlbricks_tui.wording.ages import ago
from dlbricks_tui.wording.histogram import bins
from dlbricks_tui.wording.numbers import counted, milliseconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dlbricks_tui.store.records import Result

_BAR = 20


def sample_lines(result: Result, width: int) -> Iterator[Line]:
    """Yield a histogram of the samples, and their statistics."""
    statistics = result.statistics
    yield line(Span(f"{counted(statistics.count, 'sample')}, {result.when[:16].replace('T', ' ')} UTC", "heading"))
    yield line(Span(f"measured {ago(result.when)}", "muted"))
    found = bins(result.samples_ms)
    tallest = max((each.samples for each in found), default=1)
    room = max(4, min(_BAR, width - 18))
    for each in found:
        start = (">=" if each.tail else "") + milliseconds(each.low_ms)
        count = column(f"{each.samples}", 5, "muted", right=True)
        yield line(column(start, NAME_WIDTH, right=True), Span(" "), *bar(each.samples / tallest, room), count)
    yield fact("median", milliseconds(statistics.median_ms), Span(" ms", "muted"))
    yield fact("minimum", milliseconds(statistics.minimum_ms), Span(" ms", "muted"))
    yield fact("spread", milliseconds(statistics.spread_ms), Span(" ms between the quartiles", "muted"))
