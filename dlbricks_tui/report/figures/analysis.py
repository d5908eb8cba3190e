"""The analysis of the models: bounds, the gains of changes, and gaps in parts."""

from collections.abc import Callable, Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from dlbricks_tui.analysis.tables import GapShares, ModelRow, known, mean_gain, mean_ratio, middle
from dlbricks_tui.analysis.what_if import WhatIfKind
from dlbricks_tui.report import analysis_rows, drawing
from dlbricks_tui.report.drawing import Ink, series_style
from dlbricks_tui.report.exhibits import Exhibit, Section, Table, table
from dlbricks_tui.report.figures.executions import EXECUTION_COLUMNS, ExecutedModels, executed_models, table_row
from dlbricks_tui.report.figures.roofline import roofline_section
from dlbricks_tui.report.figures.rows import WIDTH, draw_bars, draw_marks, mark, row_axes, rows_height
from dlbricks_tui.report.missing import command
from dlbricks_tui.wording.numbers import counted, percent

_BAR = 0.36
# Greater losses are arrows at the edge.
_MOST_LOSS = -1.0
_BOUNDS = ("sequential", "parallel", "roofline")
_PARTS = (
    ("best", Ink.BLUE),
    ("slower layers", Ink.ORANGE),
    ("conversions", Ink.GREEN),
    ("unexplained", Ink.STONE),
)


def analysis_sections(models: Sequence[ModelRow]) -> tuple[Section, ...]:
    """Return the sections of the analysis; one that says what to do if there is nothing to analyse."""
    groups = executed_models([it for it in models if it.best_ms is not None or it.measured_ms is not None])
    if not any(it.best_ms is not None for group in groups for it in group.models):
        how = command("analyze", "MODEL", "--measure")
        line = f"No bounds, gains and gaps: no model has results of all of its layers. {how} measures what they need."
        return (
            Section("Analysis", "analysis", "How fast the models could be, and why they are not.", missing=(line,)),
        )
    return _bounds_section(groups), _gains_section(groups), _gap_section(groups), roofline_section(groups)


def _bounds_section(groups: Sequence[ExecutedModels]) -> Section:
    return Section(
        heading="Bounds: how fast the models could be",
        anchor="bounds",
        explanation="The best measured latency takes each group of layers from the execution that was fastest, without "
        "conversions: summed, and along the critical path. Both stand over the end-to-end latency, or over "
        "the estimate if the model was not timed. The roofline is the arithmetic and the bytes of the layers over the "
        "peaks of the system.",
        exhibits=tuple([_bounds(group) for group in groups]),
        published="Benanza (arXiv:1911.06922) has a geometric mean of 0.88 sequential and 0.76 parallel, of 30 models "
        "in MXNet on a V100 at batch 1.",
        missing=_incomplete(groups),
    )


def _bounds(group: ExecutedModels) -> Exhibit:
    name = f"figure-bounds-{group.slug}"
    bounds = [[_inverse(it.over_best), _inverse(it.over_parallel), _inverse(it.over_roofline)] for it in group.models]
    has_roofline = any(roofline is not None for *_, roofline in bounds)

    def paint() -> Figure:
        legend: list[Artist] = [
            Patch(color=Ink.BLUE.light, label="best, sequential"),
            Patch(color=Ink.ORANGE.light, label="best, parallel"),
        ]
        legend += [mark("roofline", Ink.TEXT, "D", True)] if has_roofline else []
        figure = drawing.canvas(WIDTH, rows_height(len(bounds), legend))
        axes = row_axes(figure, group.labels, "bound over the latency (1 is equal)", legend)
        for number, (place, ink) in enumerate(((-_BAR / 2, Ink.BLUE), (_BAR / 2, Ink.ORANGE))):
            held = [(row + place, 0.0, it[number] or 0.0) for row, it in enumerate(bounds)]
            draw_bars(axes, held, _BAR, ink)
        roofs = [(row, roofline) for row, (*_, roofline) in enumerate(bounds) if roofline is not None]
        draw_marks(axes, roofs, Ink.TEXT, "D", 4, hollow=True)
        axes.axvline(1.0, color=Ink.MUTED.light, linewidth=0.9)
        axes.set_xlim(0, 1.03 * max(1.05, *(value for held in bounds for value in known(held))))
        return figure

    ratios = ("best_over_latency", "parallel_over_latency", "roofline_over_latency")
    columns = ("table1_id", "model", *analysis_rows.BOUND_COLUMNS, *ratios, *EXECUTION_COLUMNS)
    rows = [
        table_row(it, analysis_rows.bound_cells(it), tuple(held)) for it, held in zip(group.models, bounds, strict=True)
    ]
    means = [mean_ratio(values) for values in zip(*bounds, strict=True)]
    inverse = [_inverse(it) for it in means]
    told = f"{_count(group)} {_means('Geometric mean', _BOUNDS, means)}"
    last = (None, "geometric mean", *(None,) * 5, *inverse, *means, *(None,) * len(EXECUTION_COLUMNS))
    details = ("estimate_ms", "over_best", "over_parallel", "over_roofline", *EXECUTION_COLUMNS)
    return _exhibit(name, group, told, table(columns, rows, details, last), paint, "bars of its bounds")


def _gains_section(groups: Sequence[ExecutedModels]) -> Section:
    return Section(
        heading="Gains: what changes would save",
        anchor="gains",
        explanation="The share of the latency that the best change of each kind saves, predicted from measured layers "
        "(filled marks), and measured where the change was carried out (hollow marks). A negative gain is a loss.",
        exhibits=tuple([_gains(group) for group in groups if any(it.gains for it in group.models)]),
        published="Benanza found on GPUs: 12 % to 24 % with other convolution algorithms at batch 32, 13 % without "
        "MXNet's padding, and for ResNet-50 8 % with fusion, 42 % with Tensor Cores and 49 % with both.",
        missing=_unmeasured(groups),
    )


def _gains(group: ExecutedModels) -> Exhibit:
    name = f"figure-gains-{group.slug}"
    kinds = [kind for kind in WhatIfKind if any(kind in it.gains for it in group.models)]
    points = [
        (row, kind, gain) for row, it in enumerate(group.models) for kind, gain in it.gains.items() if not gain.is_bound
    ]

    def paint() -> Figure:
        legend = [mark(kind.value, *series_style(list(WhatIfKind).index(kind))) for kind in kinds]
        figure = drawing.canvas(WIDTH, rows_height(len(group.models), legend))
        axes = row_axes(figure, group.labels, "share of the latency that is saved", legend)
        axes.axvline(0.0, color=Ink.MUTED.light, linewidth=0.9, zorder=1)
        for kind in kinds:
            ink, shape = series_style(list(WhatIfKind).index(kind))
            held = [(row, gain) for row, its, gain in points if its is kind]
            _gain_marks(axes, [(row, gain.predicted) for row, gain in held], ink, shape, hollow=False)
            proved = [(row, gain.proved) for row, gain in held if gain.proved is not None]
            _gain_marks(axes, proved, ink, shape, hollow=True)
        values = [max(_MOST_LOSS, it) for _, _, gain in points for it in known((gain.predicted, gain.proved))]
        least, most = min(-0.05, *values, 0.0), max(0.1, *values, 0.0)
        axes.set_xlim(least - 0.03 * (most - least), most + 0.05 * (most - least))
        axes.xaxis.set_major_formatter(lambda value, _: percent(value))
        return figure

    rows = [table_row(it, analysis_rows.gain_cells(it)) for it in group.models]
    columns = ("table1_id", "model", *analysis_rows.GAIN_COLUMNS, *EXECUTION_COLUMNS)
    means = {kind: mean_gain(it.gain(kind) for it in group.models) for kind in WhatIfKind}
    proofs = {kind: mean_gain(it.proof(kind) for it in group.models) for kind in WhatIfKind}
    means_of = [cell for kind in WhatIfKind for cell in (None, means[kind], proofs[kind])]
    last = (None, "geometric mean", *means_of, *(None,) * len(EXECUTION_COLUMNS))
    told = " ".join(
        f"{kind.value}: {counted(len(known(it.gain(kind) for it in group.models)), 'model')}, on average "
        f"{percent(means[kind] or 0.0, 1)}."
        for kind in kinds
    )
    bounds = "Bounds that nobody can run are in the table only." if any(_has_bound(it) for it in group.models) else ""
    empty = [it for kind in WhatIfKind if kind not in kinds for it in analysis_rows.gain_columns(kind)]
    numbers = table(columns, rows, (*empty, *EXECUTION_COLUMNS), last)
    return _exhibit(name, group, f"{_count(group)} {told} {bounds}".strip(), numbers, paint, "a mark for each gain")


def _gain_marks(axes: Axes, gains: Sequence[tuple[int, float]], ink: Ink, shape: str, *, hollow: bool) -> None:
    """Draw a mark in each row, or an arrow at the edge for a loss beyond it."""
    size = 6.5 if hollow else 4.5
    draw_marks(axes, [(row, gain) for row, gain in gains if gain >= _MOST_LOSS], ink, shape, size, hollow=hollow)
    draw_marks(axes, [(row, _MOST_LOSS) for row, gain in gains if gain < _MOST_LOSS], ink, "<", size, hollow=hollow)


def _gap_section(groups: Sequence[ExecutedModels]) -> Section:
    return Section(
        heading="Gap: where the time beyond the best goes",
        anchor="gap",
        explanation="The latency in parts: the best measured, the time by which layers are slower than in the fastest "
        "execution, conversions of layouts, and the unexplained rest, which is the end-to-end "
        "latency minus the estimate. The parts add up to the latency; a negative rest stands left of zero.",
        exhibits=tuple([_gaps(group) for group in groups]),
    )


def _gaps(group: ExecutedModels) -> Exhibit:
    name = f"figure-gap-{group.slug}"
    shares = [it.shares for it in group.models]

    def paint() -> Figure:
        legend = [Patch(color=ink.light, label=part) for part, ink in _PARTS]
        figure = drawing.canvas(WIDTH, rows_height(len(shares), legend))
        axes = row_axes(figure, group.labels, "share of the latency", legend)
        stacks = [(row, _stack(it)) for row, it in enumerate(shares) if it is not None]
        for number, (_, ink) in enumerate(_PARTS):
            draw_bars(axes, [(row, *stack[number]) for row, stack in stacks], 2 * _BAR, ink)
        axes.axvline(1.0, color=Ink.MUTED.light, linewidth=0.9)
        lows, highs = zip(*(end for _, stack in stacks for end in stack), strict=True) if stacks else ((0.0,), (1.0,))
        axes.set_xlim(1.03 * min(0.0, *lows, *highs), 1.03 * max(1.0, *highs))
        axes.xaxis.set_major_formatter(lambda value, _: percent(value))
        return figure

    rows = [table_row(it, analysis_rows.gap_cells(it)) for it in group.models]
    columns = ("table1_id", "model", *analysis_rows.GAP_COLUMNS, *EXECUTION_COLUMNS)
    parts_of = list(zip(*(it for it in map(_parts, shares) if it), strict=True)) or [()] * len(_PARTS)
    medians = [middle(values) for values in parts_of]
    of_latency = (None,) * (len(analysis_rows.GAP_COLUMNS) - len(medians))
    last = (None, "median", *of_latency, *medians, *(None,) * len(EXECUTION_COLUMNS))
    told = f"{_count(group)} {_means('Median', [part for part, _ in _PARTS], medians, shares=True)}"
    return _exhibit(name, group, told, table(columns, rows, EXECUTION_COLUMNS, last), paint, "a bar of its parts")


def _stack(shares: GapShares) -> list[tuple[float, float]]:
    """Return where the parts of a latency begin and end beside one another; negative ones are left of zero."""
    found = []
    low = high = 0.0
    for value in _parts(shares):
        begin = high if value > 0 else low
        found.append((begin, begin + value))
        low, high = low + min(0.0, value), high + max(0.0, value)
    return found


def _parts(shares: GapShares | None) -> tuple[float, ...]:
    if shares is None:
        return ()
    return shares.best, shares.slower_layers, shares.conversions, shares.unexplained


def _exhibit(
    name: str, group: ExecutedModels, told: str, numbers: Table, paint: Callable[[], Figure], rows_have: str
) -> Exhibit:
    about = f"A row for each model, with {rows_have}. {told}"
    return Exhibit(name, group.title, told, numbers, drawing.draw(name, group.title, about, paint))


def _count(group: ExecutedModels) -> str:
    return f"{counted(len(group.models), 'model')}."


def _means(what: str, names: Sequence[str], values: Sequence[float | None], shares: bool = False) -> str:
    known = [(name, it) for name, it in zip(names, values, strict=True) if it is not None]
    told = [f"{name} {percent(it, 1) if shares else f'{it:.2f}'}" for name, it in known]
    return f"{what}: {', '.join(told)}." if told else ""


def _inverse(value: float | None) -> float | None:
    return 1.0 / value if value else None


def _has_bound(it: ModelRow) -> bool:
    return any(gain.is_bound for gain in it.gains.values())


def _incomplete(groups: Sequence[ExecutedModels]) -> tuple[str, ...]:
    names = dict.fromkeys(it.name for group in groups for it in group.models if it.best_ms is None)
    if not names:
        return ()
    how = command("analyze", "MODEL", "--measure")
    return (f"No best of {', '.join(names)}, as results of layers are missing: {how} measures them.",)


def _unmeasured(groups: Sequence[ExecutedModels]) -> tuple[str, ...]:
    lacking = [
        kind.value for kind in WhatIfKind if all(kind not in it.gains for group in groups for it in group.models)
    ]
    if not lacking:
        return ()
    kinds = () if len(lacking) == len(WhatIfKind) else ("--kinds", ",".join(lacking))
    how = command("analyze", "MODEL", "--measure", *kinds)
    return (f"No model has results for these kinds of changes: {', '.join(lacking)}. {how} measures them.",)
