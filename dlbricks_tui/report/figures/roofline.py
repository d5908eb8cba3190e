"""The layers of models under the peaks of their systems."""

from collections.abc import Sequence

from dlbricks_tui.analysis.roofline import LayerPoint, Roof
from dlbricks_tui.analysis.tables import ModelRow
from dlbricks_tui.answers.analysis.table_rows import Cell, model_cells
from dlbricks_tui.documents.roofline import roofline_plot
from dlbricks_tui.report import drawing
from dlbricks_tui.report.exhibits import Exhibit, Section, csv_table
from dlbricks_tui.report.figures.executions import EXECUTION_COLUMNS, ExecutedModels
from dlbricks_tui.report.missing import command
from dlbricks_tui.wording.numbers import counted, percent

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
