"""Comparisons of two selections of results as plain values: the JSON documents of `dlbricks results compare`."""

from dataclasses import dataclass

from dlbricks_tui.answers.comparisons.selecting import NamedSelection
from dlbricks_tui.store.contrast import Contrast, Paired, Verdict


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
    # The ids of the results.
    a: str
    b: str
    a_ms: float
    b_ms: float
    # The share by which B takes longer.
    change: float
    # Corrected for the number of pairs; null if there are too few samples.
    p_value: float | None
    verdict: Verdict


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
    alike: int
    too_few: int
    # The changes beyond the limit, such as `resnet50_v1`; `all pairs` stands for the ratio.
    failures: tuple[str, ...]
    pairs: tuple[ComparedPair, ...]


OVERALL = "all pairs"


def compared_results(
    first: NamedSelection, second: NamedSelection, found: Contrast, limit: float | None
) -> ComparedResults:
    """Return a comparison as plain values; changes beyond the limit are failures."""
    first_ms, second_ms = found.total_ms
    return ComparedResults(
        a=ComparedSelection(first.name, len(first.selection), first_ms, found.only_first),
        b=ComparedSelection(second.name, len(second.selection), second_ms, found.only_second),
        ratio=found.ratio,
        interval=None if found.ratio is None else (found.low, found.high),
        slower=found.count(Verdict.SLOWER),
        faster=found.count(Verdict.FASTER),
        alike=found.count(Verdict.ALIKE),
        too_few=found.count(Verdict.TOO_FEW),
        failures=() if limit is None else _failures(found, limit),
        pairs=tuple(map(_pair, sorted(found.pairs, key=_greatest_first))),
    )


def _failures(found: Contrast, limit: float) -> tuple[str, ...]:
    """Return what is significantly slower by more than the limit: all pairs together, and whole models."""
    overall = found.ratio is not None and found.ratio - 1.0 > limit and found.low > 1.0
    models = [
        pair.name
        for pair in found.pairs
        if not pair.second.brick and pair.verdict is Verdict.SLOWER and pair.ratio - 1.0 > limit
    ]
    return (*((OVERALL,) if overall else ()), *models)


def _greatest_first(pair: Paired) -> tuple[bool, float, str]:
    is_significant = pair.verdict in (Verdict.SLOWER, Verdict.FASTER)
    return not is_significant, -abs(pair.ratio - 1.0), pair.name


def _pair(pair: Paired) -> ComparedPair:
    one = pair.second
    return ComparedPair(
        name=pair.name,
        of=one.of,
        brick=one.brick,
        context=one.context,
        model=one.model,
        a=pair.first.id,
        b=one.id,
        a_ms=pair.first.trimmed_mean_ms,
        b_ms=one.trimmed_mean_ms,
        change=pair.ratio - 1.0,
        p_value=pair.p_value,
        verdict=pair.verdict,
    )
