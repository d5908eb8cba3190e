"""Analyses as plain values: the JSON documents of `dlbricks analyze`, and the rows of its tables."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import geometric_mean, median

from dlbricks_tui.analysis.bounds import Gap, GroupTimes, LayerPoint, Roof, times_of_groups
from dlbricks_tui.analysis.kernels import TimedKernel
from dlbricks_tui.analysis.what_if import MeasuredGain, WhatIf, WhatIfKind
from dlbricks_tui.api.analysing import Analysis, MissingPart
from dlbricks_tui.api.documents import taken
from dlbricks_tui.estimate.compositions import milliseconds
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runtime.variant import Precision, Variant
from dlbricks_tui.store.selections import Way


@dataclass(frozen=True, slots=True)
class ModelWhatIf:
    """A change with its predicted gain: the share of the latency that it saves, for each item if batch sizes differ."""

    id: str
    kind: WhatIfKind
    estimate_ms: float
    gain: float
    # The 95 % interval of the gain.
    interval: tuple[float, float]
    layers: tuple[str, ...]
    how: str
    # False for a bound that nobody can run.
    possible: bool
    proof: MeasuredGain | None


@dataclass(frozen=True, slots=True)
class GapParts:
    """The gap in parts; without an end-to-end latency it is that of the estimate, and nothing is unexplained."""

    slower_layers_ms: float
    conversions_ms: float
    # Always 0: estimates of earlier versions contained a call of the runtime.
    calls_ms: float
    unexplained_ms: float | None


@dataclass(frozen=True, slots=True)
class BestLayers:
    """Layers that are compared together, their latency, and the execution in which they were fastest."""

    layers: tuple[str, ...]
    latency_ms: float
    best_ms: float
    # The runtimes and levels.
    fastest: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ModelKernel:
    """The kernel of a layer, as the runtime calls it; empty if it does not tell."""

    layer: str
    latency_ms: float
    implementation: str
    # Its vector instructions: `avx512`, `avx2` and so on; empty if they are not known.
    instructions: str
    # The layouts between which tensors are converted within the layer.
    conversions: tuple[str, ...]
    # The reasons against kernels that the runtime tries first; derived if the runtime does not tell them.
    refusals: tuple[str, ...]
    derived: bool


@dataclass(frozen=True, slots=True)
class ModelAnalysis:
    """How fast a model is, how fast it could be, and what changes would gain."""

    model: str
    system: str
    runtime: str
    level: Level
    batch: int
    threads: int | None
    precision: Precision
    measured_ms: float | None
    sequential_ms: float | None
    # The share of predicted latencies in `sequential_ms`.
    predicted_share: float
    best_ms: float | None
    best_interval_ms: tuple[float, float] | None
    best_parallel_ms: float | None
    roofline_ms: float | None
    # The latency over the best, with its 95 % interval.
    over_best: float | None
    over_best_interval: tuple[float, float] | None
    gap: GapParts | None
    what_ifs: tuple[ModelWhatIf, ...]
    best_layers: tuple[BestLayers, ...]
    missing: tuple[MissingPart, ...]
    # With `--kernels`: the kernel of each layer.
    kernels: tuple[ModelKernel, ...]


def model_analysis(found: Analysis, kernels: Sequence[TimedKernel] = ()) -> ModelAnalysis:
    """Return an analysis as a document."""
    baseline, best, ratio = found.baseline, found.best, found.over_best
    end_to_end, composed = baseline.found.end_to_end, baseline.estimate.composed
    return taken(
        ModelAnalysis,
        found,
        baseline.found.variant,
        baseline.estimate,
        model=found.source.name,
        runtime=baseline.found.way.runtime,
        # `found` has the most threads of all executions.
        threads=baseline.found.variant.threads,
        level=baseline.graph.level,
        batch=baseline.graph.batch_size,
        measured_ms=None if end_to_end is None else end_to_end.value_ms,
        sequential_ms=None if composed is None else composed.sequential_ms,
        best_ms=None if best is None else best.latency_ms,
        best_parallel_ms=None if best is None else milliseconds(best.parallel_ps),
        best_interval_ms=None if best is None else (best.latency.low_ms, best.latency.high_ms),
        over_best=None if ratio is None else ratio.value,
        over_best_interval=None if ratio is None else (ratio.low, ratio.high),
        gap=None if found.gap is None else taken(GapParts, found.gap, calls_ms=0.0),
        what_ifs=tuple(
            taken(
                ModelWhatIf,
                it,
                gain=it.gain.value,
                interval=(it.gain.low, it.gain.high),
                possible=it.change is not None,
                proof=found.proofs.get(it.id),
            )
            for it in found.what_ifs
        ),
        best_layers=best_layers(found),
        kernels=tuple(taken(ModelKernel, it, it.kernel, layer=it.name, derived=it.kernel.is_derived) for it in kernels),
    )


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


@dataclass(frozen=True, slots=True)
class ModelRow:
    """A model in one execution, as a row of the tables. Values are None where results are missing."""

    answer: ModelAnalysis
    table1_id: str | None
    way: Way
    variant: Variant
    gap: Gap | None
    gains: Mapping[WhatIfKind, BestGain]
    # True if the latency of some layers is predicted.
    predicted: bool = False
    # The interval of an estimate that is not measured throughout; None for other answers.
    predicted_range_ms: tuple[float, float] | None = None
    # True if the estimate leaves layers out.
    partial: bool = False
    # The layers in the roofline, if the peaks of the system are known.
    points: tuple[LayerPoint, ...] = ()
    roof: Roof | None = None

    @property
    def latency_ms(self) -> float | None:
        """The end-to-end latency, or the estimate without one."""
        return self.answer.sequential_ms if self.answer.measured_ms is None else self.answer.measured_ms

    def times(self, bound_ms: float | None) -> float | None:
        """Return the latency over a bound."""
        return None if self.latency_ms is None or not bound_ms else self.latency_ms / bound_ms

    @property
    def shares(self) -> tuple[float, ...] | None:
        """The best and the parts of the gap as shares of the latency, which add up to 1; None without a best."""
        gap, whole_ms, best_ms = self.gap, self.latency_ms, self.answer.best_ms
        if gap is None or best_ms is None or not whole_ms:
            return None
        # Nothing is unexplained without an end-to-end latency.
        parts = (best_ms, gap.slower_layers_ms, gap.conversions_ms, gap.unexplained_ms or 0.0)
        return tuple([part / whole_ms for part in parts])

    def gain(self, kind: WhatIfKind) -> float | None:
        """Return the best predicted gain of a kind of changes."""
        found = self.gains.get(kind)
        return None if found is None else found.predicted


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


def model_row(found: Analysis) -> ModelRow:
    """Return an analysis as a row of the tables over many models."""
    baseline, best = found.baseline, found.best
    proofs = {name: proof.gain for name, proof in found.proofs.items()}
    figure = baseline.found.figure
    return taken(
        ModelRow,
        found,
        found.source,
        baseline.found,
        answer=model_analysis(found),
        gains=best_gains(found.what_ifs, proofs.get),
        predicted=baseline.estimate.predicted_share > 0 or (best is not None and best.is_predicted),
        predicted_range_ms=None if figure is None or figure.is_measured else figure.latency[1:],
        partial=baseline.estimate.is_partial,
    )


def best_layers(found: Analysis) -> tuple[BestLayers, ...]:
    """Return which execution won each group of layers."""
    return tuple(
        [
            BestLayers(
                it.layers,
                milliseconds(it.latency_ps),
                milliseconds(it.best_ps),
                tuple(dict.fromkeys(f"{one.found.way.runtime}, {one.found.way.level.value}" for one in it.fastest)),
            )
            for it in groups_by_loss(found)
        ]
    )


def groups_by_loss(found: Analysis) -> tuple[GroupTimes, ...]:
    """Return the times of the groups of layers, those first that lose most in the baseline."""
    return () if found.best is None else by_loss(times_of_groups(found.best))


def by_loss(groups: Iterable[GroupTimes]) -> tuple[GroupTimes, ...]:
    """Return the groups that lose most in the baseline first."""
    return tuple(sorted(groups, key=lambda it: it.best_ps - it.latency_ps))


Cell = None | int | float | str
MODEL_COLUMNS = ("model", "system", "runtime", "level", "batch", "threads", "precision", "predicted")
BOUND_COLUMNS = (
    *("measured_ms", "estimate_ms", "best_ms", "best_parallel_ms", "roofline_ms"),
    *("over_best", "over_parallel", "over_roofline"),
)


# Of each kind of changes its best change, the predicted gain, and the measured one.
_OF_KIND = ("best_{}", "{}_gain", "{}_proved")
GAIN_COLUMNS = tuple([name.format(kind.value) for kind in WhatIfKind for name in _OF_KIND])
GAP_COLUMNS = (
    *("gap_ms", "slower_layers_ms", "conversions_ms", "unexplained_ms"),
    *("best_share", "slower_layers_share", "conversions_share", "unexplained_share"),
)


def model_cells(it: ModelRow) -> tuple[Cell, ...]:
    """Return the model and its execution."""
    way, variant = it.way, it.variant
    settings = variant.batch, variant.threads, variant.precision.value
    return it.answer.model, way.system, way.runtime, way.level.value, *settings, "yes" if it.predicted else "no"


def bound_cells(it: ModelRow) -> tuple[Cell, ...]:
    """Return the latencies, the bounds and the ratios between them."""
    bounds_ms = it.answer.best_ms, it.answer.best_parallel_ms, it.answer.roofline_ms
    return it.answer.measured_ms, it.answer.sequential_ms, *bounds_ms, *map(it.times, bounds_ms)


def gain_cells(it: ModelRow) -> tuple[Cell, ...]:
    """Return the best change of each kind with its predicted and its measured gain."""
    found = [it.gains.get(kind) for kind in WhatIfKind]
    held: list[tuple[Cell, ...]] = [
        (None, None, None) if gain is None else (gain.what_if, gain.predicted, gain.proved) for gain in found
    ]
    return tuple([cell for cells in held for cell in cells])


def gap_cells(it: ModelRow) -> tuple[Cell, ...]:
    """Return the gap and its parts, in milliseconds and as shares of the latency."""
    gap, shares = it.gap, it.shares
    if gap is None or shares is None:
        return (None,) * len(GAP_COLUMNS)
    parts_ms = gap.slower_layers_ms, gap.conversions_ms, gap.unexplained_ms
    *parts, unexplained = shares
    return gap.total_ms, *parts_ms, *parts, None if gap.unexplained_ms is None else unexplained


def csv_rows(models: Sequence[ModelRow]) -> list[tuple[Cell, ...]]:
    """Return all tables side by side, with the names of the columns first."""
    columns = *MODEL_COLUMNS, *BOUND_COLUMNS, *GAIN_COLUMNS, *GAP_COLUMNS
    return [columns, *((*model_cells(it), *bound_cells(it), *gain_cells(it), *gap_cells(it)) for it in models)]
