from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.measure.carriers import CarrierJob, TimedCarrier, corrected, in_proportion, layer_times
from dlbricks_tui.measure.noise import HostTrack
from dlbricks_tui.runtime.protocol import Profiled

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


def test_operators_without_time_stay_at_zero() -> None:
    assert in_proportion([0.0, 0.0], 1.0) == [0.0, 0.0]


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


def test_a_network_that_computes_nothing_has_no_layer_times() -> None:
    assert layer_times(Profiled((), (), ()), {}, 1.0) == {}


@pytest.mark.parametrize(("latency_ms", "heavy", "usual"), [(0.0, 9, 3), (20.0, 9, 3), (600.0, 3, 1), (4000.0, 1, 1)])
def test_a_heavy_carrier_has_more_profiled_runs_in_its_few_rounds_with_a_profile(
    latency_ms: float, heavy: int, usual: int
) -> None:
    nothing: Any = None
    for is_heavy, runs in ((True, heavy), (False, usual)):
        what = CarrierJob("it", "", nothing, nothing, latency_ms, {}, {}, is_heavy=is_heavy)
        assert TimedCarrier(what, ("it",), latency_ms, 10.0, HostTrack()).profiled_runs == (1, runs)
