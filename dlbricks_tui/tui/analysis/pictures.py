"""The pictures of an analysis: the gap as a stacked bar, the gains of what-ifs, and the roofline."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from dlbricks_tui.tui.widgets.pictures import Axis, Mark, Meaning, Piece, Plot, Row, Rows, Series
from dlbricks_tui.wording.analysis import BEST_MARK, bounds_of, gap_parts, gap_sentence
from dlbricks_tui.wording.numbers import percent, signed_percent
from dlbricks_tui.wording.roofline import (
    LARGE_SHARE,
    LETTER_NAMES,
    drawn_points,
    letter_of,
    roofline_ranges,
    roofline_summary,
)
from dlbricks_tui.wording.what_ifs import gains_sentence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dlbricks_tui.analysis.roofline import Roof
    from dlbricks_tui.answers.analysis.analysing import Analysis
    from dlbricks_tui.tui.analysis.work import ChangeRow

# The style and the block of each part of a gap.
PARTS = {
    "best measured": ("bar", "█"),
    "slower layers": ("bad", "▓"),
    "conversions": ("warn", "▒"),
    "calls": ("accent", "░"),
    "unexplained": ("strong", "▚"),
}
_BOUND_MARK, _BOUND_BLOCK = "=", "▄"
# Larger losses are drawn at the left edge.
_LARGEST_LOSS = -1.0
_PREDICTED, _PROVED = "o", "#"
_NEITHER = "|"
# Between the dots of a roof on logarithmic axes.
_MEMORY, _CACHE, _ARITHMETIC = ".", ":", "-"


def gap_picture(found: Analysis) -> Rows | None:
    """Return the latency of a model divided into the best and the gap, above the bounds."""
    bounds = [it for it in bounds_of(found.baseline, found.best, found.roofline_ms) if it.latency_ms is not None]
    if not bounds:
        return None
    longest_ms = max(it.latency_ms or 0.0 for it in bounds)
    rows, meanings = [], []
    says = "Not all layers were measured, so there is no best yet."
    for place, bound in enumerate(bounds):
        pieces: tuple[Piece, ...] = (Piece(0.0, bound.latency_ms or 0.0, _BOUND_MARK, _BOUND_BLOCK, "muted"),)
        if place == 0 and found.gap is not None and found.best is not None:
            parts = gap_parts(found.gap, found.best)
            says = gap_sentence(parts, found.best)
            named = [("best measured", BEST_MARK, found.best.latency_ms)]
            named += [(it.name, it.mark, it.latency_ms or 0.0) for it in parts]
            pieces = _stacked([it for it in named if it[2] > 0])
            meanings = [Meaning(mark, name, *PARTS[name]) for name, mark, ms in named if ms > 0]
        rows.append(Row(bound.name, pieces, text=bound.text, style="strong" if place == 0 else "muted"))
    return Rows("Latency, ms", says, Axis(0.0, longest_ms), tuple(rows), tuple(meanings))


def _stacked(named: Sequence[tuple[str, str, float]]) -> tuple[Piece, ...]:
    pieces, begin = [], 0.0
    for name, mark, ms in named:
        style, block = PARTS[name]
        pieces.append(Piece(begin, begin + ms, mark, block, style))
        begin += ms
    # The widest last, so that its neighbours do not hide a small part between them.
    return tuple(sorted(pieces, key=lambda it: it.low - it.high))


def gains_picture(changes: Sequence[ChangeRow]) -> Rows | None:
    """Return the predicted and the proved gains of what-ifs with their intervals, the largest gain first."""
    if not changes:
        return None
    ordered = sorted(changes, key=lambda it: -(it.proof.gain if it.proof else it.what_if.gain.value))
    rows = []
    for what_if, proof, _ in ordered:
        gain = what_if.gain if proof is None else proof.with_interval
        known = [what_if.gain.value] if proof is None else [what_if.gain.value, proof.gain]
        low, high = max(_LARGEST_LOSS, gain.low), min(1.0, gain.high)
        marks = [Mark(100 * max(_LARGEST_LOSS, what_if.gain.value), _PREDICTED, "accent")]
        if proof is not None:
            marks.append(Mark(100 * max(_LARGEST_LOSS, proof.gain), _PROVED, "good" if proof.gain > 0 else "bad"))
        if high <= _LARGEST_LOSS:
            low = high = _LARGEST_LOSS
        name = what_if.id if what_if.change is not None else f"{what_if.id} (bound)"
        text = signed_percent(known[-1]) + ("" if proof is None else " proved")
        style = "good" if gain.low > 0 else "bad" if gain.high < 0 else "text"
        rows.append(Row(name, (Piece(100 * low, 100 * high, "-", "─", "muted"),), tuple(marks), text, style))
    lowest = min((100 * max(_LARGEST_LOSS, it.what_if.gain.low) for it in ordered), default=0.0)
    across = Axis(min(-10.0, lowest), max(20.0, *(100 * min(1.0, it.what_if.gain.high) for it in ordered)))
    legend = (
        Meaning(_PREDICTED, "predicted", "accent"),
        *([Meaning(_PROVED, "proved", "good")] if any(it.proof for it in ordered) else []),
        Meaning("-", "95 % interval", "muted", "─"),
    )
    proofs = {it.what_if.id: it.proof.with_interval for it in ordered if it.proof}
    says = gains_sentence([it.what_if for it in ordered], proofs.get)
    return Rows("Gain, %", says, across, tuple(rows), legend, upright=0.0)


def roofline_picture(found: Analysis) -> Plot | None:
    """Return the layers of a model under the peaks of its system, on logarithmic axes."""
    roof, graph = found.roof, found.baseline.graph
    if roof is None or not found.points:
        return None
    points = drawn_points(found.points)
    (low, high), (lowest, highest) = roofline_ranges(points, roof)
    total_ms = sum(it.times * it.latency_ms for it in found.points) or 1.0
    placed: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
    for it in sorted(points, key=lambda each: each.times * each.latency_ms):
        letter = letter_of(it, graph)
        is_large = it.times * it.latency_ms >= LARGE_SHARE * total_ms
        placed[letter.upper() if is_large else letter].append((it.work.intensity, it.billions_per_second))
    series = [*_roofs(roof, low, high, lowest)]
    # Layers that take more of the time cover others.
    for letter in sorted(placed, key=str.isupper):
        series.append(Series("", letter, "strong" if letter.isupper() else "accent", tuple(placed[letter])))
    letters = {letter.lower() for letter in placed}
    named = [f"{letter} {name}" for letter, name in LETTER_NAMES.items() if letter in letters]
    legend = (*named, f"capital: {percent(LARGE_SHARE)} of the time or more")
    traffic, near = roofline_summary(found.points, roof)
    says = f"{traffic}; {near}."
    return Plot(
        "GFLOP/s by FLOP/byte",
        says,
        Axis(low, high, is_log=True),
        Axis(lowest, highest, is_log=True),
        tuple(series),
        legend=legend,
    )


def _roofs(roof: Roof, low: float, high: float, lowest: float) -> list[Series]:
    """Return the lines of the roofs: each bandwidth up to the highest arithmetic, and each arithmetic from there on."""
    slopes = [("memory", roof.memory, _MEMORY, "bad")]
    if roof.shared_cache is not None:
        slopes.append(("shared cache", roof.shared_cache, _CACHE, "warn"))
    widest = max(bandwidth for _, bandwidth, _, _ in slopes)
    found = []
    for name, bandwidth, sign, style in slopes:
        ends = max(low, lowest / bandwidth), roof.highest / bandwidth
        line = tuple((it, it * bandwidth) for it in ends)
        found.append(Series(f"{name} {bandwidth:,.0f} GB/s", sign, style, line, sign))
    for name, speed in roof.arithmetic.items():
        line = ((speed / widest, speed), (high, speed))
        found.append(Series(f"{name} {speed:,.0f} GFLOP/s", _ARITHMETIC, "muted", line, _ARITHMETIC))
    return found
