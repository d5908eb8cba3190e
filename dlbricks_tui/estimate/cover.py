"""The choice of overlapping sequences that cover a model at the least cost (paper, section 6)."""

from collections.abc import Sequence
from heapq import heappop, heappush
from typing import NamedTuple


class Window(NamedTuple):
    """A sequence that begins at a position of the layer order: its length, and its latency if known."""

    length: int
    latency_ps: int | None


class Chosen(NamedTuple):
    """A part of the cover: the window that begins at a position, or (known False) the one layer there, uncovered."""

    begin: int
    known: bool


class _Cost(NamedTuple):
    """The cost of a cover: first the layers without a latency, then the latency."""

    uncovered: int
    latency_ps: int


def minimum_cover(windows: Sequence[Window]) -> tuple[Chosen, ...]:
    """Return the cheapest windows that cover all positions, given the window that begins at each.

    Layers in two windows count twice. Positions that no known window reaches stay uncovered, each by itself.
    """
    # Covering everything before a position p costs costs[p]; any window that begins before p and ends there or later
    # may be the last one used.
    costs = [_Cost(0, 0)]
    last: list[Chosen] = []
    open_windows: list[tuple[_Cost, int, int]] = []
    for position, window in enumerate(windows):
        so_far = costs[position]
        if window.latency_ps is not None:
            cost = _Cost(so_far.uncovered, so_far.latency_ps + window.latency_ps)
            # Of equal costs the one that reaches further.
            heappush(open_windows, (cost, -(position + window.length), position))
        while open_windows and -open_windows[0][1] <= position:
            heappop(open_windows)
        uncovered = _Cost(so_far.uncovered + 1, so_far.latency_ps)
        if open_windows and open_windows[0][0] < uncovered:
            costs.append(open_windows[0][0])
            last.append(Chosen(open_windows[0][2], True))
        else:
            costs.append(uncovered)
            last.append(Chosen(position, False))
    return _walked_back(last)


def _walked_back(last: Sequence[Chosen]) -> tuple[Chosen, ...]:
    chosen: list[Chosen] = []
    position = len(last)
    while position:
        chosen.append(last[position - 1])
        position = chosen[-1].begin
    return tuple(reversed(chosen))
