"""The order of the hosts of a fleet is settled only if it is right, and settled as soon as the intervals allow."""

import math
import random
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.fleet.driving.orders import EQUAL_SHARE, HostComparison, HostLatency, Order, sigmas_for

SIGMAS_OF_INTERVAL = 1.959964


def latency(host: str, ms: float, half: float) -> HostLatency:
    """A latency whose interval reaches this far on both sides, as a share of it."""
    return HostLatency(host, ms, ms / (1 + half), ms * (1 + half))


def from_log(host: str, log: float, deviation: float) -> HostLatency:
    half = SIGMAS_OF_INTERVAL * deviation
    return HostLatency(host, *(math.exp(log + shift) for shift in (0.0, -half, half)))


def order_of(latencies: Sequence[HostLatency]) -> Order:
    return HostComparison(latencies).order


def test_hosts_that_differ_by_far_are_in_order_and_settled() -> None:
    order = order_of([latency("slow", 30, 0.05), latency("fast", 10, 0.05), latency("middle", 20, 0.05)])
    assert order == Order((("fast",), ("middle",), ("slow",)))
    assert order.settled


def test_hosts_within_two_percent_are_one_rank() -> None:
    order = order_of([latency("a", 10.0, 0.001), latency("b", 10.05, 0.001), latency("c", 12, 0.001)])
    assert order == Order((("a", "b"), ("c",)))


def test_hosts_within_two_percent_are_one_rank_even_if_one_is_certainly_faster() -> None:
    order = order_of([latency("a", 10.0, 0.0001), latency("b", 10.1, 0.0001)])
    assert order == Order((("a", "b"),))


def test_three_hosts_whose_ends_differ_by_more_than_two_percent_are_not_one_rank() -> None:
    order = order_of([latency(host, ms, 0.0001) for host, ms in (("a", 10.0), ("b", 10.15), ("c", 10.3))])
    assert order == Order((("a", "b"), ("c",)))


def test_overlapping_intervals_leave_a_group_open_and_the_other_hosts_settled() -> None:
    order = order_of([latency("a", 10, 0.05), latency("b", 10.4, 0.05), latency("c", 30, 0.05)])
    assert order.ranks == (("a",), ("b",), ("c",))
    assert order.open == (("a", "b"),)
    assert not order.settled


def test_a_host_with_a_wide_interval_keeps_all_open_that_it_may_be() -> None:
    order = order_of([latency("a", 10, 0.02), latency("b", 15, 0.02), latency("wide", 14, 3.0)])
    assert order.open == (("a", "wide", "b"),)


def test_a_host_without_a_latency_has_no_rank_and_nothing_is_settled() -> None:
    order = order_of([latency("a", 10, 0.01), HostLatency("new", None)])
    assert order == Order((("a",),), unknown=("new",))
    assert not order.settled


def test_a_host_whose_latency_has_no_upper_bound_counts_as_unknown() -> None:
    assert order_of([HostLatency("a", 10.0, 9.0, math.inf)]).unknown == ("a",)


def test_a_latency_that_may_be_zero_is_slower_than_no_other() -> None:
    order = order_of([latency("a", 1, 0.01), HostLatency("b", 100.0, 0.0, 101.0)])
    assert order.open == (("a", "b"),)


def test_one_host_and_no_host_are_settled() -> None:
    assert order_of([]).settled
    assert order_of([latency("a", 10, 0.5)]) == Order((("a",),))


def test_more_hosts_need_larger_differences() -> None:
    assert sigmas_for(2) <= sigmas_for(3) < sigmas_for(12) < sigmas_for(1_000) < 5


latencies = st.lists(
    st.tuples(st.floats(0.0, 0.2), st.floats(0.0001, 0.05), st.floats(0.0001, 0.05)), min_size=0, max_size=9
).map(
    lambda found: [
        HostLatency(str(number), math.exp(log), math.exp(log - below), math.exp(log + above))
        for number, (log, above, below) in enumerate(found)
    ]
)


@given(latencies)
def test_every_host_has_one_rank_and_the_order_of_the_input_does_not_matter(found: list[HostLatency]) -> None:
    order = order_of(found)
    assert sorted(host for rank in order.ranks for host in rank) == sorted(each.host for each in found)
    assert order_of(found[::-1]) == order


@given(latencies)
def test_all_pairs_of_a_settled_order_are_as_certain_as_it_claims(found: list[HostLatency]) -> None:
    """The claims by their definition, pair by pair."""
    order = order_of(found)
    sigmas, is_open = sigmas_for(len(found)), {host: group for group in order.open for host in group}
    places = {host: place for place, rank in enumerate(order.ranks) for host in rank}

    def least_ratio(fast: HostLatency, slow: HostLatency) -> float:
        """The least logarithm of the ratio of two latencies with the needed certainty."""
        assert fast.value_ms
        assert slow.value_ms
        doubt = math.hypot(math.log(fast.high_ms / fast.value_ms), math.log(slow.value_ms / slow.low_ms))
        return math.log(slow.value_ms / fast.value_ms) - sigmas * doubt / SIGMAS_OF_INTERVAL

    for one, other in combinations(found, 2):
        if is_open.get(one.host, one.host) == is_open.get(other.host, other.host):
            continue
        fast, slow = sorted((one, other), key=lambda each: places[each.host])
        if places[fast.host] < places[slow.host]:
            assert least_ratio(fast, slow) > -1e-9
        else:
            assert least_ratio(one, other) > -math.log1p(EQUAL_SHARE) - 1e-9
            assert least_ratio(other, one) > -math.log1p(EQUAL_SHARE) - 1e-9


@given(latencies)
def test_each_host_of_an_open_group_and_no_other_has_an_open_pair(found: list[HostLatency]) -> None:
    comparison = HostComparison(found)
    is_open = {host: group for group in comparison.order.open for host in group}
    for each in found:
        others = {pair.other for pair in comparison.open_pairs(each.host)}
        assert bool(others) == (each.host in is_open)
        assert others <= set(is_open.get(each.host, ())) - {each.host}


def test_a_thousand_hosts_in_one_open_group_are_compared_with_few_neighbours() -> None:
    comparison = HostComparison([latency(str(number), 10 + number / 1000, 0.2) for number in range(1_000)])
    assert [len(group) for group in comparison.order.open] == [1_000]
    assert all(1 <= len(comparison.open_pairs(str(number))) <= 4 for number in range(1_000))


def is_wrong(order: Order, truth: Mapping[str, float]) -> bool:
    """True if a claim of an order is wrong: about two hosts of one rank, or of different ranks."""
    slowest = -math.inf
    for rank in order.ranks:
        logs = [truth[host] for host in rank]
        if max(logs) - min(logs) > math.log1p(EQUAL_SHARE) or min(logs) < slowest:
            return True
        slowest = max(slowest, *logs)
    return False


@pytest.mark.parametrize("apart", [0.0001, 0.0205, 0.03])
@pytest.mark.parametrize("hosts", [2, 4, 12])
def test_at_most_five_percent_of_settled_orders_are_wrong(hosts: int, apart: float) -> None:
    """The intervals are right, and as wide as errors are likeliest: most hosts are certain, and one is not."""
    chance, wrong, repeats = random.Random(hosts), 0, 400
    truth = {str(number): number * apart for number in range(hosts)}
    for _ in range(repeats):
        deviations = [chance.choice((0.0003, 0.003, 0.01)) for _ in truth]
        found = [
            from_log(host, chance.gauss(log, deviation), deviation)
            for (host, log), deviation in zip(truth.items(), deviations, strict=True)
        ]
        order = order_of(found)
        wrong += order.settled and is_wrong(order, truth)
    assert wrong <= 0.05 * repeats


def soak(*values: int) -> Any:
    """Return a case that tries more."""
    return pytest.param(*values, marks=pytest.mark.soak)


def watched(chance: random.Random, truth: Mapping[str, float], bricks: int) -> tuple[Order, int]:
    """Return the order at which a fleet stops that looks at it after each task, and the number of looks.

    Each host measures its bricks in tenths. Predictions are wrong by 30 %, and their errors have a part in common.
    """
    predicted, common, measured, method = 0.3 * math.sqrt(0.91), 0.3 * 0.3, 0.02, 0.001
    errors = {
        host: (
            chance.gauss(0, common),
            [chance.gauss(0, predicted) for _ in range(bricks)],
            [chance.gauss(0, measured) for _ in range(bricks)],
            chance.gauss(0, method),
        )
        for host in truth
    }
    done, looks = dict.fromkeys(truth, 0), 0

    def now(host: str) -> HostLatency:
        shared, of_predictions, of_measurements, of_method = errors[host]
        left, taken = (bricks - done[host]) / bricks, done[host]
        log = truth[host] + shared * left + of_method
        log += (math.fsum(of_predictions[taken:]) + math.fsum(of_measurements[:taken])) / bricks
        variance = (predicted**2 * (bricks - taken) + measured**2 * taken) / bricks**2
        return from_log(host, log, math.sqrt(variance + (common * left) ** 2 + method**2))

    while True:
        order, looks = order_of([now(host) for host in truth]), looks + 1
        waiting = [host for host in truth if done[host] < bricks]
        if order.settled or not waiting:
            return order, looks
        host = chance.choice([host for group in order.open for host in group if done[host] < bricks] or waiting)
        done[host] += bricks // 10


@pytest.mark.parametrize(("hosts", "repeats"), [(2, 200), (3, 150), (8, 50), soak(3, 500), soak(8, 200)])
def test_at_most_five_percent_are_wrong_although_the_order_is_looked_at_after_each_task(
    hosts: int, repeats: int
) -> None:
    chance, outcomes = random.Random(hosts), list[tuple[Order, int, Sequence[float]]]()
    wrong = 0
    for _ in range(repeats):
        truth = {str(number): chance.gauss(0, 0.2) for number in range(hosts)}
        order, looks = watched(chance, truth, 40)
        outcomes.append((order, looks, tuple(truth.values())))
        wrong += order.settled and is_wrong(order, truth)
    assert wrong <= 0.05 * repeats
    # Without repeated looks and settled orders the test would show nothing.
    assert max(looks for _, looks, _ in outcomes) >= 10
    assert sum(order.settled for order, _, _ in outcomes) > repeats / 10


def test_at_most_five_percent_are_wrong_of_two_hosts_that_are_nearly_equal() -> None:
    """They are looked at longest, and no other pair needs a part of the 5 %."""
    chance, settled, wrong, repeats = random.Random(2), 0, 0, 250
    for _ in range(repeats):
        truth = {"a": 0.0, "b": chance.gauss(0, 0.005)}
        order, _ = watched(chance, truth, 20)
        settled += order.settled
        wrong += order.settled and is_wrong(order, truth)
    assert wrong <= 0.05 * repeats
    assert settled > repeats / 10
