"""The tables over many models: their bounds, the best gain of each kind of change, and their gaps in parts."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from statistics import geometric_mean, median
from typing import NamedTuple

from dlbricks_tui.analysis.bounds import Gap
from dlbricks_tui.analysis.roofline import LayerPoint, Roof
from dlbricks_tui.analysis.what_if import WhatIf, WhatIfKind
from dlbricks_tui.runtime.variant import Variant
from dlbricks_tui.store.selections import Way

# A change that saves all of the latency has no geometric mean. No gain counts as more than this.
_MOST_GAIN = 1.0 - 1e-9


@dataclass(frozen=True, slots=True)
class BestGain:
    """The change of one kind that gains most, with its predicted gain, and the measured one if it was carried out."""

    what_if: str
    predicted: float
    # None without a proof.
    proved: float | None
    # True for a bound that nobody can run.
    is_bound: bool


class GapShares(NamedTuple):
    """The best and the parts of the gap as shares of the latency; they add up to 1."""

    best: float
    slower_layers: float
    conversions: float
    # 0 without an end-to-end latency.
    unexplained: float


@dataclass(frozen=True, slots=True)
class ModelRow:
    """A model in one execution, as a row of the tables. Values are None where results are missing."""

    name: str
    table1_id: str | None
    way: Way
    variant: Variant
    # End to end.
    measured_ms: float | None
    estimate_ms: float | None
    best_ms: float | None
    best_parallel_ms: float | None
    roofline_ms: float | None
    gap: Gap | None
    gains: Mapping[WhatIfKind, BestGain]
    # True if the latency of some layers is predicted.
    predicted: bool = False
    # True if the estimate leaves layers out.
    partial: bool = False
    # The layers in the roofline, if the peaks of the system are known.
    points: tuple[LayerPoint, ...] = ()
    roof: Roof | None = None

    @property
    def latency_ms(self) -> float | None:
        """The end-to-end latency, or the estimate without one."""
        return self.estimate_ms if self.measured_ms is None else self.measured_ms

    def times(self, bound_ms: float | None) -> float | None:
        """Return the latency over a bound."""
        return None if self.latency_ms is None or not bound_ms else self.latency_ms / bound_ms

    @property
    def over_best(self) -> float | None:
        """The latency over the best measured one."""
        return self.times(self.best_ms)

    @property
    def over_parallel(self) -> float | None:
        """The latency over the best along the critical path."""
        return self.times(self.best_parallel_ms)

    @property
    def over_roofline(self) -> float | None:
        """The latency over the roofline."""
        return self.times(self.roofline_ms)

    @property
    def shares(self) -> GapShares | None:
        """The parts of the latency; None without a best."""
        if self.gap is None or self.best_ms is None or not self.latency_ms:
            return None
        gap, whole_ms = self.gap, self.latency_ms
        parts = (self.best_ms, gap.slower_layers_ms, gap.conversions_ms, gap.unexplained_ms or 0.0)
        return GapShares(*(part / whole_ms for part in parts))

    def gain(self, kind: WhatIfKind) -> float | None:
        """Return the best predicted gain of a kind of changes."""
        found = self.gains.get(kind)
        return None if found is None else found.predicted

    def proof(self, kind: WhatIfKind) -> float | None:
        """Return the measured gain of that change."""
        found = self.gains.get(kind)
        return None if found is None else found.proved


def best_gains(found: Iterable[WhatIf], proved: Callable[[str], float | None]) -> dict[WhatIfKind, BestGain]:
    """Return the change of each kind that gains most; a bound only where no change that can be run gains anything."""
    ranked = sorted(found, key=lambda it: (it.change is not None and it.gain.value > 0, it.gain.value), reverse=True)
    best = {it.kind: it for it in reversed(ranked)}
    gains = ((kind, best[kind]) for kind in WhatIfKind if kind in best)
    return {kind: BestGain(it.id, it.gain.value, proved(it.id), it.change is None) for kind, it in gains}


def by_execution(models: Iterable[ModelRow]) -> list[list[ModelRow]]:
    """Return the models of each execution: only latencies of one system, runtime and variant have a common mean."""
    found: dict[object, list[ModelRow]] = {}
    for it in models:
        found.setdefault((it.way.system, it.way.runtime, it.way.level, it.variant), []).append(it)
    return list(found.values())


def known(values: Iterable[float | None]) -> list[float]:
    """Return the values that are not missing."""
    return [it for it in values if it is not None]


def mean_ratio(values: Iterable[float | None]) -> float | None:
    """Return the geometric mean of latencies over bounds; None without any."""
    held = [it for it in known(values) if it > 0]
    return geometric_mean(held) if held else None


def mean_gain(values: Iterable[float | None]) -> float | None:
    """Return the gain whose latency after the change, as a share of that before, is the geometric mean of all."""
    held = [1.0 - min(it, _MOST_GAIN) for it in known(values)]
    return 1.0 - geometric_mean(held) if held else None


def middle(values: Iterable[float | None]) -> float | None:
    """Return the median; None without any values."""
    held = known(values)
    return median(held) if held else None
