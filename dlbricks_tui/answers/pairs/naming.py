"""The two things that a user names: models, or results by a system, a runtime, a day, a run, or an id."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from dlbricks_tui.answers.comparisons.contrasts import NamedSelection, select_named
from dlbricks_tui.answers.comparisons.sides import ComparisonError, side_of_selection
from dlbricks_tui.answers.pairs.compared import ComparedTwo, NotComparableError, PairKind, compare_results
from dlbricks_tui.answers.pairs.selections import compare_selections
from dlbricks_tui.answers.results import Comparison
from dlbricks_tui.store.errors import DamagedResultError
from dlbricks_tui.store.selections import equal
from dlbricks_tui.wording.numbers import minute_of

if TYPE_CHECKING:
    from dlbricks_tui.answers.comparisons.sides import Side
    from dlbricks_tui.store.columns import Summary
    from dlbricks_tui.store.database import ResultsDatabase

# What `dlbricks compare` prints: of one model, or of two things.
CompareDocument = Comparison | ComparedTwo
_SHORTEST_ID = 8
# Runs and days begin with a date.
_ID = re.compile(rf"(?!\d{{8}}-|\d{{4}}-\d\d-)[0-9a-f-]{{{_SHORTEST_ID},36}}")
_KINDS = {it.value: it for it in (PairKind.SYSTEM, PairKind.RUNTIME, PairKind.DAY, PairKind.RUN)}


class NamedSide(NamedTuple):
    """Results that a user names, and their kind."""

    kind: PairKind
    named: NamedSelection


def named_side(store: ResultsDatabase, text: str) -> NamedSide:
    """Return the result of that id, or the results that a text names as for `dlbricks results compare`."""
    if _ID.fullmatch(text):
        found = store.select(f"id={text}")
        if len(found) == 1:
            found = store.result_of(found[0])
            return NamedSide(PairKind.RESULT, NamedSelection(_result_name(found[0]), found))
    named = select_named(store, text)
    words = named.name.split(" ")
    kind = _KINDS.get(words[0], PairKind.SELECTION) if "," not in named.name and len(words) > 1 else PairKind.SELECTION
    return NamedSide(kind, named)


def result_side(store: ResultsDatabase, identity: str) -> NamedSide:
    """Return the result of a whole id; raise NotComparableError if it was deleted."""
    found = store.select(equal(id=identity))
    if not found:
        raise NotComparableError(f"the result {identity[:12]} was deleted: mark another one")
    found = store.result_of(found[0])
    return NamedSide(PairKind.RESULT, NamedSelection(_result_name(found[0]), found))


def compare_named(store: ResultsDatabase, first: NamedSide, second: NamedSide) -> ComparedTwo:
    """Compare two of one kind; raise NotComparableError where that is not possible."""
    kinds = first.kind, second.kind
    if (PairKind.RESULT in kinds) and kinds[0] is not kinds[1]:
        raise NotComparableError(
            f"A is one {kinds[0].value} and B one {kinds[1].value}: compare two of one kind"
            if PairKind.SELECTION not in kinds
            else "one of them is a single result, and the other one several: compare two of one kind"
        )
    try:
        if kinds[0] is PairKind.RESULT:
            return _compare_results(store, first.named, second.named)
        of = kinds[0] if kinds[0] is kinds[1] else PairKind.SELECTION
        names = [it.named.name for it in (first, second)]
        if of is not PairKind.SELECTION:
            names = [it.removeprefix(f"{of.value} ") for it in names]
        sides = [
            side_of_selection(store, it.named._replace(name=name))
            for it, name in zip((first, second), names, strict=True)
        ]
        return compare_selections(of, *sides)
    except ComparisonError as error:
        raise NotComparableError(str(error)) from None


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
    return side_of_selection(store, named)


def _bricks_of(store: ResultsDatabase, summary: Summary) -> Side:
    asked = equal(run=summary.run, of="brick", runtime=summary.runtime, batch_size=summary.batch_size)
    return side_of_selection(store, NamedSelection(f"run {summary.run}", store.results(asked)))
