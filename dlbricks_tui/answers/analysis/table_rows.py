"""Analyses of many models as rows of cells, for CSV files."""

from collections.abc import Sequence

from dlbricks_tui.analysis.tables import ModelRow
from dlbricks_tui.analysis.what_if import WhatIfKind
from dlbricks_tui.estimate.compositions import milliseconds

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
    settings = variant.batch_size, variant.threads, variant.precision.value
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
