"""Starts, controls and lists runs, makes their requests, and previews what a run would measure."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from dlbricks_tui.answers.measuring import ProbeOptions, probe_request, run_request
from dlbricks_tui.bricks.decomposition import Decomposition
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.host.load import competing_threads
from dlbricks_tui.host.queue import WorkKind, host_queue, waiting_words
from dlbricks_tui.jobs import process
from dlbricks_tui.jobs.errors import JobError
from dlbricks_tui.jobs.folder import JobFolder, RunFolder, RunFolders, StoredJobs
from dlbricks_tui.measure.jobs import Job, cut_model
from dlbricks_tui.measure.known import Known
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.plan import keys_of, plan
from dlbricks_tui.measure.results import conditions_of
from dlbricks_tui.measure.time_left import expected_seconds
from dlbricks_tui.models.graph import Shape
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.recorded_host import recorded_host
from dlbricks_tui.runs.control import create_run
from dlbricks_tui.runs.request import RunRequest
from dlbricks_tui.runtime.variant import USUAL_KERNELS, Precision, remarks_on, several
from dlbricks_tui.settings.setting import fields_of
from dlbricks_tui.settings.variant import VARIANT
from dlbricks_tui.share.suites.running import start_detached
from dlbricks_tui.tui.open_model import ModelId, ModelSpec, id_of
from dlbricks_tui.tui.run.settings import RunSettings
from dlbricks_tui.tui.session import Session
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
    session: Session, request: RunRequest, specs_of: Callable[[RunRequest], Sequence[ModelSpec]]
) -> RunPreview:
    """Preview a run that would start now; models that only the framework could read are guessed, or else named."""
    parts = [_preview_part(session, part, specs_of(part)) for part in request.parts]
    budget = math.inf if request.time_budget_seconds is None else request.time_budget_seconds
    ahead = () if recorded_host() is not None else host_queue().places()
    settings = [part.runtime.settings for part in request.parts]
    remarks = remarks_on(it.precision for it in settings)
    too_many = too_many_threads((it.threads for it in settings), fingerprint().cores)
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


def _preview_part(session: Session, request: RunRequest, specs: Sequence[ModelSpec]) -> RunPreview:
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


def _of_another_variant(session: Session, spec: ModelSpec) -> Decomposition | None:
    """Return a model in another batch size or format that was read before; None if there is none."""
    usual = replace(spec, precision=Precision.F32, kernels=USUAL_KERNELS)
    formats = (spec.source, *map(spec.source.in_format, spec.source.formats))
    for source, batch_size in product(formats, (spec.batch_size, None)):
        if (found := session.reader.decompose_cached(replace(usual, source=source, batch_size=batch_size))) is not None:
            return found
    return None


class Runs:
    """The runs of a data folder; each is a separate process."""

    def __init__(self, data: DataFolder) -> None:
        self._data = data

    def start(self, request: RunRequest) -> str:
        """Start a run in a new process and return its id."""
        folder = create_run(request, self._data)
        start_detached(folder, self._data)
        return folder.run

    def resume(self, run: str) -> None:
        """Resume a job that is paused, or that ended before it was complete."""
        folder = self.job(run)
        if folder.pause_file.exists() and folder.state().active:
            folder.unpause()
        elif isinstance(folder, RunFolder):
            start_detached(folder, self._data)
        else:
            from dlbricks_tui.answers.jobs import shown_kind

            process.start_detached(folder, self._data, shown_kind(folder.state().kind).kind.function)

    def pause(self, run: str) -> None:
        self._folder(run).pause()

    def unpause(self, run: str) -> None:
        self._folder(run).unpause()

    def pause_or_unpause(self, run: str) -> str:
        """Pause a run that goes on, or let a paused one go on; return what happens."""
        folder = self._folder(run)
        if folder.pause_file.exists():
            folder.unpause()
            return f"Run {run} goes on."
        folder.pause()
        return f"Run {run} pauses after its current round."

    def cancel(self, run: str) -> None:
        self._folder(run).cancel()

    def stored(self) -> StoredJobs:
        """Return the states of all jobs but fleet runs, and the jobs whose state cannot be read."""
        # Loaded here, as below: the first screen needs no jobs of all kinds.
        from dlbricks_tui.answers.jobs import stored_jobs

        found = stored_jobs(self._data)
        return replace(found, states=tuple(it for it in found.states if it.kind is not WorkKind.FLEET))

    def job(self, run: str) -> JobFolder:
        from dlbricks_tui.answers.jobs import find_job

        return find_job(run, self._data)

    def _folder(self, run: str) -> RunFolder:
        return RunFolders(self._data.runs).find(run)


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
        raise JobError("a probe measures single layers: choose granularity 1")
    chosen_values = {field: several(values) for field, values in fields_of(settings, VARIANT).items()}
    if any(len(values) > 1 for values in chosen_values.values()):
        names = [it.name for it in VARIANT]
        raise JobError(f"a probe measures one combination: choose one {', '.join(names[:-1])} and {names[-1]}")
    one: dict[str, Any] = {field: next(iter(values), None) for field, values in chosen_values.items()}
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
        raise JobError(f"{apart[0]} has other input shapes: run it without other models")
    return first
