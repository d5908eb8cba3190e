"""Estimates, accuracy and scores as tables, JSON documents and CSV rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from dlbricks_tui.answers.answer import Answer
from dlbricks_tui.answers.documents import document
from dlbricks_tui.answers.results import ModelEstimate, SlowSequence, model_estimate
from dlbricks_tui.cli.output import write_csv, write_json
from dlbricks_tui.estimate.system_estimate import Way

if TYPE_CHECKING:
    from dlbricks_tui.estimate.accuracy import Accuracy, SharedSettings
    from dlbricks_tui.estimate.curve import Point
    from dlbricks_tui.estimate.prediction.score import Score

# Wider curves say no more; their lines without the legend.
_WIDEST_CURVE, _CURVE_LINES = 100, 10
_CSV_COLUMNS = (
    *("model", "system", "runtime", "level", "granularity", "cut", "sequential_ms", "low_ms", "high_ms"),
    *("parallel_ms", "workers", "workers_ms", "measured_layers", "missing_layers", "unmeasurable_layers"),
    *("bridged_layers", "complete", "partial", "unfused", "obstacle", "measured_ms", "error"),
    *("batch", "threads", "precision", "per_second", "predicted_layers", "predicted_share", "accuracy_unchecked"),
)


def write_variants(
    points: Sequence[Point], heading: Iterable[str], answer: str = "", bound_ms: float | None = None
) -> None:
    """Write the table of a model in several variants, their latency beside their throughput, and the answer."""
    # Loaded here: one variant has no curve.
    from dlbricks_tui.cli.rendering import show_parts
    from dlbricks_tui.documents.parts import BLANK_LINE, Plots, Sentence
    from dlbricks_tui.documents.variants import curve_pictures, variants_parts

    show_parts([*map(Sentence, heading), BLANK_LINE, *variants_parts(points), BLANK_LINE])
    if plots := curve_pictures(points, bound_ms):
        show_parts([Plots(plots, _CURVE_LINES), BLANK_LINE], _WIDEST_CURVE)
    if answer:
        show_parts([Sentence(answer)])


def score_document(way: Way, score: Score) -> dict[str, Any]:
    """Return a score, and the way of measuring that it judges, as a JSON document."""
    return {
        "system": way.system,
        "runtime": way.runtime,
        "level": way.level.value,
        "protocol": way.protocol,
        **document(score),
        "error": score.error,
        "holds": score.holds,
    }


def accuracy_document(group: SharedSettings, found: Accuracy) -> dict[str, Any]:
    """Return the agreement of estimates with measurements as a JSON document."""
    way = group.way
    return {
        "system": way.system,
        "runtime": way.runtime,
        "level": way.level.value,
        "protocol": way.protocol,
        "granularity": group.granularity,
        "cut": group.cut.value,
        **document(found),
    }


def write_estimates(answers: Sequence[Answer], output: str) -> None:
    """Write estimates to the output: as `text`, `json` or `csv`."""
    if output != "text":
        estimates = [model_estimate(it.decomposition, it.found) for it in answers]
        write_documents(estimates if output == "json" else [_csv_row(it) for it in estimates], output)
        return
    # Loaded here: the other formats need no tables.
    from dlbricks_tui.cli.rendering import show_parts
    from dlbricks_tui.documents.estimate import EstimateDocument
    from dlbricks_tui.documents.estimates import estimates_parts

    if len(answers) > 1:
        show_parts(estimates_parts([it.found for it in answers]))
    else:
        (one,) = answers
        show_parts(EstimateDocument(one.decomposition.graph, one.found, one.is_chosen).whole())


def write_slowest(answers: Sequence[Answer], output: str, most: int) -> None:
    """Write the slowest layers of each model to the output: as `text`, within the estimates as `json`, or as `csv`."""
    if output == "text":
        from dlbricks_tui.cli.rendering import show_parts
        from dlbricks_tui.documents.estimate import EstimateDocument

        for answer in answers:
            show_parts(EstimateDocument(answer.decomposition.graph, answer.found).slowest(most))
        return
    estimates = [model_estimate(it.decomposition, it.found, most) for it in answers]
    if output == "json":
        write_documents(estimates, output)
    else:
        write_documents([_slow_row(one, it) for one in estimates for it in one.slowest], output)


def _slow_row(one: ModelEstimate, it: SlowSequence) -> dict[str, Any]:
    found: dict[str, Any] = {"model": one.model, **document(it)}
    # A cell holds one value.
    return found | {name: " ".join(map(str, found[name])) for name in ("layers", "names", "ops")}


def _csv_row(one: ModelEstimate) -> dict[str, Any]:
    found: dict[str, Any] = document(one)
    low_ms, high_ms = one.interval_ms or (None, None)
    found |= {"low_ms": low_ms, "high_ms": high_ms, **{f"{name}_layers": n for name, n in found["coverage"].items()}}
    return {name: found[name] for name in _CSV_COLUMNS}


def write_documents(documents: Sequence[Any], output: str) -> None:
    """Write documents with equal keys to the output: as `json` or `csv`."""
    if output == "json":
        write_json(documents)
    elif documents:
        write_csv([list(documents[0]), *(list(row.values()) for row in documents)])
