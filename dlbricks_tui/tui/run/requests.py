"""The request of a run that follows from its settings."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dlbricks_tui.answers.measuring import run_request
from dlbricks_tui.answers.probing import ProbeOptions, probe_request
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.measure.method import Method
from dlbricks_tui.models.graph import Shape
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.runs.errors import RunError
from dlbricks_tui.runs.request import RunRequest
from dlbricks_tui.settings.variant import VARIANT
from dlbricks_tui.tui.open_model import ModelId, id_of
from dlbricks_tui.tui.run.settings import RunSettings


def request_for(
    sources: Sequence[ModelSource],
    shapes: Mapping[ModelId, Mapping[str, Shape]],
    settings: RunSettings,
    data: DataFolder,
) -> RunRequest:
    """Return the request of a run; `shapes` are the given input shapes."""
    if settings.probe_seconds is not None:
        return _probe_request(sources, shapes, settings, settings.probe_seconds, data)
    # Without a method, programs that cannot be timed inside of networks are timed alone.
    request = run_request(replace(settings, inputs=_inputs(sources, shapes), method=None), sources, data)
    if settings.method is not Method.ALONE:
        return request
    others = tuple(it._replace(method=Method.ALONE) for it in request.others)
    return replace(request, method=Method.ALONE, others=others)


def _probe_request(
    sources: Sequence[ModelSource],
    shapes: Mapping[ModelId, Mapping[str, Shape]],
    settings: RunSettings,
    seconds: float,
    data: DataFolder,
) -> RunRequest:
    if settings.granularity > 1:
        raise RunError("a probe measures single layers: choose granularity 1")
    several: dict[str, Any] = {it.field: getattr(settings, it.field) for it in VARIANT}
    if any(len(values) > 1 for values in several.values()):
        raise RunError(
            "a probe measures one combination: choose one runtime, threads, batch size, precision, instructions and "
            "optimisation"
        )
    one: dict[str, Any] = {field: next(iter(values), None) for field, values in several.items()}
    options = ProbeOptions(
        seconds=seconds,
        level=settings.level,
        method=settings.method,
        inputs=_inputs(sources, shapes),
        **one,
    )
    return probe_request(options, sources, data)


def _inputs(sources: Sequence[ModelSource], shapes: Mapping[ModelId, Mapping[str, Shape]]) -> Mapping[str, Shape]:
    given = {source.name: dict(shapes.get(id_of(source), {})) for source in sources}
    first = next(iter(given.values()), {})
    apart = [name for name, its in given.items() if its and any(its != other for other in given.values())]
    if apart:
        # The inputs of a run apply to all its models: the names of their inputs are mostly the same.
        raise RunError(f"{apart[0]} has other input shapes: run it without other models")
    return first
