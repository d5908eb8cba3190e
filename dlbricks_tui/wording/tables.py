"""Tables of a model's combinations in plain characters; a row without a latency says what measures it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from dlbricks_tui.estimate.curve import Point
from dlbricks_tui.wording.numbers import counted
from dlbricks_tui.wording.text_tables import TextTable

_GAP = "  "


Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Column(Generic[Row]):
    """A column of a table: its title, and the text of each row."""

    title: str
    cell: Callable[[Row], str]
    # Names begin in one place, numbers end in one.
    holds_names: bool = False


@dataclass(frozen=True, slots=True)
class Table(Generic[Row]):
    """A table of combinations: columns that tell rows apart, and columns of figures."""

    keys: Sequence[Column[Row]]
    figures: Sequence[Column[Row]]
    # Returns the combination of a row, if it has no figures.
    unknown: Callable[[Row], Point | None]

    def lines(self, rows: Sequence[Row], width: int) -> list[str]:
        """Return the titles and all rows; what is missing takes a line of its own where the width needs it."""
        keys = [[column.title for column in self.keys], *([column.cell(row) for column in self.keys] for row in rows)]
        points = [self.unknown(row) for row in rows]
        known = [row for row, point in zip(rows, points, strict=True) if point is None]
        figures = [[column.title for column in self.figures]]
        figures += [[column.cell(row) for column in self.figures] for row in known]
        title, *begins = justified(self.keys, keys)
        titles, *ends = justified(self.figures, figures)
        found, following = [f"{title}{_GAP}{titles}"], iter(ends)
        for begin, point in zip(begins, points, strict=True):
            if point is None:
                found.append(f"{begin}{_GAP}{next(following)}")
                continue
            reason, command = _missing(point)
            whole = f"{begin}{_GAP}{reason}{command}"
            found += [whole] if len(whole) <= width else [f"{begin}{_GAP}{reason}".rstrip(), f"{_GAP}{command}"]
        return found

    def as_texts(self, rows: Sequence[Row]) -> TextTable:
        """Return the titles, and the cells of all rows; rows without figures tell in a last column what is missing."""
        points = [self.unknown(row) for row in rows]
        told = ["" if point is None else "".join(_missing(point)) for point in points]
        titles = [column.title for column in (*self.keys, *self.figures)]
        cells = [
            [
                *(column.cell(row) for column in self.keys),
                *(column.cell(row) if point is None else "" for column in self.figures),
                *([missing] if any(told) else []),
            ]
            for row, point, missing in zip(rows, points, told, strict=True)
        ]
        return TextTable((*titles, *(["MISSING"] if any(told) else [])), cells)


def _missing(point: Point) -> tuple[str, str]:
    """Return why a combination has no latency, and the command that measures it."""
    found = point.found.estimate
    if found.obstacle:
        return f"no estimate is possible: {found.obstacle}", ""
    reason = f"only {found.coverage.measured} of {counted(found.coverage.layers, 'layer')} measured"
    if found.composed is None:
        reason = "not measured"
    elif found.coverage.predicted:
        reason = "some layers are neither measured nor predicted"
    return (f"{reason}: ", point.cure) if point.cure else (reason, "")


def justified(columns: Sequence[Column[Row]], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows of cells as lines, each column as wide as its longest cell."""
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    sides = ["<" if column.holds_names else ">" for column in columns]
    return [
        _GAP.join(f"{cell:{side}{width}}" for cell, side, width in zip(row, sides, widths, strict=True)) for row in rows
    ]


def or_dash(written: Callable[[float], str], value: float | None) -> str:
    """Return a number as a cell; a dash if there is none."""
    return "-" if value is None else written(value)
