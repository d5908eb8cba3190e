"""A run from its start to its end: request, models, plan, measuring, estimates."""

import math
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from typing import NamedTuple

from dlbricks_tui.bricks.decomposition import Decomposition, decompose
from dlbricks_tui.errors import UserError
from dlbricks_tui.estimate.estimate import Options
from dlbricks_tui.estimate.inquiry import Inquiry, Predictors
from dlbricks_tui.estimate.system_estimate import SystemEstimate
from dlbricks_tui.folders import SAMPLE_MODELS, DataFolder
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.host.noise import competing_threads
from dlbricks_tui.host.queue import HostQueue, WorkKind, queued, this_process
from dlbricks_tui.jobs.control import JobStopped, StopSignals, only_process
from dlbricks_tui.jobs.events import Event, EventWriter
from dlbricks_tui.jobs.folder import JobState, RunFolder, State
from dlbricks_tui.measure.jobs import CutModel
from dlbricks_tui.measure.noise import NoiseMonitor
from dlbricks_tui.measure.plan import Plan
from dlbricks_tui.models.cache import Cache
from dlbricks_tui.models.library import Library
from dlbricks_tui.runs.control import Control
from dlbricks_tui.runs.events import PartStarted, RunStarted
from dlbricks_tui.runs.planning import Models, cut_models, plan_run, read_models, read_parts, steps, tell_plans
from dlbricks_tui.runs.request import RunRequest, read_request
from dlbricks_tui.runs.results import estimate_changed
from dlbricks_tui.runs.work import (
    EarlyWorker,
    EarlyWorkers,
    KnownGraphs,
    RunSession,
    Workplace,
    find_onednn,
    learn_onednn,
    measure,
)
from dlbricks_tui.store.database import ResultsDatabase

# The share of a time budget that may go into repeated rounds.
_MOST_OF_A_BUDGET_TO_REPEAT = 0.1


class EstimatedModel(NamedTuple):
    """A model of a run, and its estimate on the system and runtime of the run."""

    decomposition: Decomposition
    estimate: SystemEstimate


Estimates = tuple[EstimatedModel, ...]


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """The end of a run, and the estimates of its models."""

    request: RunRequest
    state: JobState
    # None if the run was stopped before it had read its models.
    estimates: Estimates | None


def execute(
    folder: RunFolder,
    request: RunRequest,
    place: Workplace,
    queue: HostQueue,
    listener: Callable[[Event], None] | None = None,
    *,
    detached: bool = False,
    with_estimates: bool = True,
    early: EarlyWorkers | None = None,
    read: Callable[[RunSession], Models] = read_models,
    at_end: Callable[[], None] = lambda: None,
) -> RunOutcome:
    """Do what is requested, in this process, and return the outcome; a detached run outlives its terminal.

    `read` returns the networks of a run that has no models of this host, such as a suite. A run without estimates ends
    as soon as it has measured: its results are for another host. `early` has workers that were started before.
    `at_end` is called before viewers hear of the end.
    """
    with (
        only_process(folder),
        StopSignals(ignore_hangup=detached) as signals,
        closing(EventWriter(folder.events_file, listener)) as events,
    ):
        kind = WorkKind.RUN if request.probe_bricks is None else WorkKind.PROBE
        task, budget = queued(kind, request.model_names, place.data.path, folder.run), request.time_budget_seconds
        control = Control(folder, queue, task, events.tell, signals, budget, place.clock, place.spent_seconds)
        control.tell(
            RunStarted(
                run=folder.run,
                pid=this_process().pid,
                models=request.model_names,
                runtime=", ".join(part.runtime.identity for part in request.parts),
                level=request.level.value,
                granularity=request.cutting.granularity,
                end_to_end=request.end_to_end,
            )
        )
        estimates, stopped, workers = None, None, early or EarlyWorkers(EarlyWorker(), EarlyWorker())
        try:
            sessions = _sessions(folder, request, place, control, signals, workers.first)
            sessions, all_models = _begin(sessions, read, workers, explains=with_estimates)
            stopped, estimates = _measure_and_estimate(sessions, all_models, place.data, estimates=with_estimates)
        except JobStopped as reason:
            stopped = reason
        except UserError as error:
            control.end(State.FAILED, str(error))
            raise
        except BaseException:
            control.end(State.FAILED, "a fault of dlbricks; what was measured before it is kept")
            raise
        finally:
            workers.end()
        try:
            at_end()
        except UserError as error:
            control.end(State.FAILED, str(error))
            raise
        state = control.end(stopped.state, stopped.why) if stopped else control.end(State.FINISHED, "")
    return RunOutcome(request, state, estimates)


def _sessions(
    folder: RunFolder, request: RunRequest, place: Workplace, control: Control, signals: StopSignals, early: EarlyWorker
) -> list[RunSession]:
    """Return the session of each part, which share what the parts read and the reserve for repeated rounds."""
    budget = request.time_budget_seconds
    noise = NoiseMonitor(math.inf if budget is None else _MOST_OF_A_BUDGET_TO_REPEAT * budget)
    system, graphs = fingerprint(), KnownGraphs()
    return [
        RunSession(
            folder,
            part,
            place,
            control,
            signals,
            control.tell,
            system,
            noise,
            part=request.part_label(part),
            graphs=graphs,
            early=early,
        )
        for part in request.parts
    ]


def _begin(
    sessions: Sequence[RunSession], read: Callable[[RunSession], Models], workers: EarlyWorkers, *, explains: bool
) -> tuple[list[RunSession], Sequence[Models]]:
    """Read the models and wait for the turn; return the sessions, which know the competition then, and the models."""
    first = sessions[0]
    control, signals = first.control, first.signals
    if control.host_was_busy:
        workers.end()
    with signals.waiting():
        workers.settle()
    # Neither the run's own work nor that of a run before it is competition.
    competing = None if control.host_was_busy else competing_threads()
    if competing is not None:
        first.start_early()
        if explains:
            workers.start_explaining(first.request.runtime, first.place, first.folder.worker_log)
    # Before the turn: models and inputs that are no good are refused at once.
    with signals.waiting():
        all_models = read_parts(sessions, read)
        learn_onednn(first, workers.explainer)
    control.begin()
    if competing is None:
        competing = competing_threads()
    return [replace(session, competing=competing) for session in sessions], all_models


def _measure_and_estimate(
    sessions: Sequence[RunSession], all_models: Sequence[Models], data: DataFolder, *, estimates: bool
) -> tuple[JobStopped | None, Estimates]:
    """Measure, and estimate if asked; return the reason if the run was stopped early, and the estimates."""
    with ResultsDatabase(data.store) as store:
        stopped = _measure(sessions, all_models, store)
        if not estimates:
            return stopped, ()
        if stopped is None:
            _train(sessions, all_models, store)
        found: list[EstimatedModel] = []
        for session, models in zip(sessions, all_models, strict=True):
            of_part = _estimates(models, session.request, store, data)
            found += of_part
            # As the store tells them: how the host changed meanwhile is known now.
            for model, one in zip(models, of_part, strict=True):
                session.tell(estimate_changed(model.name, one.estimate.estimate))
        if stopped is None:
            _find_versions(sessions, store)
        return stopped, tuple(found)


def _measure(sessions: Sequence[RunSession], all_models: Sequence[Models], store: ResultsDatabase) -> JobStopped | None:
    """Measure and store what the store lacks; return the reason if the run was stopped early."""
    plans: list[Plan] = []
    for session, models in zip(sessions, all_models, strict=True):
        plans.append(plan_run(session, models, store, sum(len(each.jobs) for each in plans)))
    tell_plans(sessions, all_models, plans)
    try:
        for number, (session, models, planned) in enumerate(zip(sessions, all_models, plans, strict=True), start=1):
            if len(sessions) > 1:
                later = sum(each.seconds for each in plans[number:])
                left = session.control.seconds_left
                session.tell(
                    PartStarted(
                        part=session.part, number=number, of=len(sessions), later_seconds=later, budget_seconds=left
                    )
                )
            for jobs in steps(session, models, planned, store):
                measure(session, models, jobs, store)
    except JobStopped as early:
        return early
    return None


def _find_versions(sessions: Sequence[RunSession], store: ResultsDatabase) -> None:
    """Find out which oneDNN has computed the results. All is measured by now: an interrupt loses nothing else."""
    with suppress(JobStopped):
        for session in sessions:
            find_onednn(session, store)


def _train(sessions: Sequence[RunSession], all_models: Sequence[Models], store: ResultsDatabase) -> None:
    """Train the predictors with what was measured, so that the next estimate finds them."""
    for session, models in zip(sessions, all_models, strict=True):
        conditions, predictors = session.conditions, Predictors(store, session.place.data.cache)
        graphs = {model.decomposition.graph.level: model.decomposition.graph for model in models}
        for level, graph in graphs.items():
            predictors.of(conditions.at(level), graph.traits)


def read_outcome(folder: RunFolder, data: DataFolder) -> RunOutcome:
    """Return the outcome of a run that another process has executed: its models are read again."""
    request, state = read_request(folder.request_file), folder.state()
    if state.message and not state.bricks.total and not state.whole_models.total:
        # The run was stopped before it had read its models.
        return RunOutcome(request, state, None)
    if request.suite is not None:
        return RunOutcome(request, state, ())
    known: KnownGraphs = {}

    def read(part: RunRequest) -> Models:
        library = Library(SAMPLE_MODELS, data.path, part.runtime.traits.format)
        return cut_models(part, library, data.cache, folder.worker_log, lambda _: None, known=known)

    estimates: list[EstimatedModel] = []
    for part, models in zip(request.parts, read_parts(request.parts, read), strict=True):
        with ResultsDatabase(data.store) as store:
            estimates += _estimates(models, part, store, data)
    return RunOutcome(request, state, tuple(estimates))


def _estimates(models: Sequence[CutModel], request: RunRequest, store: ResultsDatabase, data: DataFolder) -> Estimates:
    found = []
    system, runtime, predictors = fingerprint().id, request.runtime.identity, Predictors(store, data.cache)
    for model in models:
        decomposition = model.decomposition
        if decomposition.cutting != request.cutting:
            decomposition = decompose(decomposition.graph, request.cutting, Cache(data.cache))
        inquiry = Inquiry(store, decomposition, Options(measured_only=request.measured_only), predictors)
        estimate = inquiry.on(system, runtime) or inquiry.empty(system, runtime)
        found.append(EstimatedModel(decomposition, estimate))
    return tuple(found)
