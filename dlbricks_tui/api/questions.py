"""One function for each question about models; each is a method of a session, too."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from logging import getLogger
from pathlib import Path

from dlbricks_tui.api import language_models, loads, measuring, traces
from dlbricks_tui.api.checks import CheckedModel, CheckOptions, check_plan, checked, measured_by
from dlbricks_tui.api.combinations import CompareOptions
from dlbricks_tui.api.documents import taken
from dlbricks_tui.api.estimates import Comparison, ModelEstimate, comparison, model_estimate
from dlbricks_tui.api.evaluating import EvaluateOptions, EvaluationResult, EvaluationSteps
from dlbricks_tui.api.evaluating import evaluate as evaluation_result
from dlbricks_tui.api.fleets import FleetJob, FleetOptions, FleetResult, fleet_request
from dlbricks_tui.api.from_run import evaluation_of_run
from dlbricks_tui.api.language_answers import LanguageAnswer, LanguageOptions
from dlbricks_tui.api.loads import ScenarioResult, scenario_result
from dlbricks_tui.api.measuring import MeasureOptions, ProbeOptions, ProbeResult, RunResult
from dlbricks_tui.api.opening import ModelLoaders
from dlbricks_tui.api.preparing import check_file
from dlbricks_tui.api.scenarios import ScenarioOptions
from dlbricks_tui.api.scope import EstimateOptions
from dlbricks_tui.api.session import Data, Model, Session, make_methods, names_of
from dlbricks_tui.api.traces import TraceFormat, TraceOptions, TraceResult
from dlbricks_tui.evaluations.evaluation import Evaluation
from dlbricks_tui.fleet.request import FleetProgress
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.jobs.errors import JobError
from dlbricks_tui.jobs.events import Event
from dlbricks_tui.jobs.folder import State
from dlbricks_tui.language.opening import open_language_model
from dlbricks_tui.models.errors import ModelError
from dlbricks_tui.models.graph import LayerGraph, Level, Numbers, Shape
from dlbricks_tui.runs.events import RunProgress
from dlbricks_tui.runs.request import RunRequest
from dlbricks_tui.runs.run import RunOutcome
from dlbricks_tui.settings.setting import member
from dlbricks_tui.settings.variant import BATCH
from dlbricks_tui.traces.trace import TraceError
from dlbricks_tui.wording import jobs
from dlbricks_tui.wording.events import doing_now, note_of
from dlbricks_tui.wording.jobs import fleet_line, language_line, note_line, trace_line

_LOG = getLogger("dlbricks_tui")


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


def _require_main_thread() -> None:
    """Raise JobError outside the main thread, which alone can handle the signals of a run."""
    if threading.current_thread() is not threading.main_thread():
        raise JobError("a run handles signals: measure in the main thread, or in a separate process")


def _telling(progress: Callable[[str], None] | None, words: Callable[[Event], str]) -> Callable[[Event], None]:
    """Return a function that passes on the words of events that have some."""

    def take(event: Event) -> None:
        if progress is not None and (line := words(event)):
            progress(line)

    return take


def _reporter(run: str, progress: Callable[[Progress], None]) -> Callable[[Event], None]:
    folded = RunProgress()

    def report(event: Event) -> None:
        folded.take(event)
        note = note_of(event)
        progress(
            taken(
                Progress,
                folded,
                run=run,
                doing=doing_now(folded),
                note=None if note is None else note.text,
            )
        )

    return report


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


def load(
    model: Model,
    *,
    level: Level = Level.WRITTEN,
    inputs: Mapping[str, Shape] | None = None,
    values: Mapping[str, Numbers] | None = None,
    batch: int | None = None,
    data: Data = None,
) -> LayerGraph:
    """Return the layer graph of a model.

    `inputs` are shapes by input name, for models whose files do not say them. `values` are the numbers in inputs that
    are settings, such as a sampling rate. `batch` is the number of images, sentences or rows in an inference, that of
    the file by default.
    """
    session, level = _session_at(data), member(Level, level, "level", ModelError)
    if batch is not None:
        BATCH.require(batch, ModelError)
    with ModelLoaders(session.data, session.remarks, most_bytes=fingerprint().memory_bytes) as loaders:
        return loaders.loader().load(session.source(model), level, inputs, values, batch)


def estimate(model: Model, options: EstimateOptions | None = None, *, data: Data = None) -> ModelEstimate:
    """Return a model's latency composed of stored results of its bricks; nothing is measured."""
    session = _session_at(data)
    source = session.source(model)
    with session.open_estimator(options or EstimateOptions()) as estimator:
        (found,) = estimator.answers([source], estimator.scope_of([source]))
        return model_estimate(found.decomposition, found.found)


def compare(model: Model, options: CompareOptions | None = None, *, data: Data = None) -> Comparison:
    """Return what the store knows of a model by runtime, threads, batch size and precision, the best first."""
    return comparison(_session_at(data).ranking(model, options or CompareOptions()))


def language(
    models: Model | Sequence[Model],
    options: LanguageOptions | None = None,
    *,
    measure: bool = True,
    end_to_end: bool = False,
    progress: Callable[[str], None] | None = None,
    data: Data = None,
) -> tuple[LanguageAnswer, ...]:
    """Return how fast language models are on this host, and whether they fit: an answer for each in each variant.

    A model is a name that `dlbricks llm --list` shows, or the path of a config.json, a GGUF file, or a folder with
    either. What the store lacks is measured in a process of its own, or predicted if `measure` is false. `end_to_end`
    times the whole model as well, where it fits. `progress` is called with a line when something begins, ends or fails.
    An exception, such as KeyboardInterrupt, ends the measurement and its processes.
    """
    session = _session_at(data)
    options = options or LanguageOptions()
    named = [open_language_model(it) for it in names_of(models)]
    for it in named:
        options.require_context(it.name, it.architecture.positions)
    if measure:
        order = language_models.language_order(named, options, session.data, end_to_end=end_to_end)
        language_models.measure(order, session.data, _telling(progress, language_line))
    return language_models.stored_answers(named, options, session.data)


def scenario(
    model: Model,
    options: ScenarioOptions,
    execution: EstimateOptions | None = None,
    *,
    measure: bool = False,
    progress: Callable[[str], None] | None = None,
    data: Data = None,
) -> ScenarioResult:
    """Predict how much load a model can serve, from stored results, and measure it by LoadGen if `measure` is true.

    `execution` says by which runtime, in which variant, the model is executed. `progress` is called with a line when a
    test of LoadGen begins and ends. An exception, such as KeyboardInterrupt, ends the measurement and its processes. A
    notebook, in which an event loop runs, may call this function as any other.
    """
    session = _session_at(data)
    execution = execution or EstimateOptions()
    answer = session.scenario_answer(model, options, execution)
    found = None
    if measure:
        order = loads.order_of(answer, is_system_named=execution.system is not None)
        take = _telling(progress, lambda event: jobs.message_line(event, order.scenario))
        found = loads.measure(order, session.data, take)
    return scenario_result(answer, found, session.data, predicts=True)


def trace(
    model: Model,
    options: TraceOptions | None = None,
    *,
    file: os.PathLike[str] | str | None = None,
    format: TraceFormat | None = None,  # noqa: A002 - the option of the command has this name
    progress: Callable[[str], None] | None = None,
    data: Data = None,
) -> TraceResult:
    """Run a model at rising levels of detail, and return what each level takes and adds, and the times of the layers.

    The trace is kept in the data folder. `file` is written for the program that the format names, and replaced if it is
    there; by default for chrome://tracing if its name ends in .json, else for Perfetto. `progress` is called with a
    line after each level. An exception, such as KeyboardInterrupt, ends the trace and its processes.
    """
    session = _session_at(data)
    place = None if file is None else Path(file)
    wanted = None if format is None else member(TraceFormat, format, "format", TraceError)
    form = None if place is None else traces.format_of(place, wanted)
    if place is not None:
        traces.require_place(place, is_replaced=True)
    order = session.trace_order(model, options or TraceOptions())
    found = traces.trace_model(order, session.data, _telling(progress, trace_line))
    if place is not None and form is not None:
        traces.write_in(place, found, form)
    return traces.trace_result(found, place, form)


def measure(
    models: Model | Sequence[Model],
    options: MeasureOptions | None = None,
    *,
    progress: Callable[[Progress], None] | None = None,
    data: Data = None,
) -> RunResult:
    """Measure the bricks of models that the store lacks, and return the outcome with an estimate of each model.

    `progress` is called after each event. Call this function in the main thread only: it takes SIGINT, SIGTERM and
    SIGHUP for requests to end the run, whose state then says so. All results until then are kept.
    """
    _require_main_thread()
    session, began = _session_at(data), time.monotonic()
    if not models:
        raise JobError("name a model to measure, such as squeezenet1.1")
    request = measuring.run_request(options or MeasureOptions(), session.sources(models), session.data)
    outcome = _executed(session, request, began, progress)
    return measuring.run_result(outcome.state, outcome)


def probe(
    models: Model | Sequence[Model] = (),
    options: ProbeOptions | None = None,
    *,
    progress: Callable[[Progress], None] | None = None,
    data: Data = None,
) -> ProbeResult:
    """Measure the few bricks that tell most about this system, and predict the others from other systems.

    Without models, all that were measured on any system of the store are estimated. As `measure`, this handles signals:
    call it in the main thread only.
    """
    _require_main_thread()
    session, began = _session_at(data), time.monotonic()
    request = measuring.probe_request(options or ProbeOptions(), session.sources(models), session.data)
    others = measuring.known_systems(request, session.data)
    outcome = _executed(session, request, began, progress)
    return measuring.probe_result(outcome, others)


def check(
    against: os.PathLike[str] | str,
    models: Model | Sequence[Model] = (),
    options: CheckOptions | None = None,
    *,
    progress: Callable[[Progress], None] | None = None,
    data: Data = None,
) -> tuple[CheckedModel, ...]:
    """Measure models again, by default all of a file, and return whether they are slower than the file says.

    The file is an evaluation with results, or one of `dlbricks results export`. As `measure`, this handles signals:
    call it in the main thread only. JobError is raised if it is interrupted.
    """
    session = _session_at(data)
    _require_main_thread()
    plan = check_plan(names_of(models), Path(against), options or CheckOptions(), session.data)
    measured = measured_by(plan, session.data, lambda request: _executed(session, request, time.monotonic(), progress))
    if measured.stopped:
        raise JobError("the check was stopped before its verdicts; what was measured is kept in the store")
    return checked(plan, measured, session.data)


def evaluate(
    file: os.PathLike[str] | str,
    options: EvaluateOptions | None = None,
    *,
    progress: Callable[[Progress], None] | None = None,
    data: Data = None,
) -> EvaluationResult:
    """Carry out an evaluation: check what matches its file, run what the store lacks, and return the results.

    If something does not match, the result says so and nothing is measured, unless the options have `anyway`. As
    `measure`, this handles signals: call it in the main thread only.
    """
    _require_main_thread()
    session, began, path = _session_at(data), time.monotonic(), Path(file)

    def run(request: RunRequest) -> RunOutcome:
        outcome = _executed(session, request, began, progress)
        state = outcome.state
        if state.was_stopped:
            raise JobError(f"run {state.run} was {state.state.value}: evaluate {path} again to go on with the rest")
        return outcome

    steps = EvaluationSteps(_LOG.info, run, lambda order: loads.measure(order, session.data, lambda _: None).test)
    checked_file = check_file(path, session.data)
    return evaluation_result(checked_file, options or EvaluateOptions(), session.data, steps)


def evaluation_of(run: str, file: os.PathLike[str] | str, *, data: Data = None) -> Evaluation:
    """Write the evaluation of a finished run to a file, with its results, and return it."""
    # Loaded here: only files need a writer of TOML.
    from dlbricks_tui.evaluations.file import write_evaluation

    return write_evaluation(evaluation_of_run(run, Path(file), _session_at(data).data), Path(file))


def fleet(
    models: Model | Sequence[Model],
    options: FleetOptions,
    *,
    progress: Callable[[Progress], None] | None = None,
    data: Data = None,
) -> FleetResult:
    """Measure the bricks of models on many hosts, and return an estimate of each model on each host.

    `progress` is called after each event; it counts the bricks of all hosts together. As `measure`, this handles
    signals: call it in the main thread only.
    """
    _require_main_thread()
    session = _session_at(data)
    job = FleetJob.create(fleet_request(options, session.sources(models), session.data), session.data)
    job.drive(None if progress is None else _fleet_reporter(job.folder.run, progress))
    return job.result()


def fleet_status(run: str = "last", *, data: Data = None) -> FleetResult:
    """Return a fleet run as it is now, by its id or the beginning of its id; nothing is measured."""
    return FleetJob.find(run, _session_at(data).data).result()


def _session_at(data: Data) -> Session:
    return data if isinstance(data, Session) else Session(data)


def _executed(
    session: Session, request: RunRequest, began: float, progress: Callable[[Progress], None] | None
) -> RunOutcome:
    """Return the outcome of a run in this process; its time counts from `began` on."""
    job = session.new_run(request)
    take = None if progress is None else _reporter(job.folder.run, progress)
    return job.execute(take, time.monotonic() - began)


make_methods(load, estimate, compare, language, scenario, trace, measure, probe, check, evaluate, evaluation_of)
make_methods(fleet, fleet_status)
