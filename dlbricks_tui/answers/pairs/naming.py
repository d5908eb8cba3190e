"""The two things that a user names: models, or results by a system, a runtime, a day, a run, or an id."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from dlbricks_tui.answers.comparisons.named import KINDS, NamedSelection, PairKind, select_named
from dlbricks_tui.answers.comparisons.sides import ComparisonError, side_of_selection
from dlbricks_tui.answers.pairs.compared import ComparedTwo, NotComparableError, compare_results
from dlbricks_tui.answers.pairs.estimates import EstimatedSide, compare_estimates
from dlbricks_tui.answers.pairs.selections import compare_selections
from dlbricks_tui.answers.results import Comparison
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.errors import DamagedResultError
from dlbricks_tui.store.selections import equal
from dlbricks_tui.wording.numbers import minute_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from dlbricks_tui.answers.comparisons.sides import Side
    from dlbricks_tui.answers.estimating import Answer
    from dlbricks_tui.answers.pairs.marked import ComparableRow
    from dlbricks_tui.answers.session import Session
    from dlbricks_tui.store.columns import Summary
    from dlbricks_tui.store.selections import Selection

# What `dlbricks compare` prints: of one model, or of two things.
CompareDocument = Comparison | ComparedTwo
_SHORTEST_ID = 8
# Runs and days begin with a date.
_ID = re.compile(rf"(?!\d{{8}}-|\d{{4}}-\d\d-)[0-9a-f-]{{{_SHORTEST_ID},36}}")


def named_side(store: ResultsDatabase, text: str) -> NamedSelection:
    """Return the result of that id, or the results that a text names as for `dlbricks results compare`."""
    if _ID.fullmatch(text):
        found = store.select(f"id={text}")
        if len(found) == 1:
            return _one_result(store, found)
    return select_named(store, text)


def result_side(store: ResultsDatabase, identity: str) -> NamedSelection:
    """Return the result of a whole id; raise NotComparableError if it was deleted."""
    found = store.select(equal(id=identity))
    if not found:
        raise NotComparableError(f"the result {identity[:12]} was deleted: mark another one")
    return _one_result(store, found)


def _one_result(store: ResultsDatabase, found: Selection) -> NamedSelection:
    found = store.result_of(found[0])
    return NamedSelection(_result_name(found[0]), found, PairKind.RESULT)


def compare_named(store: ResultsDatabase, first: NamedSelection, second: NamedSelection) -> ComparedTwo:
    """Compare two of one kind; raise NotComparableError where that is not possible."""
    kinds = first.kind, second.kind
    if PairKind.RESULT in kinds and kinds[0] != kinds[1]:
        raise NotComparableError(
            f"A is one {kinds[0]} and B one {kinds[1]}: compare two of one kind"
            if PairKind.SELECTION not in kinds
            else "one of them is a single result, and the other one several: compare two of one kind"
        )
    try:
        if kinds[0] == PairKind.RESULT:
            return _compare_results(store, first, second)
        if kinds[0] == kinds[1]:
            return compare_selections(kinds[0], *(_side_called(store, it) for it in (first, second)))
        return compare_selections(PairKind.SELECTION, *(side_of_selection(store, it) for it in (first, second)))
    except ComparisonError as error:
        raise NotComparableError(str(error)) from None


def compare_rows(
    session: Session,
    first: ComparableRow,
    second: ComparableRow,
    answer_for: Callable[[ModelSource], Answer] | None = None,
    cure: str = "",
) -> ComparedTwo:
    """Compare two rows; raise a UserError where that is not possible.

    `answer_for` answers for models, and `cure` tells what gives one a latency.
    """
    if first.kind in (PairKind.MODEL, PairKind.VARIANT):
        sides = [_estimated(session, row, answer_for) for row in (first, second)]
        return compare_estimates(first.kind, sides[0], sides[1], cure=cure)
    if first.kind == PairKind.SELECTION:
        # They were found in the shared store.
        with session.store.held() as store:
            return compare_named(store, *(_named(store, row) for row in (first, second)))
    # Opened a second time, as reading many results takes long, and others need the shared store meanwhile.
    with ResultsDatabase(session.data.store) as store:
        return compare_named(store, *(_named(store, row) for row in (first, second)))


def _estimated(
    session: Session, row: ComparableRow, answer_for: Callable[[ModelSource], Answer] | None
) -> EstimatedSide:
    if isinstance(row.subject, EstimatedSide):
        return row.subject
    if not isinstance(row.subject, ModelSource) or answer_for is None:
        raise NotComparableError(f"{row.name} is no model")
    answer = answer_for(row.subject)
    return EstimatedSide(row.name, answer.found, session.estimator.timing(answer))


def _named(store: ResultsDatabase, row: ComparableRow) -> NamedSelection:
    if isinstance(row.subject, NamedSelection):
        return row.subject
    identity = str(row.subject)
    if row.kind == PairKind.RESULT:
        return result_side(store, identity)
    found = store.results(equal(**{KINDS[row.kind].column: identity}))
    if not found:
        raise NotComparableError(f"{row.kind} {row.name} has no results of its own: nothing was measured in it")
    return NamedSelection(row.name, found, row.kind)


def _side_called(store: ResultsDatabase, named: NamedSelection) -> Side:
    """Return the results of a selection by their name alone: both sides are of one kind."""
    return replace(side_of_selection(store, named), name=named.name)


def _result_name(summary: Summary) -> str:
    name = summary.name or summary.brick[:12] or summary.model[:12]
    return f"{name}, {minute_of(summary.when)}"


def _compare_results(store: ResultsDatabase, first: NamedSelection, second: NamedSelection) -> ComparedTwo:
    sides = [_side_of_result(store, it) for it in (first, second)]
    one, other = first.selection[0], second.selection[0]
    bricks: tuple[Side, Side] | None = None
    if not one.brick and not other.brick and one.run != other.run:
        # A run may have measured no bricks.
        with suppress(ComparisonError):
            bricks = _bricks_of(store, one), _bricks_of(store, other)
    return compare_results(sides[0], sides[1], bricks)


def _side_of_result(store: ResultsDatabase, named: NamedSelection) -> Side:
    summary = named.selection[0]
    if not summary.good:
        flags: tuple[str, ...] = ()
        with suppress(DamagedResultError):
            flags = named.selection.result(0).flags
        why = f" ({', '.join(flags)})" if flags else ""
        raise NotComparableError(f"{named.name} is in doubt{why}: measure it again")
    return _side_called(store, named)


def _bricks_of(store: ResultsDatabase, summary: Summary) -> Side:
    asked = equal(run=summary.run, of="brick", runtime=summary.runtime, batch_size=summary.batch_size)
    return side_of_selection(store, NamedSelection(f"run {summary.run}", store.results(asked)))
