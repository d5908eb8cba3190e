"""Predicted loads, and simulated queues."""

import math
import re
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dlbricks_tui.estimate.knowledge import Latency
from dlbricks_tui.scenarios.kinds import ScenarioKind
from dlbricks_tui.scenarios.load_tests import latencies_since_due
from dlbricks_tui.scenarios.loadgen import LoadGenTest, LoadSettings
from dlbricks_tui.scenarios.predicting import (
    BrickSamples,
    Numbers,
    ServiceSource,
    ServiceTime,
    ServiceTimes,
    Simulation,
    composed_service,
    filled,
    load_curve,
    predict,
    slower_allowed,
    streamed_service,
    timed_service,
    unit_schedule,
    with_load_tests,
    with_other_arrivals,
)
from dlbricks_tui.scenarios.scenario import (
    Scenario,
    ScenarioError,
    batch_sizes_up_to,
    best_of,
    fewest_queries,
    measured_load,
    percentile_of,
)
from dlbricks_tui.scenarios.serving import Answered
from dlbricks_tui.store.records import LoadTest
from dlbricks_tui.store.statistics import pack_latencies
from tests.store.samples import load_test

SAMPLES = tuple(9.9 + number / 100 for number in range(21))
SERVER = Scenario(kind=ScenarioKind.SERVER, percentile=99.0, bound_ms=40.0)

pytestmark = pytest.mark.usefixtures("rough_predictions")


def service(doubt: float = 0.02, per_request: float = 0.5, sizes: tuple[int, ...] = (1, 2, 4, 8)) -> ServiceTimes:
    """A model that takes 10 ms for one request, and a part of that for each further one."""
    found = []
    for size in sizes:
        factor = 1 - per_request + per_request * size
        value_ms = 10.0 * factor
        latency = Latency(value_ms, value_ms * (1 - doubt), value_ms * (1 + doubt))
        samples = tuple(factor * sample for sample in SAMPLES)
        found.append(ServiceTime(size, latency, samples, ServiceSource.END_TO_END))
    return ServiceTimes(tuple(found), 0.0)


def test_a_single_stream_has_the_percentiles_of_the_service() -> None:
    found = predict(Scenario(kind=ScenarioKind.SINGLE, percentile=90.0), service())
    assert found.p50_ms.value == pytest.approx(np.quantile(SAMPLES, 0.5), rel=0.01)
    assert found.p90_ms.value == pytest.approx(np.quantile(SAMPLES, 0.9), rel=0.01)
    assert found.per_second.value == pytest.approx(100.0, rel=0.01)
    # The interval of the estimate is that of the prediction.
    assert found.p50_ms.low == pytest.approx(9.8, rel=0.01)
    assert found.p50_ms.high == pytest.approx(10.2, rel=0.01)


def test_a_query_of_a_multi_stream_takes_as_long_as_eight_samples_on_the_instances() -> None:
    scenario = Scenario(kind=ScenarioKind.MULTI, percentile=99.0)
    for instances, batches, factor in ((1, 1, 8), (2, 1, 4), (1, 8, 4.5)):
        changed = replace(scenario, instances=instances, batch_sizes=batch_sizes_up_to(batches))
        found = predict(changed, service())
        assert found.p50_ms.value == pytest.approx(10.0 * factor, rel=0.01)
        assert found.per_second.value == pytest.approx(8 / (0.01 * factor), rel=0.01)


def test_offline_takes_the_batch_size_with_the_highest_throughput_and_latencies_from_the_start_of_the_test() -> None:
    offline = Scenario(kind=ScenarioKind.OFFLINE, percentile=99.0)
    batched = replace(offline, batch_sizes=(1, 2, 4, 8), instances=2)
    found = predict(batched, service())
    assert found.batch_size == 8
    assert found.per_second.value == pytest.approx(2 * 8 / 0.045, rel=0.02)
    assert predict(batched, service(per_request=1.2)).batch_size == 1
    found, full = predict(offline, service()), predict(replace(offline, full=True), service())
    assert 3000.0 < found.p999_ms.value < 5000.0
    assert found.p50_ms.value == pytest.approx(found.p999_ms.value / 2, rel=0.01)
    assert full.p999_ms.value == pytest.approx(found.p999_ms.value * 600 / 3, rel=0.01)


def test_a_server_without_a_rate_has_the_highest_one_within_the_bound() -> None:
    found = predict(SERVER, service())
    assert 0 < found.per_second.low < found.per_second.value < found.per_second.high < 102.0
    assert found.valid
    assert found.p99_ms.value <= 40.0
    at_rate = predict(replace(SERVER, rate=0.97 * found.per_second.low), service())
    above = predict(replace(SERVER, rate=1.1 * found.per_second.high), service())
    assert (at_rate.valid, above.valid) == (True, False)
    # More instances serve more, and a wider interval of the estimate gives a wider range.
    assert 2 * found.per_second.value < predict(replace(SERVER, instances=2), service()).per_second.value <= 202.0
    wide = predict(SERVER, service(0.2)).per_second
    assert wide.high - wide.low > 2 * (found.per_second.high - found.per_second.low)


def test_other_arrivals_make_the_highest_rate_less_certain() -> None:
    loadgens, others = predict(SERVER, service(doubt=0.0)).per_second, with_other_arrivals(SERVER, service(doubt=0.0))
    assert others.high - others.low > 2 * (loadgens.high - loadgens.low)
    assert others.low < loadgens.value < others.high


def test_batches_serve_more_where_they_are_cheap() -> None:
    scenario = replace(SERVER, bound_ms=100.0)
    alone, batched = (
        predict(replace(scenario, batch_sizes=sizes), service(per_request=0.1)) for sizes in ((1,), (1, 2, 4, 8))
    )
    assert batched.per_second.value > 1.5 * alone.per_second.value
    assert batched.batch_size == 8


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"bound_ms": 9.0}, r"^bound 9 ms: a request that never waits takes 10 ms on average.*$"),
        ({"percentile": 99.99}, r"^percentile 99.99: a test needs 66,\d+ requests.*$"),
    ],
)
def test_a_bound_or_percentile_that_no_test_can_meet_gets_one_line(asked: dict[str, float], words: str) -> None:
    with pytest.raises(ScenarioError, match=words):
        predict(replace(SERVER, **asked), service())  # type: ignore[arg-type]


def test_full_tests_have_more_queries() -> None:
    fewest, full = (predict(replace(SERVER, rate=30.0, full=it), service()) for it in (False, True))
    assert full.queries / 20 > 662
    assert predict(replace(SERVER, percentile=99.9), service()).per_second.value > 0
    # Percentiles of longer tests vary less.
    assert full.p99_ms.high - full.p99_ms.low < fewest.p99_ms.high - fewest.p99_ms.low


def test_the_curve_rises_from_the_service_time() -> None:
    points = load_curve(SERVER, service(), points=10)
    rates, percentiles = [it.rate for it in points], [it.latency_ms.value for it in points]
    assert len(points) == 10
    assert rates == sorted(rates)
    assert rates[-1] == pytest.approx(100.0, rel=0.02)
    assert percentiles == sorted(percentiles)
    assert 9.0 < percentiles[0] < 25.0
    assert percentiles[-1] > 40.0


SPREAD_SAMPLES = tuple(9.0 + number / 10 for number in range(21))


def of_size(size: int, value_ms: float) -> ServiceTime:
    return ServiceTime(size, Latency(value_ms, value_ms, value_ms), (value_ms,), ServiceSource.END_TO_END)


def test_drawn_times_are_the_samples_and_the_cost_of_passing() -> None:
    service = ServiceTimes((ServiceTime(1, Latency(10.0, 10.0, 10.0), SPREAD_SAMPLES, ServiceSource.END_TO_END),), 0.2)
    drawn = service.draws([1], 5, 1000)
    assert drawn.shape == (1, 5, 1000)
    assert {round(it, 6) for it in drawn.ravel().tolist()} == {round(it + 0.2, 6) for it in SPREAD_SAMPLES}
    assert service.single_ms == pytest.approx(10.2)


def test_each_test_draws_a_speed_of_the_host_from_the_interval() -> None:
    service = ServiceTimes((ServiceTime(1, Latency(10.0, 9.0, 12.0), (10.0,), ServiceSource.ESTIMATE),), 0.0)
    means = service.draws([1], 2000, 3).mean(axis=-1)[0]
    low, middle, high = np.quantile(means, [0.025, 0.5, 0.975])
    assert (low, middle, high) == pytest.approx((9.0, 10.0, 12.0), rel=0.02)


def test_an_end_to_end_latency_is_less_certain_after_another_load() -> None:
    found = timed_service(1, SPREAD_SAMPLES, Latency(10.0, 9.7, 10.3), placement_share=0.04)
    assert found.latency == pytest.approx((10.0, 9.5, 10.5))
    assert (found.samples_ms, found.source) == (SPREAD_SAMPLES, ServiceSource.END_TO_END)


def test_bricks_of_the_same_rounds_are_slow_together_and_those_of_others_independently() -> None:
    together = [BrickSamples("a", 2, (1.0, 1.0, 2.0)), BrickSamples("a", 1, (2.0, 2.0, 4.0))]
    # 4, 4 and 8 in the rounds, scaled to the mean of the estimate.
    assert composed_service(1, Latency(8.0, 7.0, 9.0), together).samples_ms == pytest.approx((6.0, 6.0, 12.0))
    groups = ([BrickSamples(name, 1, (1.0, 2.0)) for name in names] for names in ("abcdefgh", "aaaaaaaa"))
    apart, alike = (composed_service(1, Latency(12.0, 11.0, 13.0), bricks).samples_ms for bricks in groups)
    assert np.std(apart) < 0.5 * np.std(alike)
    assert np.mean(apart) == pytest.approx(12.0)
    assert composed_service(1, Latency(8.0, 7.0, 9.0), []).samples_ms == (8.0,)


def test_a_batch_size_between_known_ones_is_interpolated_and_none_beyond_them() -> None:
    found = filled({1: of_size(1, 10.0), 8: of_size(8, 45.0)}, [1, 2, 4, 8, 16])
    assert [(it.batch_size, it.latency.value_ms) for it in found] == [(1, 10.0), (2, 15.0), (4, 25.0), (8, 45.0)]
    assert [it.source for it in found][1:3] == [ServiceSource.INTERPOLATED] * 2
    assert [it.samples_ms for it in found] == [(10.0,), (15.0,), (25.0,), (45.0,)]


def test_the_load_tests_of_half_a_day_say_what_passing_a_request_and_a_pause_cost() -> None:
    service = ServiceTimes((of_size(1, 10.0),))
    days = {hours: f"2026-11-22T{hours:02}:00:00.000000+00:00" for hours in (2, 13, 18, 20)}
    tests = [
        load_test(runtime="this", passing_ms=9.0, wake_up_ms=9.0, when=days[2]),
        load_test(runtime="this", passing_ms=0.3, wake_up_ms=0.7, when=days[13]),
        load_test(runtime="this", passing_ms=0.2, wake_up_ms=0.4, when=days[20]),
        load_test(runtime="this", passing_ms=0.6, wake_up_ms=0.5, when=days[18]),
        load_test(runtime="other", passing_ms=5.0, when=days[20]),
    ]
    found = with_load_tests(service, tests, "this", 1)
    assert (found.passing_ms, found.wake_up_ms, found.passing_is_measured) == (0.3, 0.5, True)
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
    # The newest counts, which is the last.
    older = replace(together, per_second=120.0)
    assert with_load_tests(service, [alone, older, together], "this", 2).slowdown == pytest.approx(1.25)
    # Such as one with a clock that jumped.
    assert with_load_tests(service, [replace(together, valid=False), alone], "this", 2).slowdown is None


def test_the_requests_of_a_single_stream_are_samples_without_the_cost_of_passing() -> None:
    test = load_test(kind="single", passing_ms=0.5, latencies=pack_latencies([10_500_000] * 99 + [40_500_000]))
    found = streamed_service([test])
    assert found.latency.value_ms == pytest.approx(10.0)
    assert sorted(found.samples_ms)[-2:] == pytest.approx([10.0, 40.0])
    assert (found.batch_size, found.source) == (1, ServiceSource.SINGLE_STREAM)


def test_several_single_streams_count_alike_and_their_difference_is_in_the_interval() -> None:
    tests = [
        load_test(kind="single", passing_ms=0.5, latencies=pack_latencies([milliseconds * 1_000_000] * count))
        for milliseconds, count in ((10, 300), (12, 100))
    ]
    found, one = streamed_service(tests), streamed_service(tests[:1])
    assert found.latency.value_ms == pytest.approx(10.5)
    assert found.latency.low_ms < 9.5 < 11.5 < found.latency.high_ms
    assert one.latency.high_ms == pytest.approx(9.5)
    assert len(found.samples_ms) == 400


@pytest.mark.parametrize(("percentile", "found"), [(50.0, 6), (90.0, 10), (99.0, 10), (0.1, 1)])
def test_percentiles_are_those_of_loadgen(percentile: float, found: int) -> None:
    assert percentile_of(range(1, 11), percentile) == found


def test_the_outcome_of_a_load_test_has_percentiles_to_the_nanosecond() -> None:
    latencies_ns = [20_000_000 - number for number in range(1000)]
    found = measured_load(load_test(queries=1000, latencies=pack_latencies(latencies_ns)))
    assert (found.p50_ms, found.p99_ms, found.p999_ms) == (19.999501, 19.999991, 20.0)
    assert found.per_second == 40.0


def test_a_given_rate_that_misses_its_bound_is_an_answer_too() -> None:
    missed = load_test(sought=False, bound_ms=1.0, valid=False)
    assert best_of([missed]) is missed
    # LoadGen has another reason here: the test was too short, or the clock was set.
    assert best_of([load_test(sought=False, valid=False)]) is None
    # The newest valid test answers a search.
    older, newest = load_test(rate=50.0), load_test(rate=38.04)
    assert best_of([load_test(rate=60.0, valid=False), newest, older]) is newest
    assert best_of([load_test(valid=False)]) is best_of([]) is None


def test_the_best_of_the_newest_batch_sizes_counts_offline() -> None:
    def tested(batch_size: int, per_second: float, valid: bool = True) -> LoadTest:
        asked = {"kind": "offline", "bound_ms": None, "rate": None, "sought": False}
        return load_test(**asked, batch_size=batch_size, per_second=per_second, valid=valid)

    found = best_of([tested(1, 162.8), tested(8, 300.0, valid=False), tested(4, 204.6), tested(4, 250.0)])
    assert found is not None
    assert (found.batch_size, found.per_second) == (4, 204.6)


def served(
    arrivals: Sequence[float], service: Numbers, sizes: Sequence[int], instances: int, wake_up_ms: float
) -> list[float]:
    """The latencies of a queue, simulated request by request."""
    free, latencies, first = [-math.inf] * instances, [], 0
    while first < len(arrivals):
        instance = free.index(min(free))
        start = max(free[instance], arrivals[first])
        waiting = sum(arrival <= start for arrival in arrivals[first:])
        size = max((it for it in sizes if it <= waiting), default=min(sizes))
        wake_up = wake_up_ms * (1.0 - math.exp((free[instance] - start) / 12.0))
        free[instance] = start + float(service[list(sizes).index(size), first]) + wake_up
        taken = arrivals[first : first + size]
        latencies += [free[instance] - arrival for arrival in taken]
        first += len(taken)
    return latencies


@given(
    st.lists(st.floats(0.0, 5.0), min_size=1, max_size=25),
    st.lists(st.floats(0.1, 3.0), min_size=25, max_size=25),
    st.sampled_from([(1,), (1, 2), (1, 2, 4), (1, 2, 4, 6), (2,)]),
    st.integers(1, 3),
    st.floats(0.5, 2.0),
    st.sampled_from([0.0, 0.5]),
)
# One instance that serves each request alone, before, in and after pauses.
@example([0.0, 0.5, 5.0, 5.0, 0.1], [1.0] * 25, (1,), 1, 1.0, 0.5)
def test_many_tests_at_once_are_served_like_each_by_itself(
    gaps: list[float], times: list[float], sizes: tuple[int, ...], instances: int, rate: float, wake_up_ms: float
) -> None:
    schedule = np.cumsum(gaps)
    drawn = np.array(times[: len(gaps)])
    # Two tests, the second with a host of half the speed.
    service = np.stack([np.stack([drawn, 2 * drawn]) * size**0.5 for size in sizes])
    rates = np.array([[rate, rate], [2 * rate, rate / 2]])
    found = Simulation(schedule, service, sizes, instances, wake_up_ms).latencies(rates)
    for row, test in ((0, 0), (0, 1), (1, 0), (1, 1)):
        alone = served((schedule / rates[row, test]).tolist(), service[:, test], sizes, instances, wake_up_ms)
        assert found[row, test] == pytest.approx(alone)


def poisson(tests: int, requests: int, seed: int = 1) -> Numbers:
    """Random arrivals at a rate of one, different ones in each test."""
    return np.random.default_rng(seed).exponential(1.0, (tests, requests)).cumsum(axis=1)


def mean_latency(schedule: Numbers, rate: float, service: Numbers, instances: int = 1) -> float:
    """The mean latency of the second half of each test, when the queue is in equilibrium."""
    found = Simulation(schedule, service[np.newaxis], instances=instances).latencies(np.full((1, len(schedule)), rate))
    return float(found[..., schedule.shape[1] // 2 :].mean())


@pytest.mark.parametrize("load", [0.3, 0.8])
def test_a_queue_with_constant_service_waits_as_the_formula_says(load: float) -> None:
    schedule = poisson(100, 4000)
    waiting = load / (2 * (1 - load))
    assert mean_latency(schedule, load, np.ones(schedule.shape)) == pytest.approx(1 + waiting, rel=0.05)


@given(st.integers(0, 1000), st.floats(0.05, 3.0), st.floats(1.0, 2.0), st.integers(1, 3))
def test_more_requests_per_second_never_shorten_a_wait(seed: int, rate: float, factor: float, instances: int) -> None:
    service = np.random.default_rng(seed).uniform(0.5, 1.5, (1, 1, 60))
    rates = np.array([[rate], [rate * factor]])
    slow, fast = Simulation(poisson(1, 60, seed), service, instances=instances).latencies(rates)
    assert (fast >= slow - 1e-9).all()


@given(st.integers(0, 1000), st.floats(1.5, 10.0), st.integers(0, 5), st.integers(1, 2))
def test_the_highest_rate_passes_and_a_higher_one_fails(seed: int, bound: float, allowed: int, instances: int) -> None:
    service = np.random.default_rng(seed).uniform(0.9, 1.1, (1, 4, 200))
    tests = Simulation(unit_schedule(200), service, instances=instances)
    found, capacity = tests.highest_rates(bound, allowed), tests.capacity
    assert (found > 0).all()
    assert (found <= capacity).all()
    slower = (tests.latencies(np.stack([found, found + 0.001 * capacity])) > bound).sum(-1)
    assert (slower[0] <= allowed).all()
    assert ((slower[1] > allowed) | (found == capacity)).all()


def test_a_bound_below_the_service_time_has_no_rate() -> None:
    assert Simulation(unit_schedule(64), np.ones((1, 3, 64))).highest_rates(0.9, 1).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("instances", [1, 2])
def test_batches_serve_no_more_than_their_service_allows(instances: int) -> None:
    sizes = (1, 2, 4)
    service = np.stack([np.full((3, 400), 0.4 + 0.6 * size) for size in sizes])
    tests = Simulation(unit_schedule(400), service, sizes, instances)
    found = tests.highest_rates(1e9, 0)
    assert found == pytest.approx(instances * 4 / 2.8)
    assert (tests.highest_rates(12.0, 4) <= found).all()


def test_loadgen_sends_requests_when_the_schedule_says(tmp_path: Path) -> None:
    pytest.importorskip("mlperf_loadgen")
    server = LoadSettings(kind=ScenarioKind.SERVER, percentile=99.0, queries=64, seconds=0.0, expected_ms=1.0, rate=5e3)
    ended = threading.Event()
    test = LoadGenTest(server, tmp_path, lambda ids: test.complete(ids), ended)
    test.start()
    assert ended.wait(60.0)
    (ends_ns,) = re.findall(
        r'"generated_query_duration", "value": (\d+)', (tmp_path / "mlperf_log_detail.txt").read_text()
    )
    # When the next request would have been due. LoadGen cuts each gap to whole nanoseconds.
    assert float(unit_schedule(65)[-1]) / 5e3 * 1e9 == pytest.approx(int(ends_ns), abs=64)


@pytest.mark.parametrize("percentile", [50.0, 90.0, 99.0, 99.9, 99.99999])
def test_the_fewest_queries_allow_one_slow_one(percentile: float) -> None:
    queries = fewest_queries(percentile)
    assert slower_allowed(queries, percentile) == 1
    assert slower_allowed(queries - 1, percentile) == 0
    # Too few queries allow none at all.
    assert slower_allowed(math.ceil(math.log(0.01) / math.log(0.99)) - 1, 99.0) == -1


RATE, BEGAN_NS = 50.0, 7_000_000_000
DUE_NS = BEGAN_NS + np.rint(unit_schedule(100) / RATE * 1e9).astype(np.int64)


def answered(late_ns: int = 0, from_request: int = 50) -> list[Answered]:
    """Return requests that each take 8 ms, of which the later ones arrive late, in no order."""
    received = [int(due) + late_ns * (number >= from_request) for number, due in enumerate(DUE_NS)]
    return [Answered(it, 8_000_000, 7.9) for it in reversed(received)]


def test_latencies_count_from_when_requests_were_due_and_have_their_delays() -> None:
    found = latencies_since_due(answered(), RATE)
    assert (found.latencies_ns, found.delays_ns) == ([8_000_000] * 100, [0] * 100)
    assert found.seconds == pytest.approx((DUE_NS[-1] - BEGAN_NS) / 1e9 + 0.008)
    late = latencies_since_due(answered(late_ns=3_000_000), RATE)
    assert late.latencies_ns == [8_000_000] * 50 + [11_000_000] * 50
    assert late.delays_ns == [0] * 50 + [3_000_000] * 50
