"""Two results compared: two bricks, or two whole models, on any days and systems."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from dlbricks_tui.answers.comparisons.changes import Group, compare
from dlbricks_tui.answers.comparisons.side_facts import facts_of
from dlbricks_tui.answers.pairs.compared import (
    ComparedPart,
    ComparedSide,
    ComparedTwo,
    Kind,
    NotComparableError,
    largest_first,
    ratio_of,
)
from dlbricks_tui.evaluations.change import Timing
from dlbricks_tui.printable import printable
from dlbricks_tui.wording.ages import minute_of

if TYPE_CHECKING:
    from dlbricks_tui.answers.comparisons.sides import Found, Side


def compare_results(first: Side, second: Side, bricks: tuple[Side, Side] | None = None) -> ComparedTwo:
    """Compare two sides of one result each; `bricks` has the bricks of their runs, for whole models."""
    one, other = first.results[0], second.results[0]
    _refuse(first, second, one, other)
    ratio = ratio_of(_timing(one), _timing(other))
    return ComparedTwo(
        Kind.RESULT,
        _side(first, one),
        _side(second, other),
        ratio.value,
        (ratio.low, ratio.high),
        ratio.verdict,
        "bricks of both runs",
        () if bricks is None else _bricks(*bricks),
        {
            **({"what": (_named(one), _named(other))} if one.subject != other.subject else {}),
            **{it.name: (it.values[0], it.values[1]) for it in facts_of((first, second)) if it.differs},
            "measured": (minute_of(one.when), minute_of(other.when)),
            "samples": (f"{one.statistics.count:,}", f"{other.statistics.count:,}"),
        },
        tuple(_remarks(one, other)),
    )


def _refuse(first: Side, second: Side, one: Found, other: Found) -> None:
    if one.id == other.id:
        raise NotComparableError("A and B are the same result: choose another one")
    if one.subject.is_model is not other.subject.is_model:
        words = ["a whole model" if it.subject.is_model else "a brick" for it in (one, other)]
        raise NotComparableError(
            f"{first.name} is of {words[0]} and {second.name} of {words[1]}: compare two models or two bricks"
        )
    if one.execution.method != other.execution.method:
        raise NotComparableError(
            f"A was measured by method {one.execution.method} and B by method {other.execution.method}: results of "
            "different methods are not compared"
        )
    for side, it in ((first, one), (second, other)):
        if not it.statistics.trimmed_mean_ms > 0:
            raise NotComparableError(f"{side.name} has a latency of zero, to which there is no ratio")


def _side(side: Side, it: Found) -> ComparedSide:
    statistics = it.statistics
    interval = statistics.low_ms, statistics.high_ms
    return ComparedSide(side.name, "measured", statistics.trimmed_mean_ms, interval, it.when)


def _timing(it: Found) -> Timing:
    statistics = it.statistics
    samples: array[float] = it.samples_ms
    return Timing(
        value_ms=statistics.trimmed_mean_ms,
        low_ms=statistics.low_ms,
        high_ms=statistics.high_ms,
        samples_ms=(*samples,),
    )


def _named(it: Found) -> str:
    return printable(f"{it.name} {it.subject.context}".strip())


def _bricks(first: Side, second: Side) -> tuple[ComparedPart, ...]:
    found = compare(*(Group(it.name, it.results, it.contents) for it in (first, second)))
    return largest_first(
        [ComparedPart(printable(it.name), it.change.was_ms, it.change.is_ms, it.change.verdict) for it in found.bricks]
    )


def _remarks(one: Found, other: Found) -> list[str]:
    if one.run == other.run:
        return ["Both are of one run, so they share its conditions."]
    if one.subject == other.subject:
        return []
    return ["They are of different bricks or models: the ratio says how their sizes differ, too."]
