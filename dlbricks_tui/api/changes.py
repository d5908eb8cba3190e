"""The changes from one group of results to another, what only one of them has, and the documents about both."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

from dlbricks_tui.api.documents import attributes_of, document, taken
from dlbricks_tui.api.sides import (
    Corresponding,
    Found,
    NamedSelection,
    NotComparableError,
    ResultExecution,
    Side,
    SideFact,
    Subject,
    corresponding,
    executions_of,
    facts_of,
    side_of_selection,
    system_in_words,
)
from dlbricks_tui.models.content import without_cycle_search
from dlbricks_tui.runtime.traits import runtime_title
from dlbricks_tui.store.change import (
    BRICKS,
    MODELS,
    SIGNIFICANT,
    Change,
    Limits,
    Timing,
    Verdict,
    all_compared,
    changes_from,
    judged,
    newest_together,
    timing_by,
)
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.statistics import mean_ratio
from dlbricks_tui.wording.numbers import counted, names_of

# A model has other keys in other formats, at other batch sizes, and as other runtimes fuse it.
_CHANGES_KEYS = frozenset({"framework", "version", "batch", "precision", "level"})
_ORDER = (Verdict.SLOWER, Verdict.FASTER, Verdict.UNKNOWN, Verdict.SAME)
OTHER_CONTENT = "another model has this name there"
NO_RESULT = "no result there"
NO_EXECUTION = "no corresponding execution there"
NO_TIME = "a latency of zero"
_MOST_NAMED = 10


@dataclass(frozen=True, slots=True)
class ResultPair:
    """A model or a brick that both groups have in corresponding executions: its change, and the results behind it."""

    name: str
    subject: Subject
    executions: Corresponding
    change: Change
    first: tuple[Found, ...]
    second: tuple[Found, ...]


@dataclass(frozen=True, slots=True)
class NotCompared:
    """A model or brick that only one side has, or that cannot be compared, and why."""

    side: str
    # `model` or `brick`.
    of: str
    name: str
    key: str
    context: str
    system: str
    execution: str
    reason: str


@dataclass(frozen=True, slots=True)
class GroupComparison:
    """The changes from the first group to the second one, of models and of bricks, and what each has alone."""

    first: Side
    second: Side
    executions: tuple[Corresponding, ...]
    models: tuple[ResultPair, ...]
    bricks: tuple[ResultPair, ...]
    alone: tuple[tuple[NotCompared, ...], tuple[NotCompared, ...]]

    @property
    def of_one_kind(self) -> tuple[ResultPair, ...]:
        """The models, or without any the bricks: a ratio of both would count the bricks of a model twice."""
        return self.models or self.bricks


def overall(pairs: Sequence[ResultPair], limits: Limits | None = None) -> Change | None:
    """Return the change of all pairs together; None without pairs.

    It is the geometric mean of the ratios, with the wider one of two intervals: that of the differences between the
    ratios, and that of the doubt about each. The latencies are sums.
    """
    if not pairs:
        return None
    changes, usual = [it.change for it in pairs], MODELS if pairs[0].subject.is_model else BRICKS
    processes, asked = min(runs_of(pairs)), limits or usual
    if len(changes) == 1:
        (only,) = changes
        return only if limits is None or only.p_value is None else judged(only, processes, limits)
    ratio, low, high = mean_ratio([it.ratio for it in changes])
    below, above = (
        math.hypot(*(math.log(max(1e-9, it.ratios[bound]) / it.ratio) for it in changes)) / len(changes)
        for bound in (0, 1)
    )
    low, high = min(low, ratio * math.exp(-below)), max(high, ratio * math.exp(above))
    found = Change(
        was_ms=math.fsum(it.was_ms for it in changes),
        is_ms=math.fsum(it.is_ms for it in changes),
        change=ratio - 1.0,
        interval=(low - 1.0, high - 1.0),
        p_value=None,
        significant=not low <= 1.0 <= high,
    )
    return judged(found, processes, asked)


def runs_of(pairs: Iterable[ResultPair]) -> tuple[int, int]:
    """Return in how many runs each side was measured."""
    firsts, seconds = zip(*((it.first, it.second) for it in pairs), strict=True)
    first, second = (len({it.run for held in side for it in held}) for side in (firsts, seconds))
    return first, second


def number_tested(pairs: Iterable[ResultPair]) -> int:
    """Return the number of pairs with enough samples for a test."""
    return sum(it.change.p_value is not None for it in pairs)


def false_alarms(pairs: Iterable[ResultPair]) -> float:
    """Return how many of the changes that count as significant are expected to be chance, at most."""
    return SIGNIFICANT * sum(it.change.significant for it in pairs)


def compare(first: Side, second: Side, *, bricks: bool = True) -> GroupComparison:
    """Compare two groups of results by their newest ones; without bricks, only whole models."""
    groups = first, second
    executions = corresponding(executions_of(first.results), executions_of(second.results))
    ones, others = _together(first, bricks), _together(second, bricks)
    matched: list[_Matched] = []
    alone: tuple[list[NotCompared], list[NotCompared]] = ([], [])

    def leave_out(number: int, results: Sequence[Found], reason: str) -> None:
        newest = results[-1]
        it, execution, kind = newest.subject, newest.execution, "model" if newest.subject.is_model else "brick"
        told = it.key, it.context, execution.system, execution.in_words
        alone[number].append(NotCompared(groups[number].name, kind, newest.name, *told, reason))

    for both in executions:
        mine, theirs = ones.pop(both.first, {}), others.pop(both.second, {})
        for one, other in _subjects(mine, theirs, both, groups):
            found = mine.pop(one), theirs.pop(other)
            if all(it.statistics.trimmed_mean_ms > 0 for held in found for it in held):
                matched.append((both, *found))
            else:
                for place, results in enumerate(found):
                    leave_out(place, results, NO_TIME)
        for number, (held, rest) in enumerate(((mine, theirs), (theirs, mine))):
            names = {it[-1].name for it in rest.values() if it[-1].subject.is_model}
            for results in held.values():
                is_other = results[-1].subject.is_model and results[-1].name in names
                leave_out(number, results, OTHER_CONTENT if is_other else NO_RESULT)
    for number, by_execution in enumerate((ones, others)):
        for results in (it for held in by_execution.values() for it in held.values()):
            leave_out(number, results, NO_EXECUTION)
    for lost in alone:
        lost.sort(key=lambda it: (it.of == "brick", it.name, it.key, it.context, it.system, it.execution))
    models, others_matched = ([it for it in matched if it[2][-1].subject.is_model is kind] for kind in (True, False))
    changes = _judged(models, MODELS), _judged(others_matched, BRICKS)
    return GroupComparison(first, second, tuple(executions), *changes, (tuple(alone[0]), tuple(alone[1])))


_BySubject = dict[Subject, list[Found]]
# The results of a model or brick in both groups.
_Matched = tuple[Corresponding, list[Found], list[Found]]


def _together(group: Side, bricks: bool) -> dict[ResultExecution, _BySubject]:
    """Return the results that count by execution and subject: the newest of each run of about one day, oldest first."""
    found: dict[ResultExecution, _BySubject] = {}
    # Equal executions share what they hold; looking up their ids is faster than hashing them.
    executions = {id(it.execution): it.execution for it in group.results}
    held = {number: found.setdefault(it, {}) for number, it in executions.items()}
    for it in group.results:
        if bricks or it.subject.is_model:
            held[id(it.execution)].setdefault(it.subject, []).append(it)
    for by in found.values():
        for subject, some in by.items():
            if len(some) > 1:
                # Results of one moment are ordered by their ids, so that the same results give the same page.
                by[subject] = newest_together(sorted(some, key=attrgetter("id")))
    return found


def _subjects(
    mine: _BySubject, theirs: _BySubject, both: Corresponding, groups: tuple[Side, Side]
) -> list[tuple[Subject, Subject]]:
    """Return the subjects that are the same: those of the same keys, and models of one name if keys have to differ."""
    same = [(it, it) for it in mine if it in theirs]
    if not both.differ & _CHANGES_KEYS:
        return same
    known = {one for one, _ in same}
    named: tuple[dict[str, list[Subject]], dict[str, list[Subject]]] = ({}, {})
    for held, by_name in zip((mine, theirs), named, strict=True):
        for it in held:
            if it.is_model and it not in known:
                by_name.setdefault(held[it][-1].name, []).append(it)
    for name, ones in named[0].items():
        others = named[1].get(name, [])
        if len(ones) == len(others) == 1 and _may_be_same(ones[0], others[0], both, groups):
            same.append((ones[0], others[0]))
    return same


def _may_be_same(one: Subject, other: Subject, both: Corresponding, groups: tuple[Side, Side]) -> bool:
    """Return whether models of one name are the same: their files are, unless formats or precisions differ."""
    if "framework" in both.differ or "precision" in both.differ:
        return True
    digests = [group.contents.get(it.key) for it, group in zip((one, other), groups, strict=True)]
    return None in digests or digests[0] == digests[1]


def timing_of_results(results: Sequence[Found]) -> Timing:
    """Return the latency of results of the same thing, each of a run of its own."""
    samples_ms = [sample for it in results for sample in it.samples_ms]
    return timing_by([it.statistics.latency for it in results], samples_ms, busy=any(it.busy for it in results))


def _judged(matched: Sequence[_Matched], limits: Limits) -> tuple[ResultPair, ...]:
    """Return the pairs with their changes: slower ones first, of each verdict the largest change first."""
    timings: list[tuple[Timing, Timing]] = []
    for both, *held in matched:
        was, now = (timing_of_results(it).per_item(number) for it, number in zip(held, both.items, strict=True))
        timings.append((was, now))
    pairs = [
        ResultPair(now[-1].name, now[-1].subject, both, change, tuple(was), tuple(now))
        for (both, was, now), change in zip(matched, all_compared(timings, limits), strict=True)
    ]
    return tuple(sorted(pairs, key=_largest_first))


def _largest_first(pair: ResultPair) -> tuple[object, ...]:
    return (
        _ORDER.index(pair.change.verdict),
        -abs(pair.change.change),
        pair.name,
        str(pair.subject),
        pair.executions.first.in_words,
        pair.executions.first.system,
    )


def not_compared_lines(found: GroupComparison, first: str, second: str) -> Iterator[str]:
    """Yield what each of two sides of these names has alone: the numbers, the names of models, and the reasons."""
    for alone, own, other in zip(found.alone, (first, second), (second, first), strict=True):
        models = list(dict.fromkeys(it.name for it in alone if it.of == "model"))
        bricks = sum(it.of == "brick" for it in alone)
        what = [f"{counted(len(models), 'model')} ({names_of(models, _MOST_NAMED)})"] if models else []
        what += [counted(bricks, "brick")] if bricks else []
        reasons = sorted(Counter(it.reason for it in alone).items(), key=lambda it: (-it[1], it[0]))
        why = "; ".join(f"{reason} ({count:,})" if len(reasons) > 1 else reason for reason, count in reasons)
        if alone:
            yield f"Of {own} and not compared with {other}: {' and '.join(what)}: {why}."


def regrouped(groups: Sequence[Side], label: Callable[[Found], str]) -> list[Side]:
    """Return the results of all groups in groups of one label each; results without a label are left out.

    A label counts in the first group that has it: groups are not mixed. Labels of the first group come first, and of
    these the ones with the most results.
    """
    contents = {key: digest for group in groups for key, digest in group.contents.items()}
    found: defaultdict[str, list[Found]] = defaultdict(list)
    first_of: dict[str, int] = {}
    for number, group in enumerate(groups):
        for it in group.results:
            name = label(it)
            if name and first_of.setdefault(name, number) == number:
                found[name].append(it)
    order = sorted(found, key=lambda name: (first_of[name], -len(found[name]), name))
    return [Side(name=name, results=tuple(found[name]), contents=contents) for name in order]


# Later rows have no estimates, which take long.
MOST_ESTIMATED = 60

EstimateOf = Callable[[Found], float | None]


@dataclass(frozen=True, slots=True)
class ComparedColumn:
    """A system or version, relative to the first one."""

    name: str
    ratio: float | None
    interval: tuple[float, float] | None
    models: int


@dataclass(frozen=True, slots=True)
class ComparedCell:
    """A model on a system or by a version, with its latency over that of the first one."""

    column: str
    ms: float
    estimate_ms: float | None
    ratio: float
    interval: tuple[float, float]
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """A model in an execution on the first system or by the first version, and on each other one that has it."""

    model: str
    execution: str
    ms: float
    estimate_ms: float | None
    others: tuple[ComparedCell, ...]


@dataclass(frozen=True, slots=True)
class Columns:
    """Systems or versions side by side; the first one is what the others are relative to."""

    what: str
    first: str
    others: tuple[ComparedColumn, ...]
    models: tuple[ComparedRow, ...]
    # What is not compared.
    remarks: tuple[str, ...]


def hosts_of(sides: Sequence[Side], estimate: EstimateOf) -> Columns | None:
    """Return the systems side by side; None for one system."""
    names = {system: system_in_words(side, system) for side in sides for system in side.systems}
    return _side_by_side("system", sides, lambda it: names[it.execution.system], estimate)


def versions_of(sides: Sequence[Side], estimate: EstimateOf) -> Iterator[Columns]:
    """Yield the frameworks, the versions of each, and those of dlbricks side by side, wherever there are several."""
    frameworks = sorted({it.framework for side in sides for it in executions_of(side.results)})
    labels: dict[str, Callable[[Found], str]] = {
        "framework": lambda it: runtime_title(it.execution.framework),
        **{f"version of {runtime_title(it)}": partial(_version_of, it) for it in frameworks},
        "version of dlbricks": lambda it: it.release and f"dlbricks {it.release}",
    }
    for what, label in labels.items():
        found = _side_by_side(what, sides, label, estimate)
        if found is not None:
            yield found


def _version_of(framework: str, it: Found) -> str:
    """Return the framework with its version; empty for a result of another framework."""
    return f"{runtime_title(framework)} {it.execution.version}" if it.execution.framework == framework else ""


def _side_by_side(
    what: str, sides: Sequence[Side], label: Callable[[Found], str], estimate: EstimateOf
) -> Columns | None:
    """Return the results of each label, compared with those of the first one; None for one label."""
    held = regrouped(sides, label)
    if len(held) < 2:
        return None
    first, *others = held
    columns: list[ComparedColumn] = []
    by_model: dict[tuple[str, str, Subject], dict[str, ResultPair]] = {}
    remarks: list[str] = []
    for other in others:
        found = compare(first, other, bricks=False)
        change = overall(found.models)
        ratio, interval = (None, None) if change is None else (change.ratio, change.ratios)
        columns.append(ComparedColumn(other.name, ratio, interval, len(found.models)))
        for pair in found.models:
            one = pair.first[-1]
            by_model.setdefault((one.name, one.execution.in_words, one.subject), {})[other.name] = pair
        if first.methods & other.methods:
            remarks += not_compared_lines(found, first.name, other.name)
        else:
            remarks.append(f"{other.name} was measured by another method than {first.name}, and is not compared.")
    rows = [
        _row(by_model[key], estimate if place < MOST_ESTIMATED else lambda _: None)
        for place, key in enumerate(sorted(by_model, key=str))
    ]
    return Columns(what, first.name, tuple(columns), tuple(rows), tuple(remarks))


def _row(pairs: Mapping[str, ResultPair], estimate: EstimateOf) -> ComparedRow:
    pair = next(iter(pairs.values()))
    one = pair.first[-1]
    cells = [
        ComparedCell(
            name, it.change.is_ms, estimate(it.second[-1]), it.change.ratio, it.change.ratios, it.change.verdict
        )
        for name, it in pairs.items()
    ]
    return ComparedRow(one.name, one.execution.in_words, pair.change.was_ms, estimate(one), tuple(cells))


@dataclass(frozen=True, slots=True)
class ComparedSelection:
    """One side of a comparison: what it is, and the number of its results."""

    name: str
    results: int
    # The sum of the latencies of the models that both sides have; without any, of their bricks.
    total_ms: float
    # The bricks and models that only this side has.
    alone: int


@dataclass(frozen=True, slots=True)
class ComparedPair:
    """A brick in a context, or a whole model, that both sides have."""

    name: str
    # `brick` or `model`.
    of: str
    # The keys; `brick` and `context` are empty for a whole model, and `model` for a brick.
    brick: str
    context: str
    model: str
    # The runtime and variant of B.
    execution: str
    # The ids of the newest results.
    a: str
    b: str
    a_ms: float
    b_ms: float
    # The share by which B takes longer.
    change: float
    # Corrected for the number of pairs; null if there are too few samples.
    p_value: float | None
    verdict: Verdict
    # Why the verdict is unknown; else empty.
    reason: str


@dataclass(frozen=True, slots=True)
class ComparedResults:
    """Two selections of results, and all pairs of them: significant changes first, the greatest first."""

    a: ComparedSelection
    b: ComparedSelection
    # The geometric mean of B over A, of models or else of bricks, and its 95 % interval; null without pairs.
    ratio: float | None
    interval: tuple[float, float] | None
    # The number of pairs by verdict.
    slower: int
    faster: int
    same: int
    unknown: int
    # The changes beyond the limit, such as `resnet50_v1`; `all models` or `all bricks` stands for the ratio.
    failures: tuple[str, ...]
    pairs: tuple[ComparedPair, ...]


def compared_results(
    store: ResultsDatabase, first: NamedSelection, second: NamedSelection, limit: float | None = None
) -> ComparedResults:
    """Return a comparison as plain values; changes beyond the limit are failures.

    Raise NotComparableError if both have the same results.
    """
    sides = side_of_selection(store, first), side_of_selection(store, second)
    _require_different(sides)
    found = compare(*sides)
    pairs, failures = [*found.models, *found.bricks], list[str]()
    if limit is not None:
        every = "all models" if found.models else "all bricks"
        for name, some in ((every, found.of_one_kind), *((it.name, (it,)) for it in found.models)):
            change = overall(some, changes_from(limit))
            failures += [name] if change is not None and change.verdict is Verdict.SLOWER else []
    together = overall(found.of_one_kind)
    totals = (0.0, 0.0) if together is None else (together.was_ms, together.is_ms)
    a, b = (
        ComparedSelection(it.words, len(it.selection), total_ms, len(alone))
        for it, total_ms, alone in zip((first, second), totals, found.alone, strict=True)
    )
    told = tuple(map(_pair, sorted(pairs, key=_greatest_first)))
    return ComparedResults(a=a, b=b, **_verdicts(pairs, together), failures=tuple(failures), pairs=told)


def _verdicts(pairs: Sequence[ResultPair], together: Change | None) -> dict[str, Any]:
    """Return the number of pairs by verdict, and the ratio of all with its interval; None without pairs."""
    verdicts = [it.change.verdict for it in pairs]
    counts = {it.value: verdicts.count(it) for it in (Verdict.SLOWER, Verdict.FASTER, Verdict.SAME, Verdict.UNKNOWN)}
    ratios = (None, None) if together is None else (together.ratio, together.ratios)
    return {**counts, "ratio": ratios[0], "interval": ratios[1]}


def _greatest_first(pair: ResultPair) -> tuple[bool, float, str]:
    is_sure = pair.change.verdict in (Verdict.SLOWER, Verdict.FASTER)
    return not is_sure, -abs(pair.change.change), pair.name


def _pair(pair: ResultPair) -> ComparedPair:
    subject = pair.subject
    return taken(
        ComparedPair,
        pair.change,
        subject,
        name=pair.name,
        of="model" if subject.is_model else "brick",
        brick="" if subject.is_model else subject.key,
        model=subject.key if subject.is_model else "",
        execution=pair.executions.second.in_words,
        a=pair.first[-1].id,
        b=pair.second[-1].id,
        a_ms=pair.change.was_ms,
        b_ms=pair.change.is_ms,
    )


@dataclass(frozen=True, slots=True)
class ComparedSides:
    """Sides with the facts about them, the changes from the first to each other one, and hosts and versions."""

    sides: tuple[Side, ...]
    facts: tuple[SideFact, ...]
    comparisons: tuple[GroupComparison, ...]
    hosts: Columns | None
    versions: tuple[Columns, ...]


@without_cycle_search()
def compare_sides(sides: Sequence[Side], estimate: EstimateOf = lambda _: None) -> ComparedSides:
    """Compare the first side with each other one; raise NotComparableError if two are the same or have other methods.

    `estimate` returns the estimate of a timed model; None if there is none.
    """
    require_comparable(sides)
    return ComparedSides(
        tuple(sides),
        facts_of(sides),
        tuple([compare(sides[0], it) for it in sides[1:]]),
        hosts_of(sides, estimate),
        tuple(versions_of(sides, estimate)),
    )


def _require_different(sides: Sequence[Side]) -> None:
    known: dict[str, Side] = {}
    for side in sides:
        same = known.setdefault(side.digest, side)
        if same is not side:
            raise NotComparableError(f"{same.name} and {side.name} have the same results: name different ones")


def require_comparable(sides: Sequence[Side]) -> None:
    """Raise NotComparableError if two sides have the same results, or one has other methods than the first."""
    _require_different(sides)
    first, *others = sides
    for other in others:
        if not first.methods & other.methods:
            told = [f"method {', '.join(sorted(it.methods))}" for it in (first, other)]
            raise NotComparableError(
                f"{first.name} was measured by {told[0]}, and {other.name} by {told[1]}: results of different methods "
                "are not compared; measure one of them again by the method of the other"
            )


def comparison_document(
    compared: ComparedSides, page: Path, files: Sequence[Path], missing: Mapping[str, tuple[str, ...]]
) -> dict[str, Any]:
    """Return a comparison, with its page, as a JSON document.

    `missing` says what is missing or not compared, by the heading of the section.
    """
    return {
        "page": page,
        "sides": [
            {
                "name": side.name,
                "results": len(side.results),
                "in_doubt": side.in_doubt,
                "refused": side.refused,
                "facts": {it.name: it.values[number] for it in compared.facts},
            }
            for number, side in enumerate(compared.sides)
        ],
        # The circumstances that differ: a value of each side by the name.
        "differences": {it.name: it.values for it in compared.facts if it.differs},
        "comparisons": [
            {
                "first": it.first.name,
                "second": it.second.name,
                "models": _changes(it.models),
                "bricks": _changes(it.bricks),
                "not_compared": [*it.alone[0], *it.alone[1]],
            }
            for it in compared.comparisons
        ],
        "hosts": compared.hosts,
        "versions": compared.versions,
        "missing": missing,
        "files": files,
    }


def _changes(pairs: Sequence[ResultPair]) -> dict[str, Any]:
    """Return the changes of all models, or of all bricks: slower ones first, of each verdict the largest change first.

    The ratio is the geometric mean of the second latency over the first; null without pairs.
    """
    verdicts = _verdicts(pairs, overall(pairs))
    ratio = {name: verdicts.pop(name) for name in ("ratio", "interval")}
    tests = {"tested": number_tested(pairs), "false_alarms": false_alarms(pairs)}
    return {**verdicts, **tests, **ratio, "changes": list(map(_changed, pairs))}


def _changed(pair: ResultPair) -> dict[str, Any]:
    """Return the change of a model or brick in an execution, with the ids of the results behind it."""
    subject, execution = pair.subject, pair.executions.second
    return {
        "name": pair.name,
        **attributes_of(subject, "key", "context"),
        "system": execution.system,
        "execution": execution.in_words,
        "was": [it.id for it in pair.first],
        "now": [it.id for it in pair.second],
        **document(pair.change),
    }
