"""The layers of models under the peaks of their systems."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from dlbricks_tui.analysis.roofline import LayerPoint, Roof
from dlbricks_tui.analysis.tables import ModelRow
from dlbricks_tui.report import analysis_rows, drawing
from dlbricks_tui.report.drawing import Ink
from dlbricks_tui.report.exhibits import Cell, Exhibit, Section, table
from dlbricks_tui.report.figures.executions import EXECUTION_COLUMNS, ExecutedModels
from dlbricks_tui.report.figures.rows import WIDTH, draw_marks, mark
from dlbricks_tui.report.missing import command
from dlbricks_tui.wording.numbers import counted, percent

# Layers with a smaller share of the time of their model are left out.
_LEAST_SHARE = 0.02
_HEIGHT = 4.2


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
        explanation="Each mark is a layer sequence: its floating-point operations for each byte that it moves, and the "
        "operations per second that it reaches. The lines are the measured peaks of arithmetic and bandwidth.",
        exhibits=tuple([_roofline(group, roof, models) for group, roof, models in found]),
        missing=(missing,) if lacking else (),
    )


def _roofline(group: ExecutedModels, roof: Roof, models: Sequence[ModelRow]) -> Exhibit:
    name = f"figure-roofline-{group.slug}-{roof.threads}"
    heavy = [(it, point, share) for it in models for point, share in _heavy(it)]

    def paint() -> Figure:
        legend = [
            mark("layers", Ink.BLUE, "o"),
            Line2D([], [], color=Ink.TEXT.light, label="arithmetic"),
            Line2D([], [], color=Ink.ORANGE.light, label="memory"),
            *([Line2D([], [], color=Ink.GREEN.light, label="shared cache")] if roof.shared_cache else []),
        ]
        figure = drawing.canvas(WIDTH, _HEIGHT)
        axes = drawing.axes(figure, 0.7, 0.35, WIDTH - 0.9, _HEIGHT - 0.9)
        figure.legend(handles=legend, loc="upper left", bbox_to_anchor=(0.7 / WIDTH, 1 - 0.08 / _HEIGHT), ncols=4)
        # Equal networks have equal marks.
        places = sorted({(point.work.intensity, point.billions_per_second) for _, point, _ in heavy})
        draw_marks(axes, [(speed, intensity) for intensity, speed in places], Ink.BLUE, "o", 3, hollow=False)
        across = [it for it, _ in places] + [roof.highest / roof.memory]
        _draw_roof(axes, roof, min(across) / 2, max(across) * 4)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.grid()
        axes.set_xlabel("operations for each byte")
        axes.set_ylabel("billions of operations per second")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(lambda value, _: f"{value:g}")
        return figure

    rows: list[tuple[Cell, ...]] = [
        (
            *(it.table1_id, it.name, point.layers[0], len(point.layers), point.times),
            *(point.work.operations, point.work.tensor_bytes, point.work.weight_bytes, point.work.intensity),
            *(point.billions_per_second, point.latency_ms, point.least_ms, share),
            *analysis_rows.model_cells(it)[1:],
        )
        for it, point, share in heavy
    ]
    columns = ("table1_id", "model", "first_layer", "layers", "times", "operations", "tensor_bytes", "weight_bytes")
    more = ("operations_per_byte", "billions_per_second", "latency_ms", "least_ms", "share_of_time")
    peaks = ", ".join(f"{value:.3g} billion operations per second ({it})" for it, value in roof.arithmetic.items())
    told = (
        f"{counted(len(heavy), 'layer sequence')} with {percent(_LEAST_SHARE)} of the time of their model or more. "
        f"{counted(roof.threads, 'thread')}: {peaks}, {roof.memory:.3g} GB/s from memory."
    )
    about = f"{told} A mark for each of them, under lines for the peaks."
    svg = drawing.draw(name, f"Roofline of {group.title}", about, paint)
    details = ("tensor_bytes", "weight_bytes", *EXECUTION_COLUMNS)
    return Exhibit(name, group.title, told, table((*columns, *more, *EXECUTION_COLUMNS), rows, details), svg)


def _heavy(it: ModelRow) -> list[tuple[LayerPoint, float]]:
    """Return the layers that compute and move something, with their share of the time, if it is large enough."""
    total_ms = sum(point.times * point.latency_ms for point in it.points) or 1.0
    shares = [(point, point.times * point.latency_ms / total_ms) for point in it.points]
    return [
        (point, share)
        for point, share in shares
        if share >= _LEAST_SHARE and point.work.operations and point.work.bytes
    ]


def _draw_roof(axes: Axes, roof: Roof, low: float, high: float) -> None:
    slopes = ((roof.memory, Ink.ORANGE), (roof.shared_cache, Ink.GREEN))
    for bandwidth, ink in slopes:
        if bandwidth:
            end = min(high, roof.highest / bandwidth)
            axes.plot([low, end], [low * bandwidth, end * bandwidth], color=ink.light, linewidth=1.2)
    steepest = max(roof.memory, roof.shared_cache or 0.0)
    for value in roof.arithmetic.values():
        if value > 0:
            axes.plot([value / steepest, high], [value, value], color=Ink.TEXT.light, linewidth=1.2)
