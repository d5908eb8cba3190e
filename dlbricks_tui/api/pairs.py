"""Two models, variants, systems, runtimes, days, runs or results side by side, with one verdict."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from itertools import chain
from math import hypot
from typing import TYPE_CHECKING

from dlbricks_tui.api.changes import (
    GroupComparison,
    ResultPair,
    compare,
    not_compared_lines,
    overall,
    require_comparable,
    runs_of,
    timing_of_results,
)
from dlbricks_tui.api.documents import taken
from dlbricks_tui.api.estimates import Comparison
from dlbricks_tui.api.estimating import open_estimator
from dlbricks_tui.api.open_models import PairKind
from dlbricks_tui.api.opening import input_words, reference_to
from dlbricks_tui.api.session import Remarks, WorkbenchSession
from dlbricks_tui.api.sides import (
    KINDS,
    Found,
    NamedSelection,
    NotComparableError,
    Side,
    differing,
    select_named,
    side_of_selection,
)
from dlbricks_tui.estimate.compositions import from_picoseconds
from dlbricks_tui.estimate.knowledge import MOST_SLOWER
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.printable import printable, shell_words
from dlbricks_tui.runtime.variant import kernels_in_words, stated_threads, threads_in_words
from dlbricks_tui.store.change import BRICKS, MODELS, Change, Timing, Verdict, all_compared, compared, with_doubt
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.documents import DamagedResultError
from dlbricks_tui.store.index import kind_of_label, label_of
from dlbricks_tui.store.selections import Selection, equal
from dlbricks_tui.store.statistics import mean_latency
from dlbricks_tui.wording.answers import options_of
from dlbricks_tui.wording.numbers import counted, minute_of

if TYPE_CHECKING:
    from dlbricks_tui.api.estimating import Answer
    from dlbricks_tui.api.open_models import ComparableRow
    from dlbricks_tui.api.scope import EstimateOptions
    from dlbricks_tui.estimate.knowledge import Latency
    from dlbricks_tui.estimate.parts import Part
    from dlbricks_tui.estimate.system_estimate import SystemEstimate
    from dlbricks_tui.folders import DataFolder
    from dlbricks_tui.store.columns import Summary


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


def _two(
    of: str,
    sides: Sequence[ComparedSide],
    change: Change,
    parts_are: str,
    parts: tuple[ComparedPart, ...],
    differences: Mapping[str, tuple[str, str]],
    remarks: Iterable[str],
) -> ComparedTwo:
    how = {"parts_are": parts_are, "parts": parts, "differences": differences, "remarks": tuple(remarks)}
    return taken(ComparedTwo, change, of=of, a=sides[0], b=sides[1], interval=change.ratios, **how)


def half_widths(timings: list[tuple[float, float, float]]) -> tuple[float, float]:
    """Return how far the interval of the sum of latencies, each a value with its bounds, reaches down and up."""
    return hypot(*(value - low for value, low, _ in timings)), hypot(*(high - value for value, _, high in timings))


def largest_first(parts: list[ComparedPart]) -> tuple[ComparedPart, ...]:
    """Return parts by the size of their differences; those without a significant difference come last."""
    unsure = (Verdict.SAME, Verdict.UNKNOWN)
    return tuple(sorted(parts, key=lambda it: (it.verdict in unsure, -abs(it.difference_ms), it.name)))


def _of_results(first: Side, second: Side, parts: tuple[ComparedPart, ...]) -> ComparedTwo:
    """Compare two sides of one result each; `parts` are the bricks of their runs, for whole models."""
    one, other = first.results[0], second.results[0]
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
    compared_sides: list[ComparedSide] = []
    for side, it in ((first, one), (second, other)):
        value, low, high = it.statistics.latency
        if not value > 0:
            raise NotComparableError(f"{side.name} has a latency of zero, to which there is no ratio")
        compared_sides.append(ComparedSide(side.name, _MEASURED, value, (low, high), it.when))
    limits, is_same = MODELS if other.subject.is_model else BRICKS, one.subject == other.subject
    change = compared(timing_of_results([one]), timing_of_results([other]), limits)
    names = [printable(f"{it.name} {it.subject.context}".strip()) for it in (one, other)]
    differences = {
        **({} if is_same else {"what": (names[0], names[1])}),
        **differing((first, second)),
        "measured": (minute_of(one.when), minute_of(other.when)),
        "samples": (f"{one.statistics.count:,}", f"{other.statistics.count:,}"),
    }
    remark = "" if is_same else "They are of different bricks or models: the ratio says how their sizes differ, too."
    if one.run == other.run:
        remark = "Both are of one run, so they share its conditions."
    return _two(
        PairKind.RESULT, compared_sides, change, "bricks of both runs", parts, differences, filter(None, [remark])
    )


def _sum_side(side: Side, results: Sequence[tuple[Sequence[Found], int]], total: float) -> ComparedSide:
    """Return the sum of the latencies of a side, each of so many items."""
    how = f"sum of {counted(len(results), 'model' if results[0][0][0].subject.is_model else 'brick')}"
    # Each is the mean of its runs, as the total is.
    means = (mean_latency([it.statistics.latency for it in held]) for held, _ in results)
    below, above = half_widths([_each(mean, items) for mean, (_, items) in zip(means, results, strict=True)])
    interval = max(0.0, total - below), total + above
    since = min(it.when for held, _ in results for it in held)
    return ComparedSide(side.name, _MEASURED if len(results) == 1 else how, total, interval, since)


def _each(latency: tuple[float, float, float], items: int) -> tuple[float, float, float]:
    value, low, high = (it / items for it in latency)
    return value, low, high


def _part(pair: ResultPair, *, with_execution: bool = False) -> ComparedPart:
    name, change = printable(pair.name) + (" end to end" if pair.subject.is_model else ""), pair.change
    name = f"{name} ({pair.executions.second.in_words})" if with_execution else name
    return ComparedPart(name, change.was_ms, change.is_ms, change.verdict, change.p_value)


def _of_one_item(first: int, second: int) -> str:
    return f"Batch sizes differ ({first} and {second}): the latencies are those of one item."


def _selection_remarks(found: GroupComparison) -> Iterator[str]:
    pairs = found.of_one_kind
    if len(pairs) > 1:
        over = counted(len(pairs), "model" if found.models else "brick")
        yield f"The ratio is the geometric mean over {over}, and the latencies are sums."
    if runs_of((*found.models, *found.bricks)) == (1, 1):
        yield (
            "Each side is one run, and results of a run share its conditions: measure again before you trust a few "
            "percent."
        )
    yield from dict.fromkeys(_of_one_item(*it.items) for it in found.executions if it.items != (1, 1))
    yield from not_compared_lines(found, "A", "B")
    for letter, side in zip("AB", (found.first, found.second), strict=True):
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
    estimates = [_estimate_of(it.found) for it in both]
    # Like is compared with like where that is possible.
    by_measured = all(it.found.end_to_end is not None for it in both) or None in estimates
    sides: list[ComparedSide] = []
    timings: list[Timing] = []
    for side, estimated, number in zip(both, estimates, items, strict=True):
        measured = side.found.end_to_end
        known = (measured or estimated) if by_measured else (estimated or measured)
        if known is None or not known.value_ms > 0:
            raise NotComparableError(f"{side.name} has no latency yet{f': {cure}' if cure else ''}")
        is_measured, between = known is measured, side.found.measured_between
        how = _PREDICTED if side.found.estimate.coverage.predicted else _ESTIMATED
        since = "" if between is None else datetime.fromtimestamp(between[0], timezone.utc).isoformat()
        value, low, high = _each(known, number)
        sides.append(ComparedSide(side.name, _MEASURED if is_measured else how, value, (low, high), since))
        own = side.timing if is_measured else None
        timings.append((own or known.timing(end_to_end=is_measured)).per_item(number))
    change = compared(timings[0], timings[1]).around(sides[1].ms / sides[0].ms)
    told = [dict(_facts(it.found)) for it in both]
    differences = {name: (one, told[1][name]) for name, one in told[0].items() if one != told[1][name]}
    parts = _parts(first.found, second.found, items)
    return _two(of, sides, change, *parts, differences, _estimate_remarks(both, sides, batches))


def _estimate_of(found: SystemEstimate) -> Latency | None:
    latency = found.estimate.latency
    return latency if latency is not None and latency.value_ms > 0 else None


def _estimate_remarks(
    both: Sequence[EstimatedSide], sides: Sequence[ComparedSide], batches: Sequence[int]
) -> Iterator[str]:
    if batches[0] != batches[1]:
        yield _of_one_item(*batches)
    if [it.how for it in sides].count(_MEASURED) == 1:
        yield "One was measured end to end and the other is estimated: measure both for a fair comparison."
    for letter, side in zip("AB", both, strict=True):
        if predicted := side.found.estimate.coverage.predicted:
            yield f"{letter}: {counted(predicted, 'layer')} of {side.found.estimate.coverage.layers:,} predicted."


def _parts(first: SystemEstimate, second: SystemEstimate, items: Sequence[int]) -> tuple[str, tuple[ComparedPart, ...]]:
    """Return the bricks that both have, or the kinds of layers where they have few bricks in common.

    Latencies are divided by the items of each.
    """
    ones, others = (_parts_by(it, lambda part: part.brick.key) for it in (first, second))
    both = [key for key in ones if key in others]
    verdicts: dict[str, Verdict] = {}
    shares = [
        sum(_paid_ps(held[key]) for key in both) / (_paid_ps(chain(*held.values())) or 1) for held in (ones, others)
    ]
    is_of_bricks = min(shares) >= _IN_COMMON
    if is_of_bricks:
        sums = [(_sum_of(ones[key]).per_item(items[0]), _sum_of(others[key]).per_item(items[1])) for key in both]
        changes = all_compared(sums, BRICKS)
        verdicts = {key: change.verdict for key, change in zip(both, changes, strict=True)}
    else:
        ones, others = (
            _parts_by(it, lambda part: kind_of_label(label_of(part.brick.canonical)).value) for it in (first, second)
        )
    found: list[ComparedPart] = []
    for key in dict.fromkeys([*ones, *others]):
        name, parts = key, ones.get(key) or others[key]
        if is_of_bricks:
            times = sum(part.times for part in parts)
            name = printable(label_of(parts[0].brick.canonical)) or key[:12]
            name = f"{name}, {times} times" if times > 1 else name
        a_ms, b_ms = (
            from_picoseconds(_paid_ps(held[key])) / number if key in held else None
            for held, number in zip((ones, others), items, strict=True)
        )
        found.append(ComparedPart(name, a_ms, b_ms, verdicts.get(key)))
    return "bricks" if is_of_bricks else "kinds of layers", largest_first(found)


def _parts_by(found: SystemEstimate, key: Callable[[Part], str]) -> dict[str, list[Part]]:
    held: defaultdict[str, list[Part]] = defaultdict(list)
    for part in found.estimate.parts:
        if part.counts and part.paid_ps:
            held[key(part)].append(part)
    return dict(held)


def _paid_ps(parts: Iterable[Part]) -> int:
    return sum(part.paid_ps for part in parts)


def _in_doubt(part: Part) -> tuple[float, float, float]:
    """Return the latency of a part, in doubt if its host was clearly slower than a quiet one."""
    shared = 0.0 if part.measured is None else part.measured.shared or 0.0
    return with_doubt(part.latency, shared if shared >= MOST_SLOWER - 1 else 0.0)


def _sum_of(parts: Sequence[Part]) -> Timing:
    """Return the latency of all parts of a brick together, with the doubt that the host was not quiet."""
    value = sum(part.times * part.latency.value_ms for part in parts)
    doubted = [(part.times, *_in_doubt(part)) for part in parts]
    below, above = half_widths([(times * ms, times * low, times * high) for times, ms, low, high in doubted])
    return Timing(value_ms=value, low_ms=max(0.0, value - below), high_ms=value + above)


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
    between = found.measured_between or ()
    days = [datetime.fromtimestamp(it, timezone.utc).date().isoformat() for it in between]
    yield "measured", " to ".join(dict.fromkeys(days)) or "not at all"


def compare_models(
    first: ModelSource, second: ModelSource, options: EstimateOptions, data: DataFolder, remarks: Remarks
) -> ComparedTwo:
    """Compare two models as the options estimate them; raise NotComparableError where one has no latency."""
    # A name may stand for several models that are no samples; their paths do not.
    named = [reference_to(it, has_name=it.task is not None) for it in (first, second)]
    if (first.path, first.name) == (second.path, second.name):
        command = shell_words(["dlbricks", "compare", named[0]])
        raise NotComparableError(
            f"both are {first.name}: name two models, or `{command}` for its runtimes and variants"
        )
    with open_estimator(options, data, remarks) as estimator:
        answers = estimator.answers([first, second], estimator.scope_of([first, second]))
        if len(answers) < 2:
            raise NotComparableError("one of the two models cannot be read, so there is nothing to compare")
        sides = [EstimatedSide(it.source.name, it.found, it.inquiry.timing(it.found.way)) for it in answers]
    words = options_of(options.runtime or "", options, options.level, options.cutting, options.usual_cutting)
    command = shell_words(["dlbricks", "run", *named, *words, *input_words(options)])
    return compare_estimates(PairKind.MODEL, *sides, cure=f"`{command}` measures both")


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
    both, kinds = (first, second), (first.kind, second.kind)
    is_one_kind = kinds[0] == kinds[1]
    if PairKind.RESULT in kinds and not is_one_kind:
        raise NotComparableError(
            f"A is one {kinds[0]} and B one {kinds[1]}: compare two of one kind"
            if PairKind.SELECTION not in kinds
            else "one of them is a single result, and the other one several: compare two of one kind"
        )
    for named in both if kinds[0] == PairKind.RESULT else ():
        if not named.selection[0].good:
            flags: tuple[str, ...] = ()
            with suppress(DamagedResultError):
                flags = named.selection.result(0).flags
            why = f" ({', '.join(flags)})" if flags else ""
            raise NotComparableError(f"{named.name} is in doubt{why}: measure it again")
    one, other = (side_of_selection(store, it) for it in both)
    if is_one_kind:
        # Their names tell enough.
        one, other = replace(one, name=first.name), replace(other, name=second.name)
    if kinds[0] == PairKind.RESULT:
        return _of_results(one, other, _bricks_of_runs(store, first.selection[0], second.selection[0]))
    require_comparable((one, other))
    found = compare(one, other)
    pairs = found.of_one_kind
    change = overall(pairs)
    if change is None:
        raise NotComparableError(_nothing_in_common(one, other, found))
    shown = [*(found.models if len(found.models) > 1 else ()), *found.bricks]
    several = len({it.executions for it in shown}) > 1
    sums = [
        _sum_side(one, [(it.first, it.executions.items[0]) for it in pairs], change.was_ms),
        _sum_side(other, [(it.second, it.executions.items[1]) for it in pairs], change.is_ms),
    ]
    return _two(
        (first.kind if is_one_kind else PairKind.SELECTION),
        sums,
        change,
        "models and bricks" if found.models and found.bricks else "models" if found.models else "bricks",
        largest_first([_part(it, with_execution=several) for it in shown]),
        # The days are no circumstance for a report, which has them with the numbers.
        differing((one, other), "measured"),
        _selection_remarks(found),
    )


def _bricks_of_runs(store: ResultsDatabase, *results: Summary) -> tuple[ComparedPart, ...]:
    """Return the bricks of the runs of two whole models; runs may have measured none."""
    if any(it.brick for it in results) or results[0].run == results[1].run:
        return ()
    sides: list[Side] = []
    for it in results:
        asked = equal(run=it.run, of="brick", runtime=it.runtime, batch_size=it.batch_size)
        with suppress(NotComparableError):
            sides.append(side_of_selection(store, NamedSelection(f"run {it.run}", store.results(asked))))
    return largest_first([_part(it) for it in compare(sides[0], sides[1]).bricks]) if len(sides) == 2 else ()


def compare_rows(
    session: WorkbenchSession,
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
    with session.results() as store:
        return compare_named(store, *(_named(store, row) for row in (first, second)))


def _estimated(
    session: WorkbenchSession, row: ComparableRow, answer_for: Callable[[ModelSource], Answer] | None
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
