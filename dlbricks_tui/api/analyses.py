"""Analyses as plain values: the JSON documents of `dlbricks analyze`, and the rows of its tables."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import geometric_mean, median

from dlbricks_tui.analysis.bounds import BestMeasured, Gap, GroupTimes, LayerPoint, Ratio, Roof, times_of_groups
from dlbricks_tui.analysis.groups import MeasuredExecution
from dlbricks_tui.analysis.what_if import MeasuredGain, WhatIf, WhatIfKind
from dlbricks_tui.analysis.whole_models import WrittenTimes, written_times
from dlbricks_tui.api.documents import taken
from dlbricks_tui.estimate.compositions import from_picoseconds
from dlbricks_tui.models.graph import LayerGraph, Level
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.runtime.variant import Precision


@dataclass(frozen=True, slots=True)
class MissingPart:
    """Something that an analysis lacks, and the command that measures it."""

    what: str
    command: str


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

    @property
    def proved(self) -> float | None:
        """The measured gain; None without a proof."""
        return None if self.proof is None else self.proof.gain


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
    conversions: tuple[str, ...] = ()
    # The reasons against kernels that the runtime tries first; derived if the runtime does not tell them.
    refusals: tuple[str, ...] = ()
    derived: bool = False


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


@dataclass(frozen=True)
class Analysis:
    """How fast a model is in one execution, how fast it could be, and what changes would gain.

    The bounds and the gap are None if the estimate lacks layers.
    """

    source: ModelSource
    system: str
    baseline: MeasuredExecution
    # All executions of the model with results, the baseline first.
    executions: tuple[MeasuredExecution, ...]
    best: BestMeasured | None
    over_best: Ratio | None
    gap: Gap | None
    # None if the peaks of the system are not known at this number of threads, or do not apply.
    roof: Roof | None
    roofline_ms: float | None
    points: tuple[LayerPoint, ...]
    what_ifs: tuple[WhatIf, ...]
    # The layers of the file.
    written: LayerGraph | None
    # The commands that measure what is missing, each with what it brings.
    missing: tuple[MissingPart, ...]
    # The newest proof of each what-if, by its id.
    proofs: Mapping[str, MeasuredGain] = field(default_factory=dict)
    # The most threads of the executions that count for the best, and whether the peaks with so many are missing, or are
    # too low: then the roof has what layers have reached.
    threads: int = 1
    lacks_peaks: bool = False

    @cached_property
    def times(self) -> WrittenTimes | None:
        """The time of each layer of the file; None without the layers of the file, or of the baseline."""
        if self.written is None or self.best is None:
            return None
        return written_times(self.baseline, self.written, self._as_written, self.roof)

    @property
    def _as_written(self) -> MeasuredExecution | None:
        """The file measured as written by the same runtime, of several by one with the same number of threads."""
        runtime, threads = self.baseline.execution.runtime, self.baseline.found.variant.threads
        found = [
            it
            for it in self.executions
            if it.graph.level is Level.WRITTEN
            and (it.file, it.graph.batch_size) == (self.baseline.file, self.baseline.graph.batch_size)
            and it.execution.runtime.framework == runtime.framework
        ]
        return min(found, key=lambda it: it.found.variant.threads != threads, default=None)

    @cached_property
    def groups(self) -> tuple[GroupTimes, ...]:
        """The times of the groups of layers, those first that lose most in the baseline; none without a best."""
        groups = () if self.best is None else times_of_groups(self.best)
        return tuple(sorted(groups, key=lambda it: it.best_ps - it.latency_ps))

    @cached_property
    def answer(self) -> ModelAnalysis:
        """The analysis as plain values, without the kernels, which the runtime has to tell."""
        baseline, best, ratio = self.baseline, self.best, self.over_best
        end_to_end = baseline.found.end_to_end
        return taken(
            ModelAnalysis,
            self,
            baseline.found.variant,
            baseline.estimate,
            model=self.source.name,
            runtime=baseline.found.way.runtime,
            # `self` has the most threads of all executions.
            threads=baseline.found.variant.threads,
            level=baseline.graph.level,
            batch=baseline.graph.batch_size,
            measured_ms=None if end_to_end is None else end_to_end.value_ms,
            sequential_ms=baseline.found.sequential_ms,
            best_ms=None if best is None else best.latency_ms,
            best_parallel_ms=None if best is None else from_picoseconds(best.parallel_ps),
            best_interval_ms=None if best is None else (best.latency.low_ms, best.latency.high_ms),
            over_best=None if ratio is None else ratio.value,
            over_best_interval=None if ratio is None else (ratio.low, ratio.high),
            gap=None if self.gap is None else taken(GapParts, self.gap, calls_ms=0.0),
            what_ifs=tuple(
                taken(
                    ModelWhatIf,
                    it,
                    gain=it.gain.value,
                    interval=(it.gain.low, it.gain.high),
                    possible=it.change is not None,
                    proof=self.proofs.get(it.id),
                )
                for it in self.what_ifs
            ),
            best_layers=best_layers(self),
            kernels=(),
        )

    @cached_property
    def gains(self) -> Mapping[WhatIfKind, ModelWhatIf]:
        """The change of each kind that gains most."""
        return best_gains(self.answer.what_ifs)

    @property
    def latency_ms(self) -> float | None:
        """The end-to-end latency, or the estimate without one."""
        return self.answer.sequential_ms if self.answer.measured_ms is None else self.answer.measured_ms

    def over(self, bound_ms: float | None) -> float | None:
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
        return self.gains[kind].gain if kind in self.gains else None

    @property
    def is_predicted(self) -> bool:
        """True if the latency of some layers is predicted."""
        return self.baseline.estimate.predicted_share > 0 or (self.best is not None and self.best.is_predicted)


# A change that saves all of the latency has no geometric mean. No gain counts as more than this.
_MOST_GAIN = 1.0 - 1e-9


def best_gains(what_ifs: Iterable[ModelWhatIf]) -> dict[WhatIfKind, ModelWhatIf]:
    """Return the change of each kind that gains most; a bound only where no change that can be run gains anything."""
    ranked = sorted(what_ifs, key=lambda it: (it.possible and it.gain > 0, it.gain), reverse=True)
    best = {it.kind: it for it in reversed(ranked)}
    return {kind: best[kind] for kind in WhatIfKind if kind in best}


def by_execution(models: Iterable[Analysis]) -> list[list[Analysis]]:
    """Return the models of each execution: only latencies of one system, runtime and variant have a common mean."""
    found: dict[object, list[Analysis]] = {}
    for it in models:
        way = it.baseline.found.way
        found.setdefault((way.system, way.runtime, way.level, it.baseline.found.variant), []).append(it)
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


def best_layers(found: Analysis) -> tuple[BestLayers, ...]:
    """Return which execution won each group of layers."""
    return tuple(
        [
            BestLayers(
                it.layers,
                from_picoseconds(it.latency_ps),
                from_picoseconds(it.best_ps),
                tuple(dict.fromkeys(f"{one.found.way.runtime}, {one.found.way.level.value}" for one in it.fastest)),
            )
            for it in found.groups
        ]
    )


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


def model_cells(it: Analysis) -> tuple[Cell, ...]:
    """Return the model and its execution."""
    way, variant = it.baseline.found.way, it.baseline.found.variant
    settings = variant.batch, variant.threads, variant.precision.value
    return it.answer.model, way.system, way.runtime, way.level.value, *settings, "yes" if it.is_predicted else "no"


def bound_cells(it: Analysis) -> tuple[Cell, ...]:
    """Return the latencies, the bounds and the ratios between them."""
    bounds_ms = it.answer.best_ms, it.answer.best_parallel_ms, it.answer.roofline_ms
    return it.answer.measured_ms, it.answer.sequential_ms, *bounds_ms, *map(it.over, bounds_ms)


def gain_cells(it: Analysis) -> tuple[Cell, ...]:
    """Return the best change of each kind with its predicted and its measured gain."""
    found = [it.gains.get(kind) for kind in WhatIfKind]
    held: list[tuple[Cell, ...]] = [
        (None, None, None) if gain is None else (gain.id, gain.gain, gain.proved) for gain in found
    ]
    return tuple([cell for cells in held for cell in cells])


def gap_cells(it: Analysis) -> tuple[Cell, ...]:
    """Return the gap and its parts, in milliseconds and as shares of the latency."""
    gap, shares = it.gap, it.shares
    if gap is None or shares is None:
        return (None,) * len(GAP_COLUMNS)
    parts_ms = gap.slower_layers_ms, gap.conversions_ms, gap.unexplained_ms
    *parts, unexplained = shares
    return gap.total_ms, *parts_ms, *parts, None if gap.unexplained_ms is None else unexplained


def csv_rows(models: Sequence[Analysis]) -> list[tuple[Cell, ...]]:
    """Return all tables side by side, with the names of the columns first."""
    columns = *MODEL_COLUMNS, *BOUND_COLUMNS, *GAIN_COLUMNS, *GAP_COLUMNS
    return [columns, *((*model_cells(it), *bound_cells(it), *gain_cells(it), *gap_cells(it)) for it in models)]
