"""Compare two selections of results: two systems, two runtimes, or before and after a change."""

import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple

from dlbricks_tui.store.columns import Summary
from dlbricks_tui.store.errors import DamagedResultError
from dlbricks_tui.store.selections import Selection, equal, newest_of_each
from dlbricks_tui.store.statistics import adjusted, mean_ratio, rank_sum_p_value

SIGNIFICANT = 0.05
# Two halves of one run differ by this much, and two processes by more.
LEAST_DIFFERENCE = 0.01

# Two results are of the same subject if these columns agree.
_SAME = ("brick", "model", "context")


class Verdict(Enum):
    """The second selection compared with the first."""

    FASTER = "faster"
    SLOWER = "slower"
    ALIKE = "alike"
    TOO_FEW = "too few samples"


def verdict_on(ratio: float, p_value: float | None) -> Verdict:
    """Return the result of a comparison: a latency over another one, and the p-value, None for too few samples."""
    if p_value is None:
        return Verdict.TOO_FEW
    if p_value >= SIGNIFICANT or abs(ratio - 1.0) < LEAST_DIFFERENCE:
        return Verdict.ALIKE
    return Verdict.SLOWER if ratio > 1.0 else Verdict.FASTER


@dataclass(frozen=True, slots=True)
class Paired:
    """The newest good results of a brick in a context, or of a whole model, in both selections.

    Both are of the same runtime, unless the selections have no runtime in common for it. `p_value` is adjusted for the
    number of comparisons; None if there are too few samples.
    """

    first: Summary
    second: Summary
    p_value: float | None

    @property
    def name(self) -> str:
        """The name for users."""
        return self.second.name or self.second.brick or self.second.model

    @property
    def ratio(self) -> float:
        """The second latency divided by the first; 1 if either is zero."""
        first_ms, second_ms = self.first.trimmed_mean_ms, self.second.trimmed_mean_ms
        return second_ms / first_ms if first_ms > 0 and second_ms > 0 else 1.0

    @property
    def verdict(self) -> Verdict:
        """The result of the comparison."""
        return verdict_on(self.ratio, self.p_value)


@dataclass(frozen=True, slots=True)
class Contrast:
    """The pairs of two selections, and the numbers of subjects that only one of them has."""

    pairs: tuple[Paired, ...]
    only_first: int
    only_second: int
    # The geometric mean of all ratios and its 95 % interval; None without pairs.
    ratio: float | None
    low: float
    high: float

    def count(self, verdict: Verdict) -> int:
        """Return the number of pairs with this verdict."""
        return sum(pair.verdict is verdict for pair in self.pairs)

    @property
    def total_ms(self) -> tuple[float, float]:
        """The sums over all pairs in the first and in the second selection."""
        return (
            math.fsum(pair.first.trimmed_mean_ms for pair in self.pairs),
            math.fsum(pair.second.trimmed_mean_ms for pair in self.pairs),
        )


def contrast(first: Selection, second: Selection, go_on: Callable[[], bool] = lambda: True) -> Contrast:
    """Compare the subjects that both selections have; stop early once `go_on` returns False."""
    ones, others = _by_subject(first), _by_subject(second)
    common = [subject for subject in others if subject in ones]
    pairs: list[Paired] = []
    for subject in common:
        if not go_on():
            break
        # The store reports damaged results.
        with suppress(DamagedResultError):
            pairs.append(_tested(*_comparable(ones[subject], others[subject])))
    corrected = iter(adjusted([pair.p_value for pair in pairs if pair.p_value is not None]))
    pairs = [pair if pair.p_value is None else replace(pair, p_value=next(corrected)) for pair in pairs]
    ratio, low, high = mean_ratio([pair.ratio for pair in pairs]) if pairs else (None, 1.0, 1.0)
    return Contrast(tuple(pairs), len(ones) - len(common), len(others) - len(common), ratio, low, high)


class _Found(NamedTuple):
    result: Selection
    summary: Summary

    @property
    def samples_ms(self) -> tuple[float, ...]:
        return self.result.result(0).samples_ms


def _by_subject(selection: Selection) -> dict[tuple[str, ...], dict[str, _Found]]:
    """Return the newest good result of each brick in its context, and of each model, by runtime."""
    newest = newest_of_each(selection.matching(equal(good=True)), (*_SAME, "runtime"))
    found: dict[tuple[str, ...], dict[str, _Found]] = {}
    for place, it in enumerate(newest.summaries()):
        subject = it.brick, it.model, it.context
        found.setdefault(subject, {})[it.runtime] = _Found(newest[place : place + 1], it)
    return found


def _comparable(ones: Mapping[str, _Found], others: Mapping[str, _Found]) -> tuple[_Found, _Found]:
    """Return the newest results of a runtime that both have; without one, the newest of each."""
    common = ones.keys() & others.keys()
    if not common:
        return _newest(ones.values()), _newest(others.values())
    second = _newest(others[runtime] for runtime in common)
    return ones[second.summary.runtime], second


def _newest(found: Iterable[_Found]) -> _Found:
    return max(found, key=lambda it: it.summary.precedence)


def _tested(first: _Found, second: _Found) -> Paired:
    return Paired(first.summary, second.summary, rank_sum_p_value(first.samples_ms, second.samples_ms))
