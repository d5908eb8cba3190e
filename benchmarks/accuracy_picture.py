"""The picture of docs/accuracy.md: the estimate of each model against its end-to-end latency, as SVG."""

import math
from collections.abc import Iterator, Sequence

from benchmarks.accuracy_report import Figure

_WIDTH, _HEIGHT, _MARGIN = 720, 560, 64
_GREY = "#8888"
# It can be seen on light and on dark pages.
_COLOUR = "#e07b00"


def picture(figures: Sequence[Figure]) -> str:
    """Return an SVG with a point for each model, a line where both latencies are equal, and lines 10 % beside it."""
    return "\n".join(_lines(figures)) + "\n"


def _lines(figures: Sequence[Figure]) -> Iterator[str]:
    latencies = [ms for it in figures for ms in (it.estimate_ms, it.measured_ms)]
    low, high = math.floor(math.log10(min(latencies))), math.ceil(math.log10(max(latencies)))

    def x(ms: float) -> float:
        return _MARGIN + (math.log10(ms) - low) / (high - low) * (_WIDTH - 2 * _MARGIN)

    def y(ms: float) -> float:
        return _HEIGHT - _MARGIN - (math.log10(ms) - low) / (high - low) * (_HEIGHT - 2 * _MARGIN)

    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" '
        'font-family="sans-serif" font-size="13" fill="#888">'
    )
    yield f"<title>Estimate against end-to-end latency of {len(figures)} measurements</title>"
    for power in range(low, high + 1):
        ms = 10.0**power
        yield _line(x(ms), y(10.0**low), x(ms), y(10.0**high), _GREY, 0.5)
        yield _line(x(10.0**low), y(ms), x(10.0**high), y(ms), _GREY, 0.5)
        yield f'<text x="{x(ms):.0f}" y="{_HEIGHT - _MARGIN + 20}" text-anchor="middle">{ms:g}</text>'
        yield f'<text x="{_MARGIN - 8}" y="{y(ms) + 4:.0f}" text-anchor="end">{ms:g}</text>'
    for factor, dashes in ((1.0, ""), (1.1, ' stroke-dasharray="4 4"'), (1 / 1.1, ' stroke-dasharray="4 4"')):
        begin, end = 10.0**low * max(1.0, 1 / factor), 10.0**high / max(1.0, factor)
        yield _line(x(begin), y(begin * factor), x(end), y(end * factor), "#888", 1.0, dashes)
    for it in figures:
        yield (
            f'<circle cx="{x(it.measured_ms):.1f}" cy="{y(it.estimate_ms):.1f}" r="2.5" fill="{_COLOUR}" '
            'fill-opacity=".6"/>'
        )
    yield f'<text x="{_MARGIN + 12}" y="{_MARGIN + 20}">{len(figures)} measurements</text>'
    yield f'<text x="{_MARGIN + 12}" y="{_MARGIN + 40}">dashed: 10 % more or less</text>'
    yield f'<text x="{_WIDTH / 2}" y="{_HEIGHT - 16}" text-anchor="middle">end-to-end latency in ms</text>'
    yield (
        f'<text x="18" y="{_HEIGHT / 2}" text-anchor="middle" transform="rotate(-90 18 {_HEIGHT / 2})">'
        "estimate in ms</text>"
    )
    yield "</svg>"


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, width: float, more: str = "") -> str:
    return f'<path d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}" stroke="{colour}" stroke-width="{width}"{more}/>'
