"""The memory and the untimed runs of programs."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.measure.carriers import CarrierJob, TimedCarrier, corrected, layer_times
from dlbricks_tui.measure.jobs import Job, JobKey, memory_bytes, timed_runs, untimed_runs
from dlbricks_tui.measure.noise import HostTrack
from dlbricks_tui.measure.results import runtime_record
from dlbricks_tui.models.graph import Feed
from dlbricks_tui.runtime.protocol import Profiled
from dlbricks_tui.runtime.runtime import Runtime, Settings
from dlbricks_tui.runtime.traits import MXNET
from tests.bricks.convolutions import convolving
from tests.bricks.graphs import DATA, Spec, after, built, chain

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


def test_what_the_profiler_adds_to_each_operator_is_subtracted_from_each() -> None:
    truth = [0.6, *[0.0005] * 800]
    assert corrected([ms + 0.002 for ms in truth], sum(truth)) == pytest.approx(truth)


def test_no_operator_loses_more_than_nine_tenths_of_the_shortest_one() -> None:
    times = corrected([10.0, 0.01], 8.0)
    assert times[0] / times[1] == pytest.approx(9.991 / 0.001)


def test_time_that_the_profiler_does_not_see_is_shared_out_in_proportion() -> None:
    assert corrected([1.0, 2.0, 0.5], 3.85) == pytest.approx([1.1, 2.2, 0.55])


def test_operators_of_one_layer_count_together() -> None:
    profile = Profiled((3, 4, 7), ((0, 1, 2), (0, 1, 2)), ((1_000_000, 2_000_000, 3_000_000),) * 2)
    assert layer_times(profile, {3: 0, 4: 0, 7: 1}, 12.0) == pytest.approx({0: 6.0, 1: 6.0})


def test_an_interrupted_run_under_the_profiler_does_not_count() -> None:
    quiet, interrupted = (1_000_000, 3_000_000), (9_000_000, 3_000_000)
    profile = Profiled((0, 1), ((0, 1),) * 3, (quiet, interrupted, quiet))
    assert layer_times(profile, {0: 0, 1: 1}, 4.0) == pytest.approx({0: 1.0, 1: 3.0})


def test_operators_that_no_layer_has_take_their_share_of_the_latency() -> None:
    """A carrier converts layouts where it begins and ends, and its model does not."""
    profile = Profiled((9, 3, 7), ((0, 1, 2),), ((2_000_000, 1_000_000, 1_000_000),))
    assert layer_times(profile, {3: 0, 7: 1}, 8.0) == pytest.approx({0: 2.0, 1: 2.0})


def of(framework: str, settings: Settings) -> Runtime:
    return Runtime("it", "/python", framework, "1.0", "3.11.2", settings)


def test_the_record_of_a_runtime_has_its_threads_or_none_where_they_are_not_known() -> None:
    assert runtime_record(of(MXNET.framework, Settings(threads=3)), fingerprint()).threads == 3
    assert runtime_record(of(MXNET.framework, Settings()), fingerprint()).threads == 0


@pytest.mark.parametrize(("latency_ms", "heavy", "usual"), [(0.0, 9, 3), (20.0, 9, 3), (600.0, 3, 1), (4000.0, 1, 1)])
def test_a_heavy_carrier_has_more_profiled_runs_in_its_few_rounds_with_a_profile(
    latency_ms: float, heavy: int, usual: int
) -> None:
    nothing: Any = None
    for is_heavy, runs in ((True, heavy), (False, usual)):
        what = CarrierJob("it", "", nothing, nothing, latency_ms, {}, {}, is_heavy=is_heavy)
        assert TimedCarrier(what, ("it",), latency_ms, 10.0, HostTrack()).profiled_runs == (1, runs)
