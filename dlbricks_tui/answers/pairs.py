"""Two models, variants, systems, runtimes, days, runs or results side by side, with one verdict."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from math import hypot
from typing import TYPE_CHECKING

from dlbricks_tui.answers.changes import (
    GroupComparison,
    ResultPair,
    compare,
    not_compared_lines,
    overall,
    runs_of,
    timing_of_results,
)
from dlbricks_tui.answers.estimates import Comparison
from dlbricks_tui.answers.estimating import open_estimator
from dlbricks_tui.answers.sides import (
    ComparisonError,
    NamedSelection,
    PairKind,
    facts_of,
    select_named,
    side_of_selection,
)
from dlbricks_tui.errors import UserError
from dlbricks_tui.estimate.compositions import milliseconds as in_milliseconds
from dlbricks_tui.printable import printable
from dlbricks_tui.runtime.variant import kernels_in_words, stated_threads, threads_in_words
from dlbricks_tui.store.change import BRICKS, MODELS, Change, Timing, Verdict, all_compared, compared
from dlbricks_tui.store.errors import DamagedResultError
from dlbricks_tui.store.labels import kind_of_label, label_of
from dlbricks_tui.store.selections import equal
from dlbricks_tui.wording.numbers import counted, minute_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dlbricks_tui.answers.estimating import Remarks
    from dlbricks_tui.answers.scope import EstimateOptions
    from dlbricks_tui.answers.sides import Found, Side
    from dlbricks_tui.estimate.knowledge import Latency
    from dlbricks_tui.estimate.parts import Part
    from dlbricks_tui.estimate.system_estimate import SystemEstimate
    from dlbricks_tui.folders import DataFolder
    from dlbricks_tui.models.library import ModelSource
    from dlbricks_tui.store.columns import Summary
    from dlbricks_tui.store.database import ResultsDatabase
    from dlbricks_tui.store.selections import Selection


class NotComparableError(UserError):
    """Two things that cannot be compared, and why."""


@dataclass(frozen=True, slots=True)
class ComparedSide:
    """One of the two: its latency with the 95 % interval, and where that comes from.

    `how` is `measured`, `estimated`, `estimated, partly predicted`, or `sum of 12 bricks`.
    """

    name: str
    how: str
    ms: float
    interval: tuple[float, float]
    # The time of its oldest measurement (ISO 8601, UTC); empty if it is not known.
    since: str = ""


@dataclass(frozen=True, slots=True)
class ComparedPart:
    """A part of both: a model, a brick, or all layers of a kind; None where a side has no such part."""

    name: str
    a_ms: float | None
    b_ms: float | None
    # None where parts are sums, which have no interval of their own.
    verdict: Verdict | None = None
    # Corrected for the number of parts; None where parts are sums, or have too few samples.
    p_value: float | None = None

    @property
    def change(self) -> float | None:
        """The share by which B takes longer."""
        return self.b_ms / self.a_ms - 1.0 if self.a_ms and self.b_ms is not None else None

    @property
    def difference_ms(self) -> float:
        """The time by which B takes longer."""
        return (self.b_ms or 0.0) - (self.a_ms or 0.0)


@dataclass(frozen=True, slots=True)
class ComparedTwo:
    """A and B: the ratio of their latencies, B over A, with its 95 % interval, and what else differs."""

    # The kind of both: `model`, `variant`, `system`, `runtime`, `day`, `run`, `result`, or `selection`.
    of: str
    a: ComparedSide
    b: ComparedSide
    ratio: float
    interval: tuple[float, float]
    # B compared with A, and why that is unknown; else empty.
    verdict: Verdict
    reason: str
    # What the parts are: `bricks`, `kinds of layers`, `models and bricks`.
    parts_are: str
    # The largest difference first.
    parts: tuple[ComparedPart, ...]
    # The circumstances that differ: the values of A and B by the name.
    differences: Mapping[str, tuple[str, str]]
    # What to know before one trusts the ratio.
    remarks: tuple[str, ...] = ()


def compared_two(
    of: str,
    sides: tuple[ComparedSide, ComparedSide],
    change: Change,
    parts: tuple[str, tuple[ComparedPart, ...]],
    differences: Mapping[str, tuple[str, str]],
    remarks: Iterable[str],
) -> ComparedTwo:
    """Return A and B with the change from one to the other; `parts` begins with what they are."""
    verdict = change.verdict, change.reason
    return ComparedTwo(of, *sides, change.ratio, change.ratios, *verdict, *parts, differences, tuple(remarks))


def part_of(name: str, change: Change) -> ComparedPart:
    """Return a part with the change from A to B."""
    return ComparedPart(name, change.was_ms, change.is_ms, change.verdict, change.p_value)


def half_widths(timings: list[tuple[float, float, float]]) -> tuple[float, float]:
    """Return how far the interval of the sum of latencies, each a value with its bounds, reaches down and up."""
    return hypot(*(value - low for value, low, _ in timings)), hypot(*(high - value for value, _, high in timings))


def largest_first(parts: list[ComparedPart]) -> tuple[ComparedPart, ...]:
    """Return parts by the size of their differences; those without a significant difference come last."""
    unsure = (Verdict.SAME, Verdict.UNKNOWN)
    return tuple(sorted(parts, key=lambda it: (it.verdict in unsure, -abs(it.difference_ms), it.name)))


def compare_results(first: Side, second: Side, bricks: tuple[Side, Side] | None = None) -> ComparedTwo:
    """Compare two sides of one result each; `bricks` has the bricks of their runs, for whole models."""
    one, other = first.results[0], second.results[0]
    _refuse(first, second, one, other)
    change = compared(
        timing_of_results([one]), timing_of_results([other]), MODELS if other.subject.is_model else BRICKS
    )
    return compared_two(
        PairKind.RESULT,
        (_result_side(first, one), _result_side(second, other)),
        change,
        ("bricks of both runs", () if bricks is None else _bricks(*bricks)),
        {
            **({"what": (_named(one), _named(other))} if one.subject != other.subject else {}),
            **{it.name: (it.values[0], it.values[1]) for it in facts_of((first, second)) if it.differs},
            "measured": (minute_of(one.when), minute_of(other.when)),
            "samples": (f"{one.statistics.count:,}", f"{other.statistics.count:,}"),
        },
        _result_remarks(one, other),
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


def _result_side(side: Side, it: Found) -> ComparedSide:
    statistics = it.statistics
    interval = statistics.low_ms, statistics.high_ms
    return ComparedSide(side.name, "measured", statistics.trimmed_mean_ms, interval, it.when)


def _named(it: Found) -> str:
    return printable(f"{it.name} {it.subject.context}".strip())


def _bricks(first: Side, second: Side) -> tuple[ComparedPart, ...]:
    found = compare(first, second)
    return largest_first([part_of(printable(it.name), it.change) for it in found.bricks])


def _result_remarks(one: Found, other: Found) -> list[str]:
    if one.run == other.run:
        return ["Both are of one run, so they share its conditions."]
    if one.subject == other.subject:
        return []
    return ["They are of different bricks or models: the ratio says how their sizes differ, too."]


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
        (_sum_side(first, pairs, number=0), _sum_side(second, pairs, number=1)),
        change,
        (what, _selection_parts(found)),
        {
            it.name: (it.values[0], it.values[1])
            for it in facts_of((first, second))
            if (it.differs or (it.name == _DAYS and len(set(it.values)) > 1))
        },
        _selection_remarks(found, (first, second)),
    )


def _sum_side(side: Side, pairs: Sequence[ResultPair], *, number: int) -> ComparedSide:
    changes = [it.change for it in pairs]
    total = math.fsum(it.is_ms if number else it.was_ms for it in changes)
    results = [it.second if number else it.first for it in pairs]
    below, above = half_widths([_newest_latency(held) for held in results])
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


def _newest_latency(results: Sequence[Found]) -> tuple[float, float, float]:
    newest = results[-1].statistics
    return newest.trimmed_mean_ms, newest.low_ms, newest.high_ms


def _selection_parts(found: GroupComparison) -> tuple[ComparedPart, ...]:
    pairs = [*(found.models if len(found.models) > 1 else ()), *found.bricks]
    several = len({it.executions for it in pairs}) > 1
    return largest_first([part_of(_pair_name(it, with_execution=several), it.change) for it in pairs])


def _pair_name(pair: ResultPair, *, with_execution: bool) -> str:
    name = printable(pair.name)
    if pair.subject.is_model:
        name += " end to end"
    return f"{name} ({pair.executions.second.in_words})" if with_execution else name


def _selection_remarks(found: GroupComparison, sides: Sequence[Side]) -> Iterator[str]:
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


# Bricks are compared where they make up this share of the time of both, else kinds of layers.
_IN_COMMON = 0.5
_MEASURED, _ESTIMATED, _PREDICTED = "measured", "estimated", "estimated, partly predicted"


@dataclass(frozen=True, slots=True)
class EstimatedSide:
    """A model in a variant: its estimate, and its latency if it was timed end to end."""

    name: str
    found: SystemEstimate
    timing: Timing | None = None


def compare_estimates(of: str, first: EstimatedSide, second: EstimatedSide, *, cure: str = "") -> ComparedTwo:
    """Compare two models or variants; raise NotComparableError if one has no latency.

    `cure` tells what gives them one.
    """
    both = (first, second)
    batches = [it.found.variant.batch for it in both]
    items = batches if batches[0] != batches[1] else [1, 1]
    # Like is compared with like where that is possible.
    by_measured = all(it.found.end_to_end is not None for it in both) or any(
        _estimate_of(it.found) is None for it in both
    )
    known: list[Latency] = []
    for side in both:
        measured, estimated = side.found.end_to_end, _estimate_of(side.found)
        latency = (measured or estimated) if by_measured else (estimated or measured)
        if latency is None or not latency.value_ms > 0:
            raise NotComparableError(f"{side.name} has no latency yet{f': {cure}' if cure else ''}")
        known.append(latency)
    one, other = (_estimate_side(*it) for it in zip(both, known, items, strict=True))
    was, now = (_timing(*it) for it in zip(both, known, strict=True))
    return compared_two(
        of,
        (one, other),
        compared(was.per_item(items[0]), now.per_item(items[1])).around(other.ms / one.ms),
        _parts(first.found, second.found),
        dict(_differences(first.found, second.found)),
        _estimate_remarks(both, (one, other), batches),
    )


def _estimate_of(found: SystemEstimate) -> Latency | None:
    from dlbricks_tui.estimate.knowledge import Latency

    composed = found.estimate.composed
    if composed is None or found.estimate.is_partial or not composed.sequential_ms > 0:
        return None
    return Latency(composed.sequential_ms, composed.interval.low_ms, composed.interval.high_ms)


def _timing(side: EstimatedSide, known: Latency) -> Timing:
    is_measured = known is side.found.end_to_end
    if is_measured and side.timing is not None:
        return side.timing
    return known.timing(end_to_end=is_measured)


def _estimate_side(side: EstimatedSide, known: Latency, items: int) -> ComparedSide:
    found = side.found
    how = _PREDICTED if found.estimate.coverage.predicted else _ESTIMATED
    between = found.measured_between
    since = "" if between is None else datetime.fromtimestamp(between[0], timezone.utc).isoformat()
    value, low, high = (it / items for it in known)
    return ComparedSide(side.name, _MEASURED if known is found.end_to_end else how, value, (low, high), since)


def _estimate_remarks(
    both: Sequence[EstimatedSide], sides: Sequence[ComparedSide], batches: Sequence[int]
) -> Iterator[str]:
    if batches[0] != batches[1]:
        yield f"Batch sizes differ ({batches[0]} and {batches[1]}): the latencies are those of one item."
    if [it.how for it in sides].count(_MEASURED) == 1:
        yield "One was measured end to end and the other is estimated: measure both for a fair comparison."
    for letter, side in zip("AB", both, strict=True):
        if predicted := side.found.estimate.coverage.predicted:
            yield f"{letter}: {counted(predicted, 'layer')} of {side.found.estimate.coverage.layers:,} predicted."


def _parts(first: SystemEstimate, second: SystemEstimate) -> tuple[str, tuple[ComparedPart, ...]]:
    """Return the bricks that both have, or the kinds of layers where they have few bricks in common."""
    ones, others = _by_brick(first), _by_brick(second)
    common = [it for it in ones if it in others]
    shares = [_share(common, held) for held in (ones, others)]
    if min(shares) >= _IN_COMMON:
        keys = list(dict.fromkeys([*ones, *others]))
        both = [key for key in keys if key in ones and key in others]
        timings = [(_sum_of(ones[key]), _sum_of(others[key])) for key in both]
        verdicts = {key: change.verdict for key, change in zip(both, all_compared(timings), strict=True)}
        return "bricks", largest_first(
            [
                ComparedPart(_name_of(key, ones, others), _ms(ones.get(key)), _ms(others.get(key)), verdicts.get(key))
                for key in keys
            ]
        )
    kinds = [_by_kind(it) for it in (first, second)]
    names = dict.fromkeys([*kinds[0], *kinds[1]])
    return "kinds of layers", largest_first(
        [ComparedPart(name, kinds[0].get(name), kinds[1].get(name)) for name in names]
    )


_ByBrick = dict[str, list["Part"]]


def _by_brick(found: SystemEstimate) -> _ByBrick:
    held: defaultdict[str, list[Part]] = defaultdict(list)
    for part in found.estimate.parts:
        if part.counts and part.paid_ps:
            held[part.brick.key].append(part)
    return dict(held)


def _share(keys: Sequence[str], held: _ByBrick) -> float:
    total = sum(part.paid_ps for some in held.values() for part in some)
    return sum(part.paid_ps for key in keys for part in held[key]) / total if total else 0.0


def _name_of(key: str, ones: _ByBrick, others: _ByBrick) -> str:
    parts = ones.get(key) or others[key]
    times = sum(part.times for part in parts)
    name = printable(label_of(parts[0].brick.canonical)) or key[:12]
    return f"{name}, {times} times" if times > 1 else name


def _ms(parts: list[Part] | None) -> float | None:
    return None if parts is None else in_milliseconds(sum(part.paid_ps for part in parts))


def _sum_of(parts: Sequence[Part]) -> Timing:
    """Return the latency of all parts of a brick together."""
    value = sum(part.times * part.latency.value_ms for part in parts)
    below, above = half_widths(
        [(it.times * it.latency.value_ms, it.times * it.latency.low_ms, it.times * it.latency.high_ms) for it in parts]
    )
    return Timing(value_ms=value, low_ms=max(0.0, value - below), high_ms=value + above)


def _by_kind(found: SystemEstimate) -> dict[str, float]:
    held: defaultdict[str, int] = defaultdict(int)
    for part in found.estimate.parts:
        if part.counts and part.paid_ps:
            held[kind_of_label(label_of(part.brick.canonical)).value] += part.paid_ps
    return {kind: in_milliseconds(paid_ps) for kind, paid_ps in held.items()}


def _differences(first: SystemEstimate, second: SystemEstimate) -> Iterator[tuple[str, tuple[str, str]]]:
    told = [list(_facts(it)) for it in (first, second)]
    for (name, one), (_, other) in zip(*told, strict=True):
        if one != other:
            yield name, (one, other)


def _facts(found: SystemEstimate) -> Iterator[tuple[str, str]]:
    variant, estimate, way = found.variant, found.estimate, found.way
    yield "system", way.system
    yield "runtime", way.runtime.partition(" ")[0] or "none"
    yield "threads", threads_in_words(stated_threads(way.runtime))
    yield "batch size", str(variant.batch)
    yield "precision", variant.precision.value
    yield "kernels", ", ".join(kernels_in_words(variant.kernels))
    yield "level", estimate.level.value
    yield "method", way.protocol
    yield "layers", f"{estimate.coverage.layers:,}"
    yield "measured", _days(found)


def _days(found: SystemEstimate) -> str:
    if found.measured_between is None:
        return "not at all"
    first, last = (datetime.fromtimestamp(it, timezone.utc).date().isoformat() for it in found.measured_between)
    return first if first == last else f"{first} to {last}"


def compare_models(
    first: ModelSource, second: ModelSource, options: EstimateOptions, data: DataFolder, remarks: Remarks
) -> ComparedTwo:
    """Compare two models as the options estimate them; raise NotComparableError where one has no latency."""
    if (first.path, first.name) == (second.path, second.name):
        raise NotComparableError(
            f"both are {first.name}: name two models, or `dlbricks compare {first.name}` for its runtimes and variants"
        )
    with open_estimator(options, data, remarks) as estimator:
        answers = estimator.answers([first, second], estimator.scope_of([first, second]))
        if len(answers) < 2:
            raise NotComparableError("one of the two models cannot be read, so there is nothing to compare")
        sides = [EstimatedSide(it.source.name, it.found, it.inquiry.timing(it.found.way)) for it in answers]
    return compare_estimates(PairKind.MODEL, *sides, cure=f"`dlbricks run {first.name} {second.name}` measures both")


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
    summary = found[0]
    name = summary.name or summary.brick[:12] or summary.model[:12]
    return NamedSelection(f"{name}, {minute_of(summary.when)}", found, PairKind.RESULT)


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
            sides = [_side_of_result(store, it) for it in (first, second)]
            one, other = first.selection[0], second.selection[0]
            bricks: tuple[Side, Side] | None = None
            if not one.brick and not other.brick and one.run != other.run:
                # A run may have measured no bricks.
                with suppress(ComparisonError):
                    bricks = _bricks_of(store, one), _bricks_of(store, other)
            return compare_results(sides[0], sides[1], bricks)
        if kinds[0] == kinds[1]:
            return compare_selections(kinds[0], *(_side_called(store, it) for it in (first, second)))
        return compare_selections(PairKind.SELECTION, *(side_of_selection(store, it) for it in (first, second)))
    except ComparisonError as error:
        raise NotComparableError(str(error)) from None


def _side_called(store: ResultsDatabase, named: NamedSelection) -> Side:
    """Return the results of a selection by their name alone: both sides are of one kind."""
    return replace(side_of_selection(store, named), name=named.name)


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
