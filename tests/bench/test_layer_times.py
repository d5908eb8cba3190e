import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.bench.layer_times import MOST_OVERHEAD_MS, corrected_ms, layer_times
from dlbricks_tui.runtime.protocol import Profiled

LATENCIES = st.lists(st.floats(1e-4, 100.0), min_size=1, max_size=40)


def test_what_the_profiler_adds_to_each_operator_is_taken_off() -> None:
    assert corrected_ms([1.505, 2.505, 0.605], 4.6) == pytest.approx([1.5, 2.5, 0.6])


def test_what_the_runtime_spends_between_operators_is_shared_out() -> None:
    assert corrected_ms([1.0, 2.0], 3.008) == pytest.approx([1.004, 2.004])


def test_of_a_large_difference_no_more_is_shared_out_than_a_profiler_or_a_runtime_takes() -> None:
    times = layer_times(Profiled((0, 1), ((0, 1),), ((10_000_000, 20_000_000),)), {0: 0, 1: 1}, 33.0)
    assert times.layers_ms == pytest.approx({0: 10 + MOST_OVERHEAD_MS, 1: 20 + MOST_OVERHEAD_MS})
    assert times.unexplained_ms == pytest.approx(3.0 - 2 * MOST_OVERHEAD_MS)


def test_operators_shorter_than_the_correction_take_no_time_and_no_less() -> None:
    assert corrected_ms([0.001, 5.0], 4.991) == pytest.approx([0.0, 4.995])


@given(LATENCIES, st.floats(0.01, 1000.0))
def test_no_operator_is_corrected_by_more_than_an_overhead(profiled: list[float], plain_ms: float) -> None:
    for before, after in zip(profiled, corrected_ms(profiled, plain_ms), strict=True):
        assert after >= 0
        assert abs(after - before) <= MOST_OVERHEAD_MS + 1e-9


def test_operators_of_one_layer_count_together() -> None:
    profile = Profiled((3, 4, 7), ((0, 1, 2), (0, 1, 2)), ((1_000_000, 2_000_000, 3_000_000),) * 2)
    times = layer_times(profile, {3: 0, 4: 0, 7: 1}, 6.0)
    assert times.layers_ms == pytest.approx({0: 3.0, 1: 3.0})
    assert times.unexplained_ms == pytest.approx(0.0)


def test_a_network_that_computes_nothing_has_no_layer_times() -> None:
    assert layer_times(Profiled((), (), ()), {}, 1.0).layers_ms == {}
