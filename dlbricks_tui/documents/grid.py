"""Grids of shares: a shade for each two of several names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlbricks_tui.documents.lines import Line, Span, column, width_of
from dlbricks_tui.wording.numbers import percent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


# The shares at which the shades between none and all end.
_LIMITS = (0.25, 0.5, 1.0)
_STYLES = ("muted", "text", "accent", "warn", "good")
# With more names, numbers would make the grid too wide for a screen.
_MOST_WITH_NUMBERS, _LEAST_NAME = 12, 16
_NUMBER_CELL = 6
# The meaning of each shade.
MEANINGS = ("none", *(f"below {percent(limit)}" for limit in _LIMITS), "all")


def shade_of(share: float) -> int:
    """Return the number of the shade of a share, from none to all."""
    return 0 if share <= 0 else 1 + sum(share >= limit for limit in _LIMITS)


def shaded(share: float, width: int, shades: str) -> Span:
    """Return a share as a shade of so many cells."""
    step = shade_of(share)
    return Span(shades[step] * width, _STYLES[step])


def legend(shades: str) -> Line:
    """Return the meaning of the shades."""
    steps = zip(shades, _STYLES, MEANINGS, strict=True)
    return tuple(part for shade, style, told in steps for part in (Span(shade, style), Span(f" {told}  ", "muted")))


def grid_lines(names: Sequence[str], shares: Sequence[Sequence[float]], width: int, shades: str) -> Iterator[Line]:
    """Yield the legend, and a row for each name; columns without room follow below, with the names again."""
    count, digits = len(names), len(str(len(names)))
    with_numbers = count <= _MOST_WITH_NUMBERS and count * _NUMBER_CELL + _LEAST_NAME <= width
    cell = _NUMBER_CELL if with_numbers else 1
    numbered = [f"{number:>{digits}} {name}" for number, name in enumerate(names, 1)]
    side_by_side = max(1, min(count, (width - _LEAST_NAME - 1) // cell))
    room = min(max(width_of([Span(it)]) for it in numbered), width - 1 - side_by_side * cell)
    yield legend(shades)
    for first in range(0, count, side_by_side):
        columns = range(first, min(first + side_by_side, count))
        for text in _numbers_of(columns, digits, cell):
            yield (Span(" " * (room + 1)), Span(text))
        for name, row in zip(numbered, shares, strict=True):
            yield (column(name, room), Span(" "), *(_cell(row[at], shades, with_numbers) for at in columns))


def _cell(share: float, shades: str, with_number: bool) -> Span:
    found = shaded(share, 1, shades)
    return found._replace(text=f"{_whole(share):>4} {found.text}") if with_number else found


def _numbers_of(columns: range, digits: int, cell: int) -> Iterator[str]:
    """Yield the numbers of columns: side by side where there is room, else one digit below the other."""
    if cell > digits:
        yield "".join(f"{column + 1:>4}  " for column in columns).rstrip()
    else:
        for digit in range(digits):
            yield "".join(f"{column + 1:>{digits}}"[digit] for column in columns)


def _whole(share: float) -> str:
    """Return a percentage without decimals: `0` only for nothing, `100` only for all."""
    hundredths = 100 * share
    if 0 < hundredths < 1:
        return "<1"
    return "99" if 99 < hundredths < 100 else f"{hundredths:.0f}"
