"""The jobs of a probe: the bricks of its models that tell most about this system in the time that there is."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from dlbricks_tui.bricks.carriers import Carrier, carrier_of, whole
from dlbricks_tui.bricks.identity import brick_of
from dlbricks_tui.estimate.knowledge import Pair, Unmeasured
from dlbricks_tui.estimate.prediction.choice import Limit, Trial, most_informative
from dlbricks_tui.estimate.prediction.other_systems import OtherSystems
from dlbricks_tui.measure.jobs import CutModel, Job, expected_ms, timed_runs, untimed_runs
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.plan import uses_of
from dlbricks_tui.measure.stopping import Adaptive
from dlbricks_tui.measure.time_left import WORKER_START_SECONDS
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runs.errors import RunError
from dlbricks_tui.store.records import ANY_CONTEXT

# More samples of a brick would tell less than another brick does.
PROBE_RULE = Adaptive(target=0.03, least=8, most=24, most_of_quick=24)
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

    Raise RunError if no other system has measured any of the bricks.
    """
    wanted = {Unmeasured(job.canonical, job.key.context): job for job in jobs if not job.whole}
    known = others.known(wanted)
    if wanted and not known:
        raise RunError(
            f"no other system has results of these bricks by {others.way.runtime}, level {others.way.level.value}, "
            f"method {others.way.protocol}: choose another level or method, add results with "
            "`dlbricks results import FILE`, or measure every brick with `dlbricks run`"
        )
    held = {(job.key.brick, job.key.context): job for job in wanted.values()}
    latencies_ms = {brick.pair: fmean(brick.latencies_ms.values()) for brick in known.values()}
    if method is Method.INSIDE:
        trials = [_trial_inside(carrier, held, latencies_ms) for carrier in _carriers(models)]
        # Carriers hold many bricks: time is what they lack.
        limit = limit._replace(bricks=len(held))
    else:
        trials = [Trial((pair,), _seconds_alone(held[pair], latency_ms)) for pair, latency_ms in latencies_ms.items()]
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


def _carriers(models: Sequence[CutModel]) -> Iterator[Carrier]:
    """Yield the models without repeated modules, if they can run."""
    for model in models:
        graph = model.decomposition.graph
        fused_away = graph.level is Level.WRITTEN and graph.traits.always_fuses
        if not fused_away and all(layer.unmeasurable is None for layer in graph.layers):
            yield carrier_of(graph) or whole(graph)


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


def _seconds_alone(job: Job, latency_ms: float) -> float:
    runs = (job.untimed_runs(latency_ms) + 1) * _RUNS_WITH_PRODUCER
    return _LOAD_SECONDS + _SAMPLES * runs * latency_ms / 1000
