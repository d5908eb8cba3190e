import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.bench.layer_times import corrected_ms, layer_times_ms
from dlbricks_tui.runtime.protocol import Profiled

LATENCIES = st.lists(st.floats(1e-4, 100.0), min_size=1, max_size=40)


def test_what_the_profiler_adds_to_each_operator_is_taken_off() -> None:
    assert corrected_ms([1.5, 2.5, 0.6], 4.3) == pytest.approx([1.4, 2.4, 0.5])


def test_what_the_runtime_spends_between_operators_is_shared_out() -> None:
    assert corrected_ms([1.0, 2.0], 3.2) == pytest.approx([1.1, 2.1])


def test_operators_shorter_than_the_correction_take_no_time_and_no_less() -> None:
    corrected = corrected_ms([0.01, 5.0, 5.0], 9.0)
    assert corrected == pytest.approx([0.0, 4.5, 4.5])


@given(LATENCIES, st.floats(0.01, 1000.0))
def test_layers_add_up_to_the_plain_latency(profiled: list[float], plain_ms: float) -> None:
    corrected = corrected_ms(profiled, plain_ms)
    assert all(it >= 0 for it in corrected)
    assert sum(corrected) == pytest.approx(plain_ms)


def test_operators_of_one_layer_count_together() -> None:
    profile = Profiled((3, 4, 7), ((0, 1, 2), (0, 1, 2)), ((1_000_000, 2_000_000, 3_000_000),) * 2)
    assert layer_times_ms(profile, {3: 0, 4: 0, 7: 1}, 6.0) == pytest.approx({0: 3.0, 1: 3.0})


def test_a_network_that_computes_nothing_has_no_layer_times() -> None:
    assert layer_times_ms(Profiled((), (), ()), {}, 1.0) == {}
