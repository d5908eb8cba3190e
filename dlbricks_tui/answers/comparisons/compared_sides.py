"""Several sides compared with the first one, and the JSON document of `dlbricks report --compare`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from dlbricks_tui.answers.comparisons.changes import (
    GroupComparison,
    NotCompared,
    ResultPair,
    compare,
    false_alarms,
    number_tested,
    overall,
)
from dlbricks_tui.answers.comparisons.columns import Columns, EstimateOf, hosts_of, versions_of
from dlbricks_tui.answers.comparisons.side_facts import SideFact, facts_of
from dlbricks_tui.answers.comparisons.sides import ComparisonError, Side
from dlbricks_tui.models.content import without_cycle_search
from dlbricks_tui.store.change import Change, Verdict


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
    """Compare the first side with each other one; raise ComparisonError if two are the same or have other methods.

    `estimate` returns the estimate of a timed model; None if there is none.
    """
    _refuse_equal(sides)
    first, *others = sides
    for other in others:
        if not first.methods & other.methods:
            raise ComparisonError(
                f"{first.name} was measured by {_listed(first)}, and {other.name} by {_listed(other)}: results of "
                "different methods are not compared; measure one of them again by the method of the other"
            )
    return ComparedSides(
        tuple(sides),
        facts_of(sides),
        tuple([compare(first, it) for it in others]),
        hosts_of(sides, estimate),
        tuple(versions_of(sides, estimate)),
    )


def _refuse_equal(sides: Sequence[Side]) -> None:
    known: dict[str, Side] = {}
    for side in sides:
        digest = side.digest
        if digest in known:
            raise ComparisonError(f"{known[digest].name} and {side.name} have the same results: name different ones")
        known[digest] = side


def _listed(side: Side) -> str:
    return "method " + ", ".join(sorted(side.methods))


@dataclass(frozen=True, slots=True)
class DescribedSide:
    """A side: its name, the number of its good results, and the facts about it by their names."""

    name: str
    results: int
    in_doubt: int
    refused: tuple[str, ...]
    facts: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedSubject(Change):
    """The change of a model or brick in an execution, with the ids of the results behind it."""

    name: str
    key: str
    context: str
    system: str
    execution: str
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
class ChangesBetween:
    """The changes from the first side to another one."""

    first: str
    second: str
    models: Changes
    bricks: Changes
    not_compared: tuple[NotCompared, ...]


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


def comparison_document(
    compared: ComparedSides, page: Path, files: Sequence[Path], missing: Mapping[str, tuple[str, ...]]
) -> ComparisonDocument:
    """Return a comparison as plain values, with its page."""
    return ComparisonDocument(
        page=page,
        sides=tuple([_side(compared, number) for number in range(len(compared.sides))]),
        differences={it.name: it.values for it in compared.facts if it.differs},
        comparisons=tuple(map(_between, compared.comparisons)),
        hosts=compared.hosts,
        versions=compared.versions,
        missing=dict(missing),
        files=tuple(files),
    )


def _side(compared: ComparedSides, number: int) -> DescribedSide:
    side = compared.sides[number]
    return DescribedSide(side.name, len(side.results), side.in_doubt, side.refused, _facts_of(compared.facts, number))


def _facts_of(facts: Sequence[SideFact], number: int) -> dict[str, str]:
    return {it.name: it.values[number] for it in facts}


def _between(found: GroupComparison) -> ChangesBetween:
    alone = (*found.alone[0], *found.alone[1])
    return ChangesBetween(found.first.name, found.second.name, _changes(found.models), _changes(found.bricks), alone)


def _changes(pairs: Sequence[ResultPair]) -> Changes:
    verdicts = [it.change.verdict for it in pairs]
    together = overall(pairs)
    return Changes(
        slower=verdicts.count(Verdict.SLOWER),
        faster=verdicts.count(Verdict.FASTER),
        same=verdicts.count(Verdict.SAME),
        unknown=verdicts.count(Verdict.UNKNOWN),
        tested=number_tested(pairs),
        false_alarms=false_alarms(pairs),
        ratio=None if together is None else together.ratio,
        interval=None if together is None else together.ratios,
        changes=tuple(map(_changed, pairs)),
    )


def _changed(pair: ResultPair) -> ChangedSubject:
    return ChangedSubject(
        name=pair.name,
        key=pair.subject.key,
        context=pair.subject.context,
        system=pair.executions.second.system,
        execution=pair.executions.second.in_words,
        was=tuple([it.id for it in pair.first]),
        now=tuple([it.id for it in pair.second]),
        **{it.name: getattr(pair.change, it.name) for it in fields(pair.change)},
    )
