"""Pictures as data: points and lines over two axes, or bars and marks in rows, each with a sentence about it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

# The styles of texts and signs; a theme gives them their colours.
STYLES = ("text", "strong", "muted", "accent", "good", "warn", "bad", "bar", "rest", "mark", "match", "heading")
# The steps of round numbers within a power of ten.
_ROUND_STEPS = (1.0, 2.0, 5.0)


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis with its range; a logarithmic one begins above zero.

    Without ticks of its own it gets round numbers.
    """

    low: float
    high: float
    is_log: bool = False
    ticks: tuple[tuple[float, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Series:
    """Points with one mark. The marks of a picture differ, so that colours only help.

    `line` is the character of the line between the points; empty without a line. A filled one reaches the ground.
    """

    name: str
    mark: str
    style: str
    points: tuple[tuple[float, float], ...]
    line: str = ""
    filled: bool = False


@dataclass(frozen=True, slots=True)
class StraightLine:
    """A value that is a straight line through the whole picture, such as a bound."""

    name: str
    value: float
    style: str = "warn"


@dataclass(frozen=True, slots=True)
class Plot:
    """Series over two axes. Later series cover earlier ones."""

    title: str
    says: str
    across: Axis
    up: Axis
    series: tuple[Series, ...]
    # Horizontal and vertical lines.
    levels: tuple[StraightLine, ...] = ()
    uprights: tuple[StraightLine, ...] = ()
    # What the signs mean that no series stands for.
    legend: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a bar. `mark` fills it where colours are few, `block` where there are many."""

    low: float
    high: float
    mark: str
    block: str
    style: str


@dataclass(frozen=True, slots=True)
class Mark:
    """A sign at a value."""

    value: float
    sign: str
    style: str


@dataclass(frozen=True, slots=True)
class BarRow:
    """A name with its bar, the marks on it, and a text behind it."""

    name: str
    pieces: tuple[Piece, ...] = ()
    marks: tuple[Mark, ...] = ()
    text: str = ""
    style: str = "text"


@dataclass(frozen=True, slots=True)
class LegendSign:
    """A sign of a legend; `block` stands for it where there are many colours."""

    mark: str
    name: str
    style: str
    block: str = ""


@dataclass(frozen=True, slots=True)
class Rows:
    """Bars and marks in rows over a horizontal axis, the first row at the top."""

    title: str
    says: str
    across: Axis
    rows: tuple[BarRow, ...]
    legend: tuple[LegendSign, ...] = ()
    # A vertical line, such as zero.
    upright: float | None = field(default=None)


Picture = Plot | Rows


def round_ticks(axis: Axis, most: int) -> tuple[tuple[float, str], ...]:
    """Return at most about so many round numbers on an axis with their texts; its own ticks where it has some."""
    if axis.ticks:
        return axis.ticks
    found: list[float] = []
    for steps in ([_ROUND_STEPS, (1.0, 3.0), (1.0,)]) if axis.is_log else ():
        powers = range(math.floor(math.log10(axis.low)), math.ceil(math.log10(axis.high)) + 1)
        found = [10.0**power * each for power in powers for each in steps]
        found = [it for it in found if axis.low * (1 - 1e-9) <= it <= axis.high * (1 + 1e-9)]
        if len(found) <= most:
            break
    if len(found) > 1:
        every = math.ceil(len(found) / max(1, most))
        return tuple((it, number_text(it)) for it in found[::every])
    # Also on a logarithmic axis of less than a power of ten: round numbers at equal distances.
    span = axis.high - axis.low
    least = span / max(1, most)
    power = 10.0 ** math.floor(math.log10(least)) if least > 0 else 1.0
    step = next(power * each for each in (*_ROUND_STEPS, 10.0) if power * each >= least * (1 - 1e-9))
    first, last = math.ceil(axis.low / step - 1e-9), math.floor(axis.high / step + 1e-9)
    return tuple((place * step, number_text(place * step)) for place in range(first, last + 1))


def number_text(value: float) -> str:
    """Return a round number in few characters."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.6g}"
