"""Table 1: the models with their layers and latencies."""

from dlbricks_tui.report.evaluation import EvaluatedModel, Evaluation, ReportedModel
from dlbricks_tui.report.exhibits import Cell, Exhibit, Section, table
from dlbricks_tui.report.published import published_model
from dlbricks_tui.report.tracing import TRACE, trace


def table1_section(evaluation: Evaluation) -> Section:
    """Table 1: number, task and layers of each model, with the latencies of the first series."""
    first = next(iter(evaluation.series), None)
    known: dict[ReportedModel, EvaluatedModel] = {} if first is None else {it.subject: it for it in first.at(1)}
    rows: list[tuple[Cell, ...]] = []
    for subject, model in zip(evaluation.subjects, evaluation.corpus.models, strict=True):
        theirs = published_model(subject.table1_id)
        rows.append(
            (
                *(subject.table1_id, subject.name, subject.task, model.layers, theirs.layers if theirs else None),
                model.unique_layers,
                *_latencies(known.get(subject)),
            )
        )
    named = ("table1_id", "model", "task", "layers", "published_layers", "unique_layers")
    columns = (*named, "sequential_ms", "end_to_end_ms", "error_percent", *TRACE)
    where = "" if first is None else f" Latencies are of {first.title}, single layers (G = 1)."
    return Section(
        heading="Table 1: the models",
        anchor="table-1",
        explanation="Layers are those of the model files (level written). IC: image classification, IP: image "
        f"processing, OD: object detection, RG: regression, SS: semantic segmentation.{where}",
        exhibits=(Exhibit("table-1", "All models", "", table(columns, rows, TRACE)),),
    )


def _latencies(finding: EvaluatedModel | None) -> tuple[Cell, ...]:
    if finding is None:
        return (None,) * (3 + len(TRACE))
    found = finding.found
    whole_ms = None if found.end_to_end is None else found.end_to_end.value_ms
    complete = found.estimate.coverage.complete
    error = None if found.error is None or not complete else 100 * found.error
    return (found.sequential_ms if complete else None, whole_ms, error, *trace(finding))
