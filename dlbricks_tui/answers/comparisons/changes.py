"""The changes from one group of results to another, and what only one of them has.

The verdicts are those of `dlbricks check`, but a significant change of a brick counts from a smaller share on.
Differences between the runs of a group widen its intervals. p-values are corrected for the number of models, or of
bricks (Benjamini and Hochberg).
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from dlbricks_tui.answers.comparisons.matching import Corresponding, corresponding
from dlbricks_tui.answers.comparisons.sides import Found, ResultExecution, Subject, executions_of
from dlbricks_tui.evaluations.change import (
    SIGNIFICANT,
    USUAL_SHARE,
    Change,
    CheckVerdict,
    Timing,
    compared,
    corrected,
    timing_by,
)
from dlbricks_tui.store.contrast import LEAST_DIFFERENCE
from dlbricks_tui.store.statistics import mean_ratio
from dlbricks_tui.wording.numbers import counted, names_of

# Results that are this much older than the newest one belong to another day.
_TOGETHER = timedelta(hours=12)
# A model has other keys in other formats, at other batch sizes, and as other runtimes fuse it.
_CHANGES_KEYS = frozenset({"framework", "version", "batch", "precision", "level"})
_ORDER = (CheckVerdict.SLOWER, CheckVerdict.FASTER, CheckVerdict.UNKNOWN, CheckVerdict.SAME)
OTHER_CONTENT = "another model has this name there"
NO_RESULT = "no result there"
NO_EXECUTION = "no corresponding execution there"
NO_TIME = "a latency of zero"
_MOST_NAMED = 10


@dataclass(frozen=True, slots=True)
class ResultGroup:
    """Results, and the SHA-256 of the files of their models by the keys of the models."""

    name: str
    results: tuple[Found, ...]
    contents: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ResultPair:
    """A model or a brick that both groups have in corresponding executions: its change, and the results behind it."""

    name: str
    subject: Subject
    executions: Corresponding
    change: Change
    first: tuple[Found, ...]
    second: tuple[Found, ...]

    @property
    def ratio(self) -> float:
        """The second latency over the first."""
        return 1.0 + self.change.change


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
class Mean:
    """The geometric mean of ratios, with its 95 % interval."""

    ratio: float
    low: float
    high: float
    of: int


@dataclass(frozen=True, slots=True)
class GroupComparison:
    """The changes from the first group to the second one, of models and of bricks, and what each has alone."""

    first: ResultGroup
    second: ResultGroup
    executions: tuple[Corresponding, ...]
    models: tuple[ResultPair, ...]
    bricks: tuple[ResultPair, ...]
    alone: tuple[tuple[NotCompared, ...], tuple[NotCompared, ...]]


def methods_of(group: ResultGroup) -> frozenset[str]:
    """Return the ids of the methods of a group."""
    return frozenset(it.method for it in executions_of(group.results))


def mean_of(pairs: Sequence[ResultPair]) -> Mean | None:
    """Return the geometric mean of the ratios; None without pairs."""
    ratios = [it.ratio for it in pairs]
    return Mean(*mean_ratio(ratios), len(ratios)) if ratios else None


def number_tested(pairs: Iterable[ResultPair]) -> int:
    """Return the number of pairs with enough samples for a test."""
    return sum(it.change.p_value is not None for it in pairs)


def false_alarms(pairs: Iterable[ResultPair]) -> float:
    """Return how many of the changes that count as significant are expected to be chance, at most."""
    return SIGNIFICANT * sum(it.change.significant for it in pairs)


def compare(first: ResultGroup, second: ResultGroup, *, bricks: bool = True) -> GroupComparison:
    """Compare two groups of results by their newest ones; without bricks, only whole models."""
    groups = first, second
    executions = corresponding(executions_of(first.results), executions_of(second.results))
    ones, others = _together(first, bricks), _together(second, bricks)
    pairs: list[ResultPair] = []
    alone: tuple[list[NotCompared], list[NotCompared]] = ([], [])
    for both in executions:
        mine, theirs = ones.pop(both.first, {}), others.pop(both.second, {})
        for one, other in _subjects(mine, theirs, both, groups):
            pair = _pair(mine[one], theirs[other], both)
            if pair is None:
                for place, results in enumerate((mine[one], theirs[other])):
                    alone[place].append(_not_compared(groups[place], results, NO_TIME))
            else:
                pairs.append(pair)
            del mine[one], theirs[other]
        for number, (held, rest) in enumerate(((mine, theirs), (theirs, mine))):
            names = {it[-1].name for it in rest.values() if it[-1].subject.is_model}
            for results in held.values():
                is_other = results[-1].subject.is_model and results[-1].name in names
                reason = OTHER_CONTENT if is_other else NO_RESULT
                alone[number].append(_not_compared(groups[number], results, reason))
    for number, by_execution in enumerate((ones, others)):
        for results in (it for held in by_execution.values() for it in held.values()):
            alone[number].append(_not_compared(groups[number], results, NO_EXECUTION))
    return GroupComparison(
        first,
        second,
        tuple(executions),
        _judged([it for it in pairs if it.subject.is_model], USUAL_SHARE),
        _judged([it for it in pairs if not it.subject.is_model], LEAST_DIFFERENCE),
        (tuple(sorted(alone[0], key=_models_first)), tuple(sorted(alone[1], key=_models_first))),
    )


_BySubject = dict[Subject, list[Found]]


def _together(group: ResultGroup, bricks: bool) -> dict[ResultExecution, _BySubject]:
    """Return the results that count by execution and subject: the newest of each run of about one day, oldest first."""
    found: dict[ResultExecution, defaultdict[Subject, list[Found]]] = {}
    # Equal executions share what they hold; looking up their ids is faster than hashing them.
    held = {id(it.execution): found.setdefault(it.execution, defaultdict(list)) for it in _one_of_each(group.results)}
    for it in group.results:
        if bricks or it.subject.is_model:
            held[id(it.execution)][it.subject].append(it)
    return {execution: {it: _newest(some) for it, some in by.items()} for execution, by in found.items()}


def _one_of_each(results: Iterable[Found]) -> Iterable[Found]:
    """Return one result of each execution object."""
    return {id(it.execution): it for it in results}.values()


def _newest(results: list[Found]) -> list[Found]:
    if len(results) == 1:
        return results
    # Results of one moment are ordered by their ids, so that the same results give the same page.
    ordered = sorted(results, key=lambda it: (_moment(it), it.id))
    last = _moment(ordered[-1])
    return list({it.run: it for it in ordered if last - _moment(it) <= _TOGETHER}.values())


def _moment(it: Found) -> datetime:
    return datetime.fromisoformat(it.when)


def _subjects(
    mine: _BySubject, theirs: _BySubject, both: Corresponding, groups: tuple[ResultGroup, ResultGroup]
) -> list[tuple[Subject, Subject]]:
    """Return the subjects that are the same: those of the same keys, and models of one name if keys have to differ."""
    found = [(it, it) for it in mine if it in theirs]
    taken = {one for one, _ in found}
    if both.differ & _CHANGES_KEYS:
        ones, others = (_by_name(it for it in held.items() if it[0] not in taken) for held in (mine, theirs))
        for name, (one, *more) in ones.items():
            candidates = others.get(name, [])
            if not more and len(candidates) == 1 and _may_be_same(one, candidates[0], both, groups):
                found.append((one, candidates[0]))
    return found


def _by_name(models: Iterable[tuple[Subject, list[Found]]]) -> dict[str, list[Subject]]:
    found: defaultdict[str, list[Subject]] = defaultdict(list)
    for subject, results in models:
        if subject.is_model:
            found[results[-1].name].append(subject)
    return dict(found)


def _may_be_same(one: Subject, other: Subject, both: Corresponding, groups: tuple[ResultGroup, ResultGroup]) -> bool:
    """Return whether models of one name are the same: their files are, unless formats or precisions differ."""
    if "framework" in both.differ or "precision" in both.differ:
        return True
    digests = [group.contents.get(it.key) for it, group in zip((one, other), groups, strict=True)]
    return None in digests or digests[0] == digests[1]


def _pair(first: list[Found], second: list[Found], both: Corresponding) -> ResultPair | None:
    by_item = "batch" in both.differ
    timings = [_timing(it, it[-1].execution.batch if by_item else 1) for it in (first, second)]
    if timings[0] is None or timings[1] is None:
        return None
    newest = second[-1]
    change = compared(timings[0], timings[1])
    return ResultPair(newest.name, newest.subject, both, change, tuple(first), tuple(second))


def _timing(results: Sequence[Found], items: int) -> Timing | None:
    """Return the latency of an item; None if it is zero."""
    if not all(it.statistics.trimmed_mean_ms > 0 for it in results):
        return None
    if len(results) == items == 1:
        only = results[0].statistics
        return Timing(
            value_ms=only.trimmed_mean_ms,
            low_ms=only.low_ms,
            high_ms=only.high_ms,
            samples_ms=tuple(results[0].samples_ms),
        )
    found = timing_by([it.statistics for it in results], [sample for it in results for sample in it.samples_ms])
    if items == 1:
        return found
    samples = tuple([it / items for it in found.samples_ms])
    value, low, high = (it / items for it in (found.value_ms, found.low_ms, found.high_ms))
    return replace(found, value_ms=value, low_ms=low, high_ms=high, samples_ms=samples)


def _judged(pairs: Sequence[ResultPair], by: float) -> tuple[ResultPair, ...]:
    """Return the pairs with corrected verdicts: slower ones first, of each verdict the largest change first.

    `by` is the smallest significant change that counts. For `same`, the interval has to be within the usual share.
    """
    judged = [
        replace(pair, change=_counting(change, by))
        for pair, change in zip(pairs, corrected([it.change for it in pairs]), strict=True)
    ]
    return tuple(sorted(judged, key=_largest_first))


def _counting(change: Change, by: float) -> Change:
    if not change.significant or not by < abs(change.change) <= USUAL_SHARE:
        return change
    return replace(change, verdict=CheckVerdict.SLOWER if change.change > 0 else CheckVerdict.FASTER)


def _largest_first(pair: ResultPair) -> tuple[object, ...]:
    return (
        _ORDER.index(pair.change.verdict),
        -abs(pair.change.change),
        pair.name,
        str(pair.subject),
        pair.executions.first.in_words,
        pair.executions.first.system,
    )


def _models_first(it: NotCompared) -> tuple[object, ...]:
    return it.of == "brick", it.name, it.key, it.context, it.system, it.execution


def _not_compared(group: ResultGroup, results: Sequence[Found], reason: str) -> NotCompared:
    newest = results[-1]
    subject, execution = newest.subject, newest.execution
    kind = "model" if subject.is_model else "brick"
    told = subject.key, subject.context, execution.system, execution.in_words
    return NotCompared(group.name, kind, newest.name, *told, reason)


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


def regrouped(groups: Sequence[ResultGroup], label: Callable[[Found], str]) -> list[ResultGroup]:
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
    return [ResultGroup(name, tuple(found[name]), contents) for name in order]
