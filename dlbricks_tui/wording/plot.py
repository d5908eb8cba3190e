"""Plots of plain characters over a horizontal and a logarithmic vertical axis."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

_TICK_GAP = 3


@dataclass(frozen=True, slots=True)
class LinearAxis:
    """A linear axis from its first to its last cell."""

    low: float
    high: float
    cells: int

    def cell(self, value: float) -> int:
        """Return the cell of a value; values beyond an end are in the last cell there."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return round(share * (self.cells - 1))

    def value(self, cell: int) -> float:
        """Return the value in the middle of a cell."""
        return self.low + (self.high - self.low) * cell / (self.cells - 1)


@dataclass(frozen=True, slots=True)
class LogAxis:
    """A logarithmic axis from its first to its last cell."""

    low: float
    high: float
    cells: int

    def cell(self, value: float) -> int:
        """Return the cell of a value; values beyond an end are in the last cell there."""
        share = math.log(min(max(value, self.low), self.high) / self.low) / math.log(self.high / self.low)
        return round(share * (self.cells - 1))

    def value(self, cell: int) -> float:
        """Return the value in the middle of a cell."""
        return self.low * math.exp(math.log(self.high / self.low) * cell / (self.cells - 1))


class PlotRow(NamedTuple):
    """A row of a plot: its label with the axis, and its cells."""

    label: str
    cells: str


class Plot:
    """Cells of characters; later characters replace earlier ones."""

    def __init__(self, across: LinearAxis, up: LogAxis) -> None:
        self.across = across
        self.up = up
        # The lowest row first.
        self._cells = [[" "] * across.cells for _ in range(up.cells)]

    def mark(self, x: float, y: float, sign: str) -> None:
        """Draw a character at a point."""
        self._cells[self.up.cell(y)][self.across.cell(x)] = sign

    def level(self, y: float, sign: str) -> None:
        """Draw a horizontal line."""
        self._cells[self.up.cell(y)] = [sign] * self.across.cells

    def upright(self, x: float, high: float, sign: str) -> None:
        """Draw a vertical line from the ground to below a height; it hides nothing."""
        column = self.across.cell(x)
        for row in range(self.up.cell(high)):
            if self._cells[row][column] == " ":
                self._cells[row][column] = sign

    def curve(self, points: Sequence[tuple[float, float]], sign: str) -> None:
        """Draw a line through points, as far as it is below the upper end; the points are sorted by x."""
        before: int | None = None
        for column in range(self.across.cell(points[0][0]), self.across.cell(points[-1][0]) + 1) if points else ():
            height = _between(points, self.across.value(column))
            row = self.up.cell(height)
            # A steep line has no gaps.
            for each in range(row if before is None else min(before + 1, row), row + 1):
                self._cells[each][column] = sign
            if height > self.up.high:
                return
            before = row

    def rows(self, labels: Mapping[int, str], margin: int) -> list[PlotRow]:
        """Return the rows from the top with the labels of some, of which the lowest is 0."""
        highest = self.up.cells - 1
        return [
            PlotRow(f"{labels.get(highest - place, ''):>{margin}}|", "".join(cells))
            for place, cells in enumerate(reversed(self._cells))
        ]


def ground(across: LinearAxis, margin: int, signs: Mapping[float, str]) -> PlotRow:
    """Return the line below a plot: round numbers in their places, and signs at some values."""
    cells = ["-"] * across.cells
    end = -1
    step = _step(across)
    for place in range(math.ceil(across.low / step), math.floor(across.high / step) + 1):
        text = f"{place * step:,g}"
        column = across.cell(place * step)
        if column > end and column + len(text) <= across.cells:
            cells[column : column + len(text)] = text
            end = column + len(text) + _TICK_GAP
    for value, sign in signs.items():
        cells[across.cell(value)] = sign
    return PlotRow(f"{'':>{margin}}+", "".join(cells))


def in_lines(words: Sequence[str], width: int, between: str = "; ") -> list[str]:
    """Return the words in as few lines as they need."""
    lines = [""]
    for word in words:
        text = f"{lines[-1]}{between}{word}" if lines[-1] else word
        if len(text) > width and lines[-1]:
            lines.append(word)
        else:
            lines[-1] = text
    return lines


def _step(across: LinearAxis) -> float:
    """Return the round distance of numbers on an axis, about ten cells or more."""
    least = (across.high - across.low) * 10 / max(10, across.cells)
    power = 10.0 ** math.floor(math.log10(least))
    return next(power * each for each in (1, 2, 5, 10) if power * each >= least)


def _between(points: Sequence[tuple[float, float]], x: float) -> float:
    """Return the height of the line through points."""
    for (x0, y0), (x1, y1) in pairwise(points):
        if x <= x1:
            share = 0.0 if x1 <= x0 else (max(x, x0) - x0) / (x1 - x0)
            return y0 * math.exp(share * math.log(y1 / y0))
    return points[-1][1]
