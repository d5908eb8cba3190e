from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.estimate.parts import Chosen, Window, minimum_cover

UNKNOWN = None


@st.composite
def windows(draw: st.DrawFn) -> list[Window]:
    count = draw(st.integers(0, 7))
    return [
        Window(draw(st.integers(1, min(3, count - begin))), draw(st.none() | st.integers(0, 9)))
        for begin in range(count)
    ]


def covered(given_windows: list[Window], chosen: tuple[Chosen, ...]) -> set[int]:
    return {
        position for begin, known in chosen if known for position in range(begin, begin + given_windows[begin].length)
    }


def cost(given_windows: list[Window], begins: list[int]) -> int:
    return sum(given_windows[begin].latency_ps or 0 for begin in begins)


@pytest.mark.parametrize(
    ("given_windows", "expected"),
    [
        # Beginning with the first two, or with the first three of which the third is paid twice.
        ([Window(2, 10), Window(2, 50), Window(2, 10), Window(1, 1)], ((0, True), (2, True))),
        ([Window(2, 10), Window(3, 5), Window(2, 10), Window(1, 1)], ((0, True), (1, True))),
        # Others cover the layers of a missing one.
        ([Window(2, 10), Window(2, 9), Window(2, UNKNOWN), Window(1, 3)], ((0, True), (1, True), (3, True))),
        ([Window(2, UNKNOWN), Window(2, 7), Window(1, UNKNOWN)], ((0, False), (1, True))),
    ],
)
def test_the_cheapest_known_windows_cover_a_chain(
    given_windows: list[Window], expected: tuple[tuple[int, bool], ...]
) -> None:
    assert minimum_cover(given_windows) == expected


@given(windows())
def test_every_position_is_covered_or_listed_and_no_other_choice_leaves_fewer_uncovered_or_costs_less(
    given_windows: list[Window],
) -> None:
    chosen = minimum_cover(given_windows)
    gaps = {begin for begin, known in chosen if not known}
    assert covered(given_windows, chosen) | gaps == set(range(len(given_windows)))
    assert not covered(given_windows, chosen) & gaps
    mine = (
        sum(not known for _, known in chosen),
        cost(given_windows, [begin for begin, known in chosen if known]),
    )
    known_begins = [begin for begin, window in enumerate(given_windows) if window.latency_ps is not None]
    others = []
    for picks in product([False, True], repeat=len(known_begins)):
        begins = [begin for begin, pick in zip(known_begins, picks, strict=True) if pick]
        reached = covered(given_windows, tuple(Chosen(begin, True) for begin in begins))
        others.append((len(given_windows) - len(reached), cost(given_windows, begins)))
    assert mine == min(others)
