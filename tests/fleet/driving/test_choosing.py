"""A host of a fleet measures what decides most about the order of hosts."""

import math
from collections.abc import Sequence

import pytest

from dlbricks_tui.fleet.driving.choosing import ModelOnHost, ParcelWork, UnmeasuredPart, plan_for, seconds_inside
from dlbricks_tui.fleet.driving.orders import HostComparison, HostLatency


def on_host(host: str, model: str, fixed_half: float, parts: dict[str, UnmeasuredPart], value_ms: float) -> ModelOnHost:
    """A model on a host, of which bricks are predicted; the rest of its interval does not go away."""
    half = math.sqrt(fixed_half**2 + sum(part.half_ms for part in parts.values()) ** 2)
    return ModelOnHost(model, HostLatency(host, value_ms, value_ms - half, value_ms + half), parts)


def compared(*models: ModelOnHost) -> HostComparison:
    return HostComparison([each.latency for each in models])


def bricks_of(works: Sequence[ParcelWork]) -> list[str]:
    return [brick for work in works for brick in work.bricks]


def test_the_brick_that_removes_most_doubt_per_second_comes_first() -> None:
    parts = {"small": UnmeasuredPart(1, 0.1), "large": UnmeasuredPart(30, 5.0), "slow": UnmeasuredPart(30, 5.0)}
    mine = on_host("a", "m", 0.1, parts, 100)
    other = ModelOnHost("m", HostLatency("b", 104, 103.9, 104.1), {})
    works = [ParcelWork("p", ("small",), 1), ParcelWork("q", ("slow",), 50), ParcelWork("r", ("large",), 1)]
    plan = plan_for([mine], {"m": compared(mine, other)}, works)
    assert bricks_of(plan)[0] == "large"


def test_a_model_whose_order_is_settled_needs_no_measurement() -> None:
    mine = on_host("a", "m", 0.1, {"brick": UnmeasuredPart(10, 1.0)}, 100)
    other = ModelOnHost("m", HostLatency("b", 200, 199, 201), {})
    assert not plan_for([mine], {"m": compared(mine, other)}, [ParcelWork("p", ("brick",), 1)])


def test_only_models_with_an_open_order_count() -> None:
    parts = {"one": UnmeasuredPart(30, 5.0), "two": UnmeasuredPart(30, 5.0)}
    settled = on_host("a", "settled", 0.1, {"one": parts["one"]}, 100)
    is_open = on_host("a", "open", 0.1, {"two": parts["two"]}, 100)
    far, near = (ModelOnHost("", HostLatency("b", ms, ms - 0.1, ms + 0.1), {}) for ms in (300, 104))
    comparisons = {"settled": compared(settled, far), "open": compared(is_open, near)}
    plan = plan_for([settled, is_open], comparisons, [ParcelWork("p", ("one",), 1), ParcelWork("q", ("two",), 1)])
    assert bricks_of(plan) == ["two"]


def test_a_pair_that_no_measurement_on_the_host_can_decide_is_left_alone() -> None:
    """The error of the method stays, and it is wider than the difference."""
    mine = on_host("a", "m", 10.0, {"brick": UnmeasuredPart(1, 0.05)}, 100)
    other = ModelOnHost("m", HostLatency("b", 101, 91, 111), {})
    assert not plan_for([mine], {"m": compared(mine, other)}, [ParcelWork("p", ("brick",), 1)])


def test_a_host_without_a_latency_measures_the_bricks_that_have_no_prediction() -> None:
    parts = {"lacking": UnmeasuredPart(0, math.inf), "predicted": UnmeasuredPart(10, 1.0)}
    mine = ModelOnHost("m", HostLatency("a", None), parts)
    other = ModelOnHost("m", HostLatency("b", 100, 99, 101), {})
    works = [ParcelWork("p", ("predicted",), 1), ParcelWork("q", ("lacking",), 1)]
    assert bricks_of(plan_for([mine], {"m": compared(mine, other)}, works)) == ["lacking"]


def test_a_parcel_whose_bricks_another_one_holds_too_is_not_measured_for_them() -> None:
    parts = {"one": UnmeasuredPart(30, 5.0), "two": UnmeasuredPart(30, 5.0)}
    mine = on_host("a", "m", 0.1, parts, 100)
    other = ModelOnHost("m", HostLatency("b", 100.5, 100.4, 100.6), {})
    works = [ParcelWork("both", ("one", "two"), 10), ParcelWork("one", ("one",), 9), ParcelWork("two", ("two",), 9)]
    plan = plan_for([mine], {"m": compared(mine, other)}, works)
    assert [work.parcel for work in plan] == ["both"]


def test_bricks_of_two_models_are_worth_more() -> None:
    one = on_host("a", "one", 0.1, {"common": UnmeasuredPart(30, 5.0), "own": UnmeasuredPart(30, 5.0)}, 100)
    two = on_host("a", "two", 0.1, {"common": UnmeasuredPart(30, 5.0)}, 100)
    other = ModelOnHost("", HostLatency("b", 104, 103.9, 104.1), {})
    comparisons = {"one": compared(one, other), "two": compared(two, other)}
    plan = plan_for([one, two], comparisons, [ParcelWork("p", ("own",), 1), ParcelWork("q", ("common",), 1)])
    assert bricks_of(plan)[0] == "common"


def test_enough_bricks_are_planned_for_the_pair_and_no_more() -> None:
    parts = {str(number): UnmeasuredPart(1, 0.3) for number in range(50)}
    mine = on_host("a", "m", 0.1, parts, 100)
    other = ModelOnHost("m", HostLatency("b", 110, 109.9, 110.1), {})
    works = [ParcelWork("p", (brick,), 0.1) for brick in parts]
    plan = plan_for([mine], {"m": compared(mine, other)}, works)
    taken = set(bricks_of(plan))
    left = {brick: part for brick, part in parts.items() if brick not in taken}
    after = on_host("a", "m", 0.1, left, 100)
    assert 0 < len(left) < len(parts)
    assert compared(after, other).order.settled


def test_a_plan_of_many_tasks_is_a_third_of_what_is_needed() -> None:
    parts = {str(number): UnmeasuredPart(0.02, 0.02) for number in range(3_000)}
    mine = on_host("a", "m", 0.1, parts, 100)
    other = ModelOnHost("m", HostLatency("b", 100.1, 100.05, 100.15), {})
    plan = plan_for([mine], {"m": compared(mine, other)}, [ParcelWork("p", (brick,), 1.0) for brick in parts])
    assert 120 <= len(plan) <= 1_000


def test_no_model_and_no_work_give_no_plan() -> None:
    assert not plan_for([], {}, [ParcelWork("p", ("brick",), 1)])


@pytest.mark.parametrize(
    ("latency_ms", "least", "most"), [(0.1, 0.1, 1), (10, 1, 4), (1_000, 5, 6), (60_000, 300, 301)]
)
def test_a_parcel_takes_seconds_and_a_slow_one_some_runs(latency_ms: float, least: float, most: float) -> None:
    assert least <= seconds_inside(latency_ms) <= most
