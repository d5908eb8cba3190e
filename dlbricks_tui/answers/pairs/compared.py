"""Two things of one kind side by side, as plain values: the JSON document of `dlbricks compare A B`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from math import hypot

from dlbricks_tui.errors import UserError
from dlbricks_tui.evaluations.change import Timing, Verdict, compared


class Kind(str, Enum):
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
    verdict: Verdict | None = None

    @property
    def difference_ms(self) -> float:
        """The time by which B takes longer."""
        return (self.b_ms or 0.0) - (self.a_ms or 0.0)


@dataclass(frozen=True, slots=True)
class ComparedTwo:
    """A and B: the ratio of their latencies, B over A, with its 95 % interval, and what else differs."""

    of: Kind
    a: ComparedSide
    b: ComparedSide
    ratio: float
    interval: tuple[float, float]
    # B compared with A.
    verdict: Verdict
    # What the parts are: `bricks`, `kinds of layers`, `models and bricks`.
    parts_are: str
    # The largest difference first.
    parts: tuple[ComparedPart, ...]
    # The circumstances that differ: the values of A and B by the name.
    differences: Mapping[str, tuple[str, str]]
    # What to know before one trusts the ratio.
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ratio:
    """A ratio of latencies with its 95 % interval, and the verdict."""

    value: float
    low: float
    high: float
    verdict: Verdict


def ratio_of(first: Timing, second: Timing) -> Ratio:
    """Return the ratio of two timings; a difference counts as in `dlbricks check`."""
    change = compared(first, second)
    return Ratio(1.0 + change.change, 1.0 + change.low, 1.0 + change.high, change.verdict)


def half_widths(timings: list[tuple[float, float, float]]) -> tuple[float, float]:
    """Return how far the interval of the sum of latencies, each a value with its bounds, reaches down and up."""
    return hypot(*(value - low for value, low, _ in timings)), hypot(*(high - value for value, _, high in timings))


def largest_first(parts: list[ComparedPart]) -> tuple[ComparedPart, ...]:
    """Return parts by the size of their differences; those without a significant difference come last."""
    unsure = (Verdict.SAME, Verdict.UNKNOWN)
    return tuple(sorted(parts, key=lambda it: (it.verdict in unsure, -abs(it.difference_ms), it.name)))
