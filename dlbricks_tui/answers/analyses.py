"""Analyses as plain values: the JSON documents of `dlbricks analyze`, and the rows of its tables."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dlbricks_tui.analysis.bounds import GroupTimes, times_of_groups
from dlbricks_tui.analysis.kernels import TimedKernel
from dlbricks_tui.analysis.tables import ModelRow, best_gains
from dlbricks_tui.analysis.what_if import MeasuredGain, WhatIfKind
from dlbricks_tui.answers.analysing import Analysis, MissingPart
from dlbricks_tui.answers.documents import taken
from dlbricks_tui.estimate.compositions import milliseconds
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runtime.variant import Precision


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
    return taken(
        ModelAnalysis,
        found,
        baseline.found.variant,
        baseline.estimate,
        **_latencies_of(found),
        model=found.source.name,
        runtime=baseline.found.way.runtime,
        level=baseline.graph.level,
        batch=baseline.graph.batch_size,
        sequential_ms=_sequential_ms(found),
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


def _latencies_of(found: Analysis) -> dict[str, float | None]:
    """Return the latency, measured and the best one in two compositions, under the names of documents and rows."""
    end_to_end, best = found.baseline.found.end_to_end, found.best
    return {
        "measured_ms": None if end_to_end is None else end_to_end.value_ms,
        "best_ms": None if best is None else best.latency_ms,
        "best_parallel_ms": None if best is None else milliseconds(best.parallel_ps),
    }


def _sequential_ms(found: Analysis) -> float | None:
    composed = found.baseline.estimate.composed
    return None if composed is None else composed.sequential_ms


def model_row(found: Analysis) -> ModelRow:
    """Return an analysis as a row of the tables over many models."""
    baseline, best = found.baseline, found.best
    proofs = {name: proof.gain for name, proof in found.proofs.items()}
    return taken(
        ModelRow,
        found,
        found.source,
        baseline.found,
        **_latencies_of(found),
        estimate_ms=_sequential_ms(found),
        gains=best_gains(found.what_ifs, proofs.get),
        predicted=baseline.estimate.predicted_share > 0 or (best is not None and best.is_predicted),
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


def gain_columns(kind: WhatIfKind) -> tuple[str, str, str]:
    """Return the columns of a kind of changes: its best change, the predicted gain, and the measured one."""
    return f"best_{kind.value}", f"{kind.value}_gain", f"{kind.value}_proved"


GAIN_COLUMNS = tuple([name for kind in WhatIfKind for name in gain_columns(kind)])
GAP_COLUMNS = (
    *("gap_ms", "slower_layers_ms", "conversions_ms", "unexplained_ms"),
    *("best_share", "slower_layers_share", "conversions_share", "unexplained_share"),
)


def model_cells(it: ModelRow) -> tuple[Cell, ...]:
    """Return the model and its execution."""
    way, variant = it.way, it.variant
    settings = variant.batch, variant.threads, variant.precision.value
    return it.name, way.system, way.runtime, way.level.value, *settings, "yes" if it.predicted else "no"


def bound_cells(it: ModelRow) -> tuple[Cell, ...]:
    """Return the latencies, the bounds and the ratios between them."""
    bounds_ms = it.best_ms, it.best_parallel_ms, it.roofline_ms
    return it.measured_ms, it.estimate_ms, *bounds_ms, it.over_best, it.over_parallel, it.over_roofline


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
    unexplained = None if gap.unexplained_ms is None else shares.unexplained
    parts = shares.best, shares.slower_layers, shares.conversions, unexplained
    return milliseconds(gap.total_ps), *parts_ms, *parts


def csv_rows(models: Sequence[ModelRow]) -> list[tuple[Cell, ...]]:
    """Return all tables side by side, with the names of the columns first."""
    columns = *MODEL_COLUMNS, *BOUND_COLUMNS, *GAIN_COLUMNS, *GAP_COLUMNS
    return [columns, *((*model_cells(it), *bound_cells(it), *gain_cells(it), *gap_cells(it)) for it in models)]
