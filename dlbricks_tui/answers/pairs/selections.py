"""Two systems, runtimes, days or runs, compared by the models and bricks that both have measured."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dlbricks_tui.answers.comparisons.changes import (
    GroupComparison,
    ResultPair,
    compare,
    not_compared_lines,
    overall,
    runs_of,
)
from dlbricks_tui.answers.comparisons.side_facts import SideFact, facts_of
from dlbricks_tui.answers.pairs.compared import (
    ComparedPart,
    ComparedSide,
    ComparedTwo,
    NotComparableError,
    compared_two,
    half_widths,
    largest_first,
    part_of,
)
from dlbricks_tui.printable import printable
from dlbricks_tui.wording.numbers import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dlbricks_tui.answers.comparisons.sides import Found, Side

# The days are no circumstance for a report, which has them with the numbers.
_DAYS = "measured"


def compare_selections(of: str, first: Side, second: Side) -> ComparedTwo:
    """Compare two selections of results; raise NotComparableError where they have nothing in common."""
    if first.digest == second.digest:
        raise NotComparableError(f"{first.name} and {second.name} have the same results: name different ones")
    if not first.methods & second.methods:
        told = [", ".join(sorted(it.methods)) for it in (first, second)]
        raise NotComparableError(
            f"{first.name} was measured by method {told[0]}, and {second.name} by method {told[1]}: results of "
            "different methods are not compared; measure one of them again by the method of the other"
        )
    found = compare(first, second)
    # Whole models tell more than their bricks.
    pairs = found.models or found.bricks
    change = overall(pairs)
    if change is None:
        raise NotComparableError(_nothing_in_common(first, second, found))
    what = "models and bricks" if found.models and found.bricks else "models" if found.models else "bricks"
    return compared_two(
        of,
        (_side(first, pairs, number=0), _side(second, pairs, number=1)),
        change,
        (what, _parts(found)),
        {it.name: (it.values[0], it.values[1]) for it in facts_of((first, second)) if _differ(it)},
        _remarks(found, (first, second)),
    )


def _differ(fact: SideFact) -> bool:
    return fact.differs or (fact.name == _DAYS and len(set(fact.values)) > 1)


def _side(side: Side, pairs: Sequence[ResultPair], *, number: int) -> ComparedSide:
    changes = [it.change for it in pairs]
    total = math.fsum(it.is_ms if number else it.was_ms for it in changes)
    results = [it.second if number else it.first for it in pairs]
    below, above = half_widths([_latency(held) for held in results])
    return ComparedSide(
        side.name,
        _how(pairs),
        total,
        (max(0.0, total - below), total + above),
        min(it.when for held in results for it in held),
    )


def _how(pairs: Sequence[ResultPair]) -> str:
    if len(pairs) == 1:
        return "measured"
    return f"sum of {counted(len(pairs), 'model' if pairs[0].subject.is_model else 'brick')}"


def _latency(results: Sequence[Found]) -> tuple[float, float, float]:
    newest = results[-1].statistics
    return newest.trimmed_mean_ms, newest.low_ms, newest.high_ms


def _parts(found: GroupComparison) -> tuple[ComparedPart, ...]:
    pairs = [*(found.models if len(found.models) > 1 else ()), *found.bricks]
    several = len({it.executions for it in pairs}) > 1
    return largest_first([part_of(_name_of(it, with_execution=several), it.change) for it in pairs])


def _name_of(pair: ResultPair, *, with_execution: bool) -> str:
    name = printable(pair.name)
    if pair.subject.is_model:
        name += " end to end"
    return f"{name} ({pair.executions.second.in_words})" if with_execution else name


def _remarks(found: GroupComparison, sides: Sequence[Side]) -> Iterator[str]:
    pairs = (*found.models, *found.bricks)
    if runs_of(pairs) == (1, 1):
        yield (
            "Each side is one run, and results of a run share its conditions: measure again before you trust a few "
            "percent."
        )
    yield from not_compared_lines(found, "A", "B")
    for letter, side in zip("AB", sides, strict=True):
        if side.in_doubt:
            yield f"{letter}: {counted(side.in_doubt, 'result')} in doubt left out."


def _nothing_in_common(first: Side, second: Side, found: GroupComparison) -> str:
    executions = [
        ", ".join(sorted({it.execution.in_words for it in side.results})[:3]) or "nothing" for side in (first, second)
    ]
    if any(found.alone) and executions[0] != executions[1]:
        return (
            f"{first.name} and {second.name} have no model and no brick of corresponding executions: "
            f"A has {executions[0]}, and B has {executions[1]}"
        )
    return f"{first.name} and {second.name} have no model and no brick in common: measure the same model in both"
