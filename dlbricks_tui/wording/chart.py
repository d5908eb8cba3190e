"""Charts of plain characters: points over a few values, such as batch sizes, in a given width."""

from collections.abc import Mapping, Sequence

# Each series has a mark, and its points by the place of their value on the axis.
Series = Mapping[str, Mapping[int, float]]

_AXIS = "|"
_CROSSING = "+"
_GROUND = "-"
_BOUND = "."


def chart(
    title: str, values: Sequence[str], series: Series, width: int, height: int, bound: float | None = None
) -> list[str]:
    """Return the lines of a chart: the title, `height` lines with the points, the ground line and the values.

    Of marks in one place, the first series counts. A bound is a dotted line.
    """
    top = max((y for points in series.values() for y in points.values()), default=0.0) or 1.0
    scale = [_tick(top), _tick(top / 2), "0"]
    margin = max(map(len, scale))
    plot = [[" "] * max(1, width - margin - 1) for _ in range(height)]
    columns = _columns(len(values), len(plot[0]))
    if bound is not None and bound <= top:
        plot[_row(bound, top, height)] = [_BOUND] * len(plot[0])
    for mark, points in reversed(list(series.items())):
        for place, y in points.items():
            plot[_row(y, top, height)][columns[place]] = mark
    labels = {0: scale[0], (height - 1) // 2: scale[1]} if height > 2 else {0: scale[0]}
    lines = [f"{labels.get(row, ''):>{margin}}{_AXIS}{''.join(cells)}".rstrip() for row, cells in enumerate(plot)]
    ground = f"{scale[2]:>{margin}}{_CROSSING}{_GROUND * len(plot[0])}"
    return [title, *lines, ground, " " * (margin + 1) + _below(values, columns, len(plot[0]))]


def beside(left: Sequence[str], right: Sequence[str], width: int) -> list[str]:
    """Return two charts of equal height side by side; the left one has this width."""
    return [f"{one:<{width}}{other}".rstrip() for one, other in zip(left, right, strict=True)]


def _row(y: float, top: float, height: int) -> int:
    return height - 1 - min(height - 1, round(max(0.0, y) / top * (height - 1)))


def _columns(count: int, width: int) -> list[int]:
    """Return the column of each value, at equal distances."""
    step = width / max(1, count)
    return [min(width - 1, int((place + 0.5) * step)) for place in range(count)]


def _below(values: Sequence[str], columns: Sequence[int], width: int) -> str:
    """Return the values under their columns; those without room are left out."""
    line, end = "", 0
    for value, column in zip(values, columns, strict=True):
        begin = min(max(0, column - len(value) // 2), width - len(value))
        if begin >= end and (not line or begin > len(line)):
            line = line.ljust(begin) + value
            end = len(line) + 1
    return line


def _tick(y: float) -> str:
    return f"{y:,.0f}" if y >= 100 else f"{y:.3g}"
