"""Work of the screen of marked rows that takes time: both sides, their differences, and the picture of them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from dlbricks_tui.answers.pairs import EstimatedSide, compare_estimates
from dlbricks_tui.answers.sides import KINDS, NamedSelection, NotComparableError, PairKind
from dlbricks_tui.documents.pictures import Axis, BarRow, LegendSign, Mark, Piece, Rows
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.store.change import Verdict
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.selections import equal
from dlbricks_tui.tui.keys.keymap import key
from dlbricks_tui.tui.workbench.work import answer_for
from dlbricks_tui.wording.numbers import in_ms

if TYPE_CHECKING:
    from collections.abc import Callable

    from dlbricks_tui.answers.pairs import ComparedTwo
    from dlbricks_tui.tui.choices import Choices
    from dlbricks_tui.tui.marks.marks import ComparableRow
    from dlbricks_tui.tui.open_model import ModelSpec
    from dlbricks_tui.tui.session import Session


class ComparedSettings(NamedTuple):
    """The settings of the estimate, and how a model is read under them."""

    choices: Choices
    spec_of: Callable[[ModelSource], ModelSpec]


def compare_rows(
    session: Session, first: ComparableRow, second: ComparableRow, settings: ComparedSettings | None
) -> ComparedTwo:
    """Compare two rows; raise a UserError where that is not possible."""
    if first.kind in (PairKind.MODEL, PairKind.VARIANT):
        sides = [_estimated(session, row, settings) for row in (first, second)]
        cure = f"{key('workbench.start_run')} on the workbench measures it"
        return compare_estimates(first.kind, sides[0], sides[1], cure=cure)
    # Loaded here: most comparisons are of models. The store is opened a second time, as reading many results takes long
    # and other panels need the shared one meanwhile.
    from dlbricks_tui.answers.pairs import compare_named

    if first.kind == PairKind.SELECTION:
        # They were found in the shared store.
        with session.store.held() as store:
            return compare_named(store, *(_named(store, row) for row in (first, second)))
    with ResultsDatabase(session.data.store) as store:
        return compare_named(store, *(_named(store, row) for row in (first, second)))


def _estimated(session: Session, row: ComparableRow, settings: ComparedSettings | None) -> EstimatedSide:
    if isinstance(row.subject, EstimatedSide):
        return row.subject
    if not isinstance(row.subject, ModelSource) or settings is None:
        raise NotComparableError(f"{row.name} is no model")
    answer = answer_for(session, settings.spec_of(row.subject), settings.choices)
    return EstimatedSide(row.name, answer.found, session.estimator.timing(answer))


def _named(store: ResultsDatabase, row: ComparableRow) -> NamedSelection:
    from dlbricks_tui.answers.pairs import result_side

    if isinstance(row.subject, NamedSelection):
        return row.subject
    identity = str(row.subject)
    if row.kind == PairKind.RESULT:
        return result_side(store, identity)
    found = store.results(equal(**{KINDS[row.kind].column: identity}))
    if not found:
        raise NotComparableError(f"{row.kind} {row.name} has no results of its own: nothing was measured in it")
    return NamedSelection(row.name, found, row.kind)


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
        rows.append(BarRow(f"{letter} {side.name}", bar, bounds, in_ms(side.ms), style if faster == letter else "text"))
    steps = _steps(found)
    rows += steps
    longest = max(
        *(max(side.ms, side.interval[1]) for _, side in sides), *(it.high for row in steps for it in row.pieces)
    )
    says = ", ".join(f"{letter} {in_ms(side.ms)} ({side.how})" for letter, side in sides)
    meanings = [LegendSign(_BOUND, "95 % interval", "strong")]
    if steps:
        says += f", {_said(found)}" if faster else ""
        meanings.append(LegendSign(_MORE, "B takes longer", "bad", _MORE_BLOCK))
        meanings.append(LegendSign(_LESS, "B takes less", "good", _LESS_BLOCK))
    return Rows("ms, shorter is better", f"{says}.", Axis(0.0, longest), tuple(rows), tuple(meanings))


def _steps(found: ComparedTwo) -> list[BarRow]:
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
            rows.append(BarRow(name, (piece,), text=f"{difference:+.3g} ms", style="muted"))
        begin = end
    return rows


def _said(found: ComparedTwo) -> str:
    largest = max(found.parts, key=lambda it: abs(it.difference_ms))
    return f"most of all by {largest.name} ({largest.difference_ms:+.3g} ms)"
