"""What a run would measure if it started now."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from dlbricks_tui.api.open_models import ModelId, ModelSpec, id_of
from dlbricks_tui.api.run_settings import RunSettings, request_for
from dlbricks_tui.api.workbench_session import WorkbenchSession
from dlbricks_tui.bricks.decomposition import Decomposition
from dlbricks_tui.errors import UserError
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.host.load import competing_threads
from dlbricks_tui.host.queue import host_queue, waiting_words
from dlbricks_tui.measure.jobs import Job, cut_model
from dlbricks_tui.measure.known import Known
from dlbricks_tui.measure.plan import keys_of, plan
from dlbricks_tui.measure.results import conditions_of
from dlbricks_tui.measure.time_left import expected_seconds
from dlbricks_tui.models.graph import Shape
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.recorded_host import recorded_host
from dlbricks_tui.runs.request import RunRequest
from dlbricks_tui.runtime.variant import USUAL_KERNELS, Precision, remarks_on
from dlbricks_tui.wording.numbers import too_many_threads


@dataclass(frozen=True, slots=True)
class RunPreview:
    """The work of a run, as far as its models were read before."""

    # The models of which nothing was read: the work for them is unknown.
    unread: tuple[str, ...] = ()
    # True if the work for some is taken from another format or batch size, without regard to the store.
    is_guess: bool = False
    bricks: int = 0
    whole_models: int = 0
    reused: int = 0
    failed_before: int = 0
    seconds: float = 0.0
    # The work that comes first on this host, for which it would wait.
    waits_for: str = ""
    # True if a probe chooses the bricks when it starts, so that `bricks` are the most.
    is_probe: bool = False
    # The reason why such a run cannot start.
    refusal: str = ""
    # More threads than cores, and precisions whose accuracy is not checked.
    warnings: tuple[str, ...] = ()


def preview_run(
    session: WorkbenchSession,
    sources: Sequence[ModelSource],
    shapes: Mapping[ModelId, Mapping[str, Shape]],
    settings: RunSettings,
) -> RunPreview:
    """Preview a run that would start now; models that only the framework could read are guessed, or else named."""
    try:
        request = request_for(sources, shapes, settings, session.data)
    except UserError as error:
        return RunPreview(refusal=str(error))

    def specs_of(part: RunRequest) -> list[ModelSpec]:
        form, precision = part.runtime.traits.format, part.runtime.settings.precision
        return [
            replace(spec, batch_size=batch_size, precision=precision, kernels=part.runtime.kernels)
            for spec in (
                ModelSpec(it.in_format(form), settings.level, part.measured_cutting, shapes.get(id_of(it), {}))
                for it in sources
            )
            for batch_size in request.batch_sizes or (None,)
        ]

    parts = [_preview_part(session, part, specs_of(part)) for part in request.parts]
    budget = math.inf if request.time_budget_seconds is None else request.time_budget_seconds
    ahead = () if recorded_host() is not None else host_queue().places()
    variants = [part.runtime.settings for part in request.parts]
    remarks = remarks_on(it.precision for it in variants)
    too_many = too_many_threads((it.threads for it in variants), fingerprint().cores)
    return RunPreview(
        tuple(dict.fromkeys(name for each in parts for name in each.unread)),
        any(each.is_guess for each in parts),
        sum(each.bricks for each in parts),
        sum(each.whole_models for each in parts),
        sum(each.reused for each in parts),
        sum(each.failed_before for each in parts),
        min(sum(each.seconds for each in parts), budget),
        waiting_words(ahead) if ahead else "",
        is_probe=request.probe_bricks is not None,
        warnings=tuple(filter(None, (too_many, *remarks))),
    )


def _preview_part(session: WorkbenchSession, request: RunRequest, specs: Sequence[ModelSpec]) -> RunPreview:
    conditions = conditions_of(fingerprint().id, request.runtime, request.method)
    models, unread = [], []
    is_guess = False
    jobs: list[Job] = []
    for spec in specs:
        label = f"{spec.source.name} {spec.batch_size}"
        decomposition = session.reader.decompose_cached(spec)
        if decomposition is not None:
            models.append(cut_model(decomposition, label=label))
        elif (other := _of_another_variant(session, spec)) is not None:
            is_guess = True
            larger = (spec.batch_size or other.graph.batch_size) / max(1, other.graph.batch_size)
            like_it = plan(
                [cut_model(other, label=label)], Known(), request.rule, request.end_to_end, method=request.method
            )
            jobs += [replace(job, expected_ms=larger * job.expected_ms) for job in like_it.jobs]
        else:
            unread.append(spec.source.name)
    # A run that measures everything again has no results yet.
    run = "" if request.again else None
    known = session.estimator.known(conditions, keys_of(models, request.end_to_end, request.method), run)
    if request.retry_failed:
        known = replace(known, failed={})
    found = plan(models, known, request.rule, request.end_to_end, method=request.method)
    jobs += found.jobs
    return RunPreview(
        tuple(unread),
        is_guess,
        sum(not job.whole for job in jobs),
        sum(job.whole for job in jobs),
        len(found.reused),
        len(found.failed),
        expected_seconds(request.method, request.rule, jobs, competing_threads()),
    )


def _of_another_variant(session: WorkbenchSession, spec: ModelSpec) -> Decomposition | None:
    """Return a model in another batch size or format that was read before; None if there is none."""
    usual = replace(spec, precision=Precision.F32, kernels=USUAL_KERNELS)
    formats = (spec.source, *map(spec.source.in_format, spec.source.formats))
    for source, batch_size in product(formats, (spec.batch_size, None)):
        if (found := session.reader.decompose_cached(replace(usual, source=source, batch_size=batch_size))) is not None:
            return found
    return None
