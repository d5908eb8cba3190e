"""Two selections of results side by side: the JSON document of `dlbricks results compare`."""

from dataclasses import dataclass

from dlbricks_tui.answers.comparisons.changes import (
    GroupComparison,
    ResultPair,
    compare,
    overall,
)
from dlbricks_tui.answers.comparisons.named import NamedSelection
from dlbricks_tui.answers.comparisons.sides import side_of_selection
from dlbricks_tui.store.change import Verdict, changes_from
from dlbricks_tui.store.database import ResultsDatabase


@dataclass(frozen=True, slots=True)
class ComparedSelection:
    """One side of a comparison: what it is, and the number of its results."""

    name: str
    results: int
    # The sum of the latencies that both sides have.
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
    # The geometric mean of B over A, and its 95 % interval; null without pairs.
    ratio: float | None
    interval: tuple[float, float] | None
    # The number of pairs by verdict.
    slower: int
    faster: int
    same: int
    unknown: int
    # The changes beyond the limit, such as `resnet50_v1`; `all pairs` stands for the ratio.
    failures: tuple[str, ...]
    pairs: tuple[ComparedPair, ...]


OVERALL = "all pairs"


def compared_results(
    store: ResultsDatabase, first: NamedSelection, second: NamedSelection, limit: float | None = None
) -> ComparedResults:
    """Return a comparison as plain values; changes beyond the limit are failures."""
    sides = [side_of_selection(store, it) for it in (first, second)]
    found = compare(*sides)
    pairs = [*found.models, *found.bricks]
    together, verdicts = overall(pairs), [it.change.verdict for it in pairs]
    totals = (0.0, 0.0) if together is None else (together.was_ms, together.is_ms)
    a, b = (
        ComparedSelection(it.words, len(it.selection), total_ms, len(alone))
        for it, total_ms, alone in zip((first, second), totals, found.alone, strict=True)
    )
    return ComparedResults(
        a=a,
        b=b,
        ratio=None if together is None else together.ratio,
        interval=None if together is None else together.ratios,
        slower=verdicts.count(Verdict.SLOWER),
        faster=verdicts.count(Verdict.FASTER),
        same=verdicts.count(Verdict.SAME),
        unknown=verdicts.count(Verdict.UNKNOWN),
        failures=() if limit is None else tuple(_failures(found, limit)),
        pairs=tuple(map(_pair, sorted(pairs, key=_greatest_first))),
    )


def _failures(found: GroupComparison, limit: float) -> list[str]:
    """Return what is slower by more than the limit: all pairs together, and whole models."""
    asked = [(OVERALL, [*found.models, *found.bricks]), *((it.name, [it]) for it in found.models)]
    changes = [(name, overall(pairs, changes_from(limit))) for name, pairs in asked]
    return [name for name, it in changes if it is not None and it.verdict is Verdict.SLOWER]


def _greatest_first(pair: ResultPair) -> tuple[bool, float, str]:
    is_sure = pair.change.verdict in (Verdict.SLOWER, Verdict.FASTER)
    return not is_sure, -abs(pair.change.change), pair.name


def _pair(pair: ResultPair) -> ComparedPair:
    subject, change = pair.subject, pair.change
    return ComparedPair(
        name=pair.name,
        of="model" if subject.is_model else "brick",
        brick="" if subject.is_model else subject.key,
        context=subject.context,
        model=subject.key if subject.is_model else "",
        execution=pair.executions.second.in_words,
        a=pair.first[-1].id,
        b=pair.second[-1].id,
        a_ms=change.was_ms,
        b_ms=change.is_ms,
        change=change.change,
        p_value=change.p_value,
        verdict=change.verdict,
        reason=change.reason,
    )
