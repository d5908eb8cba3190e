"""The public Python API: load a model, estimate it from stored results, measure it, and read the results.

    from dlbricks_tui import api

    run = api.measure("squeezenet1.1")
    print(run.models[0].sequential_ms)

The names in `__all__` are stable. All other modules may change from one version to the next.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from logging import getLogger
from pathlib import Path

from dlbricks_tui.answers.checks.checked import checked, measure_again
from dlbricks_tui.answers.checks.checking import CheckOptions, check_plan
from dlbricks_tui.answers.checks.results import CheckedModel
from dlbricks_tui.answers.comparisons.combinations import CompareOptions
from dlbricks_tui.answers.comparisons.combinations import compare as ranking_of
from dlbricks_tui.answers.estimating import Remarks, open_estimator
from dlbricks_tui.answers.evaluations.evaluating import EvaluateOptions, EvaluationSteps
from dlbricks_tui.answers.evaluations.evaluating import evaluate as evaluation_result
from dlbricks_tui.answers.evaluations.from_run import evaluation_of_run
from dlbricks_tui.answers.evaluations.preparing import check_evaluation
from dlbricks_tui.answers.evaluations.results import (
    ComparedResult,
    EvaluatedLoad,
    EvaluatedResult,
    EvaluationResult,
)
from dlbricks_tui.answers.fleets.requesting import FleetOptions, fleet_request
from dlbricks_tui.answers.fleets.results import (
    FleetEstimate,
    FleetHost,
    FleetModel,
    FleetResult,
    LeftOutModel,
    fleet_result,
)
from dlbricks_tui.answers.measuring import MeasureOptions, run_request
from dlbricks_tui.answers.opening import library, open_loader, require_batch_size
from dlbricks_tui.answers.probing import ProbeOptions, known_systems, probe_request
from dlbricks_tui.answers.results import (
    BrickShare,
    ComparedCombination,
    Comparison,
    ModelEstimate,
    RegionShare,
    Remaining,
    TypeShare,
    comparison,
    model_estimate,
)
from dlbricks_tui.answers.run_results import Counts, ProbeResult, RunResult, probe_result, run_result
from dlbricks_tui.answers.scenarios.load_process import measure as measure_order
from dlbricks_tui.answers.scenarios.load_process import order_of
from dlbricks_tui.answers.scenarios.predicting import ScenarioOptions, scenario_answer
from dlbricks_tui.answers.scenarios.results import MeasuredScenario, PredictedScenario, ScenarioResult, scenario_result
from dlbricks_tui.answers.scope import EstimateOptions
from dlbricks_tui.answers.traces.results import TraceResult, trace_result
from dlbricks_tui.answers.traces.tracing import (
    TraceFormat,
    TraceOptions,
    require_place,
    require_room,
    trace_model,
    trace_order,
    write_in,
)
from dlbricks_tui.bricks.cutting import Cut
from dlbricks_tui.bricks.ordering import LayerOrder
from dlbricks_tui.errors import UserError
from dlbricks_tui.estimate.errors import EstimateError
from dlbricks_tui.estimate.estimate import Coverage
from dlbricks_tui.estimate.explanation import Residual
from dlbricks_tui.evaluations.change import Verdict as CheckVerdict
from dlbricks_tui.evaluations.differences import Difference
from dlbricks_tui.evaluations.errors import EvaluationError
from dlbricks_tui.evaluations.evaluation import Evaluation
from dlbricks_tui.evaluations.matching import Match
from dlbricks_tui.fleet.errors import FleetError
from dlbricks_tui.fleet.folder import FleetFolders, create_fleet
from dlbricks_tui.fleet.progress import FleetProgress
from dlbricks_tui.fleet.request import Question as FleetQuestion
from dlbricks_tui.folders import DataFolder, data_folder
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.host.host_lock import host_lock
from dlbricks_tui.measure.errors import MeasureError
from dlbricks_tui.measure.events import Event
from dlbricks_tui.measure.method import Method
from dlbricks_tui.models.errors import ModelError
from dlbricks_tui.models.graph import Layer, LayerGraph, Level, Numbers, Shape
from dlbricks_tui.models.input_shapes import spelled
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.runs.errors import RunError
from dlbricks_tui.runs.launch import create_run
from dlbricks_tui.runs.progress import RunProgress
from dlbricks_tui.runs.request import CalibrationPolicy, RunRequest
from dlbricks_tui.runs.run import RunOutcome, execute
from dlbricks_tui.runs.run_folder import State
from dlbricks_tui.runs.work import Workplace
from dlbricks_tui.runtime.errors import WorkerError
from dlbricks_tui.runtime.variant import InstructionSet, Optimisation, Precision
from dlbricks_tui.scenarios.messages import LoadMessage, ScenarioOrder
from dlbricks_tui.scenarios.scenario import Kind as ScenarioKind
from dlbricks_tui.scenarios.scenario import ScenarioError
from dlbricks_tui.store.columns import Summary
from dlbricks_tui.store.contrast import Verdict
from dlbricks_tui.store.database import ResultsDatabase, open_results
from dlbricks_tui.store.errors import StoreError
from dlbricks_tui.store.records import LoadTest, Runtime, System
from dlbricks_tui.store.selections import Selection
from dlbricks_tui.traces.errors import TraceError
from dlbricks_tui.traces.messages import TraceMessage
from dlbricks_tui.traces.trace import TraceLevel
from dlbricks_tui.wording.events import doing_now, inputs_given_before, note_of
from dlbricks_tui.wording.fleets import fleet_line, note_line
from dlbricks_tui.wording.numbers import too_many_threads
from dlbricks_tui.wording.scenarios import message_line
from dlbricks_tui.wording.tracing import message_line as trace_line

__all__ = [
    "BrickShare",
    "CalibrationPolicy",
    "CheckOptions",
    "CheckVerdict",
    "CheckedModel",
    "CompareOptions",
    "ComparedCombination",
    "ComparedResult",
    "Comparison",
    "Counts",
    "Coverage",
    "Cut",
    "Difference",
    "EstimateError",
    "EstimateOptions",
    "EvaluateOptions",
    "EvaluatedLoad",
    "EvaluatedResult",
    "Evaluation",
    "EvaluationError",
    "EvaluationResult",
    "FleetError",
    "FleetEstimate",
    "FleetHost",
    "FleetModel",
    "FleetOptions",
    "FleetQuestion",
    "FleetResult",
    "InstructionSet",
    "Layer",
    "LayerGraph",
    "LayerOrder",
    "LeftOutModel",
    "Level",
    "Match",
    "MeasureError",
    "MeasureOptions",
    "MeasuredScenario",
    "Method",
    "ModelError",
    "ModelEstimate",
    "Optimisation",
    "Precision",
    "PredictedScenario",
    "ProbeOptions",
    "ProbeResult",
    "Progress",
    "RegionShare",
    "Remaining",
    "Residual",
    "ResultsDatabase",
    "RunError",
    "RunResult",
    "Runtime",
    "ScenarioError",
    "ScenarioKind",
    "ScenarioOptions",
    "ScenarioResult",
    "Selection",
    "State",
    "StoreError",
    "Summary",
    "System",
    "TraceError",
    "TraceFormat",
    "TraceLevel",
    "TraceOptions",
    "TraceResult",
    "TypeShare",
    "UserError",
    "Verdict",
    "WorkerError",
    "check",
    "compare",
    "estimate",
    "evaluate",
    "evaluation_of",
    "fleet",
    "fleet_status",
    "load",
    "measure",
    "open_results",
    "probe",
    "scenario",
    "trace",
]

# A path, a name of the library, or `table1:ID`.
Model = str | os.PathLike[str]
_log = getLogger("dlbricks_tui")


@dataclass(frozen=True, slots=True)
class Progress:
    """A run, or a fleet run, at the moment of an event."""

    run: str
    state: State
    # Bricks and whole models together.
    done: int
    total: int
    failed: int
    seconds_left: float | None
    # The current step of the run, and the event as a sentence, if it has one.
    doing: str
    note: str | None


def load(
    model: Model,
    *,
    level: Level = Level.WRITTEN,
    inputs: Mapping[str, Shape] | None = None,
    values: Mapping[str, Numbers] | None = None,
    batch: int | None = None,
    data: os.PathLike[str] | str | None = None,
) -> LayerGraph:
    """Return the layer graph of a model.

    `inputs` are shapes by input name, for models whose files do not say them. `values` are the numbers in inputs that
    are settings, such as a sampling rate. `batch` is the number of images, sentences or rows in an inference, that of
    the file by default. `data` is a data folder, the user's own by default.
    """
    folder = _folder(data)
    if batch is not None:
        require_batch_size(batch, ModelError)
    with open_loader(folder, _given_before, most_bytes=fingerprint().memory_bytes) as loader:
        return loader.load(_source(model, folder), level, inputs, values, batch)


def estimate(
    model: Model, options: EstimateOptions | None = None, *, data: os.PathLike[str] | str | None = None
) -> ModelEstimate:
    """Return a model's latency composed of stored results of its bricks; nothing is measured."""
    folder, options = _folder(data), options or EstimateOptions()
    source = _source(model, folder)
    with open_estimator(options, folder, Remarks(_log.info, str, _given_before)) as estimator:
        scope = estimator.scope_of([source])
        (found,) = estimator.estimates([source], scope)
        return model_estimate(found.decomposition, found.found)


def compare(
    model: Model, options: CompareOptions | None = None, *, data: os.PathLike[str] | str | None = None
) -> Comparison:
    """Return what the store knows of a model by runtime, threads, batch size and precision, the best first."""
    folder = _folder(data)
    source, remarks = _source(model, folder), Remarks(_log.info, str, _given_before)
    with ResultsDatabase(folder.store) as store:
        found = ranking_of(source, options or CompareOptions(), folder, store, remarks, named=os.fspath(model))
    return comparison(found)


def measure(
    models: Model | Sequence[Model],
    options: MeasureOptions | None = None,
    *,
    progress: Callable[[Progress], None] | None = None,
    data: os.PathLike[str] | str | None = None,
) -> RunResult:
    """Measure the bricks of models that the store lacks, and return the outcome with an estimate of each model.

    `progress` is called after each event. Call this function in the main thread only: it takes SIGINT, SIGTERM and
    SIGHUP for requests to end the run, whose state then says so. All results until then are kept.
    """
    _require_main_thread()
    began, folder = time.monotonic(), _folder(data)
    request = run_request(options or MeasureOptions(), _sources(models, folder), folder)
    outcome = _executed(request, folder, began, progress)
    return run_result(outcome.state, _estimates_of(outcome))


def probe(
    models: Model | Sequence[Model] = (),
    options: ProbeOptions | None = None,
    *,
    progress: Callable[[Progress], None] | None = None,
    data: os.PathLike[str] | str | None = None,
) -> ProbeResult:
    """Measure the few bricks that tell most about this system, and predict the others from other systems.

    Without models, all that were measured on any system of the store are estimated. As `measure`, this handles signals:
    call it in the main thread only.
    """
    _require_main_thread()
    began, folder = time.monotonic(), _folder(data)
    request = probe_request(options or ProbeOptions(), _sources(models, folder), folder)
    others = known_systems(request, folder)
    outcome = _executed(request, folder, began, progress)
    identity = request.runtime.identity
    return probe_result(outcome.state, fingerprint().id, identity, others, _estimates_of(outcome))


def scenario(
    model: Model,
    options: ScenarioOptions,
    execution: EstimateOptions | None = None,
    *,
    measure: bool = False,
    progress: Callable[[str], None] | None = None,
    data: os.PathLike[str] | str | None = None,
) -> ScenarioResult:
    """Predict how much load a model can serve, from stored results, and measure it by LoadGen if `measure` is true.

    `execution` says by which runtime, in which variant, the model is executed. `progress` is called with a line when a
    test of LoadGen begins and ends. An exception, such as KeyboardInterrupt, ends the measurement and its processes. A
    notebook, in which an event loop runs, may call this function as any other.
    """
    folder, execution = _folder(data), execution or EstimateOptions()
    source = _source(model, folder)
    with open_estimator(execution, folder, Remarks(_log.info, str, _given_before)) as estimator:
        answer = scenario_answer(estimator, source, options)
    if not measure:
        return scenario_result(answer, None, folder, predicts=True)
    order = order_of(answer, is_system_named=execution.system is not None)

    def take(message: LoadMessage) -> None:
        if progress is not None and (line := message_line(message, order.scenario)):
            progress(line)

    return scenario_result(answer, measure_order(order, folder, take), folder, predicts=True)


def check(
    against: os.PathLike[str] | str,
    models: Model | Sequence[Model] = (),
    options: CheckOptions | None = None,
    *,
    progress: Callable[[Progress], None] | None = None,
    data: os.PathLike[str] | str | None = None,
) -> tuple[CheckedModel, ...]:
    """Measure models again, by default all of a file, and return whether they are slower than the file says.

    The file is an evaluation with results, or one of `dlbricks results export`. As `measure`, this handles signals:
    call it in the main thread only. RunError is raised if it is interrupted.
    """
    _require_main_thread()
    folder, named = _folder(data), [models] if isinstance(models, str | os.PathLike) else models
    plan = check_plan([os.fspath(model) for model in named], Path(against), options or CheckOptions(), folder)
    measured = measure_again(plan, folder, lambda request: _executed(request, folder, time.monotonic(), progress))
    if measured.stopped:
        raise RunError("the check was stopped before its verdicts; what was measured is kept in the store")
    return checked(plan, measured, folder)


def trace(
    model: Model,
    options: TraceOptions | None = None,
    *,
    file: os.PathLike[str] | str | None = None,
    format: TraceFormat = TraceFormat.PERFETTO,  # noqa: A002 - the option of the command has this name
    progress: Callable[[str], None] | None = None,
    data: os.PathLike[str] | str | None = None,
) -> TraceResult:
    """Run a model at rising levels of detail, and return what each level takes and adds, and the times of the layers.

    The trace is kept in the data folder. `file` is written for the program that the format names, and replaced if it
    is there. `progress` is called with a line after each level. An exception, such as KeyboardInterrupt, ends the
    trace and its processes.
    """
    folder = _folder(data)
    place = None if file is None else Path(file)
    if place is not None:
        require_place(place, replace=True)
    order = trace_order(options or TraceOptions(), _source(model, folder), folder)
    require_room(folder)

    def take(message: TraceMessage) -> None:
        if progress is not None and (line := trace_line(message)):
            progress(line)

    found = trace_model(order, folder, take)
    if place is None:
        return trace_result(found)
    write_in(format, found, place)
    return trace_result(found, place, format)


def evaluate(
    file: os.PathLike[str] | str,
    options: EvaluateOptions | None = None,
    *,
    progress: Callable[[Progress], None] | None = None,
    data: os.PathLike[str] | str | None = None,
) -> EvaluationResult:
    """Carry out an evaluation: check what matches its file, run what the store lacks, and return the results.

    If something does not match, the result says so and nothing is measured, unless the options have `anyway`. As
    `measure`, this handles signals: call it in the main thread only.
    """
    # Loaded here: only evaluations need a reader of TOML files.
    from dlbricks_tui.evaluations.file import read_evaluation

    _require_main_thread()
    began, folder, path = time.monotonic(), _folder(data), Path(file)
    checked = check_evaluation(read_evaluation(path), path, folder)

    def run(request: RunRequest) -> None:
        state = _executed(request, folder, began, progress).state
        if state.state in (State.INTERRUPTED, State.CANCELLED):
            raise RunError(f"run {state.run} was {state.state.value}: evaluate {path} again to go on with the rest")

    def measure_load(order: ScenarioOrder) -> LoadTest:
        return measure_order(order, folder, lambda _: None).test

    steps = EvaluationSteps(_log.info, run, measure_load)
    return evaluation_result(checked, options or EvaluateOptions(), folder, steps)


def evaluation_of(run: str, file: os.PathLike[str] | str, *, data: os.PathLike[str] | str | None = None) -> Evaluation:
    """Write the evaluation of a finished run to a file, with its results, and return it."""
    from dlbricks_tui.evaluations.file import write_evaluation

    path = Path(file)
    return write_evaluation(evaluation_of_run(run, path, _folder(data)), path)


def fleet(
    models: Model | Sequence[Model],
    options: FleetOptions,
    *,
    progress: Callable[[Progress], None] | None = None,
    data: os.PathLike[str] | str | None = None,
) -> FleetResult:
    """Measure the bricks of models on many hosts, and return an estimate of each model on each host.

    `progress` is called after each event; it counts the bricks of all hosts together. As `measure`, this handles
    signals: call it in the main thread only.
    """
    # Loaded here: other functions drive no hosts.
    from dlbricks_tui.fleet.driving.running import FleetPlace, execute_fleet

    _require_main_thread()
    folder = _folder(data)
    found = create_fleet(fleet_request(options, _sources(models, folder), folder), folder)
    report = None if progress is None else _fleet_reporter(found.run, progress)
    state = execute_fleet(found, FleetPlace(folder), report)
    return fleet_result(state, found.progress())


def fleet_status(run: str = "last", *, data: os.PathLike[str] | str | None = None) -> FleetResult:
    """Return a fleet run as it is now, by its id or the beginning of its id; nothing is measured."""
    found = FleetFolders(_folder(data).fleets).find(run)
    return fleet_result(found.state(), found.progress())


def _fleet_reporter(run: str, progress: Callable[[Progress], None]) -> Callable[[Event], None]:
    folded = FleetProgress()

    def report(event: Event) -> None:
        note = note_line(event, folded)
        folded.take(event)
        hosts = folded.hosts.values()
        left = [host.seconds_left for host in hosts if host.seconds_left is not None]
        progress(
            Progress(
                run=run,
                state=State.RUNNING if folded.ended is None else State(folded.ended.state),
                done=sum(host.bricks for host in hosts),
                total=sum(host.of for host in hosts),
                failed=sum(host.failed for host in hosts),
                # Hosts measure side by side.
                seconds_left=max(left, default=None),
                doing="" if folded.ended is not None else fleet_line(folded),
                note=note or None,
            )
        )

    return report


def _require_main_thread() -> None:
    if threading.current_thread() is not threading.main_thread():
        raise RunError("a run handles signals: measure in the main thread, or in a separate process")


def _executed(
    request: RunRequest, folder: DataFolder, began: float, progress: Callable[[Progress], None] | None
) -> RunOutcome:
    run = create_run(request, folder)
    if warning := too_many_threads((part.runtime.settings.threads for part in request.parts), fingerprint().cores):
        _log.warning(warning)
    place = Workplace(folder, spent_seconds=time.monotonic() - began)
    return execute(run, request, place, host_lock(), None if progress is None else _reporter(run.run, progress))


def _estimates_of(outcome: RunOutcome) -> Iterator[ModelEstimate]:
    return (model_estimate(decomposition, one) for decomposition, one in outcome.estimates or ())


def _reporter(run: str, progress: Callable[[Progress], None]) -> Callable[[Event], None]:
    folded = RunProgress()

    def report(event: Event) -> None:
        folded.take(event)
        note = note_of(event)
        failed = folded.bricks_failed + folded.models_failed
        progress(
            Progress(
                run,
                folded.state,
                folded.done,
                folded.total,
                failed,
                folded.seconds_left,
                doing_now(folded),
                None if note is None else note.text,
            )
        )

    return report


def _folder(data: os.PathLike[str] | str | None) -> DataFolder:
    return data_folder(None if data is None else os.fspath(data))


def _source(model: Model, folder: DataFolder) -> ModelSource:
    found = library(folder).find(os.fspath(model))
    if len(found) != 1:
        raise ModelError(f"{model} stands for {len(found)} models; name one, such as table1:14")
    return found[0]


def _sources(models: Model | Sequence[Model], folder: DataFolder) -> tuple[ModelSource, ...]:
    named = [models] if isinstance(models, str | os.PathLike) else models
    return library(folder).find_all(os.fspath(model) for model in named)


def _given_before(source: ModelSource, given: Mapping[str, Numbers]) -> None:
    _log.info(inputs_given_before(source.name, spelled(given)))
