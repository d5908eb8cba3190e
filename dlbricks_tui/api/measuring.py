"""Runs and probes: their options, the requests that follow from them, and their outcomes as plain values."""

import json
import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tinydb import where

from dlbricks_tui.api.documents import OMIT_NONE, taken
from dlbricks_tui.api.estimates import TIME_WHOLE, ModelEstimate, model_estimate
from dlbricks_tui.api.estimating import measured_models
from dlbricks_tui.api.opening import CutOptions, InputOptions, RuntimeOptions
from dlbricks_tui.bricks.identity import brick_in
from dlbricks_tui.config.config import Config
from dlbricks_tui.estimate.parts import Part
from dlbricks_tui.estimate.predictors import OtherSystems
from dlbricks_tui.estimate.ranking import Point
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.fingerprint import fingerprint, instruction_sets
from dlbricks_tui.host.queue import host_queue
from dlbricks_tui.host_files import HostFiles
from dlbricks_tui.jobs.errors import JobError
from dlbricks_tui.jobs.events import Event
from dlbricks_tui.jobs.folder import JobState, RunFolder, State, store_request
from dlbricks_tui.jobs.folder import RunFolders as RunFolders
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.stopping import Adaptive, FixedRuns, StoppingRule
from dlbricks_tui.measure.supervised_worker import TimeLimits
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import ModelSource, shared_formats
from dlbricks_tui.runs.events import (
    FailedBefore,
    ModelLoading,
    Planned,
    ProgramMeasured,
    RunEnded,
    RunProgress,
    ShapesRemembered,
    WorkerReplaced,
)
from dlbricks_tui.runs.planning import PROBE_RULE
from dlbricks_tui.runs.request import (
    InputShape,
    InputValue,
    RunLimits,
    RunRequest,
    RuntimeChoice,
    can_be_alone,
    can_be_inside,
    chosen,
    read_request,
    usual_method,
)
from dlbricks_tui.runs.run import EstimatedModel, RunOutcome
from dlbricks_tui.runs.run import read_outcome as read_outcome
from dlbricks_tui.runs.work import Workplace
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.traits import Format
from dlbricks_tui.runtime.variant import AskedVariant, AskedVariants, Precision, remarks_on, several
from dlbricks_tui.settings.cutting import GRANULARITY
from dlbricks_tui.settings.measuring import (
    AGAIN,
    BRICK_TIMEOUT,
    ENOUGH,
    MEMORY_LIMIT,
    PROBE_BRICKS,
    PROBE_SECONDS,
    RETRY_FAILED,
    TARGET,
    TIME_BUDGET,
    HowMeasured,
)
from dlbricks_tui.settings.setting import fields_of, require_allowed
from dlbricks_tui.settings.variant import BATCH, THREADS, VARIANT
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.selections import Combination, Way, combinations, equal
from dlbricks_tui.wording.events import all_combinations, measured, noise_note, note_of
from dlbricks_tui.wording.numbers import counted, names_of, too_many_threads
from dlbricks_tui.wording.runs import Phrase, Tone

# A run of more models times no whole models unless it is asked to.
MOST_MODELS_END_TO_END = 3
_MEBIBYTE = 1 << 20

# The options that change what an event reports.
_HINTS: dict[type[Event], str] = {
    FailedBefore: "--retry-failed tries it again",
    ShapesRemembered: "--input or --value gives others",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureOptions(RunLimits, HowMeasured, AskedVariants, CutOptions):
    """Options of a run: cutting and measuring. None: the run decides."""

    # True: the whole models are timed, too.
    end_to_end: bool | None = None
    # A registered runtime by its name, or several, and that of the settings, which counts only for models that it runs.
    runtime: str | Sequence[str] | None = None
    usual_runtime: str | None = None
    brick_timeout_seconds: float | None = None
    memory_limit_mib: int | None = None

    def __post_init__(self) -> None:
        checked = (GRANULARITY, THREADS, BATCH, TARGET, *ENOUGH, TIME_BUDGET, BRICK_TIMEOUT, MEMORY_LIMIT)
        require_allowed(self, checked, JobError)
        if self.again and self.target is not None:
            # Stored results would count as near enough to the target, so that nothing was measured again.
            raise JobError("--again measures every brick, and --target only needed ones: leave one of them out")


def measured_by_settings(config: Config, **given: Any) -> MeasureOptions:
    """Return the options of runs that take as long as the settings say, with what else is given."""
    return MeasureOptions(target_interval=config.target_ci, time_budget_seconds=config.time_budget, **given)


def run_request(options: MeasureOptions, sources: Sequence[ModelSource], data: DataFolder) -> RunRequest:
    """Return the request of a run that measures these models."""
    return request_by(_runtimes(options, shared_formats(sources), data), options, sources)


def request_by(runtimes: Sequence[Runtime], options: MeasureOptions, sources: Sequence[ModelSource]) -> RunRequest:
    """Return the request of a run that measures these models by these runtimes, whose variants are chosen already."""
    found = [
        RuntimeChoice(
            runtime, chosen([source.in_format(runtime.traits.format) for source in sources]), _method(options, runtime)
        )
        for runtime in runtimes
    ]
    end_to_end = options.end_to_end
    if end_to_end is None:
        end_to_end = found[0].method is Method.INSIDE and len(sources) <= MOST_MODELS_END_TO_END
    return request_of(options, found[0], *found[1:], end_to_end=end_to_end)


def request_of(
    options: MeasureOptions, first: RuntimeChoice, *others: RuntimeChoice, end_to_end: bool = False
) -> RunRequest:
    """Return the request of a run with these runtimes."""
    timeout, memory_mib = options.brick_timeout_seconds, options.memory_limit_mib
    return RunRequest(
        models=first.models,
        runtime=first.runtime,
        others=others,
        batch_sizes=tuple(dict.fromkeys(several(options.batch))),
        inputs=tuple(InputShape(name, shape) for name, shape in options.inputs.items()),
        values=tuple(InputValue(name, value) for name, value in options.values.items()),
        level=options.level,
        cutting=options.cutting,
        rule=_rule(options),
        end_to_end=end_to_end,
        **fields_of(options, (TIME_BUDGET, TARGET, RETRY_FAILED, AGAIN)),
        time_limits=TimeLimits() if timeout is None else TimeLimits(timeout, timeout),
        memory_limit_bytes=None if memory_mib is None else memory_mib * _MEBIBYTE,
        method=first.method,
    )


def _method(options: MeasureOptions, runtime: Runtime) -> Method:
    found = options.method or usual_method(_rule(options), runtime, options.level)
    if found is Method.ALONE and not can_be_alone(runtime, options.level):
        raise JobError(
            f"{runtime.traits.title} times fused layers by method inside only: leave out fixed runs, or choose level "
            "written"
        )
    if found is Method.INSIDE and not can_be_inside(_rule(options), runtime, options.level):
        if runtime.traits.always_fuses and options.level is Level.WRITTEN:
            raise JobError(
                f"{runtime.traits.title} fuses the layers of a network, so method inside cannot time them as written: "
                "choose level fused, or method alone"
            )
        raise JobError(
            "method inside times layers that run one after another, until their intervals are narrow: leave out fixed "
            "runs, and choose a runtime that runs one operator at a time, or use method alone"
        )
    return found


def _runtimes(options: MeasureOptions, formats: Collection[Format], data: DataFolder) -> tuple[Runtime, ...]:
    """Return each runtime with each precision, each limit on its kernels, and each number of threads."""
    for instructions in several(options.instructions):
        available = instruction_sets(HostFiles())
        if instructions not in available:
            known = ", ".join(it.value for it in available)
            raise JobError(f"this processor has no {instructions.value} instructions: choose from {known}")
    registry = Registry(data.path)
    named = [registry.find_installed(name) for name in several(options.runtime)]
    asked = replace(options, batch=None).each(AskedVariant())
    variants = (
        (runtime or _usual(options, formats, registry, each)).with_variant(each)
        for runtime in named or (None,)
        for each in asked
    )
    return tuple({each.identity: each for each in variants}.values())


def _usual(options: MeasureOptions, formats: Collection[Format], registry: Registry, asked: AskedVariant) -> Runtime:
    """Return the runtime of the settings, or else the usual one of those that have the precision and kernels."""
    if options.usual_runtime:
        usual = registry.find(options.usual_runtime)
        if usual.traits.format in formats and usual in registry.all() and usual.can_have(asked):
            return usual
    return (
        registry.preferred_for(formats, asked)
        or registry.preferred_for(formats, AskedVariant(precision=asked.precision))
        or registry.runtime_for(formats)
    )


def _rule(options: MeasureOptions) -> StoppingRule:
    if options.fixed_runs is not None:
        return FixedRuns(options.fixed_runs)
    return Adaptive() if options.target_interval is None else Adaptive().narrowed(options.target_interval)


@dataclass(frozen=True, slots=True)
class RunJob:
    """A run of a data folder, to carry out in this process or in one of its own."""

    folder: RunFolder
    request: RunRequest
    data: DataFolder

    def execute(self, take: Callable[[Event], None] | None, spent_seconds: float = 0.0) -> RunOutcome:
        """Carry it out in this process; so many seconds of its time budget are spent."""
        # Loaded here: other runs need no suites.
        from dlbricks_tui.share.suite_runs import execute_any

        place = Workplace(self.data, spent_seconds=spent_seconds)
        return execute_any(self.folder, self.request, place, host_queue(), take)


def resumed_run(folder: RunFolder, data: DataFolder, budget: float | None = None) -> RunJob | None:
    """Return a run that has ended early, to carry it out again; None after a paused one was told to go on.

    `budget` is another time budget in seconds, without an end if it is infinite. JobError is raised if nothing of the
    run is missing, or if another process works on it.
    """
    state = folder.state()
    if not state.active:
        request = read_request(folder.request_file)
        is_whole = state.state is State.FINISHED and state.bricks.is_complete and state.whole_models.is_complete
        # A run with a budget may have planned a part only.
        if is_whole and request.time_budget_seconds is None and budget is None:
            # Its tally is the record of what it has done.
            again = "`dlbricks run MODEL --again` measures anew"
            raise JobError(f"run {folder.run} is finished, and nothing of it is missing: {again}")
        if budget is not None:
            # Stored for a separate process, and for the next time.
            request = replace(request, time_budget_seconds=None if math.isinf(budget) else budget)
            store_request(folder.request_file, request)
        return RunJob(folder, request, data)
    if budget is not None:
        raise JobError(f"run {folder.run} is {state.state.value}: cancel it before you resume it with another budget")
    folder.go_on()
    return None


def remarks_on_run(request: RunRequest) -> list[str]:
    """Return what a user should know of the threads and precisions of a run."""
    settings = [part.runtime.settings for part in request.parts]
    return variant_remarks((it.threads for it in settings), (it.precision for it in settings))


def variant_remarks(threads: Iterable[int | None], precisions: Iterable[Precision] = ()) -> list[str]:
    """Return what a user should know before models run with these numbers of threads, in these precisions."""
    here = fingerprint()
    quota = dict(here.facts).get("quota_cores")
    warning = too_many_threads(threads, here.cores, quota if isinstance(quota, float) else None)
    return [*([warning] if warning else []), *remarks_on(precisions)]


# So many of the longest bricks are looked up at each size.
_LOOKED_UP = 16


def measured_batch_sizes(store: ResultsDatabase, way: Way, parts: Sequence[Part], batch_size: int) -> tuple[int, ...]:
    """Return the other batch sizes at which most of the longest bricks of a model have results of the same way.

    Bricks that state the batch size in their parameters are not found at another one.
    """
    of_way = equal(of="brick", good=True, system=way.system, runtime=way.runtime, level=way.level.value)
    sizes = {int(size) for size in set(store.select(of_way, order=()).numbers("batch_size").tolist())} - {batch_size}
    longest = sorted({it.brick: it.paid_ps for it in parts}.items(), key=lambda it: -it[1])
    sought = [brick.canonical for brick, _ in longest[:_LOOKED_UP]]
    keys = {size: {key_at(canonical, batch_size, size) for canonical in sought} for size in sorted(sizes)}
    wanted = [key for found in keys.values() for key in found]
    measured = store.select(where("brick").one_of(wanted) & of_way, order=()).distinct("brick") if wanted else set()
    return tuple([size for size, found in keys.items() if 2 * len(found & measured) > len(sought)])


def key_at(canonical: str, batch_size: int, wanted: int) -> str:
    """Return the key of a brick at another batch size, which is the first length of its inputs."""
    form = json.loads(canonical)
    for shape, _ in form["data"]:
        if shape and shape[0] == batch_size:
            shape[0] = wanted
    return brick_in(form).key


_NO_OTHER_SYSTEM = (
    "the store has no results of another system to compare this one with: write them there with "
    "`dlbricks results export`, and add them here with `dlbricks results import FILE`"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeOptions(RuntimeOptions, InputOptions):
    """Options of a probe. None: the results of other systems decide."""

    # From the start of the command to the estimates.
    seconds: float = 20.0
    # The most bricks to time alone; networks hold as many as there are in them.
    bricks: int = 30
    level: Level | None = None
    method: Method | None = None

    def __post_init__(self) -> None:
        require_allowed(self, (PROBE_SECONDS, PROBE_BRICKS, THREADS, BATCH), JobError)


def probe_request(options: ProbeOptions, sources: Sequence[ModelSource], data: DataFolder) -> RunRequest:
    """Return the request of a run that measures the most informative bricks of models, by default of all in the store.

    It measures as the other systems of the store did.
    """
    models = sources or measured_models(data)
    if not models:
        raise JobError(_NO_OTHER_SYSTEM)
    measuring = MeasureOptions(
        inputs=options.inputs,
        values=options.values,
        **fields_of(options, VARIANT),
        usual_runtime=options.usual_runtime,
        time_budget_seconds=options.seconds,
        end_to_end=False,
    )
    way = _way_of_most(options, run_request(measuring, models, data).runtime.identity, data)
    method = next(each for each in Method if each.id == way.protocol)
    if method is not Method.ALONE and options.bricks != PROBE_BRICKS.default:
        raise JobError(
            "a number of bricks is for method alone, and this probe measures inside of networks: leave it out"
        )
    request = run_request(replace(measuring, level=way.level, method=method), models, data)
    return replace(request, rule=PROBE_RULE, probe_bricks=options.bricks)


def _way_of_most(options: ProbeOptions, runtime: str, data: DataFolder) -> Way:
    """Return the way of measuring on this host in which other systems have measured most."""
    host = fingerprint().id
    wanted = [
        Way(host, runtime, level, method.id)
        for level in ((options.level,) if options.level else Level)
        for method in ((options.method,) if options.method else Method)
    ]
    with ResultsDatabase(data.store) as store:
        there = combinations(store.select(order=()))
        pairs = {it.way: it.pairs for it in there}
        found = [(pairs[other], way) for way in wanted for other in OtherSystems(store, way).ways]
    if found:
        return max(found)[1]
    raise JobError(_no_way_of_others([it for it in there if it.system != host], runtime, options))


def _no_way_of_others(elsewhere: Sequence[Combination], runtime: str, options: ProbeOptions) -> str:
    """Return what to do if no other system has measured as the options ask."""
    if not elsewhere:
        return _NO_OTHER_SYSTEM
    methods = {method.id: method.value for method in Method}
    ways = [it for it in elsewhere if it.protocol in methods]
    usable = dict.fromkeys(f"{it.runtime} (level {it.level.value}, method {methods[it.protocol]})" for it in ways)
    if not usable:
        return (
            "all results of other systems are by methods of other versions of dlbricks, which are never combined with "
            "new ones: measure there with this version, and import the results here"
        )
    asked = [runtime]
    asked += [f"level {options.level.value}"] if options.level else []
    asked += [f"method {options.method.value}"] if options.method else []
    return (
        f"no other system has results by {', '.join(asked)}; there are results by {names_of(list(usable))}: choose "
        "one of these runtimes with its threads, or import other results"
    )


def known_systems(request: RunRequest, data: DataFolder) -> list[str]:
    """Return the systems that a probe compares this one with."""
    way = Way(fingerprint().id, request.runtime.identity, request.level, request.method.id)
    with ResultsDatabase(data.store) as store:
        return [other.system for other in OtherSystems(store, way).ways]


@dataclass(frozen=True, slots=True)
class Counts:
    """Bricks, or whole models, of a run: `run` counts those that it measured, `reused` those known before."""

    total: int
    run: int
    reused: int
    failed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """The outcome of a run, with an estimate of each of its models."""

    run: str
    state: State
    # The reason for an early end.
    message: str
    bricks: Counts
    end_to_end: Counts
    unfinished: int
    seconds: float
    models: tuple[ModelEstimate, ...]
    # The file with the results of a suite.
    results: Path | None = field(default=None, metadata=OMIT_NONE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    """The outcome of a probe: estimates from the bricks that it measured, and from systems that have the others."""

    run: str
    state: State
    # The reason for an early end.
    message: str
    system: str
    runtime: str
    # The systems with results of the same runtime, level and method.
    known_systems: tuple[str, ...]
    # The number of bricks that it measured, in part if the run was stopped.
    bricks: int
    seconds: float
    models: tuple[ModelEstimate, ...]


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A run of the data folder; `pid` is the process that works on it."""

    run: str
    state: State
    message: str
    models: tuple[str, ...]
    bricks: Counts
    end_to_end: Counts
    unfinished: int
    started: str
    seconds: float
    pid: int | None


@dataclass(frozen=True, slots=True)
class ReplayedModel:
    """The last estimate of a model that the events of a run tell; None is what they do not tell."""

    model: str
    sequential_ms: float | None
    parallel_ms: float | None
    low_ms: float | None
    high_ms: float | None
    measured_ms: float | None
    measured_layers: int
    layers: int

    @property
    def error(self) -> float | None:
        """The sequential estimate relative to the measured latency."""
        if self.sequential_ms is None or not self.measured_ms or self.measured_layers < self.layers:
            return None
        return self.sequential_ms / self.measured_ms - 1


@dataclass(frozen=True, slots=True)
class ReplayedRun:
    """A run as far as its events tell of it; `state` is that of the last event."""

    run: str
    state: State
    # The reason for an early end.
    message: str
    runtime: str
    # The seconds that the replayed part took when it was recorded, without most of its idle time.
    seconds: float
    models: tuple[ReplayedModel, ...]


def replayed_run(run: str, progress: RunProgress, seconds: float) -> ReplayedRun:
    """Return a run by the progress that its events tell."""
    measured_ms = {
        name: brick.latency_ms
        for brick in progress.bricks.values()
        if brick.is_measured and brick.whole
        for name in brick.used_by
    }
    models: list[ReplayedModel] = []
    for told in progress.estimates.values():
        known = told.measured_layers + told.sampled_layers
        layers = known + told.missing_layers + told.unmeasurable_layers
        measured = measured_ms.get(told.model)
        models.append(taken(ReplayedModel, told, measured_ms=measured, measured_layers=known, layers=layers))
    runtime = progress.started.runtime if progress.started else ""
    return taken(ReplayedRun, progress, run=run, runtime=runtime, seconds=seconds, models=tuple(models))


def run_result(state: JobState, outcome: RunOutcome | None = None) -> RunResult:
    """Return a run by its state, with the estimates of its outcome once it has ended."""
    models = [] if outcome is None else _estimates(outcome)
    if outcome is not None and outcome.request.end_to_end:
        # The models were timed just now, or cannot be.
        models = [replace(it, next_step=None) if it.next_step == TIME_WHOLE else it for it in models]
    suite = None if outcome is None else outcome.request.suite
    results = None if suite is None else suite.results
    return taken(RunResult, state, **_counts_of(state), models=tuple(models), results=results)


def probe_result(outcome: RunOutcome, known_systems: Iterable[str]) -> ProbeResult:
    """Return the outcome of a probe by that of its run."""
    state, models = outcome.state, tuple(_estimates(outcome))
    how = {"system": fingerprint().id, "runtime": outcome.request.runtime.identity, "models": models}
    measured_bricks = state.bricks.measured + state.bricks.unfinished
    return taken(ProbeResult, state, **how, known_systems=tuple(known_systems), bricks=measured_bricks)


def _estimates(outcome: RunOutcome) -> list[ModelEstimate]:
    return [model_estimate(decomposition, one) for decomposition, one in outcome.estimates or ()]


def points_of_run(found: Iterable[EstimatedModel], request: RunRequest) -> dict[str, list[Point]]:
    """Return the estimates of a run of several variants by the names of its models."""
    runtimes = {part.runtime.identity: part.runtime for part in request.parts}
    points: dict[str, list[Point]] = {}
    for decomposition, one in found:
        runtime = runtimes[one.way.runtime]
        point = Point(runtime.name, runtime.settings.threads, one)
        points.setdefault(decomposition.graph.name, []).append(point)
    return points


def run_summary(state: JobState) -> RunSummary:
    """Return a run of the data folder by its state."""
    return taken(RunSummary, state, **_counts_of(state), pid=state.process.pid if state.active else None)


def _counts_of(state: JobState) -> dict[str, Any]:
    bricks, whole = (Counts(it.total, it.measured, it.reused, it.failed) for it in (state.bricks, state.whole_models))
    return {
        "bricks": bricks,
        "end_to_end": whole,
        "unfinished": state.bricks.unfinished + state.whole_models.unfinished,
    }


class FollowedRun:
    """A run as its events tell it, and what a viewer should read of each; a quiet one tells failures and doubts only.

    A run that takes `few_samples` by choice does not mind wide intervals.
    """

    def __init__(self, *, quiet: bool = False, few_samples: bool = False) -> None:
        self.progress = RunProgress()
        self.quiet, self.few_samples = quiet, few_samples

    def take(self, event: Event) -> list[str]:
        """Add an event, and return the lines to read about it."""
        lines = []
        if isinstance(event, ProgramMeasured) and not (event.brick or self.quiet):
            brick = self.progress.bricks.get(event.program)
            lines += [] if brick is not None and brick.is_measured else [measured(event)]
        self.progress.take(event)
        note = note_of(event)
        if note is not None and type(event) not in _HINTS and self._is_told(event, note):
            lines.append(note.text)
        if not self.quiet and isinstance(event, Planned) and event.number == event.of > 1:
            lines.append(all_combinations(event.of, self.progress.planned or event))
        if not self.quiet and isinstance(event, RunEnded):
            if self.progress.at_limits and not self.few_samples:
                results = sum(brick.is_measured for brick in self.progress.bricks.values())
                lines.append(
                    f"wide intervals, beyond 5 % to either side: {self.progress.at_limits} of "
                    f"{counted(results, 'result')}; estimates include them, and a quieter host narrows them"
                )
            lines += filter(None, [noise_note(self.progress.disturbances)])
        return lines

    def remark(self, event: Event) -> str:
        """Return what to read of an event once: each combination of a run reads its models anew."""
        note, hint = note_of(event), _HINTS.get(type(event))
        return f"{note.text}; {hint}" if hint and note is not None and self._is_told(event, note) else ""

    def _is_told(self, event: Event, note: Phrase) -> bool:
        if isinstance(event, RunEnded):
            # The command writes another summary, which lacks only the reason.
            return bool(event.message)
        if self.quiet:
            return note.tone in (Tone.FAILURE, Tone.DOUBT) and not isinstance(event, WorkerReplaced)
        return not isinstance(event, ModelLoading)
