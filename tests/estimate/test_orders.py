"""The order of hosts is settled only if it is right; a host measures what decides most about it."""

import math
import random
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.estimate.knowledge import Latency
from dlbricks_tui.estimate.orders import (
    EQUAL_SHARE,
    HostComparison,
    ModelOnHost,
    Order,
    ParcelWork,
    UnmeasuredPart,
    plan_for,
    sigmas_for,
)

SIGMAS_OF_INTERVAL = 1.959964


# A host with its latency.
OnHost = tuple[str, Latency | None]


def latency(host: str, ms: float, half: float) -> OnHost:
    """A latency whose interval reaches this far on both sides, as a share of it."""
    return host, Latency(ms, ms / (1 + half), ms * (1 + half))


def from_log(host: str, log: float, deviation: float) -> OnHost:
    half = SIGMAS_OF_INTERVAL * deviation
    return host, Latency(*(math.exp(log + shift) for shift in (0.0, -half, half)))


def order_of(latencies: Sequence[OnHost]) -> Order:
    return HostComparison(dict(latencies)).order


@pytest.mark.parametrize(
    ("hosts", "order"),
    [
        ([latency("slow", 30, 0.05), latency("fast", 10, 0.05)], Order((("fast",), ("slow",)))),
        # Hosts within two percent are one rank, even if one is certainly faster, but not if the ends differ by more.
        ([latency("a", 10.0, 0.001), latency("b", 10.05, 0.001), latency("c", 12, 0.001)], Order((("a", "b"), ("c",)))),
        ([latency(*it, 0.0001) for it in (("a", 10.0), ("b", 10.15), ("c", 10.3))], Order((("a", "b"), ("c",)))),
        # Overlapping intervals leave a group open, and the other hosts settled.
        (
            [latency("a", 10, 0.05), latency("b", 10.4, 0.05), latency("c", 30, 0.05)],
            Order((("a",), ("b",), ("c",)), open=(("a", "b"),)),
        ),
        # A host with a wide interval keeps all open that it may be.
        (
            [latency("a", 10, 0.02), latency("b", 15, 0.02), latency("wide", 14, 3.0)],
            Order((("a",), ("wide",), ("b",)), open=(("a", "wide", "b"),)),
        ),
        # A latency that may be zero is slower than no other.
        ([latency("a", 1, 0.01), ("b", Latency(100.0, 0.0, 101.0))], Order((("a",), ("b",)), open=(("a", "b"),))),
        # Without a latency, or without an upper bound of it, a host has no rank.
        ([latency("a", 10, 0.01), ("new", None)], Order((("a",),), unknown=("new",))),
        ([("a", Latency(10.0, 9.0, math.inf))], Order((), unknown=("a",))),
        ([latency("a", 10, 0.5)], Order((("a",),))),
        ([], Order(())),
    ],
)
def test_hosts_are_in_ranks_and_the_order_is_settled_where_no_group_is_open(hosts: list[OnHost], order: Order) -> None:
    assert order_of(hosts) == order
    assert order.settled == (not order.open and not order.unknown)


def test_more_hosts_need_larger_differences() -> None:
    assert sigmas_for(2) <= sigmas_for(3) < sigmas_for(12) < sigmas_for(1_000) < 5


latencies = st.lists(
    st.tuples(st.floats(0.0, 0.2), st.floats(0.0001, 0.05), st.floats(0.0001, 0.05)), min_size=0, max_size=9
).map(
    lambda found: [
        (str(number), Latency(math.exp(log), math.exp(log - below), math.exp(log + above)))
        for number, (log, above, below) in enumerate(found)
    ]
)


@given(latencies)
def test_every_host_has_one_rank_and_the_order_of_the_input_does_not_matter(found: list[OnHost]) -> None:
    order = order_of(found)
    assert sorted(host for rank in order.ranks for host in rank) == sorted(host for host, _ in found)
    assert order_of(found[::-1]) == order


@given(latencies)
def test_all_pairs_of_a_settled_order_are_as_certain_as_it_claims(found: list[OnHost]) -> None:
    """The claims by their definition, pair by pair."""
    order = order_of(found)
    sigmas, is_open = sigmas_for(len(found)), {host: group for group in order.open for host in group}
    places = {host: place for place, rank in enumerate(order.ranks) for host in rank}

    def least_ratio(fast: Latency, slow: Latency) -> float:
        """The least logarithm of the ratio of two latencies with the needed certainty."""
        doubt = math.hypot(math.log(fast.high_ms / fast.value_ms), math.log(slow.value_ms / slow.low_ms))
        return math.log(slow.value_ms / fast.value_ms) - sigmas * doubt / SIGMAS_OF_INTERVAL

    known = {host: it for host, it in found if it is not None}
    for one, other in combinations(known, 2):
        if is_open.get(one, one) == is_open.get(other, other):
            continue
        fast, slow = sorted((one, other), key=places.__getitem__)
        if places[fast] < places[slow]:
            assert least_ratio(known[fast], known[slow]) > -1e-9
        else:
            assert least_ratio(known[one], known[other]) > -math.log1p(EQUAL_SHARE) - 1e-9
            assert least_ratio(known[other], known[one]) > -math.log1p(EQUAL_SHARE) - 1e-9


@given(latencies)
def test_each_host_of_an_open_group_and_no_other_has_an_open_pair(found: list[OnHost]) -> None:
    comparison = HostComparison(dict(found))
    is_open = {host: group for group in comparison.order.open for host in group}
    for host, _ in found:
        others = {pair.other for pair in comparison.open_pairs(host)}
        assert bool(others) == (host in is_open)
        assert others <= set(is_open.get(host, ())) - {host}


def test_a_thousand_hosts_in_one_open_group_are_compared_with_few_neighbours() -> None:
    comparison = HostComparison(dict(latency(str(number), 10 + number / 1000, 0.2) for number in range(1_000)))
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

    def now(host: str) -> OnHost:
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


def on_host(host: str, model: str, fixed_half: float, parts: dict[str, UnmeasuredPart], value_ms: float) -> ModelOnHost:
    """A model on a host, of which bricks are predicted; the rest of its interval does not go away."""
    half = math.sqrt(fixed_half**2 + sum(part.half_ms for part in parts.values()) ** 2)
    return ModelOnHost(host, model, Latency(value_ms, value_ms - half, value_ms + half), parts)


def comparison_of(*models: ModelOnHost) -> HostComparison:
    return HostComparison({each.host: each.latency for each in models})


def bricks_of(works: Sequence[ParcelWork]) -> list[str]:
    return [brick for work in works for brick in work.bricks]


def test_the_brick_that_removes_most_doubt_per_second_comes_first() -> None:
    parts = {"small": UnmeasuredPart(1, 0.1), "large": UnmeasuredPart(30, 5.0), "slow": UnmeasuredPart(30, 5.0)}
    mine = on_host("a", "m", 0.1, parts, 100)
    other = ModelOnHost("b", "m", Latency(104, 103.9, 104.1), {})
    works = [ParcelWork(("small",), 1), ParcelWork(("slow",), 50), ParcelWork(("large",), 1)]
    plan = plan_for([mine], {"m": comparison_of(mine, other)}, works)
    assert bricks_of(plan)[0] == "large"


def test_a_pair_that_no_measurement_on_the_host_can_decide_is_left_alone() -> None:
    # The error of the method stays, and it is wider than the difference.
    mine = on_host("a", "m", 10.0, {"brick": UnmeasuredPart(1, 0.05)}, 100)
    other = ModelOnHost("b", "m", Latency(101, 91, 111), {})
    assert not plan_for([mine], {"m": comparison_of(mine, other)}, [ParcelWork(("brick",), 1)])


def test_a_host_without_a_latency_measures_the_bricks_that_have_no_prediction() -> None:
    parts = {"lacking": UnmeasuredPart(0, math.inf), "predicted": UnmeasuredPart(10, 1.0)}
    mine = ModelOnHost("a", "m", None, parts)
    other = ModelOnHost("b", "m", Latency(100, 99, 101), {})
    works = [ParcelWork(("predicted",), 1), ParcelWork(("lacking",), 1)]
    assert bricks_of(plan_for([mine], {"m": comparison_of(mine, other)}, works)) == ["lacking"]


def test_a_parcel_whose_bricks_another_one_holds_too_is_not_measured_for_them() -> None:
    parts = {"one": UnmeasuredPart(30, 5.0), "two": UnmeasuredPart(30, 5.0)}
    mine = on_host("a", "m", 0.1, parts, 100)
    other = ModelOnHost("b", "m", Latency(100.5, 100.4, 100.6), {})
    works = [ParcelWork(("one", "two"), 10), ParcelWork(("one",), 9), ParcelWork(("two",), 9)]
    plan = plan_for([mine], {"m": comparison_of(mine, other)}, works)
    assert [work.bricks for work in plan] == [("one", "two")]


def test_enough_bricks_are_planned_for_the_pair_and_no_more() -> None:
    parts = {str(number): UnmeasuredPart(1, 0.3) for number in range(50)}
    mine = on_host("a", "m", 0.1, parts, 100)
    other = ModelOnHost("b", "m", Latency(110, 109.9, 110.1), {})
    works = [ParcelWork((brick,), 0.1) for brick in parts]
    plan = plan_for([mine], {"m": comparison_of(mine, other)}, works)
    taken = set(bricks_of(plan))
    left = {brick: part for brick, part in parts.items() if brick not in taken}
    after = on_host("a", "m", 0.1, left, 100)
    assert 0 < len(left) < len(parts)
    assert comparison_of(after, other).order.settled
