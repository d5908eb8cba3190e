"""Two things of one kind side by side, as plain values: the JSON document of `dlbricks compare A B`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import hypot
from typing import TYPE_CHECKING

from dlbricks_tui.answers.comparisons.changes import compare, timing_of_results
from dlbricks_tui.answers.comparisons.named import PairKind
from dlbricks_tui.answers.comparisons.side_facts import facts_of
from dlbricks_tui.errors import UserError
from dlbricks_tui.printable import printable
from dlbricks_tui.store.change import BRICKS, MODELS, Change, Verdict, compared
from dlbricks_tui.wording.numbers import minute_of

if TYPE_CHECKING:
    from dlbricks_tui.answers.comparisons.sides import Found, Side


class NotComparableError(UserError):
    """Two things that cannot be compared, and why."""


@dataclass(frozen=True, slots=True)
class ComparedSide:
    """One of the two: its latency with the 95 % interval, and where that comes from.

    `how` is `measured`, `estimated`, `estimated, partly predicted`, or `sum of 12 bricks`.
    """

    name: str
    how: str
    ms: float
    interval: tuple[float, float]
    # The time of its oldest measurement (ISO 8601, UTC); empty if it is not known.
    since: str = ""


@dataclass(frozen=True, slots=True)
class ComparedPart:
    """A part of both: a model, a brick, or all layers of a kind; None where a side has no such part."""

    name: str
    a_ms: float | None
    b_ms: float | None
    # None where parts are sums, which have no interval of their own.
    verdict: Verdict | None = None
    # Corrected for the number of parts; None where parts are sums, or have too few samples.
    p_value: float | None = None

    @property
    def change(self) -> float | None:
        """The share by which B takes longer."""
        return self.b_ms / self.a_ms - 1.0 if self.a_ms and self.b_ms is not None else None

    @property
    def difference_ms(self) -> float:
        """The time by which B takes longer."""
        return (self.b_ms or 0.0) - (self.a_ms or 0.0)


@dataclass(frozen=True, slots=True)
class ComparedTwo:
    """A and B: the ratio of their latencies, B over A, with its 95 % interval, and what else differs."""

    # The kind of both: `model`, `variant`, `system`, `runtime`, `day`, `run`, `result`, or `selection`.
    of: str
    a: ComparedSide
    b: ComparedSide
    ratio: float
    interval: tuple[float, float]
    # B compared with A, and why that is unknown; else empty.
    verdict: Verdict
    reason: str
    # What the parts are: `bricks`, `kinds of layers`, `models and bricks`.
    parts_are: str
    # The largest difference first.
    parts: tuple[ComparedPart, ...]
    # The circumstances that differ: the values of A and B by the name.
    differences: Mapping[str, tuple[str, str]]
    # What to know before one trusts the ratio.
    remarks: tuple[str, ...] = ()


def compared_two(
    of: str,
    sides: tuple[ComparedSide, ComparedSide],
    change: Change,
    parts: tuple[str, tuple[ComparedPart, ...]],
    differences: Mapping[str, tuple[str, str]],
    remarks: Iterable[str],
) -> ComparedTwo:
    """Return A and B with the change from one to the other; `parts` begins with what they are."""
    verdict = change.verdict, change.reason
    return ComparedTwo(of, *sides, change.ratio, change.ratios, *verdict, *parts, differences, tuple(remarks))


def part_of(name: str, change: Change) -> ComparedPart:
    """Return a part with the change from A to B."""
    return ComparedPart(name, change.was_ms, change.is_ms, change.verdict, change.p_value)


def half_widths(timings: list[tuple[float, float, float]]) -> tuple[float, float]:
    """Return how far the interval of the sum of latencies, each a value with its bounds, reaches down and up."""
    return hypot(*(value - low for value, low, _ in timings)), hypot(*(high - value for value, _, high in timings))


def largest_first(parts: list[ComparedPart]) -> tuple[ComparedPart, ...]:
    """Return parts by the size of their differences; those without a significant difference come last."""
    unsure = (Verdict.SAME, Verdict.UNKNOWN)
    return tuple(sorted(parts, key=lambda it: (it.verdict in unsure, -abs(it.difference_ms), it.name)))


def compare_results(first: Side, second: Side, bricks: tuple[Side, Side] | None = None) -> ComparedTwo:
    """Compare two sides of one result each; `bricks` has the bricks of their runs, for whole models."""
    one, other = first.results[0], second.results[0]
    _refuse(first, second, one, other)
    change = compared(
        timing_of_results([one]), timing_of_results([other]), MODELS if other.subject.is_model else BRICKS
    )
    return compared_two(
        PairKind.RESULT,
        (_side(first, one), _side(second, other)),
        change,
        ("bricks of both runs", () if bricks is None else _bricks(*bricks)),
        {
            **({"what": (_named(one), _named(other))} if one.subject != other.subject else {}),
            **{it.name: (it.values[0], it.values[1]) for it in facts_of((first, second)) if it.differs},
            "measured": (minute_of(one.when), minute_of(other.when)),
            "samples": (f"{one.statistics.count:,}", f"{other.statistics.count:,}"),
        },
        _remarks(one, other),
    )


def _refuse(first: Side, second: Side, one: Found, other: Found) -> None:
    if one.id == other.id:
        raise NotComparableError("A and B are the same result: choose another one")
    if one.subject.is_model is not other.subject.is_model:
        words = ["a whole model" if it.subject.is_model else "a brick" for it in (one, other)]
        raise NotComparableError(
            f"{first.name} is of {words[0]} and {second.name} of {words[1]}: compare two models or two bricks"
        )
    if one.execution.method != other.execution.method:
        raise NotComparableError(
            f"A was measured by method {one.execution.method} and B by method {other.execution.method}: results of "
            "different methods are not compared"
        )
    for side, it in ((first, one), (second, other)):
        if not it.statistics.trimmed_mean_ms > 0:
            raise NotComparableError(f"{side.name} has a latency of zero, to which there is no ratio")


def _side(side: Side, it: Found) -> ComparedSide:
    statistics = it.statistics
    interval = statistics.low_ms, statistics.high_ms
    return ComparedSide(side.name, "measured", statistics.trimmed_mean_ms, interval, it.when)


def _named(it: Found) -> str:
    return printable(f"{it.name} {it.subject.context}".strip())


def _bricks(first: Side, second: Side) -> tuple[ComparedPart, ...]:
    found = compare(first, second)
    return largest_first([part_of(printable(it.name), it.change) for it in found.bricks])


def _remarks(one: Found, other: Found) -> list[str]:
    if one.run == other.run:
        return ["Both are of one run, so they share its conditions."]
    if one.subject == other.subject:
        return []
    return ["They are of different bricks or models: the ratio says how their sizes differ, too."]
