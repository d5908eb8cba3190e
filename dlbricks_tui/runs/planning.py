"""The models of a run, read and cut, and its plan: the jobs that the store lacks, those of a probe, or of a target."""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import TypeVar

from dlbricks_tui.bricks.carriers import Carrier, carrier_of, whole
from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.bricks.identity import brick_of
from dlbricks_tui.errors import UserError
from dlbricks_tui.estimate.choice import Limit, Trial, most_informative, needed_for
from dlbricks_tui.estimate.inquiry import Inquiry, Predictors
from dlbricks_tui.estimate.knowledge import Pair, Unmeasured
from dlbricks_tui.estimate.predictors import OtherSystems
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.jobs.errors import JobError
from dlbricks_tui.jobs.events import Event
from dlbricks_tui.jobs.folder import Tally
from dlbricks_tui.measure.jobs import CutModel, Job, JobKey, cut_model, expected_ms, timed_runs, untimed_runs
from dlbricks_tui.measure.known import Why, known_in, with_earlier
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.plan import Plan, keys_of, plan, uses_of
from dlbricks_tui.measure.results import runtime_record
from dlbricks_tui.measure.stopping import Adaptive
from dlbricks_tui.measure.time_left import WORKER_START_SECONDS, expected_seconds
from dlbricks_tui.models.errors import FusionRefusedError, ModelError, WrongRuntimeError
from dlbricks_tui.models.frameworks import WorkerFramework
from dlbricks_tui.models.graph import LayerGraph, Level, Numbers, unmeasurable_layers
from dlbricks_tui.models.input_shapes import ShapeMemory, listed, spelled
from dlbricks_tui.models.library import Library, ModelSource
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runs.events import (
    FailedBefore,
    LayerUnmeasurable,
    LevelLowered,
    ModelLeftOut,
    ModelLoading,
    Planned,
    ShapesRemembered,
)
from dlbricks_tui.runs.request import RunRequest
from dlbricks_tui.runs.work import KnownGraphs, RunSession
from dlbricks_tui.runtime.errors import WorkerLostError
from dlbricks_tui.runtime.variant import batch_in_words
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import ANY_CONTEXT

# The models of a run by one runtime, or networks of excerpts from private ones.
Models = tuple[CutModel, ...]
Part = TypeVar("Part")


def read_models(session: RunSession) -> Models:
    """Return the requested models, and tell how far reading them is."""
    place = session.place
    library = Library(place.samples, place.data.path, session.request.runtime.traits.format)
    cache, log = place.data.cache, session.folder.worker_log
    return cut_models(session.request, library, cache, log, session.tell, session.part, session.graphs)


def read_parts(parts: Sequence[Part], read: Callable[[Part], Models]) -> tuple[Models, ...]:
    """Return the models of each part of a run; raise the first error if no part can read its models."""
    found: list[Models] = []
    refusals: list[UserError] = []
    for part in parts:
        try:
            found.append(read(part))
        except (ModelError, WorkerLostError) as refusal:
            refusals.append(refusal)
            found.append(())
    if refusals and len(refusals) == len(parts):
        raise refusals[0]
    return tuple(found)


def cut_models(
    request: RunRequest,
    library: Library,
    cache: Path,
    log: Path,
    tell: Callable[[Event], None],
    part: str = "",
    known: KnownGraphs | None = None,
) -> tuple[CutModel, ...]:
    """Return each model in each batch size, at the requested level or as `written` where the runtime cannot fuse it.

    Models that cannot be read are left out; if none can, raise the error of the first. `part` tells the models from
    those of other parts of the run, which have read the `known` ones.
    """
    sources = [(source, batch) for source in request.sources(library) for batch in request.batch_sizes or (None,)]
    models: list[CutModel] = []
    refusals: list[UserError] = []
    # Some models of Table 1 are the same network, in one file.
    known = {} if known is None else known

    def tell_given(source: ModelSource, given: Mapping[str, Numbers]) -> None:
        tell(ShapesRemembered(model=source.name, shapes=spelled(given)))

    most_bytes = request.memory_limit_bytes or fingerprint().memory_bytes
    with WorkerFramework(request.runtime, log) as framework:
        loader = Loader(cache, framework, framework, ShapeMemory(library.data, tell_given), most_bytes)
        for number, (source, batch_size) in enumerate(sources, start=1):
            label = label_of_model(source, batch_size, part)
            tell(ModelLoading(model=label, number=number, of=len(sources)))
            network = (framework.identity, source.path, batch_size, *source.inputs.items())
            graph = known.get(network)
            if graph is None:
                try:
                    graph = loaded_graph(loader, source, batch_size, request, tell)
                except (ModelError, WorkerLostError) as refusal:
                    tell(ModelLeftOut(model=label, reason=str(refusal)))
                    graph = refusal
                known[network] = graph
            if not isinstance(graph, LayerGraph):
                refusals.append(graph)
                continue
            decomposition = decompose(graph.named(source.name), request.measured_cutting, loader.cache)
            file = graph.file if request.runtime.traits.runs_model_files else None
            lowered = graph.level is not request.level
            models.append(cut_model(decomposition, file, lowered=lowered, label=label))
    if refusals and not models:
        raise refusals[0]
    return tuple(models)


def label_of_model(source: ModelSource, batch_size: int | None, part: str = "") -> str:
    """Return the name of a model in a run, with its variant where the run measures several."""
    words = [] if batch_size is None else [batch_in_words(batch_size)]
    words += [part] if part else []
    return f"{source.name} ({', '.join(words)})" if words else source.name


def loaded_graph(
    loader: Loader, source: ModelSource, batch_size: int | None, request: RunRequest, tell: Callable[[Event], None]
) -> LayerGraph:
    """Return a model at the requested level, or as `written` where the runtime cannot fuse it, and tell that."""
    runtime = request.runtime
    if source.format is not runtime.traits.format:
        raise WrongRuntimeError(
            f"{source.name} is an {source.format.value} model, and runtime {runtime.name} runs those of "
            f"{runtime.traits.format.value}; choose another runtime, or none"
        )

    def loaded(level: Level) -> LayerGraph:
        inputs, values = dict(request.inputs), dict(request.values)
        # Another cause may have ended the worker, so try once more; a second loss is the model's fault.
        with suppress(WorkerLostError):
            return loader.load(source, level, inputs, values, batch_size)
        return loader.load(source, level, inputs, values, batch_size)

    try:
        return loaded(request.level)
    except FusionRefusedError as refused:
        tell(LevelLowered(model=source.name, reason=str(refused)))
        return loaded(Level.WRITTEN)


def plan_run(session: RunSession, models: Models, store: ResultsDatabase, first_number: int = 0) -> Plan:
    """Return the jobs of models that have no results in the store; `first_number` is the number of the first."""
    request, conditions = session.request, session.conditions
    keys = keys_of(models, request.end_to_end, request.method)
    # A resumed run goes on from its own results. Their dates do not tell: a clock may have been ahead.
    known = known_in(store, conditions, keys, run=session.folder.run if request.again else None)
    if request.retry_failed:
        known = replace(known, failed={})
    found = plan(models, known, request.rule, request.end_to_end, request.method, first_number=first_number)
    if not request.bricks:
        found = _part(found, lambda key: not key.brick)
    if request.only:
        only = frozenset(request.only)
        found = _part(found, lambda key: key.brick in only if key.brick else request.end_to_end)
    if request.probe_bricks is not None:
        found = replace(found, jobs=_informative(session, models, found.jobs, store, request.probe_bricks))
    jobs = with_earlier(found.jobs, store, conditions, known)
    seconds = expected_seconds(request.method, request.rule, jobs, session.competing)
    store.add(session.system, runtime_record(request.runtime, session.system))
    return replace(found, jobs=jobs, seconds=seconds)


def _part(found: Plan, is_wanted: Callable[[JobKey], bool]) -> Plan:
    """Return the part of a plan that is about some bricks and models."""
    return replace(
        found,
        jobs=tuple([job for job in found.jobs if is_wanted(job.key)]),
        reused=frozenset(filter(is_wanted, found.reused)),
        failed={job: why for job, why in found.failed.items() if is_wanted(job.key)},
    )


def _informative(
    session: RunSession, models: Models, jobs: Sequence[Job], store: ResultsDatabase, most: int
) -> tuple[Job, ...]:
    """Return the jobs of a probe, in the order of the plan."""
    request, conditions = session.request, session.conditions
    levels = {model.decomposition.graph.level for model in models}
    level = levels.pop() if len(levels) == 1 else request.level
    others = OtherSystems(store, conditions.at(level))
    seconds = math.inf if session.control.seconds_left is None else session.control.seconds_left
    chosen = set(informative(jobs, models, others, request.method, Limit(most, seconds)))
    return tuple([job for job in jobs if job in chosen])


def tell_plans(sessions: Sequence[RunSession], all_models: Sequence[Models], plans: Sequence[Plan]) -> None:
    """Tell what is known of each part and combination of a run, and what they are expected to take."""
    told: list[Planned] = []
    left = math.inf if sessions[0].control.seconds_left is None else sessions[0].control.seconds_left
    for session, models, planned in zip(sessions, all_models, plans, strict=True):
        for model in models:
            for reason, layers in unmeasurable_layers(model.decomposition.graph).items():
                named = listed([layer.name for layer in layers])
                session.tell(LayerUnmeasurable(model=model.name, layer=named, reason=reason))
        for job, reason in planned.failed.items():
            session.tell(FailedBefore(label=job.label, reason=reason, **job.key._asdict()))
        seconds = min(planned.seconds, left)
        left -= seconds
        told += _combinations(session, models, planned, seconds)
    for number, event in enumerate(told, start=1):
        sessions[0].tell(replace(event, number=number, of=len(told)))
    sessions[0].control.save_counts()


def _combinations(session: RunSession, models: Models, found: Plan, seconds: float) -> Iterator[Planned]:
    """Yield a plan for each batch size of a part, with the seconds that it probably takes."""
    request = session.request
    parts = _by_batch_size(request, models) or {None: frozenset(_keys(found))}
    expected = {
        size: expected_seconds(request.method, request.rule, [job for job in found.jobs if job.key in keys])
        for size, keys in parts.items()
    }
    in_all = sum(expected.values())
    for number, (size, keys) in enumerate(parts.items()):
        bricks, wholes = _counts(found, keys)
        again = Counter(found.again.get(job.key) for job in found.jobs if job.key in keys and not job.whole)
        words = ([] if size is None else [batch_in_words(size)]) + ([session.part] if session.part else [])
        yield Planned(
            system=session.conditions.system,
            runtime=session.conditions.runtime,
            bricks=bricks.total,
            bricks_reused=bricks.reused,
            bricks_failed_before=bricks.failed,
            models=wholes.total,
            models_reused=wholes.reused,
            models_failed_before=wholes.failed,
            expected_seconds=seconds * (expected[size] / in_all if in_all else number == 0),
            bricks_imprecise=again[Why.IMPRECISE],
            bricks_of_slow_host=again[Why.SLOW_HOST],
            combination=", ".join(words),
        )


def _by_batch_size(request: RunRequest, models: Models) -> Mapping[int | None, frozenset[JobKey]]:
    """Return the bricks and models of each batch size, those of several in the first; empty for a single size."""
    if len(request.batch_sizes) < 2:
        return {}
    owners: dict[JobKey, int] = {}
    for model in models:
        for key in keys_of((model,), request.end_to_end, request.method):
            owners.setdefault(key, model.decomposition.graph.batch_size)
    sizes = dict.fromkeys(model.decomposition.graph.batch_size for model in models)
    return {size: frozenset(key for key, owner in owners.items() if owner == size) for size in sizes}


def _keys(found: Plan) -> Iterator[JobKey]:
    yield from (job.key for job in found.jobs)
    yield from found.reused
    yield from (job.key for job in found.failed)


def _counts(found: Plan, keys: Collection[JobKey]) -> tuple[Tally, Tally]:
    """Return the counts of some bricks and whole models, before any of them is measured."""

    def tally(*, whole: bool) -> Tally:
        def count(those: Iterable[JobKey]) -> int:
            return sum(bool(key.brick) is not whole and key in keys for key in those)

        reused, failed = count(found.reused), count(job.key for job in found.failed)
        return Tally(count(job.key for job in found.jobs) + reused + failed, 0, reused, failed)

    return tally(whole=False), tally(whole=True)


# A step measures a part of the needed bricks. Then its results improve the predictions, and other bricks are needed.
_PART, _FEWEST = 1 / 3, 8


def steps(session: RunSession, models: Models, planned: Plan, store: ResultsDatabase) -> Iterator[Sequence[Job]]:
    """Yield the jobs to measure: all at once, or in steps until the intervals of all estimates reach the target.

    Each step has those that narrow the intervals most by the predictions then, and the first one the whole models.
    """
    target = session.request.target
    if target is None or not models:
        yield planned.jobs
        return
    predictors, conditions = Predictors(store, session.place.data.cache), session.conditions
    # The bricks that were not needed so far.
    left = [job for job in planned.jobs if not job.whole]

    def needed() -> list[Job]:
        by_brick: dict[str, list[Job]] = {}
        for job in left:
            by_brick.setdefault(job.key.brick, []).append(job)
        found: dict[Job, None] = {}
        for model in models:
            graph = model.decomposition.graph
            # Not the way that covers most of the model: that may be another method.
            way = conditions.at(graph.level)
            estimate = Inquiry(store, model.decomposition, None, predictors).by(way).estimate
            shared = predictors.of(way, graph.traits).shared
            for brick, context in needed_for(estimate, shared, target).pairs:
                jobs = by_brick.get(brick, ())
                # Inside of a network, a brick has no context of its own.
                found.update(dict.fromkeys(job for job in jobs if job.key.context in (ANY_CONTEXT, context)))
        return list(found)[: max(_FEWEST, math.ceil(len(found) * _PART))]

    step = needed()
    yield [*step, *(job for job in planned.jobs if job.whole)]
    while step:
        taken = {job.key for job in step}
        left = [job for job in left if job.key not in taken]
        if step := needed():
            yield step


# More samples of a brick would tell less than another brick does.
PROBE_RULE = Adaptive(target=0.03, least=8, most=24)
# The share of the time that is planned: this system may be slower than the known ones.
_PLANNED_SHARE = 0.7
# Loading a program compiles its kernels. Each sample of a brick also runs the program that makes its inputs.
_LOAD_SECONDS, _RUNS_WITH_PRODUCER, _SAMPLES = 0.05, 2, 12
# A carrier is loaded so many times, and has so many rounds: fewer if it is slow. The profiler slows it down.
_COPIES, _ROUNDS, _FEWEST_ROUNDS, _SECONDS_OF_A_SLOW_ONE, _PROFILED_RUNS = 3, 24, 8, 4.0, 6


def informative(
    jobs: Sequence[Job], models: Sequence[CutModel], others: OtherSystems, method: Method, limit: Limit
) -> list[Job]:
    """Return the jobs of bricks that tell most about the latencies of the models.

    Raise JobError if no other system has measured any of the bricks.
    """
    wanted = {Unmeasured(job.canonical, job.key.context): job for job in jobs if not job.whole}
    known = others.known(wanted)
    if wanted and not known:
        raise JobError(
            f"no other system has results of these bricks by {others.way.runtime}, level {others.way.level.value}, "
            f"method {others.way.protocol}: choose another level or method, add results with "
            "`dlbricks results import FILE`, or measure every brick with `dlbricks run`"
        )
    held = {(job.key.brick, job.key.context): job for job in wanted.values()}
    latencies_ms = {brick.pair: fmean(brick.latencies_ms.values()) for brick in known.values()}
    if method is Method.INSIDE:
        trials = [
            _trial_inside(carrier_of(graph) or whole(graph), held, latencies_ms)
            for graph in (model.decomposition.graph for model in models)
            if graph.level is Level.FUSED or not graph.traits.always_fuses
            if all(layer.unmeasurable is None for layer in graph.layers)
        ]
        # Carriers hold many bricks: time is what they lack.
        limit = limit._replace(bricks=len(held))
    else:
        trials = []
        for pair, latency_ms in latencies_ms.items():
            runs = (held[pair].untimed_runs(latency_ms) + 1) * _RUNS_WITH_PRODUCER
            trials.append(Trial((pair,), _LOAD_SECONDS + _SAMPLES * runs * latency_ms / 1000))
    seconds = _PLANNED_SHARE * max(0.0, limit.seconds - WORKER_START_SECONDS)
    uses = [
        {(key.brick, key.context): float(times) for key, times in of_one.items()}
        for of_one in uses_of(models, method).values()
    ]
    system = others.deviations(known.values())
    # Where nothing fits in the time, the quickest one is begun.
    quickest = sorted((trial for trial in trials if trial.pairs), key=lambda trial: trial.seconds)[:1]
    chosen = most_informative(system, uses, trials, limit._replace(seconds=seconds)) or quickest
    return [held[pair] for pair in dict.fromkeys(pair for trial in chosen for pair in trial.pairs)]


def _trial_inside(carrier: Carrier, jobs: Mapping[Pair, Job], latencies_ms: Mapping[Pair, float]) -> Trial:
    """Return the bricks to measure that a carrier holds, and the seconds that this takes."""
    taken_ms, held = 0.0, list[Pair]()
    for layer in carrier.graph.layers:
        brick = brick_of(carrier.graph, (layer.index,))
        pair = (brick.key, ANY_CONTEXT)
        taken_ms += layer.times * latencies_ms.get(pair, expected_ms(brick.canonical))
        if pair in jobs:
            held.append(pair)
    runs = untimed_runs(taken_ms, whole=True) + timed_runs(taken_ms) + _PROFILED_RUNS
    seconds = runs * taken_ms / 1000
    rounds = min(_ROUNDS, max(_FEWEST_ROUNDS, _SECONDS_OF_A_SLOW_ONE / seconds))
    return Trial(tuple(dict.fromkeys(held)), _COPIES * _LOAD_SECONDS + rounds * seconds)
