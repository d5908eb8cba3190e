"""Two things of one kind side by side, as plain values: the JSON document of `dlbricks compare A B`."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from math import hypot
from typing import TYPE_CHECKING

from dlbricks_tui.answers.comparisons.changes import ResultGroup, compare
from dlbricks_tui.answers.comparisons.side_facts import facts_of
from dlbricks_tui.errors import UserError
from dlbricks_tui.evaluations.change import CheckVerdict, Timing, compared
from dlbricks_tui.printable import printable
from dlbricks_tui.wording.numbers import minute_of

if TYPE_CHECKING:
    from dlbricks_tui.answers.comparisons.sides import Found, Side


class PairKind(str, Enum):
    """The kind of both things that are compared: A and B are of the same kind."""

    MODEL = "model"
    VARIANT = "variant"
    SYSTEM = "system"
    RUNTIME = "runtime"
    DAY = "day"
    RUN = "run"
    RESULT = "result"
    # Of several words, such as a run and a filter.
    SELECTION = "selection"


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
    verdict: CheckVerdict | None = None

    @property
    def difference_ms(self) -> float:
        """The time by which B takes longer."""
        return (self.b_ms or 0.0) - (self.a_ms or 0.0)


@dataclass(frozen=True, slots=True)
class ComparedTwo:
    """A and B: the ratio of their latencies, B over A, with its 95 % interval, and what else differs."""

    of: PairKind
    a: ComparedSide
    b: ComparedSide
    ratio: float
    interval: tuple[float, float]
    # B compared with A.
    verdict: CheckVerdict
    # What the parts are: `bricks`, `kinds of layers`, `models and bricks`.
    parts_are: str
    # The largest difference first.
    parts: tuple[ComparedPart, ...]
    # The circumstances that differ: the values of A and B by the name.
    differences: Mapping[str, tuple[str, str]]
    # What to know before one trusts the ratio.
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PairRatio:
    """A ratio of latencies with its 95 % interval, and the verdict."""

    value: float
    low: float
    high: float
    verdict: CheckVerdict


def ratio_of(first: Timing, second: Timing) -> PairRatio:
    """Return the ratio of two timings; a difference counts as in `dlbricks check`."""
    change = compared(first, second)
    return PairRatio(1.0 + change.change, 1.0 + change.low, 1.0 + change.high, change.verdict)


def half_widths(timings: list[tuple[float, float, float]]) -> tuple[float, float]:
    """Return how far the interval of the sum of latencies, each a value with its bounds, reaches down and up."""
    return hypot(*(value - low for value, low, _ in timings)), hypot(*(high - value for value, _, high in timings))


def largest_first(parts: list[ComparedPart]) -> tuple[ComparedPart, ...]:
    """Return parts by the size of their differences; those without a significant difference come last."""
    unsure = (CheckVerdict.SAME, CheckVerdict.UNKNOWN)
    return tuple(sorted(parts, key=lambda it: (it.verdict in unsure, -abs(it.difference_ms), it.name)))


def compare_results(first: Side, second: Side, bricks: tuple[Side, Side] | None = None) -> ComparedTwo:
    """Compare two sides of one result each; `bricks` has the bricks of their runs, for whole models."""
    one, other = first.results[0], second.results[0]
    _refuse(first, second, one, other)
    ratio = ratio_of(_timing(one), _timing(other))
    return ComparedTwo(
        PairKind.RESULT,
        _side(first, one),
        _side(second, other),
        ratio.value,
        (ratio.low, ratio.high),
        ratio.verdict,
        "bricks of both runs",
        () if bricks is None else _bricks(*bricks),
        {
            **({"what": (_named(one), _named(other))} if one.subject != other.subject else {}),
            **{it.name: (it.values[0], it.values[1]) for it in facts_of((first, second)) if it.differs},
            "measured": (minute_of(one.when), minute_of(other.when)),
            "samples": (f"{one.statistics.count:,}", f"{other.statistics.count:,}"),
        },
        tuple(_remarks(one, other)),
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


def _timing(it: Found) -> Timing:
    statistics = it.statistics
    samples: array[float] = it.samples_ms
    return Timing(
        value_ms=statistics.trimmed_mean_ms,
        low_ms=statistics.low_ms,
        high_ms=statistics.high_ms,
        samples_ms=(*samples,),
    )


def _named(it: Found) -> str:
    return printable(f"{it.name} {it.subject.context}".strip())


def _bricks(first: Side, second: Side) -> tuple[ComparedPart, ...]:
    found = compare(*(ResultGroup(it.name, it.results, it.contents) for it in (first, second)))
    return largest_first(
        [ComparedPart(printable(it.name), it.change.was_ms, it.change.is_ms, it.change.verdict) for it in found.bricks]
    )


def _remarks(one: Found, other: Found) -> list[str]:
    if one.run == other.run:
        return ["Both are of one run, so they share its conditions."]
    if one.subject == other.subject:
        return []
    return ["They are of different bricks or models: the ratio says how their sizes differ, too."]
