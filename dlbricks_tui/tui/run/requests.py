"""The request of a run that follows from its settings."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from dlbricks_tui.answers.measuring import MeasureOptions, run_request
from dlbricks_tui.answers.probing import ProbeOptions, probe_request
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.measure.method import Method
from dlbricks_tui.models.graph import Shape
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.runs.errors import RunError
from dlbricks_tui.runs.request import RunRequest
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
    choices = settings.choices
    options = MeasureOptions(
        granularity=choices.granularity,
        level=choices.level,
        cut=choices.cut,
        order=choices.order,
        inputs=_inputs(sources, shapes),
        end_to_end=settings.end_to_end,
        runtime=settings.chosen,
        threads=settings.threads,
        batch=settings.batch_sizes,
        precision=settings.precisions,
        instructions=settings.instructions,
        optimisation=settings.optimisations,
        target_interval=settings.target,
        time_budget_seconds=settings.budget_seconds,
        retry_failed=settings.retry_failed,
        again=settings.again,
    )
    request = run_request(options, sources, data)
    if settings.method is not Method.ALONE:
        # Programs that cannot be timed inside of networks are timed alone.
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
    choices = settings.choices
    if choices.granularity > 1:
        raise RunError("a probe measures single layers: choose granularity 1")
    axes = (settings.chosen, settings.threads, settings.batch_sizes, settings.precisions)
    if any(len(values) > 1 for values in (*axes, settings.instructions, settings.optimisations)):
        raise RunError(
            "a probe measures one combination: choose one runtime, threads, batch size, precision, instructions and "
            "optimisation"
        )
    options = ProbeOptions(
        seconds=seconds,
        level=choices.level,
        method=settings.method,
        runtime=settings.chosen[0],
        threads=next(iter(settings.threads), None),
        batch=next(iter(settings.batch_sizes), None),
        precision=settings.precisions[0],
        instructions=next(iter(settings.instructions), None),
        optimisation=next(iter(settings.optimisations), None),
        inputs=_inputs(sources, shapes),
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
