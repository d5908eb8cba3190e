"""The comparison of models and systems by latency and cost (paper, section 6), and of estimates with measurements."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from dlbricks_tui.bricks.cutting import Cut
from dlbricks_tui.estimate.compositions import EstimateError, parse_toml, read_text
from dlbricks_tui.estimate.system_estimate import SystemEstimate
from dlbricks_tui.store.change import BESIDE_BEST, Change, known_changes
from dlbricks_tui.store.records import System
from dlbricks_tui.store.selections import Way

PRICES_FILE = "prices.toml"
_WHAT = "prices file"
_TABLE = "dollars_per_hour"
_HOURS_PER_MS = 1.0 / 3_600_000.0
# No machine costs more. Without a limit costs could overflow.
_HIGHEST = 1_000_000

# On demand, Linux, us-east-1, when the paper's experiments were made (2019 and 2020).
DELIVERED: Mapping[str, float] = {"c4.xlarge": 0.199, "c4.2xlarge": 0.398, "c5.xlarge": 0.17, "c5.2xlarge": 0.34}

# Dollars per hour by the id, the name or the instance type of a system.
Prices = Mapping[str, float]


def price_of(prices: Prices, system: str, known: System | None) -> float | None:
    """Return the price of a system by its most specific name that has one; without a record only its id is known."""
    names = (system,) if known is None else (system, known.name, known.instance_type)
    return next((prices[name] for name in names if name in prices), None)


def cost_of(latency_ms: float, dollars_per_hour: float) -> float:
    """Return the dollars for a million inferences one after another, on a machine that does nothing else."""
    return latency_ms * _HOURS_PER_MS * dollars_per_hour * 1_000_000


def read_prices(data: Path) -> Prices:
    """Return the built-in prices, overridden by those of the user's file, if there is one."""
    file = data / PRICES_FILE
    if not file.exists():
        return DELIVERED
    return {**DELIVERED, **parse_prices(read_text(file, _WHAT), f"{_WHAT} {file}")}


def parse_prices(text: str, where: str) -> dict[str, float]:
    """Return the prices in a TOML text; `where` names the text in error messages."""
    document = parse_toml(text, where)
    table = document.pop(_TABLE, None)
    if document or not isinstance(table, dict):
        raise EstimateError(f'{where} needs one table, [{_TABLE}], with lines such as "c5.xlarge" = 0.17')
    prices = dict(_flat(table))
    for name, price in prices.items():
        if not isinstance(price, int | float) or isinstance(price, bool) or not 0 <= price <= _HIGHEST:
            raise EstimateError(f'{where}: {name} costs {price!r}; write dollars, such as "{name}" = 0.17')
    return {name: float(price) for name, price in prices.items()}


def _flat(table: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    # In TOML an unquoted name with dots is a table within a table, but users mean the name.
    for name, value in table.items():
        if isinstance(value, dict):
            yield from ((f"{name}.{rest}", price) for rest, price in _flat(value))
        else:
            yield name, value


class Candidate(NamedTuple):
    """A model on a system: its answer there, or the sum of some layers, and the cost of a million inferences.

    `complete` is False if not all layers were measured.
    """

    estimate: SystemEstimate
    latency_ms: float
    complete: bool
    dollars_per_hour: float | None
    dollars_per_million: float | None

    @property
    def competes(self) -> bool:
        """True if it may be the best."""
        return self.estimate.figure is not None and self.estimate.figure.may_be_best


def candidates(
    estimates: Iterable[SystemEstimate], systems: Mapping[str, System], prices: Prices
) -> tuple[Candidate, ...]:
    """Return all candidates with a latency, the fastest first, and those that cannot be the best last."""
    found = []
    for one in estimates:
        figure = one.figure
        latency_ms = one.sequential_ms if figure is None else figure.latency.value_ms
        if latency_ms is not None:
            price = price_of(prices, one.way.system, systems.get(one.way.system))
            cost = None if price is None else cost_of(latency_ms, price)
            found.append(Candidate(one, latency_ms, figure is not None and figure.is_measured, price, cost))
    return tuple(sorted(found, key=lambda it: (not it.competes, it.latency_ms, it.estimate.way)))


def quickest(found: Iterable[Candidate]) -> Candidate | None:
    """Return the candidate with the least latency."""
    return min((it for it in found if it.competes), key=lambda it: it.latency_ms, default=None)


def cheapest(found: Iterable[Candidate]) -> Candidate | None:
    """Return the candidate with the least cost; None without prices."""
    priced = ((it.dollars_per_million, it) for it in found if it.competes and it.dollars_per_million is not None)
    return min(priced, key=lambda pair: pair[0], default=(0.0, None))[1]


def remarks_on(found: Sequence[Candidate]) -> list[str]:
    """Return remarks on each candidate: quickest or the verdict against that, cheapest, incomplete, predicted in part.

    A single system is neither the quickest nor the cheapest.
    """
    if len({it.estimate.way.system for it in found}) == 1:
        return [", ".join(["the only one"] * (len(found) == 1) + _lacking(it)) for it in found]
    best, thrifty = quickest(found), cheapest(found)
    changes = against_quickest(found)
    return [
        ", ".join(
            [
                *(["quickest"] if it is best else [] if change is None else [change.verdict.value]),
                *(["cheapest"] if it is thrifty else []),
                *_lacking(it),
            ]
        )
        for it, change in zip(found, changes, strict=True)
    ]


def against_quickest(found: Sequence[Candidate]) -> list[Change | None]:
    """Return the change of each candidate from the quickest; None for that itself and for sums of some layers."""
    best = quickest(found)
    first = None if best is None else best.estimate.tested
    changes = known_changes([(first, None if it is best else it.estimate.tested) for it in found], BESIDE_BEST)
    return [
        None if best is None or change is None else change.around(it.latency_ms / best.latency_ms)
        for it, change in zip(found, changes, strict=True)
    ]


def _lacking(it: Candidate) -> list[str]:
    if it.complete:
        return []
    return ["incomplete" if it.estimate.figure is None else "predicted"]


@dataclass(frozen=True, slots=True)
class Accuracy:
    """The accuracy over models that were measured end to end and brick by brick; shares are fractions of 1."""

    models: int
    geometric_mean: float
    mean_absolute_error: float
    worst_error: float
    within_5_percent: float
    within_10_percent: float
    # The models of which others have nearly all bricks, and the errors of their sums without their own measurements.
    by_others: int
    by_others_median_error: float | None
    by_others_within_10_percent: float | None
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
    by_others = [abs(error) for one in judged if (error := _error_by_others(one)) is not None]
    return Accuracy(
        models=len(ratios),
        geometric_mean=math.exp(math.fsum(math.log(ratio) for ratio in ratios) / len(ratios)),
        mean_absolute_error=math.fsum(map(abs, errors)) / len(errors),
        worst_error=max(errors, key=abs),
        within_5_percent=sum(abs(error) <= 0.05 for error in errors) / len(errors),
        within_10_percent=sum(abs(error) <= 0.10 for error in errors) / len(errors),
        by_others=len(by_others),
        by_others_median_error=median(by_others) if by_others else None,
        by_others_within_10_percent=sum(it <= 0.10 for it in by_others) / len(by_others) if by_others else None,
        speedup=speedup(judged),
    )


def _error_by_others(one: SystemEstimate) -> float | None:
    """Return the relative error of an estimate from bricks timed in other models; None if they cover too little."""
    found = one.estimate.by_others
    if one.end_to_end is None or not one.end_to_end.value_ms or not found.knows_nearly_all:
        return None
    return found.sequential_ms / one.end_to_end.value_ms - 1.0


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
