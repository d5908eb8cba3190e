"""Tests of simulated queues, and of the search for the highest rate."""

import math
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.scenarios.load_tests import latencies_since_due
from dlbricks_tui.scenarios.predicting import (
    Numbers,
    capacity_of,
    highest_rates,
    latencies_of,
    slower_allowed,
    unit_schedule,
)
from dlbricks_tui.scenarios.scenario import fewest_queries
from dlbricks_tui.scenarios.serving import Answered


def served(arrivals: Sequence[float], service: Numbers, sizes: Sequence[int], instances: int) -> list[float]:
    """The latencies of a queue, simulated request by request."""
    free, latencies, first = [0.0] * instances, [], 0
    while first < len(arrivals):
        instance = free.index(min(free))
        start = max(free[instance], arrivals[first])
        waiting = sum(arrival <= start for arrival in arrivals[first:])
        size = max((it for it in sizes if it <= waiting), default=min(sizes))
        free[instance] = start + float(service[list(sizes).index(size), first])
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
)
def test_many_tests_at_once_are_served_like_each_by_itself(
    gaps: list[float], times: list[float], sizes: tuple[int, ...], instances: int, rate: float
) -> None:
    schedule = np.cumsum(gaps)
    drawn = np.array(times[: len(gaps)])
    # Two tests, the second with a host of half the speed.
    service = np.stack([np.stack([drawn, 2 * drawn]) * size**0.5 for size in sizes])
    rates = np.array([[rate, rate], [2 * rate, rate / 2]])
    found = latencies_of(schedule, rates, service, sizes, instances)
    for row, test in ((0, 0), (0, 1), (1, 0), (1, 1)):
        alone = served((schedule / rates[row, test]).tolist(), service[:, test], sizes, instances)
        assert found[row, test] == pytest.approx(alone)


def poisson(tests: int, requests: int, seed: int = 1) -> Numbers:
    """Random arrivals at a rate of one, different ones in each test."""
    return np.random.default_rng(seed).exponential(1.0, (tests, requests)).cumsum(axis=1)


def mean_latency(schedule: Numbers, rate: float, service: Numbers, instances: int = 1) -> float:
    """The mean latency of the second half of each test, when the queue is in equilibrium."""
    found = latencies_of(schedule, np.full((1, len(schedule)), rate), service[np.newaxis], instances=instances)
    return float(found[..., schedule.shape[1] // 2 :].mean())


@pytest.mark.parametrize("load", [0.3, 0.8])
def test_a_queue_with_constant_service_waits_as_the_formula_says(load: float) -> None:
    schedule = poisson(100, 4000)
    waiting = load / (2 * (1 - load))
    assert mean_latency(schedule, load, np.ones(schedule.shape)) == pytest.approx(1 + waiting, rel=0.05)


@given(st.integers(0, 1000), st.floats(0.05, 3.0))
def test_each_wake_up_depends_on_the_pause_before_it(seed: int, rate: float) -> None:
    service, rates = np.random.default_rng(seed).uniform(0.5, 1.5, (1, 2, 40)), np.array([[rate, rate], [9.0, 0.01]])
    arrivals, expected = poisson(2, 40, seed) / rates[..., np.newaxis], np.empty((2, 2, 40))
    for place in np.ndindex(2, 2):
        end = -math.inf
        for request, due in enumerate(arrivals[place]):
            pause = max(0.0, due - end)
            end = max(due, end) + service[0, place[1], request] + 0.5 * (1.0 - math.exp(-pause / 12.0))
            expected[place[0], place[1], request] = end - due
    found = latencies_of(poisson(2, 40, seed), rates, service, wake_up_ms=0.5)
    assert found == pytest.approx(expected)


@given(st.integers(0, 1000), st.floats(0.05, 3.0), st.floats(1.0, 2.0), st.integers(1, 3))
def test_more_requests_per_second_never_shorten_a_wait(seed: int, rate: float, factor: float, instances: int) -> None:
    service = np.random.default_rng(seed).uniform(0.5, 1.5, (1, 1, 60))
    rates = np.array([[rate], [rate * factor]])
    slow, fast = latencies_of(poisson(1, 60, seed), rates, service, instances=instances)
    assert (fast >= slow - 1e-9).all()


@given(st.integers(0, 1000), st.floats(1.5, 10.0), st.integers(0, 5), st.integers(1, 2))
def test_the_highest_rate_passes_and_a_higher_one_fails(seed: int, bound: float, allowed: int, instances: int) -> None:
    schedule = unit_schedule(200)
    service = np.random.default_rng(seed).uniform(0.9, 1.1, (1, 4, 200))
    found = highest_rates(schedule, service, bound, allowed, instances=instances)
    capacity = capacity_of(service, (1,), instances)
    assert (found > 0).all()
    assert (found <= capacity).all()
    slower = (
        latencies_of(schedule, np.stack([found, found + 0.001 * capacity]), service, instances=instances) > bound
    ).sum(-1)
    assert (slower[0] <= allowed).all()
    assert ((slower[1] > allowed) | (found == capacity)).all()


def test_a_bound_below_the_service_time_has_no_rate() -> None:
    assert highest_rates(unit_schedule(64), np.ones((1, 3, 64)), 0.9, 1).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("instances", [1, 2])
def test_batches_serve_no_more_than_their_service_allows(instances: int) -> None:
    sizes = (1, 2, 4)
    service = np.stack([np.full((3, 400), 0.4 + 0.6 * size) for size in sizes])
    found = highest_rates(unit_schedule(400), service, 1e9, 0, sizes, instances)
    assert found == pytest.approx(instances * 4 / 2.8)
    assert (highest_rates(unit_schedule(400), service, 12.0, 4, sizes, instances) <= found).all()


def test_loadgen_sends_requests_when_the_schedule_says(tmp_path: Path) -> None:
    loadgen = pytest.importorskip("mlperf_loadgen")
    queries, rate = 64, 5000.0

    def answer(samples: Sequence[object]) -> None:
        responses = [loadgen.QuerySampleResponse(it.id, 0, 0) for it in samples]  # type: ignore[attr-defined]
        loadgen.QuerySamplesComplete(responses)

    settings, logs = loadgen.TestSettings(), loadgen.LogSettings()
    settings.scenario, settings.mode = loadgen.TestScenario.Server, loadgen.TestMode.PerformanceOnly
    settings.server_target_qps, settings.server_target_latency_ns = rate, 10**10
    settings.min_query_count, settings.min_duration_ms = queries, 0
    logs.log_output.outdir = str(tmp_path)
    logs.log_output.copy_summary_to_stdout = False
    library = loadgen.ConstructQSL(1, 1, lambda _: None, lambda _: None)
    server = loadgen.ConstructSUT(answer, lambda: None)
    loadgen.StartTestWithLogSettings(server, library, settings, logs, str(tmp_path / "no-audit.config"))
    loadgen.DestroySUT(server)
    loadgen.DestroyQSL(library)
    (ends_ns,) = re.findall(
        r'"generated_query_duration", "value": (\d+)', (tmp_path / "mlperf_log_detail.txt").read_text()
    )
    # When the next request would have been due. LoadGen cuts each gap to whole nanoseconds.
    assert float(unit_schedule(queries + 1)[-1]) / rate * 1e9 == pytest.approx(int(ends_ns), abs=queries)


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


def test_requests_that_arrive_when_they_are_due_have_their_own_latencies() -> None:
    found = latencies_since_due(answered(), RATE)
    assert found.latencies_ns == [8_000_000] * 100
    assert found.delays_ns == [0] * 100
    assert found.seconds == pytest.approx((DUE_NS[-1] - BEGAN_NS) / 1e9 + 0.008)


def test_requests_that_arrive_late_have_the_delay_in_their_latencies() -> None:
    found = latencies_since_due(answered(late_ns=3_000_000), RATE)
    assert found.latencies_ns == [8_000_000] * 50 + [11_000_000] * 50
    assert found.delays_ns == [0] * 50 + [3_000_000] * 50
