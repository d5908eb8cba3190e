"""The analysis of the models: bounds, the gains of changes, gaps in parts, and rooflines."""

from collections.abc import Callable, Iterable, Sequence

from dlbricks_tui.analysis.roofline import LayerPoint, Roof
from dlbricks_tui.analysis.tables import ModelRow, known, mean_gain, mean_ratio, middle
from dlbricks_tui.analysis.what_if import WhatIfKind
from dlbricks_tui.answers import analyses as results
from dlbricks_tui.answers.analyses import Cell, model_cells
from dlbricks_tui.documents.analyses import (
    bounds_remarks,
    bounds_table,
    gains_remarks,
    gains_table,
    gaps_table,
)
from dlbricks_tui.documents.analysis import BEST, GAP_PARTS, stacked
from dlbricks_tui.documents.parts import Table
from dlbricks_tui.documents.pictures import Axis, BarRow, LegendSign, Mark, Rows
from dlbricks_tui.documents.what_ifs import roofline_plot
from dlbricks_tui.report import drawing
from dlbricks_tui.report.exhibits import Exhibit, Section, csv_table
from dlbricks_tui.report.figures.executions import (
    EXECUTION_COLUMNS,
    ExecutedModels,
    bar_from_zero,
    executed_models,
    marked,
    series_meaning,
    table_row,
)
from dlbricks_tui.report.missing import command
from dlbricks_tui.wording.numbers import capitalised, counted, percent

# Greater losses, in percent, are arrows at the edge.
_MOST_LOSS = -100.0
_BOUNDS = (
    LegendSign("=", "sequential", "bar", "█"),
    LegendSign("■", "parallel", "bad"),
    LegendSign("◇", "roofline", "text"),
)
_KINDS = {kind: series_meaning(number, kind.value) for number, kind in enumerate(WhatIfKind)}
_PROVED = LegendSign("◇", "measured", "text")


def analysis_sections(models: Sequence[ModelRow]) -> tuple[Section, ...]:
    """Return the sections of the analysis; one that says what to do if there is nothing to analyse."""
    shown = [it for it in models if it.best_ms is not None or it.measured_ms is not None]
    groups = executed_models(shown)
    if not any(it.best_ms is not None for it in shown):
        how = command("analyze", "MODEL", "--measure")
        line = f"No bounds, gains and gaps: no model has results of all of its layers. {how} measures what they need."
        return (
            Section("Analysis", "analysis", "How fast the models could be, and why they are not.", missing=(line,)),
        )
    bounds = Section(
        heading="Bounds: how fast the models could be",
        anchor="bounds",
        explanation="The best measured latency takes each group of layers from the execution that was fastest, without "
        "conversions: summed, and along the critical path. Both stand over the end-to-end latency, or over "
        "the estimate if the model was not timed. The roofline is the arithmetic and the bytes of the layers over the "
        "peaks of the system.",
        exhibits=tuple(map(_bounds, groups)),
        published="Benanza (arXiv:1911.06922) has a geometric mean of 0.88 sequential and 0.76 parallel, of 30 models "
        "in MXNet on a V100 at batch 1.",
        missing=tuple(f"{capitalised(it)}." for it in bounds_remarks(shown)),
    )
    gains = Section(
        heading="Gains: what changes would save",
        anchor="gains",
        explanation="The share of the latency that the best change of each kind saves, predicted from measured layers, "
        "and measured where the change was carried out (diamonds). A negative gain is a loss.",
        exhibits=tuple([_gains(group) for group in groups if any(it.gains for it in group.models)]),
        published="Benanza found on GPUs: 12 % to 24 % with other convolution algorithms at batch 32, 13 % without "
        "MXNet's padding, and for ResNet-50 8 % with fusion, 42 % with Tensor Cores and 49 % with both.",
        missing=tuple(f"{capitalised(it)}." for it in gains_remarks(shown)),
    )
    gaps = Section(
        heading="Gap: where the time beyond the best goes",
        anchor="gap",
        explanation="The latency in parts: the best measured, the time by which layers are slower than in the fastest "
        "execution, conversions of layouts, and the unexplained rest, which is the end-to-end "
        "latency minus the estimate. The parts add up to the latency; a negative rest stands left of zero.",
        exhibits=tuple(map(_gaps, groups)),
    )
    return bounds, gains, gaps, roofline_section(groups)


def _bounds(group: ExecutedModels) -> Exhibit:
    bounds = [[_inverse(it.over_best), _inverse(it.over_parallel), _inverse(it.over_roofline)] for it in group.models]
    rows = [
        BarRow(
            label,
            () if sequential is None else (bar_from_zero(sequential, _BOUNDS[0]),),
            tuple(marked(it, value) for it, value in zip(_BOUNDS[1:], others, strict=True) if value is not None),
        )
        for label, (sequential, *others) in zip(group.labels, bounds, strict=True)
    ]
    by_bound = list(zip(*bounds, strict=True))
    means = [(it.name, mean_ratio(values)) for it, values in zip(_BOUNDS, by_bound, strict=True)]
    axis = Axis(0.0, 1.03 * max(1.05, *(value for held in bounds for value in known(held))))
    legend = tuple(it for it, values in zip(_BOUNDS, by_bound, strict=True) if known(values))
    told = f"{_count(group)} {_told('Geometric mean', means, '{:.2f}'.format)}"
    picture = Rows("bound over the latency (1 is equal)", told, axis, tuple(rows), legend, 1.0)
    ratios = ("best_over_latency", "parallel_over_latency", "roofline_over_latency")
    cells = [(*results.bound_cells(it), *held) for it, held in zip(group.models, bounds, strict=True)]
    return _exhibit("bounds", group, (*results.BOUND_COLUMNS, *ratios), cells, picture, bounds_table(group.models))


def _gains(group: ExecutedModels) -> Exhibit:
    rows, values = [], [-5.0, 10.0]
    for label, it in zip(group.labels, group.models, strict=True):
        marks: list[Mark] = []
        for kind, gain in it.gains.items():
            if not gain.is_bound:
                marks.append(_gain_mark(_KINDS[kind].mark, kind, gain.predicted))
                marks += [] if gain.proved is None else [_gain_mark(_PROVED.mark, kind, gain.proved)]
        values += [mark.value for mark in marks]
        rows.append(BarRow(label, marks=tuple(marks)))
    kinds = [kind for kind in WhatIfKind if any(kind in it.gains for it in group.models)]
    room = 0.05 * (max(values) - min(values))
    told = " ".join(
        f"{kind.value}: {counted(len(held), 'model')}, on average {percent(mean_gain(held) or 0.0, 1)}."
        for kind in kinds
        if (held := known(it.gain(kind) for it in group.models))
    )
    if any(gain.is_bound for it in group.models for gain in it.gains.values()):
        told += " Bounds that nobody can run are in the table only."
    has_proofs = any(gain.proved is not None for it in group.models for gain in it.gains.values())
    legend = (*(_KINDS[kind] for kind in kinds), *((_PROVED,) if has_proofs else ()))
    axis = Axis(min(values) - room, max(values) + room)
    says = f"{_count(group)} {told}"
    picture = Rows("share of the latency that is saved, in percent", says, axis, tuple(rows), legend, 0.0)
    cells = map(results.gain_cells, group.models)
    return _exhibit("gains", group, results.GAIN_COLUMNS, cells, picture, gains_table(group.models))


def _gain_mark(sign: str, kind: WhatIfKind, gain: float) -> Mark:
    """Return the mark of a gain in percent, or an arrow at the edge for a loss beyond it."""
    share = 100 * gain
    return Mark(max(_MOST_LOSS, share), sign if share >= _MOST_LOSS else "◀", _KINDS[kind].style)


def _gaps(group: ExecutedModels) -> Exhibit:
    meanings = (BEST, *GAP_PARTS)
    shares: list[Sequence[float]] = [it.shares or () for it in group.models]
    rows, ends = [], [0.0, 100.0]
    for label, parts in zip(group.labels, shares, strict=True):
        held = zip(meanings, parts, strict=False)
        pieces = stacked([(meaning, 100 * share) for meaning, share in held if share])
        ends += [end for it in pieces for end in (it.low, it.high)]
        rows.append(BarRow(label, pieces))
    by_part = list(zip(*(it for it in shares if it), strict=True)) or [()] * len(meanings)
    medians = [(meaning.name, middle(values)) for meaning, values in zip(meanings, by_part, strict=True)]
    told = f"{_count(group)} {_told('Median', medians, lambda share: percent(share, 1))}"
    axis = Axis(1.03 * min(ends), 1.03 * max(ends))
    picture = Rows("share of the latency in percent", told, axis, tuple(rows), meanings, 100.0)
    cells = map(results.gap_cells, group.models)
    return _exhibit("gap", group, results.GAP_COLUMNS, cells, picture, gaps_table(group.models))


def _exhibit(
    what: str,
    group: ExecutedModels,
    columns: Sequence[str],
    cells: Iterable[tuple[Cell, ...]],
    picture: Rows,
    table: Table[Sequence[str]],
) -> Exhibit:
    name = f"figure-{what}-{group.slug}"
    rows = [table_row(it, held) for it, held in zip(group.models, cells, strict=True)]
    exact = csv_table(("table1_id", "model", *columns, *EXECUTION_COLUMNS), rows)
    return Exhibit(name, group.title, picture.says, exact, drawing.draw(name, group.title, picture), table)


def _count(group: ExecutedModels) -> str:
    return f"{counted(len(group.models), 'model')}."


def _told(what: str, values: Iterable[tuple[str, float | None]], written: Callable[[float], str]) -> str:
    told = [f"{name} {written(value)}" for name, value in values if value is not None]
    return f"{what}: {', '.join(told)}." if told else ""


def _inverse(value: float | None) -> float | None:
    return 1.0 / value if value else None


# Layers with a smaller share of the time of their model are left out.
_LEAST_SHARE = 0.02
_COLUMNS = (
    *("table1_id", "model", "first_layer", "layers", "times", "operations", "tensor_bytes", "weight_bytes"),
    *("operations_per_byte", "billions_per_second", "latency_ms", "least_ms", "share_of_time", *EXECUTION_COLUMNS),
)


def roofline_section(groups: Sequence[ExecutedModels]) -> Section:
    """Return the figures of each execution, one for each number of threads."""
    found = [
        (group, roof, [it for it in group.models if it.roof == roof])
        for group in groups
        for roof in {it.roof.threads: it.roof for it in group.models if it.roof is not None}.values()
    ]
    lacking = sum(it.roof is None for group in groups for it in group.models)
    how = command("doctor", "--peaks")
    missing = f"No peaks of the system for {counted(lacking, 'model')}: {how} measures those of this host."
    return Section(
        heading="Roofline: layers under the peaks of the system",
        anchor="roofline",
        explanation="Each letter is a layer sequence: its floating-point operations for each byte that it moves, and "
        "the operations per second that it reaches. The lines are the measured peaks of arithmetic and bandwidth.",
        exhibits=tuple([_roofline(group, roof, models) for group, roof, models in found]),
        missing=(missing,) if lacking else (),
    )


def _roofline(group: ExecutedModels, roof: Roof, models: Sequence[ModelRow]) -> Exhibit:
    name = f"figure-roofline-{group.slug}-{roof.threads}"
    heavy = [(it, point, share) for it in models for point, share in _heavy(it)]
    plot = roofline_plot([point for _, point, _ in heavy], roof)
    rows: list[tuple[Cell, ...]] = [
        (
            *(it.table1_id, it.name, point.layers[0], len(point.layers), point.times),
            *(point.work.operations, point.work.tensor_bytes, point.work.weight_bytes, point.work.intensity),
            *(point.billions_per_second, point.latency_ms, point.least_ms, share),
            *model_cells(it)[1:],
        )
        for it, point, share in heavy
    ]
    told = (
        f"{counted(len(heavy), 'layer sequence')} with {percent(_LEAST_SHARE)} of the time of their model or more, on "
        f"{counted(roof.threads, 'thread')}. {plot.says}"
    )
    svg = drawing.draw(name, f"Roofline of {group.title}", plot, says=told)
    details = ("tensor_bytes", "weight_bytes", *EXECUTION_COLUMNS)
    return Exhibit(name, group.title, told, csv_table(_COLUMNS, rows, details), svg)


def _heavy(it: ModelRow) -> list[tuple[LayerPoint, float]]:
    """Return the layers that compute and move something, with their share of the time, if it is large enough."""
    total_ms = sum(point.times * point.latency_ms for point in it.points) or 1.0
    shares = [(point, point.times * point.latency_ms / total_ms) for point in it.points]
    return [
        (point, share)
        for point, share in shares
        if share >= _LEAST_SHARE and point.work.operations and point.work.bytes
    ]
