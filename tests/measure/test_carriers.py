import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.measure.carriers import in_proportion, layer_times
from dlbricks_tui.runtime.protocol import Profiled

LATENCIES = st.lists(st.floats(1e-4, 100.0), min_size=1, max_size=40)


@given(LATENCIES, st.floats(0.01, 1000.0))
def test_operators_add_up_to_the_plain_latency(profiled: list[float], plain_ms: float) -> None:
    assert sum(in_proportion(profiled, plain_ms)) == pytest.approx(plain_ms)


def test_profiler_overhead_is_subtracted_in_proportion() -> None:
    assert in_proportion([1.1, 2.2, 0.55], 3.5) == pytest.approx([1.0, 2.0, 0.5])


def test_operators_without_time_stay_at_zero() -> None:
    assert in_proportion([0.0, 0.0], 1.0) == [0.0, 0.0]


def test_operators_of_one_layer_count_together() -> None:
    profile = Profiled((3, 4, 7), ((0, 1, 2), (0, 1, 2)), ((1_000_000, 2_000_000, 3_000_000),) * 2)
    assert layer_times(profile, {3: 0, 4: 0, 7: 1}, 12.0) == pytest.approx({0: 6.0, 1: 6.0})


def test_runs_under_the_profiler_count_alike() -> None:
    profile = Profiled((0, 1), ((0, 1), (0, 1)), ((1_000_000, 3_000_000), (3_000_000, 1_000_000)))
    assert layer_times(profile, {0: 0, 1: 1}, 4.0) == pytest.approx({0: 2.0, 1: 2.0})


def test_a_network_that_computes_nothing_has_no_layer_times() -> None:
    assert layer_times(Profiled((), (), ()), {}, 1.0) == {}
