"""The changes from one group of results to another, and what only one of them has.

Differences between the runs of a group widen its intervals. p-values are corrected for the number of models, or of
bricks (Benjamini and Hochberg).
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple

from dlbricks_tui.answers.comparisons.matching import Corresponding, corresponding
from dlbricks_tui.answers.comparisons.sides import Found, ResultExecution, Side, Subject, executions_of
from dlbricks_tui.store.change import (
    BRICKS,
    MODELS,
    SIGNIFICANT,
    Change,
    Limits,
    Timing,
    Verdict,
    all_compared,
    judged,
    newest_together,
    timing_by,
)
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


def overall(pairs: Sequence[ResultPair], limits: Limits | None = None) -> Change | None:
    """Return the change of all pairs together; None without pairs.

    It is the geometric mean of the ratios, with the wider one of two intervals: that of the differences between the
    ratios, and that of the doubt about each. The latencies are sums.
    """
    if not pairs:
        return None
    changes, usual = [it.change for it in pairs], MODELS if pairs[0].subject.is_model else BRICKS
    processes, limits = min(runs_of(pairs)), limits or usual
    if len(changes) == 1:
        (only,) = changes
        return only if only.p_value is None else judged(only, processes, limits)
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
    return judged(found, processes, limits)


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
    for both in executions:
        mine, theirs = ones.pop(both.first, {}), others.pop(both.second, {})
        for one, other in _subjects(mine, theirs, both, groups):
            found = _Matched(mine[one], theirs[other], both)
            if found.has_times:
                matched.append(found)
            else:
                for place, results in enumerate((mine[one], theirs[other])):
                    alone[place].append(_not_compared(groups[place], results, NO_TIME))
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
        _judged([it for it in matched if it.subject.is_model], MODELS),
        _judged([it for it in matched if not it.subject.is_model], BRICKS),
        (tuple(sorted(alone[0], key=_models_first)), tuple(sorted(alone[1], key=_models_first))),
    )


_BySubject = dict[Subject, list[Found]]


def _together(group: Side, bricks: bool) -> dict[ResultExecution, _BySubject]:
    """Return the results that count by execution and subject: the newest of each run of about one day, oldest first."""
    found: dict[ResultExecution, defaultdict[Subject, list[Found]]] = {}
    # Equal executions share what they hold; looking up their ids is faster than hashing them.
    held = {id(it.execution): found.setdefault(it.execution, defaultdict(list)) for it in _one_of_each(group.results)}
    for it in group.results:
        if bricks or it.subject.is_model:
            held[id(it.execution)][it.subject].append(it)
    # Results of one moment are ordered by their ids, so that the same results give the same page.
    return {
        execution: {
            it: newest_together(sorted(some, key=attrgetter("id"))) if len(some) > 1 else some
            for it, some in by.items()
        }
        for execution, by in found.items()
    }


def _one_of_each(results: Iterable[Found]) -> Iterable[Found]:
    """Return one result of each execution object."""
    return {id(it.execution): it for it in results}.values()


def _subjects(
    mine: _BySubject, theirs: _BySubject, both: Corresponding, groups: tuple[Side, Side]
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


def _may_be_same(one: Subject, other: Subject, both: Corresponding, groups: tuple[Side, Side]) -> bool:
    """Return whether models of one name are the same: their files are, unless formats or precisions differ."""
    if "framework" in both.differ or "precision" in both.differ:
        return True
    digests = [group.contents.get(it.key) for it, group in zip((one, other), groups, strict=True)]
    return None in digests or digests[0] == digests[1]


class _Matched(NamedTuple):
    """The results of a model or brick in both groups."""

    first: list[Found]
    second: list[Found]
    executions: Corresponding

    @property
    def subject(self) -> Subject:
        return self.second[-1].subject

    @property
    def has_times(self) -> bool:
        return all(it.statistics.trimmed_mean_ms > 0 for it in (*self.first, *self.second))

    @property
    def timings(self) -> tuple[Timing, Timing]:
        """The latencies; those of an item if batch sizes differ."""
        by_item = "batch" in self.executions.differ
        first, second = (
            timing_of_results(results).per_item(results[-1].execution.batch if by_item else 1)
            for results in (self.first, self.second)
        )
        return first, second


def timing_of_results(results: Sequence[Found]) -> Timing:
    """Return the latency of results of the same thing, each of a run of its own."""
    return timing_by([it.statistics.latency for it in results], [sample for it in results for sample in it.samples_ms])


def _judged(matched: Sequence[_Matched], limits: Limits) -> tuple[ResultPair, ...]:
    """Return the pairs with their changes: slower ones first, of each verdict the largest change first."""
    changes = all_compared([it.timings for it in matched], limits)
    pairs = [
        ResultPair(it.second[-1].name, it.subject, it.executions, change, tuple(it.first), tuple(it.second))
        for it, change in zip(matched, changes, strict=True)
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


def _models_first(it: NotCompared) -> tuple[object, ...]:
    return it.of == "brick", it.name, it.key, it.context, it.system, it.execution


def _not_compared(group: Side, results: Sequence[Found], reason: str) -> NotCompared:
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
