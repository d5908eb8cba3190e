"""The picture of a comparison: both latencies as bars with their intervals, and the steps that lead from A to B."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dlbricks_tui.documents.pictures import Axis, Mark, Meaning, Piece, Row, Rows
from dlbricks_tui.evaluations.change import Verdict
from dlbricks_tui.wording.numbers import in_ms

if TYPE_CHECKING:
    from dlbricks_tui.answers.pairs.compared import ComparedTwo

_BAR, _BLOCK = "=", "█"
_BOUND = "|"
_MORE, _MORE_BLOCK = "+", "▓"
_LESS, _LESS_BLOCK = "-", "░"
# The largest differences; the others are one step.
_MOST_STEPS = 7
# Parts that make up all but this share of both latencies explain the difference.
_LEFT_OUT = 0.15
_SMALLEST = 1e-9


def latencies_picture(found: ComparedTwo) -> Rows:
    """Return A and B as bars; the faster one is green where they can be told apart."""
    # Empty where they cannot be told apart.
    faster = {Verdict.FASTER: "B", Verdict.SLOWER: "A"}.get(found.verdict, "")
    sides = list(zip("AB", (found.a, found.b), strict=True))
    rows = []
    for letter, side in sides:
        style = "good" if letter == faster else "bar"
        bounds = tuple(Mark(bound, _BOUND, "strong") for bound in side.interval)
        bar = (Piece(0.0, side.ms, _BAR, _BLOCK, style),)
        rows.append(Row(f"{letter} {side.name}", bar, bounds, in_ms(side.ms), style if faster == letter else "text"))
    steps = _steps(found)
    rows += steps
    longest = max(
        *(max(side.ms, side.interval[1]) for _, side in sides), *(it.high for row in steps for it in row.pieces)
    )
    says = ", ".join(f"{letter} {in_ms(side.ms)} ({side.how})" for letter, side in sides)
    meanings = [Meaning(_BOUND, "95 % interval", "strong")]
    if steps:
        says += f", {_said(found)}" if faster else ""
        meanings.append(Meaning(_MORE, "B takes longer", "bad", _MORE_BLOCK))
        meanings.append(Meaning(_LESS, "B takes less", "good", _LESS_BLOCK))
    return Rows("ms, shorter is better", f"{says}.", Axis(0.0, longest), tuple(rows), tuple(meanings))


def _steps(found: ComparedTwo) -> list[Row]:
    """Return the differences of the parts one after another, from A to B; none where they explain too little."""
    sums = [math.fsum(part.a_ms or 0.0 for part in found.parts), math.fsum(part.b_ms or 0.0 for part in found.parts)]
    if any(abs(total - side.ms) > _LEFT_OUT * side.ms for total, side in zip(sums, (found.a, found.b), strict=True)):
        return []
    ordered = sorted(found.parts, key=lambda it: -abs(it.difference_ms))
    named = [(it.name, it.difference_ms) for it in ordered[:_MOST_STEPS]]
    rest = found.b.ms - found.a.ms - math.fsum(it for _, it in named)
    rows, begin = [], found.a.ms
    for name, difference in [*named, ("all else", rest)]:
        end = begin + difference
        if abs(difference) > _SMALLEST:
            sign, block, style = (_MORE, _MORE_BLOCK, "bad") if difference > 0 else (_LESS, _LESS_BLOCK, "good")
            piece = Piece(max(0.0, min(begin, end)), max(0.0, begin, end), sign, block, style)
            rows.append(Row(name, (piece,), text=f"{difference:+.3g} ms", style="muted"))
        begin = end
    return rows


def _said(found: ComparedTwo) -> str:
    largest = max(found.parts, key=lambda it: abs(it.difference_ms))
    return f"most of all by {largest.name} ({largest.difference_ms:+.3g} ms)"
