"""The analysis of the models: bounds, the gains of changes, and gaps in parts."""

from collections.abc import Callable, Iterable, Sequence

from dlbricks_tui.analysis.tables import ModelRow, known, mean_gain, mean_ratio, middle
from dlbricks_tui.analysis.what_if import WhatIfKind
from dlbricks_tui.answers.analysis import table_rows
from dlbricks_tui.answers.analysis.table_rows import Cell
from dlbricks_tui.documents.analyses import (
    bounds_remarks,
    bounds_table,
    gains_remarks,
    gains_table,
    gaps_table,
)
from dlbricks_tui.documents.analysis import BEST, GAP_PARTS, stacked
from dlbricks_tui.documents.parts import Table
from dlbricks_tui.documents.pictures import Axis, Mark, Meaning, Row, Rows
from dlbricks_tui.report import drawing
from dlbricks_tui.report.exhibits import Exhibit, Section, csv_table
from dlbricks_tui.report.figures.executions import EXECUTION_COLUMNS, ExecutedModels, executed_models, table_row
from dlbricks_tui.report.figures.roofline import roofline_section
from dlbricks_tui.report.figures.rows import bar_from_zero, marked, series_meaning
from dlbricks_tui.report.missing import command
from dlbricks_tui.wording.numbers import capitalised, counted, percent

# Greater losses, in percent, are arrows at the edge.
_MOST_LOSS = -100.0
_BOUNDS = (
    Meaning("=", "sequential", "bar", "█"),
    Meaning("■", "parallel", "bad"),
    Meaning("◇", "roofline", "text"),
)
_KINDS = {kind: series_meaning(number, kind.value) for number, kind in enumerate(WhatIfKind)}
_PROVED = Meaning("◇", "measured", "text")


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
        Row(
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
    cells = [(*table_rows.bound_cells(it), *held) for it, held in zip(group.models, bounds, strict=True)]
    return _exhibit("bounds", group, (*table_rows.BOUND_COLUMNS, *ratios), cells, picture, bounds_table(group.models))


def _gains(group: ExecutedModels) -> Exhibit:
    rows, values = [], [-5.0, 10.0]
    for label, it in zip(group.labels, group.models, strict=True):
        marks: list[Mark] = []
        for kind, gain in it.gains.items():
            if not gain.is_bound:
                marks.append(_gain_mark(_KINDS[kind].mark, kind, gain.predicted))
                marks += [] if gain.proved is None else [_gain_mark(_PROVED.mark, kind, gain.proved)]
        values += [mark.value for mark in marks]
        rows.append(Row(label, marks=tuple(marks)))
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
    cells = map(table_rows.gain_cells, group.models)
    return _exhibit("gains", group, table_rows.GAIN_COLUMNS, cells, picture, gains_table(group.models))


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
        rows.append(Row(label, pieces))
    by_part = list(zip(*(it for it in shares if it), strict=True)) or [()] * len(meanings)
    medians = [(meaning.name, middle(values)) for meaning, values in zip(meanings, by_part, strict=True)]
    told = f"{_count(group)} {_told('Median', medians, lambda share: percent(share, 1))}"
    axis = Axis(1.03 * min(ends), 1.03 * max(ends))
    picture = Rows("share of the latency in percent", told, axis, tuple(rows), meanings, 100.0)
    cells = map(table_rows.gap_cells, group.models)
    return _exhibit("gap", group, table_rows.GAP_COLUMNS, cells, picture, gaps_table(group.models))


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
