"""The method `inside` on a host whose truth is known."""

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.bricks.identity import carrier_keys, whole_model
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.jobs.errors import Stopped
from dlbricks_tui.measure import carriers
from dlbricks_tui.measure.carriers import CarrierJob, TimedCarrier, carrier_jobs, corrected, layer_times
from dlbricks_tui.measure.events import RoundDone
from dlbricks_tui.measure.inside import Inside
from dlbricks_tui.measure.jobs import Job, JobKey, cut_model, memory_bytes, timed_runs, untimed_runs
from dlbricks_tui.measure.known import Conditions, Known
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.noise import HostTrack, NoiseMonitor
from dlbricks_tui.measure.plan import plan
from dlbricks_tui.measure.results import CarrierOccurrence, Recorder, runtime_record
from dlbricks_tui.measure.stopping import Adaptive, samples_of
from dlbricks_tui.models.graph import Feed, LayerGraph
from dlbricks_tui.runtime.protocol import Profiled
from dlbricks_tui.runtime.runtime import Runtime, Settings
from dlbricks_tui.runtime.traits import MXNET
from dlbricks_tui.store import statistics
from dlbricks_tui.store.records import Measurement
from dlbricks_tui.store.verification import check_samples
from tests.bricks.convolutions import convolving
from tests.bricks.graphs import DATA, Spec, after, built, chain
from tests.measure.simulated_host import REFERENCE, Notes, SimulatedHost, estimated, measured_inside

OPERATORS = ("conv", "relu", "pool", "add", "sub", "concat")
# Of fewer models, the mean and the share vary more by chance.
numbers_of_models = pytest.mark.parametrize("number", [60, pytest.param(400, marks=pytest.mark.soak)])


@pytest.fixture(autouse=True, scope="module")
def kept_weights() -> Iterator[None]:
    """Keep the bootstrap weights of all numbers of samples, which each simulation needs again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(statistics, "_resampling", cache(statistics._resampling))
        yield


@pytest.fixture(autouse=True, scope="module")
def no_short_models() -> Iterator[None]:
    """Shorten the networks of these tests, although they are short."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(carriers, "_WHOLE_UP_TO_MS", 0.0)
        yield


def network(blocks: int) -> LayerGraph:
    """Blocks that repeat between layers that do not; the copies of a block leave the carrier."""
    specs = [Spec("conv", DATA), Spec("pool", after(0))]
    for _ in range(blocks):
        entry = len(specs) - 1
        specs += [Spec("conv", after(entry)), Spec("relu", after(entry + 1)), Spec("add", after(entry, entry + 2))]
    end = len(specs) - 1
    return built([*specs, Spec("sub", after(end, end - 1)), Spec("concat", after(end, end + 1))])


def host(seed: int, noise: float = 0.02) -> SimulatedHost:
    chance = random.Random(seed)
    return SimulatedHost({op: chance.lognormvariate(-1.5, 1.0) for op in OPERATORS}, seed, noise=noise)


@cache
def simulated(seed: int) -> tuple[float, float, float, float]:
    """Truth, estimate and interval of one model on one host."""
    graph, where = network(4), host(seed)
    composed = estimated(graph, measured_inside(where, [graph])).composed
    assert composed is not None
    truth = where.truth_ms([layer.op for layer in graph.layers])
    return truth, composed.sequential_ms, composed.latency.low_ms, composed.latency.high_ms


@numbers_of_models
def test_estimates_from_carriers_are_right_on_average(number: int) -> None:
    errors = [estimate / truth - 1 for truth, estimate, _, _ in map(simulated, range(number))]
    assert abs(sum(errors) / number) < 0.003 * math.sqrt(150 / number)


@numbers_of_models
def test_95_percent_intervals_hold_in_93_to_97_percent_of_cases(number: int) -> None:
    held = sum(low <= truth <= high for truth, _, low, high in map(simulated, range(number)))
    assert held / number == pytest.approx(0.95, abs=0.02 * max(1.0, math.sqrt(150 / number)))


class InterruptedHost(SimulatedHost):
    """A host that interrupts one of several runs."""

    def sample(self, names: Sequence[str], warm: int, repeat: int) -> dict[str, tuple[float, ...]]:
        taken = super().sample(names, warm, repeat)
        return {name: (10 * runs[0], *runs[1:]) if repeat > 2 else runs for name, runs in taken.items()}


def test_interrupted_runs_of_a_short_network_do_not_count() -> None:
    latencies_ms = dict.fromkeys(OPERATORS, 0.05)
    graphs = [network(3)]
    usual, interrupted = (
        estimated(graphs[0], measured_inside(kind(latencies_ms, 1, noise=0.0), graphs)).composed
        for kind in (SimulatedHost, InterruptedHost)
    )
    assert usual is not None
    assert interrupted is not None
    assert interrupted.sequential_ms == pytest.approx(usual.sequential_ms)


def test_every_brick_is_kept_with_as_many_samples_as_its_carrier_had_rounds() -> None:
    notes = measured_inside(host(1), [network(3)])
    rounds = sum(isinstance(event, RoundDone) for event in notes.events)
    assert {job.graph.layers[job.layers[0]].op for job in notes.kept} == set(OPERATORS)
    assert {len(it.samples.samples_ms) for places in notes.kept.values() for it in places} == {rounds}


class StoppedHost(SimulatedHost):
    """A host whose worker answers no more once a run is to stop, as a run that stops while it waits for an answer."""

    left = 20

    def profile(self, name: str, warm: int, repeat: int) -> Profiled | None:
        self.left -= 1
        self._check()
        return super().profile(name, warm, repeat)

    def sample(self, names: Sequence[str], warm: int, repeat: int) -> dict[str, tuple[float, ...]]:
        self._check()
        return super().sample(names, warm, repeat)

    def _check(self) -> None:
        if self.left < 0:
            raise Stopped


def test_a_run_that_stops_while_it_waits_for_the_worker_keeps_its_samples() -> None:
    notes = Notes()
    with pytest.raises(Stopped):
        measured_inside(StoppedHost(dict.fromkeys(OPERATORS, 0.05), 1), [network(3)], notes=notes)
    assert {job.graph.layers[job.layers[0]].op for job in notes.kept} == set(OPERATORS)


def test_the_result_of_a_brick_states_its_warm_up_so_that_an_import_can_check_it() -> None:
    jobs = plan([cut_model(decompose(chain("conv", "pool")))], Known(), Adaptive(), method=Method.INSIDE).jobs
    samples = samples_of([5.0, 4.0, 1.0, 1.1, 0.9, 1.0, 1.1, 0.9, 1.0, 1.05], Adaptive())
    recorder = Recorder("run", Conditions("host", "runtime", "inside"))
    _, result = recorder.occurrences(jobs[0], [CarrierOccurrence((), samples, (("reference_ms", 1.0),))])
    assert isinstance(result, Measurement)
    assert dict(result.noise)["warm_up"] == samples.warm_up == 2
    check_samples(result)


def test_every_whole_model_is_timed_again_in_the_rounds_of_its_bricks() -> None:
    """However many they are: an estimate and the latency beside it come from the same minutes."""
    models = [replace(network(blocks), name=f"m{blocks}") for blocks in range(2, 8)]
    notes = measured_inside(host(1), models, end_to_end=True)
    rounds = sum(isinstance(event, RoundDone) for event in notes.events)
    assert notes.wholes.keys() == {model.name for model in models}
    assert all(len(kept) == 2 and kept[1] <= rounds for kept in notes.wholes.values())
    assert max(kept[1] for kept in notes.wholes.values()) == rounds


def test_a_brick_that_was_kept_does_not_begin_again_in_a_later_group_of_carriers() -> None:
    begun: list[Job] = []

    class Begun(Notes):
        def loaded(self, job: Job, *_: Any, **__: Any) -> None:
            begun.append(job)

    models = [cut_model(decompose(replace(chain("conv", op), name=op))) for op in ("pool", "relu")]
    jobs = plan(models, Known(), Adaptive(), method=Method.INSIDE).jobs
    groups = carrier_jobs(models, {job.key.brick: job for job in jobs})
    assert sum(len(it.bricks) for it in groups) > len(jobs)
    worker: Any = host(1)
    notes = Begun()
    timing = Inside(worker, notes, notes, Adaptive(), notes.events.append, REFERENCE, NoiseMonitor())
    for it in groups:
        timing.time_carriers([it])
    assert len(begun) == len(jobs) == len(notes.kept)


def test_a_whole_model_is_timed_only_beside_carriers_with_its_bricks() -> None:
    steady, noisy = (
        replace(chain(*ops), name=name) for ops, name in ((("conv", "pool"), "steady"), (("add", "sub"), "noisy"))
    )
    where = SimulatedHost(dict.fromkeys(OPERATORS, 1.0), 1, noise=0.001, drift=0.0, placement=0.0, noisy={"sub": 0.2})
    notes = measured_inside(where, [steady, noisy], end_to_end=True)
    rounds = sum(isinstance(event, RoundDone) for event in notes.events)
    assert notes.wholes["steady"][1] < notes.wholes["noisy"][1] == rounds


def test_a_carrier_takes_fewer_rounds_if_little_of_an_estimate_rests_on_it() -> None:
    """A model with a layer of its own at its end has a short carrier for it, whose result may be wider."""
    known, added = (
        replace(chain(*["relu", "pool"] * 6, "conv", *own), name=name)
        for own, name in (((), "known"), (("sub",), "added"))
    )
    notes = measured_inside(host(1), [known, added])
    places = {job.graph.layers[job.layers[0]].op: of_it for job, of_it in notes.kept.items()}
    rule = Adaptive()
    assert [len(it.samples.samples_ms) for it in places["conv"]] == [rule.most, rule.least]
    assert [len(it.samples.samples_ms) for it in (*places["relu"], *places["sub"])] == [rule.most, rule.least]
    # Another model may need it to be known better: it counts as unfinished then.
    assert ["unfinished" in dict(it.noise) for it in places["conv"]] == [False, True]


def test_samples_record_their_carrier_and_whether_it_was_the_whole_model() -> None:
    whole, shortened = (
        dict(_first(measured_inside(host(1), [it])).where) for it in (chain("conv", "pool"), network(3))
    )
    assert whole["carrier"] == whole_model(chain("conv", "pool")).key
    assert shortened == {"model": "generated", "layer": "layer0", "carrier": carrier_keys(network(3)).part}


def test_the_layers_of_a_model_that_stays_whole_add_up_to_the_latency_of_its_file() -> None:
    graph, file = chain("conv", "pool"), Path("net.onnx")
    where = SimulatedHost({"conv": 2.0, "pool": 1.0}, 1, noise=0.0, drift=0.0, placement=0.0, files_ms={str(file): 6.0})
    composed = estimated(graph, measured_inside(where, [graph], file)).composed
    assert composed is not None
    assert composed.sequential_ms == pytest.approx(6.0)
    first = _first(measured_inside(where, [graph], file)).samples.statistics
    assert first.trimmed_mean_ms == pytest.approx(4.0)


def test_a_model_whose_file_does_not_run_is_timed_layer_by_layer() -> None:
    graph = chain("conv", "pool")
    where = SimulatedHost({"conv": 2.0, "pool": 1.0}, 1, noise=0.0, drift=0.0, placement=0.0)
    composed = estimated(graph, measured_inside(where, [graph], Path("lost.onnx"))).composed
    assert composed is not None
    assert composed.sequential_ms == pytest.approx(3.0)


def _first(notes: Notes) -> CarrierOccurrence:
    return next(iter(notes.kept.values()))[0]


class OtherProgram:
    """Wants to be run five times."""

    def __init__(self) -> None:
        self.moments: list[int] = []

    @property
    def wants_more(self) -> bool:
        return len(self.moments) < 5

    def sample(self, moment: int) -> float:
        self.moments.append(moment)
        return 0.1


def test_a_program_beside_the_carriers_runs_once_in_each_round_in_a_moment_of_its_own() -> None:
    graph, other = network(4), OtherProgram()
    notes = measured_inside(host(1), [graph], beside=other)
    rounds = sum(isinstance(it, RoundDone) for it in notes.events)
    assert rounds > 5
    assert len(other.moments) == len(set(other.moments)) == 5
    # A round begins with a moment, too.
    assert all(later - earlier >= 2 for earlier, later in pairwise(other.moments))
    assert estimated(graph, notes).composed is not None


SHAPE = (1, 16, 10, 10)
TENSOR, WEIGHT = 4 * 16 * 100, 4 * 16 * 16 * 9


def test_tensors_between_layers_take_memory_once() -> None:
    graph = built([Spec("conv", DATA), Spec("conv", after(0)), Spec("add", after(0, 1))])
    for index in (0, 1):
        graph = convolving(graph, index, SHAPE, (16, 16, 3, 3), SHAPE)
    first, second, third = graph.layers
    assert memory_bytes([first]) == memory_bytes([second]) == 2 * TENSOR + WEIGHT
    assert memory_bytes([first, second]) == 3 * TENSOR + 2 * WEIGHT
    # What two of them are fed is there once, too.
    again = replace(second, feeds=(Feed(None, 0),))
    assert memory_bytes([first, again]) == 3 * TENSOR + 2 * WEIGHT
    assert memory_bytes([]) == 0
    small = sum(tensor.size_bytes for tensor in third.operators[0].outputs)
    assert memory_bytes(graph.layers) == 3 * TENSOR + 2 * WEIGHT + small


@pytest.mark.parametrize(
    ("latency_ms", "brick", "whole"),
    [
        (0.0, 3, 2000),
        (0.02, 3, 2000),
        (3.0, 1, 14),
        (8.0, 1, 5),
        (15.0, 1, 3),
        (49.0, 1, 3),
        (50.0, 0, 3),
        (150.0, 0, 1),
        (1e3, 0, 0),
    ],
)
def test_short_programs_need_most_untimed_runs(latency_ms: float, brick: int, whole: int) -> None:
    assert (untimed_runs(latency_ms, whole=False), untimed_runs(latency_ms, whole=True)) == (brick, whole)


@pytest.mark.parametrize(("latency_ms", "runs"), [(0.0, 9), (0.05, 9), (2.0, 5), (9.0, 1), (500.0, 1)])
def test_short_networks_run_several_times_in_a_round(latency_ms: float, runs: int) -> None:
    assert timed_runs(latency_ms) == runs


@pytest.mark.parametrize(("context", "runs"), [("conv", 3), ("conv:kept;cold", 0)])
def test_the_context_of_a_brick_decides_its_untimed_runs(context: str, runs: int) -> None:
    job = Job(JobKey("brick", context), "", "", chain("conv"), (0,), (), 1.0, 0)
    assert job.untimed_runs(0.5) == runs


LATENCIES = st.lists(st.floats(1e-4, 100.0), min_size=1, max_size=40)


@given(LATENCIES, st.floats(0.01, 1000.0))
def test_operators_add_up_to_the_plain_latency(profiled: list[float], plain_ms: float) -> None:
    assert sum(corrected(profiled, plain_ms)) == pytest.approx(plain_ms)


TRUTH = [0.6, *[0.0005] * 800]


@pytest.mark.parametrize(
    ("profiled_ms", "expected_ms"),
    [
        # The profiler adds about the same to each operator,
        ([ms + 0.002 for ms in TRUTH], TRUTH),
        # but no more than nine tenths of the shortest one.
        ([10.0, 0.01], [8.0 * 9.991 / 9.992, 8.0 * 0.001 / 9.992]),
        # Time that it does not see is shared out in proportion.
        ([1.0, 2.0, 0.5], [1.1, 2.2, 0.55]),
    ],
)
def test_operators_take_what_they_take_without_the_profiler(profiled_ms: list[float], expected_ms: list[float]) -> None:
    assert corrected(profiled_ms, sum(expected_ms)) == pytest.approx(expected_ms)


@pytest.mark.parametrize(
    ("nodes", "runs_ms", "owners", "expected_ms"),
    [
        # Operators of one layer count together.
        ((3, 4, 7), ((1, 2, 3),) * 2, {3: 0, 4: 0, 7: 1}, {0: 6.0, 1: 6.0}),
        # An interrupted run does not count.
        ((0, 1), ((1, 3), (9, 3), (1, 3)), {0: 0, 1: 1}, {0: 3.0, 1: 9.0}),
        # A carrier converts layouts where it begins and ends, and its model does not: that takes its share.
        ((9, 3, 7), ((2, 1, 1),), {3: 0, 7: 1}, {0: 3.0, 1: 3.0}),
    ],
)
def test_layers_share_the_plain_latency(
    nodes: tuple[int, ...], runs_ms: Sequence[Sequence[int]], owners: dict[int, int], expected_ms: dict[int, float]
) -> None:
    rows = tuple(tuple(1_000_000 * ms for ms in run) for run in runs_ms)
    assert layer_times(Profiled(nodes, rows, rows), owners, 12.0) == pytest.approx(expected_ms)


def test_the_record_of_a_runtime_has_its_threads_or_none_where_they_are_not_known() -> None:
    for threads in (3, None):
        runtime = Runtime("it", "/python", MXNET.framework, "1.0", "3.11.2", Settings(threads))
        assert runtime_record(runtime, fingerprint()).threads == (threads or 0)


@pytest.mark.parametrize(("latency_ms", "heavy", "usual"), [(0.0, 9, 3), (20.0, 9, 3), (600.0, 3, 1), (4000.0, 1, 1)])
def test_a_heavy_carrier_has_more_profiled_runs_in_its_few_rounds_with_a_profile(
    latency_ms: float, heavy: int, usual: int
) -> None:
    nothing: Any = None
    for is_heavy, runs in ((True, heavy), (False, usual)):
        what = CarrierJob("it", "", nothing, nothing, latency_ms, {}, {}, is_heavy=is_heavy)
        # The first run of one that takes seconds counts.
        untimed = int(is_heavy or latency_ms < 1000.0)
        assert TimedCarrier(what, ("it",), latency_ms, 10.0, HostTrack()).profiled_runs == (untimed, runs)


@pytest.mark.parametrize(("latency_ms", "rounds"), [(900.0, 3), (1100.0, 2)])
def test_carriers_of_a_second_take_two_rounds_in_a_run_of_many(latency_ms: float, rounds: int) -> None:
    nothing: Any = None
    it = TimedCarrier(CarrierJob("it", "", nothing, nothing, 1.0, {}, {}), ("it",), 1.0, 3.0, HostTrack())
    it.seconds = 10.0
    while not it.is_done():
        it.plain_ms.append(latency_ms)
        it.moments.append(0)
    assert len(it.plain_ms) == rounds


@pytest.mark.parametrize(("seconds_per_round", "waits"), [(0.5, True), (20.0, False)])
def test_a_carrier_waits_for_a_quiet_host_unless_every_round_is_as_long_as_its_time(
    seconds_per_round: float, waits: bool
) -> None:
    nothing: Any = None
    # The reference says that the host was half as fast as usual.
    track = HostTrack(usual_ms=0.5)
    it = TimedCarrier(CarrierJob("it", "", nothing, nothing, 100.0, {}, {}), ("it",), 100.0, 3.0, track)
    for moment in range(8):
        track.read(1.0)
        it.plain_ms.append(100.0)
        it.moments.append(moment)
    it.seconds = 8 * seconds_per_round
    assert it.is_done()
    assert it.lacks_quiet_rounds() is waits
