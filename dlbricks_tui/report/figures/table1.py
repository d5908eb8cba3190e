"""Table 1: the models with their layers and latencies."""

from dlbricks_tui.answers.analyses import Cell
from dlbricks_tui.answers.reported import ModelResult, ReportContents, ReportedModel, published_model
from dlbricks_tui.report.exhibits import Exhibit, Section, csv_table
from dlbricks_tui.report.tracing import TRACE, trace
from dlbricks_tui.wording.numbers import task_words


def table1_section(contents: ReportContents) -> Section:
    """Table 1: number, task and layers of each model, with the latencies of the first series."""
    first = next(iter(contents.series), None)
    known: dict[ReportedModel, ModelResult] = {} if first is None else {it.reported: it for it in first.at(1)}
    rows: list[tuple[Cell, ...]] = []
    for reported, model in zip(contents.reported_models, contents.corpus.models, strict=True):
        theirs, task = published_model(reported.table1_id), task_words(reported.task)
        rows.append(
            (
                *(reported.table1_id, reported.name, task, model.layers, theirs.layers if theirs else None),
                model.unique_layers,
                *_latencies(known.get(reported)),
            )
        )
    named = ("table1_id", "model", "task", "layers", "published_layers", "unique_layers")
    columns = (*named, "sequential_ms", "end_to_end_ms", "error_percent", *TRACE)
    where = "" if first is None else f" Latencies are of {first.title}, single layers (G = 1)."
    return Section(
        heading="Table 1: the models",
        anchor="table-1",
        explanation=f"Layers are those of the model files (level written).{where}",
        exhibits=(Exhibit("table-1", "All models", "", csv_table(columns, rows, TRACE)),),
    )


def _latencies(result: ModelResult | None) -> tuple[Cell, ...]:
    if result is None:
        return (None,) * (3 + len(TRACE))
    found = result.found
    whole_ms = None if found.end_to_end is None else found.end_to_end.value_ms
    complete = found.estimate.coverage.complete
    error = None if found.error is None or not complete else 100 * found.error
    return (found.sequential_ms if complete else None, whole_ms, error, *trace(result))
