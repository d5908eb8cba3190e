"""The pictures of an analysis: the gap as a stacked bar, the gains of what-ifs, and the roofline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlbricks_tui.documents.pictures import Axis, Mark, Meaning, Piece, Row, Rows
from dlbricks_tui.documents.roofline import roofline_plot
from dlbricks_tui.wording.analysis import BEST_MARK, bounds_of, gap_parts, gap_sentence
from dlbricks_tui.wording.numbers import signed_percent
from dlbricks_tui.wording.what_ifs import gains_sentence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dlbricks_tui.answers.analysis.analysing import Analysis
    from dlbricks_tui.documents.pictures import Plot
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
    """Return the layers of a model under the peaks of its system; None if either is unknown."""
    if found.roof is None or not found.points:
        return None
    return roofline_plot(found.points, found.baseline.graph, found.roof)
