"""The roofline of a model as a picture of plain characters: layers as letters on two logarithmic axes."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

from dlbricks_tui.analysis.roofline import LayerPoint, Roof
from dlbricks_tui.models.graph import LayerGraph
from dlbricks_tui.models.kinds import Kind
from dlbricks_tui.wording.numbers import counted, percent
from dlbricks_tui.wording.plot import LogAxis, in_lines

# The letter of each kind of layer; a capital letter takes a large share of the time.
_LETTERS: Mapping[Kind, str] = {
    Kind.CONVOLUTION: "c",
    Kind.DECONVOLUTION: "d",
    Kind.LINEAR: "m",
    Kind.RECURRENT: "r",
    Kind.ATTENTION: "a",
    Kind.POOLING: "p",
    Kind.BATCHNORM: "n",
    Kind.NORM: "n",
    Kind.LRN: "n",
    Kind.ELEMENTWISE: "e",
    Kind.COMBINE: "s",
    Kind.CONCAT: "j",
    Kind.SOFTMAX: "x",
}
LETTER_NAMES = {
    "c": "convolution",
    "d": "deconvolution",
    "m": "matrix product",
    "r": "recurrent",
    "a": "attention",
    "p": "pooling",
    "n": "normalisation",
    "e": "elementwise",
    "s": "sum",
    "j": "concat",
    "x": "softmax",
    "o": "other",
}
LARGE_SHARE = 0.05
_MEMORY, _CACHE, _ARITHMETIC = ".", ":", "-"
_LEAST_WIDTH, _LEAST_HEIGHT = 30, 6
# Slower layers stand at the lower edge, ones of less intensity at the left one.
_LOWEST_SHARE, _LEAST_INTENSITY, _MOST_INTENSITY = 1e-3, 2.0**-6, 2.0**14
_TICK_GAP = 3


def roofline_lines(points: Sequence[LayerPoint], graph: LayerGraph, roof: Roof, width: int, height: int) -> list[str]:
    """Return a picture of this size at most: the roofs, the layers below them, and what the signs mean."""
    drawn = drawn_points(points)
    total_ms = sum(it.times * it.latency_ms for it in points) or 1.0
    below = [*_legend(drawn, graph, roof, width), *roofline_summary(points, roof)]
    rows = max(_LEAST_HEIGHT, height - len(below) - 3)
    (low, high), (lowest, highest) = roofline_ranges(drawn, roof)
    margin = max(len(_number(value)) for value in (roof.highest, *roof.arithmetic.values())) + 2
    across = LogAxis(low, high, max(_LEAST_WIDTH, width - margin - 1))
    up = LogAxis(lowest, highest, rows)
    cells = [[" "] * across.cells for _ in range(rows)]
    _draw_roofs(cells, roof, across, up)
    for (row, column), letter in _marks(drawn, graph, total_ms, across, up).items():
        cells[rows - 1 - row][column] = letter
    labels = {rows - 1 - up.cell(value): _number(value) for value in sorted(roof.arithmetic.values())}
    labels |= {row: _number(up.value(rows - 1 - row)) for row in _tick_rows(rows, labels)}
    lines = [f"{'GFLOP/s':<{margin}} {counted(len(drawn), 'layer')}, {counted(roof.threads, 'thread')}"]
    lines += [f"{labels.get(row, ''):>{margin}}|{''.join(held)}".rstrip() for row, held in enumerate(cells)]
    lines.append(f"{'':>{margin}}+{_ticks(across)}")
    return [*lines, *below]


def drawn_points(points: Sequence[LayerPoint]) -> list[LayerPoint]:
    """Return the layers that a roofline shows; views compute and move nothing."""
    return [it for it in points if it.work.operations and it.work.bytes and it.billions_per_second]


def roofline_ranges(drawn: Sequence[LayerPoint], roof: Roof) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the ranges of the intensities and of the speeds that a roofline shows."""
    intensities = [min(_MOST_INTENSITY, max(_LEAST_INTENSITY, it.work.intensity)) for it in drawn]
    ridge = roof.highest / roof.memory
    low, high = min([*intensities, ridge / 8]), max([*intensities, ridge * 4])
    speeds = [max(it.billions_per_second, roof.highest * _LOWEST_SHARE) for it in drawn]
    return (low, high), (min([*speeds, roof.memory * low]), roof.highest * 1.3)


def _draw_roofs(cells: list[list[str]], roof: Roof, across: LogAxis, up: LogAxis) -> None:
    slopes = [(_CACHE, roof.shared_cache or 0.0), (_MEMORY, roof.memory)]
    for column in range(across.cells):
        intensity = across.value(column)
        for sign, bandwidth in slopes:
            speed = bandwidth * intensity
            if up.low <= speed <= roof.highest:
                cells[up.cells - 1 - up.cell(speed)][column] = sign
        for speed in roof.arithmetic.values():
            if max(roof.memory, roof.shared_cache or 0.0) * intensity >= speed:
                cells[up.cells - 1 - up.cell(speed)][column] = _ARITHMETIC


def _marks(
    points: Sequence[LayerPoint], graph: LayerGraph, total_ms: float, across: LogAxis, up: LogAxis
) -> dict[tuple[int, int], str]:
    """Return the letter of each cell: that of the layers that take most of the time there."""
    spent: defaultdict[tuple[int, int], defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    for it in points:
        cell = up.cell(it.billions_per_second), across.cell(it.work.intensity)
        spent[cell][letter_of(it, graph)] += it.times * it.latency_ms
    found = {}
    for cell, by_letter in spent.items():
        letter = max(by_letter, key=by_letter.__getitem__)
        found[cell] = letter.upper() if sum(by_letter.values()) >= LARGE_SHARE * total_ms else letter
    return found


def letter_of(point: LayerPoint, graph: LayerGraph) -> str:
    """Return the letter of the kind of some layers."""
    kinds = [graph.layers[index].kind for index in point.layers]
    return next((_LETTERS[kind] for kind in kinds if kind in _LETTERS), "o")


def _legend(points: Sequence[LayerPoint], graph: LayerGraph, roof: Roof, width: int) -> list[str]:
    letters = {letter_of(it, graph) for it in points}
    signs = [f"{letter} {name}" for letter, name in LETTER_NAMES.items() if letter in letters]
    signs.append(f"capital: {percent(LARGE_SHARE)} of the time or more")
    peaks = ", ".join(f"{_number(value)} {name}" for name, value in roof.arithmetic.items())
    roofs = [f"{_ARITHMETIC} arithmetic ({peaks})", f"{_MEMORY} memory ({_number(roof.memory)} GB/s)"]
    if roof.shared_cache is not None:
        roofs.append(f"{_CACHE} shared cache ({_number(roof.shared_cache)} GB/s)")
    return [*in_lines(signs, width), *in_lines(roofs, width)]


def roofline_summary(points: Sequence[LayerPoint], roof: Roof) -> list[str]:
    """Return the share of the time in layers that traffic bounds, and in those that come close to their bound."""
    total_ms = sum(it.times * it.latency_ms for it in points) or 1.0
    traffic_ms = near_ms = 0.0
    for it in points:
        taken_ms = it.times * it.latency_ms
        traffic_ms += taken_ms if it.least_ms > roof.arithmetic_ms(it.work) else 0.0
        near_ms += taken_ms if it.least_ms >= it.latency_ms / 2 else 0.0
    return [
        f"{percent(traffic_ms / total_ms)} of the time is in layers bound by memory or caches",
        f"{percent(near_ms / total_ms)} in layers that take at most twice their bound",
    ]


def _tick_rows(rows: int, taken: Mapping[int, str]) -> list[int]:
    """Return the rows between the labels of the roofs that get a number."""
    return [row for row in range(rows - 1, 0, -_TICK_GAP) if all(abs(row - it) > 1 for it in taken)]


def _ticks(across: LogAxis) -> str:
    """Return the ground line with powers of two under their cells."""
    line = ["-"] * across.cells
    end = -1
    title = " FLOP/byte"
    last = across.cells - len(title)
    for power in range(math.ceil(math.log2(across.low)), math.floor(math.log2(across.high)) + 1):
        text = f"{2.0**power:g}"
        column = across.cell(2.0**power)
        if column > end and column + len(text) <= last:
            line[column : column + len(text)] = text
            end = column + len(text) + _TICK_GAP
    return "".join(line)[:last] + title


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}"
