"""Whose turn it is first."""

from itertools import accumulate

import pytest

from dlbricks_tui.measure.turns import in_turn

# A model and its bricks.
LASTING = {"model": 6.0, "large": 3.0, "small": 1.0}


def test_all_come_once_and_go_round() -> None:
    for number in range(20):
        order = in_turn("abcdef", [1, 2, 3, 1, 2, 3], number)
        first = "abcdef".index(order[0])
        assert "".join(order) == "abcdef"[first:] + "abcdef"[:first]


def test_the_first_round_begins_with_the_first() -> None:
    assert in_turn([*LASTING], [*LASTING.values()], 0) == [*LASTING]


def test_in_the_long_run_each_is_in_the_middle_of_a_round_on_average() -> None:
    middles: dict[str, list[float]] = {name: [] for name in LASTING}
    for number in range(1000):
        order = in_turn([*LASTING], [*LASTING.values()], number)
        for name, end in zip(order, accumulate(LASTING[name] for name in order), strict=True):
            middles[name].append(end - LASTING[name] / 2)
    averages = {name: sum(found) / len(found) for name, found in middles.items()}
    assert averages == pytest.approx(dict.fromkeys(LASTING, sum(LASTING.values()) / 2), rel=0.02)


def test_nothing_is_in_turn_where_there_is_nothing() -> None:
    assert in_turn([], [], 7) == []
    assert in_turn(["a"], [0.0], 7) == ["a"]
    assert in_turn(["a", "b"], [0.0, 0.0], 7) == ["a", "b"]
