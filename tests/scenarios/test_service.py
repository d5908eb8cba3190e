from dataclasses import replace

import numpy as np
import pytest

from dlbricks_tui.estimate.knowledge import Latency
from dlbricks_tui.scenarios.service import (
    BrickSamples,
    ServiceSource,
    ServiceTime,
    ServiceTimes,
    composed_service,
    filled,
    streamed_service,
    timed_service,
    with_load_tests,
)
from dlbricks_tui.store.statistics import pack_latencies
from tests.store.samples import load_test

SAMPLES = tuple(9.0 + number / 10 for number in range(21))


def of_size(size: int, value_ms: float) -> ServiceTime:
    return ServiceTime(size, Latency(value_ms, value_ms, value_ms), (value_ms,), ServiceSource.END_TO_END)


def test_drawn_times_are_the_samples_and_the_cost_of_passing() -> None:
    service = ServiceTimes((ServiceTime(1, Latency(10.0, 10.0, 10.0), SAMPLES, ServiceSource.END_TO_END),), 0.2)
    drawn = service.draws([1], 5, 1000)
    assert drawn.shape == (1, 5, 1000)
    assert {round(it, 6) for it in drawn.ravel().tolist()} == {round(it + 0.2, 6) for it in SAMPLES}
    assert service.single_ms == pytest.approx(10.2)


def test_each_test_draws_a_speed_of_the_host_from_the_interval() -> None:
    service = ServiceTimes((ServiceTime(1, Latency(10.0, 9.0, 12.0), (10.0,), ServiceSource.ESTIMATE),), 0.0)
    means = service.draws([1], 2000, 3).mean(axis=-1)[0]
    low, middle, high = np.quantile(means, [0.025, 0.5, 0.975])
    assert (low, middle, high) == pytest.approx((9.0, 10.0, 12.0), rel=0.02)


def test_an_end_to_end_latency_is_less_certain_after_another_load() -> None:
    found = timed_service(1, SAMPLES, Latency(10.0, 9.7, 10.3), placement_share=0.04)
    assert found.latency == pytest.approx((10.0, 9.5, 10.5))
    assert (found.samples_ms, found.source) == (SAMPLES, ServiceSource.END_TO_END)


def test_bricks_of_the_same_rounds_are_slow_together() -> None:
    together = [BrickSamples("a", 2, (1.0, 1.0, 2.0)), BrickSamples("a", 1, (2.0, 2.0, 4.0))]
    found = composed_service(1, Latency(8.0, 7.0, 9.0), together)
    # 4, 4 and 8 in the rounds, scaled to the mean of the estimate.
    assert found.samples_ms == pytest.approx((6.0, 6.0, 12.0))


def test_bricks_of_other_rounds_are_slow_independently() -> None:
    apart = [BrickSamples(name, 1, (1.0, 2.0)) for name in "abcdefgh"]
    together = [BrickSamples("a", 1, (1.0, 2.0)) for _ in "abcdefgh"]
    latency = Latency(12.0, 11.0, 13.0)
    spreads = [float(np.std(composed_service(1, latency, bricks).samples_ms)) for bricks in (apart, together)]
    assert spreads[0] < 0.5 * spreads[1]
    assert np.mean(composed_service(1, latency, apart).samples_ms) == pytest.approx(12.0)


def test_an_estimate_without_samples_has_no_spread() -> None:
    assert composed_service(1, Latency(8.0, 7.0, 9.0), []).samples_ms == (8.0,)


def test_a_batch_size_between_known_ones_is_interpolated_and_none_beyond_them() -> None:
    found = filled({1: of_size(1, 10.0), 8: of_size(8, 45.0)}, [1, 2, 4, 8, 16])
    assert [(it.batch_size, it.latency.value_ms) for it in found] == [(1, 10.0), (2, 15.0), (4, 25.0), (8, 45.0)]
    assert [it.source for it in found][1:3] == [ServiceSource.INTERPOLATED] * 2
    assert [it.samples_ms for it in found] == [(10.0,), (15.0,), (25.0,), (45.0,)]


def test_the_newest_load_test_says_what_passing_a_request_and_a_pause_cost() -> None:
    service = ServiceTimes((of_size(1, 10.0),))
    tests = [
        load_test(runtime="other", passing_ms=5.0),
        load_test(runtime="this", passing_ms=0.3, wake_up_ms=0.7),
        load_test(runtime="this", passing_ms=0.2),
    ]
    found = with_load_tests(service, tests, "this", 1)
    assert (found.passing_ms, found.wake_up_ms, found.passing_is_measured) == (0.3, 0.7, True)
    assert not with_load_tests(service, tests, "none", 1).passing_is_measured


def test_offline_tests_say_how_much_instances_slow_one_another_down() -> None:
    alone = load_test(runtime="this", kind="offline", per_second=100.0, instances=1)
    together = load_test(runtime="this", kind="offline", per_second=160.0, instances=2)
    service = ServiceTimes((of_size(1, 10.0),), 0.0)
    found = with_load_tests(service, [together, alone], "this", 2)
    assert found.slowdown == pytest.approx(1.25)
    assert found.draws([1], 1, 1).item() == pytest.approx(12.5 + found.passing_ms)
    assert with_load_tests(service, [alone], "this", 2).slowdown is None
    assert with_load_tests(service, [together, alone], "this", 1).slowdown is None
    # Such as one with a clock that jumped.
    assert with_load_tests(service, [replace(together, valid=False), alone], "this", 2).slowdown is None


def test_the_requests_of_a_single_stream_are_samples_without_the_cost_of_passing() -> None:
    test = load_test(kind="single", passing_ms=0.5, latencies=pack_latencies([10_500_000] * 99 + [40_500_000]))
    found = streamed_service(test)
    assert found.latency.value_ms == pytest.approx(10.0)
    assert sorted(found.samples_ms)[-2:] == pytest.approx([10.0, 40.0])
    assert (found.batch_size, found.source) == (1, ServiceSource.SINGLE_STREAM)
