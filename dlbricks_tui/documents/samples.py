"""The samples of a result: when they were taken, their statistics, and a histogram."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlbricks_tui.documents.parts import BarFigure, Fact, Figures, Heading, Part, Sentence
from dlbricks_tui.wording.histogram import bins
from dlbricks_tui.wording.numbers import ago, counted, in_ms, milliseconds, minute_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dlbricks_tui.store.records import Result


def sample_parts(result: Result) -> Iterator[Part]:
    """Yield the statistics of the samples, and their histogram."""
    it = result.statistics
    ends = f"{milliseconds(it.low_ms, precise=True)} and {milliseconds(it.high_ms, precise=True)}"
    yield Heading(f"{counted(it.count, 'sample')}, {minute_of(result.when)} UTC")
    yield Sentence(f"measured {ago(result.when)}", "muted")
    yield Fact("trimmed mean", in_ms(it.trimmed_mean_ms), f" (95 % between {ends})")
    yield Fact("median", in_ms(it.median_ms))
    yield Fact("minimum", in_ms(it.minimum_ms))
    yield Fact("spread", in_ms(it.spread_ms), " between the quartiles")
    if found := bins(result.samples_ms):
        starts = [f"{'>= ' if each.tail else ''}{in_ms(each.low_ms)}" for each in found]
        longest = max(map(len, starts))
        rows = zip(starts, found, strict=True)
        yield Figures(tuple(BarFigure(start.rjust(longest), f"{each.samples}", each.samples) for start, each in rows))
