"""The accuracy of estimates against end-to-end latencies, and the time that they save (the paper's evaluation)."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dlbricks_tui.bricks.cutting import Cut
from dlbricks_tui.estimate.system_estimate import SystemEstimate, Way


@dataclass(frozen=True, slots=True)
class Accuracy:
    """The accuracy over models that were measured end to end and brick by brick; shares are fractions of 1."""

    models: int
    geometric_mean: float
    mean_absolute_error: float
    worst_error: float
    within_5_percent: float
    within_10_percent: float
    speedup: float | None


class SharedSettings(NamedTuple):
    """The settings that estimates evaluated together share."""

    way: Way
    granularity: int
    cut: Cut


def by_group(estimates: Iterable[SystemEstimate]) -> dict[SharedSettings, list[SystemEstimate]]:
    """Return the estimates by system, runtime, level, protocol and granularity."""
    groups: defaultdict[SharedSettings, list[SystemEstimate]] = defaultdict(list)
    for one in estimates:
        cutting = one.estimate.cutting
        groups[SharedSettings(one.way, cutting.granularity, cutting.cut)].append(one)
    return dict(groups)


def accuracy(estimates: Iterable[SystemEstimate]) -> Accuracy | None:
    """Return the accuracy of the complete estimates; None if no model has both latencies."""
    judged = [one for one in estimates if one.estimate.coverage.complete]
    ratios = [one.ratio for one in judged if one.ratio]
    if not ratios:
        return None
    errors = [ratio - 1.0 for ratio in ratios]
    return Accuracy(
        models=len(ratios),
        geometric_mean=math.exp(math.fsum(math.log(ratio) for ratio in ratios) / len(ratios)),
        mean_absolute_error=math.fsum(map(abs, errors)) / len(errors),
        worst_error=max(errors, key=abs),
        within_5_percent=_share_within(0.05, errors),
        within_10_percent=_share_within(0.10, errors),
        speedup=speedup(judged),
    )


def speedup(estimates: Iterable[SystemEstimate]) -> float | None:
    """Return the sum of end-to-end latencies over that of unique bricks (as in the paper); None without results."""
    judged = [one for one in estimates if one.end_to_end and one.estimate.coverage.complete]
    whole_ms = math.fsum(one.end_to_end.value_ms for one in judged if one.end_to_end)
    measured = {
        part.source: part.measured.latency.value_ms
        for one in judged
        for part in one.estimate.parts
        if part.measured is not None
    }
    unique_ms = math.fsum(measured.values())
    return whole_ms / unique_ms if unique_ms else None


def _share_within(limit: float, errors: Sequence[float]) -> float:
    return sum(abs(error) <= limit for error in errors) / len(errors)
