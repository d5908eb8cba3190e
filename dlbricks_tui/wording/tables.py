"""Tables in plain characters."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

_GAP = "  "


Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Column(Generic[Row]):
    """A column of a table: its title, and the text of each row."""

    title: str
    cell: Callable[[Row], str]
    # Names begin in one place, numbers end in one.
    holds_names: bool = False


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
