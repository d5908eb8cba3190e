"""Comparisons of several sides as plain values: the JSON document of `dlbricks report --compare`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dlbricks_tui.evaluations.change import Verdict
from dlbricks_tui.report.comparing.changes import Alone, Comparison, Mean, Pair, false_alarms, mean_of, number_tested
from dlbricks_tui.report.comparing.columns import Row, SideBySide
from dlbricks_tui.report.comparing.facts import SideFact
from dlbricks_tui.report.comparing.report import ComparedSides
from dlbricks_tui.report.writing import Report


@dataclass(frozen=True, slots=True)
class DescribedSide:
    """A side: its name, the number of its good results, and the facts about it by their names."""

    name: str
    results: int
    in_doubt: int
    refused: tuple[str, ...]
    facts: dict[str, str]


@dataclass(frozen=True, slots=True)
class ChangedSubject:
    """The change of a model or brick in an execution, with the ids of the results behind it."""

    name: str
    key: str
    context: str
    system: str
    execution: str
    was_ms: float
    is_ms: float
    change: float
    interval: tuple[float, float]
    # Corrected for the number of models or bricks; null if there are too few samples.
    p_value: float | None
    significant: bool
    verdict: Verdict
    was: tuple[str, ...]
    now: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes of all models, or of all bricks: slower ones first, of each verdict the largest change first."""

    slower: int
    faster: int
    same: int
    unknown: int
    # The number of tests, and how many of the significant changes are expected to be chance, at most.
    tested: int
    false_alarms: float
    # The geometric mean of the second latency over the first, and its 95 % interval; null without pairs.
    ratio: float | None
    interval: tuple[float, float] | None
    changes: tuple[ChangedSubject, ...]


@dataclass(frozen=True, slots=True)
class NotCompared:
    """A model or brick that only one side has, or that cannot be compared, and why."""

    side: str
    of: str
    name: str
    key: str
    context: str
    system: str
    execution: str
    reason: str


@dataclass(frozen=True, slots=True)
class ChangesBetween:
    """The changes from the first side to another one."""

    first: str
    second: str
    models: Changes
    bricks: Changes
    not_compared: tuple[NotCompared, ...]


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


@dataclass(frozen=True, slots=True)
class ComparisonDocument:
    """The page of a comparison with its files, and everything on it."""

    page: Path
    sides: tuple[DescribedSide, ...]
    # The circumstances that differ: a value of each side by the name.
    differences: dict[str, tuple[str, ...]]
    comparisons: tuple[ChangesBetween, ...]
    hosts: Columns | None
    versions: tuple[Columns, ...]
    # What is missing or not compared, by the heading of the section.
    missing: dict[str, tuple[str, ...]]
    files: tuple[Path, ...]


def comparison_document(compared: ComparedSides, report: Report) -> ComparisonDocument:
    """Return a comparison as plain values."""
    return ComparisonDocument(
        page=report.page,
        sides=tuple([_side(compared, number) for number in range(len(compared.sides))]),
        differences={it.name: it.values for it in compared.facts if it.differs},
        comparisons=tuple(map(_between, compared.comparisons)),
        hosts=None if compared.hosts is None else _columns(compared.hosts, compared.estimates),
        versions=tuple([_columns(it, compared.estimates) for it in compared.versions]),
        missing={it.heading: it.missing for it in report.sections if it.missing},
        files=report.files,
    )


def _side(compared: ComparedSides, number: int) -> DescribedSide:
    side = compared.sides[number]
    return DescribedSide(side.name, len(side.results), side.in_doubt, side.refused, _facts_of(compared.facts, number))


def _facts_of(facts: Sequence[SideFact], number: int) -> dict[str, str]:
    return {it.name: it.values[number] for it in facts}


def _between(found: Comparison) -> ChangesBetween:
    names = found.first.name, found.second.name
    return ChangesBetween(
        *names, _changes(found.models), _changes(found.bricks), tuple([_not_compared(it, names) for it in found.alone])
    )


def _changes(pairs: Sequence[Pair]) -> Changes:
    verdicts = [it.change.verdict for it in pairs]
    ratio, interval = _of_mean(mean_of(pairs))
    return Changes(
        slower=verdicts.count(Verdict.SLOWER),
        faster=verdicts.count(Verdict.FASTER),
        same=verdicts.count(Verdict.SAME),
        unknown=verdicts.count(Verdict.UNKNOWN),
        tested=number_tested(pairs),
        false_alarms=false_alarms(pairs),
        ratio=ratio,
        interval=interval,
        changes=tuple(map(_changed, pairs)),
    )


def _changed(pair: Pair) -> ChangedSubject:
    change = pair.change
    return ChangedSubject(
        name=pair.name,
        key=pair.subject.key,
        context=pair.subject.context,
        system=pair.executions.second.system,
        execution=pair.executions.second.in_words,
        was_ms=change.was_ms,
        is_ms=change.is_ms,
        change=change.change,
        interval=(change.low, change.high),
        p_value=change.p_value,
        significant=change.significant,
        verdict=change.verdict,
        was=tuple([it.id for it in pair.first]),
        now=tuple([it.id for it in pair.second]),
    )


def _not_compared(it: Alone, names: tuple[str, str]) -> NotCompared:
    kind, execution = "model" if it.subject.is_model else "brick", it.execution
    return NotCompared(
        *(names[it.of], kind, it.name, it.subject.key, it.subject.context),
        *(execution.system, execution.in_words, it.reason),
    )


def _columns(found: SideBySide, estimates: Mapping[str, float]) -> Columns:
    first, *others = found.columns
    names = [it.group.name for it in others]
    means = [ComparedColumn(it.group.name, *_of_mean(it.mean), 0 if it.mean is None else it.mean.of) for it in others]
    return Columns(found.what, first.group.name, tuple(means), tuple([_row(it, names, estimates) for it in found.rows]))


def _row(row: Row, names: Sequence[str], estimates: Mapping[str, float]) -> ComparedRow:
    known = [(name, pair) for name, pair in zip(names, row.pairs, strict=True) if pair is not None]
    _, one = known[0]
    cells = [
        ComparedCell(
            name,
            pair.change.is_ms,
            estimates.get(pair.second[-1].id),
            pair.ratio,
            (1.0 + pair.change.low, 1.0 + pair.change.high),
            pair.change.verdict,
        )
        for name, pair in known
    ]
    estimate_ms = estimates.get(one.first[-1].id)
    return ComparedRow(row.model, row.execution.in_words, one.change.was_ms, estimate_ms, tuple(cells))


def _of_mean(mean: Mean | None) -> tuple[float | None, tuple[float, float] | None]:
    return (None, None) if mean is None else (mean.ratio, (mean.low, mean.high))
