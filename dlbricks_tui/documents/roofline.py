"""A roofline: the layers of models as letters under the peaks of their system, on two logarithmic axes."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from dlbricks_tui.documents.pictures import Axis, Plot, Series
from dlbricks_tui.models.kinds import Kind
from dlbricks_tui.wording.numbers import percent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dlbricks_tui.analysis.roofline import LayerPoint, Roof

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
_LETTER_NAMES = {
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
_LARGE_SHARE = 0.05
_MEMORY, _CACHE, _ARITHMETIC = ".", ":", "-"
# Slower layers stand at the lower edge, ones of less intensity at the left one.
_LOWEST_SHARE, _LEAST_INTENSITY, _MOST_INTENSITY = 1e-3, 2.0**-6, 2.0**14


def roofline_plot(points: Sequence[LayerPoint], roof: Roof) -> Plot:
    """Return the layers of a model under the peaks of their system; views compute and move nothing and are left out."""
    drawn = [it for it in points if it.work.operations and it.work.bytes and it.billions_per_second]
    across, up = _axes(drawn, roof)
    total_ms = sum(it.times * it.latency_ms for it in points) or 1.0
    placed: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
    for it in sorted(drawn, key=lambda each: each.times * each.latency_ms):
        letter = _letter_of(it)
        is_large = it.times * it.latency_ms >= _LARGE_SHARE * total_ms
        placed[letter.upper() if is_large else letter].append((it.work.intensity, it.billions_per_second))
    series = [*_roofs(roof, across, up)]
    # Layers that take more of the time cover others.
    for letter in sorted(placed, key=str.isupper):
        series.append(Series("", letter, "strong" if letter.isupper() else "accent", tuple(placed[letter])))
    letters = {letter.lower() for letter in placed}
    named = [f"{letter} {name}" for letter, name in _LETTER_NAMES.items() if letter in letters]
    legend = (*named, f"capital: {percent(_LARGE_SHARE)} of the time or more")
    return Plot("GFLOP/s by FLOP/byte", _sentence(points, roof), across, up, tuple(series), legend=legend)


def _axes(drawn: Sequence[LayerPoint], roof: Roof) -> tuple[Axis, Axis]:
    intensities = [min(_MOST_INTENSITY, max(_LEAST_INTENSITY, it.work.intensity)) for it in drawn]
    ridge = roof.highest / roof.memory
    low, high = min([*intensities, ridge / 8]), max([*intensities, ridge * 4])
    speeds = [max(it.billions_per_second, roof.highest * _LOWEST_SHARE) for it in drawn]
    lowest, highest = min([*speeds, roof.memory * low]), roof.highest * 1.3
    return Axis(low, high, is_log=True), Axis(lowest, highest, is_log=True)


def _roofs(roof: Roof, across: Axis, up: Axis) -> list[Series]:
    """Return the lines of the roofs: each bandwidth up to the highest arithmetic, and each arithmetic from there on."""
    slopes = [("memory", roof.memory, _MEMORY, "bad")]
    if roof.shared_cache is not None:
        slopes.append(("shared cache", roof.shared_cache, _CACHE, "warn"))
    widest = max(bandwidth for _, bandwidth, _, _ in slopes)
    found = []
    for name, bandwidth, sign, style in slopes:
        ends = max(across.low, up.low / bandwidth), roof.highest / bandwidth
        line = tuple((it, it * bandwidth) for it in ends)
        found.append(Series(f"{name} {bandwidth:,.0f} GB/s", sign, style, line, sign))
    for name, speed in roof.arithmetic.items():
        line = ((speed / widest, speed), (across.high, speed))
        found.append(Series(f"{name} {speed:,.0f} GFLOP/s", _ARITHMETIC, "muted", line, _ARITHMETIC))
    return found


def _letter_of(point: LayerPoint) -> str:
    return next((_LETTERS[kind] for kind in point.kinds if kind in _LETTERS), "o")


def _sentence(points: Sequence[LayerPoint], roof: Roof) -> str:
    """Return the share of the time in layers that traffic bounds, and in those that come close to their bound."""
    total_ms = sum(it.times * it.latency_ms for it in points) or 1.0
    traffic_ms = near_ms = 0.0
    for it in points:
        taken_ms = it.times * it.latency_ms
        traffic_ms += taken_ms if it.least_ms > roof.arithmetic_ms(it.work) else 0.0
        near_ms += taken_ms if it.least_ms >= it.latency_ms / 2 else 0.0
    return (
        f"{percent(traffic_ms / total_ms)} of the time is in layers bound by memory or caches; "
        f"{percent(near_ms / total_ms)} in layers that take at most twice their bound."
    )
